"""The versions of a problem set: the source with solutions, what students get, and the master that grades.

The *released* version has a stub where the solution stood, no hidden test and no mark scheme. The *master* is the
released version with the hidden tests: what a submission should have in every cell that a student may not change.
Both are made by nbgrader's own preprocessors, so that they agree with its gradebook.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import nbformat
from nbgrader import utils
from nbgrader.preprocessors import (
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from traitlets.config.loader import PyFileConfigLoader

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "assignments"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class NamedStubs(ClearSolutions):
    """nbgrader's ClearSolutions, with ``{grade_id}`` in the stub replaced by the cell's id."""

    def preprocess_cell(self, cell, resources, cell_index):
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if utils.is_solution(cell):
            cell.source = cell.source.replace("{grade_id}", cell.metadata.nbgrader["grade_id"])
        return cell, resources


def settings(course: Path = COURSE):
    """The course's nbgrader_config.py as a traitlets Config."""
    return PyFileConfigLoader("nbgrader_config.py", path=str(course)).load_config()


def read_source(path: Path) -> nbformat.NotebookNode:
    """The notebook at ``path``; ValueError if a cell id or a grade_id stands twice."""
    notebook = nbformat.read(path, as_version=4)
    ids = [grade_id(cell) for cell in notebook.cells if grade_id(cell)]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: expected every grade_id once, got twice: {', '.join(twice)}")
    return notebook


def released(source: nbformat.NotebookNode, config) -> nbformat.NotebookNode:
    """The student version of a source notebook; the source is left as it is."""
    return _processed(source, config, [LockCells, NamedStubs, ClearOutput, ClearHiddenTests, ClearMarkScheme])


def master(source: nbformat.NotebookNode, config) -> nbformat.NotebookNode:
    """The student version with the hidden tests; the source is left as it is."""
    return _processed(source, config, [LockCells, NamedStubs, ClearOutput, ClearMarkScheme])


def _processed(source, config, preprocessors):
    notebook, resources = deepcopy(source), {}
    for preprocessor in [*preprocessors, ComputeChecksums]:
        notebook, resources = preprocessor(config=config).preprocess(notebook, resources)
    return notebook


def grade_id(cell) -> str | None:
    """The cell's grade_id, or None; whatever stands in its metadata."""
    about = cell.get("metadata", {}).get("nbgrader") or {}
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if name and isinstance(name, str) else None


def imported_modules(notebook: nbformat.NotebookNode) -> list[str]:
    """Dotted names of the library that the locked code cells import: modules, and perhaps names in them."""
    names = {"residual_gd.course"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and utils.is_locked(cell):
            with suppress(SyntaxError):
                for node in ast.walk(ast.parse(cell.source)):
                    if isinstance(node, ast.Import):
                        names |= {alias.name for alias in node.names}
                    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                        names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return sorted(name for name in names if name.split(".")[0] == "residual_gd")


def graded_cells(notebook: nbformat.NotebookNode) -> dict[str, float]:
    """Points of every graded cell, by grade_id, in the notebook's order."""
    cells = [cell for cell in notebook.cells if utils.is_grade(cell) or utils.is_task(cell)]
    return {cell.metadata.nbgrader["grade_id"]: float(cell.metadata.nbgrader["points"]) for cell in cells}
