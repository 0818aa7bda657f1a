"""Figures of chapter 7: a weather record with its windows, sweeps over the residual coefficient."""

import matplotlib.dates as mdates
import numpy as np
from matplotlib.ticker import NullLocator

from .curves import draw_loss_curves
from .style import COLOURS, FAINT, MARKS, MEASURED, heat, style, subplots


def record_and_windows(times, values, tokens, *, ylabel, label="windows"):
    """A series (R,) over its time stamps with its windows shaded, and below it the first window from nearby.

    tokens: (P, n + 1) time stamps of the windows' steps; the last one of each is only a target. Returns the figure.
    """
    times, values, tokens = np.asarray(times), np.asarray(values), np.asarray(tokens)
    with style():
        fig, (above, below) = subplots(2, 1, width=7.2, height=2.4)
        above.plot(times, values, color=MEASURED, linewidth=0.7)
        above.axvspan(tokens[0, 0], tokens[-1, -1], color=COLOURS[1], alpha=0.25, linewidth=0, label=label)
        above.xaxis.set_major_formatter(mdates.ConciseDateFormatter(above.xaxis.get_major_locator()))
        above.set(ylabel=ylabel, title="the whole record")
        above.legend(loc="upper center")
        first = tokens[0]
        margin = (first[-1] - first[0]) // 8
        near = (times >= first[0] - margin) & (times <= first[-1] + 2 * margin)
        hours = (times - first[0]) / np.timedelta64(1, "h")
        at = np.searchsorted(times, first)
        below.plot(hours[near], values[near], color=MEASURED, linewidth=1.0)
        below.plot(hours[at[:-1]], values[at[:-1]], "o", color=COLOURS[1], markersize=7, label="what the network sees")
        below.plot(hours[at[1:]], values[at[1:]], "o", markerfacecolor="none", color="black", markersize=11,
                   label="what it should say, one step ahead")  # fmt: skip
        below.set(xlabel="hours from the first token", ylabel=ylabel, title="the first window")
        below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=2)
    return fig


def sweeps(panels, betas, *, ylabel=r"$\Phi_k\,/\,\frac{1}{2}\|Y\|_F^2$", lowest=1e-32):
    """Loss curves by residual coefficient, median and range of S seeds: a panel for each (title, iterations, loss).

    iterations: (K,), loss: (K, B, S) for B coefficients ``betas``. What lies below ``lowest`` is drawn there. Returns
    the figure.
    """
    labels = [rf"$\beta={beta:g}$" for beta in betas]
    with style():
        fig, axes = subplots(1, len(panels))
        axes = np.atleast_1d(axes)
        for ax, (title, iterations, loss) in zip(axes, panels, strict=True):
            curves = np.maximum(np.moveaxis(np.asarray(loss), 1, 0), lowest)
            draw_loss_curves(ax, iterations, curves, labels=labels, title=title, ylabel=ylabel if ax is axes[0] else "")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


def step_sizes(taus, panels, betas):
    """Median loss at the end over the fraction tau of each run's own step: a panel for each (title, loss (T, B, S)).

    Points of diverged runs are left out. Returns the figure.
    """
    with style():
        fig, axes = subplots(1, len(panels))
        axes = np.atleast_1d(axes)
        for ax, (title, loss) in zip(axes, panels, strict=True):
            median = np.median(loss, axis=-1)
            for k, beta in enumerate(betas):
                shown = np.isfinite(median[:, k])
                style_of = {"color": heat(k, len(betas)), "linestyle": MARKS[k % len(MARKS)]}
                ax.plot(np.asarray(taus)[shown], median[shown, k], marker="o", **style_of, label=rf"$\beta={beta:g}$")
            ax.set(xscale="log", yscale="log", xlabel=r"step size times $\lambda_{\max}(JJ^\top)$", title=title)
            ax.set_xticks(taus, [f"{tau:g}" for tau in taus])
            ax.xaxis.set_minor_locator(NullLocator())
        axes[0].set_ylabel("loss at the end")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


def predictions(panels, betas, *, rows=1, ylabel="measured loss"):
    """Measured losses over a predictor, a point for each run.

    panels: (title, xlabel, predictor, measured, diagonal) for each; predictor, measured: (B, S) for B coefficients
    ``betas``; diagonal: the predictor is a loss too, and the line of equal losses is drawn. They fill ``rows`` rows,
    one after the other. Returns the figure.
    """
    with style():
        fig, axes = subplots(rows, len(panels) // rows, squeeze=False)
        for ax, (title, xlabel, predictor, measured, diagonal) in zip(axes.flat, panels, strict=True):
            for k, beta in enumerate(betas):
                ax.plot(predictor[k], measured[k], "o", color=heat(k, len(betas)), label=rf"$\beta={beta:g}$")
            if diagonal:
                ends = [min(predictor.min(), measured.min()), max(predictor.max(), measured.max())]
                ax.plot(ends, ends, "--", color=FAINT, linewidth=1.0, label="equal")
            ax.set(xscale="log", yscale="log", xlabel=xlabel, title=title)
        for ax in axes[:, 0]:
            ax.set_ylabel(ylabel)
        axes[-1, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


def ratios(lengths, curves, *, reference, lowest=1e-36):
    """The paper's ratio over the length of the windows: dict label -> (K,), and a reference (value, label)."""
    with style():
        fig, ax = subplots()
        for k, (label, values) in enumerate(curves.items()):
            shown = np.maximum(np.asarray(values, dtype=float), lowest)
            ax.semilogy(lengths, shown, marker="o", linestyle=MARKS[k % len(MARKS)], color=COLOURS[k], label=label)
        ax.axhline(reference[0], color=FAINT, linewidth=1.0, linestyle=":", label=reference[1])
        ax.set(xlabel="tokens in a window $n$", ylabel=r"$\min\,\sigma_{\min}(Z_p)^2\,/\,\max\,\|Z_p\|$")
        ax.set_xticks(lengths)
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
