"""Random instances and searches that the statements of several chapters share."""

from dataclasses import dataclass

import numpy as np

from ..parameters import initialize
from ..transformer import Transformer


@dataclass(frozen=True)
class Instance:
    """A network with parameters, inputs X (P, n, d) and targets Y (P, n, c)."""

    transformer: Transformer
    parameters: dict
    X: np.ndarray
    Y: np.ndarray

    @property
    def parts(self):
        """(transformer, parameters, X, Y), in the order in which the functions of the library take them."""
        return self.transformer, self.parameters, self.X, self.Y


SMOOTH = ("gelu", "tanh", "softplus", "smooth_relu")


def network(draw, *, activations=SMOOTH, largest=5, wide=False, deep=False, scales=None, **sizes) -> Instance:
    """A small network with every matrix Gaussian at a drawn scale.

    largest: bound of d, d_k, m. wide: d >= N, so that X has full row rank almost surely. deep: up to 2 layers and 2
    heads. scales: fixed scales of some matrices (``{"W_U": 0.0}``). sizes: fixed P, n, d, d_k, m, c, beta, ...
    """
    P, n = sizes.pop("P", None) or draw.integer(1, 3), sizes.pop("n", None) or draw.integer(1, 4)
    drawn = {name: draw.integer(1, largest) for name in ("d", "d_k", "m")}
    drawn["c"] = draw.integer(1, 3)
    if wide:
        drawn["d"] = P * n + draw.integer(0, 2)
    if deep:
        drawn |= {"layers": draw.integer(1, 2), "heads": draw.integer(1, 2)}
    if not {"beta", "beta_attention", "beta_ffn"} & sizes.keys():
        drawn |= {"beta_attention": draw.real(0.0, 1.5), "beta_ffn": draw.real(0.0, 1.5)}
    drawn["activation"] = draw.choice(activations)
    transformer = Transformer(**(drawn | sizes))
    chosen = {name: draw.scale(0.05, 3.0) for name in ("W_Q", "W_K", "W_V", "W_1", "W_2", "W_U")} | (scales or {})
    parameters = initialize(transformer, draw.rng, **chosen)
    return Instance(transformer, parameters, draw.normal(P, n, transformer.d), draw.normal(P, n, transformer.c))


def climb(objective, start, rng, *, steps=400, spread=1.0):
    """Maximize ``objective`` by a hill climb from ``start`` (a vector): returns (best point, best value).

    Gaussian moves whose size grows after a success and shrinks after a failure (a (1+1) evolution strategy), so the
    value never falls. A value that is not finite counts as a failure.
    """
    best, value = np.array(start, dtype=float), float(objective(start))
    for _ in range(steps):
        candidate = best + spread * rng.standard_normal(best.shape)
        tried = float(objective(candidate))
        if np.isfinite(tried) and tried >= value:
            best, value, spread = candidate, tried, 1.6 * spread
        else:
            spread *= 0.88
    return best, value
