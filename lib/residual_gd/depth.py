"""Depth: how the tokens of a sample merge from layer to layer, with and without the attention skip (chapter 6).

After Dong, Cordonnier and Loukas (2021). Pure attention, X_{l+1} = S_l X_l W_l + beta X_l, is the book's network with
W_2 = 0 and beta_F = 1: ``pure_attention`` draws one.
"""

import math

import numpy as np
from array_api_compat import array_namespace

from .matrices import sigma_max
from .parameters import initialize
from .rank import spread, token_lipschitz
from .samples import transpose
from .transformer import Transformer, check_inputs, forward_unchecked
from .validation import finite_array, finite_float, positive_float, positive_int, require


def pure_attention(transformer, rng, **scales):
    """A start with W_2 = 0, so that with beta_F = 1 every layer is T_l = sum_h S_l T_{l-1} W_V + beta_A T_{l-1}.

    scales: as ``parameters.initialize``. ValueError unless beta_F = 1.
    """
    require(isinstance(transformer, Transformer), "transformer", "a Transformer", type(transformer).__name__)
    require(transformer.beta_ffn == 1.0, "beta_ffn", "1 (else a layer is not attention alone)", transformer.beta_ffn)
    return initialize(transformer, rng, **(scales | {"W_2": 0.0}))


def token_spread(transformer, parameters, X):
    """||C T_l||_F of each sample for l = 0..L: (layers + 1, ..., P). T_0 = X, T_L = H."""
    X, _ = check_inputs(transformer, parameters, X)
    values = forward_unchecked(transformer, parameters, X)
    xp = array_namespace(values.H)
    later = [spread(layer.H) for layer in values.layers]
    first = spread(X) + xp.zeros_like(later[0])
    return xp.stack([first] + later)


def collapse_coefficients(transformer, parameters):
    """a_l = sum_h ||W_Q W_K^T|| ||W_V|| / (2 sqrt(d_k)) of every layer: (layers, ...).

    Source: prop-depth-collapse.
    """
    return np.stack([_coefficient(transformer, parameters, layer) for layer in range(1, transformer.layers + 1)])


def _coefficient(transformer, parameters, layer):
    total = 0.0
    for head in range(1, transformer.heads + 1):
        W_Q, W_K, W_V = (parameters[transformer.name(b, layer, head)] for b in ("W_Q", "W_K", "W_V"))
        total = total + sigma_max(W_Q @ transpose(W_K)) * sigma_max(W_V)
    return total / (2.0 * math.sqrt(transformer.d_k))


def collapse_bounds(transformer, parameters, spreads):
    """Bounds of ||C T_l||_F from s = ||C T_{l-1}||_F, layer by layer: (lower, upper), both (layers, P).

    upper = nu_l (beta_A + a_l s^2) s with nu_l = ``token_lipschitz`` holds for the whole network;
    lower = (beta_A - a_l s^2) s for pure attention only (W_2 = 0, beta_F = 1), and is NaN elsewhere.
    spreads: (layers + 1, P), from ``token_spread``. Source: prop-depth-collapse, prop-depth-residual.
    """
    s = finite_array(spreads, "spreads", (transformer.layers + 1, "P"))[:-1]
    layers = range(1, transformer.layers + 1)
    a = collapse_coefficients(transformer, parameters)[:, None]
    slope = np.stack([token_lipschitz(transformer, parameters, layer) for layer in layers])[:, None]
    beta = transformer.beta_attention
    idle = not any(np.any(parameters[transformer.name("W_2", layer)]) for layer in layers)
    lower = (beta - a * s**2) * s
    return lower if idle and transformer.beta_ffn == 1.0 else np.full_like(s, np.nan), slope * (beta + a * s**2) * s


def doubly_exponential_bound(a, spread_0, layers):
    """(sqrt(a) s_0)^(3^l) / sqrt(a) for l = 0..layers, the bound of the spread after l layers: (layers + 1,).

    a > 0 bounds every nu_l a_l, s_0 = ``spread_0`` >= 0. Source: prop-depth-collapse.
    """
    a, s = positive_float(a, "a"), finite_float(spread_0, "spread_0", low=0.0)
    power = 3.0 ** np.arange(positive_int(layers, "layers") + 1)
    with np.errstate(under="ignore", over="ignore"):
        return (math.sqrt(a) * s) ** power / math.sqrt(a)


def one_step_collapse(beta, x=1.0, strength=1.0):
    """Two tokens (x, -x) that one layer of attention with its skip maps to one point: (transformer, parameters, X).

    d = d_k = 1, W_Q = W_K = sqrt(strength), W_V = -beta / tanh(strength x^2), W_2 = 0. All arguments > 0.
    Source: prop-depth-residual.
    """
    beta, x, strength = positive_float(beta, "beta"), positive_float(x, "x"), positive_float(strength, "strength")
    transformer = Transformer(d=1, d_k=1, m=1, c=1, beta_attention=beta, beta_ffn=1.0)
    logit = positive_float(strength * x * x, "strength * x^2")
    root = np.array([[math.sqrt(strength)]])
    parameters = dict.fromkeys(transformer.blocks, np.ones((1, 1))) | {"W_Q": root, "W_K": root}
    parameters |= {"W_V": np.array([[-beta / math.tanh(logit)]]), "W_2": np.zeros((1, 1))}
    return transformer, parameters, np.array([[[x], [-x]]])
