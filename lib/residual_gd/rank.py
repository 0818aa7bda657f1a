"""Rank of the attention layer's output: how it collapses and what the residual connection restores (chapter 6).

Matrices of attention are row-stochastic, S (..., n, n). "Stacked" means one matrix for all samples: X (N, d) and the
block-diagonal S (N, N) of ``transformer.stack_attention``; with one sample they are X and S themselves.
"""

import decimal
import math

import numpy as np
from array_api_compat import array_namespace

from .matrices import sigma_max, sigma_min, singular_values
from .samples import half_square
from .transformer import check_inputs, forward_unchecked
from .validation import finite_array, finite_float, positive_float, positive_int, require

STOCHASTIC_TOLERANCE = 1e-8


def centering(n):
    """The centering matrix C = I - 11^T/n (n x n), the projector onto vectors of sum 0."""
    n = positive_int(n, "n")
    return np.eye(n) - np.full((n, n), 1.0 / n)


def centered(T):
    """C T_p: each sample's rows minus their mean; T (..., n, columns) keeps its shape."""
    T = finite_array(T, "T", (..., "n", "columns"))
    return T - array_namespace(T).mean(T, axis=-2, keepdims=True)


def spread(T):
    """||C T_p||_F of T (..., n, columns): how far the rows are from being all equal; (...)."""
    C_T = centered(T)
    xp = array_namespace(C_T)
    return xp.sqrt(xp.sum(C_T * C_T, axis=(-2, -1)))


def numerical_rank(A):
    """Number of singular values of A (..., N, d) above max(N, d) eps sigma_1, with eps of the dtype."""
    values = singular_values(A)
    xp = array_namespace(values)
    level = max(A.shape[-2:]) * xp.finfo(values.dtype).eps * values[..., :1]
    return xp.sum(xp.astype(values > level, xp.int64), axis=-1)


def oscillation(G):
    """The largest max_j g_ij - min_j g_ij over the rows i of the logits G (..., n, n): (...)."""
    G = finite_array(G, "G", (..., "n", "n"))
    xp = array_namespace(G)
    return xp.max(xp.max(G, axis=-1) - xp.min(G, axis=-1), axis=-1)


def near_uniform_bound(eps):
    """sinh(eps / 2), the bound of ||S - 11^T/n||_F when no row of logits oscillates more than eps >= 0.

    Source: prop-near-uniform.
    """
    eps = finite_array(eps, "eps")
    xp = array_namespace(eps)
    require(bool(xp.all(eps >= 0)), "eps", "oscillations >= 0", "a negative one")
    return xp.sinh(0.5 * eps)


def monomial_count(r, q):
    """Number of monomials of degree below q in r variables, binomial(r + q - 1, r)."""
    r, q = positive_int(r, "r"), positive_int(q, "q")
    return math.comb(r + q - 1, r)


def low_rank_logits_bound(a, q):
    """e^{2a} a^q / q!, a bound of sigma_{k+1}(S) with k = monomial_count(r, q), r = rank G, a = max |g_ij|.

    Source: prop-low-rank-logits.
    """
    a, q = finite_float(a, "a", low=0.0), positive_int(q, "q")
    return math.exp(2.0 * a + q * math.log(a) - math.lgamma(q + 1)) if a > 0 else 0.0


def attention_rank(X, W_Q, W_K, W_V=None, *, digits=120):
    """Rank of one sample's S, or of S X W_V, proved from below in decimal arithmetic of so many digits.

    X (n, d), W_Q and W_K (d, d_k), W_V (d, d), taken as the exact numbers that the floats are. Gaussian elimination
    with complete pivoting; only pivots above 10^(-digits/2) count, far above its rounding errors, so that the true
    rank is at least the result. ValueError for wrong shapes, NaN, fewer than 30 digits. Source: prop-generic-full-rank.
    """
    X = finite_array(X, "X", ("n", "d"))
    W_Q = finite_array(W_Q, "W_Q", (X.shape[1], "d_k"))
    W_K = finite_array(W_K, "W_K", W_Q.shape)
    require(positive_int(digits, "digits") >= 30, "digits", "at least 30", repr(digits))
    exact = np.vectorize(decimal.Decimal, otypes=[object])
    with decimal.localcontext(decimal.Context(prec=digits)):
        G = exact(X) @ exact(W_Q) @ (exact(X) @ exact(W_K)).T / decimal.Decimal(W_Q.shape[1]).sqrt()
        S = np.vectorize(decimal.Decimal.exp, otypes=[object])(G - G.max(axis=1, keepdims=True))
        S = S / S.sum(axis=1, keepdims=True)
        if W_V is not None:
            W_V = finite_array(W_V, "W_V", (X.shape[1], X.shape[1]))
            S = S @ exact(X) @ exact(W_V)
        return _pivots_above(S, decimal.Decimal(10) ** (-digits // 2))


def _pivots_above(A, level):
    """Number of pivots above ``level`` in Gaussian elimination with complete pivoting; A is an array of decimals."""
    count = 0
    while A.size:
        i, j = np.unravel_index(np.argmax(abs(A)), A.shape)
        if abs(A[i, j]) <= level:
            break
        pivot_row, rest = np.delete(A[i], j), np.delete(A, i, axis=0)
        A = np.delete(rest, j, axis=1) - np.outer(rest[:, j] / A[i, j], pivot_row)
        count += 1
    return count


def residual_bound(X, attention, beta):
    """beta sigma_min(X) - ||S X W_V||, Weyl's lower bound of sigma_min(Z) (it may be negative).

    X and ``attention`` = S X W_V are stacked, (N, d); beta >= 0. Source: prop-residual-weyl.
    """
    X = finite_array(X, "X", (..., "N", "d"))
    attention = finite_array(attention, "attention", X.shape)
    return finite_float(beta, "beta", low=0.0) * sigma_min(X) - sigma_max(attention)


def scalar_value_bound(S, X, beta, v):
    """(beta + lambda_min(v (S + S^T)/2)) sigma_min(X), a lower bound of sigma_min(Z) when W_V = v I.

    S (N, N) and X (N, d) stacked, beta >= 0, v any number. Source: prop-residual-scalar-value.
    """
    S, X = _attention_and_input(S, X)
    beta, v = finite_float(beta, "beta", low=0.0), finite_float(v, "v")
    return (beta + np.linalg.eigvalsh(0.5 * v * (S + S.T))[0]) * sigma_min(X)


def value_operator(S, X, W_V):
    """V = S X W_V X^+ (N, N) with X^+ = X^T (X X^T)^{-1}, so that Z X^+ = beta I + V.

    S (N, N) and X (N, d) stacked. ValueError unless X has full row rank. Source: prop-residual-generic-beta.
    """
    S, X = _attention_and_input(S, X)
    W_V = finite_array(W_V, "W_V", (X.shape[1], X.shape[1]))
    rank = int(numerical_rank(X))
    require(rank == X.shape[0], "X", f"full row rank {X.shape[0]}", f"rank {rank} ({X.shape[0]} x {X.shape[1]})")
    return S @ X @ W_V @ np.linalg.pinv(X)


def exceptional_betas(S, X, W_V, *, tolerance=1e-8):
    """The beta >= 0 for which beta I + V is singular, ascending: where Z may lose full row rank (if N = d, it does).

    They are the negatives of V's real eigenvalues; an eigenvalue counts as real if its imaginary part is at most
    ``tolerance`` ||V||, with V = ``value_operator``. S, X stacked. Source: prop-residual-generic-beta.
    """
    V = value_operator(S, X, W_V)
    values, level = -np.linalg.eigvals(V), positive_float(tolerance, "tolerance") * np.linalg.norm(V, 2)
    return np.sort(values.real[(abs(values.imag) <= level) & (values.real >= 0)])


def deficient_value(d, beta):
    """W_V = -beta I (d x d), which makes Z = beta (I - S) X rank deficient for every X, W_Q and W_K.

    beta > 0: full-rank weights and data do not save Z. Source: prop-residual-fails.
    """
    return -positive_float(beta, "beta") * np.eye(positive_int(d, "d"))


def token_lipschitz(transformer, parameters, layer=None):
    """l_phi ||W_1|| ||W_2|| + beta_F of a layer (the last one by default), a Lipschitz constant of z -> h on one token.

    A number, or one for each run. Source: prop-loss-floor.
    """
    layer = transformer.layers if layer is None else positive_int(layer, "layer")
    require(layer <= transformer.layers, "layer", f"at most {transformer.layers}", repr(layer))
    W_1, W_2 = (parameters[transformer.name(block, layer)] for block in ("W_1", "W_2"))
    slope = transformer.activation.l_phi * sigma_max(W_1) * sigma_max(W_2)
    return slope + array_namespace(slope).asarray(transformer.beta_ffn, dtype=slope.dtype)


def loss_floor(transformer, parameters, X, Y):
    """1/2 (||C Y||_F - Lambda_F ||C Z||_F)_+^2 <= Phi, with Lambda_F = token_lipschitz * ||W_U||.

    C acts on each sample. It holds for every beta_A and every number of layers; it is useful where Z's tokens have
    almost merged. A number, or one for each run. Source: prop-loss-floor.
    """
    X, Y = check_inputs(transformer, parameters, X, Y)
    Z = forward_unchecked(transformer, parameters, X).Z
    xp = array_namespace(Z)
    merged = token_lipschitz(transformer, parameters) * sigma_max(parameters["W_U"]) * _centered_norm(Z)
    gap = _centered_norm(Y) - merged
    return 0.5 * xp.where(gap > 0, gap, xp.zeros_like(gap)) ** 2


def uniform_loss_floor(Y):
    """1/2 sum_p ||C Y_p||_F^2 <= Phi for exactly uniform attention without its skip, whatever the weights.

    Y: (..., P, n, c). Source: prop-loss-floor.
    """
    return half_square(centered(finite_array(Y, "Y", (..., "P", "n", "c"))))


def _centered_norm(T):
    return array_namespace(T).sqrt(2.0 * half_square(centered(T)))


def _attention_and_input(S, X):
    X = finite_array(X, "X", ("N", "d"))
    S = finite_array(S, "S", (X.shape[0], X.shape[0]))
    rows = float(np.max(abs(np.sum(S, axis=-1) - 1.0)))
    stochastic = bool(np.all(S >= 0)) and rows <= STOCHASTIC_TOLERANCE
    require(stochastic, "S", "rows >= 0 that sum to 1", f"a row off by {rows:.1e}" if rows else "a negative entry")
    return S, X
