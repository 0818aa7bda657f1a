"""`make release`: the student version of every problem set, a zip of each, and the proof that nothing leaked.

nbgrader writes the notebooks and its gradebook. Then a check of our own reads every file that would be handed out: no
line of a solution, of a hidden test, of a mark scheme or of a model answer may stand in any of them.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import nbformat
from nbgrader import utils
from nbgrader.apps import NbGraderAPI

from . import versions

REGIONS = ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
SHORT = 6  # a line with fewer characters, blanks apart, gives nothing away: "else:", ")"
LONG = 20  # a longer one is also looked for inside of other lines


def sets(course: Path) -> list[str]:
    """Names of the problem sets of the course, in order."""
    return sorted(p.parent.name for p in (course / "source").glob("*/*.ipynb") if p.stem == p.parent.name)


def api(course: Path, config=None):
    """nbgrader's programming interface for this course, quiet."""
    config = config or versions.settings(course)
    # nbgrader calls the program alembic, which stands beside Python, by its bare name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])
    config.NbGraderAPI.log_level = "ERROR"
    return NbGraderAPI(config=config)


def reason(result: dict) -> str:
    """The line of nbgrader's log that says why something failed."""
    lines = (result.get("log") or result.get("error") or "no reason given").strip().splitlines()
    return next((line.strip() for line in reversed(lines) if "Error: " in line), lines[-1].strip())


def secrets_of(source: nbformat.NotebookNode) -> set[str]:
    """Lines of the source that students must not see, without blanks around them."""
    hidden, shown = set(), set()
    texts = []
    for cell in source.cells:
        lines, inside = cell.source.split("\n"), None
        # nbgrader clears an answer without marks of a solution as a whole.
        whole = utils.is_solution(cell) and "BEGIN SOLUTION" not in cell.source
        for line in lines:
            if any(f"BEGIN {region}" in line for region in REGIONS):
                inside = True
            elif any(f"END {region}" in line for region in REGIONS):
                inside = None
            else:
                (hidden if inside or whole else shown).add(line.strip())
                texts += [] if inside or whole else [line]
    public = "\n".join(texts)
    hidden = {line for line in hidden - shown if len(line.replace(" ", "")) >= SHORT}
    return {line for line in hidden if len(line) < LONG or line not in public}


def leaks(text: str, secrets: set[str]) -> list[str]:
    """Which secrets, or marks of them, stand in a text."""
    marks = [f"{edge} {region}" for region in REGIONS for edge in ("BEGIN", "END")]
    lines = {line.strip() for line in text.split("\n")}
    return [mark for mark in marks if mark in text] + sorted(
        s for s in secrets if s in lines or (len(s) >= LONG and s in text)
    )


def readable(data: bytes, name: str) -> str:
    """All text of a file: of a notebook every string in it, of others what they are."""
    text = data.decode("utf-8", errors="replace")
    if not name.endswith(".ipynb"):
        return text
    found = []

    def walk(value):
        if isinstance(value, dict):
            for key, one in value.items():
                found.append(key)
                walk(one)
        elif isinstance(value, list):
            found.append("".join(map(str, value)))
            for one in value:
                walk(one)
        elif isinstance(value, str):
            found.append(value)

    walk(json.loads(text))
    return "\n".join(found)


def check(course: Path, name: str) -> list[str]:
    """What is wrong with the released files of a set; empty if nothing is."""
    folder, source = course / "release" / name, course / "source" / name
    secrets = set()
    for path in source.glob("*.ipynb"):
        secrets |= secrets_of(versions.read_source(path))
    faults = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        found = leaks(readable(path.read_bytes(), path.name), secrets)
        faults += [f"{path.relative_to(course)} shows: {text}" for text in found]
        if path.suffix == ".ipynb":
            cells = nbformat.read(path, as_version=4).cells
            faults += [f"{path.relative_to(course)} has outputs" for cell in cells if cell.get("outputs")][:1]
    if not (folder / f"{name}.ipynb").exists():
        faults.append(f"release/{name}/{name}.ipynb is missing")
    return faults


def pack(course: Path, name: str) -> Path:
    """The zip to hand out: the released folder, every file with the same date, so that the same set is the same zip."""
    folder, path = course / "release" / name, course / "release" / f"{name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            about = zipfile.ZipInfo(f"{name}/{file.relative_to(folder)}", (1980, 1, 1, 0, 0, 0))
            about.external_attr, about.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(about, file.read_bytes())
    return path


def release(course: Path, name: str, interface=None) -> list[str]:
    """Write the student version of a set into ``release/``; what is wrong with it, empty if nothing is."""
    interface = interface or api(course)
    result = interface.generate_assignment(name, force=True, create=True)
    if not result["success"]:
        why = reason(result)
        if "submissions associated" in why:
            why += " (cells of a set can be added or removed only before it is graded: move gradebook.db away)"
        return [f"{name}: nbgrader refuses: {why}"]
    faults = check(course, name)
    if not faults:
        pack(course, name)
    return faults


def points(course: Path, name: str) -> float:
    """All points of a set."""
    notebook = versions.read_source(course / "source" / name / f"{name}.ipynb")
    return sum(versions.graded_cells(notebook).values())


def main(course: Path = versions.COURSE) -> int:
    """Release every set of the course."""
    interface, failed = api(course), False
    names = sets(course)
    if not names:
        print(f"There is no problem set in {course / 'source'}.", file=sys.stderr)
        return 1
    for name in names:
        faults = release(course, name, interface)
        failed |= bool(faults)
        if faults:
            print(f"{name}: not released\n  " + "\n  ".join(faults), file=sys.stderr)
        else:
            print(f"{name}: {points(course, name):g} points, release/{name}/ and release/{name}.zip")
    if not failed:
        print(f"The student versions are in {course / 'release'}; no solution or hidden test stands in them.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
