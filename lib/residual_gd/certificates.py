"""Certificates: the rate theorems as functions of a concrete start (chapter 5).

``certify`` measures the network at theta_0, looks for radii that satisfy a rate theorem, and returns every hypothesis
with its margin, the step size, the rate and the envelope that the loss cannot leave. A theorem whose hypotheses fail
is no error: the certificate then says which failed, by how much, and what would help.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .advice import advice
from .certificate_text import as_html, as_text
from .closed_forms import CLOSED_FORMS
from .gram import gram
from .hypotheses import Hypothesis, applies, hypotheses, uses_margin
from .jacobian import require_one_run
from .network_majorants import Start, measure
from .obstructions import obstructions
from .rate_forms import EPS, FORMS, Bounds, Problem, less_rounding, smallest_radii
from .samples import stack
from .transformer import Transformer, check_inputs, forward_unchecked
from .validation import finite_array, finite_float, one_of, require

ALL_FORMS = (*FORMS, *CLOSED_FORMS)
LARGEST = 1e20  # entries beyond it would overflow in the products of the majorants


@dataclass(frozen=True, eq=False)
class Certificate:
    """The outcome of ``certify`` for one form of the rate theorem.

    form, tau: as asked for. hypotheses: all of them, with their margins. radii: for each block, how far it can move
    (Frobenius norm; in the kernel form and the closed descent form one Euclidean radius for all together).
    step: mu. alpha, omega: the PL constant on the ball and the perturbation. smoothness: M (descent forms, else nan).
    rate: the guaranteed factor of Phi per step; asymptotic_rate: what it tends to. loss: Phi_0.
    residual_norm: ||R_0||_F. target_norm: ||Y||_F. advice: what would help where it fails; step and rates are nan
    then, and radii, alpha and omega those at which the search ended. transformer, parameters, X, Y, start: what was
    certified.
    """

    form: str
    tau: float
    hypotheses: tuple[Hypothesis, ...]
    radii: dict[str, float]
    step: float
    alpha: float
    omega: float
    smoothness: float
    rate: float
    asymptotic_rate: float
    loss: float
    residual_norm: float
    target_norm: float
    advice: tuple[str, ...]
    transformer: Transformer = field(repr=False)
    parameters: dict = field(repr=False)
    X: np.ndarray = field(repr=False)
    Y: np.ndarray = field(repr=False)
    start: Start = field(repr=False)

    @property
    def holds(self) -> bool:
        """True if every hypothesis of the theorem holds."""
        return all(h.holds for h in self.hypotheses)

    @property
    def gap(self) -> float:
        """delta = alpha - omega."""
        return self.alpha - self.omega

    @property
    def euclidean(self) -> bool:
        """True if the ball is one Euclidean ball for all blocks together, not a radius for each block."""
        return self.form in ("kernel", "closed-descent")

    @property
    def failed(self) -> tuple[Hypothesis, ...]:
        """The hypotheses that fail."""
        return tuple(h for h in self.hypotheses if not h.holds)

    def envelope(self, k):
        """The certified bound rate^k Phi_0 of Phi(theta_k), for an array of iterations k >= 0.

        ValueError if the certificate does not hold, or for a negative k.
        """
        require(self.holds, "certificate", "one that holds", "a refused one: " + "; ".join(h.name for h in self.failed))
        k = finite_array(np.asarray(k, dtype=float), "k")
        require(bool(np.all(k >= 0)), "k", "iterations >= 0", "a negative one")
        return self.loss * self.rate**k

    def __str__(self):
        return as_text(self)

    def _repr_html_(self):
        return as_html(self)


def certify(transformer, parameters, X, Y, form="smooth", tau=1.0, *, start=None) -> Certificate:
    """Certify gradient descent from ``parameters`` on inputs X (P, n, d) and targets Y (P, n, c).

    Parameters
    ----------
    form : "descent", "smooth" (smooth activations, or ReLU with its margin: prop-relu-margin), "lipschitz" (any
        Lipschitz activation), "kernel" (smooth; N > d allowed), or a corollary, "closed-descent", "closed-lipschitz"
    tau : fraction of the step size: mu = tau / M with 0 < tau < 2 in the descent form, tau / norm^2 with 0 < tau <= 1
        in the others; 1 in "closed-descent"
    start : what ``measure(transformer, parameters, X)`` gave, to save the measuring; its norms of X and of the
        parameters are compared with these

    Raises ValueError for bad input, also for entries above 1e20. Hypotheses that fail are no error.
    Sources: thm-rate-descent, thm-rate-smooth, thm-rate-lipschitz, thm-rate-kernel, cor-closed-descent,
    cor-closed-lipschitz; thm-rate-deep for layers and heads.
    """
    return _Case(transformer, parameters, X, Y, form, tau, start).certificate()


@dataclass(frozen=True)
class LargestResidual:
    """The largest certified scaling of Y - F_0.

    scale: s, 0 if none is. residual_norm: ||R_0||_F = s ||Y - F_0||_F. relative: that over ||Y||_F, for Y as given.
    targets: F_0 + s (Y - F_0), which ``certify`` accepts.
    """

    scale: float
    residual_norm: float
    relative: float
    targets: np.ndarray = field(repr=False)


def largest_certified_residual(
    transformer, parameters, X, Y, form="smooth", tau=1.0, *, start=None, rtol=1e-3
) -> LargestResidual:
    """The largest s for which the targets F_0 + s (Y - F_0) are certified, by bisection, at most ``rtol`` too small.

    Where ||R_0|| is near the rounding of F_0 it may be twice that, and 0 where no such targets exist in float64.

    Other arguments as in ``certify``. ValueError for bad input, and if F_0 = Y.
    """
    rtol = finite_float(rtol, "rtol", low=1e-12, high=1.0)
    case = _Case(transformer, parameters, X, Y, form, tau, start)
    norm = case.problem.residual_norm
    require(norm > 0, "Y", "targets other than the outputs F_0", "Y = F_0")
    low, high = 0.0, 1.0
    while high < 1e12 and case.certified(high * norm):
        low, high = high, 4.0 * high
    while low == 0.0 and high > 1e-24:
        high = 0.25 * high
        low = high if case.certified(high * norm) else 0.0
    high = high if low < high else 4.0 * low
    while low > 0.0 and high > (1.0 + rtol) * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if case.certified(middle * norm) else (low, middle)
    # in float64 the targets F_0 + s (Y - F_0) are off by a rounding of F_0, which can be more than the last digits of s
    for shorter in (low, low / (1.0 + rtol), 0.0):
        low = shorter
        if case.certified(float(np.linalg.norm(case.F + low * (case.Y - case.F) - case.F))):
            break
    relative = low * norm / case.target_norm if case.target_norm > 0 else math.inf
    return LargestResidual(low, low * norm, relative, case.F + low * (case.Y - case.F))


class _Case:
    """A start with its targets, validated and measured once."""

    def __init__(self, transformer, parameters, X, Y, form, tau, start):
        self.form = one_of(form, ALL_FORMS, "form")
        tau = _fraction(tau, form)
        X, Y = check_inputs(transformer, parameters, X, Y)
        require_one_run(transformer, parameters, X)
        require(Y.ndim == 3, "Y", "one run (no leading axis)", f"shape {tuple(Y.shape)}")
        self.transformer, self.parameters = transformer, parameters
        self.X, self.Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
        for name, entries in {"X": self.X, "Y": self.Y, **parameters}.items():
            largest = float(np.max(np.abs(entries)))
            require(largest <= LARGEST, name, f"entries of size at most {LARGEST:g}", f"{largest:.3g}")
        self.start = measure(transformer, parameters, X) if start is None else start
        require(isinstance(self.start, Start), "start", "what measure() returns", type(start).__name__)
        same = start is None or _measured_here(start, transformer, parameters, self.X)
        require(same, "start", "the measured start of this network and these inputs", "another")
        self.F = forward_unchecked(transformer, parameters, self.X).F
        self.ties = obstructions(self.X)
        self.target_norm = float(np.linalg.norm(self.Y))
        kernel = form == "kernel" and applies(form, transformer)
        sigma_J = jacobian_singular_values(transformer, parameters, self.X) if kernel else None
        norm = float(np.linalg.norm(self.F - self.Y))
        self.problem = Problem(less_rounding(self.start), norm, tau, sigma_J, uses_margin(form, transformer))

    def search(self, problem) -> tuple[Bounds | None, float]:
        """Bounds at the radii that were found, and for a closed form the largest ||R_0|| that it allows."""
        if not applies(self.form, self.transformer):
            return None, math.nan
        if self.form in CLOSED_FORMS:
            return CLOSED_FORMS[self.form](problem)
        return smallest_radii(partial(FORMS[self.form], problem), len(self.start.weights)), math.nan

    def certified(self, residual_norm) -> bool:
        """Whether the theorem's hypotheses hold for another ||R_0||_F."""
        problem = replace(self.problem, residual_norm=residual_norm)
        found = hypotheses(self.form, problem, len(self.ties), *self.search(problem))
        return all(h.holds for h in found)

    def certificate(self) -> Certificate:
        bounds, condition = self.search(self.problem)
        found = hypotheses(self.form, self.problem, len(self.ties), bounds, condition)
        holds = all(h.holds for h in found)
        if bounds is None:
            nothing = np.full(len(self.start.weights), math.nan)
            bounds = Bounds(nothing, math.nan, math.nan, math.nan, nothing, math.nan, math.nan)
        norm = self.problem.residual_norm
        return Certificate(
            form=self.form,
            tau=self.problem.tau,
            hypotheses=found,
            radii=dict(zip(self.transformer.blocks, map(float, bounds.rho), strict=True)),
            step=float(bounds.step) if holds else math.nan,
            alpha=float(bounds.alpha),
            omega=float(bounds.omega),
            smoothness=float(bounds.smoothness),
            rate=float(bounds.rate) if holds else math.nan,
            asymptotic_rate=float(bounds.asymptotic_rate) if holds else math.nan,
            loss=0.5 * norm**2,
            residual_norm=norm,
            target_norm=self.target_norm,
            advice=() if holds else advice(self.form, self.problem, bounds, self.ties, self.X),
            transformer=self.transformer,
            parameters=self.parameters,
            X=self.X,
            Y=self.Y,
            start=self.start,
        )


def _measured_here(start, transformer, parameters, X):
    """Whether the shapes and the norms of X and of every block are those that ``start`` holds."""
    if start.transformer != transformer or (start.tokens, start.rows) != (X.shape[1], X.shape[0] * X.shape[1]):
        return False
    found = [np.linalg.norm(T, 2) for T in (*(parameters[b] for b in transformer.blocks), stack(X))]
    return bool(np.allclose(found, [*start.weights, start.X.stacked], rtol=1e-6, atol=0.0))


def _fraction(tau, form):
    """``tau`` as float; ValueError outside the range of the form."""
    tau = finite_float(tau, "tau")
    if form == "closed-descent":
        require(tau == 1, "tau", "1 in the closed descent form", f"{tau:g}")
    elif form == "descent":
        require(0 < tau < 2, "tau", "a number with 0 < tau < 2", f"{tau:g}")
    else:
        require(0 < tau <= 1, "tau", "a number with 0 < tau <= 1", f"{tau:g}")
    return tau


def jacobian_singular_values(transformer, parameters, X):
    """(Nc-th, first) singular value of J, from the kernel, on the safe side of its rounding."""
    eigenvalues = np.linalg.eigvalsh(gram(transformer, parameters, X))
    rounding = 4.0 * EPS * len(eigenvalues) * eigenvalues[-1]
    return math.sqrt(max(0.0, eigenvalues[0] - rounding)), math.sqrt(max(0.0, eigenvalues[-1]) + rounding)
