"""Figures of chapter 2: the Jacobian with its blocks side by side, and the kernel as a sum of blocks."""

import numpy as np

from .style import style, subplots


def jacobian_map(blocks, *, labels):
    """Draw the absolute entries of J on a logarithmic scale, its blocks (arrays (Nc, size)) side by side."""
    J = np.abs(np.concatenate(blocks, axis=1))
    borders = np.cumsum([0] + [block.shape[1] for block in blocks])
    with style():
        fig, ax = subplots(width=9.0, height=2.6)
        shown = ax.imshow(
            np.log10(np.where(J > 0, J, np.nan)),
            aspect="auto",
            cmap="viridis",
            vmin=np.log10(J.max()) - 4,
            interpolation="nearest",
        )
        ax.set_facecolor("white")
        for border in borders[1:-1]:
            ax.axvline(border - 0.5, color="black", linewidth=1.4)
        ax.set_xticks((borders[:-1] + borders[1:] - 1) / 2, labels)
        ax.set_yticks([])
        ax.tick_params(length=0)
        ax.grid(False)
        ax.set(ylabel="entries of vec $F$")
        fig.colorbar(shown, ax=ax, label=r"$\log_{10}$ of the size")
    return fig


def gram_blocks(grams, total, *, labels, total_label):
    """Draw the kernel of each block and their sum ``total``, all (Nc, Nc), each on a colour scale of its own."""
    with style():
        fig, axes = subplots(2, (len(grams) + 2) // 2, height=2.5)
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, K, label in zip(axes.flat, [*grams, total], [*labels, total_label], strict=False):
            largest = np.abs(K).max()
            ax.imshow(K, cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest")
            ax.set_title(f"{label}\nlargest entry {largest:.2g}", fontsize=10)
    return fig
