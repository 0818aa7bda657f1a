"""Who handed a submission in.

The folder's or the file's name is the student's id. Where it is a name that a learning system made, ``students.csv`` in
the course folder (columns id, name, email, alias; only id is needed) says whose name or alias it is; without that, the
STUDENT_ID that the notebook names is taken, with a note to check it.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass
class Person:
    """A row of students.csv."""

    id: str
    name: str = ""
    email: str = ""
    alias: str = ""


def people(path: Path) -> dict[str, Person]:
    """The students of ``students.csv``, by id; empty without the file.

    Raises
    ------
    ValueError
        If the file has no column "id", or an id twice.
    """
    if not path.is_file():
        return {}
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    found: dict[str, Person] = {}
    for row in rows:
        values = {key.strip().lower(): (value or "").strip() for key, value in row.items() if key}
        if "id" not in values:
            raise ValueError(f"{path}: expected a column id, got {', '.join(values)}")
        if values["id"] in found:
            raise ValueError(f"{path}: expected every id once, got {values['id']} twice")
        if values["id"]:
            found[values["id"]] = Person(**{k: values.get(k, "") for k in ("id", "name", "email", "alias")})
    return found


def written_id(notebook) -> str | None:
    """The STUDENT_ID that a notebook names, or None."""
    found = None
    for cell in notebook.cells:
        match = (
            re.search(r"^STUDENT_ID\s*=\s*(.+)$", str(cell.source), re.MULTILINE) if cell.cell_type == "code" else None
        )
        if match:
            try:
                value = ast.literal_eval(match[1].split("#")[0].strip())
            except (ValueError, SyntaxError):
                continue
            found = value.strip() if isinstance(value, str) and ID.fullmatch(value.strip()) else found
    return None if found == "your-id" else found


def student_of(label, notebooks, known):
    """The id of whoever handed something in under this label, and notes."""
    written = next((w for w in map(written_id, notebooks) if w), None)
    for person in known.values():
        if label.casefold() in (person.id.casefold(), person.alias.casefold(), person.name.casefold()):
            return person.id, _differs(person.id, written)
    if (written and written in known) or (written and not ID.fullmatch(label)):
        note = [] if written == label else [f"handed in by {label!r}; the id {written} is the notebook's own: check it"]
        return written, note
    clean = label if ID.fullmatch(label) else re.sub(r"[^A-Za-z0-9._@-]+", "-", label).strip("-.") or "unknown"
    return clean, _differs(clean, written)


def _differs(student, written):
    return [f"STUDENT_ID in the notebook is {written!r}"] if written and written != student else []
