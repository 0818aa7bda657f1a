"""Sphinx extension of the book: what its PDF needs beside the LaTeX that Jupyter Book writes.

- Statements, proofs and exercises look as on the pages and have the pages' numbers; a link to one leads to it.
- Appendices have no number, as on the pages; a reference to a chapter says "Chapter 3".
- Where a page has an explorer, a line under its picture says so.
- Fonts, colours and page, in `book_print.tex`, in place of the class of sphinx-jupyterbook-latex.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node
from sphinx_jupyterbook_latex.nodes import CellInput, CellOutput, RootHeader
from sphinx_proof.nodes import NODE_TYPES, proof_node, unenumerable_node

# What the pages colour alike.
KINDS = {"definition": "defined", "remark": "aside", "example": "aside"}
LONG_TABLE = 1500  # letters
UNSHOWN = re.compile(r"<[\w.]+ object>|\w+\(children=.*\)", re.DOTALL)
EXPLORER = "[explorer on the book's pages: "


def _begin(translator, kind: str, head: str, *labels: str) -> None:
    """Open the box of a statement; its title node writes the last argument."""
    marks = "".join(rf"\label{{{label}}}" for label in labels)
    translator.body.append(f"\n\n\\begin{{bookbox}}{{{kind}}}{{{marks}}}{{{head}}}")


def _end(translator, node) -> None:
    translator.body.append("\\end{bookbox}\n\n")


def _visit_statement(translator, node) -> None:
    docname, realtype = translator.curfilestack[-1], node["realtype"]
    numbers = translator.builder.env.toc_fignumbers.get(docname, {}).get(node["countertype"], {})
    number = ".".join(map(str, numbers.get(node["ids"][0], ())))
    label = rf"\detokenize{{{docname}:{node['label']}}}"
    _begin(translator, KINDS.get(realtype, "proved"), f"{realtype.title()} {number}".strip(), label)


def _visit_exercise(translator, node) -> None:
    own = rf"\detokenize{{{translator.curfilestack[-1]}:{node['label']}}}"
    _begin(translator, "exercise", "", own, f"exercise:{node['label']}")  # the second is sphinx-exercise's name


def _visit_solution(translator, node) -> None:
    _begin(translator, "solution", "", rf"\detokenize{{{translator.curfilestack[-1]}:{node['label']}}}")


def _environment(name: str):
    """Visitors that put a node into a LaTeX environment."""
    return (
        lambda translator, node: translator.body.append(f"\n\\begin{{{name}}}\n"),
        lambda translator, node: translator.body.append(f"\n\\end{{{name}}}\n"),
    )


def _visit_heading(translator, node) -> None:
    translator.body.append("\n\\section{")  # its level is wrong: sphinx-jupyterbook-latex counts it up


def _leave_heading(translator, node) -> None:
    translator.body.append("}\n")


def _configure(app, config) -> None:
    """Replace what sphinx-jupyterbook-latex has set: its class needs fonts that Debian has in a package of 400 MB."""
    config.latex_theme = "manual"
    config.latex_engine = "xelatex"
    config.latex_use_xindy = False
    config.latex_show_urls = "footnote"
    config.latex_domain_indices = False
    config.today = f"Version {metadata.version('residual-gd')}"
    config.latex_elements = {
        "papersize": "a4paper",
        "pointsize": "11pt",
        "extraclassoptions": "openany,oneside",
        "fontpkg": "",
        "fncychap": "",
        "fvset": r"\fvset{fontsize=\footnotesize}",
        "geometry": r"\usepackage[a4paper,hmargin=2.5cm,top=2.6cm,bottom=2.8cm]{geometry}",
        "preamble": Path(__file__).with_name("book_print.tex").read_text(encoding="utf-8") + _macros(config),
        "releasename": "",
        "makeindex": "",
        "printindex": "",
    }
    _register(app)


def _macros(config) -> str:
    """The pages' MathJax macros for LaTeX."""
    macros = (config.mathjax3_config or {}).get("tex", {}).get("macros", {})
    lines = []
    for name, meaning in macros.items():
        meaning, count = meaning if isinstance(meaning, list) else (meaning, 0)
        lines.append(rf"\providecommand{{\{name}}}{{}}\renewcommand{{\{name}}}[{count}]{{{meaning}}}")
    return "\n".join(lines)


def _number_as_the_pages(app) -> None:
    if app.builder.format == "latex":
        # sphinx-jupyterbook-latex counts statements by section where the book has parts.
        app.config.numfig_secnum_depth = 1


def _width(entry) -> float:
    """About how many letters wide a cell's longest paragraph is; a formula's source is longer than the formula."""
    length = {nodes.math: 0.4}
    texts = ((len(text) * length.get(type(text.parent), 1)) for text in entry.findall(nodes.Text))
    return sum(texts, 1.0)


def _fit_table(table) -> None:
    """Let a long table break between pages, with columns as wide as what they hold."""
    rows = [[_width(entry) for entry in row] for row in table.findall(nodes.row)]
    if sum(map(sum, rows)) < LONG_TABLE:
        return
    widths = [min(max(column), 50) ** 0.75 for column in zip(*rows, strict=True)]
    for specification, width in zip(table.findall(nodes.colspec), widths, strict=True):
        specification["colwidth"] = round(width)
    table["classes"] = [*(set(table["classes"]) - {"colwidths-auto"}), "colwidths-given", "longtable"]


def _prepare(app, doctree, docname) -> None:
    """The whole book in one tree, references resolved."""
    if app.builder.format == "latex":
        _number_chapters(app.env, doctree)
        _word_references(app.env, doctree)
        for proof in doctree.findall(proof_node):
            _open_proof(proof)
        for block in list(doctree.findall(nodes.literal_block)):
            if UNSHOWN.fullmatch(block.astext().strip()):  # an animation, a video, a widget
                block.parent.remove(block)
            elif block.astext().startswith(EXPLORER):
                text = f"On the book’s pages this picture moves. {block.astext().removeprefix(EXPLORER).rstrip(']')}"
                block.replace_self(nodes.paragraph("", "", nodes.inline("", text, classes=["explorer"])))
        for image in doctree.findall(nodes.image):
            image["align"] = "center"
        for table in doctree.findall(nodes.table):
            _fit_table(table)
        for section in doctree.findall(nodes.section):
            if isinstance(section[0], nodes.title) and section.astext().strip() == section[0].astext():
                # sphinx-jupyterbook-latex has moved the bibliography
                section += nodes.paragraph(text="The list is at the end of the book.")


def _number_chapters(env, doctree) -> None:
    """Chapters that have no number on the pages have none in print."""
    for file in doctree.findall(addnodes.start_of_file):
        name = file["docname"]
        part = name not in env.found_docs
        numbered = part or bool(env.toc_secnumbers.get(name, {}).get(""))
        file.insert(0, nodes.raw("", rf"\book{'' if numbered else 'un'}numbered", format="latex"))
    introduction = next(iter(doctree.findall(nodes.section)))
    introduction.insert(1, nodes.raw("", "\\bookunnumbered\\chapter{Introduction}", format="latex"))


def _word_references(env, doctree) -> None:
    """References to chapters say "Chapter 3", and those to exercises and statements have the pages' numbers."""
    chapters = set()
    for file in doctree.findall(addnodes.start_of_file):
        section = next(iter(file.findall(nodes.section)), None)
        if section is not None:
            chapters |= {f"%{file['docname']}#{anchor}" for anchor in section["ids"]}
    for reference in list(doctree.findall(addnodes.number_reference)):
        address = reference.get("refuri", "")
        name, _, anchor = address.removeprefix("%").partition("#")
        figures = env.toc_fignumbers.get(name, {})
        kinds = [kind for kind in figures if kind not in ("figure", "table", "code-block") and anchor in figures[kind]]
        if address in chapters:
            reference["title"] = reference["title"].replace("Section", "Chapter")
        elif kinds:
            text = reference["title"].replace("%s", ".".join(map(str, figures[kinds[0]][anchor])))
            reference.replace_self(nodes.reference("", text, refuri=address, internal=True))


def _open_proof(proof) -> None:
    """Take the proof out of sphinx-proof's box."""
    if isinstance(proof[0], nodes.admonition):
        proof.children = proof[0].children
    first = next(iter(proof.findall(nodes.Text)), None)
    if first is not None and first.startswith("Proof. "):
        first.parent.replace(first, [nodes.emphasis("", "Proof."), nodes.Text(first.removeprefix("Proof."))])


def _register(app) -> None:
    """Take over the LaTeX of these nodes from the extensions that define them, whatever the order of loading."""
    for kind in {*NODE_TYPES.values(), unenumerable_node}:
        app.add_node(kind, override=True, latex=(_visit_statement, _end))
    for kind in (exercise_node, exercise_enumerable_node):
        app.add_node(kind, override=True, latex=(_visit_exercise, _end))
    app.add_node(solution_node, override=True, latex=(_visit_solution, _end))
    app.add_node(proof_node, override=True, latex=_environment("bookproof"))
    app.add_node(RootHeader, override=True, latex=(_visit_heading, _leave_heading))
    app.add_node(CellInput, override=True, latex=_environment("bookinput"))
    app.add_node(CellOutput, override=True, latex=_environment("bookoutput"))


def setup(app):
    app.connect("config-inited", _configure, priority=900)
    app.connect("builder-inited", _number_as_the_pages, priority=900)
    app.connect("doctree-resolved", _prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
