"""The first cell of every chapter: on Colab it installs the book's library, elsewhere it does nothing.

Colab opens a notebook alone, without the repository. Each chapter therefore begins with one code cell, hidden on the
page by the tag `remove-cell`: the lines of `install_lines()`, then the chapter's imports, and nothing else.

There is no need to write it by hand: `make notebooks` (`tools/notebooks.py`) puts the standard lines in front of the
chapter's own import cell, if that is the first code cell and carries the tag `remove-cell`; into a notebook without
such a cell it puts a new one. To see the text: `python tools/first_cell.py`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import yaml

TAG = "remove-cell"
FIRST_LINE = "# On Colab, install the book's library; elsewhere, do nothing."
LAST_LINE_START = '    %pip install --quiet "residual-gd[widgets] @ git+'


def repository_url() -> str:
    """The repository's address, as written in `_config.yml`."""
    config = Path(__file__).resolve().parent.parent / "_config.yml"
    return yaml.safe_load(config.read_text(encoding="utf-8"))["repository"]["url"]


def install_lines(url: str | None = None) -> str:
    """The standard lines, with the repository's address `url` (default: that of `_config.yml`)."""
    return "\n".join(
        [
            FIRST_LINE,
            "import importlib.util",
            "import sys",
            "",
            'if "google.colab" in sys.modules and importlib.util.find_spec("residual_gd") is None:',
            f'{LAST_LINE_START}{url or repository_url()}"',
        ]
    )


def chapter_imports(source: str) -> str:
    """What a first cell's source has beside the standard lines."""
    lines = source.splitlines()
    if lines and lines[0] == FIRST_LINE:
        ends = [i for i, line in enumerate(lines) if line.startswith(LAST_LINE_START)]
        lines = lines[ends[0] + 1 :] if ends else lines
    return "\n".join(lines).strip()


def faults(notebook: nbformat.NotebookNode, url: str | None = None) -> list[str]:
    """What is wrong with the notebook's first code cell; empty if nothing."""
    cell = next((c for c in notebook.cells if c.cell_type == "code"), None)
    if cell is None:
        return []
    found = []
    if TAG not in cell.metadata.get("tags", []):
        found.append(f"the first code cell lacks the tag {TAG}")
    lines = install_lines(url)
    if not (cell.source == lines or cell.source.startswith(lines + "\n")):
        return [*found, "the first code cell does not begin with the standard lines of tools/first_cell.py"]
    try:
        rest = ast.parse(chapter_imports(cell.source)).body
    except SyntaxError:
        return [*found, "the first code cell has more than the standard lines and imports"]
    if not all(isinstance(node, ast.Import | ast.ImportFrom) for node in rest):
        found.append("the first code cell has more than the standard lines and imports")
    return found


def install(notebook: nbformat.NotebookNode, url: str | None = None) -> None:
    """Put the standard lines into the notebook, in place; no change where they are."""
    index, cell = next(((i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "code"), (None, None))
    if cell is None:
        return  # a page without code needs no library
    lines = install_lines(url)
    if TAG in cell.metadata.get("tags", []):
        imports = chapter_imports(cell.source)
        cell.source = lines + ("\n\n" + imports if imports else "")
    else:
        new = nbformat.v4.new_code_cell(lines, id="first-cell", metadata={"tags": [TAG]})
        # After the title, so that the page still opens with its heading.
        notebook.cells.insert(min(index, 1), new)


if __name__ == "__main__":
    print(install_lines())
