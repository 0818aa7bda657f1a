"""Named initializations of the parameter blocks, and batches of runs (chapter 1)."""

from array_api_compat import array_namespace

from .transformer import Parameters, Transformer
from .validation import finite_float, generator, one_of, require

SCHEMES = {
    "gaussian": {},
    "zero-head": {"W_Q": 0.05, "W_K": 0.05, "W_V": 0.02, "W_1": 0.1, "W_2": 0.02, "W_U": 0.0},
    "experiment": {},
}


def initialize(transformer, rng, scheme="gaussian", *, sigma_Q=None, **scales) -> Parameters:
    """Draw every block W_b with independent entries of standard deviation scale_b / sqrt(rows of W_b).

    scheme: "gaussian" (all scales 1), "zero-head" (W_U = 0 and small branches, the start that the rate theorems
    certify), "experiment" (all scales 1, W_Q and W_K multiplied by ``sigma_Q``, which is 1 if not given).
    ``scales`` such as ``W_V=0.1`` replace the scheme's scale of that matrix in every layer and head. A matrix of
    scale 0 is exactly 0. Every matrix consumes its random numbers whatever its scale, so that two starts with the
    same seed differ only in the scales.

    Returns NumPy float64 matrices. Raises ValueError for an unknown scheme or matrix, a negative scale, an ``rng`` that
    is no Generator.
    """
    require(isinstance(transformer, Transformer), "transformer", "a Transformer", type(transformer).__name__)
    generator(rng, "rng")
    one_of(scheme, SCHEMES, "scheme")
    chosen = dict.fromkeys(("W_Q", "W_K", "W_V", "W_1", "W_2", "W_U"), 1.0) | SCHEMES[scheme]
    if sigma_Q is not None:
        require(scheme == "experiment", "sigma_Q", 'scheme "experiment"', repr(scheme))
        chosen["W_Q"] = chosen["W_K"] = finite_float(sigma_Q, "sigma_Q", low=0.0)
    for matrix, scale in scales.items():
        one_of(matrix, chosen, "scales")
        chosen[matrix] = finite_float(scale, matrix, low=0.0)
    return {
        block: chosen[block.split(".")[0]] * rng.standard_normal(shape) / shape[0] ** 0.5
        for block, shape in transformer.shapes.items()
    }


def stack_runs(runs) -> Parameters:
    """Join the parameters of several runs along a leading axis: a sequence of dicts -> one dict of (runs, ., .).

    Raises ValueError for no run, and for runs with other blocks or shapes than the first.
    """
    require(not isinstance(runs, dict), "runs", "a sequence of dicts", "one dict")
    runs = list(runs)
    require(len(runs) > 0, "runs", "at least one run", "none")
    for r, run in enumerate(runs):
        require(isinstance(run, dict), f"runs[{r}]", "a dict of matrices", type(run).__name__)
        require(run.keys() == runs[0].keys(), f"runs[{r}]", "the blocks of runs[0]", ", ".join(run))
        for block, W in run.items():
            expected = tuple(runs[0][block].shape)
            require(tuple(W.shape) == expected, f"runs[{r}][{block}]", f"shape {expected}", f"{tuple(W.shape)}")
    xp = array_namespace(*runs[0].values())
    return {block: xp.stack([run[block] for run in runs]) for block in runs[0]}


def pick_run(parameters, run) -> Parameters:
    """The parameters of one run out of a batch; ValueError without an axis of runs or for a run that is not there."""
    for block, matrix in parameters.items():
        require(matrix.ndim == 3, block, "a batch of runs", f"{matrix.ndim} axes")
        require(-matrix.shape[0] <= run < matrix.shape[0], "run", f"one of {matrix.shape[0]} runs", repr(run))
    return {block: matrix[run, ...] for block, matrix in parameters.items()}


def as_torch(values, dtype=None, device=None):
    """Copy NumPy arrays (an array, or a dict of arrays) to torch; dtype float64 if not given."""
    import torch

    if isinstance(values, dict):
        return {name: as_torch(value, dtype, device) for name, value in values.items()}
    return torch.tensor(values, dtype=dtype or torch.float64, device=device)
