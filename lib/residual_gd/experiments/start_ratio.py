"""Where the paper's number comes from: min sigma_min(Z_p)^2 / max ||Z_p|| at the start (chapter 7)."""

import numpy as np

from ..matrices import singular_values
from ..transformer import forward
from ..validation import finite_array, one_of
from .sweeps import starts


def ratio(Z) -> float:
    """min_p sigma_min(Z_p)^2 / max_p ||Z_p|| of Z (P, n, d) with n <= d, in the precision of Z."""
    values = singular_values(Z)
    return float(values[:, -1].min()) ** 2 / float(values[:, 0].max())


def start_ratios(X, *, beta=0.0, seeds=5, dtype="float64", **options) -> np.ndarray:
    """The ratio at the start of ``beta_sweep(X, ..., **options)`` for one coefficient: (S,).

    dtype: "float64" or "float32", in which the forward pass and the singular values are computed.
    ValueError for bad input.
    """
    X = finite_array(X, "X", ("P", "n", "d"))
    precision = np.dtype(one_of(dtype, ("float64", "float32"), "dtype"))
    network, runs = starts(X, np.zeros((*X.shape[:2], 1)), betas=(beta,), seeds=seeds, **options)
    network, X = network.with_beta(float(beta)), X.astype(precision)
    runs = [{block: W.astype(precision) for block, W in run.items()} for run in runs]
    return np.array([ratio(forward(network, run, X).Z) for run in runs])
