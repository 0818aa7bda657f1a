"""Sphinx extension of the book: where the build has executed the pages (tools/executed.py), render what came out.

The variable BOOK_EXECUTED of the environment names the folder. Without it, as in `jupyter-book build .`, this extension
does nothing, and the notebooks are executed while they are read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from myst_nb.sphinx_ import NbMetadataCollector


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
    if folder:
        app.connect("config-inited", _execute_nothing)
        app.connect("builder-inited", _expect_notebooks, priority=900)  # after MyST-NB has made its configuration
        app.connect("source-read", _read_executed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
