"""Samples and their stack: products with shared matrices, the row-wise softmax, half the square (chapter 1).

Arrays hold P samples of n tokens, (..., P, n, columns); a leading axis of runs may stand before.
"""

from array_api_compat import array_namespace

from .validation import require


def stack(T):
    """Stack the samples: (..., P, n, columns) -> (..., N, columns) with N = Pn, row p n + i for token i of sample p."""
    return array_namespace(T).reshape(T, (*T.shape[:-3], T.shape[-3] * T.shape[-2], T.shape[-1]))


def unstack(T, samples):
    """Undo ``stack``: (..., N, columns) -> (..., samples, N / samples, columns)."""
    require(T.shape[-2] % samples == 0, "T", f"rows that {samples} samples share evenly", f"{T.shape[-2]} rows")
    return array_namespace(T).reshape(T, (*T.shape[:-2], samples, T.shape[-2] // samples, T.shape[-1]))


def stack_attention(S):
    """The stacked attention matrix blkdiag(S_1, ..., S_P): (P, n, n) -> (N, N)."""
    xp = array_namespace(S)
    P, n = S.shape[0], S.shape[-1]
    eye = xp.eye(P, dtype=S.dtype)
    return xp.reshape(eye[:, None, :, None] * S[:, :, None, :], (P * n, P * n))


def transpose(T):
    """Transpose of the last two axes."""
    return array_namespace(T).matrix_transpose(T)


def multiply(T, W):
    """T W for samples T (..., P, n, a) and a shared matrix W (..., a, b), as one product of the stack."""
    return unstack(stack(T) @ W, T.shape[-3])


def contract(T, U):
    """Sum over the samples of T_p^T U_p: (..., P, n, a), (..., P, n, b) -> (..., a, b)."""
    return transpose(stack(T)) @ stack(U)


def coefficient(beta, like):
    """A residual coefficient that multiplies arrays (..., P, n, columns): a float, or (runs, 1, 1, 1)."""
    if isinstance(beta, float):
        return beta
    xp = array_namespace(like)
    return xp.reshape(xp.asarray(beta, dtype=like.dtype, device=like.device), (-1, 1, 1, 1))


def softmax(G):
    """Row-wise softmax (over the last axis)."""
    xp = array_namespace(G)
    weights = xp.exp(G - xp.max(G, axis=-1, keepdims=True))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def softmax_pullback(S, S_bar):
    """Adjoint of the logits, row by row Gamma(s) s_bar = s o (s_bar - <s, s_bar>)."""
    xp = array_namespace(S)
    return S * (S_bar - xp.sum(S * S_bar, axis=-1, keepdims=True))


def half_square(R):
    """1/2 ||R||_F^2 over the last three axes."""
    return 0.5 * array_namespace(R).sum(R * R, axis=(-3, -2, -1))
