"""Execute the book's notebooks and store them in normal form: `python tools/notebooks.py [--check] [NOTEBOOK ...]`.

Default: every notebook in `chapters/`. Normal form: kernel `python3`, execution counts 1, 2, 3, ..., no times, no
images, no widgets, nothing from stderr, only metadata that the book uses, one way of writing the JSON. Executing twice
gives the same bytes. `--check` executes nothing: it says which notebooks are not in normal form.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import first_cell
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbconvert.filters import strip_ansi

ROOT = Path(__file__).resolve().parent.parent
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
CELL_METADATA = ("mystnb", "nbgrader", "tags")  # everything else is a trace of some editor
CELL_TIMEOUT = 900  # seconds
START_TIMEOUT = 120

FIGURE = re.compile(r"<Figure size [^>]*>")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+|<[\w.]+ object\b|\[?<matplotlib\.|^Text\(", re.MULTILINE)


class NotebookError(Exception):
    """A notebook failed or can't be brought into normal form; the message says where."""


def chapters(root: Path = ROOT) -> list[Path]:
    """The book's notebooks, in order."""
    return sorted((root / "chapters").glob("*.ipynb"))


def read(path: Path) -> nbformat.NotebookNode:
    """The notebook at `path`, in format 4.5."""
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises a different one for each kind of damage
        raise NotebookError(f"{path}: not a notebook ({error})") from None


def text_of(notebook: nbformat.NotebookNode) -> str:
    """The one way to write a notebook down."""
    return nbformat.writes(notebook, version=4, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _outputs(outputs: list) -> list:
    """Outputs in normal form: no images, widgets or stderr; neighbouring pieces of stdout joined."""
    kept: list = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += output.text
            else:
                kept.append(nbformat.v4.new_output("stream", name="stdout", text=output.text))
            continue
        if output.output_type not in ("display_data", "execute_result"):
            kept.append(output)
            continue
        data = {
            kind: FIGURE.sub("<Figure>", value) if kind == "text/plain" else value
            for kind, value in output.data.items()
            if not kind.startswith("image/") and kind != "application/vnd.jupyter.widget-view+json"
        }
        if data:
            count = {"execution_count": output.execution_count} if output.output_type == "execute_result" else {}
            kept.append(nbformat.v4.new_output(output.output_type, data=data, metadata={}, **count))
    return kept


def normalize(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook in normal form, as a new one; nothing is executed and no cell is counted that was not."""
    cells, used = [], set()
    for position, cell in enumerate(notebook.cells):
        metadata = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        name = cell.get("id", "")
        if not name or name in used:
            name = hashlib.sha256(f"{position}\n{cell.source}".encode()).hexdigest()[:8]
        used.add(name)
        new = {"cell_type": cell.cell_type, "id": name, "metadata": metadata, "source": cell.source.rstrip()}
        if cell.cell_type == "code":
            new |= {"execution_count": cell.execution_count, "outputs": _outputs(cell.outputs)}
        if cell.get("attachments"):
            new["attachments"] = cell.attachments
        cells.append(nbformat.from_dict(new))
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """What keeps the notebook from being published, beside its form; empty if nothing."""
    found = first_cell.faults(notebook)
    count = 0
    for position, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        count += 1
        here = f"cell {position}"
        if not cell.source.strip():
            found.append(f"{here} is empty")
        if cell.execution_count != count:
            found.append(f"{here} has execution count {cell.execution_count}, expected {count}")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"{here} stores an error: {output.ename}")
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            if ADDRESS.search(text):
                line = next(line for line in text.splitlines() if ADDRESS.search(line))
                found.append(f"{here} prints an object ({line.strip()[:60]}); use `_ =` or plt.show()")
            if "<Figure" in text and not cell.metadata.get("mystnb", {}).get("image", {}).get("alt"):
                found.append(
                    f'{here} draws a figure without alt text (metadata {{"mystnb": {{"image": {{"alt": ...}}}}}})'
                )
    return found


def run(notebook, path: Path, folder: Path | None = None, environment: dict | None = None) -> nbformat.NotebookNode:
    """Fill in the outputs of the notebook read from `path`; return it.

    It runs in a fresh kernel that starts in `folder` (default: the notebook's own) with the given environment (default:
    this process's). `NotebookError` for a cell that fails or writes to stderr.
    """
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        startup_timeout=START_TIMEOUT,
        kernel_name=KERNEL["name"],
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder or path.parent)}},
    )
    try:
        asyncio.run(client.async_execute(env=environment or dict(os.environ)))
    except (CellExecutionError, CellTimeoutError) as error:
        raise NotebookError(f"{path}: {strip_ansi(str(error))}") from None
    for position, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                raise NotebookError(f"{path}: cell {position} wrote to stderr:\n{output.text}")
    return notebook


def execute(path: Path) -> nbformat.NotebookNode:
    """Run the notebook in a fresh kernel, in its own folder; return it in normal form."""
    notebook = read(path)
    first_cell.install(notebook)
    return normalize(run(notebook, path))


def store(path: Path) -> tuple[bool, list[str]]:
    """Execute the notebook and write it if its bytes changed; return whether they did, and its faults."""
    notebook = execute(path)
    text = text_of(notebook)
    changed = path.read_text(encoding="utf-8") != text
    if changed:
        path.write_text(text, encoding="utf-8", newline="\n")
    return changed, faults(notebook)


def check(path: Path) -> list[str]:
    """Faults of the stored notebook, its form included; nothing is executed."""
    notebook = read(path)
    found = faults(notebook)
    if path.read_text(encoding="utf-8") != text_of(normalize(notebook)):
        found.append("not in normal form: run make notebooks")
    return found


def _run(path: Path, only_check: bool) -> bool:
    start = time.monotonic()
    try:
        changed, found = (False, check(path)) if only_check else store(path)
    except NotebookError as error:
        print(f"FAILED    {error}", file=sys.stderr, flush=True)
        return False
    for fault in found:
        print(f"FAULT     {path}: {fault}", file=sys.stderr, flush=True)
    if not only_check:
        print(f"{'changed  ' if changed else 'unchanged'} {path} ({time.monotonic() - start:.0f} s)", flush=True)
    return not found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="execute nothing, only look at the stored form")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks executed at the same time")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    os.environ["RESIDUAL_GD_PROGRESS"] = "0"
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in the build
    # Kernels start with this environment's Python, wherever the shell's path leads.
    os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    paths = options.notebooks or chapters()
    absent = [path for path in paths if not path.is_file()]
    if absent:
        parser.error(f"no such notebook: {', '.join(map(str, absent))}")
    print(f"== {'Checking' if options.check else 'Executing'} {len(paths)} notebook(s)", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda path: _run(path, options.check), paths))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
