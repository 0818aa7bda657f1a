"""Figures of chapter 3: a function on the simplex, the product ball, measured movements under their bounds."""

import numpy as np
from matplotlib.patches import Circle, Rectangle

from .style import FAILS, FAINT, MEASURED, PROVED, style, subplots

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def simplex(function, *, resolution=80, labels=("token 1", "token 2", "token 3"), value="", ticks=None):
    """Draw a function of three weights that sum to one as colours in a triangle.

    function: weights (k, 3) -> values (k,). resolution: number of steps along a side. value, ticks: name and ticks of
    the colour bar. Returns the figure.
    """
    i, j = np.meshgrid(np.arange(resolution + 1), np.arange(resolution + 1))
    inside = i + j <= resolution
    weights = np.stack([i[inside], j[inside], resolution - i[inside] - j[inside]], axis=1) / resolution
    places = weights @ CORNERS
    with style():
        fig, ax = subplots(width=5.2, height=4.2)
        drawn = ax.tricontourf(places[:, 0], places[:, 1], function(weights), levels=20, cmap="viridis")
        for (x, y), label, below in zip(CORNERS, labels, (True, True, False), strict=True):
            ax.annotate(
                label, (x, y), (0, -8 if below else 8), textcoords="offset points", ha="center",
                va="top" if below else "bottom",
            )  # fmt: skip
        ax.set(aspect="equal", xlim=(-0.12, 1.12), ylim=(-0.12, 1.0))
        ax.axis("off")
        fig.colorbar(drawn, ax=ax, label=value, shrink=0.8, ticks=ticks)
    return fig


def product_ball(radii, path, *, names=("$W_1$", "$W_2$")):
    """Draw the ball of two scalar blocks: a rectangle with its half-widths ``radii``, and a path (K, 2) in it.

    The path is relative to theta_0. The largest Euclidean ball inside is drawn for comparison. Returns the figure.
    """
    path, (a, b) = np.asarray(path, dtype=float), radii
    with style():
        fig, ax = subplots(width=5.6, height=3.8)
        ax.add_patch(Rectangle((-a, -b), 2 * a, 2 * b, facecolor="#FBE9DF", edgecolor=PROVED, linewidth=1.8))
        ax.add_patch(Circle((0, 0), min(a, b), fill=False, edgecolor=FAINT, linestyle="--", linewidth=1.2))
        ax.plot(path[:, 0], path[:, 1], ".-", color=MEASURED, linewidth=1.2, markersize=5)
        ax.plot(0, 0, "o", color="black", markersize=6)
        ax.annotate(r"$\theta_0$", (0, 0), (-14, -14), textcoords="offset points")
        ax.annotate(r"$\rho_1$", (a / 2, -b), (0, -16), textcoords="offset points", ha="center", color=PROVED)
        ax.annotate(r"$\rho_2$", (a, b / 2), (6, 0), textcoords="offset points", va="center", color=PROVED)
        ax.set(xlim=(-1.35 * a, 1.35 * a), ylim=(-1.5 * b, 1.5 * b), aspect="equal")
        ax.set(xlabel=f"{names[0]} minus its start", ylabel=f"{names[1]} minus its start")
        ax.grid(False)
    return fig


def under_bound(distances, bound, measured, *, labels, xlabel, ylabel):
    """Draw measured movements (one array a label) under the proved bound, over distances; both axes logarithmic."""
    with style():
        fig, ax = subplots()
        ax.loglog(distances, bound, "--", color=PROVED, label="proved bound")
        for curve, label, marker in zip(measured, labels, ("o-", "s-", "^-"), strict=False):
            ax.loglog(distances, curve, marker, markersize=4, label=label)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.legend()
    return fig


def slopes(places, curves, *, labels, xlabel, ylabel):
    """Draw derivatives along a line; the first curve is the one that jumps. Returns the figure."""
    with style():
        fig, ax = subplots(height=3.2)
        for k, (curve, label) in enumerate(zip(curves, labels, strict=True)):
            ax.plot(places, curve, "-" if k == 0 else "--", color=FAILS if k == 0 else None, label=label)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.legend()
    return fig
