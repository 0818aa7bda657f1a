"""Certified runs: a gallery under envelopes, blocks inside their radii, the certified basin (chapter 5)."""

import numpy as np

from .style import COLOURS, FAILS, FAINT, MARKS, MEASURED, PROVED, style, subplots


def inside_the_ball(iterations, distances, radii, path, corner):
    """Left, a path of two blocks in the rectangle of their radii; right, every block's distance over its radius.

    distances: dict block -> (K,). radii: dict block -> number. path: (K, 2) distances of two blocks; corner: their
    names. Returns the figure.
    """
    with style():
        fig, (left, right) = subplots(1, 2)
        width, height = (radii[name] for name in corner)
        left.fill_between([0.0, width], 0.0, height, color=PROVED, alpha=0.12, linewidth=0)
        left.plot([width, width, 0.0], [0.0, height, height], color=PROVED, label="ball")
        left.plot(*np.asarray(path).T, "o-", color=MEASURED, markersize=2.5, label="gradient descent")
        left.plot(0.0, 0.0, "s", color="black", markersize=5, label=r"start $\theta_0$")
        left.set(xlabel=f"distance of ${corner[0]}$", ylabel=f"distance of ${corner[1]}$", title="first the ball")
        left.set(xlim=(-0.04 * width, 1.1 * width), ylim=(-0.04 * height, 1.1 * height))
        left.legend(loc="center left")
        for k, (name, distance) in enumerate(distances.items()):
            share = np.asarray(distance) / radii[name]
            right.plot(
                iterations, share, linestyle=MARKS[k % len(MARKS)], color=COLOURS[k % len(COLOURS)], label=f"${name}$"
            )
        right.axhline(1.0, color=PROVED)
        right.set(xlabel="iteration $k$", ylabel="distance / radius", title="no block leaves it", ylim=(0.0, 1.08))
        right.legend(ncols=2)
    return fig


def gallery(panels, *, columns=2):
    """Small panels, each a run under its envelope: (title, iterations, loss, envelope, floor), relative to Phi_0."""
    rows = -(-len(panels) // columns)
    with style():
        fig, axes = subplots(rows, columns, height=2.1, width=7.0)
        for ax, (title, iterations, loss, bound, floor) in zip(axes.flat, panels, strict=False):
            ax.semilogy(iterations, bound / loss[0], "--", color=PROVED, label="proved envelope")
            ax.semilogy(iterations, loss / loss[0], color=MEASURED, label="gradient descent")
            ax.axhline(floor / loss[0], color=FAINT, linewidth=1.0, linestyle=":", label="rounding floor")
            ax.set_title(title, fontsize=9.0)
            ax.set_ylim(0.1 * floor / loss[0], 10.0)
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        handles, labels = axes.flat[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=3)
        fig.supylabel(r"$\Phi_k\,/\,\Phi_0$ over the iteration $k$", fontsize=10.5)
    return fig


def basin(distances, rates, *, certified, predicted, title=""):
    """The measured factor of Phi per step over ||R_0||, with the certified region and its factor.

    distances, rates: (K,); a rate of nan means that the run did not converge. certified: the largest certified
    ||R_0||. predicted: the theorem's factor. Returns the figure.
    """
    distances, rates = np.asarray(distances), np.asarray(rates)
    lost = ~np.isfinite(rates)
    with style():
        fig, ax = subplots()
        ax.axvspan(0.5 * distances.min(), certified, color=PROVED, alpha=0.12, linewidth=0, label="certified")
        ax.hlines(predicted, 0.5 * distances.min(), certified, color=PROVED, linestyle="--", label="proved factor")
        ax.semilogx(distances[~lost], rates[~lost], "o-", color=MEASURED, label="measured factor")
        if lost.any():
            ax.plot(distances[lost], np.ones(lost.sum()), "x", color=FAILS, markersize=8, label="no convergence")
        ax.set(xlabel=r"$\|R_0\|_F$", ylabel=r"factor of $\Phi$ per step", title=title)
        ax.set(xlim=(0.5 * distances.min(), 2.0 * distances.max()))
        ax.legend()
    return fig
