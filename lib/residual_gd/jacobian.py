"""The Jacobian J of vec F as a linear map: J v, J^T r, and the largest eigenvalue of J J^T (chapter 2).

J is never formed here. All products are derived by hand and hold for L layers and n_h heads, with a leading axis of
runs where there is one.
"""

import math

from array_api_compat import array_namespace

from .transformer import (
    check_inputs,
    coefficient,
    forward_unchecked,
    half_square,
    multiply,
    pullback,
    softmax_pullback,
    transpose,
)
from .validation import finite_array, positive_float, positive_int, require


def jvp(transformer, parameters, X, direction):
    """J v: the derivative of F along ``direction`` (a dict of blocks): (..., P, n, c). Source: prop-jacobian-blocks."""
    X, _ = check_inputs(transformer, parameters, X)
    require(isinstance(direction, dict), "direction", "a dict of matrices", type(direction).__name__)
    for block, shape in transformer.shapes.items():
        require(block in direction, "direction", "the blocks of the parameters", f"no {block}")
        finite_array(direction[block], f"direction[{block}]", (..., *shape))
    return pushforward(transformer, parameters, forward_unchecked(transformer, parameters, X), direction)


def vjp(transformer, parameters, X, r):
    """J^T r by blocks, r (..., P, n, c) in the shape of F; with r = F - Y this is the gradient of Phi."""
    X, r = check_inputs(transformer, parameters, X, r)
    return pullback(transformer, parameters, forward_unchecked(transformer, parameters, X), r)


def pushforward(transformer, parameters, values, direction):
    """J v at the forward pass ``values``, without validation."""
    dT = None
    for layer, at in enumerate(values.layers, start=1):
        dT = _pushforward_layer(transformer, parameters, layer, at, dT, direction)
    return multiply(dT, parameters["W_U"]) + multiply(values.H, direction["W_U"])


def _pushforward_layer(transformer, parameters, layer, at, dT, direction):
    """Derivative of the layer's output; ``dT`` is that of its input, None where the input is constant."""

    def derivative_of_product(T, dT, block, head=1):
        name = transformer.name(block, layer, head)
        moved = multiply(T, direction[name])
        return moved if dT is None else moved + multiply(dT, parameters[name])

    dZ = 0.0 if dT is None else coefficient(transformer.beta_attention, dT) * dT
    for h in range(transformer.heads):
        d_queries = derivative_of_product(at.T, dT, "W_Q", h + 1)
        d_keys = derivative_of_product(at.T, dT, "W_K", h + 1)
        d_values = derivative_of_product(at.T, dT, "W_V", h + 1)
        dG = (d_queries @ transpose(at.keys[h]) + at.queries[h] @ transpose(d_keys)) / math.sqrt(transformer.d_k)
        # Gamma(s) is symmetric, so the softmax's derivative and its adjoint are the same map
        dZ = dZ + softmax_pullback(at.S[h], dG) @ at.values[h] + at.S[h] @ d_values
    dE = derivative_of_product(at.Z, dZ, "W_1")
    dA = transformer.activation.derivative(at.E) * dE
    return derivative_of_product(at.A, dA, "W_2") + coefficient(transformer.beta_ffn, dZ) * dZ


def lambda_max(transformer, parameters, X, rng, *, tolerance=1e-6, max_iterations=1000):
    """The largest eigenvalue of J J^T, one for each run, by power iteration on r -> J J^T r.

    Starts from a Gaussian vector of ``rng`` (the same for all runs) and stops when no run's value grows by more than
    ``tolerance`` relative. The values approach lambda_max from below. ValueError for bad input; ArithmeticError if
    ``max_iterations`` do not suffice or J = 0.
    """
    X, _ = check_inputs(transformer, parameters, X)
    positive_float(tolerance, "tolerance")
    positive_int(max_iterations, "max_iterations")
    values = forward_unchecked(transformer, parameters, X)
    xp = array_namespace(values.F)
    start = rng.standard_normal(tuple(values.F.shape[-3:]))
    r = xp.asarray(start, dtype=values.F.dtype, device=values.F.device) + xp.zeros_like(values.F)
    previous = None
    for _ in range(max_iterations):
        norm = xp.sqrt(2.0 * half_square(r))[..., None, None, None]
        if not bool(xp.all(norm > 0)):
            raise ArithmeticError("lambda_max: J J^T r = 0, the network does not move its output to first order")
        r = r / norm
        image = pushforward(transformer, parameters, values, pullback(transformer, parameters, values, r))
        current = xp.sum(r * image, axis=(-3, -2, -1))
        if previous is not None and bool(xp.all(abs(current - previous) <= tolerance * current)):
            return current
        previous, r = current, image
    raise ArithmeticError(f"lambda_max: not settled to {tolerance:g} after {max_iterations} iterations")
