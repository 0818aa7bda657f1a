"""nbgrader's settings of the course; its root is the folder of this file.

`make release` and `make grade` read them, and so does nbgrader itself when it is started in this folder.
"""

from pathlib import Path

c = get_config()  # noqa: F821 - nbgrader runs this file and hands the name in

c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.course_id = "residual-gd"

# What stands in the student version where the solution was; {grade_id} is the cell's id.
c.ClearSolutions.code_stub = {
    "python": '# YOUR CODE HERE\nraise NotImplementedError("{grade_id}: your answer is missing here")'
}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"
# The mark scheme of a free-text question stands in the question's own cell, which is not always a task cell.
c.ClearMarkScheme.enforce_metadata = False
