"""Statements of chapter 5 about the certificate itself: it is sound, and its rate can't be improved."""

import math
from functools import partial

import numpy as np

from ..certificates import certify, jacobian_singular_values
from ..rate_forms import FORMS, Problem, less_rounding, smallest_radii
from ..samples import stack
from ..transformer import forward
from .base import Control, Draw, at_least, at_most, statement
from .certified import certified, certified_path, compare, nothing, start, tau_for, with_residual
from .instances import SMOOTH, Instance
from .rate_theorem import SIZES


@statement(
    "prop-certificate-sound",
    kind="proposition",
    title="The certificate is sound",
    chapter="rate",
    hypotheses=("rhs(rho) <= rho at the final rho", "least: rhs monotone (descent, Lipschitz and kernel form)"),
)
def certificate_sound(draw):
    form = draw.choice(tuple(FORMS))
    scales = {"W_U": draw.choice((0.0, draw.scale(1e-4, 0.05)))}
    found = certified(start(draw, deep=True, scales=scales), form, 1.0)
    if found is None:
        return nothing()
    problem = _problem(found)
    rho = np.array(list(found.radii.values()))
    bounds = FORMS[form](problem, rho)
    compared = [
        at_most(np.max((bounds.needed - rho) / np.max(rho)), 0.0, "rhs(rho) - rho"),
        at_most(bounds.omega, bounds.alpha, "omega / alpha"),
    ]
    if form != "smooth":
        # any other solution lies above: look for one from a random larger start
        other = rho * np.exp(np.abs(draw.normal(1 if form == "kernel" else len(rho))))
        for _ in range(20):
            needed = FORMS[form](problem, other).needed
            if np.all(needed <= other):
                compared.append(
                    at_most(np.max(rho / np.maximum(other, 1e-300) * (rho > 0)), 1.0, "least / other", rtol=1e-5)
                )
            # squeeze it towards its own right-hand side, which stays a solution where rhs is monotone
            other = np.minimum(other, np.where(np.isfinite(needed), needed, other))
    return tuple(compared)


def _problem(certificate):
    """The problem that a certificate solved, measured again."""
    at = certificate
    sigma_J = jacobian_singular_values(at.transformer, at.parameters, at.X) if at.form == "kernel" else None
    return Problem(less_rounding(at.start), at.residual_norm, at.tau, sigma_J, False)


@certificate_sound.control
def _(rng):
    # an iteration stopped at its first step: rhs(rho) > rho, and the head leaves the radii at once
    at = start(Draw(rng), activations=("gelu",), head=False, beta=1.0, **SIZES)
    found = certified(at, "smooth")
    bounds = smallest_radii(partial(FORMS["smooth"], _problem(found)), len(found.radii), max_iterations=1)
    run = certified_path(found, 60)
    moved = float(run.distances[-1][-1])
    return Control(
        "the iteration stopped at rho = 0, where rhs(rho) > rho", moved, float(bounds.rho[-1]), "distance of W_U"
    )


@statement(
    "prop-optimal-constants",
    kind="proposition",
    title="The constants cannot be improved",
    chapter="rate",
    hypotheses=("W_U = 0", "||Y|| -> 0", "Y along the direction that the features reach worst"),
    sharp=True,
)
def optimal_constants(draw):
    form = draw.choice(("smooth", "lipschitz"))
    at = start(draw, head=False, activations=SMOOTH if form == "smooth" else ("relu", *SMOOTH))
    at = _worst_target(at)
    near = certified(at, form, tau_for(draw, form))
    if near is None:
        return nothing()
    small = certify(*with_residual(at, 1e-4 * near.residual_norm).parts, form=form, tau=near.tau)
    exact = 2.0 * math.log1p(-small.step * small.start.sigma_min_H**2)
    # the certified rate is within one per cent of the exact one of the least-squares problem in W_U, and never better
    return (
        at_most(math.log(small.rate) / exact, 1.0, "certified / exact log-rate"),
        at_least(math.log(small.rate) / exact, 0.99, "certified / exact log-rate"),
        *compare(small),
    )


def _worst_target(at):
    """Targets along the left singular vector of the least singular value of H_0."""
    worst = np.linalg.svd(stack(forward(*at.parts[:3]).H))[0][:, -1]
    return Instance(*at.parts[:3], (worst[:, None] * np.ones(at.transformer.c)).reshape(at.Y.shape))


@optimal_constants.ascent
def _(rng):
    at = _worst_target(start(Draw(rng), head=False, activations=("gelu",), **SIZES))
    near = certified(at, "smooth")
    return compare(certify(*with_residual(at, 1e-5 * near.residual_norm).parts, form="smooth"))[0]


@optimal_constants.control
def _(rng):
    # the descent form at tau = 1 knows only half of the logarithm
    at = _worst_target(start(Draw(rng), head=False, activations=("gelu",), **SIZES))
    near = certified(at, "descent")
    small = certify(*with_residual(at, 1e-5 * near.residual_norm).parts, form="descent")
    exact = 2.0 * math.log1p(-small.step * small.start.sigma_min_H**2)
    return Control(
        "the descent form with tau = 1", 0.99, math.log(small.rate) / exact, "claimed certified / exact log-rate"
    )
