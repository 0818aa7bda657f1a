"""Take README's picture from the built book: `python tools/picture.py [PAGE] [SELECTOR]`, into assets/page.png."""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
PICTURE = ROOT / "assets" / "page.png"
LARGEST = 300_000  # bytes
WIDTH, HEIGHT = 1280, 1060


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def main(name: str = "chapters/03-lipschitz.html", selector: str = "#lem-softmax-jacobian") -> int:
    """Photograph the page `name` from a little above the element `selector`."""
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    handler = functools.partial(Quiet, directory=str(HTML))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"http://127.0.0.1:{server.server_port}/{name}", wait_until="networkidle")
        page.evaluate("() => window.MathJax?.startup?.promise")
        page.evaluate("s => window.scrollTo(0, document.querySelector(s).getBoundingClientRect().top - 80)", selector)
        page.wait_for_timeout(500)  # the header settles
        page.screenshot(path=PICTURE)
        browser.close()
        server.shutdown()
    size = PICTURE.stat().st_size
    print(f"{PICTURE.relative_to(ROOT)}: {size} bytes")
    return 0 if size <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
