"""A problem set of three questions, for the tests of the course kit."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook


def about(name, *, grade=False, solution=False, points=None):
    """nbgrader's metadata of a cell."""
    mine = {"grade": grade, "grade_id": name, "locked": not solution, "schema_version": 3, "solution": solution}
    return {"nbgrader": mine | {"task": False} | ({"points": points} if grade else {})}


CHECK = "from residual_gd.course import fresh; check = fresh()\n"

CELLS = (
    ("markdown", "# A tiny set", about("title")),
    ("code", "from residual_gd.course import generator, student\nfrom residual_gd import matrices", about("imports")),
    ("code", 'STUDENT_ID = "your-id"', {"nbgrader": about("student", solution=False)["nbgrader"] | {"locked": False}}),
    ("code", 'ID = student(STUDENT_ID)\nnumbers = generator(ID, "tiny/q1").standard_normal(5)', about("numbers")),
    ("markdown", "**Question 1.** The sum of your numbers.", about("q1-text")),
    (
        "code",
        "### BEGIN SOLUTION\ntotal = numbers.sum()\n### END SOLUTION",
        about("q1", solution=True),
    ),
    (
        "code",
        CHECK + "check.matches('the sum', total, generator(ID, 'tiny/q1').standard_normal(5).sum())",
        about("q1-test", grade=True, points=3),
    ),
    (
        "code",
        CHECK + "assert isinstance(total, float)\n### BEGIN HIDDEN TESTS\n"
        "own = check.generator(check.student(STUDENT_ID), 'tiny/q1').standard_normal(5)\n"
        "check.matches('hidden', float(total), sum(own.tolist()))\n### END HIDDEN TESTS",
        about("q1-test-2", grade=True, points=2),
    ),
    (
        "code",
        "# Write double(x)\n### BEGIN SOLUTION\ndef double(x):\n    return x + x\n### END SOLUTION",
        about("q2", solution=True),
    ),
    (
        "code",
        CHECK + "check.matches('double(2)', double(2.0), 4.0)\n### BEGIN HIDDEN TESTS\n"
        "check.matches('double(-3)', double(-3.0), -6.0)\n"
        "v = matrices.vec([[1.0, 2.0]])\ncheck.matches('double(vec)', double(v), 2 * v)\n### END HIDDEN TESTS",
        about("q2-test", grade=True, points=5),
    ),
    (
        "markdown",
        "Why?\n\n=== BEGIN MARK SCHEME ===\nbecause sums are sums\n=== END MARK SCHEME ===",
        about("q3", grade=True, solution=True, points=4),
    ),
)


def tiny_set():
    """The source notebook: 10 points by tests, 4 by a person."""
    new = {"code": new_code_cell, "markdown": new_markdown_cell}
    cells = [new[kind](text, metadata=metadata, id=metadata["nbgrader"]["grade_id"]) for kind, text, metadata in CELLS]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
