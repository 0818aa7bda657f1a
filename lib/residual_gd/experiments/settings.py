"""The settings of chapter 7: how windows of a weather record become tokens."""

from functools import partial

import numpy as np

from ..validation import one_of
from .station_csv import Record
from .windows import Windows, fourier_features, linear_embedding, windows

SETTINGS = ("W1", "W2")


def setting(name: str, record: Record, *, samples=None, steps=8, seed=0, **options) -> Windows:
    """Windows of ``record`` in one of the two settings of chapter 7. The target is the temperature one step ahead.

    name: "W1", weather-like: 16 windows of 8 tokens, one every three hours; a fixed random linear embedding into
    width 32 plus sinusoidal positions, so that N = 128 > d. "W2", theory-like: 4 such windows; random Fourier features
    sqrt(2) cos(10 x E + b) of width 64, so that N = 32 <= d.
    samples, steps: other numbers of windows and tokens. seed: of the embedding. options: as in ``windows``.

    Raises ValueError for an unknown name and whatever ``windows`` refuses.
    """
    one_of(name, SETTINGS, "name")
    rng = np.random.default_rng(seed)
    if name == "W1":
        embed, usual = partial(_embedding, rng), 16
    else:
        embed, usual = partial(_features, rng), 4
    samples = usual if samples is None else samples
    return windows(record, samples=samples, steps=steps, feature_map=embed, **options)


def _embedding(rng, E):
    return linear_embedding(E, 32, rng)


def _features(rng, E):
    return fourier_features(E, 64, 10.0, rng)
