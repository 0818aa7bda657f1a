"""`make grade`: collect, run in the sandbox, grade with nbgrader, write feedback and ``grades.csv``.

A submission that was graded and has not changed since is passed over, so that an interrupted run goes on where it was
and one that comes late costs its own time only. Nothing that a submission does stops the others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from tqdm import tqdm

from . import collect, export, people, preprocess, release, sandbox, versions
from .restore import restore

STATE = ".grading.json"
TOOLS = ("inside.py", "guard.py", "restore.py", "preprocess.py")  # a change of these grades everything anew


class Course:
    """One run of grading over a course folder."""

    def __init__(self, root: Path, submissions: Path):
        self.root, self.submissions = root, submissions
        self.names = release.sets(root)
        self.config = versions.settings(root)
        self.interface = release.api(root, self.config)
        self.limits = sandbox.Limits(**self.config.SandboxExecute.get("limits", {}))
        self.state = self._read_state()
        self.sources = {name: self._source(name) for name in self.names}
        self.tools = _digest(*((sandbox.HERE / name).read_bytes() for name in TOOLS))

    def _source(self, name):
        return (self.root / "source" / name / f"{name}.ipynb").read_bytes()

    def _read_state(self):
        path = self.root / STATE
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            return {}

    def remember(self, key, value):
        """Keep a value in the state file, which is replaced as a whole."""
        self.state[key] = value
        path = self.root / STATE
        path.with_suffix(".new").write_text(json.dumps(self.state, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(path.with_suffix(".new"), path)

    def prepare(self):
        """Release again each set whose source changed since, so that the gradebook has its points; faults as text."""
        faults = []
        for name in self.names:
            digest = _digest(self._source(name), self.tools.encode())
            released = (self.root / "release" / name).is_dir() and (self.root / "gradebook.db").is_file()
            if self.state.get(f"release {name}") != digest or not released:
                found = release.release(self.root, name, self.interface)
                faults += found
                if not found:
                    self.remember(f"release {name}", digest)
        return faults

    def digest(self, one):
        """What a submission's grade depends on."""
        files = [part for name, data in sorted(one.files.items()) for part in (name.encode(), data)]
        return _digest(self.sources[one.name], self.tools.encode(), repr(self.limits).encode(), one.data, *files)

    def is_graded(self, one):
        """Whether the very same submission was graded before."""
        done = self.root / "autograded" / one.student / one.name / f"{one.name}.ipynb"
        return done.is_file() and self.state.get(f"{one.student}/{one.name}") == self.digest(one)

    def store(self, one):
        """Put the submission where nbgrader looks for it, under its right name."""
        folder = self.root / "submitted" / one.student / one.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / f"{one.name}.ipynb").write_bytes(one.data)
        for name, data in one.files.items():
            (folder / name).write_bytes(data)

    def warm_up(self, one, kind):
        """Run the submission's cells; nbgrader's own step finds the result. For several at a time."""
        source = versions.read_source(self.root / "source" / one.name / f"{one.name}.ipynb")
        master, released = versions.master(source, self.config), versions.released(source, self.config)
        notebook, _ = restore(collect.parse(one.data), master, released)
        folder = self.root / "submitted" / one.student / one.name
        preprocess.run_once(notebook, one.student, folder, kind, self.limits)

    def grade(self, one):
        """Autograde with nbgrader; None, or why it failed."""
        result = self.interface.autograde(one.name, one.student, force=True, create=True)
        if not result["success"]:
            return "nbgrader failed: " + release.reason(result)
        self.remember(f"{one.student}/{one.name}", self.digest(one))
        return None

    def feedback(self, student, name):
        """Write the feedback page if grades or comments changed; None, or why it failed."""
        page = self.root / "feedback" / student / name / f"{name}.html"
        with Gradebook(self.interface.coursedir.db_url, self.interface.course_id) as book:
            found = book.find_submission_notebook(name, name, student)
            parts = [[g.name, g.score, g.needs_manual_grade] for g in found.grades]
            parts += [[c.name, c.comment] for c in found.comments]
        digest = _digest(json.dumps(sorted(parts, key=str)).encode(), self.state.get(f"{student}/{name}", "").encode())
        if page.is_file() and self.state.get(f"feedback {student}/{name}") == digest:
            return None
        result = self.interface.generate_feedback(name, student, force=True)
        if not result["success"]:
            return "no feedback: " + release.reason(result)
        self.remember(f"feedback {student}/{name}", digest)
        return None

    def notes(self, one):
        """What the steps noted in the graded notebook."""
        path = self.root / "autograded" / one.student / one.name / f"{one.name}.ipynb"
        if not path.is_file():
            return []
        return nbformat.read(path, as_version=4).metadata.get(preprocess.ABOUT, {}).get("notes", [])


def _digest(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def run(root: Path, submissions: Path, jobs: int = 1, out=print) -> tuple[list, list]:
    """Grade everything below ``submissions``; the submissions that are graded, and those that are broken.

    Raises
    ------
    SandboxError
        If no sandbox works and UNSAFE is not 1.
    ValueError
        If the course or students.csv is not as it should be.
    """
    # nbgrader uses the database library in ways that this one has since come to warn of.
    warnings.filterwarnings("ignore", message="Object of type", module="nbgrader")
    kind = preprocess.working_kind()
    if kind == "unsafe":
        out("UNSAFE=1: no sandbox works here. Submissions run with your rights, network and files included.")
    course = Course(root, submissions)
    faults = course.prepare()
    if faults:
        raise ValueError("a problem set is not as it should be:\n  " + "\n  ".join(faults))
    known = people.people(root / "students.csv")
    good, broken = collect.collect(submissions, root, course.names)
    todo = [one for one in good if not course.is_graded(one)]
    out(f"{len(good)} submissions ({len(todo)} to grade), {len(broken)} that cannot be graded. Sandbox: {kind}.")
    _grade_all(course, todo, kind, jobs, broken)
    failed = {(one.student, one.name) for one in broken}
    graded = [one for one in good if (one.student, one.name) not in failed]
    lines = [[one.student, one.name, one.path, one.why] for one in broken]
    for one in _bar(graded, "feedback"):
        problem = course.feedback(one.student, one.name)
        lines += [[one.student, one.name, one.path, note] for note in [*one.notes, *course.notes(one)]]
        lines += [[one.student, one.name, one.path, problem]] if problem else []
    possible = {name: release.points(root, name) for name in course.names}
    export.grades(root, course.names, known, broken, possible)
    export.notes(root, lines)
    return graded, broken


def _grade_all(course, todo, kind, jobs, broken):
    """Run the submissions, several at a time, and hand each to nbgrader as it is done."""
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        waiting = []
        for one in todo:
            course.store(one)
            waiting.append((one, pool.submit(course.warm_up, one, kind)))
        try:
            for one, running in _bar(waiting, "grading"):
                try:
                    running.result()
                    why = course.grade(one)
                except Exception as problem:
                    why = f"{type(problem).__name__}: {problem}"
                if why:
                    broken.append(collect.Broken(one.student, one.name, one.path, why))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            sandbox.end_all()
            raise


def _bar(items, what):
    return tqdm(items, desc=what, unit="set", disable=os.environ.get("RESIDUAL_GD_PROGRESS") == "0" or not items)


def main(arguments=None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make grade", description=__doc__.splitlines()[0])
    parser.add_argument("submissions", type=Path, nargs="?", default=versions.COURSE / "samples")
    parser.add_argument("--course", type=Path, default=versions.COURSE)
    parser.add_argument("--jobs", type=int, default=max(1, min(4, os.cpu_count() or 1)))
    given = parser.parse_args(arguments)
    if not given.submissions.is_dir():
        print(f"There is no folder {given.submissions}: name the one with the submissions.", file=sys.stderr)
        return 2
    try:
        graded, broken = run(given.course.resolve(), given.submissions.resolve(), given.jobs)
    except (sandbox.SandboxError, ValueError) as problem:
        print(f"Nothing was graded: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. What is graded is kept: the same command goes on.", file=sys.stderr)
        return 130
    for one in broken:
        print(f"NOT GRADED  {one.student} {one.name}  {one.path}: {one.why}")
    print(f"{len(graded)} graded, {len(broken)} not. In {given.course}: grades.csv, notes.csv, feedback/.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
