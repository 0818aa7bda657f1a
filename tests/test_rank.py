"""Rank and depth: values known by hand, brute-force twins, what every parameter does, and bad input."""

import math

import numpy as np
import pytest

from residual_gd.depth import (
    collapse_bounds,
    collapse_coefficients,
    doubly_exponential_bound,
    one_step_collapse,
    pure_attention,
    token_spread,
)
from residual_gd.matrices import sigma_min
from residual_gd.parameters import initialize, stack_runs
from residual_gd.rank import (
    attention_rank,
    centered,
    centering,
    deficient_value,
    exceptional_betas,
    loss_floor,
    low_rank_logits_bound,
    monomial_count,
    near_uniform_bound,
    numerical_rank,
    oscillation,
    residual_bound,
    scalar_value_bound,
    spread,
    token_lipschitz,
    uniform_loss_floor,
    value_operator,
)
from residual_gd.samples import softmax
from residual_gd.transformer import Transformer, forward, loss


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- centering and rank


def test_centering_is_a_projector_and_agrees_with_centered(rng):
    C, T = centering(5), rng.standard_normal((2, 5, 3))
    np.testing.assert_allclose(C @ C, C, atol=1e-15)
    np.testing.assert_allclose(centered(T), C @ T, atol=1e-15)
    np.testing.assert_allclose(spread(T), np.linalg.norm(C @ T, axis=(1, 2)))
    assert spread(np.ones((4, 2))) == 0


def test_numerical_rank(rng):
    A = rng.standard_normal((3, 6, 2)) @ rng.standard_normal((3, 2, 5))
    assert numerical_rank(A).tolist() == [2, 2, 2]
    assert numerical_rank(np.zeros((3, 4))) == 0
    assert numerical_rank(A[0]) == np.linalg.matrix_rank(A[0])


def test_oscillation_takes_rows_and_ignores_their_constants(rng):
    G = rng.standard_normal((2, 4, 4))
    by_hand = [max(max(row) - min(row) for row in g) for g in G]
    np.testing.assert_allclose(oscillation(G), by_hand)
    np.testing.assert_allclose(oscillation(G + rng.standard_normal((2, 4, 1))), by_hand)


def test_near_uniform_bound_is_reached():
    G = np.tile([math.log(2), 0, 0], (3, 1))
    assert near_uniform_bound(oscillation(G)) == pytest.approx(np.linalg.norm(softmax(G) - 1 / 3))


def test_monomials_are_counted():
    for r, q in ((1, 5), (2, 3), (3, 4)):
        grid = np.stack(np.meshgrid(*[np.arange(q)] * r)).reshape(r, -1)
        assert monomial_count(r, q) == np.sum(grid.sum(axis=0) < q)


def test_low_rank_logits_bound():
    assert low_rank_logits_bound(0.5, 3) == pytest.approx(math.exp(1.0) * 0.125 / 6)
    assert low_rank_logits_bound(0.0, 1) == 0


def test_attention_rank_sees_what_double_precision_does_not(rng):
    X, w = rng.standard_normal((16, 18)), rng.standard_normal((18, 1)) / 18**0.5
    assert numerical_rank(softmax(X @ w @ (X @ w).T)) < 16
    assert attention_rank(X, w, w, digits=160) == 16
    assert attention_rank(X, 0 * w, w) == 1
    assert attention_rank(X, w, w, np.eye(18), digits=160) == 16
    assert attention_rank(X, w, w, np.diag([1.0] * 5 + [0.0] * 13)) == 5


def test_attention_rank_of_equal_tokens_and_of_few_digits(rng):
    X, w = rng.standard_normal((4, 5)), rng.standard_normal((5, 2))
    X[3] = X[0]
    assert attention_rank(X, w, w) == 3
    Y, w = rng.standard_normal((12, 5)) / 10, w[:, :1]
    assert attention_rank(Y, w, w, digits=30) < attention_rank(Y, w, w, digits=120) == 12


# -- what the residual guarantees


def test_exceptional_betas_are_the_zeros_of_sigma_min(rng):
    X, S = np.eye(3), softmax(rng.standard_normal((3, 3)))
    W_V = np.linalg.solve(S, np.diag([-1.0, -0.5, 2.0]))
    np.testing.assert_allclose(exceptional_betas(S, X, W_V), [0.5, 1.0])
    for beta, lost in ((0.5, True), (1.0, True), (0.75, False)):
        assert (sigma_min(S @ X @ W_V + beta * X) < 1e-12) == lost


def test_exceptional_betas_leave_out_complex_eigenvalues():
    turn = np.array([[-1.0, 2.0], [-2.0, -1.0]])
    assert exceptional_betas(np.eye(2), np.eye(2), turn).size == 0
    assert exceptional_betas(np.eye(2), np.eye(2), turn, tolerance=1.0).size == 2


def test_value_operator(rng):
    X, W_V, S = rng.standard_normal((3, 5)), rng.standard_normal((5, 5)), softmax(rng.standard_normal((3, 3)))
    inverse = X.T @ np.linalg.inv(X @ X.T)
    np.testing.assert_allclose(value_operator(S, X, W_V), S @ X @ W_V @ inverse, atol=1e-12)


def test_bounds_below(rng):
    X, S = np.linalg.qr(rng.standard_normal((5, 5)))[0][:3], np.full((3, 3), 1 / 3)
    assert residual_bound(X, -0.5 * X, 2.0) == pytest.approx(1.5)
    assert scalar_value_bound(S, X, 2.0, -0.5) == pytest.approx(1.5)
    assert scalar_value_bound(S, X, 2.0, 7.0) == pytest.approx(2.0)


def test_deficient_value_loses_rank_for_every_attention(rng):
    X, S = rng.standard_normal((4, 6)), softmax(3 * rng.standard_normal((4, 4)))
    assert numerical_rank(S @ X @ deficient_value(6, 0.7) + 0.7 * X) == 3


# -- floors


@pytest.fixture
def flat(rng):
    """A network with uniform attention and no attention skip, and data."""
    network = Transformer(d=5, d_k=2, m=4, c=2, beta_attention=0.0, beta_ffn=0.5)
    X, Y = rng.standard_normal((3, 4, 5)), rng.standard_normal((3, 4, 2))
    return network, initialize(network, rng, W_Q=0.0), X, Y


def test_floor_of_uniform_attention(flat):
    by_hand = 0.5 * sum(np.sum((y - y.mean(axis=0)) ** 2) for y in flat[3])
    assert uniform_loss_floor(flat[3]) == pytest.approx(by_hand)
    assert loss_floor(*flat) == pytest.approx(by_hand)
    assert loss(*flat) > by_hand


def test_floor_by_hand(flat):
    network, parameters, X, Y = flat
    parameters = parameters | {name: 0.05 * W for name, W in parameters.items()}
    network = network.with_beta(beta_attention=0.3, beta_ffn=0.5)
    W_1, W_2, W_U = (np.linalg.norm(parameters[b], 2) for b in ("W_1", "W_2", "W_U"))
    Lambda = (network.activation.l_phi * W_1 * W_2 + 0.5) * W_U
    assert token_lipschitz(network, parameters) * W_U == pytest.approx(Lambda)
    Z = forward(network, parameters, X).Z
    gap = np.linalg.norm(centered(Y)) - Lambda * np.linalg.norm(centered(Z))
    assert loss_floor(network, parameters, X, Y) == pytest.approx(0.5 * gap**2) and gap > 0


def test_floor_of_a_batch_of_runs(flat):
    network, parameters, X, Y = flat
    both = network.with_beta(beta_attention=[0.0, 0.1], beta_ffn=[0.5, 0.0])
    pair = loss_floor(both, stack_runs([parameters] * 2), X, Y)
    alone = [
        loss_floor(network.with_beta(beta_attention=a, beta_ffn=f), parameters, X, Y)
        for a, f in ((0.0, 0.5), (0.1, 0.0))
    ]
    np.testing.assert_allclose(pair, alone)


def test_lipschitz_constant_of_a_chosen_layer(rng):
    network = Transformer(d=3, d_k=2, m=4, c=1, layers=2)
    parameters = initialize(network, rng)
    assert token_lipschitz(network, parameters) == token_lipschitz(network, parameters, 2)
    assert token_lipschitz(network, parameters, 1) != token_lipschitz(network, parameters, 2)


# -- depth


def test_spread_layer_by_layer_against_a_loop(rng):
    network = Transformer(d=4, d_k=3, m=2, c=1, layers=3, heads=2, beta_attention=0.4, beta_ffn=1.0)
    weights, T = pure_attention(network, rng), rng.standard_normal((2, 5, 4))
    found = token_spread(network, weights, T)
    for layer in range(4):
        np.testing.assert_allclose(found[layer], np.linalg.norm(T - T.mean(axis=1, keepdims=True), axis=(1, 2)))
        if layer < 3:
            block = lambda b, h, l=layer: weights[f"{b}.{l + 1}.{h}"]  # noqa: E731
            logits = [T @ block("W_Q", h) @ (T @ block("W_K", h)).swapaxes(1, 2) / 3**0.5 for h in (1, 2)]
            T = 0.4 * T + sum(softmax(g) @ T @ block("W_V", h) for h, g in zip((1, 2), logits, strict=True))


def test_coefficients_add_heads(rng):
    network = Transformer(d=4, d_k=3, m=2, c=1, layers=1, heads=2)
    weights = initialize(network, rng)
    by_hand = 0.0
    for h in (1, 2):
        product = weights[f"W_Q.1.{h}"] @ weights[f"W_K.1.{h}"].T
        by_hand += np.linalg.norm(product, 2) * np.linalg.norm(weights[f"W_V.1.{h}"], 2) / (2 * 3**0.5)
    np.testing.assert_allclose(collapse_coefficients(network, weights), [by_hand])


def test_bounds_of_one_layer(rng):
    network = Transformer(d=4, d_k=3, m=2, c=1, beta_attention=0.8, beta_ffn=1.0)
    weights = pure_attention(network, rng)
    s, a = np.array([[0.5], [0.0]]), collapse_coefficients(network, weights)[0]
    lower, upper = collapse_bounds(network, weights, s)
    assert lower[0, 0] == pytest.approx(0.5 * (0.8 - a / 4)) and upper[0, 0] == pytest.approx(0.5 * (0.8 + a / 4))
    thinking = weights | {"W_2": np.ones((2, 4))}
    lower, upper_2 = collapse_bounds(network, thinking, s)
    assert np.isnan(lower).all() and upper_2[0, 0] > upper[0, 0]


def test_doubly_exponential_bound():
    np.testing.assert_allclose(doubly_exponential_bound(4.0, 0.25, 2), [0.25, 0.5 * 0.5**3, 0.5 * 0.5**9])


@pytest.mark.parametrize("arguments", [{}, {"x": 2.0}, {"strength": 0.5}, {"beta": 0.3}])
def test_one_step_collapse(arguments):
    network, parameters, X = one_step_collapse(**({"beta": 1.0} | arguments))
    before, after = token_spread(network, parameters, X)[:, 0]
    assert before == pytest.approx(arguments.get("x", 1.0) * 2**0.5) and after < 1e-14
    moved = parameters | {"W_V": 0.9 * parameters["W_V"]}
    assert token_spread(network, moved, X)[1, 0] > 0.01


# -- bad input

X34 = np.arange(12.0).reshape(3, 4) + np.eye(3, 4)
UNIFORM = np.full((3, 3), 1 / 3)
NET = Transformer(d=4, d_k=1, m=2, c=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: centering(0), "n: expected an integer"),
        (lambda: centered([1.0, math.nan]), "T: expected shape"),
        (lambda: oscillation(np.ones((2, 3))), "G: expected shape"),
        (lambda: near_uniform_bound(-0.1), "eps: expected oscillations >= 0"),
        (lambda: monomial_count(0, 2), "r: expected an integer"),
        (lambda: low_rank_logits_bound(-1.0, 2), "a: expected a finite number >= 0"),
        (lambda: low_rank_logits_bound(1.0, 0), "q: expected an integer"),
        (lambda: attention_rank(X34, np.ones((3, 1)), np.ones((3, 1))), "W_Q: expected shape"),
        (lambda: attention_rank(X34, np.ones((4, 1)), np.ones((4, 2))), "W_K: expected shape"),
        (lambda: attention_rank(X34, np.ones((4, 1)), np.ones((4, 1)), np.ones((4, 3))), "W_V: expected shape"),
        (lambda: attention_rank(X34, np.ones((4, 1)), np.ones((4, 1)), digits=10), "digits: expected at least 30"),
        (lambda: residual_bound(X34, X34[:2], 1.0), "attention: expected shape"),
        (lambda: residual_bound(X34, X34, -1.0), "beta: expected a finite number >= 0"),
        (lambda: scalar_value_bound(2 * UNIFORM, X34, 1.0, 1.0), "S: expected rows >= 0 that sum to 1"),
        (lambda: scalar_value_bound(UNIFORM, X34, 1.0, math.inf), "v: expected a finite number"),
        (lambda: value_operator(UNIFORM, np.ones((3, 4)), np.eye(4)), "X: expected full row rank 3, got rank 1"),
        (lambda: value_operator(UNIFORM, X34, np.eye(3)), "W_V: expected shape"),
        (lambda: exceptional_betas(UNIFORM, X34, np.eye(4), tolerance=0.0), "tolerance: expected a finite number > 0"),
        (lambda: deficient_value(3, 0.0), "beta: expected a finite number > 0"),
        (lambda: token_lipschitz(NET, {}, layer=2), "layer: expected at most 1"),
        (lambda: uniform_loss_floor(np.ones((2, 2))), "Y: expected shape"),
        (lambda: loss_floor(NET, {}, X34[None], X34[None, :, :1]), "parameters: expected the blocks"),
        (lambda: pure_attention(NET.with_beta(0.5), np.random.default_rng(0)), "beta_ffn: expected 1"),
        (lambda: collapse_bounds(NET, {}, np.ones((3, 1))), "spreads: expected shape"),
        (lambda: doubly_exponential_bound(0.0, 1.0, 2), "a: expected a finite number > 0"),
        (lambda: doubly_exponential_bound(1.0, -1.0, 2), "spread_0: expected a finite number >= 0"),
        (lambda: doubly_exponential_bound(1.0, 1.0, 0), "layers: expected an integer"),
        (lambda: one_step_collapse(1.0, x=0.0), "x: expected a finite number > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="^" + message):
        call()


def test_negative_entry_of_attention_is_named():
    S = np.array([[2.0, -1.0], [0.5, 0.5]])
    with pytest.raises(ValueError, match="S: expected rows >= 0 that sum to 1, got a negative entry"):
        scalar_value_bound(S, np.eye(2), 1.0, 1.0)
