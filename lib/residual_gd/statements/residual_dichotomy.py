"""Statements of chapter 6 about training and depth: the loss floor, the dichotomy, collapse with depth."""

import numpy as np

from ..certificates import certify
from ..depth import (
    collapse_bounds,
    collapse_coefficients,
    doubly_exponential_bound,
    one_step_collapse,
    pure_attention,
    token_spread,
)
from ..descent import descend
from ..matrices import sigma_max
from ..parameters import initialize
from ..rank import loss_floor, near_uniform_bound, oscillation, spread, token_lipschitz, uniform_loss_floor
from ..samples import multiply, stack
from ..transformer import Transformer, forward, gradient, loss
from .base import Control, Draw, at_least, at_most, statement
from .instances import climb, network

UNIFORM = {"W_Q": 0.0, "W_K": 0.0}


@statement(
    "prop-loss-floor",
    kind="proposition",
    title="Loss floor",
    chapter="rank",
    hypotheses=("phi is l_phi-Lipschitz", "beta_A = 0 (for the bound of C Z and the uniform floor)"),
    sharp=True,
)
def floor_of_loss(draw):
    scales = {name: draw.scale(0.02, 1.0) for name in ("W_V", "W_1", "W_2", "W_U")} | {"W_K": draw.choice((0.0, 1.0))}
    chosen = {"activations": ("gelu", "tanh", "softplus", "relu"), "scales": scales, "beta_ffn": draw.real(0.0, 1.5)}
    at = network(draw, beta_attention=draw.choice((0.0, 0.5)), **chosen)
    values, phi = forward(at.transformer, at.parameters, at.X), loss(*at.parts)
    found = [at_least(phi, loss_floor(*at.parts), "Phi")]
    if at.transformer.beta_attention == 0.0:
        bound = near_uniform_bound(oscillation(values.G)) * value_norms(at)
        excess = np.max(spread(values.Z) - bound)
        found.append(at_most(excess, 0.0, "||C Z_p||_F over its bound", atol=1e-12 * np.linalg.norm(values.Z)))
        if scales["W_K"] == 0.0:
            found.append(at_least(phi, uniform_loss_floor(at.Y), "Phi with uniform attention"))
    return found


def value_norms(at):
    """||C X_p W_V|| of every sample: (P,)."""
    V = multiply(at.X, at.parameters["W_V"])
    return sigma_max(V - np.mean(V, axis=-2, keepdims=True))


@floor_of_loss.ascent
def _(rng):
    # uniform attention, and the head that fits the means of the targets: the floor is reached
    at = network(Draw(rng), P=2, n=3, d=8, beta_attention=0.0, scales=UNIFORM)
    H = stack(forward(at.transformer, at.parameters, at.X).H)
    head = np.linalg.pinv(H, rcond=1e-10) @ stack(at.Y)
    phi = loss(at.transformer, at.parameters | {"W_U": head}, at.X, at.Y)
    return at_least(phi, uniform_loss_floor(at.Y), "Phi of the best head")


@floor_of_loss.control
def _(rng):
    at = network(Draw(rng), P=2, n=3, d=8, beta=1.0, scales=UNIFORM | {"W_2": 0.1})
    H = stack(forward(at.transformer, at.parameters, at.X).H)
    head = np.linalg.pinv(H) @ stack(at.Y)
    phi = loss(at.transformer, at.parameters | {"W_U": head}, at.X, at.Y)
    return Control("beta_A = 1, the best head", uniform_loss_floor(at.Y), round(float(phi), 12), "floor against Phi:")


def uniform_start(draw, *, small, **betas):
    """An instance with W_Q = W_K = 0; ``small`` branches and targets near F_0, as the rate theorems ask for."""
    branches = dict.fromkeys(("W_V", "W_2", "W_U"), 0.05) | {"W_1": 0.3}
    at = network(draw, P=2, n=2, d=12, m=6, c=2, scales=UNIFORM | branches if small else UNIFORM, **betas)
    if small:
        at.Y[:] = forward(at.transformer, at.parameters, at.X).F + draw.scale(1e-4, 1e-2) * at.Y
    return at


@statement(
    "thm-dichotomy",
    kind="theorem",
    title="Dichotomy",
    chapter="rank",
    hypotheses=(
        "W_Q = W_K = 0 at the start",
        "any step sizes",
        "beta_A > 0: the hypotheses of a rate theorem at the start",
    ),
    sharp=True,
)
def dichotomy(draw):
    without = uniform_start(draw, small=False, beta_attention=0.0, beta_ffn=draw.real(0.0, 1.5))
    moved, lowest = _with_any_steps(draw, without)
    found = [
        at_most(moved, 0.0, "distance moved by W_Q and W_K"),
        at_least(lowest, uniform_loss_floor(without.Y), "lowest Phi_k without the skip"),
    ]
    coefficients = {name: draw.choice((0.9, 1.0, 1.1)) for name in ("beta_attention", "beta_ffn")}
    both = uniform_start(draw, small=True, **coefficients)
    certificate = certify(*both.parts, form=draw.choice(("smooth", "lipschitz", "descent")))
    found.append(at_most(int(not certificate.holds), 0, "certificates refused with the skip"))
    if certificate.holds:
        trace = descend(*both.parts, steps=20, step=certificate.step, spectra=False)
        over = np.max(trace.loss / certificate.envelope(trace.iterations))
        alone = both.transformer.with_beta(beta_attention=0.0, beta_ffn=draw.choice((0.0, both.transformer.beta_ffn)))
        refused = certify(alone, *both.parts[1:], form=certificate.form)
        found += [
            at_most(over, 1.0, "Phi_k over the certified envelope with the skip"),
            at_most(int(refused.holds), 0, "certificates granted without the skip"),
        ]
    return found


def _with_any_steps(draw, at, steps=20):
    """How far W_Q and W_K move, and the least loss, when every step and block has a step size of its own."""
    parameters, losses = at.parameters, [loss(*at.parts)]
    for _ in range(steps):
        slopes = gradient(at.transformer, parameters, at.X, at.Y)
        parameters = {name: W - draw.scale(1e-3, 1.0) * slopes[name] for name, W in parameters.items()}
        with np.errstate(over="ignore", invalid="ignore"):
            phi = loss(at.transformer, parameters, at.X, at.Y)
        if not phi < 1e12:  # it diverges, and soon overflows
            break
        losses.append(phi)
    return sum(np.linalg.norm(parameters[name] - at.parameters[name]) for name in UNIFORM), min(losses)


@dichotomy.ascent
def _(rng):
    # gradient descent goes down to the floor: it is the infimum that this start can reach
    at = network(Draw(rng), P=2, n=3, d=12, m=6, c=2, beta_attention=0.0, beta_ffn=1.0, scales=UNIFORM)
    near = 1.005 * uniform_loss_floor(at.Y)
    trace = descend(*at.parts, steps=2000, step=5e-3, spectra=False, trace_every=100, stop_below=near)
    return at_least(trace.loss.min(), uniform_loss_floor(at.Y), "lowest Phi_k without the skip")


@dichotomy.control
def _(rng):
    transformer = Transformer(d=12, d_k=2, m=6, c=2, beta_attention=0.0, beta_ffn=1.0)
    parameters = initialize(transformer, rng, W_Q=0.0)
    X, Y = rng.standard_normal((1, 3, 12)), rng.standard_normal((1, 3, 2))
    limits = {"steps": 2000, "trace_every": 100, "stop_below": 1e-7}
    trace = descend(transformer, parameters, X, Y, step=2e-2, spectra=False, **limits)
    dropped = "W_Q = 0 but W_K not, beta_A = 0"
    return Control(dropped, uniform_loss_floor(Y), round(float(trace.loss[-1]), 6), "floor against the last Phi_k:")


@statement(
    "prop-depth-collapse",
    kind="proposition",
    title="Depth without the skip",
    chapter="rank",
    hypotheses=("beta_A = 0 in every layer",),
    sharp=True,
)
def depth_collapse(draw):
    scales = {name: draw.scale(0.1, 2.0) for name in ("W_Q", "W_K", "W_V", "W_1", "W_2")}
    at = network(draw, deep=True, beta_attention=0.0, beta_ffn=draw.choice((0.0, 1.0)), scales=scales)
    spreads, a = _spreads(at), collapse_coefficients(at.transformer, at.parameters)
    # what is left below this is rounding, not spread
    rounding = 1e-13 * np.max([1.0, *_sizes(at)])
    upper = np.maximum(collapse_bounds(at.transformer, at.parameters, spreads)[1], rounding)
    layers = range(1, at.transformer.layers + 1)
    largest = max(token_lipschitz(at.transformer, at.parameters, l) * a[l - 1] for l in layers)
    deep = np.maximum(doubly_exponential_bound(largest, spreads[0].max(), len(layers)), rounding)
    pairs = zip(spreads[1:].ravel(), upper.ravel(), strict=True)
    found = [at_most(s, bound, "||C T_l||_F") for s, bound in pairs]
    for s, bound in zip(spreads, deep, strict=True):
        found.append(at_most(s.max(), bound, "||C T_l||_F from the start"))
    return found


def _spreads(at):
    return token_spread(at.transformer, at.parameters, at.X)


def _sizes(at):
    return [np.linalg.norm(layer.H) for layer in forward(at.transformer, at.parameters, at.X).layers]


def _two_tokens(g, beta):
    """One layer of attention on two tokens in the plane; the first two numbers of g place the difference."""
    transformer = Transformer(d=2, d_k=1, m=1, c=1, beta_attention=beta, beta_ffn=1.0)
    W_Q, W_K, W_V = g[2:4, None], g[4:6, None], g[6:10].reshape(2, 2)
    zero = np.zeros((2, 1))
    parameters = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_1": zero, "W_2": zero.T, "W_U": zero}
    e = 0.05 * g[:2] / np.linalg.norm(g[:2])
    return transformer, parameters, np.array([[e, -e]])


@depth_collapse.ascent
def _(rng):
    def comparison(g):
        parts = _two_tokens(g, 0.0)
        spreads = token_spread(*parts)
        return at_most(spreads[1, 0], collapse_bounds(*parts[:2], spreads)[1][0, 0], "||C T_1||_F", atol=1e-15)

    best, _ = climb(lambda g: comparison(g).ratio, rng.standard_normal(10), rng, steps=250)
    return comparison(best)


@depth_collapse.control
def _(rng):
    transformer = Transformer(d=4, d_k=2, m=1, c=1, beta_attention=1.0, beta_ffn=1.0)
    parameters, X = pure_attention(transformer, rng), 0.3 * rng.standard_normal((1, 3, 4))
    spreads, a = token_spread(transformer, parameters, X), collapse_coefficients(transformer, parameters)
    return Control("beta_A = 1", spreads[1, 0], a[0] * spreads[0, 0] ** 3, "||C T_1||_F")


@statement(
    "prop-depth-residual",
    kind="proposition",
    title="Depth with the skip",
    chapter="rank",
    hypotheses=(
        "attention alone: W_2 = 0, beta_F = 1",
        "beta_A > 0",
        "for the geometric bound: a_l ||C T_(l-1)||_F^2 <= beta_A / 2 in every layer,"
        " or beta_A <= 2/3 and max_l a_l ||C X||_F^2 <= beta_A / 2",
    ),
    sharp=True,
)
def depth_residual(draw):
    beta = draw.real(0.05, 1.5)
    scales = {"W_2": 0.0} | {name: draw.scale(0.05, 1.0) for name in ("W_Q", "W_K", "W_V")}
    at = network(draw, deep=True, beta_attention=beta, beta_ffn=1.0, scales=scales)
    spreads, a = _spreads(at), collapse_coefficients(at.transformer, at.parameters)
    rounding = 1e-13 * np.max([1.0, *_sizes(at)])
    lower, upper = collapse_bounds(at.transformer, at.parameters, spreads)
    found = [
        at_least(s, low, "||C T_l||_F", atol=rounding)
        for s, low in zip(spreads[1:].ravel(), lower.ravel(), strict=True)
    ]
    found += [
        at_most(s, up, "||C T_l||_F", atol=rounding) for s, up in zip(spreads[1:].ravel(), upper.ravel(), strict=True)
    ]
    steady = np.all(a[:, None] * spreads[:-1] ** 2 <= beta / 2, axis=0)
    inherited = (np.max(a) * spreads[0] ** 2 <= beta / 2) & (beta <= 2 / 3)
    for p in np.flatnonzero(steady | inherited):
        found.append(at_least(spreads[-1, p], (beta / 2) ** len(a) * spreads[0, p], "||C T_L||_F", atol=rounding))
    return found


@depth_residual.ascent
def _(rng):
    def comparison(g):
        parts = _two_tokens(g, 1.0)
        before, after = token_spread(*parts)[:, 0]
        cubic = collapse_coefficients(*parts[:2])[0] * before**3
        return at_most(before - after, cubic, "loss of spread beyond (1 - beta)", atol=1e-15)

    best, _ = climb(lambda g: comparison(g).ratio, rng.standard_normal(10), rng, steps=250)
    return comparison(best)


@depth_residual.control
def _(rng):
    parts = one_step_collapse(1.0, x=1.0 + rng.random())
    before, after = token_spread(*parts)[:, 0]
    dropped = "a ||C T_0||_F^2 above beta: tokens (x, -x), W_V = -beta / tanh(x^2)"
    return Control(dropped, before / 2, round(float(after), 12), "beta/2 ||C T_0||_F against ||C T_1||_F:")
