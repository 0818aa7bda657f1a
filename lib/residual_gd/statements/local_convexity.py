"""Statements of chapter 4: the PL inequality near the start, and why strong convexity cannot hold."""

import numpy as np

from ..gram import block_grams, gram
from ..jacobian import jvp
from ..pl_inequality import block_constants, projected_pl
from ..samples import stack
from ..transformer import forward, gradient, loss
from .base import Control, Draw, at_least, at_most, statement
from .instances import SMOOTH, Instance, climb, network


def least_eigenvalue(K):
    """lambda_min of a symmetric matrix."""
    return float(np.linalg.eigvalsh(K)[0])


@statement(
    "prop-not-strongly-convex",
    kind="proposition",
    title="The loss is not strongly convex where it is zero",
    chapter="local-convexity",
    hypotheses=(
        "1: R = 0, phi twice continuously differentiable, more parameters than outputs: D > N c",
        "2: R = 0 and (W_Q, W_K) != (0, 0), any phi",
        "3: phi differentiable, W_Q or W_K of rank d_k",
    ),
)
def not_strongly_convex(draw):
    at = network(draw, largest=4, n=draw.integer(2, 3), P=draw.integer(1, 2), d=draw.integer(2, 4), d_k=2)
    solution = Instance(*at.parts[:3], forward(*at.parts[:3]).F)
    direction, scale = flat_direction(solution, draw.rng)
    # Phi along the direction has no quadratic part: its second difference is of fourth order in the step
    curvature = abs(second_difference(solution, direction, 1e-4)) / scale
    moved, B = gauge_moves(draw)
    return (
        at_most(curvature, 1e-4, "1: curvature along a direction of ker J / ||J||^2"),
        at_most(_change(solution, moved), 1e-9, "2: change of F by (W_Q T, W_K T^-T)"),
        at_most(_drift(solution, B), 1e-9, "3: derivative of F along (W_Q B, -W_K B^T)"),
        at_least(_independence(at), 1e-9, "3: the d_k^2 directions are independent"),
    )


def gauge_moves(draw):
    """An invertible T (2, 2) away from the identity, and a direction B (2, 2)."""
    left, right = (np.linalg.qr(draw.normal(2, 2))[0] for _ in range(2))
    return left @ np.diag([draw.scale(0.3, 3.0), draw.scale(0.3, 3.0)]) @ right, draw.normal(2, 2)


def _change(at, T):
    """||F(W_Q T, W_K T^-T) - F(W_Q, W_K)|| over ||F||."""
    gauge = {"W_Q": at.parameters["W_Q"] @ T, "W_K": at.parameters["W_K"] @ np.linalg.inv(T).T}
    F = forward(at.transformer, at.parameters | gauge, at.X).F
    return float(np.linalg.norm(F - at.Y) / max(np.linalg.norm(at.Y), 1e-300))


def _drift(at, B):
    """||J V|| over the sum of what the two halves W_Q B and -W_K B^T of V do alone; 1e-12 ||F|| counts as rounding."""
    rest = {b: np.zeros_like(W) for b, W in at.parameters.items()}
    halves = ({"W_Q": at.parameters["W_Q"] @ B}, {"W_K": -at.parameters["W_K"] @ B.T})
    moves = [jvp(at.transformer, at.parameters, at.X, rest | half) for half in halves]
    size = sum(float(np.linalg.norm(move)) for move in moves)
    return float(np.linalg.norm(moves[0] + moves[1])) / (size + 1e-3 * float(np.linalg.norm(at.Y)) + 1e-300)


def _independence(at):
    """Least over largest singular value of B -> (W_Q B, -W_K B^T)."""
    W_Q, W_K = at.parameters["W_Q"], at.parameters["W_K"]
    columns = [np.concatenate([(W_Q @ B).ravel(), -(W_K @ B.T).ravel()]) for B in np.eye(4).reshape(4, 2, 2)]
    values = np.linalg.svd(np.array(columns), compute_uv=False)
    return float(values[-1] / values[0])


def flat_direction(at, rng):
    """A unit direction in the null space of J, and the largest curvature ||J||^2."""
    tf, parameters = at.transformer, at.parameters
    J = dense_jacobian(at)
    rank = int(np.sum(np.linalg.svd(J, compute_uv=False) > 0))
    kernel = np.linalg.svd(J, full_matrices=True)[2][rank:]
    flat = rng.standard_normal(len(kernel)) @ kernel
    flat = flat / np.linalg.norm(flat)
    ends = np.cumsum([parameters[b].size for b in tf.blocks])[:-1]
    pieces = np.split(flat, ends)
    blocks = {b: piece.reshape(parameters[b].shape) for b, piece in zip(tf.blocks, pieces, strict=True)}
    return blocks, float(np.linalg.norm(J, 2) ** 2)


def dense_jacobian(at):
    """J with rows vec F and columns the flattened blocks, one backward product a row (small networks only)."""
    F = forward(at.transformer, at.parameters, at.X).F
    rows = []
    for i in range(F.size):
        unit = np.zeros(F.size)
        unit[i] = 1.0
        # the gradient of Phi at targets F - e_i is J^T e_i
        blocks = gradient(at.transformer, at.parameters, at.X, F - unit.reshape(F.shape))
        rows.append(np.concatenate([blocks[b].ravel() for b in at.transformer.blocks]))
    return np.array(rows)


def second_difference(at, direction, step):
    """(Phi(theta + s v) - 2 Phi(theta) + Phi(theta - s v)) / s^2."""

    def phi(s):
        moved = {b: at.parameters[b] + s * direction[b] for b in at.parameters}
        return float(loss(at.transformer, moved, at.X, at.Y))

    return (phi(step) - 2.0 * phi(0.0) + phi(-step)) / step**2


@not_strongly_convex.control
def _(rng):
    # away from the zeros of Phi the Hessian has the term <R, D^2 F>, which does not vanish on ker J
    at = network(Draw(rng), P=1, n=2, d=3, d_k=2, m=3, c=1, beta=1.0, activations=("tanh",))
    direction, scale = flat_direction(at, rng)
    curvature = abs(second_difference(at, direction, 1e-4)) / scale
    return Control("R != 0", curvature, 1e-4, "curvature along a direction of ker J / ||J||^2")


@statement(
    "prop-block-grams",
    kind="proposition",
    title="Three blocks from singular values",
    chapter="local-convexity",
    hypotheses=("any theta", "for W_U and W_2 equalities; for W_1 a lower bound"),
)
def block_gram_constants(draw):
    at = network(draw, deep=True, activations=(*SMOOTH, "relu"), largest=6, P=draw.integer(1, 2), n=draw.integer(1, 3))
    tf, parameters, X = at.transformer, at.parameters, at.X
    constants = block_constants(tf, parameters, X)
    W_1, W_2 = tf.name("W_1", tf.layers), tf.name("W_2", tf.layers)
    grams = block_grams(tf, parameters, X, ("W_U", W_2, W_1))
    K, total = gram(tf, parameters, X), float(np.trace(sum(grams.values())))
    scale = max(total, 1e-300)
    values = {b: least_eigenvalue(grams[b]) for b in grams}
    R = stack(forward(tf, parameters, X).F - at.Y)
    g = gradient(tf, parameters, X, at.Y)
    square = sum(float(np.sum(block**2)) for block in g.values())
    return (
        at_most(abs(values["W_U"] - constants.W_U), 0.0, "W_U: difference from equality", atol=1e-12 * scale),
        at_most(abs(values[W_2] - constants.W_2), 0.0, "W_2: difference from equality", atol=1e-12 * scale),
        at_least(values[W_1], constants.W_1, "W_1", atol=1e-12 * scale),
        at_least(least_eigenvalue(K), constants.total, "lambda_min(J J^T)", atol=1e-12 * float(np.trace(K))),
        at_least(square, constants.total * float(np.sum(R**2)), "||grad Phi||^2", atol=1e-12 * square),
    )


@block_gram_constants.ascent
def _(rng):
    # one row: the bound of W_1 is then an equality up to the conditioning of Z, and the head alone gives the kernel
    draw = Draw(rng)
    at = network(draw, P=1, n=1, d=3, d_k=1, m=3, c=1, beta=1.0, activations=("tanh",))
    shapes = {b: W.shape for b, W in at.parameters.items()}
    ends = np.cumsum([int(np.prod(s)) for s in shapes.values()])[:-1]

    def ratio(z):
        parts = {b: p.reshape(s) for (b, s), p in zip(shapes.items(), np.split(np.asarray(z), ends), strict=True)}
        K = gram(at.transformer, parts, at.X)
        return block_constants(at.transformer, parts, at.X).total / max(float(K[0, 0]), 1e-12)

    z = np.concatenate([W.ravel() for W in at.parameters.values()])
    return at_most(climb(ratio, z, rng, steps=200)[1], 1.0, "constants / lambda_min(J J^T)")


@block_gram_constants.control
def _(rng):
    # sigma_min taken as the smallest of min(N, d) values instead of the N-th: N = 3 rows, d = 2 features
    at = network(Draw(rng), P=1, n=3, d=2, d_k=1, m=2, c=1, beta=1.0, activations=("tanh",), scales={"W_U": 0.0})
    K = gram(at.transformer, at.parameters, at.X)
    H = stack(forward(*at.parts[:3]).H)
    claimed = float(np.linalg.svd(H, compute_uv=False)[-1] ** 2)
    return Control(
        "the smallest singular value of H taken for the N-th, N = 3 > d = 2",
        claimed,
        max(least_eigenvalue(K), 0.0),
        "claimed lower bound of lambda_min(J J^T)",
    )


@statement(
    "prop-pl-projected",
    kind="proposition",
    title="PL modulo projection",
    chapter="local-convexity",
    hypotheses=("H != 0, of any rank",),
)
def pl_projected(draw):
    at = network(draw, activations=(*SMOOTH, "relu"), deep=True)
    tf, parameters, X, Y = at.parts
    H = stack(forward(tf, parameters, X).H)
    if np.linalg.norm(H) < 1e-6:  # the statement excludes H = 0
        return at_most(0.0, 1.0, "nothing to compare")
    found = projected_pl(H, stack(Y))
    g = gradient(tf, parameters, X, Y)
    square = sum(float(np.sum(block**2)) for block in g.values())
    phi = float(loss(tf, parameters, X, Y))
    rounding = 1e-9 * found.largest * phi
    return at_least(square, 2.0 * found.constant * (phi - found.floor), "||grad Phi||^2", atol=rounding)


@pl_projected.ascent
def _(rng):
    # W_U = 0 leaves the head's gradient alone; climb over Y towards the weakest direction of H
    at = network(Draw(rng), P=1, n=5, d=3, d_k=2, m=3, c=1, activations=("gelu",), scales={"W_U": 0.0}, beta=1.0)
    H = stack(forward(*at.parts[:3]).H)

    def compare(y):
        Y = np.asarray(y).reshape(1, 5, 1)
        found = projected_pl(H, Y[0])
        g = gradient(at.transformer, at.parameters, at.X, Y)
        square = sum(float(np.sum(block**2)) for block in g.values())
        return at_least(square, 2.0 * found.constant * (0.5 * np.sum(Y**2) - found.floor), "||grad Phi||^2")

    y, _ = climb(lambda y: compare(y).ratio, rng.standard_normal(5), rng, steps=500)
    return compare(y)


@pl_projected.control
def _(rng):
    # without the projection: more rows than features, Y partly outside col(H)
    at = network(Draw(rng), P=1, n=5, d=3, d_k=2, m=3, c=1, activations=("gelu",), scales={"W_U": 0.0}, beta=1.0)
    H = stack(forward(*at.parts[:3]).H)
    outside = np.linalg.svd(H)[0][:, -1].reshape(1, 5, 1)
    found = projected_pl(H, outside[0])
    g = gradient(at.transformer, at.parameters, at.X, outside)
    square = sum(float(np.sum(block**2)) for block in g.values())
    phi = 0.5 * float(np.sum(outside**2))
    return Control(
        "the floor left out, with Y orthogonal to col(H): ||grad Phi||^2 >= 2 s_+^2 Phi",
        2.0 * found.constant * phi,
        square,
        "claimed lower bound of ||grad Phi||^2",
    )
