"""Put a submission's locked cells back as the master has them, and keep everything that is the student's.

The rules, which are nbgrader's where it has one:

- A cell that stands several times counts once: the last copy is the graded one, the others stay as plain cells.
- A locked cell that was edited, deleted or turned into text is put back. A deleted answer is not: what the student
  wrote elsewhere under the same name would be undone by the stub. A deleted free-text answer comes back empty.
- Cells out of order are put back in order; cells that the student added go with the cell above them.
- Metadata and the kernel are those of the master. A cell that lost its metadata is known by its id or by its text.
"""

from __future__ import annotations

from copy import deepcopy

import nbformat
from nbgrader import utils

from .versions import KERNEL, grade_id


def restore(submission: nbformat.NotebookNode, master: nbformat.NotebookNode, released: nbformat.NotebookNode):
    """The submission with the master's locked cells, and notes of what was changed for that.

    Parameters
    ----------
    submission, master, released : NotebookNode
        None of them is changed.

    Returns
    -------
    notebook : NotebookNode
    notes : list of str
    """
    originals = {grade_id(cell): cell for cell in master.cells if grade_id(cell)}
    handed_out = {grade_id(cell): cell.source for cell in released.cells if grade_id(cell)}
    notes: list[str] = []
    cells = [_plain(cell) for cell in submission.cells]
    names = _recognise(cells, originals, handed_out, notes)
    cells, names = _in_order(cells, names, list(originals), notes)
    cells = [
        _corrected(c, originals[n], handed_out[n], n, notes) if n else c for c, n in zip(cells, names, strict=True)
    ]
    _add_missing(cells, names, originals, notes)

    kernel = (submission.metadata.get("kernelspec") or {}).get("name")
    if kernel != KERNEL["name"]:
        notes.append(f"the kernel was {kernel!r}: executed with {KERNEL['name']}")
    _distinct_ids(cells)
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=deepcopy(master.metadata))
    notebook.metadata["kernelspec"] = dict(KERNEL)
    return notebook, notes


def _plain(cell):
    """A copy with what a valid cell needs, and without outputs."""
    kind = cell.get("cell_type") if cell.get("cell_type") in ("code", "markdown", "raw") else "raw"
    source = cell.get("source", "")
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    new = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }
    copy = new[kind](source)
    copy.id = str(cell.get("id", copy.id))
    if isinstance(cell.get("metadata"), dict):
        copy.metadata = deepcopy(cell["metadata"])
    if kind == "markdown" and isinstance(cell.get("attachments"), dict):
        copy.attachments = deepcopy(cell["attachments"])
    return copy


def _recognise(cells, originals, handed_out, notes):
    """For each cell the name of the original it is a version of, or None; every name at most once."""
    names: list[str | None] = [None] * len(cells)
    for i in range(len(cells) - 1, -1, -1):  # the last copy counts, as in nbgrader
        name = grade_id(cells[i])
        if name in originals and name in names:
            notes.append(f"the cell {name} stands several times: the last one counts")
        elif name in originals:
            names[i] = name
    by_id = {originals[name].get("id"): name for name in originals if name not in names}
    by_text = {handed_out[name]: name for name in originals if name not in names and utils.is_locked(originals[name])}
    for i, cell in enumerate(cells):
        if names[i] is None:
            found = by_id.get(cell.id) or by_text.get(cell.source)
            if found and found not in names:
                names[i] = found
                notes.append(f"the cell {found} had lost its metadata: recognised")
        if names[i] is None:
            cell.metadata.pop("nbgrader", None)
    return names


def _in_order(cells, names, order, notes):
    """Cells and names with the known cells in the given order; each unknown cell follows the one it followed."""
    found = [name for name in names if name]
    if found == sorted(found, key=order.index):
        return cells, names
    notes.append("cells stood in another order: put back in order")
    groups: list[tuple[int, list]] = [(-1, [])]
    for cell, name in zip(cells, names, strict=True):
        if name:
            groups.append((order.index(name), []))
        groups[-1][1].append((cell, name))
    pairs = [pair for _, group in sorted(groups, key=lambda g: g[0]) for pair in group]
    return [cell for cell, _ in pairs], [name for _, name in pairs]


def _corrected(cell, original, handed_out, name, notes):
    right = deepcopy(original)
    if utils.is_locked(original):
        if cell.source not in (handed_out, original.source) or cell.cell_type != original.cell_type:
            notes.append(f"the locked cell {name} was changed: put back")
    else:
        right.source = cell.source
        if "attachments" in cell and right.cell_type == "markdown":
            right.attachments = cell.attachments
    right.id = cell.id
    return right


def _add_missing(cells, names, originals, notes):
    """Insert, in place, the originals that are lacking: each after the cell it follows in the master."""
    before = None
    for name, original in originals.items():
        if name not in names:
            if utils.is_solution(original) and not utils.is_grade(original):
                notes.append(f"the answer cell {name} is missing")
                continue
            notes.append(f"the cell {name} was missing: put back")
            # After the previous known cell and what the student added below it.
            place = names.index(before) + 1 if before else 0
            while place < len(names) and names[place] is None and before:
                place += 1
            cells.insert(place, deepcopy(original))
            names.insert(place, name)
        before = name


def _distinct_ids(cells):
    seen = set()
    for i, cell in enumerate(cells):
        if cell.id in seen or not 1 <= len(cell.id) <= 64 or not all(c.isalnum() or c in "-_" for c in cell.id):
            cell.id = f"cell-{i}-{len(seen)}"
        seen.add(cell.id)
