"""Certificates: certified runs of the gallery, refusals with their reasons, the fixed point, bad input."""

import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from networks import instance

from residual_gd.certificates import ALL_FORMS, certify, jacobian_singular_values, largest_certified_residual
from residual_gd.certified_runs import measured_factor, rounding_floor, run_certified
from residual_gd.descent import descend
from residual_gd.gallery import NAMES, correlated_tokens, example, weather_example
from residual_gd.network_majorants import measure
from residual_gd.obstructions import equal_rows, obstructions
from residual_gd.rate_forms import FORMS, Problem, less_rounding, smallest_radii
from residual_gd.transformer import forward

# certified over observed log-rate that each run must reach
RATES = {
    "gelu": 0.95, "tanh": 0.9, "two-layers": 0.95, "relu": 0.85, "relu-two-layers": 0.85,
    "weather-gelu": 0.85, "weather-relu": 0.85,
}  # fmt: skip


@cache
def certified_run(name):
    case = example(name)
    certificate = certify(*case.parts, form=case.form)
    assert certificate.holds, str(certificate)
    return run_certified(certificate)


@pytest.mark.parametrize("name", NAMES)
def test_gallery_stays_under_its_envelope_down_to_the_rounding_floor(name):
    run = certified_run(name)
    assert run.under_envelope, run.worst_ratio
    assert run.trace.loss[-1] <= max(run.floor, run.envelope[-1])
    assert run.envelope[-1] <= 2.0 * run.floor or run.trace.loss[-1] <= run.floor


@pytest.mark.parametrize("name", NAMES)
def test_gallery_stays_inside_its_radii(name):
    run = certified_run(name)
    assert run.inside
    assert 0.01 < max(run.moved.values()) <= 1.0


@pytest.mark.parametrize(("name", "least"), RATES.items())
def test_gallery_predicts_the_rate(name, least):
    assert least <= certified_run(name).log_rate_ratio <= 1.0


@pytest.mark.parametrize("name", ["weather-gelu", "weather-relu"])
def test_weather_is_learned(name):
    run = certified_run(name)
    assert run.certificate.start.rows >= 64
    assert run.trace.relative_loss[-1] <= 1e-12


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_overlapping_windows_are_refused_with_the_reason(activation):
    case = weather_example(activation, overlap=True)
    assert len(equal_rows(case.X)) == 28
    certificate = certify(*case.parts, form=case.form)
    assert not certificate.holds
    assert "28 of 64 rows of X repeat an earlier one" in certificate.advice[0]
    assert "overlap" in str(certificate)


@pytest.mark.parametrize("form", ALL_FORMS)
def test_every_form_certifies_a_small_target_and_refuses_a_large_one(form):
    case = example("gelu")
    small, large = (certify(*case.scaled(s).parts, form=form) for s in (1e-3, 1e3))
    assert small.holds
    assert small.failed == ()
    assert small.advice == ()
    assert not large.holds
    assert large.failed
    assert all(h.margin < 0 or math.isnan(h.margin) or h.measured == h.needed for h in large.failed)
    assert "largest_certified_residual" in large.advice[-1]
    assert math.isnan(large.step)
    assert math.isnan(large.rate)


@pytest.mark.parametrize("form", ALL_FORMS)
def test_largest_certified_residual_is_the_boundary(form):
    transformer, parameters, X, Y = instance(1, P=2, n=2, d=8, m=8)
    parameters = parameters | {"W_U": np.zeros_like(parameters["W_U"])}
    parameters |= {b: 0.05 * parameters[b] for b in ("W_V", "W_2")}
    found = largest_certified_residual(transformer, parameters, X, Y, form)
    assert certify(transformer, parameters, X, found.targets, form).holds
    assert not certify(transformer, parameters, X, 1.01 * found.targets, form).holds
    assert found.residual_norm == pytest.approx(np.linalg.norm(found.targets))
    assert found.relative == pytest.approx(found.scale)  # W_U = 0: F_0 = 0


def test_nothing_is_certified_where_the_data_forbid_it():
    transformer, parameters, X, Y = instance(1, P=2, n=2, d=8, m=8)
    X[1] = X[0, ::-1]
    assert largest_certified_residual(transformer, parameters, X, Y).scale == 0.0


@pytest.mark.parametrize("form", ALL_FORMS)
def test_permuted_samples_and_equal_tokens_are_refused(form):
    case = example("gelu").scaled(1e-6)
    for change in ("samples", "tokens"):
        X = case.X.copy()
        if change == "samples":
            X[2] = X[0, ::-1]
        else:
            X[1, 3] = X[1, 5]
        certificate = certify(case.transformer, case.parameters, X, case.Y, form=form)
        assert certificate.failed[0].name == "no two tokens or samples alike"
        expected = {"samples": "samples 0 and 2", "tokens": "rows 11, 13 of X are equal tokens of sample 1"}
        assert expected[change] in certificate.advice[0]


def test_obstructions_give_the_loss_floor():
    transformer, parameters, X, Y = instance(2, P=3, n=3, d=4)
    X[2] = X[0, [2, 0, 1]]
    (found,) = obstructions(X, Y)
    assert found.floor == pytest.approx(0.25 * np.sum((Y[2] - Y[0, [2, 0, 1]]) ** 2))
    F = forward(transformer, parameters, X).F
    assert 0.5 * np.sum((F - Y) ** 2) >= found.floor
    assert obstructions(X[:2]) == ()


def test_head_only_forms_refuse_more_rows_than_features():
    case = example("more-rows")
    certificate = certify(*case.parts, form="lipschitz")
    assert certificate.failed[0].name == "rows N <= features d"
    assert "N = 8 rows exceed d = 6 features" in certificate.advice[0]
    assert certify(*case.parts, form="smooth").holds


def test_relu_is_refused_by_the_smooth_form_without_a_margin():
    case = example("relu")
    certificate = certify(*case.parts, form="smooth")
    assert certificate.failed[0].name == "margin: min |E| > e1 . rho"
    assert "Lipschitz form" in certificate.advice[0]
    assert not certify(*case.parts, form="kernel").holds
    assert not certify(*case.parts, form="closed-descent").holds
    assert certify(*example("relu-margin").parts, form="descent").holds


def test_a_large_head_is_refused_by_the_lipschitz_form():
    case = example("head-of-order-one")
    certificate = certify(*case.parts, form="lipschitz")
    assert not certificate.holds
    assert "the head is too large" in certificate.advice[0]


def test_without_the_attention_skip_the_certificate_refuses_and_the_loss_keeps_its_floor():
    case = example("dichotomy")
    ratios = {}
    for skips in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)):
        transformer = case.transformer.with_beta(beta_attention=skips[0], beta_ffn=skips[1])
        certificate = certify(transformer, *case.parts[1:])
        assert certificate.holds == (skips == (1.0, 1.0))
        step = 1.0 / np.linalg.norm(case.X.reshape(-1, transformer.d), 2) ** 2
        trace = descend(transformer, *case.parts[1:], steps=150, step=step, spectra=False)
        floor = 0.5 * np.sum((case.Y - case.Y.mean(axis=1, keepdims=True)) ** 2)
        ratios[skips] = trace.loss.min() / floor
    assert ratios[1.0, 1.0] < 1e-3
    assert min(ratios[0.0, 1.0], ratios[0.0, 0.0]) >= 1.0 - 1e-12


def test_certificate_at_a_start_that_was_measured_before():
    case = example("gelu")
    start = measure(*case.parts[:3])
    assert certify(*case.parts, start=start).step == certify(*case.parts).step
    with pytest.raises(ValueError, match="start: expected the measured start"):
        certify(*example("tanh").parts, start=start)


@pytest.mark.parametrize("form", FORMS)
def test_radii_satisfy_the_theorem_and_are_not_larger_than_needed(form):
    case = example("relu" if form == "lipschitz" else "gelu").scaled(0.01)
    certificate = certify(*case.parts, form=form)
    rho = np.array(list(certificate.radii.values()))
    sigma_J = jacobian_singular_values(*case.parts[:3]) if form == "kernel" else None
    problem = Problem(less_rounding(certificate.start), certificate.residual_norm, 1.0, sigma_J)
    bounds = FORMS[form](problem, rho)
    assert bounds.sound
    assert np.all(rho <= (1.0 + 1e-4) * bounds.needed + 1e-300)
    assert not FORMS[form](problem, 0.99 * rho).sound
    assert np.array_equal(smallest_radii(partial(FORMS[form], problem), len(rho)).rho, rho)


def test_a_search_that_is_stopped_early_is_not_sound():
    case = example("gelu")
    certificate = certify(*case.parts)
    problem = Problem(certificate.start, certificate.residual_norm, 1.0)
    assert not smallest_radii(partial(FORMS["smooth"], problem), 6, max_iterations=2).sound


def test_smaller_steps_are_certified_too():
    case = example("gelu")
    for form, taus in (("descent", (0.25, 1.75)), ("smooth", (0.25, 0.5)), ("closed-lipschitz", (0.5, 1.0))):
        small, large = (certify(*case.scaled(0.1).parts, form=form, tau=tau) for tau in taus)
        assert small.holds
        assert large.holds
        assert small.step < large.step


def test_an_envelope_is_geometric():
    certificate = certify(*example("gelu").parts)
    k = np.array([0, 1, 7])
    assert np.allclose(certificate.envelope(k), certificate.loss * certificate.rate**k, rtol=1e-14)
    with pytest.raises(ValueError, match="k: expected iterations >= 0"):
        certificate.envelope([-1])


def test_a_refused_certificate_has_no_envelope_and_no_run():
    refused = certify(*example("gelu").scaled(1e3).parts)
    with pytest.raises(ValueError, match="certificate: expected one that holds"):
        refused.envelope(3)
    with pytest.raises(ValueError, match="certificate: expected one that holds"):
        run_certified(refused)


def test_certificates_print_as_tables():
    holds, refused = (certify(*example("gelu").scaled(s).parts) for s in (1.0, 1e3))
    text = str(holds)
    assert text.startswith("smooth form, tau = 1: certified")
    assert all(f"radius of {b}" in text for b in holds.transformer.blocks)
    assert "factor of Phi per step = 0." in text
    assert max(map(len, text.splitlines())) <= 100
    assert "REFUSED" in str(refused)
    assert "fails" in str(refused)
    assert "why: " in str(refused)
    html = refused._repr_html_()
    assert html.startswith("<table>")
    assert "R_0" in html
    assert "<br" not in html
    assert "under the envelope" in str(certified_run("gelu"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": "gradient"}, "form: expected one of descent, smooth"),
        ({"tau": 0.0}, "tau: expected a number with 0 < tau <= 1"),
        ({"tau": 1.5}, "tau: expected a number with 0 < tau <= 1"),
        ({"form": "descent", "tau": 2.0}, "tau: expected a number with 0 < tau < 2"),
        ({"form": "closed-descent", "tau": 0.5}, "tau: expected 1"),
        ({"tau": math.nan}, "tau: expected a finite number"),
        ({"start": "here"}, "start: expected what measure"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        certify(*instance(), **change)


def test_bad_data():
    transformer, parameters, X, Y = instance()
    with pytest.raises(ValueError, match="Y: expected shape"):
        certify(transformer, parameters, X, Y[:1])
    with pytest.raises(ValueError, match="X: expected finite values"):
        certify(transformer, parameters, np.where(X > 1, np.nan, X), Y)
    with pytest.raises(ValueError, match="one run"):
        certify(transformer, parameters, np.stack([X, X]), np.stack([Y, Y]))
    with pytest.raises(ValueError, match="Y: expected targets other than the outputs"):
        largest_certified_residual(transformer, parameters, X, forward(transformer, parameters, X).F)
    with pytest.raises(ValueError, match="rtol"):
        largest_certified_residual(transformer, parameters, X, Y, rtol=0.0)
    with pytest.raises(ValueError, match="name: expected one of gelu"):
        example("gpt")
    with pytest.raises(ValueError, match="correlation: expected a number in"):
        correlated_tokens(1, 2, 3, 1.5, np.random.default_rng(0))


def test_a_start_at_its_target_is_certified():
    case = example("gelu")
    F = forward(*case.parts[:3]).F
    certificate = certify(*case.parts[:3], F)
    assert certificate.holds
    assert max(certificate.radii.values()) == 0.0
    with pytest.raises(ValueError, match="Phi = 0"):
        run_certified(certificate)


def test_a_larger_residual_never_gives_a_better_certificate():
    case = example("two-layers")
    rates = [certify(*case.scaled(s).parts).rate for s in (0.1, 0.5, 1.0, 2.0)]
    assert rates == sorted(rates)


def test_measured_factor_and_floor():
    k = np.arange(50)
    assert measured_factor(k, 3.0 * 0.5**k) == pytest.approx(0.5)
    assert measured_factor(k, np.maximum(0.5**k, 1e-6), 1e-5) == pytest.approx(0.5)
    assert math.isnan(measured_factor(k[:5], 0.5 ** k[:5]))
    Y = np.ones((2, 3, 4))
    assert rounding_floor(Y) == pytest.approx(24 * 24 * np.finfo(float).eps ** 2)


def test_correlated_tokens_are_correlated():
    X = correlated_tokens(4, 50, 200, 0.6, np.random.default_rng(0))
    assert np.mean(X[:, 1:] * X[:, :-1]) == pytest.approx(0.6, abs=0.02)
    assert np.mean(X**2) == pytest.approx(1.0, abs=0.03)


def test_example_is_always_the_same():
    assert np.array_equal(example("relu").Y, example("relu").Y)
    assert example("relu", full=True).transformer.d == 512


def test_run_with_fewer_steps():
    certificate = certify(*example("gelu").parts)
    run = run_certified(certificate, steps=10)
    assert len(run.trace.loss) == 11 and str(run).startswith("10 steps, ")
    assert str(run_certified(certificate, steps=10, trace_every=4)).startswith("10 steps, ")
    broken = replace(certificate, rate=0.1)
    assert not run_certified(broken, steps=10).under_envelope
    assert not run_certified(replace(certificate, radii=dict.fromkeys(certificate.radii, 1e-9)), steps=10).inside
