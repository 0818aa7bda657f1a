"""How long does a reader wait for the last equation of a page, beside the same page in Jupyter Book's default dress?

    make book
    python benchmarks/page.py [chapters/05-rate-theorem]

The peer is built from the same executed notebook with Jupyter Book's own theme and settings, without this book's style,
scripts and extension, and with the same local copy of MathJax. Both are served on localhost and opened in turn, each
time in a fresh browser context (nothing cached). Prints the median seconds from navigation until MathJax has set the
last equation, and their ratio: a ratio near 1 says that what the book adds costs the reader nothing.

On two processors that were busy with other work, chapter 5 with 597 equations: 10.6 s, default theme 9.8 s, ratio 1.08
(single visits from 5 to 16 s; almost all of it is MathJax).
"""

import argparse
import contextlib
import functools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import book_pages  # noqa: E402
import build_book  # noqa: E402
import executed  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CONFIG = {
    "title": "The same page",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "off"},
    "parse": {
        "myst_enable_extensions": ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "html_image"],
    },
    "sphinx": {
        "extra_extensions": ["sphinx_proof", "sphinx_exercise"],
        "config": {
            "nb_ipywidgets_js": {},
            "mathjax_path": "mathjax/tex-mml-chtml.js",
            "mathjax_options": {"defer": "defer"},
            "html_static_path": ["static"],
        },
    },
}
# Set when the last equation is: MathJax's promise, and the frame that shows it.
CLOCK = """
document.addEventListener('DOMContentLoaded', function wait() {
    const ready = window.MathJax?.startup?.promise;
    if (!ready) { setTimeout(wait, 5); return; }
    ready.then(() => requestAnimationFrame(() => { window.lastEquation = performance.now(); }));
});
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder):
    """Address of a folder, served on localhost."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def build_peer(folder, notebook):
    """Build a book of one page, `page.html`, from an executed notebook; return the folder of its pages."""
    shutil.copy(notebook, folder / "page.ipynb")
    (folder / "_config.yml").write_text(json.dumps(CONFIG))  # JSON is YAML
    (folder / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    book_pages.copy_mathjax(folder / "static" / "mathjax")
    command = [sys.executable, "-c", build_book.JUPYTER_BOOK, "build", "--quiet", str(folder)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)  # references to other chapters dangle
    page = folder / "_build" / "html" / "page.html"
    if not page.is_file():
        raise SystemExit(f"the peer was not built:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return page.parent


def wait_for_equations(browser, url):
    """Seconds from navigation to the last equation, and the number of equations; nothing is cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.route("**/*", lambda route: route.continue_() if "//127.0.0.1" in route.request.url else route.abort())
    page.add_init_script(CLOCK)
    page.goto(url, wait_until="load", timeout=120_000)
    page.wait_for_function("window.lastEquation", timeout=120_000)
    seconds, count = page.evaluate("[window.lastEquation / 1000, document.querySelectorAll('mjx-container').length]")
    context.close()
    return seconds, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", default="chapters/05-rate-theorem")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    html = ROOT / "_build" / "html"
    if not (html / (options.page + ".html")).is_file():
        raise SystemExit(f"no page {options.page}: run make book")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, contextlib.ExitStack() as stack:
        peer = build_peer(Path(folder), executed.folder_of(ROOT) / (options.page + ".ipynb"))
        urls = {
            "this book": stack.enter_context(served(html)) + options.page + ".html",
            "default theme": stack.enter_context(served(peer)) + "page.html",
        }
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        times = {name: [] for name in urls}
        for repeat in range(options.repeats + 1):
            for name, url in urls.items():
                seconds, count = wait_for_equations(browser, url)
                if repeat:  # the first is a warm-up
                    times[name].append(seconds)
                else:
                    print(f"{name:14s} {count} equations")
        browser.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:14s} {medians[name]:6.2f} s   ({min(values):.2f} to {max(values):.2f} in {len(values)} visits)")
    print(f"ratio          {medians['this book'] / medians['default theme']:6.2f}")


if __name__ == "__main__":
    main()
