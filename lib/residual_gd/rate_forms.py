"""The right-hand sides of the rate theorems, and the fixed point that the radii must be (chapter 5).

A rate theorem fixes radii rho, bounds everything on Ball(rho), and needs rho_b >= rhs_b(rho) for every block: the
ball must be large enough for the whole path that the bounds allow. ``FORMS[form](start, residual_norm, tau, rho)``
evaluates one theorem at given radii; ``smallest_radii`` looks for radii that satisfy it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from .network_majorants import Start, network_majorants
from .pl_inequality import alpha_on_ball
from .validation import require

MAX_ITERATIONS = 200
SLACK = 1e-6  # how far the iteration oversteps, so that it ends below its own right-hand side
EPS = float(np.finfo(float).eps)
OVERFLOW = (FloatingPointError, OverflowError, np.linalg.LinAlgError)  # LinAlgError: an infinite matrix entry


@dataclass(frozen=True)
class Bounds:
    """One theorem evaluated at radii ``rho`` (B,).

    alpha: J J^T (for the Lipschitz form H H^T) >= alpha on the ball. omega: the perturbation. gap = alpha - omega.
    smoothness: M, the bound of the Hessian, of the descent form only. step: mu. needed: (B,) what each radius must be
    at least, infinite where gap <= 0. rate: guaranteed factor of Phi per step; asymptotic_rate: what it
    tends to as R_k -> 0, less than ``rate`` only in the smooth and the kernel form (their perturbation shrinks too).
    margin_holds: with ReLU's margin, whether no pre-activation changes its sign on the ball; True without it.
    """

    rho: np.ndarray
    alpha: float
    omega: float
    step: float
    needed: np.ndarray
    rate: float
    asymptotic_rate: float
    smoothness: float = math.nan
    margin_holds: bool = True

    @property
    def gap(self) -> float:
        """delta = alpha - omega."""
        return self.alpha - self.omega

    @property
    def sound(self) -> bool:
        """True if the hypotheses of the theorem hold at these radii."""
        return bool(self.gap > 0 and self.margin_holds and np.all(self.needed <= self.rho))


@dataclass(frozen=True)
class Problem:
    """What a theorem needs to know of a start: its norms, ||R_0||_F, tau, and for the kernel form sigma(J_0).

    sigma_J: (the Nc-th, the first) singular value of J at theta_0. margin: use ReLU's margin in place of smoothness.
    """

    start: Start
    residual_norm: float
    tau: float
    sigma_J: tuple[float, float] | None = None
    margin: bool = False


def descent(problem, rho) -> Bounds:
    """thm-rate-descent at these radii: mu = tau / M, factor 1 - (2 - tau) mu alpha."""
    at = network_majorants(problem.start, rho, margin=problem.margin)
    if problem.margin and not at.margin_holds:
        return _margin_lost(rho)
    R, eta = problem.residual_norm, 2.0 - problem.tau
    alpha = alpha_on_ball(problem.start, at)
    M = at.smoothness(R)
    step = _divide(problem.tau, M)
    if alpha <= 0:
        return _no_gap(rho, alpha, 0.0, step, M)
    root = math.sqrt(alpha)
    needed = np.minimum(1.0, at.f1 / root) * (2.0 * R / (eta * root))
    rate = 1.0 - eta * step * alpha
    return Bounds(rho, alpha, 0.0, step, needed, rate, rate, smoothness=M)


def smooth(problem, rho) -> Bounds:
    """thm-rate-smooth at these radii: mu = tau / ||f1||^2, factor (1 - mu (alpha - omega))^2."""
    at = network_majorants(problem.start, rho, margin=problem.margin)
    if problem.margin and not at.margin_holds:
        return _margin_lost(rho)
    f1 = at.f1
    square = float(f1 @ f1)
    alpha = alpha_on_ball(problem.start, at)
    step = _divide(problem.tau, square)
    omega = 0.5 * problem.tau * problem.residual_norm * float(f1 @ at.f2 @ f1) / square if square > 0 else 0.0
    return _recursion(problem, rho, alpha, omega, step, moves=f1, contracting=np.full(len(rho), True))


def lipschitz(problem, rho) -> Bounds:
    """thm-rate-lipschitz at these radii: mu = tau / h^2, omega = w_U^2 ||h1||^2; only the head contracts."""
    at = network_majorants(problem.start, rho)
    h, w_U = at.H.norm, float(problem.start.weights[-1] + rho[-1])
    alpha = alpha_on_ball(problem.start, at, terms=("W_U",))
    step = _divide(problem.tau, h**2)
    moves = w_U * at.h1
    omega = float(moves @ moves)
    moves[-1] = h
    bounds = _recursion(problem, rho, alpha, omega, step, moves=moves, contracting=np.arange(len(rho)) == len(rho) - 1)
    return replace(bounds, asymptotic_rate=bounds.rate)  # omega does not shrink with the residual


def kernel(problem, rho) -> Bounds:
    """thm-rate-kernel on the Euclidean ball of radius r = rho_b, the same for all blocks."""
    at = network_majorants(problem.start, rho)
    r, (least, largest), l_2 = float(rho[0]), problem.sigma_J, at.jacobian_lipschitz
    alpha = max(0.0, least - l_2 * r) ** 2
    norm = largest + l_2 * r
    step = _divide(problem.tau, norm**2)
    omega = 0.5 * problem.tau * l_2 * problem.residual_norm
    return _recursion(
        problem, rho, alpha, omega, step, moves=np.full(len(rho), np.inf), contracting=np.full(len(rho), True)
    )


FORMS = {"descent": descent, "smooth": smooth, "lipschitz": lipschitz, "kernel": kernel}


def _recursion(problem, rho, alpha, omega, step, moves, contracting):
    """The radii and the factor of lem-master: blocks of ``contracting`` move along A^T r, the others by m_b at most."""
    if alpha - omega <= 0:
        return _no_gap(rho, alpha, omega, step)
    path = math.sqrt(alpha) / (1.0 - 0.5 * problem.tau)
    moves = np.where(contracting, np.minimum(moves, path), moves)
    needed = moves * (problem.residual_norm / (alpha - omega))
    return Bounds(rho, alpha, omega, step, needed, (1.0 - step * (alpha - omega)) ** 2, (1.0 - step * alpha) ** 2)


def _divide(tau, square):
    """tau / square, infinite where the square is 0 or has underflowed."""
    return tau / square if square > 0 else math.inf


def _no_gap(rho, alpha, omega, step, smoothness=math.nan):
    """The bounds where alpha <= omega: no radius is large enough."""
    return Bounds(rho, alpha, omega, step, np.full(len(rho), np.inf), math.nan, math.nan, smoothness)


def _margin_lost(rho):
    """The bounds where a pre-activation may change its sign on the ball."""
    return replace(_no_gap(rho, math.nan, math.nan, math.nan), margin_holds=False)


def smallest_radii(right_hand_side, blocks, *, max_iterations=MAX_ITERATIONS) -> Bounds:
    """The bounds at the least radii with rhs(rho) <= rho, or at the radii where the search failed.

    Iterates rho <- max(rho, (1 + 1e-6) rhs(rho)) from 0. It ends when rhs(rho) <= rho, which the returned bounds
    themselves verify (``Bounds.sound``: the iteration is never trusted), when the gap closes, when the majorants
    overflow, or after ``max_iterations``; ValueError if they overflow at rho = 0.
    Where rhs is monotone the radii are the least solution for rhs times that factor; if there is none, the search
    fails, although rhs itself may have one.
    Source: prop-certificate-sound.
    """
    rho, bounds = np.zeros(blocks), None
    for _ in range(max_iterations):
        try:
            with np.errstate(over="raise"):
                bounds = right_hand_side(rho)
        except OVERFLOW:  # the radii have run away
            require(bounds is not None, "parameters", "norms whose products stay finite", "an overflow at the start")
            return bounds
        if bounds.sound or not np.all(np.isfinite(bounds.needed)):
            return bounds
        rho = np.maximum(rho, (1.0 + SLACK) * bounds.needed)
    return bounds


def less_rounding(start) -> Start:
    """The same start with every least singular value lowered by the error that rounding may have put into it.

    Without this a singular value that is 0 would be certified as 1e-16.
    """
    last, tf = start.layers[-1], start.transformer

    def lower(sigma, norm, columns):
        return max(0.0, sigma - 4.0 * EPS * max(start.rows, columns) * norm)

    return replace(
        start,
        sigma_min_H=lower(start.sigma_min_H, last.H.stacked, tf.d),
        sigma_min_A=lower(start.sigma_min_A, last.A.stacked, tf.m),
        sigma_min_Z=lower(start.sigma_min_Z, last.Z.stacked, tf.d),
        sigma_c_head=lower(start.sigma_c_head, float(start.weights[-1]), tf.d),
        sigma_c_rows=lower(start.sigma_c_rows, tf.activation.l_phi * start.omega_norm, tf.m),
    )
