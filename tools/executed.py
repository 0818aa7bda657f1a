"""One execution of the book, from which the pages and the PDF are rendered.

Every page with code is run afresh; a notebook in an empty folder, as a reader runs a downloaded one. What comes out,
figures included, lies in `_build/executed`, with a record of when and how long each ran. Rendering executes nothing:
the Sphinx extension `book_executed` hands these notebooks to Sphinx in place of the stored pages.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import notebooks
from book_executed import versions
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook

VARIABLE = "BOOK_EXECUTED"  # of the environment: tells the extension where the executed notebooks are
RECORD = "record.json"  # written last, when every notebook ran
# Two dots a point in figures; no word of the kernel about its own connection.
KERNEL_CONFIG = "c = get_config()\nc.InlineBackend.figure_formats = {'retina'}\nc.IPKernelApp.log_level = 'ERROR'\n"


def folder_of(book: Path) -> Path:
    """Where the executed notebooks of the book in `book` lie."""
    return book / "_build" / "executed"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def environment(profile: Path) -> dict[str, str]:
    """The kernels' environment variables; `profile` is an empty folder for IPython's settings."""
    # A profile of its own: figures with two dots a point, and nothing of what the user has set for IPython.
    (profile / "profile_default").mkdir()
    (profile / "profile_default" / "ipython_kernel_config.py").write_text(KERNEL_CONFIG)
    # One thread: the book's matrices are small, and threads that wait for each other cost more than they save.
    variables = {"OMP_NUM_THREADS": "1", **os.environ, "RESIDUAL_GD_PROGRESS": "0", "IPYTHONDIR": str(profile)}
    # Kernels start with this environment's Python, wherever the shell's path leads.
    variables["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    return variables


def pages_with_code(book: Path, entries: list[str]) -> dict[str, Path]:
    """The notebooks among `entries`, and the pages of text that hold cells: entry -> file."""
    found = {}
    for entry in entries:
        notebook, text = book / (entry + ".ipynb"), book / (entry + ".md")
        if notebook.is_file():
            found[entry] = notebook
        elif text.is_file() and is_myst_markdown_notebook(text.read_text(encoding="utf-8")):
            found[entry] = text
    return found


def execute(book: Path, entries: list[str], jobs: int | None = None) -> Path:
    """Run the pages with code among `entries`, `jobs` at a time (default: one a processor); return their folder.

    `NotebookError` tells of those that failed, after all have run.
    """
    folder = folder_of(book)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pages = pages_with_code(book, entries)
    with tempfile.TemporaryDirectory() as profile, ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        variables = environment(Path(profile))
        results = list(pool.map(lambda e: _run(pages[e], folder / (e + ".ipynb"), variables), pages))
    failures = [str(result) for result in results if isinstance(result, notebooks.NotebookError)]
    if failures:
        raise notebooks.NotebookError("\n".join(failures))
    (folder / "versions.txt").write_text(versions())
    (folder / RECORD).write_text(json.dumps(dict(zip(pages, results, strict=True)), indent=1) + "\n")
    return folder


def _run(path: Path, target: Path, variables: dict) -> dict | notebooks.NotebookError:
    start, source = time.monotonic(), digest(path)
    try:
        if path.suffix == ".md":
            notebook = read_myst_markdown_notebook(path.read_text(encoding="utf-8"), path=path)
            notebooks.run(notebook, path, path.parent, variables)
        else:
            with tempfile.TemporaryDirectory() as empty:
                notebook = notebooks.run(notebooks.read(path), path, Path(empty), variables)
    except notebooks.NotebookError as error:
        print(f"failed    {path}", flush=True)
        return error
    seconds = round(time.monotonic() - start, 1)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    print(f"executed  {path} ({seconds:.0f} s)", flush=True)
    return {"source": source, "seconds": seconds, "finished": int(time.time())}


def check(book: Path, entries: list[str]) -> Path:
    """Folder of the executed notebooks, if they are those of `entries` as they are stored now.

    `NotebookError` says which is missing or was changed since.
    """
    folder = folder_of(book)
    if not (folder / RECORD).is_file():
        raise notebooks.NotebookError(f"no executed notebooks in {folder}")
    record = json.loads((folder / RECORD).read_text())
    for entry, path in pages_with_code(book, entries).items():
        if record.get(entry, {}).get("source") != digest(path):
            raise notebooks.NotebookError(f"{path} is not what was executed")
    return folder
