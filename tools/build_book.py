"""Build the book's pages: `python tools/build_book.py [FOLDER]` (default: this repository).

Every notebook is executed afresh, once (tools/executed.py); the pages are rendered from what comes out, as the PDF is
(tools/build_pdf.py). Any warning, failed cell, dangling reference or chapter without a page is an error. `make book`
and the tests of the build go through `build`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import executed
import yaml
from notebooks import NotebookError

ROOT = Path(__file__).resolve().parent.parent
JUPYTER_BOOK = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
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


def render(folder: Path, notebooks: Path, builder: str = "html", base: Path | None = None) -> Path:
    """Render the book in `folder` from the executed `notebooks` into `base`/_build/`builder`; return that folder.

    `base` is `folder` by default. Nothing is executed, and nothing of an earlier rendering is used.
    """
    output = (base or folder) / "_build"
    for old in (output / builder, output / ".doctrees", output / "jupyter_execute"):
        shutil.rmtree(old, ignore_errors=True)
    environment = {**os.environ, executed.VARIABLE: str(notebooks), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", ".", "--all", "-W", "-n", "--keep-going"]
    command += ["--builder", builder, "--path-output", str(output.parent)]
    code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if code != 0:
        raise BuildError(f"jupyter-book ended with exit code {code}; the warnings and errors are above")
    return output / builder


def execute(folder: Path) -> Path:
    """Execute the notebooks of the book in `folder` afresh; return where they lie."""
    entries = check_toc(folder)
    shutil.rmtree(folder / "_build" / "html", ignore_errors=True)  # they would be pages of another execution
    try:
        return executed.execute(folder, entries)
    except NotebookError as error:
        raise BuildError(str(error)) from None


def finish(folder: Path, notebooks: Path) -> Path:
    """Render the pages from the executed `notebooks` and see that all are there; return their folder."""
    html = render(folder, notebooks)
    check_pages(html, check_toc(folder))
    (html / COMPLETE).touch()
    return html


def build(folder: Path = ROOT) -> Path:
    """Build the book in `folder` afresh; return the folder of its pages.

    Raises
    ------
    BuildError
        Wrong Jupyter Book, a chapter without a file or page, or a build with a warning or a failed cell.
    """
    folder = Path(folder).resolve()
    check_version()
    return finish(folder, execute(folder))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    stages = parser.add_mutually_exclusive_group()
    stages.add_argument("--only-execute", action="store_true", help="render no pages")
    stages.add_argument("--only-render", action="store_true", help="render what was executed before")
    options = parser.parse_args(arguments)
    folder, start = options.folder.resolve(), time.monotonic()
    try:
        check_version()
        if options.only_render:
            notebooks = executed.check(folder, check_toc(folder))
        else:
            print("== Executing every chapter afresh", flush=True)
            notebooks = execute(folder)
        if not options.only_execute:
            print("== Rendering the pages from the executed chapters; any warning is an error", flush=True)
            html = finish(folder, notebooks)
    except (BuildError, NotebookError) as error:
        print(f"\nThe book was not built: {error}", file=sys.stderr)
        return 1
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    if options.only_execute:
        print(f"\nThe chapters are executed ({minutes} min {seconds} s): {notebooks}")
        return 0
    print(f"\nThe book is built ({len(toc_entries(folder))} pages, {minutes} min {seconds} s): {html / 'index.html'}")
    print("Open this file in a browser, or run 'make serve' and go to http://localhost:8000/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
