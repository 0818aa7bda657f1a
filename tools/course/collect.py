"""Find the submissions in a folder, whoever made it: nbgrader, a person, or the download of a learning system.

Understood are, also mixed and inside of zips:

    ann/ps1/ps1.ipynb            nbgrader's own layout; ps1/ann/... and ann/ps1.ipynb too
    ann_ps1.zip                  what a student zipped
    Jane Doe_123_assignsubmission_file_/ps1.ipynb       Moodle
    doejane_LATE_4711_815_ps1-2.ipynb                   Canvas

Which set a notebook is, is read from its locked cells, so that it may have any name. Who handed it in is the folder or
file name (`people.py`).
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import nbformat

from . import versions
from .people import people, student_of

UNPACKED = 300_000_000  # bytes of all zips together
ENTRIES = 20_000
LARGEST = 30_000_000  # bytes of a notebook
MOODLE = re.compile(r"^(?P<who>.+?)_\d+_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)$")
CANVAS = re.compile(r"^(?P<who>[^_]+)(?:_LATE)?_\d+_\d+_(?P<file>.+)$")
SKIPPED = ("__MACOSX", ".ipynb_checkpoints", ".DS_Store", ".git")


@dataclass
class Submission:
    """One set of one student: the notebook, the files beside it, and what there is to tell."""

    student: str
    name: str
    path: str
    data: bytes
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Broken:
    """Something that cannot be graded, and why."""

    student: str
    name: str
    path: str
    why: str


class Sets:
    """What is known of the course's sets: how to tell from a notebook which one it is."""

    def __init__(self, course: Path, names):
        config = versions.settings(course)
        self.names = tuple(names)
        self.texts = {}
        for name in names:
            source = versions.read_source(course / "source" / name / f"{name}.ipynb")
            cells = [c for c in versions.released(source, config).cells if c.metadata.get("nbgrader", {}).get("locked")]
            self.texts[name] = {cell.source.strip() for cell in cells}
        # A cell that several sets share says nothing.
        shared = [t for n, ts in self.texts.items() for t in ts if any(t in o for m, o in self.texts.items() if m != n)]
        self.own = {name: texts - set(shared) or texts for name, texts in self.texts.items()}

    def which(self, notebook) -> str | None:
        """The set that the notebook is, or None: at least a tenth of the set's own locked cells stand in it."""
        cells = {str(cell.source).strip() for cell in notebook.cells}
        share = {name: len(cells & own) / len(own) for name, own in self.own.items()}
        best = max(share, key=share.get, default=None)
        return best if best and share[best] >= 0.1 else None

    def named(self, text: str) -> str | None:
        """The set that a file or folder name names, or None."""
        found = [n for n in self.names if re.search(rf"(?<![a-z0-9]){re.escape(n)}(?![a-z0-9])", text.lower())]
        return found[0] if len(found) == 1 else None


def entries(folder: Path):
    """Every file below the folder, zips opened: pairs of a path (as in the zip's place a folder) and its bytes.

    A zip that cannot be opened is given with the exception in place of bytes.
    """
    budget = [UNPACKED, ENTRIES]
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
        relative = PurePosixPath(path.relative_to(folder).as_posix())
        # A list of students or the like that lies beside the submissions is none.
        beside = len(relative.parts) == 1 and path.suffix.lower() not in (".ipynb", ".zip")
        beside = beside and not (MOODLE.match(path.name) or CANVAS.match(path.stem))
        if not beside and not any(part in SKIPPED or part.startswith(".") for part in relative.parts):
            yield from _opened(relative, path.read_bytes, path.stat().st_size, budget, 2)


def _opened(path, read, size, budget, depth):
    if path.suffix.lower() != ".zip" or depth == 0:
        yield path, (read() if size <= LARGEST else ValueError(f"larger than {LARGEST // 10**6} MB"))
        return
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            budget[0] -= sum(info.file_size for info in infos)
            budget[1] -= len(infos)
            if min(budget) < 0:
                raise ValueError("the zips are larger than all submissions may be together")
            for info in infos:
                inner = PurePosixPath(info.filename.replace("\\", "/"))
                parts = [part for part in inner.parts if part not in ("/", "..", ".")]
                if parts and not any(part in SKIPPED or part.startswith(".") for part in parts):
                    place = path.with_suffix("").joinpath(*parts)
                    yield from _opened(place, lambda i=info: archive.read(i), info.file_size, budget, depth - 1)
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError, NotImplementedError) as problem:
        yield path, ValueError(f"the zip cannot be opened ({problem})")


def collect(folder: Path, course: Path, names) -> tuple[list[Submission], list[Broken]]:
    """All submissions below a folder, and what is broken.

    Parameters
    ----------
    folder : Path
        Where the submissions lie, in one of the layouts above.
    course : Path
        The course's root: its sets and its ``students.csv``.
    names : sequence of str
        The sets that count.
    """
    sets, known = Sets(course, names), people(course / "students.csv")
    groups: dict[tuple[str, str], list] = {}
    for path, data in entries(folder):
        groups.setdefault(_owner(path, sets), []).append((path, data))
    for place in sorted(p for p in folder.glob("*/*") if p.is_dir() and not any(p.rglob("*"))):
        path = PurePosixPath(place.relative_to(folder).as_posix())
        groups.setdefault(_owner(path / "x", sets), [])
    good: list[Submission] = []
    broken: list[Broken] = []
    for (label, name), files in sorted(groups.items()):
        for found in _of_group(label, name, files, sets, known):
            (good if isinstance(found, Submission) else broken).append(found)
    return _once(good, broken)


def _owner(path, sets):
    """Who (a label) and which set ("" if the path does not say) a file belongs to, by its path."""
    who, name, file = "", "", path.name
    for pattern in (MOODLE, CANVAS):
        for part in path.parts:
            match = pattern.match(PurePosixPath(part).stem if part == path.name else part)
            if match and not who:
                who, file = match["who"], match["file"] or file
    for part in path.parts[:-1]:
        if part in sets.names:
            name = name or part
        elif not who:
            named = sets.named(part)
            name = name or named or ""
            who = re.sub(rf"[_ -]*{named}[_ -]*", "", part, flags=re.IGNORECASE) if named else part
    if not who:
        stem = PurePosixPath(file).stem
        named = sets.named(stem)
        who = re.sub(rf"[_ -]*{named}[_ -]*", "", stem, flags=re.IGNORECASE) if named else stem
    return who, name or sets.named(file) or ""


def _of_group(label, name, files, sets, known):
    """The submissions, or what is broken, of the files that one person put in one place."""
    notebooks, others, faults = [], {}, []
    for path, data in files:
        if path.suffix.lower() != ".ipynb" and not isinstance(data, Exception):
            others[path.name] = data
            continue
        try:
            notebooks.append((path, data, parse(data)))
        except ValueError as problem:
            faults.append((path, problem))
    student = student_of(label, [notebook for *_, notebook in notebooks], known)
    if not notebooks and not faults:
        yield Broken(student[0], name, label, "there is no notebook in it")
    found: dict[str, list] = {}
    for path, data, notebook in notebooks:
        found.setdefault(sets.which(notebook) or "", []).append((path, data))
    for path, problem in faults:
        if name not in found:
            yield Broken(student[0], name, str(path), str(problem))
    for path, _ in found.pop("", []):
        yield Broken(student[0], name, str(path), "it is no notebook of this course's problem sets")
    for which, candidates in found.items():
        path, data = max(candidates, key=lambda c: (c[0].name == f"{which}.ipynb", str(c[0])))
        if name and which != name:
            yield Broken(student[0], name, str(path), f"it is the notebook of {which}, handed in as {name}")
            continue
        notes = list(student[1])
        if sets.named(path.stem) != which:
            notes.append(f"the notebook was named {path.name}")
        for other, _ in candidates:
            if other != path:
                notes.append(f"{other.name} is {which} too: not counted")
        yield Submission(student[0], which, str(path), data, others, notes)


def parse(data) -> nbformat.NotebookNode:
    """The notebook in the bytes; ValueError with a reason if there is none."""
    if isinstance(data, Exception):
        raise ValueError(str(data))
    try:
        text = data.decode("utf-8-sig")
        raw = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as problem:
        raise ValueError(f"the file is not JSON, so it is no notebook ({problem})") from None
    if not isinstance(raw, dict) or "nbformat" not in raw:
        raise ValueError("the file is JSON, but no notebook")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook = nbformat.reads(text, as_version=4)
        if not all(isinstance(cell.source, str) and isinstance(cell.metadata, dict) for cell in notebook.cells):
            raise TypeError("a cell has no text")
    except Exception as problem:
        raise ValueError(f"the notebook is damaged ({type(problem).__name__}: {str(problem)[:200]})") from None
    return notebook


def _once(good, broken):
    """Two submissions of the same set under one id: the first counts, the others are reported."""
    seen: dict[tuple[str, str], Submission] = {}
    for one in good:
        first = seen.setdefault((one.student, one.name), one)
        if first is not one:
            why = f"{one.name} of {one.student} was handed in already ({first.path}): not counted"
            broken.append(Broken(one.student, one.name, one.path, why))
            first.notes.append(f"a second one was handed in: {one.path}")
    return list(seen.values()), broken
