"""Make the walls of the sandbox when ``unshare`` has made its namespaces: then become the command that is handed in.

Called as ``jail.py PLACES COMMAND...``, PLACES being JSON with the folders to hide, to show read-only, the scratch
folder and its size. All mounts become read-only, the network stays down, every capability is given up for good but
those to become another user, which ``inside.py`` gives up when it has done so.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, SIGKILL = 24, 38, 1, 9
CAP_SETGID, CAP_SETUID = 6, 7


def must(result, what):
    """OSError with the reason unless the call went well."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source, target, kind, flags, data=""):
    """mount(2)."""
    strings = [text.encode() if text is not None else None for text in (source, str(target), kind)]
    must(LIBC.mount(*strings, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def read_only(path):
    """Make the mount at ``path`` and all below it read-only."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    must(LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, str(path).encode(), AT_RECURSIVE, attributes, size), f"read-only {path}")


def walls(places):
    """Hide, show, and close."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    shown = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in places["show"]}
    read_only("/")
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    scratch = places["scratch"]
    for path in places["hide"]:
        size = places["disk"] if path == scratch else 1_000_000
        mode = "1777" if path == scratch else "755"
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode={mode}")
    for path, descriptor in shown.items():
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).touch()
        mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
        read_only(path)
    for path in places["hide"]:
        if path != scratch and not Path(scratch).is_relative_to(path):
            read_only(path)
    if os.path.isdir("/dev/shm"):
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"size={places['disk']},mode=1777")


def give_up(kept):
    """No capability but the kept ones, and none can come back."""
    for capability in range(64):
        if capability not in kept:
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    must(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def main():
    LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    places = json.loads(sys.argv[1])
    outer = Path("/proc/self/uid_map").read_text().split()[1:] == ["0", "4294967295"]
    walls(places)
    os.chdir(places["scratch"])
    give_up({CAP_SETGID, CAP_SETUID} if outer else set())
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
