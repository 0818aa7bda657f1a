"""Statements of chapter 3 on the network: explicit constants, and what they say of H, J and the Hessian."""

import math
from dataclasses import replace

import numpy as np

from ..activations import activation
from ..jacobian import jacobian, jacobian_blocks
from ..majorants import softmax_constants, sym
from ..network_majorants import measure, network_majorants
from ..parameters import initialize
from ..transformer import Transformer, forward_unchecked, gradient
from . import lipschitz_softmax  # noqa: F401  (it registers first, in the order of the chapter)

# isort: split
from . import lipschitz_rules  # noqa: F401  (it registers next)
from .balls import Case
from .base import Control, at_most, equal, statement
from .instances import SMOOTH, Instance, climb, network


def layer_constants(start, radii):
    """(h1, h2, f1, f2, h1 by entries) as written out in prop-layer-constants; radii (6,), i_b: unit vectors."""
    network, layer, rho = start.transformer, start.layers[0], np.asarray(radii)
    w_Q, w_K, w_V, w_1, w_2, w_U = start.weights + rho
    i_Q, i_K, i_V, i_1, i_2, i_U = np.eye(6)
    x, x_hat = start.X.stacked, start.X.sample
    l_phi, b_phi = network.activation.l_phi, network.activation.b_phi
    beta_A, beta_F = network.beta_attention, network.beta_ffn
    g1 = x * x_hat / math.sqrt(network.d_k) * (w_K * i_Q + w_Q * i_K)
    g2 = x * x_hat / math.sqrt(network.d_k) * sym(i_Q, i_K)
    s_max = min(1.0, layer.largest_weight[0] * math.exp(min(700.0, math.sqrt(2.0) * g1 @ rho)))
    gamma, c_2 = softmax_constants(s_max)
    s1, s2 = gamma * g1, c_2 * np.outer(g1, g1) + gamma * g2
    s_hat = min(math.sqrt(start.tokens), layer.S[0].sample + s1 @ rho)
    a_X = min(s_hat * x, layer.ST[0].stacked + x_hat * s1 @ rho)
    z1 = w_V * x_hat * s1 + a_X * i_V
    z2 = w_V * x_hat * s2 + x_hat * sym(s1, i_V)
    z = min(beta_A * x + a_X * w_V, layer.Z.stacked + z1 @ rho)
    e1 = w_1 * z1 + z * i_1
    e2 = w_1 * z2 + sym(z1, i_1)
    a1, a2 = l_phi * e1, b_phi * np.outer(e1, e1) + l_phi * e2
    a = layer.A.stacked + a1 @ rho
    h1 = w_2 * a1 + a * i_2 + beta_F * z1
    h2 = w_2 * a2 + sym(a1, i_2) + beta_F * z2
    h = min(w_2 * a + beta_F * z, layer.H.stacked + h1 @ rho)
    gain, cube = l_phi * w_1 * w_2 + beta_F, gamma * w_V * x * x_hat**2 / math.sqrt(network.d_k)
    entries = np.array([gain * cube * w_K, gain * cube * w_Q, gain * a_X, l_phi * z * w_2, a, 0.0])
    return h1, h2, w_U * h1 + h * i_U, w_U * h2 + sym(h1, i_U), entries


def _ball(instance, radii):
    """The ball around the instance's parameters (as the case of F) and the majorants on it."""
    transformer, parameters, X, _ = instance.parts
    bound = network_majorants(measure(transformer, parameters, X), radii)
    return Case(lambda at: forward_unchecked(transformer, at, X).F, bound.F, parameters, radii), bound


def _case(instance, radii, name):
    """The features ("H") or the output ("F") with their majorant on the ball."""
    transformer, parameters, X, _ = instance.parts
    bound = getattr(_ball(instance, radii)[1], name)
    return Case(lambda at: getattr(forward_unchecked(transformer, at, X), name), bound, parameters, radii)


def _radii(draw, instance):
    return np.array([draw.scale(1e-3, 1.0) for _ in instance.transformer.blocks])


def worst_network(rng):
    """A network at which the constants h1_Q and f1_Q are attained as the radii shrink, with these radii.

    Two opposite tokens and W_Q = 0: both rows of attention are (1/2, 1/2) and W_Q moves them along (1, -1). One column
    everywhere, pre-activations 0, where the slope of tanh is largest.
    """
    transformer = Transformer(d=1, d_k=1, m=1, c=1, activation="tanh", beta_attention=0.0, beta_ffn=rng.uniform(0, 1.5))
    parameters = {block: np.array([[rng.uniform(0.5, 2.0)]]) for block in transformer.blocks} | {
        "W_Q": np.zeros((1, 1))
    }
    x = rng.uniform(0.5, 2.0)
    return Instance(transformer, parameters, np.array([[[x], [-x]]]), np.zeros((1, 2, 1))), np.full(6, 1e-3)


@statement(
    "prop-layer-constants",
    kind="proposition",
    title="Constants of one layer",
    chapter="lipschitz",
    hypotheses=(
        "one layer, one head",
        "a_X, z, a, h bound the norms of S X, Z, A, H on Ball(rho)",
        "second order: phi with bounded second derivative",
    ),
    sharp=True,
)
def written_out(draw):
    instance = network(draw)
    radii = _radii(draw, instance)
    transformer, parameters, X, _ = instance.parts
    start = measure(transformer, parameters, X)
    composed = network_majorants(start, radii)
    explicit = layer_constants(start, radii)
    names = ("h1", "h2", "f1", "f2", "h1")
    identities = [equal(e, getattr(composed, name), name) for name, e in zip(names, explicit, strict=True)]
    return *identities, *_case(instance, radii, "H").random(draw), *_case(instance, radii, "F").random(draw)


@written_out.ascent
def _(rng):
    return _case(*worst_network(rng), "F").ascend(rng)


@written_out.control
def _(rng):
    # ||J_2|| = ||A|| for W_U = 1; here Z W_1 = E and phi(E) has a larger spectral norm than E
    E = np.array([[1.0, -1.0], [1.0, 1.0]])
    transformer = Transformer(d=2, d_k=1, m=2, c=2, activation="relu", beta=1.0)
    parameters = initialize(transformer, rng, W_V=0.0) | {"W_1": np.eye(2), "W_U": np.eye(2)}
    measured = np.linalg.norm(jacobian_blocks(transformer, parameters, E[None])["W_2"], 2)
    wrong = transformer.activation.l_phi * np.linalg.norm(E, 2)
    return Control("a = l_phi ||Z W_1||, spectral norms", measured, wrong, "norm of J_2")


def _jacobian_bounds(instance, bound, at):
    """Norms of the blocks of J and of J at the point ``at`` of the ball, against f1."""
    blocks = jacobian_blocks(instance.transformer, at, instance.X)
    found = [at_most(np.linalg.norm(blocks[b], 2), f, f"block {b}") for b, f in zip(blocks, bound.f1, strict=True)]
    return *found, at_most(np.linalg.norm(np.concatenate(list(blocks.values()), axis=1), 2), bound.jacobian_norm, "J")


@statement(
    "cor-jacobian-bound",
    kind="corollary",
    title="Bound of the Jacobian",
    chapter="lipschitz",
    hypotheses=("theta in Ball(rho)", "phi differentiable along the ball, or any selection |phi'| <= l_phi"),
    sharp=True,
)
def jacobian_bound(draw):
    # the bound holds for whatever slopes backpropagation takes
    any_slopes = replace(activation("relu"), derivative=lambda E: np.cos(1e4 * E))
    instance = network(draw, deep=True, activations=(*SMOOTH, "relu", any_slopes))
    ball, bound = _ball(instance, _radii(draw, instance))
    return _jacobian_bounds(instance, bound, ball.parallelogram(draw.normal(ball.free), 0.01)[0][0])


@jacobian_bound.ascent
def _(rng):
    instance, radii = worst_network(rng)
    ball, bound = _ball(instance, radii)

    def bounds(z):
        # all blocks but the head's, whose bound is attained by construction
        return _jacobian_bounds(instance, bound, ball.parallelogram(z, 0.01)[0][0])[:5]

    z, _ = climb(lambda z: max(c.ratio for c in bounds(z)), rng.standard_normal(ball.free), rng, steps=60)
    return bounds(z)


@jacobian_bound.control
def _(rng):
    instance, radii = worst_network(rng)
    far = {block: W + 10.0 for block, W in instance.parameters.items()}
    outside = _jacobian_bounds(instance, _ball(instance, radii)[1], far)[-1]
    return Control("a point outside the ball", outside.measured, outside.bound, "norm of J")


@statement(
    "cor-feature-drift",
    kind="corollary",
    title="Feature drift",
    chapter="lipschitz",
    hypotheses=("theta and theta_0 in Ball(rho)", "phi Lipschitz (ReLU included)"),
    sharp=True,
)
def feature_drift(draw):
    instance = network(draw, deep=True, activations=(*SMOOTH, "relu"))
    return _case(instance, _radii(draw, instance), "H").random(draw)


@feature_drift.ascent
def _(rng):
    return _case(*worst_network(rng), "H").ascend(rng)


@feature_drift.control
def _(rng):
    transformer = Transformer(d=1, d_k=1, m=1, c=1, activation="gelu", beta=1.0)
    parameters, far = ({block: np.full((1, 1), w) for block in transformer.blocks} for w in (0.3, 3.0))
    case = _case(Instance(transformer, parameters, np.ones((1, 1, 1)), np.zeros((1, 1, 1))), np.full(6, 1e-3), "H")
    measured = np.linalg.norm(case.value(far) - case.value(parameters))
    return Control("theta outside the ball", measured, case.bound.first @ np.full(6, 2.7), "movement of H")


def _jacobian_drift(instance, bound, ball, z, share):
    """||J(theta + D) - J(theta)|| against lambda_max(f2) ||D||."""
    points, Delta, _ = ball.parallelogram(z, share)
    before, after = (jacobian(instance.transformer, at, instance.X) for at in points[:2])
    moved = np.linalg.norm(after - before, 2)
    return at_most(moved, bound.jacobian_lipschitz * np.linalg.norm(Delta), "movement of J", rtol=1e-6)


@statement(
    "cor-jacobian-lipschitz",
    kind="corollary",
    title="The Jacobian is Lipschitz",
    chapter="lipschitz",
    hypotheses=("theta, theta' in Ball(rho)", "phi with bounded second derivative"),
)
def jacobian_lipschitz(draw):
    instance = network(draw, deep=True, largest=3)
    ball, bound = _ball(instance, _radii(draw, instance))
    return _jacobian_drift(instance, bound, ball, draw.normal(ball.free), draw.real(0.01, 1.0 / 3.0))


@jacobian_lipschitz.ascent
def _(rng):
    instance, radii = worst_network(rng)
    ball, bound = _ball(instance, radii)

    def drift(z):
        return _jacobian_drift(instance, bound, ball, z, 0.1)

    z, _ = climb(lambda z: drift(z).ratio, rng.standard_normal(ball.free), rng, steps=150)
    return drift(z)


@jacobian_lipschitz.control
def _(rng):
    # one token, its pre-activation is W_1: in the ball around W_1 = 0 it goes from below 0 to above 0
    transformer = Transformer(d=1, d_k=1, m=1, c=1, activation=replace(activation("relu"), b_phi=0.0), beta=1.0)
    center = {block: np.ones((1, 1)) for block in transformer.blocks} | dict.fromkeys(("W_V", "W_1"), np.zeros((1, 1)))
    before, after = ({**center, "W_1": np.array([[w]])} for w in (-1e-4, 1e-4))
    X = np.ones((1, 1, 1))
    constant = network_majorants(measure(transformer, center, X), 0.1).jacobian_lipschitz
    measured = np.linalg.norm(jacobian(transformer, after, X) - jacobian(transformer, before, X), 2)
    return Control("ReLU with b_phi = 0, across a kink", measured, constant * 2e-4, "change of J")


def hessian(transformer, parameters, X, Y, step=1e-5):
    """Hessian of Phi (D, D) by central differences of the gradient, all shifts as one batch of runs."""
    shapes = {block: W.shape for block, W in parameters.items()}
    theta = np.concatenate([W.ravel() for W in parameters.values()])
    shifts = step * np.concatenate([np.eye(theta.size), -np.eye(theta.size)])
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
    runs = {
        block: part.reshape(-1, *shape)
        for (block, shape), part in zip(shapes.items(), np.split(theta + shifts, ends, axis=1), strict=True)
    }
    copies = np.broadcast_to(X, (len(shifts), *X.shape)), np.broadcast_to(Y, (len(shifts), *Y.shape))
    slopes = [g.reshape(len(shifts), -1) for g in gradient(transformer, runs, *copies).values()]
    forth, back = np.split(np.concatenate(slopes, axis=1), 2)
    return (forth - back) / (2.0 * step)


def _hessian_bound(instance, bound, at, Y):
    transformer, X = instance.transformer, instance.X
    residual = np.linalg.norm(forward_unchecked(transformer, at, X).F - Y)
    measured = np.linalg.norm(hessian(transformer, at, X, Y), 2)
    return at_most(measured, bound.smoothness(residual), "norm of the Hessian", rtol=1e-5)


@statement(
    "cor-hessian-bound",
    kind="corollary",
    title="Bound of the Hessian",
    chapter="lipschitz",
    hypotheses=("theta in Ball(rho)", "phi with bounded second derivative", "a bound of ||R||_F at theta"),
)
def hessian_bound(draw):
    instance = network(draw, deep=True, largest=3)
    ball, bound = _ball(instance, _radii(draw, instance))
    point = ball.parallelogram(draw.normal(ball.free), 0.01)[0][0]
    return _hessian_bound(instance, bound, point, draw.scale(0.1, 100.0) * instance.Y)


@hessian_bound.ascent
def _(rng):
    instance, radii = worst_network(rng)
    ball, bound = _ball(instance, radii)

    def compare(z):
        # a point of the ball and targets for the two tokens
        point = ball.parallelogram(z[:-2], 0.01)[0][0]
        return _hessian_bound(instance, bound, point, 3.0 * z[-2:].reshape(1, 2, 1))

    z, _ = climb(lambda z: compare(z).ratio, rng.standard_normal(ball.free + 2), rng, steps=150)
    return compare(z)


@hessian_bound.control
def _(rng):
    transformer = Transformer(d=1, d_k=1, m=1, c=1, activation="gelu", beta=1.0)
    parameters = {block: np.full((1, 1), 0.3) for block in transformer.blocks}
    X, Y = np.ones((1, 1, 1)), np.full((1, 1, 1), 100.0)
    bound = network_majorants(measure(transformer, parameters, X), 1e-3).jacobian_norm ** 2
    measured = np.linalg.norm(hessian(transformer, parameters, X, Y), 2)
    return Control("without the residual's term, ||R|| = 100", measured, bound, "norm")
