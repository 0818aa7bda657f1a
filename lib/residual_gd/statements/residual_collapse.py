"""Statements of chapter 6 about attention alone: how much of the rank it loses, and when."""

import math

import numpy as np

from ..matrices import sigma_max, singular_values
from ..rank import (
    attention_rank,
    low_rank_logits_bound,
    monomial_count,
    near_uniform_bound,
    numerical_rank,
    oscillation,
)
from ..samples import softmax
from .base import Control, at_most, statement
from .instances import climb


@statement(
    "prop-rank-of-product",
    kind="proposition",
    title="Rank of the attention's output",
    chapter="rank",
    hypotheses=("S, X and W_V of any shapes that can be multiplied",),
)
def rank_of_product(draw):
    n, d = draw.integer(1, 6), draw.integer(1, 6)
    ranks = [draw.integer(1, n), draw.integer(1, min(n, d)), draw.integer(1, d)]
    S = softmax(draw.normal(n, ranks[0])) @ softmax(draw.normal(ranks[0], n))
    X, W_V = (draw.normal(rows, k) @ draw.normal(k, d) for rows, k in ((n, ranks[1]), (d, ranks[2])))
    least = min(int(numerical_rank(A)) for A in (S, X, W_V))
    values = np.append(singular_values(S @ X @ W_V), 0.0)
    scale = sigma_max(S) * sigma_max(X) * sigma_max(W_V)
    return at_most(values[min(least, len(values) - 1)], 0.0, "next singular value", atol=1e-12 * scale)


@rank_of_product.control
def _(rng):
    X = rng.standard_normal((5, 5))
    Z = np.full((5, 5), 0.2) @ X @ rng.standard_normal((5, 5)) + X
    return Control("the skip added: Z = S X W_V + X with S = 11^T/5", int(numerical_rank(Z)), 1, "rank of Z")


def _near_uniform(G, X, W_V):
    n = G.shape[0]
    S, eps = softmax(G), float(oscillation(G))
    bound, C_values = float(near_uniform_bound(eps)), X @ W_V - np.mean(X @ W_V, axis=0)
    rows = np.linalg.norm(S - 1.0 / n, axis=1) * math.sqrt(n) - np.sinh(0.5 * (G.max(1) - G.min(1)))
    second = np.append(singular_values(S @ X @ W_V), 0.0)[1]
    return (
        at_most(np.linalg.norm(S - 1.0 / n), bound, "distance of S from 11^T/n", atol=1e-14),
        at_most(np.max(rows), 0.0, "a row's distance from 1/n", atol=1e-13),
        at_most(np.append(singular_values(S), 0.0)[1], bound, "sigma_2(S)", atol=1e-14),
        at_most(second, bound * sigma_max(C_values), "sigma_2(S X W_V)", atol=1e-13 * sigma_max(X @ W_V)),
    )


@statement(
    "prop-near-uniform",
    kind="proposition",
    title="Near-uniform attention",
    chapter="rank",
    hypotheses=("no row of logits oscillates by more than eps",),
    sharp=True,
)
def near_uniform(draw):
    n, d, scale = draw.integer(1, 8), draw.integer(1, 4), draw.scale(1e-3, 5.0)
    return _near_uniform(scale * draw.normal(n, n), draw.normal(n, d), draw.normal(d, d))


@near_uniform.ascent
def _(rng):
    n = int(rng.integers(2, 7))

    def comparison(g):
        # the oscillation stays above 1e-3, where rounding is far below the bound
        eps = 1e-3 + abs(g[0])
        shape = g[1:] - np.min(g[1:])
        row = eps * shape / max(np.max(shape), 1e-12)
        S = np.tile(softmax(row), (n, 1))
        return at_most(np.linalg.norm(S - 1.0 / n), near_uniform_bound(eps), "distance of S from 11^T/n", atol=1e-14)

    best, _ = climb(lambda g: comparison(g).ratio, rng.standard_normal(n + 1), rng, steps=600)
    return comparison(best)


@near_uniform.control
def _(rng):
    row = 4.0 * rng.standard_normal(5)
    G = np.tile(row, (5, 1))
    down = float(np.max(np.ptp(G, axis=0)))
    distance = np.linalg.norm(softmax(G) - 0.2)
    return Control(
        "the oscillation taken down the columns (0 here)", distance, math.sinh(0.5 * down), "||S - 11^T/n||_F"
    )


def _low_rank_logits(left, right, a, q):
    G = left @ right.T
    G = a * G / np.max(abs(G))
    k = monomial_count(left.shape[1], q)
    values = np.append(singular_values(softmax(G)), 0.0)
    return at_most(values[min(k, len(values) - 1)], low_rank_logits_bound(a, q), "sigma_(k+1)(S)", atol=1e-14)


@statement(
    "prop-low-rank-logits",
    kind="proposition",
    title="Low-rank logits",
    chapter="rank",
    hypotheses=("rank G <= r", "|g_ij| <= a"),
    starred=True,
)
def low_rank_logits(draw):
    n, r = draw.integer(2, 16), draw.integer(1, 3)
    return _low_rank_logits(draw.normal(n, r), draw.normal(n, r), draw.scale(0.05, 3.0), draw.integer(1, 6))


@low_rank_logits.ascent
def _(rng):
    n = int(rng.integers(2, 6))

    def comparison(g):
        return _low_rank_logits(g[1 : n + 1, None], g[n + 1 :, None], min(1e-2 + abs(g[0]), 3.0), 1)

    best, _ = climb(lambda g: comparison(g).ratio, rng.standard_normal(2 * n + 1), rng)
    return comparison(best)


@low_rank_logits.control
def _(rng):
    G = 0.5 * rng.choice((-1.0, 1.0), size=(16, 16))
    return Control(
        "logits of full rank 16, bound for r = 1, q = 4, a = 1/2",
        singular_values(softmax(G))[4],
        low_rank_logits_bound(0.5, 4),
        "sigma_5(S)",
    )


@statement(
    "prop-generic-full-rank",
    kind="proposition",
    title="No exact collapse, generically",
    chapter="rank",
    hypotheses=("the rows of X_p are distinct", "X has full row rank (for S X W_V)", "almost every W_Q, W_K, W_V"),
    starred=True,
)
def generic_full_rank(draw):
    n, d_k = draw.integer(1, 5), draw.integer(1, 2)
    d, scale = n + draw.integer(0, 2), draw.scale(0.2, 2.0)
    X, W_Q, W_V = draw.normal(n, d), scale * draw.normal(d, d_k), draw.normal(d, d)
    W_K = W_Q if draw.choice((True, False)) else draw.normal(d, d_k)
    return (
        at_most(n - attention_rank(X, W_Q, W_K), 0, "rank deficiency of S"),
        at_most(n - attention_rank(X, W_Q, W_K, W_V), 0, "rank deficiency of S X W_V"),
    )


@generic_full_rank.control
def _(rng):
    X, W_K = rng.standard_normal((4, 6)), rng.standard_normal((6, 2))
    return Control(
        "W_Q = 0, in the exceptional null set", 4 - attention_rank(X, 0.0 * W_K, W_K), 0, "rank deficiency of S"
    )
