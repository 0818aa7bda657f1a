"""Beyond one layer: depth and the conditioning at the start, causal attention, LayerNorm (chapter 9)."""

import math
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from .matrices import sigma_max, sigma_min
from .samples import softmax, stack
from .transformer import check_inputs, forward_unchecked
from .validation import finite_array, positive_float, require


@dataclass(frozen=True)
class DepthConditioning:
    """What the branches can do to the features before training. Source: lem-depth-conditioning.

    growth: (L,) t_l of every layer. total: t = sum of log(1 + t_l). drift: ||H_0 - X||_F; drift_bound:
    (e^t - 1) ||X||_F. sigma_min_H; sigma_min_bound: sigma_min(X) - drift_bound, which may be negative.
    """

    growth: np.ndarray
    total: float
    drift: float
    drift_bound: float
    sigma_min_H: float
    sigma_min_bound: float


def layer_growth(transformer, parameters, tokens, layer) -> float:
    """t_l = (1 + sqrt(n) sum_h ||W_V||) (1 + l_phi ||W_1|| ||W_2||) - 1 of layer ``layer`` (from 1), n = ``tokens``."""
    heads = range(1, transformer.heads + 1)
    values = sum(float(sigma_max(parameters[transformer.name("W_V", layer, head)])) for head in heads)
    W_1, W_2 = (parameters[transformer.name(block, layer)] for block in ("W_1", "W_2"))
    branch = transformer.activation.l_phi * float(sigma_max(W_1) * sigma_max(W_2))
    # the product is expanded, because 1 + a rounds away a small a
    return math.sqrt(tokens) * values * (1.0 + branch) + branch


def depth_conditioning(transformer, parameters, X) -> DepthConditioning:
    """The features at ``parameters`` against the bounds of lem-depth-conditioning. X: (P, n, d), one run.

    ValueError for bad input, unless both skips have coefficient 1, and unless phi(0) = 0.
    """
    X, _ = check_inputs(transformer, parameters, X)
    skips = (transformer.beta_attention, transformer.beta_ffn)
    require(skips == (1.0, 1.0), "transformer", "both skips with coefficient 1", f"{skips}")
    at_zero = transformer.activation.at_zero
    require(at_zero == 0, "activation", "phi(0) = 0", f"phi(0) = {at_zero:g}")
    layers = range(1, transformer.layers + 1)
    growth = np.array([layer_growth(transformer, parameters, X.shape[-2], layer) for layer in layers])
    total = float(np.sum(np.log1p(growth)))
    H = forward_unchecked(transformer, parameters, X).H
    drift_bound = math.expm1(total) * float(np.linalg.norm(X))
    return DepthConditioning(
        growth=growth,
        total=total,
        drift=float(np.linalg.norm(H - X)),
        drift_bound=drift_bound,
        sigma_min_H=float(sigma_min(stack(H))),
        sigma_min_bound=float(sigma_min(stack(X))) - drift_bound,
    )


def sign_changes(values) -> int:
    """How often a sequence of numbers (K,) changes its sign: a lower bound of the number of zeros in between."""
    signs = np.sign(finite_array(values, "values", ("K",)))
    signs = signs[signs != 0]
    return int(np.sum(signs[1:] != signs[:-1]))


def causal_softmax(G):
    """Softmax of every row i of the logits G (..., n, n) over the tokens 1..i that it may see; 0 elsewhere."""
    G = finite_array(G, "G", (..., "n", "n"))
    xp = array_namespace(G)
    seen = xp.tril(xp.ones_like(G)) > 0
    return softmax(xp.where(seen, G, -xp.inf * xp.ones_like(G)))


def layer_norm(T, epsilon=1e-5):
    """LayerNorm without gain and offset: every row t of T (..., d) becomes C t / sqrt(||C t||^2 / d + epsilon)."""
    T, epsilon = finite_array(T, "T", (..., "d")), positive_float(epsilon, "epsilon")
    xp = array_namespace(T)
    centred = T - xp.mean(T, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + epsilon)
