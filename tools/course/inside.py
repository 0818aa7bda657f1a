"""What runs in the sandbox: starts a kernel, executes the cells of a request in it, and reports the outputs.

The request comes on stdin as JSON; the kernel is started only when it has been read. Every finished cell is reported by
one line on stdout: a signature with the request's key, a blank, and JSON. The kernel does not inherit that descriptor,
cannot read this process (it is made undumpable), and does not know the key, so that no line of its own is believed.

Only the standard library and jupyter_client are used; nothing is imported from the folder of the submission.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import hmac
import json
import os
import queue
import resource
import signal
import sys
import time
from pathlib import Path

GUARD = "_residual_gd_guard"
PR_SET_DUMPABLE = 4
MIMES = ("text/plain", "image/png", "image/jpeg")
PRELUDE = """def _start():
    import sys, types
    module = types.ModuleType({name!r})
    exec(compile({text!r}, "guard.py", "exec"), module.__dict__)
    module.restore = module.Guard({modules!r}).restore
    sys.modules[{name!r}] = module
    sys.path.append({folder!r})
_start()
del _start
"""
RESTORE = f"__import__('sys').modules[{GUARD!r}].restore()"


class KernelLost(Exception):
    """The kernel died, or could not be interrupted."""


def error(name, text):
    """An output of type error."""
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}


class Channel:
    """The way out: signed lines on a descriptor that no child inherits."""

    def __init__(self, key):
        self.key = key
        self.descriptor = os.dup(1)  # not inheritable
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)

    def send(self, report):
        """Write one report."""
        text = json.dumps(report).encode()
        line = hmac.new(self.key, text, hashlib.sha256).hexdigest().encode() + b" " + text + b"\n"
        while line:
            line = line[os.write(self.descriptor, line) :]


class Outputs:
    """What one cell prints and shows, up to a number of characters."""

    def __init__(self, limit):
        self.limit = limit
        self.size = 0
        self.list = []

    def add(self, kind, content):
        """Take one message of the kernel; False once there is too much."""
        if kind == "stream":
            text = self._cut(content["text"])
            last = self.list[-1] if self.list else {}
            if last.get("name") == content["name"]:
                last["text"] += text
            else:
                self.list.append({"output_type": "stream", "name": content["name"], "text": text})
        elif kind in ("execute_result", "display_data"):
            data = {mime: content["data"][mime] for mime in MIMES if isinstance(content["data"].get(mime), str)}
            if sum(map(len, data.values())) + self.size > self.limit:
                data = {"text/plain": self._cut(data.get("text/plain", ""))}
            else:
                self.size += sum(map(len, data.values()))
            count = {"execution_count": content["execution_count"]} if kind == "execute_result" else {}
            self.list.append({"output_type": kind, "data": data, "metadata": {}, **count})
        elif kind == "error":
            lines = [self._cut(line) for line in content["traceback"]][:200]
            name, text = content["ename"][:200], self._cut(content["evalue"])
            self.list.append({"output_type": "error", "ename": name, "evalue": text, "traceback": lines})
        elif kind == "clear_output":
            self.list.clear()
        return self.size < self.limit

    def _cut(self, text):
        text = text[: max(0, self.limit - self.size)]
        self.size += len(text)
        return text


class Session:
    """A kernel and the execution of cells in it."""

    def __init__(self, request):
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import KernelManager

        self.limits = request["limits"]
        folder = Path(request["folder"])
        self.manager = KernelManager(transport="ipc", ip=str(folder.parent / "channel"))
        command = [sys.executable, "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        command += ["--HistoryManager.enabled=False", "--InteractiveShellApp.ignore_cwd=True"]
        self.manager._kernel_spec = KernelSpec(argv=command, language="python", display_name="Python 3")
        self.manager.start_kernel(cwd=str(folder), stdin=-3, stdout=-3, stderr=-3)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        values = {"name": GUARD, "text": request["guard"], "modules": request["modules"], "folder": str(folder)}
        outputs = self.run(PRELUDE.format(**values), 120, silent=True)
        if outputs:
            raise KernelLost(f"the kernel does not start: {outputs[-1].get('evalue', outputs[-1])}")

    def run(self, source, seconds, *, silent=False):
        """Outputs of one cell; an error is among them if it failed. KernelLost when there is no kernel any more."""
        # A message of an earlier cell's thread may still come in: only those of this request are taken.
        request = self.client.execute(source, silent=silent, store_history=not silent, stop_on_error=False)
        outputs = Outputs(self.limits["output"])
        end, why = time.monotonic() + seconds, None
        reply = idle = None
        while reply is None or idle is None:
            if time.monotonic() > end:
                if why is not None:
                    raise KernelLost("it did not react to the interrupt: " + why)
                why = f"longer than {seconds:g} seconds"
                self.manager.interrupt_kernel()
                end = time.monotonic() + self.limits["grace"]
            message = self._next(self.client.iopub_channel)
            if message is None:
                if not self.manager.is_alive():
                    raise KernelLost("the kernel died")
            elif message["parent_header"].get("msg_id") == request:
                kind, content = message["msg_type"], message["content"]
                if kind == "status":
                    idle = idle or content["execution_state"] == "idle" or None
                elif not outputs.add(kind, content) and why is None:
                    why = f"more than {self.limits['output']} characters of output"
                    self.manager.interrupt_kernel()
                    end = time.monotonic() + self.limits["grace"]
            if reply is None:
                reply = self._reply(request)
        if why is not None:
            outputs.list.append(error("LimitExceeded", why))
        elif reply["status"] != "ok" and not any(o["output_type"] == "error" for o in outputs.list):
            outputs.list.append(error(reply.get("ename", "Error"), reply.get("evalue", reply["status"])[:2000]))
        return outputs.list

    def _next(self, channel, timeout=0.1):
        with contextlib.suppress(queue.Empty):
            return channel.get_msg(timeout=timeout)
        return None

    def _reply(self, request):
        while (message := self._next(self.client.shell_channel, 0)) is not None:
            if message["parent_header"].get("msg_id") == request:
                return message["content"]
        return None

    def close(self):
        """End the kernel at once."""
        with contextlib.suppress(Exception):
            self.manager.shutdown_kernel(now=True)


def limit(limits):
    """Limits of this process and of all that it starts."""
    for what, value in (
        (resource.RLIMIT_DATA, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_CPU, int(limits["seconds"]) + 5),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError):  # above the hard limit that holds already
            resource.setrlimit(what, (value, value))


def become(user):
    """Leave the superuser for good."""
    if user is not None and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def unpack(files, folder):
    """Write the request's files; names that lead out of the folder are left out."""
    for name, text in files.items():
        path = (folder / name).resolve()
        if path.is_relative_to(folder) and path != folder:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(text))


def main():
    request = json.load(sys.stdin)
    channel = Channel(bytes.fromhex(request["key"]))
    become(request["user"])
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)
    folder = Path(request["folder"])
    for path in (folder, *(Path(os.environ[name]) for name in ("HOME", "MPLCONFIGDIR", "JUPYTER_RUNTIME_DIR"))):
        path.mkdir(parents=True, exist_ok=True)
    unpack(request["files"], folder.resolve())
    unpack(request["fonts"], Path(os.environ["MPLCONFIGDIR"]).resolve())
    os.chdir(folder)
    limit(request["limits"])
    session, lost = None, None
    try:
        session = Session(request)
        channel.send({"started": True})
    except Exception as problem:
        lost = f"no kernel: {type(problem).__name__}: {problem}"
        channel.send({"problem": lost})
        return
    for cell in request["cells"]:
        if lost is None:
            try:
                outputs = session.run(RESTORE, 30, silent=True) if cell["graded"] else []
                outputs += session.run(cell["source"], self_limit(request)) if not outputs else []
            except KernelLost as problem:
                lost = str(problem)
                outputs = [error("KernelLost", lost)]
        else:
            outputs = [error("NotRun", f"an earlier cell ended the run ({lost})")]
        channel.send({"cell": cell["index"], "outputs": outputs})
    channel.send({"finished": True})
    session.close()


def self_limit(request):
    """Seconds that one cell may take."""
    return request["limits"]["cell"]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
