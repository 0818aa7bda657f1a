"""Grids of runs of gradient descent: residual coefficients times seeds, in one batch (chapter 7).

Every run of a sweep sees the same data. Runs of one seed start from the same matrices whatever their beta, so that
only the residual coefficient differs between them.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..descent import Trace, descend, progress_bar
from ..jacobian import lambda_max
from ..parameters import initialize, stack_runs
from ..transformer import Transformer
from ..validation import finite_array, one_of, positive_float, positive_int, require

BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)
ROUNDING = 1e-28  # a relative loss, or a ratio, below this is rounding


def show(value, rounding=ROUNDING) -> str:
    """A measured number with the digits that another processor repeats: two, one below 0.001, none below rounding."""
    if not np.isfinite(value):
        return "diverged"
    if abs(value) < rounding:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.0e}"
    return (
        f"{value:.1e}"
        if abs(value) >= 1e4
        else f"{float(f'{value:.2g}'):#.{3 if abs(value) >= 100 else 2}g}".rstrip(".")
    )


@dataclass(frozen=True, eq=False)
class Sweep:
    """The traces of a sweep. B betas, S seeds, K traced iterations.

    step: (B, S) step sizes. loss: (K, B, S) Phi_k, infinite after a run has diverged. scale: 1/2 ||Y||_F^2, the loss
    of the zero function. sigma_min_Z, sigma_max_Z: (K, B, S, P) the n-th and the first singular value of each Z_p,
    None if not traced. trace: of all B S runs, beta by beta.
    """

    betas: tuple[float, ...]
    iterations: np.ndarray
    step: np.ndarray
    loss: np.ndarray
    scale: float
    sigma_min_Z: np.ndarray | None
    sigma_max_Z: np.ndarray | None
    trace: Trace | None

    @property
    def relative_loss(self) -> np.ndarray:
        """Phi_k / (1/2 ||Y||_F^2): (K, B, S)."""
        return self.loss / self.scale

    def paper_ratio(self, *, at_start=False) -> np.ndarray:
        """min_p sigma_min(Z_p)^2 / max_p ||Z_p||, for each beta and seed: (B, S).

        The minimum and the maximum are over the samples and over all traced iterations, or at the start alone. The
        number has the units of Z: it is not scale free.
        """
        k = slice(0, 1) if at_start else slice(None)
        return self.sigma_min_Z[k].min(axis=(0, -1)) ** 2 / self.sigma_max_Z[k].max(axis=(0, -1))

    def curves(self) -> dict:
        """What a record keeps: steps, iterations, relative losses, and the extreme singular values over the samples."""
        return {
            "betas": list(self.betas),
            "iterations": self.iterations,
            "step": self.step,
            "scale": self.scale,
            "relative_loss": self.relative_loss,
            "min_sigma_min_Z": self.sigma_min_Z.min(axis=-1),
            "max_sigma_max_Z": self.sigma_max_Z.max(axis=-1),
        }

    @classmethod
    def from_curves(cls, curves, where="curves") -> "Sweep":
        """The sweep of ``curves``; in place of all samples it knows the extreme ones, and it has no trace.

        ValueError that names ``where`` if a curve is missing or its shape does not fit the others.
        """
        require(isinstance(curves, dict), where, "curves by name", type(curves).__name__)
        traced = ("relative_loss", "min_sigma_min_Z", "max_sigma_max_Z")
        for key in ("betas", "iterations", "step", "scale", *traced):
            require(key in curves, where, f'the curve "{key}"', ", ".join(curves) or "none")
        betas = finite_array(curves["betas"], f"{where}: betas", ("B",))
        iterations = finite_array(curves["iterations"], f"{where}: iterations", ("K",)).astype(int)
        step = finite_array(curves["step"], f"{where}: step", (len(betas), "S"))
        scale = positive_float(curves["scale"], f"{where}: scale")
        grid = (len(iterations), *step.shape)
        loss, low, high = (_numbers(curves[key], f"{where}: {key}", grid) for key in traced)
        return cls(tuple(betas.tolist()), iterations, step, loss * scale, scale, low[..., None], high[..., None], None)

    def table(self) -> str:
        """The last relative loss (median and range of the seeds) and the median of the paper's ratio, by beta.

        What is below 1e-28 is rounding and shown as 0.
        """
        lines = ["beta   loss at the end (range of seeds)   ratio"]
        for beta, loss, ratio in zip(self.betas, self.relative_loss[-1], self.paper_ratio(), strict=True):
            median, low, high = (show(x) for x in (np.median(loss), loss.min(), loss.max()))
            lines.append(f"{beta:4.2f}   {median:>7s}  ({low} to {high})".ljust(43) + f"{show(np.median(ratio)):>7s}")
        return "\n".join(lines)


def _numbers(values, name, shape):
    """``values`` as an array of this shape; infinite ones and NaN, which a record holds as text, are allowed."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected an array of numbers, got rows of different lengths or no numbers") from None
    require(array.shape == shape, name, f"shape {shape}", array.shape)
    return array


def gains(losses, rounding=ROUNDING):
    """How many times as many digits as with the first beta are won with the last, and with the best: each (...).

    losses: (B, ...) losses relative to that of the zero function, below 1, by beta. What is below ``rounding`` counts
    as ``rounding``.
    """
    digits = -np.log10(np.maximum(losses, rounding))
    return digits[-1] / digits[0], digits.max(axis=0) / digits[0]


def beta_sweep(X, Y, *, tau=1.0, **options) -> Sweep:
    """Train the one-layer network on X (P, n, d), Y (P, n, c) for every beta and seed, all runs in one batch.

    tau: fraction of the step size, see ``step``. options: as in ``step_grid``.

    Raises ValueError for bad input. A run that diverges is marked in ``trace.diverged``; the others go on.
    """
    return step_grid(X, Y, taus=(positive_float(tau, "tau"),), **options)[0]


def starts(X, Y, *, betas=BETAS, seeds=5, d_k=16, m=64, activation="relu", sigma_Q=1.0, scales=None):
    """The network of a sweep and its start for every seed (a list of parameters); see ``step_grid``."""
    X = finite_array(X, "X", ("P", "n", "d"))
    Y = finite_array(Y, "Y", (*X.shape[:2], "c"))
    betas = tuple(float(b) for b in finite_array(betas, "betas", ("B",)))
    require(len(betas) > 0, "betas", "at least one coefficient", "none")
    network = Transformer(d=X.shape[-1], d_k=d_k, m=m, c=Y.shape[-1], activation=activation, beta=betas)
    scales = {"W_Q": sigma_Q, "W_K": sigma_Q} | (scales or {})
    rngs = [np.random.default_rng(seed) for seed in range(positive_int(seeds, "seeds"))]
    return network, [initialize(network, rng, **scales) for rng in rngs]


def step_grid(
    X,
    Y,
    *,
    taus,
    steps=1000,
    step="common",
    trace_every=10,
    spectra=True,
    checkpoint=None,
    checkpoint_every=100,
    **options,
) -> tuple[Sweep, ...]:
    """``beta_sweep`` for every fraction ``taus`` of the step size, all in one batch: a sweep for each of them.

    step: "common" takes tau / lambda_max(J J^T) of the run with the largest beta for all betas of a seed (one step
    size for all, as the paper does); "fair" takes tau / lambda_max(J J^T) of each run at its start; a number is taken
    times tau. trace_every, spectra: as in ``descend``. checkpoint: a ``Checkpoint`` to go on from and to save to every
    ``checkpoint_every`` steps (a multiple of trace_every); the curves are the same with and without.
    options: betas (0 to 1 in steps of 1/4), seeds (5), d_k (16), m (64), activation ("relu"); sigma_Q (1), the scale
    of W_Q and W_K at the start; scales of the other matrices such as ``{"W_U": 0.1}`` (1: entries N(0, 1 / rows)).

    Raises ValueError for bad input. A run that diverges is marked in ``trace.diverged``; the others go on.
    """
    network, runs = starts(X, Y, **options)
    taus = tuple(positive_float(float(t), "taus") for t in finite_array(taus, "taus", ("T",)))
    require(len(taus) > 0, "taus", "at least one fraction", "none")
    betas, seeds = network.beta_attention, len(runs)
    scale = 0.5 * float(np.sum(np.asarray(Y) ** 2))
    require(scale > 0, "Y", "targets that are not all zero", "zeros")
    sizes = np.reshape(taus, (-1, 1, 1)) * _steps(network, runs, X, step)
    start = stack_runs(runs * (len(taus) * len(betas)))
    batch = (network.with_beta(np.tile(np.repeat(betas, seeds), len(taus))), start, X, Y)
    how = {"step": sizes.reshape(-1), "trace_every": trace_every, "spectra": spectra, "on_divergence": "mark"}
    if checkpoint is None:
        trace = descend(*batch, steps=steps, label=f"{sizes.size} runs", **how)
    else:
        trace = _in_parts(checkpoint, checkpoint_every, *batch, steps, how)
    each = len(betas) * seeds
    parts = (_part(trace, slice(t * each, (t + 1) * each)) for t in range(len(taus)))
    return tuple(_sweep(betas, seeds, part, scale) for part in parts)


def _in_parts(checkpoint, every, network, start, X, Y, steps, options):
    """``descend`` by parts of ``every`` steps, from the checkpoint's state on; the trace has no distances."""
    every = positive_int(every, "checkpoint_every")
    multiple = every % options["trace_every"] == 0
    require(multiple, "checkpoint_every", f"a multiple of {options['trace_every']}, the trace's stride", every)
    done, parameters, parts = checkpoint.load() or (0, start, [])
    while done < steps and not (parts and np.all(_diverged(parts) >= 0)):
        now = min(every, steps - done)
        part = descend(network, parameters, X, Y, steps=now, label=f"from step {done}", **options)
        parts.append(replace(part, iterations=part.iterations + done, parameters={}, distances={}))
        done, parameters = done + now, part.parameters
        checkpoint.save((done, parameters, parts))
    return _joined(parts, parameters)


def _joined(parts, parameters):
    """One trace of consecutive parts, each of which begins where the one before ended."""
    skip = [0] + [1] * (len(parts) - 1)
    joined = {
        name: np.concatenate([getattr(part, name)[k:] for k, part in zip(skip, parts, strict=True)])
        for name in ("iterations", "loss", "sigma_min_Z", "sigma_max_Z", "sigma_min_stacked", "sigma_max_stacked")
        if getattr(parts[0], name) is not None
    }
    # a run that diverged in an earlier part stays diverged
    joined["loss"] = np.where(np.logical_or.accumulate(np.isinf(joined["loss"]), axis=0), np.inf, joined["loss"])
    return replace(parts[0], parameters=parameters, diverged=_diverged(parts), **joined)


def _diverged(parts):
    """The first iteration with a loss that is not finite, -1 if there is none, over consecutive parts."""
    found = np.full(parts[0].diverged.shape, -1)
    for part in reversed(parts):
        found = np.where(part.diverged >= 0, part.iterations[0] + part.diverged, found)
    return found


def _part(trace, runs):
    """The trace of some of the runs of a batch."""
    spectra = {
        name: None if (values := getattr(trace, name)) is None else values[:, runs]
        for name in ("loss", "sigma_min_Z", "sigma_max_Z", "sigma_min_stacked", "sigma_max_stacked")
    }
    return replace(
        trace,
        step=trace.step[runs],
        diverged=trace.diverged[runs],
        distances={block: values[:, runs] for block, values in trace.distances.items()},
        parameters={block: W[runs] for block, W in trace.parameters.items()},
        **spectra,
    )


def _sweep(betas, seeds, trace, scale):
    """A trace of len(betas) x seeds runs with an axis for each."""
    grid = (len(betas), seeds)
    extremes = (trace.sigma_min_Z, trace.sigma_max_Z)
    low, high = (None if values is None else values.reshape(len(values), *grid, -1) for values in extremes)
    return Sweep(
        betas=betas,
        iterations=trace.iterations,
        step=trace.step.reshape(grid),
        loss=trace.loss.reshape(-1, *grid),
        scale=scale,
        sigma_min_Z=low,
        sigma_max_Z=high,
        trace=trace,
    )


def _steps(network, starts, X, step):
    """Step sizes (B, S) of the rule ``step`` with tau = 1."""
    betas = network.beta_attention
    if not isinstance(step, str):
        return positive_float(step, "step") * np.ones((len(betas), len(starts)))
    one_of(step, ("common", "fair"), "step")
    # the start vector of the power iteration is the same everywhere, so that a sweep is a function of its arguments
    if step == "common":
        largest = [_lambda_max(network.with_beta(max(betas)), start, X) for start in starts]
        return np.tile(1.0 / np.asarray(largest), (len(betas), 1))
    runs = [(beta, start) for beta in betas for start in starts]
    found = [_lambda_max(network.with_beta(b), s, X) for b, s in progress_bar(runs, len(runs), "step sizes")]
    return 1.0 / np.reshape(found, (len(betas), len(starts)))


def _lambda_max(network, start, X):
    return lambda_max(network, start, X, np.random.default_rng(0), tolerance=1e-4)
