"""Chapter 9: depth at the start, causal softmax, LayerNorm, certificates of deep networks; the landscape figures."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from residual_gd.beyond import causal_softmax, depth_conditioning, layer_growth, layer_norm, sign_changes
from residual_gd.certificates import certify
from residual_gd.certified_runs import run_certified
from residual_gd.figures import landscape
from residual_gd.parameters import as_torch, initialize
from residual_gd.transformer import Transformer, forward


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def deep(rng, layers=2, heads=2, **options):
    net = Transformer(d=8, d_k=2, m=5, c=2, layers=layers, heads=heads, **options)
    return net, initialize(net, rng, "zero-head"), rng.standard_normal((2, 3, 8))


def test_layer_growth_is_the_lemmas_formula(rng):
    net, theta, X = deep(rng)
    norms = {block: np.linalg.norm(W, 2) for block, W in theta.items()}
    attention = 1 + 3**0.5 * (norms["W_V.2.1"] + norms["W_V.2.2"])
    branch = 1 + net.activation.l_phi * norms["W_1.2"] * norms["W_2.2"]
    assert layer_growth(net, theta, 3, 2) == pytest.approx(attention * branch - 1)
    found = depth_conditioning(net, theta, X)
    assert found.growth[1] == pytest.approx(attention * branch - 1)
    assert np.exp(found.total) == pytest.approx(np.prod(1 + found.growth))
    assert found.drift == pytest.approx(np.linalg.norm(forward(net, theta, X).H - X))
    assert found.drift <= found.drift_bound


def test_every_layer_and_every_head_counts(rng):
    net, theta, X = deep(rng)
    before = depth_conditioning(net, theta, X).total
    for block in theta:
        larger = depth_conditioning(net, theta | {block: 2 * theta[block]}, X).total
        assert (larger > before) == (block.split(".")[0] in ("W_V", "W_1", "W_2")), block


def test_idle_branches_move_nothing(rng):
    net, theta, X = deep(rng)
    idle = {b: 0 * W if b.split(".")[0] in ("W_V", "W_2") else W for b, W in theta.items()}
    found = depth_conditioning(net, idle, X)
    assert (found.total, found.drift, found.drift_bound) == (0, 0, 0)
    assert found.sigma_min_H == pytest.approx(found.sigma_min_bound)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"beta": 0.5}, "transformer: expected both skips with coefficient 1"),
        ({"beta_ffn": 0.0}, "transformer: expected both skips with coefficient 1"),
        ({"activation": "softplus"}, r"activation: expected phi\(0\) = 0"),
    ],
)
def test_depth_conditioning_refuses_what_the_lemma_excludes(rng, options, message):
    with pytest.raises(ValueError, match=message):
        depth_conditioning(*deep(rng, **options))


def test_sign_changes():
    assert sign_changes([1.0, -1.0, 0.0, -2.0, 3.0, 0.0]) == 2
    assert sign_changes([1.0, 2.0]) == 0
    with pytest.raises(ValueError, match="values"):
        sign_changes([[1.0]])


def test_causal_softmax_row_by_row(rng):
    G = 5 * rng.standard_normal((4, 3, 6, 6))
    S = causal_softmax(G)
    for i in range(6):
        weights = np.exp(G[..., i, : i + 1])
        np.testing.assert_allclose(S[..., i, : i + 1], weights / weights.sum(-1, keepdims=True), rtol=1e-13)
        assert not np.any(S[..., i, i + 1 :])
    np.testing.assert_allclose(causal_softmax(as_torch(G)).numpy(), S, rtol=1e-13)


def test_equal_logits_give_means_over_the_past():
    S = causal_softmax(np.zeros((3, 3)))
    np.testing.assert_allclose(S, [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_layer_norm_is_torchs(rng):
    T = rng.standard_normal((2, 3, 7))
    for epsilon in (1e-5, 0.3):
        expected = torch.nn.functional.layer_norm(as_torch(T), (7,), eps=epsilon)
        np.testing.assert_allclose(layer_norm(T, epsilon), expected.numpy(), rtol=1e-12)
        np.testing.assert_allclose(layer_norm(as_torch(T), epsilon).numpy(), expected.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="epsilon"):
        layer_norm(T, 0.0)


@pytest.mark.parametrize("layers, heads", [(2, 2), (3, 1)])
def test_deep_runs_stay_under_their_envelope(rng, layers, heads):
    net = Transformer(d=64, d_k=8, m=64, c=2, layers=layers, heads=heads)
    theta = initialize(net, rng, "zero-head", W_V=0.01, W_1=0.05, W_2=0.01)
    X, Y = rng.standard_normal((2, 5, 64)), rng.standard_normal((2, 5, 2))
    certificate = certify(net, theta, X, 0.05 * Y / np.linalg.norm(Y))
    assert certificate.holds, str(certificate)
    run = run_certified(certificate)
    assert run.under_envelope and run.inside
    assert 0.95 <= run.log_rate_ratio <= 1.0 + 1e-6


@pytest.mark.parametrize("form", ["descent", "smooth", "kernel"])
def test_hopeless_deep_starts_are_refused_without_overflow(rng, form):
    net = Transformer(d=8, d_k=4, m=8, c=2, layers=4, heads=2)
    theta = initialize(net, rng)
    X = rng.standard_normal((2, 3, 8))
    for size in (1e-6, 1.0, 1e6):
        Y = forward(net, theta, X).F + size * rng.standard_normal((2, 3, 2))
        certificate = certify(net, theta, X, Y, form=form)
        assert size == 1e-6 or not certificate.holds


def test_figures_draw_what_they_are_handed():
    line = np.linspace(0.5, 2.0, 5)
    curve = np.column_stack([line, 1 / line])
    figures = [
        landscape.valley(lambda a, b: (a * b - 1) ** 2, curve, [curve], curve[[0, -1]]),
        landscape.bound_against_radius(line, 1 / line, {"measured": 2 / line}),
        landscape.stacked_and_per_sample([1, 2, 3], [3.0, 2.0, 2.0], [3.0, 1.0, 0.0], edge=2),
        landscape.against_depth((1, 2, 4), {"measured": [1, 1, 1], "proved": [0, 0, 0]}, {"x": [1, 2, 3]}),
        landscape.zeros(line, {"f": line - 1}, xlabel="x", ylabel="y"),
        landscape.through_layers({"no skips": [1.0, 1e-5, 0.0]}, ylabel="y"),
    ]
    assert [len(figure.axes) for figure in figures] == [2, 1, 1, 2, 1, 1]
    assert figures[5].axes[0].lines[0].get_ydata()[-1] == 1e-17
    plt.close("all")
