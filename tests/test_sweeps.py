"""Sweeps over residual coefficients: batch against single runs, step rules, starts, tables, spectra, forecast."""

import contextlib

import numpy as np
import pytest

from residual_gd.descent import descend
from residual_gd.experiments.checkpoints import Checkpoint
from residual_gd.experiments.forecast import forecast
from residual_gd.experiments.settings import setting
from residual_gd.experiments.start_ratio import ratio, start_ratios
from residual_gd.experiments.start_spectra import largest_change, rank_correlation, start_spectra
from residual_gd.experiments.sweeps import BETAS, Sweep, beta_sweep, gains, show, starts, step_grid
from residual_gd.experiments.weather import load_embedded
from residual_gd.jacobian import jacobian, lambda_max
from residual_gd.matrices import condition_number
from residual_gd.parameters import pick_run
from residual_gd.rank import uniform_loss_floor
from residual_gd.samples import stack
from residual_gd.transformer import forward, loss

SMALL = {"d_k": 3, "m": 7, "steps": 20, "trace_every": 10, "seeds": 2}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 4, 2))


@pytest.fixture(scope="module")
def embedded():
    return load_embedded()


def test_a_sweep_is_its_single_runs(data):
    X, Y = data
    sweep = beta_sweep(X, Y, **SMALL)
    network, runs = starts(X, Y, seeds=2, d_k=3, m=7)
    assert sweep.betas == BETAS and sweep.loss.shape == (3, 5, 2) and sweep.iterations.tolist() == [0, 10, 20]
    for b, beta in enumerate(BETAS):
        for s, start in enumerate(runs):
            alone = descend(
                network.with_beta(beta), start, X, Y, steps=20, step=float(sweep.step[b, s]), trace_every=10
            )
            assert np.allclose(sweep.loss[:, b, s], alone.loss, rtol=1e-11, atol=1e-12 * alone.loss[0])
            assert np.allclose(sweep.sigma_min_Z[:, b, s], alone.sigma_min_Z)
            assert np.allclose(sweep.sigma_max_Z[:, b, s], alone.sigma_max_Z)
            last = pick_run(sweep.trace.parameters, 2 * b + s)
            assert loss(network.with_beta(beta), last, X, Y) == pytest.approx(alone.loss[-1])


def test_seeds_differ_and_betas_share_the_start(data):
    X, Y = data
    _, (first, second) = starts(X, Y, seeds=2)
    _, (again,) = starts(X, Y, seeds=1, betas=(0.3,))
    assert all(np.array_equal(first[b], again[b]) and not np.array_equal(first[b], second[b]) for b in first)


def test_scales_of_the_start(data):
    X, Y = data
    _, (plain,) = starts(X, Y, seeds=1)
    _, (scaled,) = starts(X, Y, seeds=1, sigma_Q=0.0, scales={"W_U": 0.1})
    assert not scaled["W_Q"].any() and not scaled["W_K"].any()
    assert np.allclose(scaled["W_U"], 0.1 * plain["W_U"]) and np.array_equal(scaled["W_1"], plain["W_1"])


def test_step_rules(data):
    X, Y = data
    network, runs = starts(X, Y, seeds=2, d_k=3, m=7)
    largest = [[lambda_max(network.with_beta(b), s, X, np.random.default_rng(0)) for s in runs] for b in BETAS]
    common, fair = (beta_sweep(X, Y, step=rule, tau=0.5, **SMALL).step for rule in ("common", "fair"))
    assert np.allclose(fair, 0.5 / np.array(largest), rtol=1e-2)
    assert np.allclose(common, 0.5 / np.array(largest)[-1], rtol=1e-2)
    assert (beta_sweep(X, Y, step=0.01, **SMALL).step == 0.01).all()


def test_a_grid_of_steps_is_its_sweeps(data):
    X, Y = data
    grid = step_grid(X, Y, taus=(0.5, 1.0), **SMALL)
    for tau, sweep in zip((0.5, 1.0), grid, strict=True):
        alone = beta_sweep(X, Y, tau=tau, **SMALL)
        assert np.allclose(sweep.loss, alone.loss, rtol=1e-11) and np.allclose(sweep.step, alone.step)
        assert np.allclose(sweep.trace.parameters["W_V"], alone.trace.parameters["W_V"])


def test_a_diverged_run_is_marked_and_the_others_go_on(data):
    X, Y = data
    sweep = beta_sweep(X, Y, step=1.0, betas=(0.0, 3.0), **SMALL)
    assert np.isinf(sweep.loss[-1, 1]).all()
    assert "diverged" in sweep.table()
    assert beta_sweep(X, Y, step=1e-4, betas=(0.0, 3.0), **SMALL).trace.diverged.max() == -1


def test_paper_ratio(data):
    X, Y = data
    sweep = beta_sweep(X, Y, **SMALL)
    low, high = sweep.sigma_min_Z[:, 4, 1], sweep.sigma_max_Z[:, 4, 1]
    assert sweep.paper_ratio()[4, 1] == pytest.approx(low.min() ** 2 / high.max())
    assert sweep.paper_ratio(at_start=True)[4, 1] == pytest.approx(low[0].min() ** 2 / high[0].max())
    assert start_ratios(X, beta=1.0, seeds=2, d_k=3, m=7)[1] == pytest.approx(sweep.paper_ratio(at_start=True)[4, 1])


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_killed_sweep_goes_on_with_the_same_curves(data, tmp_path, stop):
    X, Y = data
    whole = beta_sweep(X, Y, **SMALL)
    options = SMALL | {"checkpoint_every": 10}

    class Killed(Checkpoint):
        saves = 0

        def save(self, state):
            super().save(state)
            Killed.saves += 1
            if Killed.saves == stop:
                raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        beta_sweep(X, Y, checkpoint=Killed(tmp_path / "c", {}), **options)
    resumed = beta_sweep(X, Y, checkpoint=Checkpoint(tmp_path / "c", {}), **options)
    assert resumed.iterations.tolist() == whole.iterations.tolist()
    assert np.array_equal(resumed.loss, whole.loss) and np.array_equal(resumed.sigma_min_Z, whole.sigma_min_Z)


def test_a_run_that_diverged_before_a_checkpoint_stays_diverged(data, tmp_path):
    X, Y = data
    options = SMALL | {"step": 1.0, "betas": (0.0, 3.0), "checkpoint_every": 10}
    parts = beta_sweep(X, Y, checkpoint=Checkpoint(tmp_path / "c", {}), **options)
    whole = beta_sweep(X, Y, step=1.0, betas=(0.0, 3.0), **SMALL)
    assert np.array_equal(parts.trace.diverged, whole.trace.diverged) and np.array_equal(parts.loss, whole.loss)


def test_curves_and_back(data):
    X, Y = data
    sweep = beta_sweep(X, Y, **SMALL)
    again = Sweep.from_curves(sweep.curves())
    assert np.allclose(again.loss, sweep.loss) and np.allclose(again.paper_ratio(), sweep.paper_ratio())
    assert again.table() == sweep.table() and again.betas == sweep.betas


def test_curves_that_do_not_fit(data):
    curves = beta_sweep(*data, **SMALL).curves()
    with pytest.raises(ValueError, match='curves: expected the curve "scale", got betas'):
        Sweep.from_curves({key: values for key, values in curves.items() if key != "scale"})
    with pytest.raises(ValueError, match=r"here: max_sigma_max_Z: expected shape \(3, 5, 2\), got \(3, 5\)"):
        Sweep.from_curves(curves | {"max_sigma_max_Z": curves["max_sigma_max_Z"][..., 0]}, "here")
    diverged = curves["relative_loss"].tolist()
    diverged[-1][4] = ["inf", "nan"]
    assert np.isinf(Sweep.from_curves(curves | {"relative_loss": diverged}).loss[-1, 4, 0])


def test_gains_count_digits():
    losses = np.array([[1e-2, 0.1], [1e-8, 1e-3], [1e-4, 1e-40]])
    last, best = gains(losses)
    assert np.allclose(last, [2.0, 28.0]) and np.allclose(best, [4.0, 28.0])
    assert gains(losses[:, 0]) == (pytest.approx(2.0), pytest.approx(4.0))


def test_show():
    shown = {0.123456: "0.12", 1.0: "1.0", 12.0: "12", 123.0: "120", 6.7e6: "6.7e+06", 4.4e-5: "4e-05", 1e-30: "0"}
    assert {value: show(value) for value in shown} == shown
    assert show(float("inf")) == "diverged"


def test_start_spectra_against_the_definitions(data):
    X, Y = data
    found = start_spectra(X, Y, betas=(0.0, 1.0), seeds=2, d_k=3, m=7)
    network, runs = starts(X, Y, betas=(0.0, 1.0), seeds=2, d_k=3, m=7)
    one = network.with_beta(1.0)
    values, J = forward(one, runs[1], X), jacobian(one, runs[1], X)
    assert np.allclose(found.eigenvalues[1, 1], np.linalg.eigvalsh(J @ J.T), atol=1e-9)
    assert found.kappa_sample[1, 1] == pytest.approx(condition_number(values.Z).max())
    assert np.isinf(found.kappa_stack).all() and np.isfinite(found.reach_stack).all()  # N = 12 > d = 6
    step = np.full((2, 2), 1e-3)
    R = stack(values.F - Y).T.reshape(-1)
    shrink = np.linalg.matrix_power(np.eye(len(R)) - 1e-3 * J @ J.T, 7)
    assert found.frozen_loss(7, step)[1, 1] == pytest.approx(0.5 * np.sum((shrink @ R) ** 2))
    assert found.frozen_loss(0, step)[1, 1] == pytest.approx(loss(one, runs[1], X, Y))
    assert "infinite" in found.table()


def test_the_frozen_prediction_is_the_first_steps(data):
    """For a tiny step the kernel hardly moves, and the prediction is the loss."""
    X, Y = data
    found = start_spectra(X, Y, seeds=2, d_k=3, m=7)
    sweep = beta_sweep(X, Y, step=1e-8, **SMALL)
    fallen = sweep.loss[0] - sweep.loss[-1]
    assert np.allclose(sweep.loss[0] - found.frozen_loss(20, sweep.step), fallen, rtol=2e-3)


def test_rank_correlation():
    left = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert rank_correlation(left, left**3) == pytest.approx(1.0)
    assert rank_correlation(left, -left) == pytest.approx(-1.0)
    assert rank_correlation(left, [[1.0, 2.0], [4.0, 3.0]]) == 0.8  # 1 - 6 * 2 / (4 * 15), without rounding
    with pytest.raises(ValueError, match="right: expected shape"):
        rank_correlation(left, left[0])


def test_largest_change():
    assert largest_change([4.0, 2.0, 1e-12], [4.4, 1.0, 1.0]) == pytest.approx(2.0)
    assert largest_change([4.0, 2.0, 1e-12], [4.4, 1.0, 1.0], rounding=1e-13) == pytest.approx(1e12)
    with pytest.raises(ValueError, match=r"after: expected shape \(2\), got \(1\)"):
        largest_change([1.0, 0.5], [1.0])


def test_ratio_is_linear_in_the_inputs_for_uniform_attention(data):
    X, _ = data
    assert np.allclose(start_ratios(3 * X, beta=1.0, sigma_Q=0.0), 3 * start_ratios(X, beta=1.0, sigma_Q=0.0))
    assert ratio(3 * X) == pytest.approx(3 * ratio(X))
    single = start_ratios(X, beta=1.0, dtype="float32")
    assert np.allclose(single, start_ratios(X, beta=1.0), rtol=1e-3)
    assert not np.array_equal(single, start_ratios(X, beta=1.0))


def test_settings(embedded):
    W1, W2 = setting("W1", embedded), setting("W2", embedded)
    assert W1.X.shape == (16, 8, 32) and W2.X.shape == (4, 8, 64)
    assert np.array_equal(setting("W1", embedded).X, W1.X)
    assert not np.array_equal(setting("W1", embedded, seed=1).X, W1.X)
    assert setting("W2", embedded, samples=3, steps=5).X.shape == (3, 5, 64)
    with pytest.raises(ValueError, match="name: expected one of W1, W2, got 'W3'"):
        setting("W3", embedded)
    with pytest.raises(ValueError, match="samples: expected an integer >= 1, got 0"):
        setting("W1", embedded, samples=0)


def test_the_certain_stall_on_weather(embedded):
    w = setting("W2", embedded)
    sweep = beta_sweep(w.X, w.Y, betas=(0.0, 1.0), seeds=1, steps=300, sigma_Q=0.0, step="fair", spectra=False)
    floor = uniform_loss_floor(w.Y)
    assert sweep.loss[-1, 0, 0] == pytest.approx(floor, rel=1e-6) and sweep.loss[-1, 1, 0] < 1e-3 * floor


def test_forecast_holds_days_out(embedded):
    found = forecast(embedded, steps=5, seeds=2, betas=(1.0,))
    assert found.days == (96, 32) and found.error.shape == (1, 2) == found.looked_up.shape
    T = embedded.column("T")
    held_out = np.arange(3, 128, 4)
    change = T[144 * held_out + 144] - T[144 * held_out + 126]
    assert found.persistence == pytest.approx(np.sqrt(np.mean(change**2)))
    assert np.allclose(found.skill, 1 - (found.error / found.persistence) ** 2)


BAD = {
    "no betas": ({"betas": []}, "betas: expected at least one"),
    "negative beta": ({"betas": [-1.0]}, "beta"),
    "no seeds": ({"seeds": 0}, "seeds: expected an integer >= 1"),
    "unknown rule": ({"step": "long"}, "step: expected one of common, fair"),
    "step 0": ({"step": 0.0}, "step: expected a finite number > 0"),
    "tau 0": ({"tau": 0.0}, "tau: expected a finite number > 0"),
    "unknown matrix": ({"scales": {"W_3": 1.0}}, "scales: expected one of"),
    "checkpoint between": ({"checkpoint_every": 15, "checkpoint": True}, "checkpoint_every: expected a multiple of 10"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_arguments(data, kind):
    arguments, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        beta_sweep(*data, **(SMALL | arguments))


def test_bad_data(data):
    X, Y = data
    with pytest.raises(ValueError, match=r"Y: expected shape \(3, 4, c\)"):
        beta_sweep(X, Y[:2], **SMALL)
    with pytest.raises(ValueError, match="Y: expected targets that are not all zero, got zeros"):
        beta_sweep(X, 0 * Y, **SMALL)
    with pytest.raises(ValueError, match="X: expected finite values"):
        beta_sweep(X * np.nan, Y, **SMALL)
    with pytest.raises(ValueError, match="taus: expected at least one"):
        step_grid(X, Y, taus=(), **SMALL)
    with pytest.raises(ValueError, match="dtype: expected one of float64, float32"):
        start_ratios(X, dtype="float16")
