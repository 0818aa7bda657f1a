"""Recorded runs: ``results/<name>.json`` holds every curve of a long run, and a manifest that says how it was made.

An ``Experiment`` is a name, a configuration, data files and independent pieces of work. Each piece saves its state
every so often, so that a killed run goes on where it was; the record is written at the end, whole or not at all.
The manifest's "seconds" are those of the pieces, one after the other, of all the processes that it took.
"""

import hashlib
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib

from ..validation import positive_int, require
from .checkpoints import Checkpoint, write_atomically

INSTALLED = Path(__file__).resolve().parents[1] / "results"  # the wheel's copy of the records
CHECKOUT = Path(__file__).resolve().parents[3] / "results"
RESULTS = INSTALLED if INSTALLED.is_dir() else CHECKOUT
PACKAGES = ("numpy", "scipy", "torch", "array-api-compat", "residual-gd")
MANIFEST = {
    "name": str,
    "command": str,
    "commit": str,
    "configuration": dict,
    "versions": dict,
    "device": str,
    "dtype": str,
    "threads": int,
    "start": str,
    "seconds": (int, float),
    "data": dict,
}  # the keys of a manifest and what stands there


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A long run to be recorded.

    name: of the record. configuration: everything that the curves depend on (JSON), with at least "seeds", "dtype"
    and "device". data: files that are read, by the name that the manifest gives them. pieces: independent pieces of
    work by name; a piece is a function of a ``Checkpoint`` that returns its curves (JSON: numbers, lists, dicts). It
    starts from ``checkpoint.load()`` where that is not None. packages: further ones whose versions the manifest gives.
    """

    name: str
    configuration: Mapping[str, Any]
    pieces: Mapping[str, Callable[[Checkpoint], dict]]
    data: Mapping[str, Path] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


def run(experiment, *, folder=RESULTS, jobs=1, command="", digits=5) -> Path:
    """Run ``experiment``, or go on with it, and write its record; returns the file.

    folder: of the records; checkpoints go to ``folder/.checkpoints/name/``. jobs: pieces at the same time, through
    joblib (its ``parallel_config`` sends them elsewhere, e.g. to a dask cluster). digits: significant digits kept.

    Raises FileNotFoundError for a missing data file, ValueError for a configuration without its required entries,
    CheckpointError for a checkpoint that is damaged or of another configuration.
    """
    for key in ("seeds", "dtype", "device"):
        require(
            key in experiment.configuration, "configuration", f'an entry "{key}"', ", ".join(experiment.configuration)
        )
    jobs = positive_int(jobs, "jobs")
    folder = Path(folder)
    identity = {"configuration": experiment.configuration, "data": sums(experiment.data)}
    space = folder / ".checkpoints" / experiment.name
    clock = Checkpoint(space / "clock", identity)
    start = clock.load() or datetime.now(UTC).isoformat(timespec="seconds")
    clock.save(start)
    work = [
        joblib.delayed(_piece)(name, piece, Checkpoint(space / name, identity | {"piece": name}))
        for name, piece in experiment.pieces.items()
    ]
    done = joblib.Parallel(n_jobs=jobs)(work)
    manifest = {
        "name": experiment.name,
        "command": command or f"python -m residual_gd.experiments.run {experiment.name}",
        "commit": commit(),
        "configuration": dict(experiment.configuration),
        "versions": versions((*PACKAGES, *experiment.packages)),
        "device": f"{experiment.configuration['device']} ({platform.machine()})",
        "dtype": experiment.configuration["dtype"],
        "threads": int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1),
        "start": start,
        "seconds": round(sum(seconds for _, _, seconds in done), 1),
        "data": identity["data"],
    }
    record = {"manifest": manifest, "curves": rounded({piece: curves for piece, curves, _ in done}, digits)}
    complete(record)
    path = folder / f"{experiment.name}.json"
    write_atomically(path, (json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n").encode())
    for name in ("clock", *experiment.pieces):
        Checkpoint(space / name, None).clear()
    return path


def _piece(name, piece, checkpoint):
    state = checkpoint.load()
    if isinstance(state, _Done):
        return name, state.curves, checkpoint.seconds
    curves = piece(checkpoint)
    checkpoint.save(_Done(curves))
    return name, curves, checkpoint.seconds


@dataclass(frozen=True)
class _Done:
    """What the checkpoint of a finished piece holds."""

    curves: dict


def load(name, folder=RESULTS) -> dict:
    """The record ``name``: {"manifest": ..., "curves": ...}. FileNotFoundError, or ValueError if it is incomplete."""
    path = Path(folder) / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in Path(folder).glob("*.json"))) or "none"
        raise FileNotFoundError(f"{path}: no such record (records there: {there})")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: expected a whole record, got broken JSON ({error})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected a text in UTF-8, got other bytes ({error})") from None
    complete(record, str(path))
    return record


def complete(record, where="record") -> None:
    """ValueError, with what is missing, unless ``record`` has a whole manifest and at least one curve."""
    require(isinstance(record, dict) and {"manifest", "curves"} <= set(record), where, "manifest and curves", "others")
    manifest, curves = record["manifest"], record["curves"]
    require(isinstance(manifest, dict), where, "a manifest with names", type(manifest).__name__)
    for key, kind in MANIFEST.items():
        require(key in manifest, where, f'"{key}" in the manifest', "none")
        require(
            isinstance(manifest[key], kind) and manifest[key] != "", where, f'"{key}" filled in', repr(manifest[key])
        )
    for package in PACKAGES:
        require(package in manifest["versions"], where, f"the version of {package}", "none")
    for file, found in manifest["data"].items():
        require(isinstance(found, str) and len(found) == 64, where, f"the sha256 of {file}", repr(found))
    require(isinstance(curves, dict) and len(curves) > 0, where, "at least one curve", "none")


def rounded(values, digits=5):
    """Numbers in nested lists and dicts with so many significant digits; infinite ones become "inf", NaN "nan"."""
    if isinstance(values, dict):
        return {str(key): rounded(value, digits) for key, value in values.items()}
    if isinstance(values, (list, tuple)) or hasattr(values, "tolist"):
        values = values.tolist() if hasattr(values, "tolist") else values
        return (
            rounded(values, digits) if not isinstance(values, (list, tuple)) else [rounded(v, digits) for v in values]
        )
    if isinstance(values, float):
        return float(f"{values:.{digits}g}") if math.isfinite(values) else str(values)
    return values


def sums(files) -> dict[str, str]:
    """sha256 of each file; FileNotFoundError names the first that is missing."""
    found = {}
    for name, path in files.items():
        if not Path(path).is_file():
            raise FileNotFoundError(f"{name}: expected a data file, found none at {path}")
        with open(path, "rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def versions(packages=PACKAGES) -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    return {"python": platform.python_version()} | {package: metadata.version(package) for package in packages}


def commit() -> str:
    """The commit of the library's source, with "+changes" if it differs from it; "unknown" outside a repository."""
    source = Path(__file__).resolve().parents[1]

    def git(*arguments):
        return subprocess.run(["git", "-C", str(source), *arguments], capture_output=True, text=True, check=True).stdout

    try:
        head, changes = (
            git("rev-parse", "HEAD").strip(),
            git("status", "--porcelain", "--untracked-files=no", ".").strip(),
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+changes" if changes else "")


def command_line() -> str:
    """The command that started this process, as it can be typed again."""
    return " ".join(["python", "-m", "residual_gd.experiments.run", *sys.argv[1:]])
