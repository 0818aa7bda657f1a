"""The network drawn from bottom to top, its two skips beside it, with the shape of every matrix."""

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from .style import COLOURS, FAINT, style, subplots

ATTENTION, FEED_FORWARD, HEAD, SKIP = COLOURS[0], "#00795A", COLOURS[6], COLOURS[1]
CENTRE, ROAD = 0.40, 0.80  # horizontal places of the departments and of the express road
BRANCHES = (  # bottom, matrix below, its shape, box, colour, its formula, skip's coefficient
    (0.6, "$X$", "{P} × {n} × {d}", "attention", ATTENTION, "$S\\,X\\,W_V$", r"$\beta_A$"),
    (3.4, "$Z$", "{P} × {n} × {d}", "feed-forward", FEED_FORWARD, r"$\phi(Z W_1)\,W_2$", r"$\beta_F$"),
)


def network(P="P", n="n", d="d", c="c"):
    """Draw the network of one layer. P, n, d, c: the sizes to write beside X, Z, H and F, as numbers or letters.

    Returns the figure.
    """
    sizes = {"P": P, "n": n, "d": d, "c": c}
    with style():
        fig, ax = subplots(width=4.4, height=6.0)
        ax.set(xlim=(-0.06, 1.06), ylim=(0.3, 8.2))
        ax.axis("off")
        for branch in BRANCHES:
            _branch(ax, sizes, *branch)
        _matrix(ax, 6.2, "$H$", "{P} × {n} × {d}".format(**sizes))
        _box(ax, 6.75, "head", HEAD, "$H\\,W_U$")
        _arrow(ax, (CENTRE, 6.35), (CENTRE, 6.75))
        _arrow(ax, (CENTRE, 7.55), (CENTRE, 7.85))
        _matrix(ax, 8.0, "$F$", "{P} × {n} × {c}".format(**sizes))
    return fig


def _branch(ax, sizes, bottom, matrix, shape, name, colour, formula, beta):
    """A matrix, the box that it enters, the sum behind the box, and the skip from the matrix to the sum."""
    total = bottom + 2.2
    _matrix(ax, bottom, matrix, shape.format(**sizes))
    _arrow(ax, (CENTRE, bottom + 0.15), (CENTRE, bottom + 0.75))
    _box(ax, bottom + 0.75, name, colour, formula)
    _arrow(ax, (CENTRE, bottom + 1.55), (CENTRE, total - 0.15))
    ax.annotate("+", (CENTRE, total), ha="center", va="center", fontsize=13, zorder=4)
    ax.plot([CENTRE], [total], "o", markersize=17, markerfacecolor="white", markeredgecolor="black", zorder=3)
    _arrow(ax, (CENTRE, total + 0.15), (CENTRE, bottom + 2.66))
    side = bottom + 0.4
    ax.plot([CENTRE, ROAD, ROAD], [side, side, total], color=SKIP, linewidth=3.2, solid_joinstyle="round", zorder=1)
    _arrow(ax, (ROAD + 0.004, total), (CENTRE + 0.037, total), SKIP, 3.2)
    ax.text(ROAD + 0.03, (side + total) / 2, "times " + beta, color=SKIP, va="center", fontsize=12)


def _matrix(ax, y, name, shape):
    ax.text(CENTRE, y, name, ha="center", va="center", fontsize=14)
    ax.text(CENTRE - 0.09, y, shape, ha="right", va="center", fontsize=10.5, color=FAINT)


def _box(ax, y, name, colour, formula):
    outline = FancyBboxPatch((CENTRE - 0.25, y), 0.5, 0.8, boxstyle="round,pad=0,rounding_size=0.03", zorder=2)
    outline.set(facecolor="white", edgecolor=colour, linewidth=2.0, mutation_aspect=7)
    ax.add_patch(outline)
    ax.text(CENTRE, y + 0.54, name, ha="center", va="center", fontsize=12, color=colour, zorder=3)
    ax.text(CENTRE, y + 0.22, formula, ha="center", va="center", fontsize=12, zorder=3)


def _arrow(ax, start, end, colour="black", width=1.6):
    arrow = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, shrinkA=0, shrinkB=0)
    arrow.set(color=colour, linewidth=width, zorder=2)
    ax.add_patch(arrow)
