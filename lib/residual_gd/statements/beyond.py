"""Statements of chapter 9: the rate theorem for L layers and n_h heads, and depth at the start."""

import numpy as np

from ..beyond import depth_conditioning
from ..certificates import certify
from ..descent import descend
from ..parameters import initialize
from ..samples import stack
from ..transformer import Transformer, forward_unchecked
from .base import Control, at_least, at_most, statement
from .certified import certified, compare, nothing, start, tau_for
from .instances import SMOOTH, climb, network

FORMS = ("descent", "smooth", "lipschitz", "kernel")


@statement(
    "thm-rate-deep",
    kind="theorem",
    title="Rate theorem, L layers and n_h heads",
    chapter="beyond",
    hypotheses=(
        "those of the form that is used, with majorants composed over all layers",
        "alpha from the head and the last layer's W_2 and W_1 (prop-pl-on-ball), or from J_0 (kernel form)",
    ),
)
def rate_deep(draw):
    form = draw.choice(FORMS)
    layers, heads = draw.choice(((1, 2), (2, 1), (2, 2), (3, 2)))
    activations = ("relu", *SMOOTH) if form == "lipschitz" else SMOOTH
    at = start(draw, activations=activations, head=form != "lipschitz", layers=layers, heads=heads)
    found = certified(at, form, tau_for(draw, form))
    return nothing() if found is None else compare(found)


@rate_deep.ascent
def _(rng):
    """Small branches, a head that starts at 0, and a small residual in the weakest direction of H_0."""
    layers, heads = (int(v) for v in rng.integers(1, 4, size=2))
    transformer = Transformer(d=8, d_k=3, m=6, c=2, layers=layers, heads=heads)
    parameters = initialize(transformer, rng, "zero-head", W_V=0.004, W_2=0.004)
    X = rng.standard_normal((2, 3, 8))
    slowest = np.linalg.svd(stack(forward_unchecked(transformer, parameters, X).H))[0][:, -1]
    Y = 1e-4 * np.outer(slowest, rng.standard_normal(2)).reshape(2, 3, 2)
    return compare(certify(transformer, parameters, X, Y, "smooth", float(rng.uniform(0.3, 1.0))))


@rate_deep.control
def _(rng):
    """The second layer alone is certified, on the first one's output taken as data; then both are trained."""
    scales = {"W_Q": 0.0, "W_K": 1.0, "W_V": 1.0, "W_1": 0.1, "W_2": 0.02, "W_U": 0.5}
    transformer = Transformer(d=8, d_k=4, m=8, c=2, layers=2)
    parameters = initialize(transformer, rng, "gaussian", **scales)
    parameters["W_K.1.1"] = 300.0 * parameters["W_K.1.1"]
    parameters["W_V.2.1"] = 0.02 * parameters["W_V.2.1"]
    X = rng.standard_normal((1, 4, 8))
    last = Transformer(d=8, d_k=4, m=8, c=2)
    names = {"W_1": "W_1.2", "W_2": "W_2.2", "W_U": "W_U"} | {b: f"{b}.2.1" for b in ("W_Q", "W_K", "W_V")}
    frozen = {block: parameters[name] for block, name in names.items()}
    values = forward_unchecked(transformer, parameters, X)
    Y = values.F + 1e-5 * rng.standard_normal(values.F.shape)
    certificate = certify(last, frozen, values.layers[1].T, Y)
    steps = 10
    trace = descend(transformer, parameters, X, Y, steps=steps, step=certificate.step, spectra=False)
    where = f"the drift of the first layer left out of a two-layer certificate, after {steps} steps"
    return Control(where, trace.loss[-1], float(certificate.envelope(steps)), "loss")


@statement(
    "lem-depth-conditioning",
    kind="lemma",
    title="Depth and the conditioning at the start",
    chapter="beyond",
    hypotheses=("beta_A = beta_F = 1", "phi(0) = 0"),
    sharp=True,
    starred=True,
)
def conditioning(draw):
    scales = {block: draw.scale(0.01, 1.0) for block in ("W_V", "W_1", "W_2")}
    layers, heads = draw.integer(1, 4), draw.integer(1, 3)
    activations = ("gelu", "tanh", "smooth_relu", "relu")
    at = network(draw, activations=activations, wide=True, scales=scales, layers=layers, heads=heads, beta=1.0)
    found = depth_conditioning(at.transformer, at.parameters, at.X)
    rounding = 1e-13 * np.linalg.norm(at.X)
    return (
        at_most(found.drift, found.drift_bound, "||H_0 - X||_F", atol=rounding),
        at_least(found.sigma_min_H, found.sigma_min_bound, "sigma_min(H_0)", atol=rounding),
    )


@conditioning.ascent
def _(rng):
    """One token, one or two ReLU layers: climbs to branches that all point along the token."""
    layers = int(rng.integers(1, 3))
    transformer = Transformer(d=2 if layers == 1 else 1, d_k=1, m=2, c=1, activation="relu", layers=layers)
    X = rng.standard_normal((1, 1, transformer.d))
    moving = [block for block in transformer.blocks if block.split(".")[0] in ("W_V", "W_1", "W_2")]

    def drift(z):
        parameters = {block: np.zeros(shape) for block, shape in transformer.shapes.items()}
        pieces = np.split(z, np.cumsum([np.prod(transformer.shapes[b]) for b in moving])[:-1])
        for block, piece in zip(moving, pieces, strict=True):
            parameters[block] = piece.reshape(transformer.shapes[block])
        found = depth_conditioning(transformer, parameters, X)
        return at_most(found.drift, found.drift_bound, "||H_0 - X||_F")

    size = sum(int(np.prod(transformer.shapes[b])) for b in moving)
    z, _ = climb(lambda z: drift(z).ratio, rng.standard_normal(size), rng, steps=800)
    return drift(z)


@conditioning.control
def _(rng):
    """softplus(0) = log 2: with W_1 = W_V = 0, so t = 0, the branch still adds phi(0) 1 1^T W_2."""
    transformer = Transformer(d=4, d_k=2, m=3, c=1, activation="softplus", layers=2)
    parameters = initialize(transformer, rng, W_V=0.0, W_1=0.0)
    X = rng.standard_normal((1, 3, 4))
    H = forward_unchecked(transformer, parameters, X).H
    return Control("phi(0) = log 2 (softplus) and W_1 = W_V = 0, so t = 0", np.linalg.norm(H - X), 0.0, "||H_0 - X||_F")
