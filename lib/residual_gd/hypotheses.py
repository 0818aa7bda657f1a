"""The hypotheses of each form of the rate theorem, with what was measured and what was needed (chapter 5)."""

import math
from dataclasses import dataclass

import numpy as np

from .closed_forms import CLOSED_FORMS
from .network_majorants import network_majorants

COMPARE = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
HEAD_ONLY = ("lipschitz", *CLOSED_FORMS)


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a theorem: ``measured`` must be <sense> ``needed``; the sense is ">", ">=", "<" or "<="."""

    name: str
    measured: float
    sense: str
    needed: float

    @property
    def holds(self) -> bool:
        """Whether it holds; a nan, which could not be evaluated, does not."""
        return bool(COMPARE[self.sense](self.measured, self.needed))

    @property
    def margin(self) -> float:
        """How far the hypothesis is from failing: negative if it fails, nan if it could not be evaluated."""
        if self.measured == self.needed:
            return 0.0
        return self.measured - self.needed if self.sense[0] == ">" else self.needed - self.measured


def applies(form, transformer) -> bool:
    """Whether the form can be evaluated for this activation: smooth, or ReLU with its margin, or a Lipschitz form."""
    return transformer.activation.smooth or form in ("lipschitz", "closed-lipschitz") or uses_margin(form, transformer)


def uses_margin(form, transformer) -> bool:
    """Whether the form stands on ReLU's margin (prop-relu-margin)."""
    return form in ("descent", "smooth") and transformer.activation.name == "relu"


def hypotheses(form, problem, ties, bounds, condition) -> tuple[Hypothesis, ...]:
    """Every hypothesis of ``form`` for a ``Problem``, at the ``bounds`` that the search found.

    ties: how many obstructions the inputs have. condition: the largest ||R_0|| of a closed form. ``bounds`` is None
    where the form does not apply to the activation.
    """
    start, tf = problem.start, problem.start.transformer
    found = [Hypothesis("no two tokens or samples alike", ties, "<=", 0)]
    if uses_margin(form, tf):
        found.append(_margin(start, bounds.rho))
    elif form not in ("lipschitz", "closed-lipschitz"):
        found.append(Hypothesis("phi'' is bounded", tf.activation.b_phi, "<", math.inf))
    if form in HEAD_ONLY:
        found.append(Hypothesis("rows N <= features d", start.rows, "<=", tf.d))
    if form == "closed-lipschitz":
        found.append(Hypothesis("the head is 0: ||W_U|| = 0", float(start.weights[-1]), "<=", 0.0))
    if bounds is None:
        return tuple(found)
    if form in CLOSED_FORMS:
        found.append(Hypothesis("sigma_min(H_0) > 0", start.sigma_min_H, ">", 0.0))
        found.append(Hypothesis("||R_0|| <= sigma^2/(8 Lambda)", problem.residual_norm, "<=", condition))
        return tuple(found)
    found.append(Hypothesis("alpha > 0 on the ball", bounds.alpha, ">", 0.0))
    if form != "descent":
        found.append(Hypothesis("alpha > omega", bounds.alpha, ">", bounds.omega))
    names = tf.blocks if form != "kernel" else ("the ball",)
    for name, rho, needed in zip(names, bounds.rho, bounds.needed, strict=False):
        found.append(Hypothesis(f"radius of {name}", float(rho), ">=", float(needed)))
    return tuple(found)


def _margin(start, rho):
    """ReLU's margin in the layer where it is tightest."""
    at = network_majorants(start, rho, margin=True)
    moves = [float(layer.E.first @ rho) for layer in at.layers]
    margins = [layer.margin for layer in start.layers]
    tightest = int(np.argmin(np.subtract(margins, moves)))
    return Hypothesis("margin: min |E| > e1 . rho", margins[tightest], ">", moves[tightest])
