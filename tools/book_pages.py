"""Sphinx extension of the book: what every page needs, so that it opens without a network.

MathJax is copied from the installed package `sphinx-mathjax-offline`, never committed. The library's version goes
into the footer of every page.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from shutil import copy2

# The part of MathJax that `tex-mml-chtml.js` can ask for: 3 of 24 MB.
MATHJAX_PARTS = ("tex-mml-chtml.js", "output/chtml/fonts", "input/tex/extensions", "a11y", "ui")


def mathjax_folder() -> Path:
    """Folder of the installed MathJax."""
    files = metadata.files("sphinx-mathjax-offline") or []
    for file in files:
        if file.name == "tex-mml-chtml.js":
            return Path(file.locate()).parent
    raise FileNotFoundError(
        "the package sphinx-mathjax-offline holds no tex-mml-chtml.js; is requirements.txt installed?"
    )


def copy_mathjax(target: Path) -> None:
    """Copy the needed part of MathJax into the folder `target`."""
    source = mathjax_folder()
    for part in MATHJAX_PARTS:
        path = source / part
        for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy2(file, copy)


def _footer(app, config) -> None:
    version = metadata.version("residual-gd")
    config.version = config.release = version
    config.html_theme_options["extra_footer"] = f'<p class="book-version">residual_gd {version}</p>'


def _finish(app, exception) -> None:
    if exception is None and app.builder.format == "html":
        copy_mathjax(Path(app.outdir) / "_static" / "mathjax")


def setup(app):
    app.connect("config-inited", _footer)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
