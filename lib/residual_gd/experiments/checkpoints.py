"""Checkpoints of long runs: any picklable state, written whole or not at all."""

import hashlib
import json
import os
import pickle
import tempfile
import time
from pathlib import Path

MAGIC = b"residual-gd checkpoint 1\n"


class CheckpointError(RuntimeError):
    """A checkpoint is damaged or belongs to another configuration; the message names the file and what to do."""


def write_atomically(path, data: bytes) -> None:
    """Write ``data`` to ``path``: whoever reads sees the old file or the whole new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def digest(configuration) -> str:
    """sha256 of a configuration: anything that JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()


class Checkpoint:
    """The last saved state of one piece of work.

    path: the file. configuration: everything that the work depends on (JSON); a state that was saved under another
    one is refused. ``load`` returns None where nothing was saved. Checkpoints are pickles: load only your own.
    seconds: how long the saved work took, all processes together (the clock is read for the manifest alone).
    """

    def __init__(self, path, configuration):
        self.path, self.configuration = Path(path), digest(configuration)
        self.seconds, self._since = 0.0, time.monotonic()

    def save(self, state) -> None:
        """Replace the saved state."""
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        payload = pickle.dumps((self.seconds, state), protocol=pickle.HIGHEST_PROTOCOL)
        head = f"{self.configuration}\n{hashlib.sha256(payload).hexdigest()}\n".encode()
        write_atomically(self.path, MAGIC + head + payload)

    def load(self):
        """The saved state, or None; the work begins here. CheckpointError for a damaged or a foreign file."""
        self._since = time.monotonic()
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        parts = content.removeprefix(MAGIC).split(b"\n", 2)
        if not content.startswith(MAGIC) or len(parts) != 3:
            self._refuse("not a whole checkpoint")
        configuration, payload_digest, payload = parts
        if configuration.decode(errors="replace") != self.configuration:
            self._refuse("of another configuration")
        if hashlib.sha256(payload).hexdigest().encode() != payload_digest:
            self._refuse("truncated or changed")
        self.seconds, state = pickle.loads(payload)
        return state

    def clear(self) -> None:
        """Remove the saved state."""
        self.path.unlink(missing_ok=True)

    def _refuse(self, why):
        raise CheckpointError(f"{self.path}: {why}; remove the file to start this run anew")
