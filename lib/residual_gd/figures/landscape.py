"""The landscape of the loss: its valley of minimizers, PL constants against radius, samples and depth (ch. 4, 9)."""

import numpy as np

from .style import FAILS, FAINT, MARKS, MEASURED, PROVED, heat, style, subplots


def valley(loss, minimizers, paths, chord, *, title=("a valley, not a bowl", "along the dashed line")):
    """Level sets of a loss of two parameters with its curve of minimizers, and the loss along a chord of that curve.

    loss: function of two arrays. minimizers: (K, 2) points of the curve. paths: a list of (steps, 2) iterates.
    chord: (2, 2), two minimizers. Returns the figure.
    """
    minimizers, chord = np.asarray(minimizers), np.asarray(chord)
    low, high = 0.0, 1.1 * float(chord.max())
    with style():
        fig, (left, right) = subplots(1, 2)
        a, b = np.meshgrid(np.linspace(low, high, 201), np.linspace(low, high, 201))
        left.contourf(a, b, np.sqrt(loss(a, b)), levels=14, cmap="viridis_r", alpha=0.55)
        left.plot(*minimizers.T, color="black", label="minimizers")
        for path in paths:
            left.plot(*np.asarray(path).T, "o-", color=MEASURED, markersize=2.5, linewidth=1.0)
        left.plot(*chord.T, "--", color=FAILS)
        left.plot(*chord.T, "o", color=FAILS, markersize=5)
        left.set(xlabel="$a$", ylabel="$b$", title=title[0], xlim=(low, high), ylim=(low, high), aspect="equal")
        left.grid(False)
        left.legend(loc="upper right")
        t = np.linspace(0.0, 1.0, 201)
        points = chord[0] + t[:, None] * (chord[1] - chord[0])
        right.plot(t, loss(*points.T), "--", color=FAILS)
        right.plot([0.0, 1.0], [0.0, 0.0], "o", color=FAILS, markersize=5)
        right.set(xlabel="position on the line", ylabel=r"loss $\Phi$", title=title[1])
    return fig


def bound_against_radius(radii, bound, measured, *, title="", ylabel=r"$\lambda_{\min}(J J^\top)$"):
    """A proved lower bound over the radius of the ball, with what was measured: (bound) and curves by label.

    radii: (K,). bound: (K,). measured: dict label -> (K,). Returns the figure.
    """
    with style():
        fig, ax = subplots()
        for k, (label, values) in enumerate(measured.items()):
            ax.plot(radii, values, linestyle=MARKS[k], color=heat(k, len(measured) + 1), label=label)
        ax.plot(radii, bound, color=PROVED, label=r"proved: $\alpha$ on the ball")
        ax.fill_between(radii, 0.0, bound, color=PROVED, alpha=0.12, linewidth=0)
        ax.set(xlabel=r"radius $\rho$ of every block", ylabel=ylabel, title=title, ylim=(0.0, None))
        ax.legend()
    return fig


def stacked_and_per_sample(samples, per_sample, stacked, *, edge, title=""):
    """Least singular values of each sample's matrix and of the stack, over the number of samples.

    samples: (K,) numbers P. per_sample, stacked: (K,). edge: the P beyond which the stack cannot have full row rank.
    """
    with style():
        fig, ax = subplots()
        worst = r"worst sample: $\min_p\,\sigma_{\min}(Z_p)$"
        ax.plot(samples, per_sample, "o--", color=FAINT, markersize=4, label=worst)
        ax.plot(samples, stacked, "o-", color=MEASURED, markersize=4, label=r"stack: $\sigma_{\min}(Z)$")
        ax.axvline(edge, color=FAILS, linewidth=1.0, linestyle=":", label="$N = d$")
        ax.set(xlabel="number of samples $P$", ylabel="least singular value", title=title, ylim=(0.0, None))
        ax.legend()
    return fig


def against_depth(depths, left, right, *, titles=("", ""), ylabels=("", "")):
    """Two panels over the number of layers (logarithmic): curves by label in each, dict label -> (K,).

    A label that starts with "proved" or "reference" is drawn as a line without marks. Returns the figure.
    """
    with style():
        fig, axes = subplots(1, 2)
        for ax, curves, title, ylabel in zip(axes, (left, right), titles, ylabels, strict=True):
            for k, (label, values) in enumerate(curves.items()):
                given = label.startswith(("proved", "reference"))
                colour = (PROVED if label.startswith("proved") else FAINT) if given else heat(k, len(curves) + 1)
                ax.plot(depths, values, "--" if given else "o-", color=colour, markersize=4, label=label)
            ax.set(xlabel="layers $L$", title=title, ylabel=ylabel, xscale="log")
            ax.set_xticks(depths, [str(depth) for depth in depths])
            ax.minorticks_off()
            ax.legend()
    return fig


def zeros(x, curves, *, xlabel, ylabel, title=""):
    """Functions of one variable around their zeros, on a scale that is logarithmic away from 0; dict label -> (K,)."""
    with style():
        fig, ax = subplots()
        for k, (label, values) in enumerate(curves.items()):
            colour = heat(k, len(curves) + 1)
            ax.plot(x, values, linestyle=MARKS[k], color=colour, label=label)
            values = np.asarray(values)
            at = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))
            ax.plot(x[at], np.zeros(len(at)), "o", color=colour, markersize=5)
        ax.axhline(0.0, color=FAINT, linewidth=0.8)
        ax.set_yscale("symlog", linthresh=1e-2)
        ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
        ax.legend()
    return fig


def through_layers(curves, *, ylabel, lowest=1e-17, title=""):
    """One number for each layer's output, l = 0..L, logarithmic and cut off at ``lowest``: dict label -> (L + 1,)."""
    with style():
        fig, ax = subplots()
        for k, (label, values) in enumerate(curves.items()):
            values = np.maximum(values, lowest)
            ax.semilogy(np.arange(len(values)), values, "o-", color=heat(k, len(curves) + 1), markersize=4, label=label)
        ax.set(xlabel="after layer $l$", ylabel=ylabel, title=title, ylim=(lowest, None))
        ax.legend()
    return fig
