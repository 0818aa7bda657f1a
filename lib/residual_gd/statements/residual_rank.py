"""Statements of chapter 6 about Z = S X W_V + beta X: what the residual guarantees, and where it fails."""

import numpy as np

from ..matrices import sigma_max, sigma_min, singular_values
from ..rank import (
    deficient_value,
    exceptional_betas,
    numerical_rank,
    residual_bound,
    scalar_value_bound,
    value_operator,
)
from ..samples import softmax, stack, stack_attention
from ..transformer import forward
from .base import Control, Draw, at_least, at_most, equal, statement
from .instances import network


def attention_layer(draw, **fixed):
    """A one-layer network with a wide input: (its Instance, stacked X, stacked S, stacked Z)."""
    at = network(draw, wide=True, **fixed)
    values = forward(at.transformer, at.parameters, at.X)
    return at, stack(at.X), stack_attention(values.S), stack(values.Z)


@statement(
    "prop-residual-weyl",
    kind="proposition",
    title="Weyl bound",
    chapter="rank",
    hypotheses=("beta >= 0",),
    sharp=True,
)
def residual_weyl(draw):
    beta = draw.real(0.0, 2.0)
    _, X, _, Z = attention_layer(draw, beta_attention=beta, scales={"W_V": draw.scale(0.01, 1.0)})
    return at_least(sigma_min(Z), residual_bound(X, Z - beta * X, beta), "sigma_min(Z)", atol=1e-12 * sigma_max(X))


@residual_weyl.ascent
def _(rng):
    # one token a sample, so that S = I; W_V pushes against the weakest direction of X alone
    X = rng.standard_normal((3, 5))
    left, values, right = np.linalg.svd(X, full_matrices=False)
    attention = X @ np.linalg.pinv(X) @ (-0.5 * values[-1] * np.outer(left[:, -1], right[-1]))
    return at_least(sigma_min(attention + X), residual_bound(X, attention, 1.0), "sigma_min(Z)")


@residual_weyl.control
def _(rng):
    X = rng.standard_normal((4, 6))
    Z = X - 0.9 * np.full((4, 4), 0.25) @ X
    dropped = "without - ||S X W_V||, at uniform attention, W_V = -0.9 I, beta = 1"
    return Control(dropped, sigma_min(X), sigma_min(Z), "beta sigma_min(X) against sigma_min(Z):")


@statement(
    "prop-residual-scalar-value",
    kind="proposition",
    title="Scalar value matrix",
    chapter="rank",
    hypotheses=("beta >= 0", "W_V = v I"),
    sharp=True,
)
def residual_scalar_value(draw):
    beta, v = draw.real(0.0, 2.0), draw.real(-2.0, 2.0)
    _, X, S, _ = attention_layer(draw)
    Z = (v * S + beta * np.eye(len(S))) @ X
    tiny = 1e-12 * (beta + abs(v)) * sigma_max(X)
    return at_least(sigma_min(Z), scalar_value_bound(S, X, beta, v), "sigma_min(Z)", atol=tiny)


@residual_scalar_value.ascent
def _(rng):
    X = np.linalg.qr(rng.standard_normal((6, 4)))[0].T
    S, v = np.full((4, 4), 0.25), rng.uniform(-0.9, 0.9)
    return at_least(sigma_min((v * S + np.eye(4)) @ X), scalar_value_bound(S, X, 1.0, v), "sigma_min(Z)")


@residual_scalar_value.control
def _(rng):
    X, W_V = np.array([[1.0, 5.0]]), np.array([[1.0, -10.0], [0.0, 1.0]])
    dropped = "W_V = [[1, -10], [0, 1]] (eigenvalues 1, not a multiple of I), X = (1, 5), beta = 1"
    return Control(dropped, sigma_min(X), sigma_min(X @ W_V + X), "beta sigma_min(X) against sigma_min(Z):")


@statement(
    "prop-residual-generic-beta",
    kind="proposition",
    title="All but N coefficients",
    chapter="rank",
    hypotheses=("X has full row rank N <= d", "one layer, so that S does not depend on beta"),
)
def residual_generic_beta(draw):
    beta = draw.real(0.0, 2.0)
    at, X, S, Z = attention_layer(draw, beta_attention=beta)
    W_V = at.parameters["W_V"]
    V, N = value_operator(S, X, W_V), len(X)
    operator = V + beta * np.eye(N)
    size = (beta + sigma_max(V)) ** N * sigma_max(X) / sigma_min(X)
    exceptional, eigenvalues = exceptional_betas(S, X, W_V), np.linalg.eigvals(V)
    found = [
        equal(np.linalg.det(operator), np.prod(beta + eigenvalues).real, "det(Z X^+)", tolerance=1e-8, scale=size),
        equal(Z @ np.linalg.pinv(X), operator, "Z X^+", tolerance=1e-8, scale=size ** (1 / N)),
        at_most(len(exceptional), N, "number of exceptional betas"),
        at_least(sigma_min(Z), sigma_min(operator) * sigma_min(X), "sigma_min(Z)", atol=1e-9 * sigma_max(Z)),
    ]
    if at.transformer.d == N:
        lost = [sigma_min(S @ X @ W_V + b * X) for b in exceptional]
        tiny = 1e-6 * (sigma_max(V) + 2.0) * sigma_max(X)
        found += [at_most(least, 0.0, "sigma_min(Z) at an exceptional beta", atol=tiny) for least in lost]
    return found


@residual_generic_beta.control
def _(rng):
    X = rng.standard_normal((3, 5))
    X[2] = X[1]
    S = softmax(X @ X.T)
    attention, grid = S @ X @ rng.standard_normal((5, 5)), np.linspace(0.1, 2.0, 20)
    lost = sum(int(numerical_rank(attention + beta * X)) < 3 for beta in grid)
    return Control("two equal rows in X, N = 3, 20 values of beta", lost, 3, "values that leave Z rank deficient")


@statement(
    "prop-residual-generic-value",
    kind="proposition",
    title="Almost every value matrix",
    chapter="rank",
    hypotheses=("X has full row rank N <= d", "beta_A > 0", "almost every W_V"),
)
def residual_generic_value(draw):
    # W_Q = 0 is allowed: even exactly uniform attention loses nothing
    scales = {"W_V": draw.scale(0.1, 3.0), "W_Q": draw.choice((0.0, 1.0))}
    _, X, _, Z = attention_layer(draw, beta_attention=draw.real(0.1, 2.0), scales=scales)
    return at_most(len(X) - int(numerical_rank(Z)), 0, "rank deficiency of Z")


@residual_generic_value.control
def _(rng):
    at = network(Draw(rng), P=2, n=3, d=7, beta_attention=1.0)
    Z = _output_with_value(at, deficient_value(7, 1.0))
    return Control("W_V = -I, in the exceptional null set", 6 - int(numerical_rank(Z)), 0, "rank deficiency of Z")


def _output_with_value(at, W_V):
    return stack(forward(at.transformer, at.parameters | {"W_V": W_V}, at.X).Z)


@statement(
    "prop-residual-fails",
    kind="proposition",
    title="Counterexamples",
    chapter="rank",
    hypotheses=("beta_A > 0", "W_V = -beta_A I"),
)
def residual_fails(draw):
    beta = draw.real(0.1, 2.0)
    at = network(draw, wide=True, beta_attention=beta)
    Z = _output_with_value(at, deficient_value(at.transformer.d, beta))
    P, N = at.X.shape[0], len(Z)
    tiny = 1e-12 * beta * sigma_max(stack(at.X))
    values = np.append(singular_values(Z), 0.0)
    shorter = _output_with_value(at, draw.real(0.0, 0.95) * deficient_value(at.transformer.d, beta))
    return (
        at_most(values[N - P], 0.0, "sigma_(N-P+1)(Z)", atol=tiny),
        at_most(N - int(numerical_rank(shorter)), 0, "rank deficiency of Z with W_V = -v I, v < beta"),
        at_most(np.linalg.norm(Z) if at.X.shape[1] == 1 else 0.0, 0.0, "Z with one token a sample", atol=tiny),
    )


@residual_fails.control
def _(rng):
    at = network(Draw(rng), P=1, n=3, d=5, beta_attention=1.0)
    Z = _output_with_value(at, 0.9 * deficient_value(5, 1.0))
    return Control("W_V = -0.9 I, the parameter's neighbour, at beta = 1", sigma_min(Z), 0.0, "sigma_min(Z)")
