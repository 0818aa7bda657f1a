"""Statements of chapter 4 about a ball: the features keep the rank of Z, and alpha on the ball."""

import numpy as np

from ..activations import activation
from ..gram import gram
from ..matrices import sigma_min
from ..network_majorants import measure, network_majorants
from ..pl_inequality import alpha_on_ball, features_lower_bound
from ..transformer import forward
from .base import Control, Draw, at_least, at_most, statement
from .instances import SMOOTH, climb, network
from .local_convexity import least_eigenvalue


@statement(
    "lem-features-lower-bound",
    kind="lemma",
    title="Features from below",
    chapter="local-convexity",
    hypotheses=("|phi'| <= l_phi", "phi(0) = 0, or the bound of ||phi(Z W_1)|| corrected by |phi(0)| sqrt(N m)"),
    sharp=True,
)
def features_bound(draw):
    N, d, m = draw.integer(1, 5), draw.integer(1, 6), draw.integer(1, 6)
    phi, beta = activation(draw.choice((*SMOOTH, "relu"))), draw.real(0.0, 1.5)
    Z, W_1 = draw.normal(N, d), draw.scale(0.01, 3.0) * draw.normal(d, m)
    W_2 = draw.scale(0.01, 3.0) * draw.normal(m, d)
    return _features_comparison(Z, W_1, W_2, beta, phi)


def _features_comparison(Z, W_1, W_2, beta, phi):
    H = phi(Z @ W_1) @ W_2 + beta * Z
    bound = features_lower_bound(Z, W_1, W_2, beta, phi)
    scale = beta * np.linalg.norm(Z, 2) + abs(bound)
    # in terms of what the branch takes away, so that 1 means that all of it is lost
    whole = beta * sigma_min(Z)
    return at_most(whole - sigma_min(H), whole - bound, "loss of sigma_min", atol=1e-13 * scale)


@features_bound.ascent
def _(rng):
    # a branch of rank one that is aligned against the smallest direction of Z: climb over W_1, W_2
    N = 2
    Z, phi = rng.standard_normal((N, N)), activation("relu")
    left, values, right = np.linalg.svd(Z)
    sign = np.sign(left[:, -1])
    # make the smallest left direction positive, so that ReLU leaves it alone
    Z = (sign[:, None] * left) * values @ right

    def parts(z):
        return z[: N * N].reshape(N, N), z[N * N :].reshape(N, N)

    def ratio(z):
        return _features_comparison(Z, *parts(z), 1.0, phi).ratio

    v = right[-1]
    W_1 = np.outer(v, np.eye(N)[0])
    start = np.concatenate([W_1.ravel(), -0.4 * np.outer(np.eye(N)[0], v).ravel()])
    start = start + 0.02 * rng.standard_normal(start.shape)
    z, _ = climb(ratio, start, rng, steps=1500, spread=0.1)
    return _features_comparison(Z, *parts(z), 1.0, phi)


@features_bound.control
def _(rng):
    # the spectral norm in place of the Frobenius norm, with O = [[1, -1], [1, 1]] / sqrt 2, an orthogonal matrix
    O = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    phi, Z = activation("relu"), 2.0 * np.eye(2)
    left, _, right = np.linalg.svd(phi(O))
    W_1, W_2 = O, -0.5 * right.T @ left.T
    H = phi(Z @ W_1) @ W_2 + Z
    claimed = sigma_min(Z) - np.linalg.norm(Z, 2) * np.linalg.norm(W_1, 2) * np.linalg.norm(W_2, 2)
    return Control(
        "spectral norms for the Frobenius norm: sigma_min(Z) - l_phi ||Z|| ||W_1|| ||W_2||",
        float(claimed),
        float(sigma_min(H)),
        "claimed lower bound of sigma_min(H)",
    )


@statement(
    "prop-pl-on-ball",
    kind="proposition",
    title="The PL constant of a ball",
    chapter="local-convexity",
    hypotheses=("theta in Ball(rho)", "third term: bounded phi'', or ReLU with its margin"),
)
def pl_on_ball(draw):
    at, start, rho = ball_instance(draw)
    at_rho = network_majorants(start, rho)
    alpha = alpha_on_ball(start, at_rho)
    moved = on_sphere(at, rho, draw.rng)
    K = gram(at.transformer, moved, at.X)
    return at_least(least_eigenvalue(K), alpha, "lambda_min(J J^T) on the ball", atol=1e-12 * float(np.trace(K)))


def ball_instance(draw, **fixed):
    """A network of which some term of alpha is positive, what was measured there, and radii."""
    options = {"activations": (*SMOOTH, "relu"), "deep": draw.choice((False, False, True))} | fixed
    scales = {"W_2": draw.scale(0.01, 0.5), "W_V": draw.scale(0.01, 0.5), "W_U": draw.scale(0.01, 2.0)}
    at = network(draw, wide=True, largest=6, P=draw.integer(1, 2), n=draw.integer(1, 2), scales=scales, **options)
    start = measure(*at.parts[:3])
    size = draw.scale(1e-4, 0.3)
    return at, start, size * np.array([draw.real(0.1, 1.0) for _ in at.transformer.blocks])


def on_sphere(at, rho, rng):
    """Parameters at distance rho_b in every block, in a random direction."""
    moved = {}
    for (b, W), radius in zip(at.parameters.items(), rho, strict=True):
        D = rng.standard_normal(W.shape)
        moved[b] = W + radius * D / np.linalg.norm(D)
    return moved


@pl_on_ball.ascent
def _(rng):
    # only W_2 has a radius: climb over its direction until the features lose as much as they can
    at = network(
        Draw(rng), P=1, n=2, d=2, d_k=1, m=3, c=1, beta=1.0, activations=("gelu",), scales={"W_U": 0.0, "W_2": 0.1}
    )
    start = measure(*at.parts[:3])
    rho = np.array([0.0, 0.0, 0.0, 0.0, 0.2 * start.sigma_min_H, 0.0])
    alpha = alpha_on_ball(start, network_majorants(start, rho))

    def least(z):
        D = np.asarray(z).reshape(3, 2)
        W_2 = at.parameters["W_2"] + rho[4] * D / max(np.linalg.norm(D), 1e-12)
        return least_eigenvalue(gram(at.transformer, at.parameters | {"W_2": W_2}, at.X))

    _, value = climb(lambda z: -least(z), rng.standard_normal(6), rng)
    return at_least(-value, alpha, "lambda_min(J J^T)")


@pl_on_ball.control
def _(rng):
    # with W_2 = 0 the features are Z, and one matrix, W_V, can make its rows dependent
    fixed = {"P": 1, "n": 3, "d": 4, "d_k": 1, "m": 2, "c": 1, "beta": 1.0, "activations": ("tanh",)}
    at = network(Draw(rng), scales={"W_U": 0.0, "W_2": 0.0}, **fixed)
    start = measure(*at.parts[:3])
    rho = np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0]) * start.sigma_min_H
    alpha = alpha_on_ball(start, network_majorants(start, rho))
    # the shortest move with u^T Z = 0 for the weakest direction u of Z: u^T S X (W_V - W_V^0) = -u^T Z_0
    values = forward(*at.parts[:3])
    u = np.linalg.svd(values.Z[0])[0][:, -1]
    mixed = u @ values.S[0] @ at.X[0]
    W_V = at.parameters["W_V"] - np.outer(mixed, u @ values.Z[0]) / (mixed @ mixed)
    K = gram(at.transformer, at.parameters | {"W_V": W_V}, at.X)
    distance = np.linalg.norm(W_V - at.parameters["W_V"])
    return Control(
        f"theta outside the ball (W_V moved by {distance:.2g}, its radius {rho[2]:.2g})",
        alpha,
        max(least_eigenvalue(K), 0.0),
        "alpha of the ball against lambda_min(J J^T) there",
    )
