"""Public files from the network: fetched once, checked, and kept in the user's cache folder."""

import os
from pathlib import Path

import pooch

TIMEOUT = 30  # seconds without an answer


class DownloadError(OSError):
    """A public file could not be fetched, or what came is not that file."""


def downloader() -> pooch.HTTPDownloader:
    """How files are fetched: with a time-out, and a progress bar unless RESIDUAL_GD_PROGRESS=0."""
    bar = os.environ.get("RESIDUAL_GD_PROGRESS") != "0"
    return pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT, hooks={"response": _close_refusal})


def fetch(url, known_hash, folder, name, *, advice) -> Path:
    """The file ``name`` in ``folder``, fetched from ``url`` when it is not there.

    known_hash: such as "md5:..." or "sha256:...", of the whole file. Raises DownloadError, with ``advice`` for who has
    no network, when it can't be fetched or is another file; nothing is kept then.
    """
    try:
        return Path(pooch.retrieve(url, known_hash, fname=name, path=folder, downloader=downloader()))
    except (OSError, ValueError) as error:
        raise DownloadError(
            f"{url}: expected the public file, got {type(error).__name__}: {error}. Without a network, {advice}"
        ) from None  # the long traceback of the network library helps nobody; its message is in ours


def _close_refusal(response, **_):
    """Close the connection of an answer such as 404, which pooch leaves open."""
    if not response.ok:
        response.close()
