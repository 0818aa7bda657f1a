"""Instances that several tests use."""

import numpy as np

from residual_gd.parameters import initialize
from residual_gd.transformer import Transformer

ACTIVATIONS = ("gelu", "tanh", "softplus", "smooth_relu", "relu")


def instance(seed=0, *, P=3, n=4, d=5, d_k=3, m=7, c=2, **options):
    """(transformer, parameters, X, Y) with Gaussian matrices."""
    rng = np.random.default_rng(seed)
    transformer = Transformer(d=d, d_k=d_k, m=m, c=c, **options)
    parameters = initialize(transformer, rng)
    return transformer, parameters, rng.standard_normal((P, n, d)), rng.standard_normal((P, n, c))


def distance(left, right):
    """Relative Frobenius distance of two dicts of blocks."""
    apart = sum(float(((left[b] - right[b]) ** 2).sum()) for b in left)
    return (apart / sum(float((right[b] ** 2).sum()) for b in right)) ** 0.5
