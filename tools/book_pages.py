"""Sphinx extension of the book: what its pages need beside the theme.

- MathJax is copied from the installed package `sphinx-mathjax-offline` (never committed), so that pages open without a
  network.
- The library's version stands in the footer of every page.
- A reference to a chapter's number says "Chapter 3"; to a section's, "Section 3.1".
- The explorers' module is copied from the library, and a page that holds an explorer loads it.
- Live code is off: its extension, which Jupyter Book always loads, would put a script into every page that names an
  address outside and fails.
- A panel tells what the page's symbols mean (`book_notation`); each page describes itself, and there is one for wrong
  addresses (`book_head`); a statement can be repeated elsewhere (`book_card`).
- Run buttons stand on notebooks only, and a download is one.
- Proofs are plain text, not boxes; ids are unique, and roles and headers are such that assistive tools read them.
"""

from __future__ import annotations

import re
from importlib import metadata
from itertools import count
from pathlib import Path
from shutil import copy2

import book_notation
from docutils import nodes

from residual_gd import explorer

# The part of MathJax that `tex-mml-chtml.js` can ask for: 3 of 24 MB.
MATHJAX_PARTS = ("tex-mml-chtml.js", "output/chtml/fonts", "input/tex/extensions", "a11y", "ui")

FORMULA = re.compile(r'([(\[“]?)<span class="math notranslate nohighlight">[^<]*</span>([.,;:!?)\]”’]*)')


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


def copy_explorer(target: Path) -> None:
    """Copy the explorers' module and style into the folder `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("explorer.js", "explorer.css"):
        copy2(Path(explorer.__file__).parent / name, target / name)


def _load_explorers(app, pagename, templatename, context, doctree) -> None:
    if '<div class="explorer-data">' in context.get("body", ""):
        app.add_css_file("explorer/explorer.css")
        app.add_js_file("explorer-loader.js", type="module")


def _run_notebooks_only(app, pagename, templatename, context, doctree) -> None:
    """Run buttons stay with the notebooks: Colab opens no page of text, and a text's cells may need the repository."""
    if context.get("page_source_suffix") in (None, ".ipynb"):
        return
    buttons = [button for button in context["header_buttons"] if button.get("label") != "launch-buttons"]
    for button in buttons:
        if button["type"] == "group":
            button["buttons"] = [b for b in button["buttons"] if b.get("label") != "download-notebook-button"]
    context["header_buttons"] = buttons


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


def tidy(page: str) -> str:
    """The HTML of a page, with the extensions' faults corrected."""
    number = count(1)
    page = re.sub(
        '<div class="proof admonition" id="proof">',
        lambda match: f'<div class="proof argument" id="proof-{next(number)}">',
        page,
    )
    page = re.sub(r'(<div class="proof argument" id="proof-\d+">\s*<p>)Proof\. ', r"\1<em>Proof.</em> ", page)
    # sphinx-proof and sphinx-exercise give the inside of all boxes of a kind one and the same id.
    page = re.sub(r'(<section class="[^"]*") id="[a-z]+-content">', r"\1>", page)
    page = re.sub(r'(<section) id="[a-z]+-content">', r"\1>", page)
    # A list of citations is a list of items.
    page = page.replace(' role="doc-biblioentry"', ' role="listitem"')
    # The icons come from a font; the script that would draw them once more is heavier than all the rest of a page.
    page = re.sub(r'\s*<script src="[^"]*/fontawesome/[^"]*\.js[^"]*"></script>', "", page)
    # The corner of a table of numbers heads nothing.
    page = re.sub(r'<th(?: class="head")?>(?:<p></p>)?</th>', "<td></td>", page)
    # A table too wide for the window is moved by the keyboard, too.
    table = '<div class="pst-scrollable-table-container"'
    page = page.replace(table + ">", table + ' tabindex="0">')
    # A source is downloaded, not shown.
    page = re.sub(r'(<a href="[^"]*_sources/[^"]*") target="_blank"', r"\1 download", page)
    # No line ends between a formula and the brackets or the stop that belong to it.
    page = FORMULA.sub(lambda m: f'<span class="together">{m[0]}</span>' if m[1] or m[2] else m[0], page)
    page = page.replace(
        '<div class="bd-sidebar-primary bd-sidebar',
        '<div role="region" aria-label="Book" class="bd-sidebar-primary bd-sidebar',
    )
    return book_notation.add(page)


def _finish(app, exception) -> None:
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(tidy(path.read_text(encoding="utf-8")), encoding="utf-8")
        copy_mathjax(Path(app.outdir) / "_static" / "mathjax")
        copy_explorer(Path(app.outdir) / "_static" / "explorer")


def _without_live_code(app) -> None:
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__.startswith("sphinx_thebe"):
                app.disconnect(listener.id)
    app.registry.css_files = [entry for entry in app.registry.css_files if "thebe" not in entry[0]]


def setup(app):
    for part in ("book_head", "book_card"):
        app.setup_extension(part)
    app.connect("config-inited", _configure)
    app.connect("doctree-resolved", _name_chapters)
    app.connect("html-page-context", _load_explorers)
    app.connect("html-page-context", _run_notebooks_only, priority=900)
    app.connect("build-finished", _finish)
    _without_live_code(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
