"""The Jacobian J of vec F: the products J v and J^T r, the largest eigenvalue of J J^T, dense blocks (chapter 2).

Everything is derived by hand and holds for L layers and n_h heads. The products never form J and take a leading axis
of runs where there is one; the dense blocks are for teaching and for tests, one run at small sizes. The order of rows
and columns is that of the column-major vec: entry (row k of the stack, column j) of F stands at place j N + k.
"""

import math

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import block_diag

from .matrices import commutation_matrix, vec
from .samples import coefficient, half_square, multiply, softmax_pullback, stack, stack_attention, transpose
from .transformer import check_inputs, forward_unchecked, pullback
from .validation import finite_array, generator, positive_float, positive_int, require


def jvp(transformer, parameters, X, direction):
    """J v: the derivative of F along ``direction`` (a dict of blocks): (..., P, n, c). Source: prop-jacobian-blocks."""
    X, _ = check_inputs(transformer, parameters, X)
    require(isinstance(direction, dict), "direction", "a dict of matrices", type(direction).__name__)
    for block, shape in transformer.shapes.items():
        require(block in direction, "direction", "the blocks of the parameters", f"no {block}")
        finite_array(direction[block], f"direction[{block}]", (..., *shape))
    extra = [block for block in direction if block not in transformer.shapes]
    require(not extra, "direction", "the blocks of the parameters", "also " + ", ".join(map(str, extra)))
    return pushforward(transformer, parameters, forward_unchecked(transformer, parameters, X), direction)


def vjp(transformer, parameters, X, r):
    """J^T r by blocks, r (..., P, n, c) in the shape of F; with r = F - Y this is the gradient of Phi."""
    X, _ = check_inputs(transformer, parameters, X)
    r = finite_array(r, "r", (..., X.shape[-3], X.shape[-2], transformer.c))
    check_inputs(transformer, parameters, X, r)
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
    generator(rng, "rng")
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


def softmax_jacobian(s):
    """Gamma(s) = diag(s) - s s^T for a row of attention s (..., n): (..., n, n). Source: lem-softmax-jacobian."""
    s = finite_array(s, "s", (..., "n"))
    xp = array_namespace(s)
    eye = xp.eye(s.shape[-1], dtype=s.dtype, device=s.device)
    return s[..., None] * (eye - s[..., None, :])


def jacobian_blocks(transformer, parameters, X):
    """The blocks J_b of the Jacobian of vec F: a dict of dense NumPy matrices (Nc, size of the block).

    J_b acts on the column-major vec of W_b. X: (P, n, d), one run. The sizes of the Kronecker factors grow like
    (Nc) x (Nm): for teaching and tests. Raises ValueError for bad input or an axis of runs.
    Source: prop-jacobian-blocks.
    """
    blocks, _ = _dense(transformer, parameters, X)
    return blocks


def jacobian(transformer, parameters, X):
    """J, the blocks of ``jacobian_blocks`` side by side in the order of ``transformer.blocks``: (Nc, D)."""
    blocks = jacobian_blocks(transformer, parameters, X)
    return np.concatenate([blocks[b] for b in transformer.blocks], axis=1)


def features_jacobian(transformer, parameters, X):
    """D_Z, the derivative of vec F with respect to vec Z in the last layer: a dense NumPy matrix (Nc, Nd)."""
    _, D_Z = _dense(transformer, parameters, X)
    return D_Z


def _dense(transformer, parameters, X):
    """All dense blocks, and D_Z of the last layer."""
    X, _ = check_inputs(transformer, parameters, X)
    require_one_run(transformer, parameters, X)
    W = {block: np.asarray(parameters[block]) for block in transformer.blocks}
    values = forward_unchecked(transformer, W, np.asarray(X))
    rows = np.eye(X.shape[0] * X.shape[1])
    blocks = {"W_U": np.kron(np.eye(transformer.c), stack(values.H))}
    D_H, last = np.kron(W["W_U"].T, rows), None
    for layer in range(transformer.layers, 0, -1):
        at = values.layers[layer - 1]
        W_1, W_2 = (transformer.name(block, layer) for block in ("W_1", "W_2"))
        blocks[W_2] = D_H @ np.kron(np.eye(transformer.d), stack(at.A))
        slopes = vec(stack(transformer.activation.derivative(at.E)))
        D_E = (D_H @ np.kron(W[W_2].T, rows)) * slopes
        blocks[W_1] = D_E @ np.kron(np.eye(transformer.m), stack(at.Z))
        D_Z = D_E @ np.kron(W[W_1].T, rows) + transformer.beta_ffn * D_H
        last = D_Z if last is None else last
        D_H = transformer.beta_attention * D_Z
        for head in range(transformer.heads):
            for block, D in _attention_jacobians(transformer, at, head, D_Z).items():
                name = transformer.name(block, layer, head + 1)
                blocks[name] = D @ np.kron(np.eye(W[name].shape[1]), stack(at.T))
                D_H = D_H + D @ np.kron(W[name].T, rows)
    return {block: blocks[block] for block in transformer.blocks}, last


def _attention_jacobians(transformer, at, head, D_Z):
    """Derivatives of vec F with respect to the stacked queries T W_Q, keys T W_K and values T W_V of one head."""
    d, d_k, (P, n) = transformer.d, transformer.d_k, at.T.shape[:2]
    swap = commutation_matrix(n, n)
    D_queries, D_keys = np.zeros((2, D_Z.shape[0], P * n * d_k))
    for p in range(P):
        queries, keys, values, S = at.queries[head][p], at.keys[head][p], at.values[head][p], at.S[head][p]
        # d vec Z_p / d vec G_p: the rows of S are functions of the rows of G, and swap turns vec(S) into vec(S^T)
        logits = np.kron(values.T, np.eye(n)) @ swap @ block_diag(*softmax_jacobian(S)) @ swap / math.sqrt(d_k)
        D_G = D_Z[:, sample_entries(P, n, d, p)] @ logits
        D_queries[:, sample_entries(P, n, d_k, p)] = D_G @ np.kron(keys, np.eye(n))
        D_keys[:, sample_entries(P, n, d_k, p)] = D_G @ np.kron(np.eye(n), queries) @ commutation_matrix(n, d_k)
    D_values = D_Z @ np.kron(np.eye(d), stack_attention(at.S[head]))
    return {"W_Q": D_queries, "W_K": D_keys, "W_V": D_values}


def sample_entries(P, n, columns, p):
    """Places of vec T_p (n x columns) in the vec of the stacked T (P n x columns), p from 0."""
    return (np.arange(columns)[:, None] * P * n + p * n + np.arange(n)).ravel()


def require_one_run(transformer, parameters, X):
    """ValueError if X, the parameters or the residual coefficients have an axis of runs."""
    axes = X.ndim - 3 + sum(parameters[b].ndim - 2 for b in transformer.blocks) + (transformer.runs is not None)
    require(axes == 0, "X", "one run (pick_run takes one out of a batch)", "an axis of runs")
