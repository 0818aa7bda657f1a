"""The harness of the problem sets' tests, on a set of three questions: it gives the points that nbgrader would give."""

import nbformat
import problem_sets
import pytest
from course import versions
from tiny_set import tiny_set


@pytest.fixture(scope="module")
def ps(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "tiny.ipynb"
    nbformat.write(tiny_set(), path)
    return path


def points(ps, *args, **keywords):
    return problem_sets.graded(ps, "ann", *args, **keywords).points


FULL = {"q1-test": 3.0, "q1-test-2": 2.0, "q2-test": 5.0}


def place(notebook, name):
    return next(i for i, cell in enumerate(notebook.cells) if versions.grade_id(cell) == name)


def test_reference_gets_all_and_nothing_gets_nothing(ps):
    result = problem_sets.graded(ps, "ann", problem_sets.reference(ps))
    assert result.points == FULL and result.total == result.possible == 10
    assert result.manual == {"q3": None} and result.messages == {} and result.notes == []
    result = problem_sets.graded(ps, "ann")
    assert result.total == 0 and result.manual == {"q3": 0} and result.notes == []
    assert result.messages["q1"] == "NotImplementedError: q1: your answer is missing here"
    assert result.messages["q1-test"].startswith("NameError")


def test_students_get_no_solution_hidden_test_or_mark_scheme(ps):
    text = nbformat.writes(problem_sets.student_version(ps))
    for word in ("SOLUTION", "HIDDEN", "MARK SCHEME", "a.sum()", "check.matches('hidden", "because sums are sums"):
        assert word not in text
        assert word in nbformat.writes(tiny_set()) or word == "a.sum()"


def test_wrong_answers_get_what_they_deserve(ps):
    right = problem_sets.reference(ps)
    result = problem_sets.graded(ps, "ann", right | {"q1": "total = -numbers.sum()"})
    assert result.points == FULL | {"q1-test": 0, "q1-test-2": 0}
    assert "the sign is reversed" in result.messages["q1-test"]
    # Bob's numbers, copied
    bob = problem_sets.graded(ps, "bob", right | {"q1": right["q1"] + "\nprint(repr(float(total)))"}).printed["q1"]
    assert points(ps, right | {"q1": f"total = {bob}"}) == FULL | {"q1-test": 0, "q1-test-2": 0}
    # Bob's id, to have his numbers
    assert points(ps, right | {"student": 'STUDENT_ID = "bob"'}) == FULL
    # the visible test only
    assert points(ps, right | {"q2": "def double(x):\n    return 4.0"}) == FULL | {"q2-test": 0}


@pytest.mark.parametrize(
    "trick",
    [
        "print('passed')",
        "import residual_gd.course as c\nc.matches = c.compare.matches = lambda *a, **k: None",
        "from residual_gd import course\ncourse.fresh = lambda: type('C', (), {'matches': print})",
        "import numpy as np\nnp.allclose = lambda *a, **k: True",
        "def matches(*a, **k): pass\ncheck = None",
        "import builtins\nbuiltins.abs = lambda x: 0",
        "import os\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "while True: pass",
        "def f(: 1",
        "from residual_gd import matrices\nmatrices.vec = lambda A: 0 * A",
    ],
)
def test_tricks_earn_nothing(ps, trick):
    answers = {"q1": trick + "\ntotal = 1.5", "q2": trick + "\ndef double(x): return x"}
    assert problem_sets.graded(ps, "ann", answers, cell_seconds=0.5).total == 0


def test_an_error_costs_only_its_own_cells(ps):
    right = problem_sets.reference(ps)
    assert points(ps, right | {"q1": "1 / 0"}) == FULL | {"q1-test": 0, "q1-test-2": 0}
    result = problem_sets.graded(ps, "ann", right | {"q2": "while True: pass"}, cell_seconds=0.5)
    assert result.points == FULL | {"q2-test": 0} and result.messages["q2"].startswith("TimeoutError")
    result = problem_sets.graded(ps, "ann", right | {"q2": "import os; os._exit(1)"})
    assert result.points == FULL | {"q2-test": 0} and result.messages["q2-test"].startswith("NotRun")


def test_warnings_cost_nothing_and_stderr_costs_the_cell(ps):
    right = problem_sets.reference(ps)
    loud = "import warnings\ndef double(x):\n    warnings.warn('careful', stacklevel=1)\n    return 2 * x"
    assert points(ps, right | {"q2": loud}) == FULL
    louder = "import sys\ndef double(x):\n    print('careful', file=sys.stderr)\n    return 2 * x"
    assert points(ps, right | {"q2": louder}) == FULL | {"q2-test": 0}


def test_deleted_edited_moved_and_doubled_cells(ps):
    right = problem_sets.reference(ps)

    def delete(notebook):
        del notebook.cells[place(notebook, "q1-test")]
        del notebook.cells[place(notebook, "imports")]
        del notebook.cells[place(notebook, "student")]

    def soften(notebook):
        for name in ("q1-test", "q2-test"):
            notebook.cells[place(notebook, name)].source = "assert True"

    def turn(notebook):
        notebook.cells.reverse()

    def double(notebook):
        notebook.cells.insert(0, notebook.cells[place(notebook, "q1-test")].copy())
        copy = nbformat.from_dict(notebook.cells[place(notebook, "q2")])
        copy.source = "raise ValueError('an attempt')"
        notebook.cells.insert(place(notebook, "q2"), copy)

    def other_kernel(notebook):
        notebook.metadata["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}

    def strip(notebook):
        for cell in notebook.cells:
            cell.metadata = nbformat.from_dict({})

    def promote(notebook):
        notebook.cells[place(notebook, "q2-test")].metadata.nbgrader.points = 500
        notebook.cells[place(notebook, "q1-test")].metadata.nbgrader.grade = False
        notebook.cells[place(notebook, "q1-test-2")].metadata.nbgrader = nbformat.from_dict({"grade_id": 7})

    def retype(notebook):
        for name in ("q1-test", "q2"):
            cell = notebook.cells[place(notebook, name)]
            cell.cell_type = "markdown"
            del cell["outputs"], cell["execution_count"]

    words = {
        delete: "q1-test was missing",
        soften: "q1-test was changed",
        turn: "put back in order",
        double: "q2 stands several times",
        other_kernel: "kernel was 'ir'",
        strip: "lost its metadata",
        promote: "",
        retype: "",
    }
    for edit, word in words.items():
        result = problem_sets.graded(ps, "ann", right, edit=edit)
        assert result.points == FULL, (edit.__name__, result.messages, result.notes)
        assert word in " / ".join(result.notes), edit.__name__
        assert problem_sets.graded(ps, "ann", {}, edit=edit).total == 0, edit.__name__


def test_unknown_answers_are_an_error(ps):
    with pytest.raises(ValueError, match="expected grade_ids"):
        problem_sets.graded(ps, "ann", {"q9": "1"})


def test_a_double_id_in_the_source_is_an_error(tmp_path):
    notebook = tiny_set()
    notebook.cells.append(notebook.cells[-1].copy())
    notebook.cells[-1].id = "other"
    nbformat.write(notebook, tmp_path / "x.ipynb")
    with pytest.raises(ValueError, match="got twice"):
        versions.read_source(tmp_path / "x.ipynb")
