"""Statements of chapter 5: the rate theorems. Their corollaries are in ``rate_corollaries.py``."""

import math
from dataclasses import replace

import numpy as np

from ..activations import activation
from ..certificates import certify
from ..descent import descend
from ..parameters import initialize
from ..transformer import Transformer, forward
from .base import Control, Draw, at_most, statement
from .certified import (
    STEPS,
    certified,
    certified_path,
    compare,
    follow,
    nothing,
    rounding,
    start,
    tau_for,
    with_residual,
)
from .instances import SMOOTH, Instance, climb

SIZES = {"P": 1, "n": 2, "d": 2, "d_k": 1, "m": 2, "c": 1}


def steepest(form, activations, rng, *, scales=None, rounds=25):
    """Climb over the start and the direction of Y towards the largest certified / observed log-rate.

    The residual is a thousandth of what the first start certifies, where the theorems lose least.
    """
    at = start(Draw(rng), activations=activations, head=False, scales=scales or {}, **SIZES)
    shapes = {b: W.shape for b, W in at.parameters.items()}
    ends = np.cumsum([math.prod(s) for s in shapes.values()])
    norm = certified(at, form).residual_norm * 1e-3

    def outcome(z):
        pieces = np.split(np.asarray(z), ends)
        blocks = {b: p.reshape(s) for (b, s), p in zip(shapes.items(), pieces, strict=False)}
        blocks["W_U"] = at.parameters["W_U"]
        there = Instance(
            at.transformer, blocks, at.X, forward(at.transformer, blocks, at.X).F + pieces[-1].reshape(at.Y.shape)
        )
        found = certify(*with_residual(there, norm).parts, form=form)
        return compare(found, 20)[0] if found.holds else nothing()

    z = np.concatenate([at.parameters[b].ravel() for b in shapes] + [at.Y.ravel()])
    return outcome(climb(lambda z: outcome(z).ratio, z, rng, steps=rounds, spread=0.3)[0])


@statement(
    "thm-rate-descent",
    kind="theorem",
    title="Linear rate, descent form",
    chapter="rate",
    hypotheses=(
        "phi with bounded phi''",
        "alpha > 0 on Ball(rho)",
        "mu = tau / M, 0 < tau < 2",
        "rho_b >= min(1, f1_b / sqrt(alpha)) 2 ||R_0|| / ((2 - tau) sqrt(alpha))",
    ),
)
def rate_descent(draw):
    tau = tau_for(draw, "descent")
    found = certified(start(draw, deep=True), "descent", tau)
    if found is None:
        return nothing()
    return compare(found, path_bound=2.0 * found.residual_norm / ((2.0 - tau) * math.sqrt(found.alpha)))


@rate_descent.ascent
def _(rng):
    return steepest("descent", ("gelu",), rng)


@rate_descent.control
def _(rng):
    # one row and a zero head: M is the curvature along W_U, and 2.5 / M is too long
    at = start(Draw(rng), head=False, P=1, n=1, d=2, d_k=1, m=1, c=1, beta=1.0)
    found = certify(*with_residual(at, 1e-4).parts, form="descent")
    run = follow(with_residual(at, 1e-4), 2.5 / found.smoothness, 10)
    return Control("the step 2.5 / M, after 10 steps", run.loss[-1] / run.loss[0], 1.0, "Phi_k / Phi_0")


@statement(
    "thm-rate-smooth",
    kind="theorem",
    title="Linear rate, smooth form",
    chapter="rate",
    hypotheses=(
        "phi with bounded phi''",
        "alpha > omega = mu/2 ||R_0|| f1^T f2 f1 on Ball(rho)",
        "mu = tau / ||f1||^2, 0 < tau <= 1",
        "rho_b >= min(f1_b, sqrt(alpha) / (1 - tau/2)) ||R_0|| / (alpha - omega)",
    ),
)
def rate_smooth(draw):
    tau = tau_for(draw, "smooth")
    if draw.choice((False, False, False, True)):
        # more rows than features: the wide feed-forward matrix W_2 carries the rate
        sizes = {"P": 1, "n": 3, "d": 2, "m": 12, "c": 1}
        at = start(draw, scales={"W_1": 3.0, "W_U": 1.0}, **sizes)
    else:
        at = start(draw, deep=True)
    found = certified(at, "smooth", tau)
    if found is None:
        return nothing()
    path = math.sqrt(found.alpha) * found.residual_norm / ((1.0 - 0.5 * tau) * found.gap)
    run = certified_path(found)
    return (*compare(found, path_bound=path, run=run), recursion(found, run))


def recursion(certificate, run):
    """||R_{k+1}|| <= (1 - mu alpha + mu omega ||R_k|| / ||R_0||) ||R_k|| at every step."""
    R = np.sqrt(2.0 * run.loss)
    mu = certificate.step
    factor = 1.0 - mu * certificate.alpha + mu * certificate.omega * R[:-1] / R[0]
    above = R[1:] - factor * R[:-1] - 1e-3 * rounding(certificate)
    return at_most(float(np.max(above / R[0])), 0.0, "||R_{k+1}|| beyond the recursion", atol=1e-12)


@rate_smooth.ascent
def _(rng):
    return steepest("smooth", ("gelu",), rng)


@rate_smooth.control
def _(rng):
    # the step and the rate of a certified target, and a target 30,000 times as far
    at = start(Draw(rng), activations=("gelu",), head=False, beta=1.0, **SIZES)
    found = certified(at, "smooth")
    run = follow(with_residual(at, 3e4 * found.residual_norm), found.step)
    return left_behind("a target 30,000 times the certified one", run, found.rate)


def left_behind(dropped, run, rate):
    """A control: log of Phi_k / Phi_0 at the last step against the envelope's, both over the number of steps."""
    k = len(run.loss) - 1
    end = run.loss[-1] / run.loss[0] if math.isfinite(run.loss[-1]) else math.inf
    return Control(f"{dropped}, after {k} steps", end, rate**k, "Phi_k / Phi_0")


@statement(
    "thm-rate-lipschitz",
    kind="theorem",
    title="Linear rate, Lipschitz form",
    chapter="rate",
    hypotheses=(
        "phi Lipschitz (ReLU)",
        "N <= d, alpha = (sigma_min(H_0) - h1 . rho)_+^2 > omega = w_U^2 ||h1||^2",
        "mu = tau / h^2, 0 < tau <= 1",
        "rho_U >= min(h, sqrt(alpha) / (1 - tau/2)) ||R_0|| / delta, rho_b >= w_U h1_b ||R_0|| / delta",
    ),
)
def rate_lipschitz(draw):
    at = start(
        draw, activations=("relu", *SMOOTH), deep=True, scales={"W_U": draw.choice((0.0, draw.scale(1e-4, 0.1)))}
    )
    found = certified(at, "lipschitz", tau_for(draw, "lipschitz"))
    return nothing() if found is None else compare(found)


@rate_lipschitz.ascent
def _(rng):
    return steepest("lipschitz", ("relu",), rng)


@rate_lipschitz.control
def _(rng):
    # a head of norm 30: the trunk moves much faster than the head, and the step is too long for it
    at = start(Draw(rng), activations=("relu",), beta=1.0, scales={"W_U": 0.0}, **SIZES)
    found = certified(at, "lipschitz")
    head = np.array([[30.0], [0.0]])
    at = Instance(at.transformer, at.parameters | {"W_U": head}, at.X, at.Y)
    run = follow(with_residual(at, found.residual_norm), found.step)
    return left_behind("a head of norm 30, ||W_U|| ||h1|| > sigma_min(H_0)", run, found.rate)


@statement(
    "thm-rate-kernel",
    kind="theorem",
    title="Linear rate, kernel form",
    chapter="rate",
    hypotheses=(
        "phi with bounded phi''",
        "alpha = (sigma_- - l_2 r)_+^2 > omega = tau/2 l_2 ||R_0||",
        "mu = tau / (sigma_+ + l_2 r)^2, 0 < tau <= 1",
        "r >= sqrt(alpha) ||R_0|| / ((1 - tau/2) (alpha - omega))",
    ),
    starred=True,
)
def rate_kernel(draw):
    scales = {name: draw.scale(0.1, 1.0) for name in ("W_Q", "W_K", "W_V", "W_1", "W_2", "W_U")}
    sizes = {"P": 1, "n": draw.integer(1, 3), "d": draw.integer(1, 4), "c": draw.integer(1, 2), "m": draw.integer(3, 6)}
    tau = tau_for(draw, "kernel")
    found = certified(start(draw, scales=scales, **sizes), "kernel", tau)
    if found is None:
        return nothing()
    return compare(found, path_bound=math.sqrt(found.alpha) * found.residual_norm / ((1.0 - 0.5 * tau) * found.gap))


@rate_kernel.ascent
def _(rng):
    return steepest("kernel", ("gelu",), rng)


@rate_kernel.control
def _(rng):
    # two equal tokens with different targets: sigma_- = 0, and a positive alpha in its place promises too much
    at = start(Draw(rng), activations=("gelu",), beta=1.0, P=1, n=2, d=2, d_k=1, m=4, c=1)
    X = np.stack([at.X[0, 0], at.X[0, 0]])[None]
    F = forward(at.transformer, at.parameters, X).F
    Y = F + 1e-4 * np.array([1.0, -1.0]).reshape(1, 2, 1)
    H = forward(at.transformer, at.parameters, X).H[0]
    step = 1.0 / np.linalg.norm(H, 2) ** 2
    run = follow(Instance(at.transformer, at.parameters, X, Y), 0.1 * step, 40)
    return left_behind("sigma_- = 0: two equal tokens, mu alpha = 0.1 taken all the same", run, (1.0 - 0.1) ** 2)


@statement(
    "prop-relu-margin",
    kind="proposition",
    title="ReLU with a margin",
    chapter="rate",
    hypotheses=(
        "phi = ReLU",
        "min |E_0| > e1 . rho in every layer",
        "those of the descent or smooth form with b_phi = 0",
    ),
    starred=True,
)
def relu_margin(draw):
    form = draw.choice(("descent", "smooth"))
    found = certified(start(draw, activations=("relu",), deep=True), form, tau_for(draw, form))
    if found is None:
        return nothing()
    return (*compare(found), _signs_kept(found))


def _signs_kept(certificate):
    """How many pre-activations change their sign between the start and the end of the run: none."""
    at = Instance(certificate.transformer, certificate.parameters, certificate.X, certificate.Y)
    end = last_parameters(at, certificate.step, STEPS)
    before, after = (forward(at.transformer, theta, at.X) for theta in (at.parameters, end))
    changed = sum(int(np.sum(np.sign(a.E) != np.sign(b.E))) for a, b in zip(before.layers, after.layers, strict=True))
    return at_most(changed, 0.0, "pre-activations that changed their sign")


def last_parameters(at, step, steps):
    """Where gradient descent stands after ``steps``."""
    return descend(*at.parts, steps=steps, step=step, trace_every=steps, spectra=False).parameters


@relu_margin.ascent
def _(rng):
    return steepest("smooth", ("relu",), rng)


@relu_margin.control
def _(rng):
    # one unit, barely alive, no feed-forward skip; a target below zero switches it off, and nothing moves any more
    dead_end = replace(activation("relu"), name="relu, margin ignored", b_phi=0.0)
    transformer = Transformer(d=1, d_k=1, m=1, c=1, activation=dead_end, beta_attention=1.0, beta_ffn=0.0)
    parameters = initialize(transformer, rng, W_Q=0.0, W_K=0.0, W_V=0.0) | {
        "W_1": np.array([[0.001]]),
        "W_2": np.array([[1.0]]),
        "W_U": np.array([[1.0]]),
    }
    at = Instance(transformer, parameters, np.ones((1, 1, 1)), np.array([[[-0.01]]]))
    found = certify(*at.parts, form="smooth")
    run = follow(at, found.step, 100)
    return left_behind("the margin ignored, E_0 = 0.001", run, found.rate)
