"""Weather records for chapter 7: the embedded mast record, and the Jena station's files from disk or network."""

import contextlib
import hashlib
import logging
import os
import tempfile
import warnings
import zipfile
import zlib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pooch

from ..data import MAST_EXTRACT
from ..validation import require
from .downloads import DownloadError, downloader
from .station_csv import DataReport, Record, read_station_csv
from .windows import Windows, fourier_features, linear_embedding, windows

__all__ = [
    "DataReport", "DownloadError", "Record", "Windows",
    "fourier_features", "jena_path", "linear_embedding", "load_embedded", "load_jena", "windows",
]  # fmt: skip

JENA_CSV = "jena_climate_2009_2016.csv"
JENA_URL = f"https://storage.googleapis.com/tensorflow/tf-keras-datasets/{JENA_CSV}.zip"
JENA_BLOB = (
    "e6cfb671e72f630f251a18722fcebe6944c758c0"  # git's name of the CSV: the SHA-1 of "blob <size>\0" and its bytes
)


def load_embedded() -> Record:
    """The record that comes with the book: a mast, every 10 minutes, 129 days of 2017 without a gap or a fault.

    Columns p (mbar), T (degC), rh (%), wv (m/s), wd_sin, wd_cos. lib/residual_gd/data/README.md tells its origin.
    The arrays are read-only.
    """
    return _mast(MAST_EXTRACT)


@lru_cache(maxsize=1)
def _mast(path):
    """Read once a process; nobody can write into what everybody shares."""
    record = read_station_csv(path, source="embedded mast record")
    for array in (record.times, record.values):
        array.flags.writeable = False
    return record


def load_jena(path: str | Path | None = None, *, cache: str | Path | None = None) -> Record:
    """A record of the Jena weather station.

    Parameters
    ----------
    path : path, "auto" or None
        A CSV file in any of the station's published formats is read as it is. With None the file of 2009-2016 is
        looked for in the folder jena/ under the one that RESIDUAL_GD_DATA names (any single CSV there will do), then
        in the cache, and else downloaded (13 MB; RESIDUAL_GD_PROGRESS=0 hides the progress bar). "auto" does the
        same, and when the download fails it falls back to the embedded record, with a warning and a line in the report.
    cache : path, optional
        Folder that keeps the download; by default the user's cache folder.

    Raises
    ------
    FileNotFoundError, ValueError
        The file is missing or broken; the message names the file and the first bad line.
    DownloadError
        The download failed and ``path`` is None.
    """
    require(cache is None or isinstance(cache, str | Path), "cache", "a folder", repr(cache))
    if path is not None and path != "auto":
        return read_station_csv(path)
    local = _local_file()
    if local is not None:
        return read_station_csv(local)
    cache = pooch.os_cache("residual_gd") / "jena" if cache is None else Path(cache)
    try:
        return read_station_csv(_download(cache))
    except DownloadError as error:
        if path is None:
            raise
        warnings.warn(f"using the embedded mast record instead of Jena's: {error}", stacklevel=2)
        record = load_embedded()
        done = (*record.report.done, "taken instead of the Jena record, whose download failed")
        return replace(record, report=replace(record.report, done=done))


def jena_path() -> Path:
    """The CSV file that ``load_jena()`` reads, downloaded first if need be; the same errors."""
    return _local_file() or _download(pooch.os_cache("residual_gd") / "jena")


def _local_file():
    """The CSV in jena/ under RESIDUAL_GD_DATA, or None when there is no such folder or no CSV in it."""
    root = os.environ.get("RESIDUAL_GD_DATA")
    if not root:
        return None
    require(Path(root).is_dir(), "RESIDUAL_GD_DATA", "the name of a folder", repr(root))
    files = sorted(Path(root, "jena").glob("*.csv"))
    chosen = [file for file in files if file.name == JENA_CSV] or files
    found = ", ".join(file.name for file in files)
    require(len(chosen) < 2, "RESIDUAL_GD_DATA", f"{JENA_CSV} or a single CSV in jena/", found)
    return chosen[0] if chosen else None


def _download(cache):
    """The public CSV in the folder ``cache``, fetched when it is not there; DownloadError when that fails."""
    target = cache / JENA_CSV
    if target.is_file() and git_blob(target) == JENA_BLOB:
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            with _quiet_pooch():
                archive = pooch.retrieve(
                    JENA_URL, known_hash=None, fname="jena.zip", path=folder, downloader=downloader()
                )
            with zipfile.ZipFile(archive) as opened:
                table = Path(opened.extract(JENA_CSV, folder))
            found = git_blob(table)
            require(found == JENA_BLOB, JENA_CSV, f"git blob {JENA_BLOB}", found)
            table.replace(target)
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DownloadError(
            f"{JENA_URL}: expected the public Jena file, got {type(error).__name__}: {error}. Without a network, name "
            'a CSV file, set RESIDUAL_GD_DATA to a folder that has one under jena/, or ask for "auto"'
        ) from None  # the long traceback of the network library helps nobody; its message is in ours
    return target


def git_blob(path: Path) -> str:
    """The name git gives to a file's content: SHA-1 of "blob", its size, a zero byte, and its bytes."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def _quiet_pooch():
    """Keep pooch from advising a hash: the zip has no published one, the CSV in it is checked instead."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
