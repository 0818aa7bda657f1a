"""One style for all figures: colours that stay apart in print, in dark mode and for colour-blind readers."""

import contextlib

import matplotlib.pyplot as plt
from cycler import cycler

# Okabe and Ito's palette without its yellow
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MEASURED, PROVED, FAILS, FAINT = "#0072B2", "#D55E00", "#B00020", "#767676"
MARKS = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)))

RC = {
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "font.size": 10.5,
    "lines.linewidth": 1.8,
    "mathtext.fontset": "cm",
    "svg.hashsalt": "residual-gd",
}


@contextlib.contextmanager
def style():
    """Context in which figures of the book are drawn; the reader's own settings are left alone."""
    with plt.rc_context(RC):
        yield


def subplots(rows=1, columns=1, *, width=None, height=3.6, **options):
    """``plt.subplots`` with a constrained layout; width in inches (6.4 for one column, 9 for more)."""
    width = width or (6.4 if columns == 1 else 9.0)
    return plt.subplots(rows, columns, figsize=(width, height * rows), layout="constrained", **options)


def heat(k, of):
    """Colour k of ``of`` along an ordered scale (beta from 0 to 1), dark to bright, readable on white."""
    return plt.get_cmap("viridis")(0.9 * k / max(of - 1, 1))
