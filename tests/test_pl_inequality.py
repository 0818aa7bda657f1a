"""The PL constants at a point and on a ball, the features' lower bound, and PL modulo projection."""

import numpy as np
import pytest
from networks import ACTIVATIONS, instance

from residual_gd.activations import activation
from residual_gd.gram import block_grams
from residual_gd.network_majorants import measure, network_majorants
from residual_gd.pl_inequality import alpha_on_ball, block_constants, features_lower_bound, projected_pl
from residual_gd.samples import stack
from residual_gd.transformer import forward


def smallest(K):
    return np.linalg.eigvalsh(K)[0]


@pytest.mark.parametrize("phi", ACTIVATIONS)
@pytest.mark.parametrize("depth", [{}, {"layers": 2, "heads": 2}])
def test_block_constants(phi, depth):
    transformer, parameters, X, _ = instance(3, P=2, n=2, d=6, m=8, activation=phi, **depth)
    constants = block_constants(transformer, parameters, X)
    last = [transformer.name(b, transformer.layers) for b in ("W_1", "W_2")]
    grams = block_grams(transformer, parameters, X, (*last, "W_U"))
    assert pytest.approx(smallest(grams["W_U"]), rel=1e-8) == constants.W_U
    assert pytest.approx(smallest(grams[last[1]]), rel=1e-8, abs=1e-13) == constants.W_2
    assert smallest(grams[last[0]]) + 1e-12 >= constants.W_1
    assert constants.total == constants.W_U + constants.W_2 + constants.W_1
    assert constants.W_1 > 0 or phi == "relu"


def test_more_rows_than_features_leave_the_head_nothing():
    transformer, parameters, X, _ = instance(3, P=2, n=4, d=5, m=12)
    constants = block_constants(transformer, parameters, X)
    assert constants.W_U == 0.0
    assert constants.W_2 > 0.0


def test_alpha_falls_with_the_radii_and_starts_at_the_block_constants():
    transformer, parameters, X, _ = instance(4, P=2, n=2, d=6, m=8)
    start = measure(transformer, parameters, X)
    values = [alpha_on_ball(start, network_majorants(start, r)) for r in (0.0, 1e-4, 1e-3, 1e-2, 10.0)]
    assert values[0] == pytest.approx(block_constants(transformer, parameters, X, start=start).total)
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0
    at = network_majorants(start, 1e-3)
    parts = [alpha_on_ball(start, at, terms=(term,)) for term in ("W_U", "W_2", "W_1")]
    assert sum(parts) == pytest.approx(alpha_on_ball(start, at))


def test_third_term_of_relu_needs_the_margin():
    transformer, parameters, X, _ = instance(4, P=1, n=2, d=6, m=4, activation="relu")
    start = measure(transformer, parameters, X)
    wide = network_majorants(start, 1.0)
    assert not wide.margin_holds
    with pytest.raises(ValueError, match="terms: expected W_1 only with"):
        alpha_on_ball(start, wide, terms=("W_1",))
    assert alpha_on_ball(start, network_majorants(start, 1e-9), terms=("W_1",)) >= 0.0


def test_bad_terms():
    transformer, parameters, X, _ = instance()
    start = measure(transformer, parameters, X)
    with pytest.raises(ValueError, match="terms: expected one of W_U"):
        alpha_on_ball(start, network_majorants(start, 0.0), terms=("W_V",))


def test_features_lower_bound_counts_an_activation_that_is_not_zero_at_zero():
    rng = np.random.default_rng(0)
    Z, W_1, W_2 = (rng.standard_normal(s) for s in ((2, 3), (3, 4), (4, 3)))
    tanh, softplus = (features_lower_bound(Z, W_1, 0.01 * W_2, 1.0, activation(a)) for a in ("tanh", "softplus"))
    assert softplus < tanh
    H = np.tanh(Z @ W_1) @ (0.01 * W_2) + Z
    assert np.linalg.svd(H, compute_uv=False)[-1] >= tanh
    with pytest.raises(ValueError, match="W_2: expected shape"):
        features_lower_bound(Z, W_1, W_2[:2], 1.0, activation("tanh"))


def test_projected_pl():
    transformer, parameters, X, Y = instance(5, P=2, n=4, d=3)
    H = stack(forward(transformer, parameters, X).H)
    found = projected_pl(H, stack(Y))
    best = np.linalg.lstsq(H, stack(Y), rcond=None)[0]
    assert found.rank == 3
    assert found.floor == pytest.approx(0.5 * np.sum((H @ best - stack(Y)) ** 2))
    assert found.head_only_factor(1.0 / found.largest) == pytest.approx((1 - found.constant / found.largest) ** 2)
    assert found.head_only_factor(2.1 / found.largest) > 1.0
    low = projected_pl(np.outer([1.0, 1.0], [3.0, 4.0]), np.array([[1.0], [0.0]]))
    assert low.rank == 1
    assert low.constant == pytest.approx(50.0)
    assert low.floor == pytest.approx(0.25)
    with pytest.raises(ValueError, match="H: expected a nonzero matrix"):
        projected_pl(np.zeros((2, 2)), np.zeros((2, 1)))
