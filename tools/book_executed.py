"""Sphinx extension of the book: where the build has executed the pages (tools/executed.py), render what came out.

The status page is told how long each page ran, and by the directive `versions-used` with which versions.

The variable BOOK_EXECUTED of the environment names the folder. Without it, as in `jupyter-book build .`, this extension
does nothing, and the notebooks are executed while they are read.
"""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.util.docutils import SphinxDirective

PACKAGES = ("residual-gd", "numpy", "scipy", "torch", "matplotlib", "pandas", "jupyter-book", "myst-nb")


def versions() -> str:
    """Python, the packages and the machine that execute and render here, in one line."""
    named = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    machine = f"{platform.system()} {platform.machine()} with {os.cpu_count()} processors"
    return f"Python {platform.python_version()}, {', '.join(named)}; {machine}."


class VersionsUsed(SphinxDirective):
    """A paragraph with the versions at the time of execution."""

    def run(self):
        folder = self.config.book_executed
        return [nodes.paragraph(text=(folder / "versions.txt").read_text() if folder else versions())]


def _record(folder: Path) -> dict:
    return json.loads((folder / "record.json").read_text())


def _execute_nothing(app, config) -> None:
    config.nb_execution_mode = "off"


def _expect_notebooks(app) -> None:
    """Tell MyST-NB which pages of text come as executed notebooks."""
    paths = [app.env.doc2path(name) for name in _record(app.config.book_executed)]
    formats = {path: ("nbformat.reads", {"as_version": 4}, False) for path in paths if path.endswith(".md")}
    app.env.mystnb_config = app.env.mystnb_config.copy(custom_formats=formats)


def _read_executed(app, docname, source) -> None:
    """Hand Sphinx the executed notebook, and the status page how long it ran."""
    folder = app.config.book_executed
    run = _record(folder).get(docname)
    if run:
        source[0] = (folder / (docname + ".ipynb")).read_text(encoding="utf-8")
        data = {"mtime": run["finished"], "runtime": run["seconds"], "method": "afresh", "succeeded": True}
        NbMetadataCollector.set_exec_data(app.env, docname, data)


def setup(app):
    folder = os.environ.get("BOOK_EXECUTED")
    app.add_config_value("book_executed", Path(folder) if folder else None, "", (Path, type(None)))
    app.add_directive("versions-used", VersionsUsed)
    if folder:
        app.connect("config-inited", _execute_nothing)
        app.connect("builder-inited", _expect_notebooks, priority=900)  # after MyST-NB has made its configuration
        app.connect("source-read", _read_executed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
