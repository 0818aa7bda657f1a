"""Watch a sandbox from outside: its time, the memory and the number of its processes, all together."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

EVERY = 0.25  # seconds


def until_end(process, limits):
    """Wait for the process; None if it ended by itself, else which limit it passed. It is killed with all it started.

    Parameters
    ----------
    process : subprocess.Popen
        The sandbox, leader of a session.
    limits : Limits
    """
    last = time.monotonic() + limits.seconds
    why = None
    while why is None:
        try:
            process.wait(EVERY)
            break
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() > last:
            why = f"longer than {limits.seconds:g} seconds"
        else:
            family = descendants(process.pid)
            if len(family) > limits.processes:
                why = f"more than {limits.processes} processes"
            elif sum(map(memory, family)) > limits.memory:
                why = f"more than {limits.memory / 1e6:.0f} MB of memory"
    end(process)
    process.wait()
    return why


def end(process):
    """Kill the process and all it started, which an unsafe run has no namespace for, one by one."""
    if process.poll() is None:
        for pid in [*descendants(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def descendants(pid):
    """Process ids of all that ``pid`` started, at any depth."""
    found, open_ = [], [pid]
    while open_:
        for path in Path(f"/proc/{open_.pop()}/task").glob("*/children"):
            try:
                children = [int(child) for child in path.read_text().split()]
            except OSError:
                continue
            found += children
            open_ += children
    return found


def memory(pid):
    """Bytes that the process holds alone, and its shared memory."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    kept = [line.split() for line in lines if line.startswith(("RssAnon", "RssShmem", "VmSwap"))]
    return 1024 * sum(int(parts[1]) for parts in kept)


def tasks_of_user(kind):
    """Processes and threads that count against the limit although they are not the sandbox's.

    The limit is by user. A superuser's submissions run as a user of their own, who has none.
    """
    user = os.getuid()
    if user == 0 and kind != "unsafe":
        return 0
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == user:
                count += len(os.listdir(path / "task"))
        except OSError:
            continue
    return count
