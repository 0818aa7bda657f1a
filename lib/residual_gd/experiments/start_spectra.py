"""What the spectra at the start of a sweep say about its speed (chapter 7)."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from ..gram import gram
from ..matrices import condition_number, singular_values
from ..samples import stack
from ..transformer import forward
from ..validation import finite_array
from .sweeps import BETAS, show, starts

ROUNDING = 1e15  # a quotient of singular values above this is rounding


@dataclass(frozen=True, eq=False)
class StartSpectra:
    """Spectra at theta_0 for B coefficients and S seeds.

    kappa_sample: (B, S) the largest condition number of a Z_p; kappa_stack: that of the stacked Z, infinite if N > d;
    reach_stack: sigma_1 / sigma_q of the stacked Z with q = min(N, d), finite then. ratio: the paper's
    min sigma_min(Z_p)^2 / max ||Z_p||; scale_free: with ||Z_p||^2 below. eigenvalues: (B, S, Nc) of J J^T, ascending;
    residual: (B, S, Nc) the coefficients of R_0 in its eigenvectors.
    """

    betas: tuple[float, ...]
    kappa_sample: np.ndarray
    kappa_stack: np.ndarray
    reach_stack: np.ndarray
    ratio: np.ndarray
    scale_free: np.ndarray
    eigenvalues: np.ndarray
    residual: np.ndarray

    @property
    def kappa_kernel(self) -> np.ndarray:
        """The condition number of J J^T: (B, S)."""
        return self.eigenvalues[..., -1] / self.eigenvalues[..., 0]

    def frozen_loss(self, k, step) -> np.ndarray:
        """The loss after k steps if J J^T stayed as it is: 1/2 sum_i (1 - mu lambda_i)^(2k) r_i^2, (B, S).

        step: (B, S) step sizes mu. The loss of gradient descent on the linear model of the network at theta_0.
        """
        step = finite_array(step, "step", self.kappa_sample.shape)
        return 0.5 * np.sum((1.0 - step[..., None] * self.eigenvalues) ** (2 * k) * self.residual**2, axis=-1)

    def table(self) -> str:
        """Medians over the seeds, by beta; k is the condition number. What rounding decides is shown as > 1e15."""
        columns = {
            "k(Z_p)": self.kappa_sample,
            "k(Z)": self.kappa_stack,
            "s_1/s_q": self.reach_stack,
            "k(K)": self.kappa_kernel,
            "ratio": self.ratio,
            "no units": self.scale_free,
        }
        lines = ["beta" + "".join(f"{label:>9s}" for label in columns)]
        for b, beta in enumerate(self.betas):
            medians = (float(np.median(column[b])) for column in columns.values())
            lines.append(f"{beta:4.2f}" + "".join(f"{_size(value):>9s}" for value in medians))
        return "\n".join(lines)


def rank_correlation(left, right) -> float:
    """Spearman's rank correlation of two arrays of one shape, to 12 decimals; the rest is rounding."""
    left, right = finite_array(left, "left"), finite_array(right, "right", np.shape(left))
    return round(float(spearmanr(left.ravel(), right.ravel()).statistic), 12)


def largest_change(before, after, rounding=1e-10) -> float:
    """The largest factor by which a singular value changed, up or down; before, after: (q,), descending.

    What lies below ``rounding`` times the largest of ``before`` is left out. ValueError for other shapes.
    """
    before = finite_array(before, "before", ("q",))
    after = finite_array(after, "after", before.shape)
    kept = before > rounding * before[0]
    return float(np.exp(np.max(abs(np.log(after[kept] / before[kept])))))


def _size(value):
    if np.isinf(value):
        return "infinite"
    return "> 1e15" if value > ROUNDING else show(value)


def start_spectra(X, Y, *, betas=BETAS, seeds=5, **options) -> StartSpectra:
    """Spectra of the starts of ``beta_sweep(X, Y, betas=..., seeds=..., **options)``, in float64."""
    network, parameters = starts(X, Y, betas=betas, seeds=seeds, **options)
    found = [[_one(network.with_beta(float(beta)), start, X, Y) for start in parameters] for beta in betas]
    columns = [np.asarray([[run[i] for run in row] for row in found]) for i in range(7)]
    return StartSpectra(tuple(betas), *columns)


def _one(network, parameters, X, Y):
    values = forward(network, parameters, X)
    per_sample, stacked = singular_values(values.Z), singular_values(stack(values.Z))
    low, high = per_sample[:, -1], per_sample[:, 0]
    eigenvalues, vectors = np.linalg.eigh(gram(network, parameters, X))
    R = stack(values.F - Y).T.reshape(-1)
    return (
        condition_number(values.Z).max(),
        float(condition_number(stack(values.Z))),
        stacked[0] / stacked[-1],
        low.min() ** 2 / high.max(),
        low.min() ** 2 / high.max() ** 2,
        eigenvalues,
        vectors.T @ R,
    )
