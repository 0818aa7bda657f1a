"""Run the cells of a submission where they can do no harm, and bring their outputs back.

What the sandbox promises: the code of a submission has no network, sees neither home folders nor the course (sources,
other submissions, gradebook), can write only to a folder of its own in memory, of limited size, which vanishes with it,
and is ended with all its processes when it takes too long, too much memory or too many processes. What it prints or
shows is cut off at a limit. Whatever it does, the other submissions are graded as if it had not been there.

What it does not promise: the kernel that runs a submission also runs the cells that grade it. A program that looks for
them finds the hidden tests of its own set, and one that is made for it can forge their success; a plain rebinding of
names does not (``guard.py``). Nor is it a border against errors of the operating system's kernel: grade submissions of
strangers on a machine that holds nothing else.

The tool is Debian's bubblewrap (``bwrap``), or ``unshare`` of util-linux where that is missing. Both need what most
Linux systems allow their users: namespaces of their own.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import watch
from .versions import ROOT

HERE = Path(__file__).resolve().parent
INSIDE = HERE / "inside.py"
JAIL = HERE / "jail.py"
GUARD = HERE / "guard.py"
KINDS = ("bwrap", "unshare")
SCRATCH = "/tmp"  # inside
STRANGER = 65533  # the user that a superuser's submissions run as: no other process has this id
ATTACHED = 20_000_000  # bytes of the files that a submission may bring along
REPORTED = 50_000_000  # characters of all reports of one submission
HIDDEN = ("/home", "/root", "/srv", "/mnt", "/media", "/var", "/run", SCRATCH)


class SandboxError(RuntimeError):
    """No sandbox works here, or it broke down for a reason that is not the submission's."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Times in seconds, sizes in bytes, output in characters of one cell."""

    cell: float = 60.0
    seconds: float = 600.0
    memory: int = 3_000_000_000
    file: int = 50_000_000
    disk: int = 200_000_000
    processes: int = 128
    output: int = 200_000
    grace: float = 5.0


@dataclass
class Run:
    """Outputs by index of the cell, and why the run ended early (None if it did not)."""

    outputs: dict
    ended: str | None


def error_output(name, text):
    """An output of type error that is made outside."""
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}


def hidden():
    """Folders that a submission must not see, without those that lie in another one."""
    paths = {Path(p).resolve() for p in (*HIDDEN, Path.home(), ROOT) if Path(p).is_dir()} - {Path("/")}
    return sorted(p for p in paths if paths.isdisjoint(p.parents))


def shown():
    """What it needs of them, read-only: Python, the environment, the library, and the file that runs inside."""
    library = Path(importlib.util.find_spec("residual_gd").origin).parents[1]
    paths = [sys.base_prefix, sys.prefix, library, ROOT / "results", INSIDE, JAIL]
    paths = [Path(p).resolve() for p in paths]
    return [p for p in dict.fromkeys(paths) if p.exists() and any(p.is_relative_to(h) for h in hidden())]


def python():
    """The environment's Python, at an address that `shown` has also where ``.venv`` is a link."""
    return Path(sys.prefix).resolve() / "bin" / Path(sys.executable).name


def environment(student):
    """All environment variables that the submission has."""
    return {
        "PATH": os.pathsep.join([str(python().parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": f"{SCRATCH}/home",
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "IPYTHONDIR": f"{SCRATCH}/home/ipython",
        "JUPYTER_RUNTIME_DIR": f"{SCRATCH}/runtime",
        "JUPYTER_CONFIG_DIR": f"{SCRATCH}/home/jupyter",
        "MPLCONFIGDIR": f"{SCRATCH}/matplotlib",
        "NBGRADER_EXECUTION": "autograde",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONWARNINGS": "ignore",
        "RESIDUAL_GD_PROGRESS": "0",
        "RESIDUAL_GD_STUDENT": student,
    }


def _bwrap(limits):
    command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in hidden():
        command += ["--perms", "1777" if str(path) == SCRATCH else "0755"]
        command += ["--size", str(limits.disk if str(path) == SCRATCH else 1_000_000), "--tmpfs", str(path)]
    for path in shown():
        # Folders on the way to it, which another user must pass too: bwrap itself makes them for their owner alone.
        for folder in reversed(path.parents):
            if any(folder.is_relative_to(h) for h in hidden()):
                command += ["--perms", "0755", "--dir", str(folder)]
        command += ["--ro-bind", str(path), str(path)]
    command += ["--size", str(limits.disk), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    command += [part for path in hidden() if str(path) != SCRATCH for part in ("--remount-ro", str(path))]
    command += ["--die-with-parent", "--new-session", "--chdir", SCRATCH, "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        # A superuser has no limit of processes, in a namespace neither: another user's id is taken inside.
        command += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        return [*command, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*command, "--unshare-all"]


def _unshare(limits):
    spaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    places = {"hide": [str(p) for p in hidden()], "show": [str(p) for p in shown()], "scratch": SCRATCH}
    return ["unshare", *user, *spaces, str(python()), "-I", str(JAIL), json.dumps(places | {"disk": limits.disk})]


COMMANDS = {"bwrap": _bwrap, "unshare": _unshare, "unsafe": lambda limits: []}


def execute(kind, cells, *, student, limits=None, modules=(), files=None, fonts=None):
    """Execute code cells in the sandbox.

    Parameters
    ----------
    kind : str
        "bwrap" or "unshare", as `find` returns it; "unsafe" runs without a sandbox, with the limits of time and size.
    cells : list of dict
        "index", "source" and "graded" (bool) of each code cell, in order.
    student : str
        The id under which the submission was handed in.
    limits : Limits
    modules : sequence of str
        Imported before the first cell; their names are restored before each graded cell.
    files, fonts : dict of str to bytes
        Files of the submission's folder, and of matplotlib's.

    Returns
    -------
    Run

    Raises
    ------
    SandboxError
        If the kernel does not start: that is not the submission's doing.
    """
    limits = limits or Limits()
    key = secrets.token_bytes(32)
    with tempfile.TemporaryDirectory(prefix="unsafe-") as own:
        scratch = own if kind == "unsafe" else SCRATCH
        request = {
            "key": key.hex(),
            "user": STRANGER if os.geteuid() == 0 and kind != "unsafe" else None,
            "folder": f"{scratch}/submission",
            "cells": cells,
            "limits": asdict(replace(limits, processes=limits.processes + watch.tasks_of_user(kind))),
            "modules": list(modules),
            "guard": GUARD.read_text(encoding="utf-8"),
            "files": {name: base64.b64encode(data).decode() for name, data in (files or {}).items()},
            "fonts": {name: base64.b64encode(data).decode() for name, data in (fonts or {}).items()},
        }
        variables = {k: v.replace(SCRATCH, scratch) for k, v in environment(student).items()}
        command = [*COMMANDS[kind](limits), str(python()), "-I", str(INSIDE)]
        reports, ended, said = _supervise(command, json.dumps(request).encode(), variables, limits, key)
    problem = next((r["problem"] for r in reports if "problem" in r), None)
    if problem or not (reports or ended):
        raise SandboxError(problem or f"the sandbox does not start: {said}")
    outputs = {r["cell"]: r["outputs"] for r in reports if "cell" in r}
    if not any(r.get("finished") for r in reports):
        ended = ended or "it ended its own run"
    return Run(outputs, ended)


def _supervise(command, request, variables, limits, key):
    """Run the command; its genuine reports, why it was ended from here or None, and what it wrote to stderr."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as given:
        given.write(request)
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=errors, env=variables, start_new_session=True
        )
        _running.add(process)
        lines = []
        reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
        reader.start()
        ended = watch.until_end(process, limits)
        _running.discard(process)
        reader.join(5)
        process.stdout.close() if not reader.is_alive() else None
        errors.seek(0)
        said = errors.read(2000).decode(errors="replace").strip()
    return _genuine(lines, key), ended, said


_running: set[subprocess.Popen] = set()


def end_all():
    """End every sandbox that runs now: its submission is run again another time."""
    for process in list(_running):
        watch.end(process)


def _read(stream, lines):
    size = 0
    with contextlib.suppress(ValueError, OSError):
        while size < REPORTED and (line := stream.readline(REPORTED)):
            size += len(line)
            lines.append(line)


def _genuine(lines, key):
    reports = []
    for line in lines:
        signature, _, text = line.rstrip(b"\n").partition(b" ")
        if hmac.compare_digest(hmac.new(key, text, hashlib.sha256).hexdigest().encode(), signature):
            reports.append(json.loads(text))
    return reports
