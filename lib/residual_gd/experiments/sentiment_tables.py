"""What chapter 8 shows of its runs, live or recorded: errors at the end, curves, views inside, and tables of them.

``runs`` is a dict: name of a run -> the curves of its seeds, as ``training.train`` and ``recorded`` give them.
"""

import numpy as np

from ..validation import one_of, require
from .records import RESULTS, load
from .sentiment_records import PLANS, recorded

WHICH = {"training": "train_error", "held-out": "dev_error"}
# Errors of the better constant answer on the sentences that a record measures, from the labels' counts
SST2_DEV = 428 / 872
CONSTANT = {
    "sentiment-memorize": {"training": 242 / 512},
    "sentiment-sst2": {"training": 3591 / 8000, "held-out": SST2_DEV},
    "sentiment-ablations": {"training": 2679 / 6000, "held-out": SST2_DEV},
    "sentiment-sst2-all": {"training": 3591 / 8000, "held-out": SST2_DEV},
    "sentiment-gpt2-small": {"training": 1794 / 4000, "held-out": SST2_DEV},
}


def record_runs(name, folder=RESULTS) -> dict[str, list[dict]]:
    """All runs of the record ``name``; errors as in ``recorded``."""
    return {run: recorded(name, run, folder) for run in PLANS[one_of(name, PLANS, "name")].runs}


def provenance(name, folder=RESULTS) -> str:
    """Where the record ``name`` comes from, in two lines: commit, packages, device, seeds, data."""
    manifest = load(name, folder)["manifest"]
    seeds, versions = len(manifest["configuration"]["seeds"]), manifest["versions"]
    data = ", ".join(f"{file} {sha256[:12]}" for file, sha256 in manifest["data"].items())
    return (
        f"results/{name}.json: commit {manifest['commit'][:7]}, torch {versions['torch']}, {manifest['device']}, "
        f"{manifest['dtype']}, {seeds} seed{'s' if seeds > 1 else ''}\ndata: {data}"
    )


def last_errors(runs, which="training") -> dict[str, np.ndarray]:
    """The "training" or "held-out" error after the last epoch, an array with one number for each seed.

    NaN where a run diverged. Raises ValueError for another name, or where there are no held-out sentences.
    """
    key = WHICH[one_of(which, WHICH, "which")]
    found = {}
    for run, seeds in runs.items():
        for curves in seeds:
            require(key in curves, "which", "errors that the runs have", which)
        found[run] = np.array([curves[key][-1] if curves["diverged_at"] < 0 else np.nan for curves in seeds])
    return found


def errors_by_epoch(seeds) -> tuple[np.ndarray, np.ndarray]:
    """Steps (E + 1,) and training errors (S, E + 1) before the first epoch and after each; whole runs only."""
    whole = _whole(seeds)
    per_epoch = whole[0]["steps"][-1] / whole[0]["epochs"][-1]
    return per_epoch * np.array(whole[0]["epochs"]), np.array([curves["train_error"] for curves in whole])


def errors_by_step(seeds) -> tuple[np.ndarray, np.ndarray]:
    """Steps (K,) and errors (S, K) that the training steps saw before their update, traced means; whole runs only."""
    whole = _whole(seeds)
    return np.array(whole[0]["steps"]), np.array([curves["error"] for curves in whole])


def views_inside(seeds, view, when="start") -> np.ndarray:
    """A view of ``inside.views``, or "gradient_norm", by layer: (S, layers). when: "start", or "end" of whole runs."""
    one_of(when, ("start", "end"), "when")
    return np.array([curves["inside"][when][view] for curves in (seeds if when == "start" else _whole(seeds))])


def error_table(runs, constant) -> str:
    """Errors at the end by run: median and range of the seeds. constant: as an entry of ``CONSTANT``."""
    errors = {which: last_errors(runs, which) for which in constant}
    width = max(map(len, runs)) + 2
    lines = [" " * width + "".join(f"{which + ' error':26s}" for which in constant).rstrip()]
    for run in runs:
        lines.append(f"{run:{width}s}" + "".join(f"{_spread(errors[which][run]):26s}" for which in constant).rstrip())
    last = "".join(f"{value:<26.3f}" for value in constant.values())
    return "\n".join([*lines, f"{'constant':{width}s}{last}".rstrip()])


def _spread(values):
    diverged = int(np.isnan(values).sum())
    if diverged == len(values):
        return "diverged"
    kept = values[~np.isnan(values)]
    text = f"{np.median(kept):.3f}"
    if len(kept) > 1:
        text += f"  ({kept.min():.3f} to {kept.max():.3f})"
    return text + (f", {diverged} diverged" if diverged else "")


def _whole(seeds):
    whole = [curves for curves in seeds if curves["diverged_at"] < 0]
    require(len(whole) > 0, "seeds", "at least one run that did not diverge", "none")
    return whole
