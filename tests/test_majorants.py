"""The majorant calculus against what it bounds: climbs inside the ball, torch's derivatives, bad input."""

import math

import numpy as np
import pytest
import torch

from residual_gd import majorants as rule
from residual_gd.majorants import C_2, GAMMA, softmax_constants
from residual_gd.matrices import singular_values
from residual_gd.network_majorants import measure, network_majorants
from residual_gd.parameters import as_torch, initialize, stack_runs
from residual_gd.samples import stack
from residual_gd.statements import Draw
from residual_gd.statements.balls import FIRST, NORM, SECOND, Case
from residual_gd.statements.instances import SMOOTH, network
from residual_gd.transformer import Transformer, forward, forward_unchecked


def an_instance(seed, **options):
    return network(Draw(np.random.default_rng(seed)), **options)


def random_radii(instance, rng, low=1e-3, high=1.0):
    return np.exp(rng.uniform(math.log(low), math.log(high), len(instance.transformer.blocks)))


def cases(instance, radii, **options):
    """Every intermediate matrix of every layer with its majorant."""
    transformer, parameters, X, _ = instance.parts
    bounds = network_majorants(measure(transformer, parameters, X), radii, **options)

    def case(bound, value, diagonal=False):
        return Case(lambda at: value(forward_unchecked(transformer, at, X)), bound, parameters, radii, diagonal)

    for number, layer in enumerate(bounds.layers):
        for name in ("Z", "E", "A", "H"):
            yield case(getattr(layer, name), lambda v, i=number, name=name: getattr(v.layers[i], name))
        for h in range(transformer.heads):
            yield case(layer.G[h], lambda v, i=number, h=h: v.layers[i].G[h], True)
            yield case(layer.S[h], lambda v, i=number, h=h: v.layers[i].S[h], True)
            yield case(layer.ST[h], lambda v, i=number, h=h: v.layers[i].S[h] @ v.layers[i].T)
    yield case(bounds.F, lambda v: v.F)


@pytest.mark.parametrize("seed", range(40))
def test_no_random_parallelogram_passes_a_majorant(seed):
    instance = an_instance(seed, deep=True, activations=(*SMOOTH, "relu"))
    rng = np.random.default_rng(seed)
    for case in cases(instance, random_radii(instance, rng)):
        for comparison in case.random(Draw(rng)):
            assert comparison.holds, comparison


@pytest.mark.parametrize("order", [NORM, FIRST, SECOND])
@pytest.mark.parametrize("seed", range(4))
def test_no_climb_inside_the_ball_passes_a_majorant(seed, order):
    instance = an_instance(100 + seed, deep=True, largest=3, activations=("gelu", "tanh", "softplus"))
    rng = np.random.default_rng(seed)
    for case in cases(instance, random_radii(instance, rng)):
        for comparison in case.ascend(rng, order, share=0.1, steps=40):
            assert comparison.holds, comparison


@pytest.mark.parametrize("seed", range(10))
def test_derivatives_by_torch_stay_below_f1_and_f2(seed):
    instance = an_instance(200 + seed, deep=True)
    transformer, parameters, X, _ = instance.parts
    rng = np.random.default_rng(seed)
    radii = random_radii(instance, rng)
    bounds = network_majorants(measure(transformer, parameters, X), radii)
    scaled = [{b: rng.standard_normal(W.shape) for b, W in parameters.items()} for _ in range(3)]
    rho = dict(zip(parameters, radii, strict=True))
    point = {b: W + rho[b] * scaled[0][b] / np.linalg.norm(scaled[0][b]) for b, W in parameters.items()}
    point, D, D2 = as_torch(point), as_torch(scaled[1]), as_torch(scaled[2])

    def along(at):
        return torch.func.jvp(lambda p: forward_unchecked(transformer, p, as_torch(X)).F, (at,), (D,))[1]

    first, second = torch.func.jvp(along, (point,), (D2,))
    Delta, Delta2 = ([float(part[b].norm()) for b in transformer.blocks] for part in (D, D2))
    assert float(first.norm()) <= bounds.f1 @ Delta
    assert float(second.norm()) <= Delta @ bounds.f2 @ Delta2


@pytest.mark.parametrize("seed", range(10))
def test_attention_weights_stay_below_s_max(seed):
    instance = an_instance(300 + seed, deep=True)
    transformer, parameters, X, _ = instance.parts
    rng = np.random.default_rng(seed)
    radii = random_radii(instance, rng, high=0.3)
    bounds = network_majorants(measure(transformer, parameters, X), radii)
    case = next(cases(instance, radii))
    for _ in range(20):
        values = forward(transformer, case.parallelogram(rng.standard_normal(case.free), 0.01)[0][0], X)
        for at, layer in zip(values.layers, bounds.layers, strict=True):
            for S, s_max in zip(at.S, layer.s_max, strict=True):
                assert S.max() <= s_max


def test_softmax_constants():
    assert softmax_constants(1.0) == (GAMMA, C_2) == (0.5, math.sqrt(6.0) / 9.0)
    assert softmax_constants(0.01) == (0.01, math.sqrt(2.0) * 0.01)


def test_start_measures_what_it_says():
    instance = an_instance(0, deep=True, d=4, m=5, c=2)
    transformer, parameters, X, _ = instance.parts
    start, values = measure(transformer, parameters, X), forward(transformer, parameters, X)
    assert start.weight("W_U") == pytest.approx(singular_values(parameters["W_U"])[0])
    assert start.X.stacked == pytest.approx(singular_values(stack(X))[0])
    assert start.X.sample == pytest.approx(singular_values(X).max())
    assert start.rows == X.shape[0] * X.shape[1] and start.tokens == X.shape[1]
    for name, minimum in (("H", start.sigma_min_H), ("A", start.sigma_min_A), ("Z", start.sigma_min_Z)):
        T = stack(getattr(values, name))
        expected = np.linalg.svd(T)[1][-1] if T.shape[0] <= T.shape[1] else 0.0
        assert minimum == pytest.approx(expected, abs=1e-12)
    assert start.sigma_c_head == pytest.approx(np.linalg.svd(parameters["W_U"])[1][1])
    omega = parameters[transformer.name("W_2", transformer.layers)] @ parameters["W_U"]
    slopes = transformer.activation.derivative(stack(values.E))
    assert start.sigma_c_rows == pytest.approx(min(np.linalg.svd(np.diag(row) @ omega)[1][1] for row in slopes))
    assert start.omega_norm == pytest.approx(np.linalg.norm(omega, 2))
    assert start.layers[-1].margin == np.abs(values.E).min()


def test_radius_zero_gives_the_norms_at_the_start():
    instance = an_instance(1, deep=True)
    start = measure(*instance.parts[:3])
    bounds = network_majorants(start, 0.0)
    values = forward(*instance.parts[:3])
    assert bounds.H.norm <= np.linalg.norm(stack(values.H), 2) * (1 + 1e-12)
    assert bounds.f1[-1] == bounds.H.norm


def test_softplus_keeps_its_value_at_zero():
    # all pre-activations are 0, yet A = log 2 everywhere: only anchoring can know
    transformer = Transformer(d=2, d_k=2, m=3, c=2, activation="softplus")
    parameters = initialize(transformer, np.random.default_rng(0), W_1=0.0)
    bounds = network_majorants(measure(transformer, parameters, np.ones((2, 2, 2))), 0.0)
    assert bounds.A.norm == pytest.approx(math.log(2.0) * math.sqrt(4 * 3))


@pytest.mark.parametrize("seed", range(5))
def test_bounds_grow_with_the_radii(seed):
    instance = an_instance(400 + seed, deep=True)
    rng = np.random.default_rng(seed)
    start, radii = measure(*instance.parts[:3]), random_radii(instance, rng)
    small, large = network_majorants(start, radii), network_majorants(start, radii * rng.uniform(1.0, 2.0, radii.size))
    for name in ("h1", "f1", "h2", "f2"):
        assert np.all(getattr(small, name) <= getattr(large, name) * (1 + 1e-12))
    assert small.smoothness(1.0) <= large.smoothness(1.0) * (1 + 1e-12)


def test_radii_as_array_dict_or_number():
    instance = an_instance(2)
    start = measure(*instance.parts[:3])
    as_dict = network_majorants(start, dict.fromkeys(instance.transformer.blocks, 0.1))
    for other in (0.1, np.full(6, 0.1)):
        np.testing.assert_array_equal(network_majorants(start, other).f2, as_dict.f2)


@pytest.mark.parametrize("name", ["beta_attention", "beta_ffn"])
def test_both_skips_matter(name):
    instance = an_instance(3, beta_attention=0.5, beta_ffn=0.5)
    transformer, parameters, X, _ = instance.parts
    other = transformer.with_beta(**{"beta_attention": 0.5, "beta_ffn": 0.5, name: 1.0})
    before, after = (network_majorants(measure(t, parameters, X), 0.1) for t in (transformer, other))
    assert not np.allclose(before.h1, after.h1)


def test_wide_balls_stay_finite():
    instance = an_instance(4, deep=True)
    bounds = network_majorants(measure(*instance.parts[:3]), 1e6)
    assert np.all(np.isfinite(bounds.f2)) and bounds.layers[0].s_max[0] == 1.0


def margin_network():
    """A ReLU network whose pre-activations are 1 and 2."""
    transformer = Transformer(d=1, d_k=1, m=2, c=1, activation="relu", beta=1.0, layers=2)
    parameters = {b: np.full(shape, 0.1) for b, shape in transformer.shapes.items()}
    for layer in (1, 2):
        parameters |= {f"W_1.{layer}": np.array([[1.0, 2.0]]), f"W_V.{layer}.1": np.zeros((1, 1))}
    return transformer, parameters, np.ones((1, 1, 1))


def test_relu_has_second_order_only_with_a_margin():
    transformer, parameters, X = margin_network()
    start = measure(transformer, parameters, X)
    without = network_majorants(start, 0.01)
    assert without.margin_holds and not without.H.smooth
    with pytest.raises(ValueError, match="second derivative"):
        without.smoothness(1.0)
    assert network_majorants(start, 0.01, margin=True).smoothness(1.0) > 0
    far = network_majorants(start, 1.0, margin=True)
    assert not far.margin_holds and not far.H.smooth
    np.testing.assert_array_equal(network_majorants(start, 1.0).h1, far.h1)


def test_relu_second_order_with_a_margin_is_not_passed():
    transformer, parameters, X = margin_network()
    radii = np.full(len(parameters), 0.02)
    bounds = network_majorants(measure(transformer, parameters, X), radii, margin=True)
    case = Case(lambda at: forward_unchecked(transformer, at, X).F, bounds.F, parameters, radii)
    rng = np.random.default_rng(0)
    found = case.ascend(rng, SECOND, share=0.2)
    assert all(c.holds for c in found) and found[-1].ratio > 0.3


def test_no_margin_where_an_entry_of_E_can_reach_zero():
    transformer, parameters, X = margin_network()
    start = measure(transformer, parameters, X)
    # the margin is 1, in the first layer; e1 . rho passes it when W_1.1 alone may move by 1
    radii = dict.fromkeys(parameters, 0.0)
    assert network_majorants(start, radii | {"W_1.1": 0.999}, margin=True).layers[0].A.smooth
    assert not network_majorants(start, radii | {"W_1.1": 1.0}, margin=True).margin_holds


@pytest.mark.parametrize(
    ("radii", "message"),
    [
        (-0.1, "radii: expected a finite number >= 0"),
        (np.full(5, 0.1), r"radii: expected shape \(6\)"),
        (np.array([0.1] * 5 + [-1.0]), "radii: expected radii >= 0"),
        (np.array([0.1] * 5 + [math.nan]), "radii: expected finite values"),
        ({"W_Q": 0.1}, "radii: expected the blocks"),
    ],
)
def test_bad_radii(radii, message):
    instance = an_instance(5)
    with pytest.raises(ValueError, match=message):
        network_majorants(measure(*instance.parts[:3]), radii)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda W: rule.block(2, 1.0, 0.1, 2), "index"),
        (lambda W: rule.block(-1, 1.0, 0.1, 2), "index"),
        (lambda W: rule.block(0, 1.0, -0.1, 2), "radius"),
        (lambda W: rule.block(0, math.nan, 0.1, 2), "norm"),
        (lambda W: rule.constant(-1.0, 1.0, 2), "norm"),
        (lambda W: rule.scale(-1.0, W), "factor"),
        (lambda W: rule.softmax(W, 0), "tokens"),
        (lambda W: rule.softmax(W, 3, 1.5), "s_max"),
        (lambda W: rule.activate(W, -1.0, 1.0), "l_phi"),
        (lambda W: rule.activate(W, 1.0, math.nan), "b_phi"),
    ],
)
def test_rules_refuse_what_is_no_majorant(call, name):
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        call(rule.block(0, 1.0, 0.1, 2))


def test_bad_input():
    instance = an_instance(6, activations=("gelu",))
    transformer, parameters, X, _ = instance.parts
    start = measure(transformer, parameters, X)
    with pytest.raises(ValueError, match="margin: expected the activation relu, got gelu"):
        network_majorants(start, 0.1, margin=True)
    with pytest.raises(ValueError, match="residual_norm"):
        network_majorants(start, 0.1).smoothness(-1.0)
    with pytest.raises(ValueError, match="start: expected what measure"):
        network_majorants(transformer, 0.1)
    with pytest.raises(ValueError, match="one run"):
        measure(transformer, stack_runs([parameters, parameters]), X)
    with pytest.raises(ValueError, match="X: expected finite values"):
        measure(transformer, parameters, X * math.nan)
