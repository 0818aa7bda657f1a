"""Grids of runs of gradient descent: residual coefficients times seeds, in one batch (chapter 7).

Every run of a sweep sees the same data. Runs of one seed start from the same matrices whatever their beta, so that
only the residual coefficient differs between them.
"""

from dataclasses import dataclass

import numpy as np

from ..descent import Trace, descend, progress_bar
from ..jacobian import lambda_max
from ..parameters import initialize, stack_runs
from ..transformer import Transformer
from ..validation import finite_array, one_of, positive_float, positive_int, require

BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def show(value, rounding=1e-28) -> str:
    """A measured number with the digits that another processor repeats: two, one below 0.001, none below rounding."""
    if not np.isfinite(value):
        return "diverged"
    if abs(value) < rounding:
        return "0"
    return f"{value:#.2g}".rstrip(".") if abs(value) >= 1e-3 else f"{value:.0e}"


@dataclass(frozen=True, eq=False)
class Sweep:
    """The traces of a sweep. B betas, S seeds, K traced iterations.

    step: (B, S) step sizes. loss: (K, B, S) Phi_k, infinite after a run has diverged. scale: 1/2 ||Y||_F^2, the loss
    of the zero function. sigma_min_Z, sigma_max_Z: (K, B, S, P) the n-th and the first singular value of each Z_p.
    """

    betas: tuple[float, ...]
    iterations: np.ndarray
    step: np.ndarray
    loss: np.ndarray
    scale: float
    sigma_min_Z: np.ndarray
    sigma_max_Z: np.ndarray
    trace: Trace

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

    def table(self) -> str:
        """The last relative loss (median and range of the seeds) and the median of the paper's ratio, by beta.

        What is below 1e-28 is rounding and shown as 0.
        """
        lines = ["beta   loss at the end (range of seeds)   ratio"]
        for beta, loss, ratio in zip(self.betas, self.relative_loss[-1], self.paper_ratio(), strict=True):
            median, low, high = (show(x) for x in (np.median(loss), loss.min(), loss.max()))
            lines.append(f"{beta:4.2f}   {median:>7s}  ({low} to {high})".ljust(43) + f"{show(np.median(ratio)):>7s}")
        return "\n".join(lines)


def beta_sweep(
    X,
    Y,
    *,
    betas=BETAS,
    seeds=5,
    steps=1000,
    step="common",
    tau=1.0,
    d_k=16,
    m=64,
    activation="relu",
    sigma_Q=1.0,
    trace_every=10,
) -> Sweep:
    """Train the one-layer network on X (P, n, d), Y (P, n, c) for every beta and seed, all runs in one batch.

    step: "common" takes tau / lambda_max(J J^T) of the run with the largest beta for all betas of a seed (one step
    size for all, as the paper does); "fair" takes tau / lambda_max(J J^T) of each run; a number is taken as it is.
    sigma_Q: scale of W_Q and W_K at the start, the other matrices have entries N(0, 1 / rows).

    Raises ValueError for bad input. A run that diverges is marked in ``trace.diverged``; the others go on.
    """
    X = finite_array(X, "X", ("P", "n", "d"))
    betas = tuple(float(b) for b in finite_array(betas, "betas", ("B",)))
    require(len(betas) > 0, "betas", "at least one coefficient", "none")
    seeds = positive_int(seeds, "seeds")
    tau = positive_float(tau, "tau")
    network = Transformer(d=X.shape[-1], d_k=d_k, m=m, c=Y.shape[-1], activation=activation, beta=betas)
    starts = [initialize(network, np.random.default_rng(s), "experiment", sigma_Q=sigma_Q) for s in range(seeds)]
    sizes = _steps(network, starts, X, step, tau)
    batch = network.with_beta(np.repeat(betas, seeds))
    trace = descend(
        batch,
        stack_runs(starts * len(betas)),
        X,
        Y,
        steps=steps,
        step=sizes.reshape(-1),
        trace_every=trace_every,
        on_divergence="mark",
        label=f"{len(betas)} betas x {seeds} seeds",
    )
    grid = (len(betas), seeds)
    loss, low, high = trace.loss, trace.sigma_min_Z, trace.sigma_max_Z
    return Sweep(
        betas=betas,
        iterations=trace.iterations,
        step=sizes,
        loss=loss.reshape(len(loss), *grid),
        scale=0.5 * float(np.sum(np.asarray(Y) ** 2)),
        sigma_min_Z=low.reshape(len(low), *grid, -1),
        sigma_max_Z=high.reshape(len(high), *grid, -1),
        trace=trace,
    )


def _steps(network, starts, X, step, tau):
    """Step sizes (B, S) of the rule ``step``."""
    betas = network.beta_attention
    if not isinstance(step, str):
        return positive_float(step, "step") * np.ones((len(betas), len(starts)))
    one_of(step, ("common", "fair"), "step")
    # the start vector of the power iteration is the same everywhere, so that a sweep is a function of its arguments
    if step == "common":
        largest = [_lambda_max(network.with_beta(max(betas)), start, X) for start in starts]
        return np.tile(tau / np.asarray(largest), (len(betas), 1))
    runs = [(beta, start) for beta in betas for start in starts]
    found = [_lambda_max(network.with_beta(b), s, X) for b, s in progress_bar(runs, len(runs), "step sizes")]
    return tau / np.reshape(found, (len(betas), len(starts)))


def _lambda_max(network, start, X):
    return lambda_max(network, start, X, np.random.default_rng(0), tolerance=1e-4)
