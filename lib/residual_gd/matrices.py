"""Matrices as the book uses them: vec, the commutation matrix, extreme singular values (chapters 1 and 2).

Every function takes NumPy arrays or torch tensors and accepts leading batch axes, except the commutation matrix.
"""

import numpy as np
from array_api_compat import array_namespace

from .validation import finite_array, positive_int, require


def vec(A):
    """Stack the columns of A (..., m, n) into a vector (..., mn): entry (i, j) goes to place j m + i."""
    A = finite_array(A, "A", (..., "m", "n"))
    xp = array_namespace(A)
    return xp.reshape(xp.matrix_transpose(A), (*A.shape[:-2], A.shape[-2] * A.shape[-1]))


def unvec(a, rows, columns):
    """The matrix (..., rows, columns) whose vec is ``a`` (..., rows * columns)."""
    rows, columns = positive_int(rows, "rows"), positive_int(columns, "columns")
    a = finite_array(a, "a", (..., rows * columns))
    xp = array_namespace(a)
    return xp.matrix_transpose(xp.reshape(a, (*a.shape[:-1], columns, rows)))


def commutation_matrix(m, n):
    """The permutation matrix T_{m,n} (mn x mn) with T vec(A) = vec(A^T) for every A of size m x n."""
    m, n = positive_int(m, "m"), positive_int(n, "n")
    T = np.zeros((m * n, m * n))
    i, j = np.divmod(np.arange(m * n), n)
    T[i * n + j, j * m + i] = 1.0
    return T


def _matrix(A):
    A = finite_array(A, "A", (..., "N", "d"))
    require(0 not in A.shape[-2:], "A", "at least one row and one column", f"shape {tuple(A.shape)}")
    return A


def singular_values(A):
    """Singular values of A (..., N, d), largest first: (..., min(N, d)). ValueError for a matrix without entries."""
    A = _matrix(A)
    return array_namespace(A).linalg.svdvals(A)


def sigma_max(A):
    """Largest singular value of A (..., N, d), its spectral norm."""
    return singular_values(A)[..., 0]


def sigma_min(A):
    """The N-th singular value of A (..., N, d), and 0 if N > d: positive exactly when A has full row rank.

    Its square is the smallest eigenvalue of A A^T.
    """
    A = _matrix(A)
    values = singular_values(A)
    if A.shape[-2] > A.shape[-1]:
        return 0.0 * values[..., 0]
    return values[..., -1]


def condition_number(A):
    """kappa(A) = sigma_max(A) / sigma_min(A) with the N-th singular value: infinite without full row rank."""
    A = _matrix(A)
    values = singular_values(A)
    xp = array_namespace(values)
    largest, smallest = values[..., 0], sigma_min(A)
    positive = smallest > 0
    return xp.where(positive, largest / xp.where(positive, smallest, 1.0), xp.inf * xp.ones_like(smallest))


def stable_rank(A):
    """||A||_F^2 / ||A||^2 of A (..., N, d), at most its rank; ValueError for a zero matrix."""
    squares = singular_values(A) ** 2
    xp = array_namespace(squares)
    require(bool(xp.all(squares[..., 0] > 0)), "A", "a nonzero matrix", "a zero matrix")
    return xp.sum(squares, axis=-1) / squares[..., 0]
