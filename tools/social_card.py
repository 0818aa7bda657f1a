"""Draw the picture that social networks show for the book: `python tools/social_card.py`, into assets/social-card.png.

The curves are those of the dichotomy in the chapter on rank: one start, certified with the skips, stuck without.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import yaml
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve
from matplotlib.transforms import Affine2D
from PIL import Image

from residual_gd.certificates import certify, largest_certified_residual
from residual_gd.certified_runs import run_certified
from residual_gd.descent import descend
from residual_gd.figures.style import FAILS, FAINT, PROVED, style
from residual_gd.parameters import initialize
from residual_gd.rank import uniform_loss_floor
from residual_gd.transformer import Transformer, forward

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "assets" / "social-card.png"
LARGEST = 100_000  # bytes
TEAL, OCHRE, INK = "#0b7285", "#d97706", "#1d2733"


def runs():
    """Steps, loss and envelope with both skips; loss without any; the floor; all over the loss at the start."""
    rng = np.random.default_rng(1)
    net = Transformer(d=64, d_k=4, m=32, c=3, beta=1.0)
    start = initialize(net, rng, W_Q=0, W_K=0, W_V=0.1, W_1=0.3, W_2=0.1, W_U=0.05)
    X, Y = rng.standard_normal((4, 4, 64)), rng.standard_normal((4, 4, 3))
    Y = 0.5 * (forward(net, start, X).F + largest_certified_residual(net, start, X, Y).targets)
    certificate = certify(net, start, X, Y, form="smooth")
    certified = run_certified(certificate)
    steps = min(201, len(certified.trace.loss))
    stuck = descend(net.with_beta(0.0), start, X, Y, steps=steps - 1, step=certificate.step, spectra=False)
    unit = certificate.loss
    floor = uniform_loss_floor(Y) / unit
    return (
        np.arange(steps),
        certified.trace.loss[:steps] / unit,
        certified.envelope[:steps] / unit,
        stuck.loss / unit,
        floor,
    )


def draw_logo(ax):
    """The book's mark: a path through a block, and the road around it (as assets/logo.svg)."""
    ax.set(xlim=(0, 96), ylim=(96, 0), aspect="equal")
    ax.axis("off")

    def path(points, colour):
        codes = [Curve.MOVETO] + [Curve.CURVE4] * (len(points) - 1)
        ax.add_patch(PathPatch(Curve(points, codes), fill=False, lw=5, ec=colour, capstyle="round"))

    path([(16, 80), (16, 34), (34, 16), (80, 16)], "#0f8a8a")
    path([(16, 80), (34, 76), (38, 66), (42, 58)], OCHRE)
    path([(58, 42), (66, 38), (76, 34), (80, 16)], OCHRE)
    turn = Affine2D().rotate_deg_around(50, 50, 45) + ax.transData
    ax.add_patch(FancyBboxPatch((41, 41), 18, 18, boxstyle="round,pad=2", fc=OCHRE, ec="none", transform=turn))
    ax.plot([16, 80], [80, 16], "o", ms=14, color="#0f8a8a")


def draw():
    """The picture as a figure of 1200 x 630 pixels."""
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]
    steps, loss, envelope, stuck, floor = runs()
    fig = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    draw_logo(fig.add_axes((0.05, 0.72, 0.105, 0.2)))
    serif = {"family": "STIXGeneral", "color": INK}
    first, second = title.split(" and ")
    fig.text(0.05, 0.60, f"{first}\nand {second.replace('Residual ', 'Residual' + chr(10))}", fontsize=40, va="top",
             linespacing=1.15, **serif)  # fmt: skip
    fig.text(0.05, 0.13, "An executable textbook: every statement\nproved, checked and broken on purpose", fontsize=19,
             va="bottom", linespacing=1.3, family="STIXGeneral", color=TEAL)  # fmt: skip
    ax = fig.add_axes((0.555, 0.16, 0.4, 0.74))
    ax.semilogy(steps, stuck, color=FAILS, lw=3.5)
    ax.axhline(floor, color=FAINT, ls=":", lw=2)
    ax.semilogy(steps, envelope, color=PROVED, ls="--", lw=2.5)
    ax.semilogy(steps, loss, color=TEAL, lw=3.5)
    ax.set(xlim=(0, steps[-1]), ylim=(loss[-1] / 3, floor * (floor / loss[-1]) ** 0.15), xticks=[], yticks=[])
    ax.minorticks_off()
    ax.grid(False)
    middle = len(steps) // 2
    ax.text(steps[-1], 3 * floor, "without the residual: stuck", color=FAILS, fontsize=21, ha="right", va="bottom")
    ax.text(1.06 * steps[middle], envelope[middle], "proved", color=PROVED, fontsize=21, va="bottom")
    ax.text(0.9 * steps[middle], loss[middle], "with it", color=TEAL, fontsize=21, ha="right", va="top")
    ax.set_xlabel("steps of gradient descent", fontsize=17, color=INK)
    ax.set_ylabel("loss", fontsize=17, color=INK)
    return fig


def main() -> int:
    with style(), plt.rc_context({"font.family": "STIXGeneral"}):
        picture = io.BytesIO()
        draw().savefig(picture, format="png", dpi=100, metadata={"Software": None})
    Image.open(picture).convert("RGB").quantize(64).save(PICTURE, optimize=True)
    size = PICTURE.stat().st_size
    print(f"{PICTURE.relative_to(ROOT)}: {size} bytes")
    return 0 if size <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
