"""Loss curves: runs over iterations, bands over seeds, a run under its proved envelope."""

import numpy as np

from .style import FAINT, MARKS, MEASURED, PROVED, heat, style, subplots


def loss_curves(iterations, curves, *, labels, title="", ylabel=r"$\Phi_k\,/\,\Phi_0$", floor=None):
    """Draw one curve for each label over iterations, logarithmic in the loss.

    curves: for each label an array (K,), or (K, seeds) drawn as median with the range of the seeds. floor: a
    horizontal line with its label, ``(value, label)``. Returns the figure.
    """
    with style():
        fig, ax = subplots()
        draw_loss_curves(ax, iterations, curves, labels=labels, title=title, ylabel=ylabel, floor=floor)
        ax.legend()
    return fig


def draw_loss_curves(ax, iterations, curves, *, labels, title="", ylabel=r"$\Phi_k\,/\,\Phi_0$", floor=None):
    """``loss_curves`` in given axes, without a legend."""
    for k, (curve, label) in enumerate(zip(curves, labels, strict=True)):
        curve = np.asarray(curve, dtype=float).reshape(len(iterations), -1)
        colour = heat(k, len(labels))
        ax.semilogy(iterations, np.median(curve, axis=1), linestyle=MARKS[k % len(MARKS)], color=colour, label=label)
        if curve.shape[1] > 1:
            ax.fill_between(iterations, curve.min(axis=1), curve.max(axis=1), color=colour, alpha=0.18, linewidth=0)
    if floor is not None:
        ax.axhline(floor[0], color=FAINT, linewidth=1.0, linestyle=":", label=floor[1])
    ax.set(xlabel="iteration $k$", ylabel=ylabel, title=title)


def envelope(iterations, loss, bound, *, title="", measured="gradient descent", proved="proved envelope"):
    """Draw a run's loss under its proved envelope (both (K,)). Returns the figure."""
    with style():
        fig, ax = subplots()
        ax.semilogy(iterations, bound, "--", color=PROVED, label=proved)
        ax.semilogy(iterations, loss, color=MEASURED, label=measured)
        ax.set(xlabel="iteration $k$", ylabel=r"loss $\Phi_k$", title=title)
        ax.legend()
    return fig
