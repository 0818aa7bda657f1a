"""Gradient descent: the trace, the step rules, batches against single runs, divergence."""

import numpy as np
import pytest
from networks import instance

from residual_gd.descent import DivergenceError, descend, feature_step, gram_step
from residual_gd.jacobian import lambda_max
from residual_gd.matrices import sigma_max, sigma_min
from residual_gd.parameters import as_torch, initialize, pick_run, stack_runs
from residual_gd.samples import stack
from residual_gd.transformer import forward, gradient, loss


def test_one_step_is_the_definition():
    transformer, parameters, X, Y = instance(layers=2, heads=2)
    trace = descend(transformer, parameters, X, Y, steps=1, step=0.01)
    blocks = gradient(transformer, parameters, X, Y)
    for b in parameters:
        assert np.array_equal(trace.parameters[b], parameters[b] - 0.01 * blocks[b])
        assert trace.distances[b][1] == pytest.approx(0.01 * np.linalg.norm(blocks[b]), rel=1e-10)
    assert trace.loss[1] == pytest.approx(loss(transformer, trace.parameters, X, Y), rel=1e-13)


def test_trace_holds_what_it_says():
    transformer, parameters, X, Y = instance(d=16)
    trace = descend(transformer, parameters, X, Y, steps=25, step=0.005, trace_every=10)
    assert trace.iterations.tolist() == [0, 10, 20, 25] and trace.loss.shape == (4,)
    assert (np.diff(trace.loss) < 0).all() and trace.relative_loss[0] == 1
    Z = forward(transformer, trace.parameters, X).Z
    assert np.allclose(trace.sigma_min_Z[-1], sigma_min(Z)) and np.allclose(trace.sigma_max_Z[-1], sigma_max(Z))
    assert trace.sigma_min_stacked[-1] == pytest.approx(sigma_min(stack(Z)))
    assert trace.sigma_max_stacked[-1] == pytest.approx(sigma_max(stack(Z)))
    assert descend(transformer, parameters, X, Y, steps=1, step=0.005, spectra=False).sigma_min_Z is None


def test_step_rules():
    transformer, parameters, X, Y = instance()
    H = stack(forward(transformer, parameters, X).H)
    trace = descend(transformer, parameters, X, Y, steps=1, step=feature_step(0.5))
    assert trace.step == pytest.approx(0.5 / np.linalg.norm(H, 2) ** 2)
    trace = descend(transformer, parameters, X, Y, steps=1, step=gram_step(np.random.default_rng(0), 0.5))
    assert trace.step == pytest.approx(0.5 / lambda_max(transformer, parameters, X, np.random.default_rng(0)))


def test_stops_when_low_enough():
    transformer, parameters, X, Y = instance(d=16)
    trace = descend(transformer, parameters, X, Y, steps=5000, step=0.01, stop_below=1e-3)
    assert trace.loss[-1] <= 1e-3 < trace.loss[-2]


@pytest.mark.parametrize("layers, heads", [(1, 1), (2, 2)])
def test_batch_equals_single_runs(layers, heads):
    betas, seeds = np.repeat([0.0, 0.25, 0.75, 1.0], 8), np.tile(np.arange(8), 4)
    transformer, _, X, Y = instance(d=16, m=16, layers=layers, heads=heads, beta=betas)
    runs = [initialize(transformer, np.random.default_rng(s), W_2=0.3, W_U=0.3) for s in seeds]
    mu = np.linspace(0.0005, 0.002, 32)
    together = descend(transformer, stack_runs(runs), X, Y, steps=200, step=mu, trace_every=20)
    for r in range(32):
        single = descend(transformer.with_beta(betas[r]), runs[r], X, Y, steps=200, step=mu[r], trace_every=20)
        assert np.abs(together.loss[:, r] - single.loss).max() <= 1e-12 * single.loss[0]
        for b, W in pick_run(together.parameters, r).items():
            assert np.abs(W - single.parameters[b]).max() <= 1e-9


def test_runs_with_data_of_their_own():
    transformer, parameters, X, Y = instance()
    rng = np.random.default_rng(5)
    data = np.stack([X, rng.standard_normal(X.shape)])
    together = descend(transformer, parameters, data, Y, steps=20, step=0.01)
    for r in range(2):
        single = descend(transformer, parameters, data[r], Y, steps=20, step=0.01)
        assert np.allclose(together.loss[:, r], single.loss, rtol=1e-12)


def test_torch_gives_the_same_run():
    transformer, parameters, X, Y = instance()
    numpy_run = descend(transformer, parameters, X, Y, steps=50, step=0.01)
    torch_run = descend(transformer, as_torch(parameters), as_torch(X), as_torch(Y), steps=50, step=0.01)
    assert np.allclose(numpy_run.loss, torch_run.loss, rtol=1e-10)
    assert isinstance(torch_run.loss, np.ndarray)


def test_divergence_is_said():
    transformer, parameters, X, Y = instance()
    with pytest.raises(DivergenceError, match=r"loss of the run is not finite at iteration \d+ \(step 50\)"):
        descend(transformer, parameters, X, Y, steps=100, step=50.0)


def test_diverged_runs_are_marked_and_the_others_go_on():
    transformer, parameters, X, Y = instance(beta=[0.5, 1.0, 1.0])
    mu = np.array([0.001, 50.0, 0.001])
    trace = descend(transformer, parameters, X, Y, steps=100, step=mu, on_divergence="mark")
    assert trace.diverged[1] > 0 and trace.diverged[[0, 2]].tolist() == [-1, -1]
    assert trace.loss[-1, 1] == np.inf and all(np.isfinite(W).all() for W in trace.parameters.values())
    assert np.array_equal(trace.step, mu)
    alone = descend(transformer.with_beta(1.0), parameters, X, Y, steps=100, step=0.001)
    assert trace.loss[-1, 2] == pytest.approx(alone.loss[-1], rel=1e-12)


T, W, X, Y = instance()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"steps": 0, "step": 0.1}, "steps: expected an integer >= 1, got 0"),
        ({"steps": 5, "step": -0.1}, "step: expected step sizes > 0"),
        ({"steps": 5, "step": "big"}, "step: expected an array of numbers"),
        ({"steps": 5, "step": [0.1, 0.1]}, r"step: expected a number or shape \(\), got shape \(2,\)"),
        ({"steps": 5, "step": np.nan}, "step: expected finite values"),
        ({"steps": 5, "step": 0.1, "trace_every": 0}, "trace_every: expected an integer >= 1"),
        ({"steps": 5, "step": 0.1, "on_divergence": "ignore"}, "on_divergence: expected one of raise, mark"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match="^" + message):
        descend(T, W, X, Y, **options)


def test_bad_step_rules():
    with pytest.raises(ValueError, match=r"^tau: expected a finite number > 0, got 0"):
        feature_step(0)
    with pytest.raises(ValueError, match=r"^tau: expected a finite number > 0, got -1"):
        gram_step(np.random.default_rng(0), -1)
