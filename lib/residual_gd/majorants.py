"""The majorant calculus: one rule for each operation of the network (chapter 3).

Fix theta_0 and radii rho, one for each block of the parameters. A matrix T(theta) made of samples T_p(theta) has the
majorant (t, t_hat, t1, t2) if everywhere on Ball(rho), for all directions D and D' with block norms Delta and Delta'

    ||T|| <= t,   max_p ||T_p|| <= t_hat,   ||DT[D]||_F <= t1 . Delta,   ||D^2T[D, D']||_F <= Delta^T t2 Delta'.

The first-order part t1 is also a Lipschitz constant, ||T(theta) - T(theta')||_F <= t1 . Delta(theta, theta'), and as
such it does not need derivatives: it holds for activations that are only Lipschitz, for which t2 is None.
Products are taken in float64, without outward rounding. Source: lem-majorant-product, ..., lem-majorant-anchoring.
"""

import math
from dataclasses import dataclass

import numpy as np

from .validation import finite_float, positive_int, require

GAMMA = 0.5
C_2 = math.sqrt(6.0) / 9.0


@dataclass(frozen=True)
class Majorant:
    """Bounds of a matrix and of its derivatives on the ball, B blocks.

    norm: t, of the stack. sample_norm: t_hat, of every sample. first: t1, shape (B,). second: t2, symmetric (B, B), or
    None where the second derivative has no bound. All are >= 0.
    """

    norm: float
    sample_norm: float
    first: np.ndarray
    second: np.ndarray | None

    @property
    def smooth(self) -> bool:
        """True if there is a bound of the second derivative."""
        return self.second is not None


def sym(a, b):
    """a b^T + b a^T."""
    outer = np.outer(a, b)
    return outer + outer.T


def _total(*terms):
    """Sum of factor * matrix over pairs (factor, matrix); None if a matrix is None."""
    if any(matrix is None for _, matrix in terms):
        return None
    return sum(factor * matrix for factor, matrix in terms)


def constant(norm, sample_norm, blocks) -> Majorant:
    """A matrix that does not depend on the parameters (the inputs X). ValueError for a negative norm."""
    positive_int(blocks, "blocks")
    norm, sample_norm = (
        finite_float(float(norm), "norm", low=0.0),
        finite_float(float(sample_norm), "sample_norm", low=0.0),
    )
    return Majorant(norm, sample_norm, np.zeros(blocks), np.zeros((blocks, blocks)))


def block(index, norm, radius, blocks) -> Majorant:
    """The parameter W_b itself: ``norm`` is ||W_b|| at theta_0, b = ``index``.

    ValueError for a negative norm or radius, or an index outside 0, ..., blocks - 1.
    """
    positive_int(blocks, "blocks")
    require(index in range(blocks), "index", f"a number from 0 to {blocks - 1}", repr(index))
    bound = finite_float(float(norm), "norm", low=0.0) + finite_float(float(radius), "radius", low=0.0)
    return Majorant(bound, bound, np.eye(blocks)[index], np.zeros((blocks, blocks)))


def add(S, T) -> Majorant:
    """S + T."""
    second = _total((1.0, S.second), (1.0, T.second))
    return Majorant(S.norm + T.norm, S.sample_norm + T.sample_norm, S.first + T.first, second)


def scale(factor, T) -> Majorant:
    """A multiple of T by a number ``factor`` >= 0 (ValueError for another)."""
    factor = finite_float(float(factor), "factor", low=0.0)
    return Majorant(factor * T.norm, factor * T.sample_norm, factor * T.first, _total((factor, T.second)))


def product(T, W) -> Majorant:
    """T W: every sample times the same matrix W. Source: lem-majorant-product."""
    return Majorant(
        norm=T.norm * W.norm,
        sample_norm=T.sample_norm * W.norm,
        first=W.norm * T.first + T.norm * W.first,
        second=_total((W.norm, T.second), (T.norm, W.second), (1.0, sym(T.first, W.first))),
    )


def attention(S, T) -> Majorant:
    """The samples S_p T_p: attention matrix times tokens. Source: lem-majorant-attention."""
    return Majorant(
        norm=S.sample_norm * T.norm,
        sample_norm=S.sample_norm * T.sample_norm,
        first=T.sample_norm * S.first + S.sample_norm * T.first,
        second=_total((T.sample_norm, S.second), (S.sample_norm, T.second), (1.0, sym(S.first, T.first))),
    )


def logits(T, W) -> Majorant:
    """The samples T_p W T_p^T, where W = W_Q W_K^T / sqrt(d_k). Source: lem-majorant-attention."""
    t, t_hat = T.norm, T.sample_norm
    return Majorant(
        norm=t_hat**2 * W.norm,  # the stack is block diagonal
        sample_norm=t_hat**2 * W.norm,
        first=2.0 * t_hat * W.norm * T.first + t * t_hat * W.first,
        second=_total(
            (2.0 * t_hat * W.norm, T.second),
            (t * t_hat, W.second),
            (2.0 * t_hat, sym(T.first, W.first)),
            (2.0 * W.norm, np.outer(T.first, T.first)),
        ),
    )


def largest_weight(largest_0, G, radii) -> float:
    """s_max: a bound of all attention weights on the ball, ``largest_0`` being their largest at theta_0."""
    growth = math.log(largest_0) + math.sqrt(2.0) * float(G.first @ radii)
    return math.exp(min(0.0, growth))


def softmax_constants(s_max) -> tuple[float, float]:
    """(gamma, c_2): bounds of the first and second derivative of a softmax whose weights stay below ``s_max``."""
    return min(GAMMA, s_max), min(C_2, math.sqrt(2.0) * s_max)


def softmax(G, tokens, s_max=1.0) -> Majorant:
    """Softmax of every row of the logits G, ``tokens`` = n columns; ``s_max`` in [0, 1] bounds the weights on the ball.

    Raises ValueError for another ``tokens`` or ``s_max``. Source: lem-majorant-softmax.
    """
    tokens, s_max = positive_int(tokens, "tokens"), finite_float(float(s_max), "s_max", 0.0, 1.0)
    gamma, c_2 = softmax_constants(s_max)
    second = _total((c_2, np.outer(G.first, G.first)), (gamma, G.second))
    return Majorant(math.sqrt(tokens), math.sqrt(tokens), gamma * G.first, second)


def activate(E, l_phi, b_phi) -> Majorant:
    """phi(E) entry by entry. Norms are infinite (anchoring bounds them); no second order if ``b_phi`` is infinite.

    ValueError for a negative constant. Source: lem-majorant-activation.
    """
    l_phi = finite_float(float(l_phi), "l_phi", low=0.0)
    require(b_phi >= 0, "b_phi", "a number >= 0 or infinity", repr(b_phi))
    second = _total((b_phi, np.outer(E.first, E.first)), (l_phi, E.second)) if math.isfinite(b_phi) else None
    return Majorant(math.inf, math.inf, l_phi * E.first, second)


def anchor(T, norm_0, sample_norm_0, radii) -> Majorant:
    """T with its norms replaced by those measured at theta_0 plus t1 . rho, where that is less.

    Source: lem-majorant-anchoring.
    """
    moved = float(T.first @ radii)
    return Majorant(min(T.norm, norm_0 + moved), min(T.sample_norm, sample_norm_0 + moved), T.first, T.second)


def largest_eigenvalue(symmetric) -> float:
    """lambda_max of a symmetric matrix; of one with entries >= 0 it is the largest value on unit vectors >= 0."""
    return float(np.linalg.eigvalsh(symmetric)[-1])
