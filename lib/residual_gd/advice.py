"""What would help a refused certificate (chapter 5)."""

import numpy as np

from .hypotheses import HEAD_ONLY, applies, uses_margin
from .network_majorants import network_majorants
from .obstructions import equal_rows


def advice(form, problem, bounds, ties, X) -> tuple[str, ...]:
    """Why the certificate fails and what would help, the most decisive reason first.

    form, problem, bounds: as in ``hypotheses``. ties: the obstructions of the inputs X (P, n, d).
    """
    start, tf = problem.start, problem.start.transformer
    if ties:
        return (f"{ties[0]}: their outputs are equal for all parameters; remove one or the other",)
    if not applies(form, tf):
        return (
            f"{tf.activation.name} has no bounded second derivative: use the Lipschitz form, or a smooth activation",
        )
    if form in HEAD_ONLY and start.rows > tf.d:
        wide = f"the smooth form with m >= {start.rows} and W_U of full column rank, or the kernel form"
        return (
            f"N = {start.rows} rows exceed d = {tf.d} features: take a wider d >= {start.rows}, fewer rows, or {wide}",
        )
    if form == "closed-lipschitz" and start.weights[-1] > 0:
        return ("the corollary needs W_U = 0: start there, or use the Lipschitz form",)
    reasons = []
    repeated = equal_rows(X)
    if repeated:
        copies = sum(len(group) - 1 for group in repeated)
        reasons.append(
            f"{copies} of {start.rows} rows of X repeat an earlier one (rows {repeated[0][0]} and {repeated[0][1]} are "
            "equal), as when windows overlap: the stacked X has no full row rank; remove equal rows"
        )
    return tuple(reasons + _about_the_bounds(form, problem, bounds))


def _about_the_bounds(form, problem, bounds):
    start, tf = problem.start, problem.start.transformer
    if uses_margin(form, tf) and not bounds.margin_holds:
        return [
            "a pre-activation may change its sign on the ball: scale the target down, or use the Lipschitz form, which "
            "needs no margin"
        ]
    if form == "kernel" and problem.sigma_J[0] <= 0:
        return ["J has no full row rank at the start: more parameters than outputs, and start away from zero matrices"]
    at_start = network_majorants(start, 0.0)
    ranks = start.sigma_min_H > 0 or (form not in HEAD_ONLY and start.sigma_min_A * start.sigma_c_head > 0)
    if form != "kernel" and not ranks and not (form not in HEAD_ONLY and start.sigma_min_Z * start.sigma_c_rows > 0):
        return [
            f"neither the features H_0 ({start.rows} x {tf.d}) nor A_0 ({start.rows} x {tf.m}) with the head give a "
            "positive alpha: d >= N with inputs of full row rank, or m >= N with W_U of full column rank"
        ]
    trunk = float(start.weights[-1]) * float(np.linalg.norm(at_start.h1))
    if form == "lipschitz" and trunk >= start.sigma_min_H:
        return [
            f"the head is too large: ||W_U|| ||h1|| = {trunk:.3g} at the start, and it must stay below sigma_min(H_0) "
            f"= {start.sigma_min_H:.3g}: a smaller W_U (0 is best), or the smooth form"
        ]
    return [
        f"the target is too far: ||R_0|| = {problem.residual_norm:.3g}; scale Y - F_0 down (largest_certified_residual "
        "tells how far), make the branches W_V, W_2 smaller, take a wider d, or train first and certify the tail"
    ]
