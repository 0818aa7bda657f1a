"""The closed-form corollaries: one inequality in place of the fixed point (chapter 5).

Both return (bounds, largest): the bounds of the corollary, and the largest ||R_0||_F for which its one condition
||R_0||_F <= sigma^2 / (8 Lambda(r)) holds, with sigma = sigma_min(H_0); ``largest`` is -inf where sigma = 0.
"""

import math

import numpy as np

from .network_majorants import network_majorants
from .rate_forms import OVERFLOW, Bounds


def closed_descent(problem) -> tuple[Bounds, float]:
    """cor-closed-descent, on the Euclidean ball of radius r = 4 ||R_0|| / sigma: mu = 1 / M(r).

    The factor is 1 - mu sigma^2 / 4.
    """
    sigma, R = problem.start.sigma_min_H, problem.residual_norm
    if sigma**2 <= 0:  # 0, or so small that its square underflows
        return _none(problem)
    r = 4.0 * R / sigma
    at = network_majorants(problem.start, r)
    step, alpha = 1.0 / at.smoothness(R), 0.25 * sigma**2
    rate = 1.0 - step * alpha
    return Bounds(at.radii, alpha, 0.0, step, at.radii, rate, rate, smoothness=1.0 / step), _largest(sigma, at.Lambda)


def closed_lipschitz(problem) -> tuple[Bounds, float]:
    """cor-closed-lipschitz, for W_U = 0 with r = ||Y|| / sigma: mu = tau / (||H_0|| + sigma / 8)^2.

    The factor is (1 - 5/8 mu sigma^2)^2, the radii 2.8 r for W_U and 0.56 r h1_b / Lambda for the others.
    """
    sigma, R = problem.start.sigma_min_H, problem.residual_norm
    if sigma**2 <= 0:  # 0, or so small that its square underflows
        return _none(problem)
    r = R / sigma
    at = network_majorants(problem.start, r)
    radii = 0.56 * r * at.h1 / at.Lambda if at.Lambda > 0 else 0.0 * at.h1
    radii[-1] = 2.8 * r
    step = problem.tau / (problem.start.layers[-1].H.stacked + sigma / 8.0) ** 2
    alpha, omega = 49.0 / 64.0 * sigma**2, 9.0 / 64.0 * sigma**2
    rate = (1.0 - step * (alpha - omega)) ** 2
    return Bounds(radii, alpha, omega, step, radii, rate, rate), _largest(sigma, at.Lambda)


def _refusing_overflow(form):
    """The form; where its majorants overflow, Lambda counts as infinite: no residual is small enough."""

    def guarded(problem):
        try:
            with np.errstate(over="raise"):
                return form(problem)
        except OVERFLOW:
            return _none(problem)[0], 0.0

    return guarded


CLOSED_FORMS = {
    "closed-descent": _refusing_overflow(closed_descent),
    "closed-lipschitz": _refusing_overflow(closed_lipschitz),
}


def _largest(sigma, Lambda):
    return sigma**2 / (8.0 * Lambda) if Lambda > 0 else math.inf


def _none(problem):
    nothing = np.full(len(problem.start.weights), math.inf)
    return Bounds(np.zeros_like(nothing), 0.0, 0.0, math.nan, nothing, math.nan, math.nan), -math.inf
