"""A gallery of starts that a rate theorem certifies, one for each situation that the theorems cover (chapter 5).

``example(name)`` builds one from its fixed seed, ``example(name, full=True)`` at the size of the book's figures. The
last two go beyond a random start: one is certified only after plain gradient descent has done most of the work, one
learns from a real weather record.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .descent import descend, gram_step
from .experiments.weather import fourier_features, load_embedded, windows
from .parameters import initialize
from .transformer import Transformer, forward
from .validation import finite_float, one_of, positive_int


@dataclass(frozen=True, eq=False)
class Example:
    """A network, its start, data, and the form of the rate theorem that certifies it.

    X: (P, n, d), Y: (P, n, c). ||F_0 - Y||_F is inside the certified basin of ``form``.
    """

    name: str
    title: str
    form: str
    transformer: Transformer
    parameters: dict
    X: np.ndarray
    Y: np.ndarray

    @property
    def parts(self):
        """(transformer, parameters, X, Y), in the order in which ``certify`` takes them."""
        return self.transformer, self.parameters, self.X, self.Y

    def scaled(self, factor) -> "Example":
        """The same with Y - F_0 multiplied by ``factor``."""
        factor = finite_float(factor, "factor")
        F = forward(self.transformer, self.parameters, self.X).F
        return replace(self, Y=F + factor * (self.Y - F))


@dataclass(frozen=True)
class _Recipe:
    title: str
    form: str
    residual: tuple[float, float]  # ||R_0||_F: full size, small size
    scales: tuple[float, ...]  # of W_Q and W_K, W_V, W_1, W_2, W_U
    full: dict
    small: dict
    correlation: float = 0.0
    common: dict | None = None


def _sizes(P, n, d, d_k, m, c):
    return {"P": P, "n": n, "d": d, "d_k": d_k, "m": m, "c": c}


RECIPES = {
    "gelu": _Recipe(
        "GELU, zero head", "smooth", (0.45, 0.45), (0.05, 0.02, 0.1, 0.02, 0.0),
        _sizes(12, 8, 512, 64, 512, 10), _sizes(4, 8, 256, 32, 256, 4),
    ),
    "tanh": _Recipe(
        "tanh, correlated tokens", "smooth", (0.05, 0.05), (0.02, 0.01, 0.02, 0.01, 0.0),
        _sizes(8, 12, 256, 32, 256, 4), _sizes(3, 8, 128, 16, 128, 3), 0.6, {"activation": "tanh"},
    ),
    "head-of-order-one": _Recipe(
        "GELU, head of order one", "smooth", (0.02, 0.02), (0.2, 0.1, 0.2, 0.1, 1.0),
        _sizes(4, 8, 128, 32, 128, 4), _sizes(3, 6, 96, 24, 96, 3),
    ),
    "two-layers": _Recipe(
        "GELU, 2 layers of 2 heads", "smooth", (0.08, 0.08), (0.05, 0.01, 0.05, 0.01, 0.0),
        _sizes(6, 6, 192, 32, 192, 4), _sizes(3, 6, 160, 24, 96, 3), common={"layers": 2, "heads": 2},
    ),
    "more-rows": _Recipe(
        "GELU, more rows than features: N > d", "smooth", (2e-3, 0.04), (0.2, 0.05, 3.0, 0.1, 1.0),
        _sizes(4, 6, 12, 4, 256, 3), _sizes(2, 4, 6, 4, 256, 2),
    ),
    "relu": _Recipe(
        "ReLU, zero head", "lipschitz", (0.6, 0.35), (0.05, 0.02, 0.1, 0.02, 0.0),
        _sizes(12, 8, 512, 64, 512, 10), _sizes(4, 8, 256, 32, 256, 4), common={"activation": "relu"},
    ),
    "relu-correlated": _Recipe(
        "ReLU, correlated tokens", "lipschitz", (0.048, 0.048), (0.02, 0.01, 0.02, 0.01, 0.0),
        _sizes(8, 12, 256, 32, 256, 4), _sizes(3, 8, 128, 16, 128, 3), 0.6, {"activation": "relu"},
    ),
    "relu-two-layers": _Recipe(
        "ReLU, 2 layers of 2 heads", "lipschitz", (0.12, 0.12), (0.05, 0.01, 0.05, 0.01, 0.0),
        _sizes(6, 6, 192, 32, 192, 4), _sizes(3, 6, 160, 24, 96, 3),
        common={"activation": "relu", "layers": 2, "heads": 2},
    ),
    "relu-margin": _Recipe(
        "ReLU, no pre-activation changes its sign", "smooth", (1e-3, 1e-3), (0.2, 0.1, 1.0, 0.3, 1.0),
        _sizes(2, 4, 64, 16, 16, 2), _sizes(2, 4, 64, 16, 16, 2), common={"activation": "relu"},
    ),
    "dichotomy": _Recipe(
        "GELU, uniform attention: W_Q = W_K = 0", "smooth", (0.35, 0.35), (0.0, 0.05, 0.3, 0.05, 0.0),
        _sizes(8, 8, 256, 32, 256, 6), _sizes(4, 6, 160, 16, 96, 4),
    ),
    "standard-start": _Recipe(
        "GELU, ordinary start, certified after plain descent", "kernel", (0.0, 0.0), (1.0, 1.0, 1.0, 1.0, 1.0),
        _sizes(6, 6, 96, 16, 96, 2), _sizes(3, 6, 64, 16, 64, 2),
    ),
}  # fmt: skip
SEED = 20260101
WEATHER = "weather"
NAMES = (*RECIPES, "weather-gelu", "weather-relu")


def example(name, *, full=False) -> Example:
    """An example of the gallery: one of ``NAMES``. full: at the book's size; else smaller, for quick checks.

    Always the same for the same arguments. ValueError for an unknown name.
    """
    one_of(name, NAMES, "name")
    if name.startswith(WEATHER):
        return weather_example("gelu" if name == "weather-gelu" else "relu")
    recipe = RECIPES[name]
    rng = np.random.default_rng(SEED)
    size = dict(recipe.full if full else recipe.small)
    P, n = size.pop("P"), size.pop("n")
    transformer = Transformer(**size, **(recipe.common or {}))
    QK, V, W_1, W_2, W_U = recipe.scales
    parameters = initialize(transformer, rng, W_Q=QK, W_K=QK, W_V=V, W_1=W_1, W_2=W_2, W_U=W_U)
    X = correlated_tokens(P, n, transformer.d, recipe.correlation, rng)
    Y = rng.standard_normal((P, n, transformer.c))
    if name == "standard-start":
        step, steps = gram_step(rng), 250 if full else 160
        run = descend(transformer, parameters, X, Y, steps=steps, step=step, spectra=False, trace_every=steps)
        parameters = run.parameters
    else:
        F = forward(transformer, parameters, X).F
        Y = F + recipe.residual[0 if full else 1] * Y / np.linalg.norm(Y)
    return Example(name, recipe.title, recipe.form, transformer, parameters, X, Y)


def correlated_tokens(P, n, d, correlation, rng) -> np.ndarray:
    """Standard normal tokens (P, n, d); neighbours in a sample have this correlation, feature by feature (AR(1))."""
    P, n, d = positive_int(P, "P"), positive_int(n, "n"), positive_int(d, "d")
    r = finite_float(correlation, "correlation", low=-1.0, high=1.0)
    X = rng.standard_normal((P, n, d))
    for i in range(1, n):
        X[:, i] = r * X[:, i - 1] + np.sqrt(1.0 - r**2) * X[:, i]
    return X


def weather_example(activation="gelu", *, scale=3.0, stride=6, overlap=False, residual=None, d=None) -> Example:
    """Eight windows of eight hours of the embedded mast record, seen through random Fourier features.

    The network learns the standardized temperature of the next hour, scaled down to ||Y||_F = ``residual``. The
    features sqrt(2) cos(scale x E + b) tell nearby hours apart: the network memorizes the windows, it does not
    forecast. overlap: windows that begin four hours apart, so that they share rows.

    activation: "gelu" (smooth form, d = 256) or "relu" (Lipschitz form, d = 512).
    """
    one_of(activation, ("gelu", "relu"), "activation")
    smooth = activation == "gelu"
    d = (256 if smooth else 512) if d is None else positive_int(d, "d")
    rng = np.random.default_rng(SEED)
    record = load_embedded()
    starts = [4 * stride * p for p in range(8)] if overlap else "consecutive"
    cut = windows(
        record, samples=8, steps=8, stride=stride, starts=starts, feature_map=partial(_features, d, scale, rng)
    )
    transformer = Transformer(d=d, d_k=16, m=64, c=1, activation=activation)
    parameters = initialize(transformer, rng, W_Q=0.02, W_K=0.02, W_V=0.01, W_1=0.02, W_2=0.01, W_U=0.0)
    residual = 0.2 if residual is None else residual
    Y = residual * cut.Y / np.linalg.norm(cut.Y)
    title = f"{'GELU' if smooth else 'ReLU'}, windows of a weather record"
    return Example(
        f"weather-{activation}", title, "smooth" if smooth else "lipschitz", transformer, parameters, cut.X, Y
    )


def _features(d, scale, rng, E):
    return fourier_features(E, d, scale, rng)
