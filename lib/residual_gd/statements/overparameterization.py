"""Statements of chapter 2: what the network must be able to fit, and what the kernel J J^T must have."""

import math

import numpy as np

from ..gram import gram
from ..jacobian import jacobian, jvp
from ..matrices import singular_values, vec
from ..parameters import initialize
from ..samples import half_square, stack
from ..transformer import Transformer, forward, gradient, loss
from . import vectorization  # noqa: F401  (it registers first, in the order of the chapter)
from .base import Control, Draw, at_least, at_most, equal, statement
from .instances import network

ZERO = 1e-12  # singular values below this fraction of the largest count as zero
MILD = {"W_V": 0.2, "W_2": 0.2}  # with skips near 1 these keep H about as well conditioned as X


def head_solved(instance) -> dict:
    """The parameters with W_U replaced by a least-squares solution of H W_U = Y, so that grad_U Phi = H^T R = 0."""
    transformer, parameters, X, Y = instance.parts
    H = stack(forward(transformer, parameters, X).H)
    return parameters | {"W_U": np.linalg.lstsq(H, stack(Y), rcond=1e-10)[0]}


def _projector(H):
    U, s, _ = np.linalg.svd(H, full_matrices=False)
    U = U[:, s > 1e-10 * s[0]]
    return U @ U.T


def _mild(draw, **sizes):
    betas = {"beta_attention": draw.real(0.5, 1.5), "beta_ffn": draw.real(0.5, 1.5)}
    return network(draw, scales=MILD, **betas, **sizes)


@statement(
    "prop-critical-points",
    kind="proposition",
    title="The loss at critical points",
    chapter="vectorization",
    hypotheses=("the gradient with respect to the head is zero", "second part: rank H = N"),
)
def critical_points(draw):
    at = _mild(draw, deep=True, activations=("gelu", "tanh", "softplus", "relu"))
    if draw.choice((False, True)):
        at.X[-1] = at.X[0]  # equal samples: H loses rank unless P = 1
    transformer, parameters, X, Y = at.parts
    parameters = head_solved(at)
    H = stack(forward(transformer, parameters, X).H)
    lost = stack(Y) - _projector(H) @ stack(Y)
    phi, half_target = loss(transformer, parameters, X, Y), 0.5 * np.linalg.norm(Y) ** 2
    found = [equal(phi, 0.5 * np.linalg.norm(lost) ** 2, "loss", scale=half_target)]
    wide = _mild(draw, wide=True)
    left = math.sqrt(2.0 * loss(wide.transformer, head_solved(wide), wide.X, wide.Y))
    found.append(equal(left, 0.0, "rank H = N: no loss", scale=np.linalg.norm(wide.Y)))
    return found


@critical_points.control
def _(rng):
    at = network(Draw(rng), P=2, n=3, d=5, c=2, beta=1.0, scales=MILD)
    phi = loss(at.transformer, head_solved(at), at.X, at.Y)
    return Control("rank H = 5 < N = 6, at a point with zero head gradient", phi, 1e-20, "loss")


def _twins(draw, **sizes):
    """Two samples that differ by a permutation; returns the instance and the permutation of the tokens."""
    at = network(draw, P=draw.integer(2, 3), n=draw.integer(2, 4), deep=True, **sizes)
    order = draw.rng.permutation(at.X.shape[1])
    at.X[0] = at.X[1][order]
    return at, order


def _floors(at, order, parameters):
    """prop-obstructions at one instance: sample 0 is sample 1 in this order of the tokens."""
    transformer, _, X, Y = at.parts
    F = forward(transformer, parameters, X).F
    phi = half_square(F - Y)
    yield equal(F[0], F[1][order], "outputs of equal samples")
    yield at_least(phi, 0.25 * np.linalg.norm(Y[0] - Y[1][order]) ** 2, "loss, equal samples")
    X = X.copy()
    X[0, 1] = X[0, 0]
    F = forward(transformer, parameters, X).F
    yield equal(F[0, 1], F[0, 0], "outputs of equal tokens", scale=np.linalg.norm(F[0]))
    yield at_least(half_square(F - Y), 0.25 * np.linalg.norm(Y[0, 0] - Y[0, 1]) ** 2, "loss, equal tokens")


@statement(
    "prop-obstructions",
    kind="proposition",
    title="Equal data, unequal targets",
    chapter="vectorization",
    hypotheses=("X_p a permutation of X_q, p != q (or two equal rows in a sample)", "no mask, no positions inside"),
    sharp=True,
)
def obstructions(draw):
    at, order = _twins(draw, activations=("gelu", "tanh", "softplus", "relu"))
    return list(_floors(at, order, at.parameters))


def _attained(bound):
    """An inequality, and the claim that it is an equality here: each part of a statement must reach its own bound."""
    return bound, equal(bound.measured, bound.bound, f"{bound.what}: attained")


@obstructions.ascent
def _(rng):
    # with rank H = n for the two samples together, least squares in the head brings the loss down to its floor
    at = _mild(Draw(rng), P=2, n=3, d=8)
    at.X[0] = at.X[1][::-1]
    yield from _attained(list(_floors(at, np.arange(3)[::-1], head_solved(at)))[1])
    at.X[0, 1] = at.X[0, 0]
    at.X[1] = rng.standard_normal((3, 8))
    yield from _attained(list(_floors(at, np.arange(3)[::-1], head_solved(at)))[3])


@obstructions.control
def _(rng):
    at = network(Draw(rng), P=2, n=3, d=8, c=2, beta=1.0, scales=MILD)
    at.X[0] = at.X[1][::-1]
    floor = 0.25 * np.linalg.norm(at.Y[0] - at.Y[1][::-1]) ** 2
    at.X[:] += rng.standard_normal((3, 8))  # the same positions in both samples
    phi = loss(at.transformer, head_solved(at), at.X, at.Y)
    phi = phi if phi > 1e-20 else 0.0  # what is left is rounding
    return Control("a position added to each token", floor, phi, "floor claimed, against the loss reached:")


def silent_directions(transformer, parameters, rng):
    """A random direction that does not move F to first order, a dict of blocks: (W_Q B, -W_K B^T) in every head, and in
    the last W_2 a matrix V with V W_U = 0."""
    direction = {block: np.zeros_like(W) for block, W in parameters.items()}
    for layer in range(1, transformer.layers + 1):
        for head in range(1, transformer.heads + 1):
            W_Q, W_K = transformer.name("W_Q", layer, head), transformer.name("W_K", layer, head)
            B = rng.standard_normal((transformer.d_k, transformer.d_k))
            direction[W_Q], direction[W_K] = parameters[W_Q] @ B, -parameters[W_K] @ B.T
    W_U, last = parameters["W_U"], transformer.name("W_2", transformer.layers)
    direction[last] = rng.standard_normal(direction[last].shape) @ (np.eye(transformer.d) - W_U @ np.linalg.pinv(W_U))
    return direction


def rank(J):
    """Number of singular values of J above rounding."""
    values = singular_values(J)
    return int(np.sum(values > ZERO * values[0]))


def largest_rank(transformer):
    """D - L n_h d_k^2 - m max(d - c, 0): the parameters less the directions that never move F."""
    gauge = transformer.layers * transformer.heads * transformer.d_k**2
    return transformer.parameter_count - gauge - transformer.m * max(transformer.d - transformer.c, 0)


def _pl(at):
    """||grad Phi||^2 = r^T K r >= 2 lambda_min(K) Phi at one instance."""
    transformer, parameters, X, Y = at.parts
    K = gram(transformer, parameters, X)
    r = vec(stack(forward(transformer, parameters, X).F - Y))
    squared = sum(np.linalg.norm(G) ** 2 for G in gradient(transformer, parameters, X, Y).values())
    eigenvalues = np.linalg.eigvalsh(K)
    rounding = 1e-13 * eigenvalues[-1] * (r @ r)
    yield equal(squared, r @ K @ r, "||grad||^2 = r^T K r", tolerance=1e-10, scale=eigenvalues[-1] * (r @ r))
    yield at_least(squared, eigenvalues[0] * (r @ r), "||grad||^2 >= 2 lambda_min Phi", atol=rounding)


@statement(
    "prop-kernel-rank",
    kind="proposition",
    title="What a positive definite kernel gives, and what it needs",
    chapter="vectorization",
    hypotheses=("phi differentiable at every entry of E", "last part: W_Q or W_K of rank d_k in every head"),
    sharp=True,
)
def kernel_rank(draw):
    d = draw.integer(1, 4)
    at = network(draw, deep=True, d=d, d_k=draw.integer(1, d), m=draw.integer(1, 3), n=draw.integer(2, 4))
    alike = draw.choice(("none", "samples", "tokens"))
    P, n, _ = at.X.shape
    independent = P * n
    if alike == "samples" and P > 1:
        at.X[0], independent = at.X[1][::-1], (P - 1) * n
    elif alike == "tokens":
        at.X[0, 1], independent = at.X[0, 0], P * n - 1
    transformer, parameters, X, _ = at.parts
    J = jacobian(transformer, parameters, X)
    direction = silent_directions(transformer, parameters, draw.rng)
    size = np.linalg.norm(J) * math.sqrt(sum(np.linalg.norm(V) ** 2 for V in direction.values()))
    still = stack(jvp(transformer, parameters, X, direction))
    return (
        *_pl(at),
        equal(still, np.zeros_like(still), "silent directions do not move F", tolerance=1e-12, scale=size),
        at_most(rank(J), min(largest_rank(transformer), independent * transformer.c), "rank of J"),
    )


@kernel_rank.ascent
def _(rng):
    # targets that make r an eigenvector of the smallest eigenvalue
    at = network(Draw(rng), P=2, n=2, d=5, beta=1.0)
    transformer, parameters, X, _ = at.parts
    _, vectors = np.linalg.eigh(gram(transformer, parameters, X))
    F = forward(transformer, parameters, X).F
    at.Y[:] = F - vectors[:, 0].reshape(transformer.c, *F.shape[:2]).transpose(1, 2, 0)
    yield from _attained(list(_pl(at))[1])
    # more outputs than parameters: nothing else is lost
    d = int(rng.integers(2, 4))
    at = network(Draw(rng), P=16, n=3, d=d, d_k=int(rng.integers(1, 3)), m=3, c=2, activation="gelu", beta=1.0)
    parameters = initialize(at.transformer, rng)
    found = rank(jacobian(at.transformer, parameters, at.X))
    yield from _attained(at_most(found, largest_rank(at.transformer), "rank of J"))


@kernel_rank.control
def _(rng):
    transformer = Transformer(d=1, d_k=3, m=3, c=2)
    J = jacobian(transformer, initialize(transformer, rng), rng.standard_normal((5, 3, 1)))
    return Control(
        "d_k = 3 > d = 1, so neither W_Q nor W_K has rank d_k", rank(J), largest_rank(transformer), "rank of J"
    )
