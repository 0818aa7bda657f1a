"""Write the sample submissions of ``assignments/samples``: invented students who did what students do.

``python -m course.samples`` (with ``PYTHONPATH=tools``) makes them anew after a set has changed; then look at what
`make grade` gives them, and keep it as ``expected.csv``.
"""

from __future__ import annotations

import shutil
import sys
from copy import deepcopy
from pathlib import Path

import nbformat
from nbgrader import utils

from . import versions

FREE_TEXT = (
    "One pair of runs shows what happened once. To blame one cause I would change that cause alone, and repeat it."
)


def solutions(source) -> dict[str, str]:
    """The source's answers as a student would have written them: without the marks; free texts are short ones."""
    found = {}
    for cell in source.cells:
        if utils.is_solution(cell):
            lines = [
                line for line in cell.source.split("\n") if "BEGIN SOLUTION" not in line and "END SOLUTION" not in line
            ]
            text = "\n".join(lines)
            found[versions.grade_id(cell)] = text if cell.cell_type == "code" else FREE_TEXT
    return found


def place(notebook, name) -> int:
    """Where the cell with this grade_id stands."""
    return next(i for i, cell in enumerate(notebook.cells) if versions.grade_id(cell) == name)


def replaced(answers, name, old, new):
    """The answers with one thing in one of them changed; ValueError if it does not stand there."""
    if old not in answers[name]:
        raise ValueError(f"{name}: expected {old!r} in the solution, which has changed")
    return answers | {name: answers[name].replace(old, new)}


def ben_1(answers):
    """A sign, a factor, and no free text."""
    answers = replaced(answers, "q4a", "(S_bar - ", "(S_bar + ")
    answers = replaced(answers, "q5a", "/ (2 * t)", "/ t")
    return {name: text for name, text in answers.items() if name != "q6"}


def ben_2(answers):
    """The Kronecker product in the wrong order, and a question left out."""
    answers = replaced(answers, "q1b", "np.kron(B.T, A)", "np.kron(A, B.T)")
    return {name: text for name, text in answers.items() if name not in ("q5c", "q6")}


def dina_3(answers):
    """A loop that never ends, in a function that a test calls."""
    loop = "def least_radii(needed, blocks):\n    import time\n    while True:\n        time.sleep(0.1)"
    return answers | {"q3a": loop}


def fred_2(notebook):
    """Cells deleted, doubled and moved, and another kernel."""
    del notebook.cells[place(notebook, "imports")]
    del notebook.cells[place(notebook, "q1a-test")]
    attempt = deepcopy(notebook.cells[place(notebook, "q2a")])
    attempt.id, attempt.source = "first-attempt", "def J_1(net, theta, X):\n    return theta['W_1']  # does not work"
    notebook.cells.insert(place(notebook, "q2a"), attempt)
    last = place(notebook, "q5-text")
    notebook.cells = notebook.cells[:4] + notebook.cells[last:] + notebook.cells[4:last]
    notebook.metadata["kernelspec"] = {"display_name": "My environment", "language": "python", "name": "my-env"}


def same(value):
    """No change."""
    return value


# student, set, what becomes of the answers, what becomes of the notebook, its file name (None: the set's)
SAMPLES = (
    *(("ada", f"ps{k}", same, same, None) for k in range(1, 6)),
    ("ben", "ps1", ben_1, same, None),
    ("ben", "ps2", ben_2, same, None),
    ("cora", "ps1", lambda answers: {}, same, None),
    ("dina", "ps3", dina_3, same, None),
    ("emil", "ps4", same, same, "homework-4-final.ipynb"),
    ("fred", "ps2", same, fred_2, None),
)


def write(folder: Path, course: Path = versions.COURSE) -> None:
    """Write all samples below the folder; what stood there of these students is replaced."""
    config = versions.settings(course)
    for student in {sample[0] for sample in SAMPLES}:
        shutil.rmtree(folder / student, ignore_errors=True)
    for student, name, change, edit, file in SAMPLES:
        source = versions.read_source(course / "source" / name / f"{name}.ipynb")
        answers = change(solutions(source)) | {"student": f'STUDENT_ID = "{student}"'}
        notebook = versions.released(source, config)
        for cell in notebook.cells:
            cell.source = answers.get(versions.grade_id(cell), cell.source)
        edit(notebook)
        path = folder / student / name / (file or f"{name}.ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else versions.COURSE / "samples")
