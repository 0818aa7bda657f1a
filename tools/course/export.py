"""What comes out of grading: ``grades.csv`` for a learning system, and ``notes.csv`` for the lecturer."""

from __future__ import annotations

import csv
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

GRADED, WAITS, MISSING = "graded", "graded, a free text waits", "not handed in"


def score(book: Gradebook, student: str, name: str):
    """Points, possible points and status of one submission in the gradebook; None if it is not there."""
    try:
        found = book.find_submission(name, student)
    except MissingEntry:
        return None
    return found.score, found.max_score, WAITS if found.needs_manual_grade else GRADED


def grades(course: Path, names, known, broken, possible) -> Path:
    """Write ``grades.csv``: a row a student; for each set points, possible points and status; then the sums.

    Parameters
    ----------
    course : Path
    names : sequence of str
        The sets, in order.
    known : dict of str to Person
        The rows of students.csv, perhaps none.
    broken : sequence of Broken
    possible : dict of str to float
        All points of each set.
    """
    path = course / "grades.csv"
    faults = {(one.student, one.name): one.why for one in broken}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "residual-gd") as book:
        graded = {submission.student.id for name in names for submission in _submissions(book, name)}
        rows = []
        for student in sorted(graded | set(known) | {one.student for one in broken}):
            person = known.get(student)
            row = [student, person.name if person else "", person.email if person else ""]
            total = 0.0
            for name in names:
                found = score(book, student, name)
                why = faults.get((student, name)) or faults.get((student, ""))
                if found and (student, name) not in faults:
                    total += found[0]
                    row += [f"{found[0]:g}", f"{possible[name]:g}", found[2]]
                else:
                    row += ["", f"{possible[name]:g}", f"not graded: {why}" if why else MISSING]
            rows.append([*row, f"{total:g}", f"{sum(possible[name] for name in names):g}"])
    columns = [column for name in names for column in (name, f"{name} possible", f"{name} status")]
    _write(path, ["Student ID", "Name", "Email", *columns, "Total", "Total possible"], rows)
    return path


def _submissions(book, name):
    try:
        return book.assignment_submissions(name)
    except MissingEntry:
        return []


def notes(course: Path, lines) -> Path:
    """Write ``notes.csv``: student, set, file, and what there is to know."""
    path = course / "notes.csv"
    _write(path, ["Student ID", "Set", "File", "Note"], sorted(lines))
    return path


def _write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *([_plain(value) for value in row] for row in rows)])


def _plain(value):
    # A text that a spreadsheet would run as a formula; ids and names come from students.
    return "'" + value if value[:1] in ("=", "+", "@", "\t") or (value[:1] == "-" and len(value) > 1) else value
