"""Sphinx extension of the book: what its pages need beside the theme.

- MathJax is copied from the installed package `sphinx-mathjax-offline` (never committed), so that pages open without a
  network.
- The library's version stands in the footer of every page.
- A reference to a chapter's number says "Chapter 3"; to a section's, "Section 3.1".
- Proofs are plain text, not boxes, and have ids of their own.
"""

from __future__ import annotations

import re
from importlib import metadata
from itertools import count
from pathlib import Path
from shutil import copy2

from docutils import nodes

# The part of MathJax that `tex-mml-chtml.js` can ask for: 3 of 24 MB.
MATHJAX_PARTS = ("tex-mml-chtml.js", "output/chtml/fonts", "input/tex/extensions", "a11y", "ui")


def mathjax_folder() -> Path:
    """Folder of the installed MathJax."""
    files = metadata.files("sphinx-mathjax-offline") or []
    for file in files:
        if file.name == "tex-mml-chtml.js":
            return Path(file.locate()).parent
    raise FileNotFoundError("sphinx-mathjax-offline holds no tex-mml-chtml.js; is requirements.txt installed?")


def copy_mathjax(target: Path) -> None:
    """Copy the needed part of MathJax into the folder `target`."""
    source = mathjax_folder()
    for part in MATHJAX_PARTS:
        path = source / part
        for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy2(file, copy)


def _configure(app, config) -> None:
    version = metadata.version("residual-gd")
    config.version = config.release = version
    config.html_theme_options["extra_footer"] = f'<p class="book-version">residual_gd {version}</p>'
    config.html_theme_options["logo"] = {"text": config.html_title}


def _name_chapters(app, doctree, docname) -> None:
    for node in doctree.findall(nodes.inline):
        if "std-numref" in node.get("classes", []) and re.fullmatch(r"Section \d+", node.astext()):
            text = node.astext().replace("Section", "Chapter")
            node.children = [nodes.Text(text)]


def _plain_proofs(app, pagename, templatename, context, doctree) -> None:
    if "body" in context:
        number = count(1)
        context["body"] = re.sub(
            r'<div class="proof admonition" id="proof">',
            lambda match: f'<div class="proof argument" id="proof-{next(number)}">',
            context["body"],
        )


def _copy_mathjax(app, exception) -> None:
    if exception is None and app.builder.format == "html":
        copy_mathjax(Path(app.outdir) / "_static" / "mathjax")


def setup(app):
    app.connect("config-inited", _configure)
    app.connect("doctree-resolved", _name_chapters)
    app.connect("html-page-context", _plain_proofs)
    app.connect("build-finished", _copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
