"""Grade a problem set in the tests: as nbgrader would, but in a forked process instead of a kernel.

    result = graded("ps1", "ann", {"q1": "def forward(...): ..."})     # what is not answered keeps the stub
    result = graded("ps1", "ann", reference("ps1"))                    # the solutions: full points
    result = graded("ps1", "ann", reference("ps1"), edit=lambda notebook: notebook.cells.pop(5))

The student version is filled in, edited, brought back in shape as `make grade` does it (locked cells restored, of
duplicates the last one counts), and run cell by cell, an error in one not stopping the next. nbgrader's own rule gives
the points: a graded code cell counts if it ran without an exception and wrote nothing to stderr; warnings are off.
Before each graded cell, rebound names of the library, of NumPy and of builtins are restored, as in `make grade`.
"""

import ast
import contextlib
import importlib
import io
import json
import linecache
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import nbformat
from course import restore, versions
from course.guard import Guard
from nbgrader import utils

CELL_SECONDS = 60.0
SECONDS = 120.0
NOT_RUN = {"output_type": "error", "ename": "NotRun", "evalue": "the run ended before this cell", "traceback": []}


@dataclass
class Result:
    """What a submission got.

    points   grade_id -> points, for every graded code cell
    manual   grade_id -> 0.0 where a free-text answer is missing, None where it waits for a person
    messages grade_id -> "AssertionError: ..." of every cell with an id that raised or wrote to stderr
    notes    what was repaired: deleted cells put back and the like
    total, possible   sums over the graded code cells
    """

    points: dict
    possible_points: dict
    manual: dict
    messages: dict
    notes: list
    printed: dict = field(default_factory=dict)

    @property
    def total(self):
        return sum(self.points.values())

    @property
    def possible(self):
        return sum(self.possible_points.values())


def source_path(ps):
    """The source notebook of a set by its name, or the path that was handed in."""
    return ps if isinstance(ps, Path) else versions.COURSE / "source" / ps / f"{ps}.ipynb"


def _versions(ps):
    path = source_path(ps)
    return _versions_of(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _versions_of(path, changed):
    config = versions.settings()
    source = versions.read_source(path)
    return source, versions.released(source, config), versions.master(source, config)


def student_version(ps):
    """A copy of the notebook that students get."""
    return deepcopy(_versions(ps)[1])


def reference(ps):
    """The source's answers: grade_id -> text of the cell, for every cell that a student may write in but the id's."""
    cells = [cell for cell in _versions(ps)[0].cells if utils.is_solution(cell)]
    return {cell.metadata.nbgrader["grade_id"]: cell.source for cell in cells}


def graded(ps, student_id, answers=None, *, edit=None, cell_seconds=CELL_SECONDS):
    """Hand in the answers as ``student_id`` and grade them.

    Parameters
    ----------
    ps : str or Path
        "ps1", or the path of a source notebook.
    student_id : str
        The id under which it is handed in; it is also written into the cell "student", unless ``answers`` has that.
    answers : dict of str to str
        grade_id -> source. An unknown id is an error.
    edit : callable
        Changes the filled-in notebook in place, or returns another one.
    cell_seconds : float
        A cell that runs longer is interrupted.

    Returns
    -------
    Result
    """
    _, released, master = _versions(ps)
    notebook = deepcopy(released)
    left = {"student": f"STUDENT_ID = {student_id!r}", **(answers or {})}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in left:
            cell.source = left.pop(name)
    left.pop("student", None)
    if left:
        raise ValueError(f"answers: expected grade_ids of {ps}, got {', '.join(left)}")
    if edit is not None:
        notebook = edit(notebook) or notebook
    notebook, notes = restore.restore(notebook, master, released)
    _run(notebook, student_id, cell_seconds)
    return _result(notebook, notes)


def _result(notebook, notes):
    points, possible, manual, messages, printed = {}, {}, {}, {}, {}
    for cell in notebook.cells:
        name = versions.grade_id(cell)
        if name and cell.cell_type == "code":
            printed[name] = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
            faults = [f"{o.ename}: {o.evalue}" for o in cell.outputs if o.output_type == "error"]
            faults += [o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr"]
            if faults:
                messages[name] = "\n".join(faults)
        if name and utils.is_grade(cell):
            got, most = utils.determine_grade(cell)
            if utils.is_solution(cell):
                manual[name] = got
            else:
                points[name], possible[name] = got, most
    return Result(points, possible, manual, messages, notes, printed)


def _preload(notebook):
    """Import, before the fork, what every run imports; the names of the library's modules that the notebook uses."""
    library = versions.imported_modules(notebook)
    for name in ("matplotlib.pyplot", "numpy", "torch", *library):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return library


def _run(notebook, student_id, cell_seconds):
    """Execute the code cells in a child process; the outputs are put into the notebook."""
    library = _preload(notebook)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _child(notebook, student_id, cell_seconds, library, writing)
        finally:
            os._exit(0)
    os.close(writing)
    reports = _reports(reading, child)
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            cell.outputs = [nbformat.from_dict(output) for output in reports.get(i, [NOT_RUN])]


def _reports(reading, child):
    """What the child wrote, cell by cell; the child is killed when its time is over."""
    end, text = time.monotonic() + SECONDS, b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
        part = os.read(reading, 1 << 16) if ready else b""
        if not part:
            break
        text += part
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return dict(json.loads(line) for line in text.splitlines() if line.endswith(b"]"))


def _child(notebook, student_id, cell_seconds, library, writing):
    os.environ |= {"RESIDUAL_GD_STUDENT": student_id, "NBGRADER_EXECUTION": "autograde"}
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    sys.modules["torch"].set_num_threads(1)
    guard = Guard(library)
    main = ModuleType("__main__")
    main.__dict__["display"] = print
    sys.modules["__main__"] = main
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for i, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                if utils.is_grade(cell):
                    guard.restore()
                line = json.dumps([i, _outputs(cell.source, f"<cell {i}>", main.__dict__, cell_seconds)])
                os.write(writing, line.encode() + b"\n")


def _too_long(*_):
    raise TimeoutError("the cell ran too long")


def _outputs(source, name, names, seconds):
    """The outputs of one cell, as a kernel would send them."""
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    outputs = []
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with contextlib.redirect_stdout(streams["stdout"]), contextlib.redirect_stderr(streams["stderr"]):
        try:
            tree = ast.parse(source, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), names)
            value = eval(compile(ast.Expression(last.value), name, "eval"), names) if last else None
            if value is not None:
                data = {"text/plain": repr(value)}
                outputs.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1})
        except BaseException as error:
            lines = traceback.format_exception(error)
            fault = {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}
            outputs.append({"output_type": "error", **fault})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    texts = [(key, stream.getvalue()[:100_000]) for key, stream in streams.items()]
    return [{"output_type": "stream", "name": key, "text": text} for key, text in texts if text] + outputs
