"""Attacks on the certificates: wrong starts, overflow, Euclidean balls, checks that compare nothing."""

import numpy as np
import pytest

from residual_gd.certificates import ALL_FORMS, certify, largest_certified_residual
from residual_gd.certified_runs import run_certified
from residual_gd.gallery import example
from residual_gd.network_majorants import measure
from residual_gd.parameters import initialize
from residual_gd.statements.base import Draw, comparisons, find
from residual_gd.transformer import Transformer


def test_a_start_measured_elsewhere_is_refused():
    case = example("gelu")
    tf, theta, X, Y = case.parts
    elsewhere = measure(tf, theta | {"W_1": 2.0 * theta["W_1"]}, X)
    for wrong in (elsewhere, measure(tf, theta, 2.0 * X)):
        with pytest.raises(ValueError, match="start: expected the measured start"):
            certify(tf, theta, X, Y, start=wrong)
    assert certify(tf, theta, X, Y, start=measure(tf, theta, X)).holds


@pytest.mark.parametrize("form", ALL_FORMS)
def test_entries_that_would_overflow_are_bad_input(form):
    tf, theta, X, Y = example("gelu").parts
    for bad in ((theta, 1e160 * X, Y), (theta, X, 1e200 * Y), (theta | {"W_V": 1e60 * theta["W_V"]}, X, Y)):
        with pytest.raises(ValueError, match="entries of size at most"):
            certify(tf, *bad, form=form)


@pytest.mark.parametrize("form", ["closed-descent", "closed-lipschitz"])
def test_closed_forms_whose_majorants_overflow_refuse(form):
    tf, theta, X, Y = example("gelu").parts
    assert not certify(tf, theta, X, 1e18 * Y, form=form).holds
    deep = Transformer(d=6, d_k=2, m=4, c=1, layers=3)
    start = initialize(deep, np.random.default_rng(0), W_U=0.0)
    X = np.random.default_rng(1).standard_normal((1, 2, 6))
    assert not certify(deep, start, X, np.full((1, 2, 1), 1e19), form=form).holds


def test_only_a_perturbation_that_shrinks_has_a_better_rate_in_the_limit():
    for name, form in (("gelu", "smooth"), ("relu", "lipschitz")):
        certificate = certify(*example(name).parts, form=form)
        assert (certificate.asymptotic_rate < certificate.rate) == (form == "smooth")


def test_the_kernel_form_holds_all_blocks_together_against_its_ball():
    run = run_certified(certify(*example("standard-start").parts, form="kernel"), steps=20)
    together = np.sqrt(sum(distances[-1] ** 2 for distances in run.trace.distances.values()))
    assert list(run.moved) == ["the ball"]
    assert run.moved["the ball"] >= together / run.certificate.radii["W_U"] * (1 - 1e-12)


@pytest.mark.parametrize(
    "id", ["thm-rate-descent", "thm-rate-smooth", "thm-rate-lipschitz", "thm-rate-kernel", "prop-restart"]
)
def test_the_checks_of_the_rate_theorems_are_not_empty(id):
    draw = Draw(np.random.default_rng(0))
    outcomes = [comparisons(find(id).instance(draw)) for _ in range(12)]
    compared = [c for o in outcomes for c in o if c.what == "certified / observed log-rate" and c.ratio > 0]
    assert len(compared) >= 8, f"only {len(compared)} of 12 instances compare a run with its envelope"


@pytest.mark.parametrize("seed", [0, 11, 24])
def test_the_largest_targets_are_certified_where_rounding_of_the_outputs_decides(seed):
    rng = np.random.default_rng(seed)
    tf = Transformer(d=2, d_k=1, m=4, c=1, activation="tanh")
    scales = {"W_V": 10 ** rng.uniform(4, 6), "W_U": 10 ** rng.uniform(0, 4)}
    theta = initialize(tf, rng, W_Q=3, W_K=3, W_1=3, W_2=3, **scales)
    X, Y = rng.standard_normal((1, 2, 2)), rng.standard_normal((1, 2, 1))
    largest = largest_certified_residual(tf, theta, X, Y, form="kernel")
    assert largest.scale == 0 or certify(tf, theta, X, largest.targets, form="kernel").holds
