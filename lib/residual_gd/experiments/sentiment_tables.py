"""What chapter 8 shows of its runs, live or recorded: errors at the end, curves, views inside, and tables of them.

``runs`` is a dict: name of a run -> the curves of its seeds, as ``training.train`` and ``recorded`` give them.
"""

import numpy as np

from ..validation import one_of, require
from .records import RESULTS
from .sentiment_records import PLANS, recorded

WHICH = {"training": "train_error", "held-out": "dev_error"}


def record_runs(name, folder=RESULTS) -> dict[str, list[dict]]:
    """All runs of the record ``name``; errors as in ``recorded``."""
    return {run: recorded(name, run, folder) for run in PLANS[one_of(name, PLANS, "name")].runs}


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
    """Errors at the end by run: median and range of the seeds. constant: which -> the error of a constant answer."""
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
