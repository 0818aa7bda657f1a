"""The steps of nbgrader's autograding that are ours: cells are restored by `restore.py`, and run in the sandbox.

`RestoreCells` stands for nbgrader's DeduplicateIds, OverwriteKernelspec and OverwriteCells, which stop at metadata that
was tampered with and put back no read-only cells. `SandboxExecute` stands for its Execute, which runs the code of a
submission with the rights of the grader. nbgrader keeps the gradebook, outside the sandbox.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path

import nbformat
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Dict, Unicode

from . import probe, sandbox, versions
from .restore import restore

ABOUT = "residual_gd_grading"  # the notebook's metadata in which notes go from step to step
NOT_RUN = sandbox.error_output("NotRun", "the run ended before this cell")
FILES = 200  # that a submission may bring along


class CourseMixin(NbGraderPreprocessor):
    """Knows the course folder and the set."""

    def course(self):
        """The course's root folder."""
        return Path(self.config.CourseDirectory.root)

    def versions_of(self, resources):
        """Master and released version of the notebook's set."""
        about = resources["nbgrader"]
        path = self.course() / "source" / about["assignment"] / f"{about['notebook']}.ipynb"
        source = versions.read_source(path)
        return versions.master(source, self.config), versions.released(source, self.config)


class RestoreCells(CourseMixin):
    """Locked cells as in the master; what was changed for that is noted in the notebook's metadata."""

    def preprocess(self, nb, resources):
        notebook, notes = restore(nb, *self.versions_of(resources))
        notebook.metadata[ABOUT] = {"notes": notes}
        for note in notes:
            self.log.warning("%s: %s", resources["nbgrader"]["student"], note)
        return notebook, resources


class SandboxExecute(CourseMixin):
    """Run the code cells in the sandbox and keep their outputs; sources and metadata stay those from outside."""

    kind = Unicode("", help='"bwrap" or "unshare"; empty: whichever works; "unsafe": none').tag(config=True)
    limits = Dict({}, help="changes to the limits, e.g. {'cell': 120}; see Limits in sandbox.py").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        folder = self.course() / "autograded" / about["student"] / about["assignment"]
        kind = self.kind or working_kind()
        run = run_once(nb, about["student"], folder, kind, sandbox.Limits(**self.limits))
        notes = nb.metadata.setdefault(ABOUT, {}).setdefault("notes", [])
        if run.ended:
            notes.append(f"the run was ended: {run.ended}")
        for i, cell in enumerate(nb.cells):
            if cell.cell_type == "code":
                cell.outputs = [nbformat.from_dict(output) for output in run.outputs.get(i, [NOT_RUN])]
                cell.execution_count = None
        notes += [note for cell in nb.cells for note in _limits_passed(cell)]
        if notes:
            text = "**Notes of the grader**\n\n" + "\n".join(f"- {note}" for note in notes)
            nb.cells.insert(0, nbformat.v4.new_markdown_cell(text, id="notes-of-the-grader"))
        return nb, resources


def _limits_passed(cell):
    name = versions.grade_id(cell) or "an added cell"
    outputs = cell.get("outputs", [])
    return [f"{name}: {o.evalue}" for o in outputs if o.output_type == "error" and o.ename in PASSED]


PASSED = ("LimitExceeded", "KernelLost")


@cache
def working_kind():
    """The kind of sandbox that works here; SandboxError if there is none and UNSAFE is not 1."""
    kind, reasons = probe.find()
    if kind is None and os.environ.get("UNSAFE") == "1":
        return "unsafe"
    if kind is None:
        told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise sandbox.SandboxError(
            f"no sandbox works here ({told}). Submissions are programs of strangers: install bubblewrap "
            "(Debian, Ubuntu: apt-get install bubblewrap), or run them with your own rights by UNSAFE=1."
        )
    return kind


_runs: dict[str, sandbox.Run] = {}


def run_once(notebook, student, folder, kind, limits):
    """Run the notebook's code cells, or return the run that was made of the same request before."""
    cells = [
        {"index": i, "source": cell.source, "graded": bool(utils.is_grade(cell))}
        for i, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
    ]
    files = attached(folder)
    request = [cells, student, kind, repr(limits), {name: hashlib.sha256(b).hexdigest() for name, b in files.items()}]
    key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    if key not in _runs:
        modules = versions.imported_modules(notebook)
        draws = any(word in cell["source"] for cell in cells for word in ("matplotlib", "figures"))
        fonts = probe.fonts() if draws else {}
        _runs[key] = sandbox.execute(
            kind, cells, student=student, limits=limits, modules=modules, files=files, fonts=fonts
        )
    return _runs[key]


def attached(folder):
    """The files of a submission beside its notebooks, up to a total size; relative name -> bytes."""
    found, size = {}, 0
    for path in sorted(folder.rglob("*"))[: 10 * FILES] if folder.is_dir() else []:
        if path.suffix == ".ipynb" or path.is_symlink() or not path.is_file() or len(found) >= FILES:
            continue
        size += path.stat().st_size
        if size > sandbox.ATTACHED:
            break
        found[str(path.relative_to(folder))] = path.read_bytes()
    return found
