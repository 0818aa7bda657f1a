"""Chapter 8: how alike tokens and sentences are, layer by layer, before and after training."""

import numpy as np

from ..validation import require
from .explorer import Axis, Explorer, Frame
from .grid import Control, number

WHEN = {"before training": "start", "after training": "end"}
SHOWN = {"two tokens of a sentence": "token_cosine", "the last tokens of two sentences": "sentence_cosine"}


def similarity_by_layer(runs, *, depths, networks):
    """Explorer of mean cosines over the layers, over the depth L, the network and the time: medians of the seeds.

    runs: (L, network) -> a list with one entry for each seed: {"start": views, "end": views}, where views has at least
    "token_cosine", "sentence_cosine" and "stable_rank", lists of L + 1 numbers. "end" is missing where a run diverged;
    medians and ranges are those of the others. depths: values of L; networks: names.
    """
    found = {(L, network): runs(L, network) for L in depths for network in networks}
    for setting, seeds in found.items():
        require(len(seeds) > 0, "runs", "at least one seed for each setting", f"none for {setting}")

    def frame(L, network, when):
        seeds = [run[WHEN[when]] for run in found[L, network] if WHEN[when] in run]
        curves = {label: _median(seeds, key, L) for label, key in SHOWN.items()}
        readings = {f"{label}, after the last layer": _range(seeds, key) for label, key in SHOWN.items()}
        readings["stable rank of a sentence there"] = _range(seeds, "stable_rank")
        readings["runs"] = f"{len(seeds)} of {len(found[L, network])}"
        return Frame(curves, readings)

    views = [view for seeds in found.values() for run in seeds for view in run.values()]
    lowest = min(min(view[key]) for view in views for key in SHOWN.values())
    return Explorer(
        "How alike the tokens are, layer by layer",
        (
            Control("layers L", tuple(depths), len(depths) // 2),
            Control("network", tuple(networks), 0),
            Control("time", tuple(WHEN), 0),
        ),
        frame,
        x=np.arange(max(depths) + 1),
        x_axis=Axis("layer ℓ"),
        y_axis=Axis("mean cosine", low=min(-0.1, lowest), high=1.0),
        marks={"the last tokens of two sentences": "dashed"},
    )


def _median(seeds, key, L):
    values = np.array([views[key] for views in seeds]).reshape(-1, L + 1)
    return np.median(values, axis=0) if len(values) else np.full(L + 1, np.nan)


def _range(seeds, key):
    last = [views[key][-1] for views in seeds]
    if not last:
        return "diverges"
    middle, low, high = (number(float(value)) for value in (np.median(last), min(last), max(last)))
    return middle if low == high else f"{middle} ({low} to {high})"
