"""Certified instances of the rate theorems, and gradient descent held against them step by step."""

import math
from dataclasses import dataclass

import numpy as np

from ..certificates import Certificate, certify, largest_certified_residual
from ..network_majorants import measure
from ..samples import half_square, stack
from ..transformer import forward, forward_unchecked, pullback
from .base import at_most
from .instances import SMOOTH, Instance, network

STEPS = 20


def start(draw, *, activations=SMOOTH, deep=False, head=True, **options) -> Instance:
    """A small network with a wide input, small branches, and a head that is zero or of any size up to one.

    The targets are F_0 plus a direction of norm one: random, or the one that the features reach worst.
    """
    scales = {name: draw.scale(0.05, 1.0) for name in ("W_Q", "W_K", "W_1")}
    scales |= {name: draw.scale(0.003, 0.1) for name in ("W_V", "W_2")}
    scales["W_U"] = draw.choice((0.0, draw.scale(0.001, 1.0))) if head else 0.0
    options = {"beta": draw.real(0.5, 1.5), "P": draw.integer(1, 2), "n": draw.integer(1, 3)} | options
    options["scales"] = scales | options.get("scales", {})
    deep = deep and draw.choice((False, True))
    at = network(draw, activations=activations, wide="d" not in options, largest=5, deep=deep, **options)
    values = forward(*at.parts[:3])
    direction = at.Y
    if draw.choice((False, True)):
        worst = np.linalg.svd(stack(values.H))[0][:, -1]
        direction = (worst[:, None] * draw.normal(1, at.transformer.c)).reshape(at.Y.shape)
    return Instance(*at.parts[:3], values.F + direction / np.linalg.norm(direction))


def with_residual(at, norm) -> Instance:
    """The same with Y - F_0 scaled to this Frobenius norm."""
    F = forward(*at.parts[:3]).F
    return Instance(*at.parts[:3], F + norm * (at.Y - F) / np.linalg.norm(at.Y - F))


def certified(at, form, tau=1.0, *, rtol=1.0) -> Certificate | None:
    """The certificate of the largest ||R_0|| that passes, at most ``rtol`` too small; None if none above 1e-8 does.

    Its target is as far as the theorem allows: the hostile end of the basin.
    """
    measured = measure(*at.parts[:3])
    found = largest_certified_residual(*at.parts, form=form, tau=tau, start=measured, rtol=rtol)
    if found.residual_norm < 1e-8:
        return None
    return certify(*at.parts[:3], found.targets, form=form, tau=tau, start=measured)


def tau_for(draw, form):
    """A fraction of the step that the form allows."""
    return draw.real(0.05, 1.95) if form == "descent" else draw.real(0.1, 1.0)


@dataclass(frozen=True)
class Path:
    """Gradient descent: loss (K + 1,), distances (K + 1, B) of the blocks from the start, total length of the path."""

    loss: np.ndarray
    distances: np.ndarray
    length: float


def follow(at, step, steps=STEPS, *, wanted=None) -> Path:
    """Run gradient descent and measure the path, which a trace does not hold. wanted: train these blocks only."""
    tf, theta, X, Y = at.parts
    first, losses, distances, length = theta, [], [], 0.0
    # a control may overflow on purpose
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(steps + 1):
            values = forward_unchecked(tf, theta, X)
            losses.append(float(half_square(values.F - Y)))
            distances.append([float(np.linalg.norm(theta[b] - first[b])) for b in tf.blocks])
            if k == steps or not math.isfinite(losses[-1]):
                break
            slope = pullback(tf, theta, values, values.F - Y)
            moves = {b: step * slope[b] if wanted is None or b in wanted else 0.0 * slope[b] for b in tf.blocks}
            length += math.sqrt(sum(float(np.sum(move**2)) for move in moves.values()))
            theta = {b: theta[b] - moves[b] for b in tf.blocks}
    return Path(np.array(losses), np.array(distances), length)


def rounding(certificate) -> float:
    """The size of ||R|| below which rounding decides: nothing is compared there."""
    at = certificate.start
    size = certificate.target_norm + at.layers[-1].H.stacked * (at.weights[-1] + certificate.radii["W_U"])
    return 1e-11 * float(size)


def log_rate_ratio(loss, rate, noise=0.0) -> float:
    """Largest over k >= 1 of certified / observed logarithm of Phi_k / Phi_0: above 1 exactly if Phi_k > rate^k Phi_0.

    noise: the size of ||R|| below which nothing is compared; rounding moves ||R|| by about 1e-4 of it (``rounding``).
    """
    worst, R = 0.0, np.sqrt(2.0 * np.asarray(loss))
    for k in range(1, len(R)):
        if R[k] <= noise:
            break
        slack = 1e-12 + 2e-4 * noise / R[k] + 2e-4 * noise / R[0]
        observed = 2.0 * math.log(R[k] / R[0]) - slack if math.isfinite(R[k]) else math.inf
        worst = max(worst, k * math.log(rate) / observed if observed < 0 else math.inf)
    return worst


def certified_path(certificate, steps=STEPS) -> Path:
    """``follow`` with the certificate's step."""
    at = Instance(certificate.transformer, certificate.parameters, certificate.X, certificate.Y)
    return follow(at, certificate.step, steps)


def compare(certificate, steps=STEPS, *, path_bound=None, run=None):
    """The comparisons of a certified run: loss under the envelope, blocks inside their radii, length of the path."""
    run = certified_path(certificate, steps) if run is None else run
    noise = rounding(certificate)
    found = [at_most(log_rate_ratio(run.loss, certificate.rate, noise), 1.0, "certified / observed log-rate")]
    radii = np.array(list(certificate.radii.values()))
    if certificate.euclidean:
        moved, radii = np.linalg.norm(run.distances, axis=1, keepdims=True), radii[:1]
    else:
        moved = run.distances
    outside = np.max(moved, axis=0) - 1e-3 * noise
    shares = [d / r if r > 0 else (math.inf if d > 0 else 0.0) for d, r in zip(outside, radii, strict=True)]
    found.append(at_most(max(shares), 1.0, "distance of a block / its radius"))
    if path_bound is not None:
        found.append(at_most(run.length, path_bound, "length of the path", atol=noise))
    return tuple(found)


def nothing():
    """The comparison of an instance that no certificate covers."""
    return at_most(0.0, 1.0, "not certified")
