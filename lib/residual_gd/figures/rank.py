"""Figures of chapter 6: tokens merging, singular values, exceptional coefficients, floors, depth."""

import numpy as np

from .style import COLOURS, FAILS, FAINT, MARKS, MEASURED, PROVED, heat, style, subplots

LOWEST = 1e-18  # what is below is rounding


def tokens(panels, *, titles):
    """Draw the tokens of one sample as points in the plane, one panel for each array (n, 2), all at one scale."""
    with style():
        fig, axes = subplots(1, len(panels), height=3.0, sharex=True, sharey=True)
        for ax, points, title in zip(axes, panels, titles, strict=True):
            points = np.asarray(points)
            ax.scatter(points[:, 0], points[:, 1], s=42, c=[heat(i, len(points)) for i in range(len(points))], zorder=3)
            ax.plot(*points.mean(axis=0), marker="+", color=FAINT, markersize=11)
            ax.set(title=title, aspect="equal")
    return fig


def spectra(strengths, panels, *, titles):
    """Draw all singular values against the strength of the logits: one panel for each array (K, n)."""
    with style():
        fig, axes = subplots(1, len(panels), height=3.4, sharey=True)
        for ax, values, title in zip(axes, panels, titles, strict=True):
            values = np.asarray(values)
            for j in range(values.shape[1]):
                ax.loglog(strengths, values[:, j], color=heat(j, values.shape[1]), linewidth=1.3)
            ax.set(xlabel="strength of the logits", title=title)
        axes[0].set_ylabel("singular values")
    return fig


def decay(measured, bounds, *, labels):
    """Draw singular values (n,) of attention matrices and, dashed, their bounds by index: pairs (indices, values)."""
    with style():
        fig, ax = subplots(height=3.8)
        for k, (values, (index, bound), label) in enumerate(zip(measured, bounds, labels, strict=True)):
            values = np.maximum(np.asarray(values), LOWEST)
            ax.semilogy(np.arange(1, len(values) + 1), values, ".", color=COLOURS[k], label=label)
            ax.step(index, bound, "--", where="post", color=COLOURS[k], linewidth=1.2)
        ax.set(xlabel="index $j$", ylabel=r"$\sigma_j(S)$", ylim=(LOWEST / 2, 1e4))
        ax.legend(title="dots measured, dashed proved", ncols=2)
    return fig


def exceptional(betas, measured, claimed, proved, exceptions):
    """Draw sigma_min(Z) over beta with what was claimed, what is proved, and the exceptional values marked."""
    with style():
        fig, ax = subplots(height=3.8)
        ax.plot(betas, claimed, ":", color=FAILS, label=r"$\beta\,\sigma_{\min}(X)$, not a bound")
        ax.plot(betas, np.maximum(proved, 0.0), "--", color=PROVED, label="Weyl bound")
        ax.plot(betas, measured, color=MEASURED, label=r"$\sigma_{\min}(Z)$")
        ax.plot(exceptions, np.zeros_like(exceptions), "o", color=FAILS, label=r"exceptional $\beta$", zorder=4)
        ax.set(xlabel=r"residual coefficient $\beta$", ylabel="smallest singular value")
        ax.legend()
    return fig


def floors(iterations, curves, *, labels, floor):
    """Draw losses (K,) of several runs and the floor that some of them cannot pass."""
    with style():
        fig, ax = subplots(height=3.8)
        for k, (loss, label) in enumerate(zip(curves, labels, strict=True)):
            ax.semilogy(iterations, loss, MARKS[k], color=COLOURS[k], label=label)
        ax.axhline(floor, color=PROVED, linewidth=1.6, linestyle=(0, (1, 1)), label="proved floor")
        ax.set(xlabel="iteration $k$", ylabel=r"loss $\Phi_k$")
        ax.legend()
    return fig


def depth(without, bound, with_skip):
    """Draw ||C T_l||_F over layers: (L + 1,) without the skip and its bound, (L + 1, runs) with the skip."""
    layers = np.arange(len(without))
    with style():
        fig, ax = subplots(height=3.8)
        ax.semilogy(layers, with_skip, color=COLOURS[2], linewidth=1.2)
        ax.lines[0].set_label("with the skip")
        ax.semilogy(layers, np.maximum(without, LOWEST), "o-", color=MEASURED, label="without the skip")
        shown = bound > LOWEST
        ax.semilogy(layers[shown], bound[shown], "--", color=PROVED, label="doubly exponential bound")
        ax.axhline(1e-16, color=FAINT, linewidth=1.0, linestyle=":")
        ax.annotate("rounding", (layers[-1], 1.5e-16), ha="right", color=FAINT)
        ax.set(xlabel=r"layer $\ell$", ylabel=r"$\|C\,T_\ell\|_F$", ylim=(LOWEST, None))
        ax.legend()
    return fig
