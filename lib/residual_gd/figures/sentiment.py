"""Figures of chapter 8: errors over steps, by depth and by variant; views of the network by layer."""

import numpy as np

from .style import COLOURS, FAINT, MARKS, style, subplots

LOWEST = 1e-32  # of a logarithmic scale: what lies below is rounding and drawn here


def errors_over_steps(panels, *, constant, xlabel="step", ylabel="training error"):
    """Errors over steps, a panel for each title: dict title -> dict label -> (x (K,), errors (S, K) of S seeds).

    Drawn are the median and the range of the seeds. constant: the error of a constant answer, a dotted line. Returns
    the figure.
    """
    with style():
        fig, axes = subplots(1, len(panels), height=3.2, sharey=True)
        for ax, (title, runs) in zip(np.atleast_1d(axes), panels.items(), strict=True):
            for k, (label, (x, errors)) in enumerate(runs.items()):
                errors = np.atleast_2d(errors)
                ax.plot(x, np.median(errors, axis=0), color=COLOURS[k], linestyle=MARKS[k], label=label)
                if len(errors) > 1:
                    band = {"color": COLOURS[k], "alpha": 0.18, "linewidth": 0}
                    ax.fill_between(x, errors.min(axis=0), errors.max(axis=0), **band)
            ax.axhline(constant, color=FAINT, linewidth=1.0, linestyle=":", label="constant answer")
            ax.set(xlabel=xlabel, title=title, ylim=(-0.02, 0.6))
        np.atleast_1d(axes)[0].set_ylabel(ylabel)
        _legend_below(fig, np.atleast_1d(axes)[0])
    return fig


def errors_by_depth(depths, panels, *, ylabel="error"):
    """Errors at the end over the number of layers: dict title -> (dict label -> errors (len(depths), S), constant).

    A dot for each of the S seeds, a line through the medians. Returns the figure.
    """
    places = np.arange(len(depths))
    with style():
        fig, axes = subplots(1, len(panels), height=3.2, sharey=True)
        for ax, (title, (runs, constant)) in zip(np.atleast_1d(axes), panels.items(), strict=True):
            for k, (label, errors) in enumerate(runs.items()):
                errors = np.asarray(errors)
                ax.plot(places, np.median(errors, axis=1), color=COLOURS[k], linestyle=MARKS[k], label=label)
                ax.plot(places, errors, "o", color=COLOURS[k], markersize=4, alpha=0.6)
            ax.axhline(constant, color=FAINT, linewidth=1.0, linestyle=":", label="constant answer")
            ax.set(xlabel="layers $L$", title=title, ylim=(-0.02, 0.6))
            ax.set_xticks(places, [f"{depth}" for depth in depths])
        np.atleast_1d(axes)[0].set_ylabel(ylabel)
        _legend_below(fig, np.atleast_1d(axes)[0])
    return fig


def by_layer(panels, *, log=(), paired=False):
    """Numbers by layer: dict title -> dict label -> (first layer, values (S, K) of S seeds); two panels a row.

    Drawn are the median and the range of the seeds. log: the titles whose scale is logarithmic. paired: two curves
    that follow one another share their colour, and the second is dashed. Returns the figure.
    """
    rows = (len(panels) + 1) // 2
    with style():
        fig, axes = subplots(rows, min(2, len(panels)), height=3.0)
        axes = np.atleast_1d(axes).ravel()
        for ax, (title, runs) in zip(axes, panels.items(), strict=False):
            for k, (label, (first, values)) in enumerate(runs.items()):
                values = np.atleast_2d(values)
                values = np.maximum(values, LOWEST) if title in log else values
                layers = first + np.arange(values.shape[1])
                colour, mark = (COLOURS[k // 2], MARKS[k % 2]) if paired else (COLOURS[k], MARKS[k])
                ax.plot(layers, np.median(values, axis=0), color=colour, linestyle=mark, marker=".", label=label)
                ax.fill_between(layers, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
            ax.set(xlabel="layer", title=title, yscale="log" if title in log else "linear")
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        _legend_below(fig, axes[0])
    return fig


def variants(errors, *, constant, reference=None, xlabel="training error"):
    """Errors of variants, a row for each: dict name -> errors (S,) of S seeds. A dot for each, a bar for the median.

    constant: the error of a constant answer. reference: another one, (value, label). Returns the figure.
    """
    with style():
        fig, ax = subplots(height=0.6 + 0.27 * len(errors), width=7.2)
        for row, values in enumerate(errors.values()):
            ax.plot(values, np.full(len(values), row), "o", color=COLOURS[0], markersize=5, alpha=0.6)
            ax.plot([np.median(values)], [row], "|", color=COLOURS[0], markersize=13)
        ax.axvline(constant, color=FAINT, linewidth=1.0, linestyle=":", label="constant answer")
        if reference is not None:
            ax.axvline(reference[0], color=COLOURS[1], linewidth=1.0, linestyle="--", label=reference[1])
        ax.set_yticks(range(len(errors)), list(errors))
        ax.set(xlabel=xlabel, xlim=(-0.02, 0.6), ylim=(len(errors) - 0.5, -0.5))
        _legend_below(fig, ax)
    return fig


def _legend_below(fig, ax):
    handles, labels = ax.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
