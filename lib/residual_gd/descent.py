"""Gradient descent with a trace, one run or a batch of runs at once (chapter 5).

Plain gradient descent W_b <- W_b - mu grad_b Phi on every block with one step size mu a run.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from tqdm import tqdm

from .jacobian import lambda_max
from .matrices import sigma_max
from .samples import half_square, stack
from .transformer import check_inputs, forward_unchecked, pullback
from .validation import finite_array, one_of, positive_float, positive_int, require


class DivergenceError(ArithmeticError):
    """The loss of a run is not finite; the message names the run, the iteration and the step size."""


def feature_step(tau=1.0) -> Callable:
    """Step rule mu = tau / ||H_0||^2, with the spectral norm of the stacked features (tau > 0)."""
    tau = positive_float(tau, "tau")

    def rule(transformer, parameters, X):
        return tau / sigma_max(stack(forward_unchecked(transformer, parameters, X).H)) ** 2

    return rule


def gram_step(rng, tau=1.0) -> Callable:
    """Step rule mu = tau / lambda_max(J J^T) at the start, by power iteration from a vector of ``rng`` (tau > 0)."""
    tau = positive_float(tau, "tau")

    def rule(transformer, parameters, X):
        return tau / lambda_max(transformer, parameters, X, rng)

    return rule


@dataclass(frozen=True)
class Trace:
    """What gradient descent did. K is the number of traced iterations; ``...`` is the axis of runs, where there is one.

    iterations: (K,) the traced k. loss: (K, ...) Phi(theta_k). step: (...) the step size mu.
    sigma_min_Z, sigma_max_Z: (K, ..., P) extreme singular values of each Z_p (the n-th and the first);
    sigma_min_stacked, sigma_max_stacked: (K, ...) those of the stacked Z (the N-th and the first). None if not traced.
    distances: for each block, (K, ...) the Frobenius distance from its start. diverged: (...) the first iteration with
    a loss that is not finite, -1 if there is none. parameters: the last (for a diverged run the last finite) ones.
    """

    iterations: np.ndarray
    loss: np.ndarray
    step: np.ndarray
    distances: dict[str, np.ndarray]
    diverged: np.ndarray
    parameters: dict
    sigma_min_Z: np.ndarray | None = None
    sigma_max_Z: np.ndarray | None = None
    sigma_min_stacked: np.ndarray | None = None
    sigma_max_stacked: np.ndarray | None = None

    @property
    def relative_loss(self):
        """Phi(theta_k) / Phi(theta_0)."""
        return self.loss / self.loss[0]


def progress_bar(iterable, total, label):
    """A tqdm bar over ``iterable``, shown for long work; off where RESIDUAL_GD_PROGRESS=0."""
    off = os.environ.get("RESIDUAL_GD_PROGRESS", "1") == "0"
    return tqdm(iterable, total=total, desc=label, disable=off, delay=2.0, leave=False)


def descend(
    transformer,
    parameters,
    X,
    Y,
    *,
    steps,
    step,
    trace_every=1,
    spectra=True,
    on_divergence="raise",
    stop_below=0.0,
    label="gradient descent",
) -> Trace:
    """Run ``steps`` iterations of gradient descent from ``parameters`` and record a trace.

    step: a number, an array with one number a run, or a rule such as ``feature_step()`` or ``gram_step(rng)``.
    trace_every: the trace holds iterations 0, trace_every, 2 trace_every, ... and the last one. spectra: record the
    singular values of Z (last layer). stop_below: stop as soon as every run's loss is at most this. on_divergence:
    what a loss that is not finite does: "raise" DivergenceError, or "mark" the run and freeze it there while the
    others go on.

    Raises ValueError for bad input (shapes, NaN, a step that is not positive, ...).
    """
    X, Y = check_inputs(transformer, parameters, X, Y)
    positive_int(steps, "steps")
    positive_int(trace_every, "trace_every")
    one_of(on_divergence, ("raise", "mark"), "on_divergence")
    parameters = _with_runs(transformer, parameters, X, Y)
    mu = _step_size(step, transformer, parameters, X)
    start, recorder = parameters, _Recorder(spectra, transformer.blocks)
    values = forward_unchecked(transformer, parameters, X)
    phi = half_square(values.F - Y)
    xp = array_namespace(phi)
    runs = tuple(phi.shape)
    mu = xp.asarray(mu, dtype=phi.dtype, device=phi.device)
    require(tuple(mu.shape) in ((), runs), "step", f"a number or shape {runs}", f"shape {tuple(mu.shape)}")
    mu = mu + xp.zeros_like(phi)
    diverged = np.full(runs, -1)
    recorder.add(0, values, phi, parameters, start)
    given = _numpy(mu)
    for k in progress_bar(range(1, steps + 1), steps, label):
        # a step that is too large overflows; the loss below tells, so NumPy need not warn
        with np.errstate(over="ignore", invalid="ignore"):
            blocks = pullback(transformer, parameters, values, values.F - Y)
            moved = {b: parameters[b] - mu[..., None, None] * blocks[b] for b in transformer.blocks}
            values = forward_unchecked(transformer, moved, X)
            phi = half_square(values.F - Y)
        broken = ~xp.isfinite(phi)
        if bool(xp.any(broken)):
            newly = _numpy(broken) & (diverged < 0)
            diverged = np.where(newly, k, diverged)
            if on_divergence == "raise":
                raise DivergenceError(_divergence_message(newly, k, mu))
            moved = {b: xp.where(broken[..., None, None], parameters[b], moved[b]) for b in moved}
            mu = xp.where(broken, xp.zeros_like(mu), mu)
            values = forward_unchecked(transformer, moved, X)
        parameters = moved
        last = k == steps or bool(xp.all((phi <= stop_below) | xp.asarray(diverged >= 0)))
        if k % trace_every == 0 or last:
            phi = xp.where(xp.asarray(diverged >= 0, device=phi.device), math.inf * xp.ones_like(phi), phi)
            recorder.add(k, values, phi, parameters, start)
        if last:
            break
    return recorder.trace(given, diverged, parameters)


def _with_runs(transformer, parameters, X, Y):
    """Give every block the axis of runs when anything has it, so that the runs can part."""
    xp = array_namespace(X, *parameters.values())
    counts = [W.shape[0] for W in parameters.values() if W.ndim == 3]
    counts += [T.shape[0] for T in (X, Y) if T.ndim == 4] + [transformer.runs] * (transformer.runs is not None)
    if not counts:
        return parameters
    return {b: W if W.ndim == 3 else xp.stack([W] * counts[0]) for b, W in parameters.items()}


def _step_size(step, transformer, parameters, X):
    if callable(step):
        step = step(transformer, parameters, X)
    mu = finite_array(step, "step")
    require(bool(array_namespace(mu).all(mu > 0)), "step", "step sizes > 0", "a step <= 0")
    return mu


def _divergence_message(newly, k, mu):
    which = "the run" if newly.ndim == 0 else "runs " + ", ".join(map(str, np.flatnonzero(newly)))
    sizes = ", ".join(f"{m:.3g}" for m in np.atleast_1d(_numpy(mu))[np.atleast_1d(newly)])
    return f"the loss of {which} is not finite at iteration {k} (step {sizes}): take a smaller step"


def _numpy(array):
    return np.asarray(array.detach().cpu()) if hasattr(array, "detach") else np.asarray(array)


class _Recorder:
    """Collects the rows of a trace as NumPy arrays."""

    def __init__(self, spectra, blocks):
        self.spectra = spectra
        self.iterations, self.loss, self.extremes = [], [], []
        self.distances = {block: [] for block in blocks}

    def add(self, k, values, phi, parameters, start):
        xp = array_namespace(phi)
        self.iterations.append(k)
        self.loss.append(_numpy(phi))
        for block, rows in self.distances.items():
            moved = parameters[block] - start[block]
            rows.append(_numpy(xp.sqrt(xp.sum(moved * moved, axis=(-2, -1)))))
        if self.spectra:
            self.extremes.append([_numpy(s) for Z in (values.Z, stack(values.Z)) for s in extreme_singular_values(Z)])

    def trace(self, step, diverged, parameters):
        spectra = {}
        if self.spectra:
            names = ("sigma_min_Z", "sigma_max_Z", "sigma_min_stacked", "sigma_max_stacked")
            spectra = {n: np.stack(column) for n, column in zip(names, zip(*self.extremes, strict=True), strict=True)}
        distances = {block: np.stack(rows) for block, rows in self.distances.items()}
        iterations, loss = np.asarray(self.iterations), np.stack(self.loss)
        return Trace(iterations, loss, step, distances, diverged, parameters, **spectra)


def extreme_singular_values(A):
    """(sigma_min, sigma_max) of A (..., N, d) from one decomposition; sigma_min is the N-th, 0 if N > d."""
    xp = array_namespace(A)
    values = xp.linalg.svdvals(A)
    smallest = values[..., -1] if A.shape[-2] <= A.shape[-1] else xp.zeros_like(values[..., 0])
    return smallest, values[..., 0]
