"""Chapters 1 and 7: runs of gradient descent with and without residual connections, at one step size or their own."""

import numpy as np

from .explorer import Axis, Explorer, Frame
from .grid import Control, number

FOUR = {"both residuals": (1, 1), "attention's only": (1, 0), "feed-forward's only": (0, 1), "none": (0, 0)}


def four_residuals(run, *, steps, starts, iterations, lowest=1e-12):
    """Explorer of the relative loss with both residuals, either one, and none, over the step size and the start.

    run: (step, start) -> relative losses (K, 4) at ``iterations``, a column for each of ``FOUR``, not finite where a
    run diverged. steps: step sizes; starts: names. What lies below ``lowest`` is cut off.
    """

    def frame(step, start):
        columns = np.asarray(run(step, start), dtype=float).T
        curves = {label: _above(column, lowest) for label, column in zip(FOUR, columns, strict=True)}
        return Frame(curves, {label: _end(column, lowest) for label, column in zip(FOUR, columns, strict=True)})

    return Explorer(
        "Loss with and without each residual connection",
        (Control("step size μ", tuple(steps), len(steps) // 3), Control("start", tuple(starts), 0)),
        frame,
        x=iterations,
        x_axis=Axis("iteration k", low=0),
        y_axis=Axis("loss Φₖ / Φ₀", log=True, low=lowest, high=100.0),
        marks=dict(zip(FOUR, ("line", "dashed", "line", "dotted"), strict=True)),
        anywhere=True,
    )


def beta_sweeps(records, betas, *, lowest=1e-12):
    """Explorer of recorded sweeps: the median loss of the seeds at one step size for all, and at each run's own.

    records: name -> (iterations (K,), common, own), the last two with relative_loss (K, B, S) and step (B, S) for the
    B ``betas`` and S seeds. Shown are the iterations of the first record; another may lack the later ones.
    """
    x = np.asarray(next(iter(records.values()))[0])

    def frame(name, beta):
        b = list(betas).index(beta)
        iterations, common, own = records[name]
        shown = np.isin(iterations, x)
        curves, readings = {}, {}
        for label, sweep in {"one step size for all": common, "a step of its own": own}.items():
            median = np.median(np.asarray(sweep.relative_loss)[:, b], axis=-1)
            curves[label] = _above(median[shown], lowest)
            readings[f"{label}: μ"] = number(float(np.median(np.asarray(sweep.step)[b])))
            readings[f"{label}: loss at the end"] = _end(median, lowest)
        return Frame(curves, readings)

    return Explorer(
        "Weather: median loss at one step size for all, and at a step of each run's own",
        (Control("record", tuple(records), 0), Control("residual coefficient β", tuple(betas), 0)),
        frame,
        x=x,
        x_axis=Axis("iteration k", low=0),
        y_axis=Axis("loss / (½‖Y‖²)", log=True, low=lowest, high=10.0),
        marks={"a step of its own": "dashed"},
    )


def _above(losses, lowest):
    return np.where(losses > lowest, losses, np.nan)


def _end(losses, lowest):
    last = losses[-1]
    return "diverges" if not np.isfinite(last) else f"below {lowest:g}" if last < lowest else number(float(last))
