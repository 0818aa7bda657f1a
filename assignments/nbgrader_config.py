"""nbgrader's settings of the course; its root is the folder of this file.

`make release` and `make grade` read them, and so does nbgrader itself when it is started in this folder, the formgrader
page among it: submissions are run in the sandbox there too.
"""

import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parent
sys.path.insert(0, str(COURSE.parent / "tools"))

from course import preprocess, versions  # noqa: E402
from nbconvert.preprocessors import ClearMetadataPreprocessor  # noqa: E402
from nbgrader import preprocessors as nbgraders  # noqa: E402

c = get_config()  # noqa: F821 - nbgrader runs this file and hands the name in

c.CourseDirectory.root = str(COURSE)
c.CourseDirectory.course_id = "residual-gd"

# What stands in the student version where the solution was; {grade_id} is the cell's id.
c.ClearSolutions.code_stub = {
    "python": '# YOUR CODE HERE\nraise NotImplementedError("{grade_id}: your answer is missing here")'
}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"
# The mark scheme of a free-text question stands in the question's own cell, which is not always a task cell.
c.ClearMarkScheme.enforce_metadata = False

c.GenerateAssignment.preprocessors = [
    nbgraders.LockCells,
    versions.NamedStubs,
    nbgraders.ClearOutput,
    nbgraders.CheckCellMetadata,
    nbgraders.ComputeChecksums,
    nbgraders.SaveCells,
    nbgraders.ClearHiddenTests,
    nbgraders.ClearMarkScheme,
    nbgraders.ComputeChecksums,
    nbgraders.CheckCellMetadata,
]
c.Autograde.sanitize_preprocessors = [nbgraders.ClearOutput, preprocess.RestoreCells, nbgraders.CheckCellMetadata]
c.Autograde.autograde_preprocessors = [
    preprocess.SandboxExecute,
    ClearMetadataPreprocessor,
    nbgraders.LimitOutput,
    nbgraders.SaveAutoGrades,
    nbgraders.AssignLatePenalties,
    nbgraders.CheckCellMetadata,
]
# For a set that needs more, e.g. {"cell": 120, "seconds": 1200}; all limits are in tools/course/sandbox.py.
c.SandboxExecute.limits = {}
# Feedback shows what a submission printed: no script of it.
c.HTMLExporter.sanitize_html = True
