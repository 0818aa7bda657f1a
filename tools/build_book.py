"""Build the book's pages: `python tools/build_book.py [FOLDER]` (default: this repository).

Every notebook is executed afresh; any warning, failed cell, dangling reference or chapter without a page is an error.
`make book` and the tests of the build go through `build`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
JUPYTER_BOOK = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
KERNEL_CONFIG = "c = get_config()\nc.InlineBackend.figure_formats = {'retina'}\n"
COMPLETE = ".complete"  # written last, when every page was built


class BuildError(Exception):
    """The book can't be built; the message says why."""


def check_version() -> None:
    """Raise `BuildError` unless Jupyter Book is 1.x: 2.x builds no HTML from these files, and exits 0."""
    version = metadata.version("jupyter-book")
    if version.split(".")[0] != "1":
        raise BuildError(f"jupyter-book must be 1.x, got {version}; install requirements.txt")


def toc_entries(folder: Path) -> list[str]:
    """Pages named by `_toc.yml`, in order, without suffix."""
    found: list[str] = []

    def walk(node) -> None:
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("root", "file"):
                    found.append(str(value).removesuffix(".md").removesuffix(".ipynb"))
                else:
                    walk(value)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(yaml.safe_load((folder / "_toc.yml").read_text(encoding="utf-8")))
    return found


def check_toc(folder: Path) -> list[str]:
    """Entries of the table of contents; raise `BuildError` if one is repeated or has no source file."""
    entries = toc_entries(folder)
    missing = [e for e in entries if not any((folder / (e + suffix)).is_file() for suffix in (".md", ".ipynb"))]
    if missing:
        raise BuildError(f"_toc.yml names pages that don't exist: {', '.join(missing)}")
    repeated = sorted({e for e in entries if entries.count(e) > 1})
    if repeated:
        raise BuildError(f"_toc.yml names pages twice: {', '.join(repeated)}")
    return entries


def check_pages(html: Path, entries: list[str]) -> None:
    """Raise `BuildError` unless every entry of the table of contents has its page."""
    missing = [e for e in entries if not (html / (e + ".html")).is_file()]
    if missing:
        raise BuildError(f"{len(entries)} pages expected, {len(missing)} not built: {', '.join(missing)}")


def build(folder: Path = ROOT) -> Path:
    """Build the book in `folder`; return the folder of its pages.

    Raises
    ------
    BuildError
        Wrong Jupyter Book, a chapter without a file or page, or a build with a warning or a failed cell.
    """
    folder = Path(folder).resolve()
    check_version()
    entries = check_toc(folder)
    output = folder / "_build"
    html = output / "html"
    # From nothing: an incremental build would keep the pages of notebooks whose text did not change.
    for old in (html, output / ".doctrees", output / ".jupyter_cache"):
        shutil.rmtree(old, ignore_errors=True)
    # One thread: the book's matrices are small, and threads that wait for each other cost more than they save.
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "RESIDUAL_GD_PROGRESS": "0", "PYTHONUNBUFFERED": "1"}
    # Kernels start with this environment's Python, wherever the shell's path leads.
    environment["PATH"] = str(Path(sys.executable).parent) + os.pathsep + environment.get("PATH", "")
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", ".", "--all", "-W", "-n", "--keep-going"]
    with tempfile.TemporaryDirectory() as profile:
        # A profile of its own: figures with two dots a point, and nothing of what the user has set for IPython.
        environment["IPYTHONDIR"] = profile
        (Path(profile) / "profile_default").mkdir()
        (Path(profile) / "profile_default" / "ipython_kernel_config.py").write_text(KERNEL_CONFIG)
        code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if code != 0:
        raise BuildError(f"jupyter-book ended with exit code {code}; the warnings and errors are above")
    check_pages(html, entries)
    (html / COMPLETE).touch()
    return html


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    folder = parser.parse_args(arguments).folder
    start = time.monotonic()
    print("== Building the book: every chapter is executed afresh, any warning is an error", flush=True)
    try:
        html = build(folder)
    except BuildError as error:
        print(f"\nThe book was not built: {error}", file=sys.stderr)
        return 1
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(f"\nThe book is built ({len(toc_entries(folder))} pages, {minutes} min {seconds} s): {html / 'index.html'}")
    print("Open this file in a browser, or run 'make serve' and go to http://localhost:8000/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
