"""The PL inequality: what each block adds to lambda_min(J J^T), at a point and on a ball (chapter 4).

||grad Phi||^2 = r^T J J^T r >= 2 alpha Phi wherever J J^T >= alpha I. Three blocks of the last layer give a lower
bound from singular values alone: the head W_U, the feed-forward matrices W_2 and W_1.
"""

from dataclasses import dataclass

import numpy as np

from .matrices import sigma_max, sigma_min, singular_values
from .network_majorants import measure
from .validation import finite_array, finite_float, one_of, positive_float, require

TERMS = ("W_U", "W_2", "W_1")


@dataclass(frozen=True)
class BlockConstants:
    """Lower bounds of lambda_min(J_b J_b^T) at a point. Source: prop-block-grams.

    W_U: sigma_min(H)^2 and W_2: sigma_min(A)^2 sigma_c(W_U)^2, both equalities; W_1: sigma_min(Z)^2 times the least
    sigma_c(diag(phi'(e_i)) Omega)^2 over the rows e_i of E, a lower bound.
    """

    W_U: float
    W_2: float
    W_1: float

    @property
    def total(self) -> float:
        """The sum, a lower bound of lambda_min(J J^T)."""
        return self.W_U + self.W_2 + self.W_1


def block_constants(transformer, parameters, X, *, start=None) -> BlockConstants:
    """What the blocks W_U, W_2 and W_1 of the last layer add to lambda_min(J J^T) at ``parameters``.

    X: (P, n, d). start: what ``measure`` gave there, to save the measuring. ValueError for bad input. Source:
    prop-block-grams.
    """
    at = measure(transformer, parameters, X) if start is None else start
    return BlockConstants(
        W_U=at.sigma_min_H**2,
        W_2=(at.sigma_min_A * at.sigma_c_head) ** 2,
        W_1=(at.sigma_min_Z * at.sigma_c_rows) ** 2,
    )


def alpha_on_ball(start, majorants, radii=None, terms=None) -> float:
    """alpha with J J^T >= alpha I everywhere on the ball; 0 where these terms show nothing. Source: prop-pl-on-ball.

    Parameters
    ----------
    start : what ``measure`` gave at theta_0
    majorants : ``network_majorants(start, radii)``
    radii : the radii of the majorants if not given (array, dict of blocks, or one number)
    terms : which of "W_U", "W_2", "W_1" to add; by default all that are valid: the third needs an activation with a
        bounded second derivative, or ReLU with the margin that ``majorants.margin_holds`` reports

    Raises ValueError for an unknown term, or for "W_1" where it is not valid.
    """
    rho = majorants.radii if radii is None else start.radii_array(radii)
    phi = start.transformer.activation
    # with its margin, ReLU is piecewise linear on the ball: phi' does not change there
    b_phi = 0.0 if phi.name == "relu" and majorants.margin_holds else phi.b_phi
    third = np.isfinite(b_phi)
    if terms is None:
        terms = TERMS if third else TERMS[:2]
    for term in terms:
        one_of(term, TERMS, "terms")
    require(third or "W_1" not in terms, "terms", "W_1 only with a smooth activation or a margin", repr(tuple(terms)))

    def radius(name):
        return float(rho[start.transformer.blocks.index(name)])

    def weyl(sigma_0, T):
        return max(0.0, sigma_0 - float(T.first @ rho))

    W_2 = start.transformer.name("W_2", start.transformer.layers)
    alpha = 0.0
    if "W_U" in terms:
        alpha += weyl(start.sigma_min_H, majorants.H) ** 2
    if "W_2" in terms:
        alpha += (weyl(start.sigma_min_A, majorants.A) * max(0.0, start.sigma_c_head - radius("W_U"))) ** 2
    if "W_1" in terms:
        moved_2, moved_U = radius(W_2), radius("W_U")
        omega_moves = start.weight("W_U") * moved_2 + (start.weight(W_2) + moved_2) * moved_U
        slopes_move = b_phi * float(majorants.E.first @ rho) * start.omega_norm
        rows = max(0.0, start.sigma_c_rows - phi.l_phi * omega_moves - slopes_move)
        alpha += (weyl(start.sigma_min_Z, majorants.Z) * rows) ** 2
    return alpha


def features_lower_bound(Z, W_1, W_2, beta_ffn, activation) -> float:
    """beta_F sigma_min(Z) - sup||phi(Z W_1)|| ||W_2||, a lower bound of sigma_min(H) (it may be negative).

    Z: (N, d), W_1: (d, m), W_2: (m, d). phi(Z W_1) is bounded by |phi(0)| sqrt(N m) + l_phi ||Z W_1||_F: the
    Frobenius norm, because phi does not contract spectral norms. Source: lem-features-lower-bound.
    """
    Z = finite_array(Z, "Z", ("N", "d"))
    W_1 = finite_array(W_1, "W_1", (Z.shape[-1], "m"))
    W_2 = finite_array(W_2, "W_2", (W_1.shape[-1], Z.shape[-1]))
    beta = finite_float(beta_ffn, "beta_ffn", low=0.0)
    branch = abs(activation.at_zero) * (Z.shape[0] * W_1.shape[-1]) ** 0.5
    branch += activation.l_phi * float(np.linalg.norm(Z @ W_1))
    return float(beta * sigma_min(Z) - branch * sigma_max(W_2))


@dataclass(frozen=True)
class ProjectedPL:
    """||grad Phi||^2 >= 2 constant (Phi - floor), whatever the rank of H != 0. Source: prop-pl-projected.

    constant: s_+(H)^2, the least nonzero singular value squared. floor: 1/2 ||(I - Pi_H) Y||_F^2, the least loss
    that the head alone can reach. rank: that of H. largest: ||H||^2.
    """

    constant: float
    floor: float
    rank: int
    largest: float

    def head_only_factor(self, step) -> float:
        """The factor of Phi - floor per step when only W_U is trained. Source: prop-head-only.

        Below 1 exactly for 0 < step < 2 / ||H||^2; ValueError unless step > 0.
        """
        step = positive_float(step, "step")
        return max(abs(1.0 - step * self.constant), abs(1.0 - step * self.largest)) ** 2


def projected_pl(H, Y, *, rtol=None) -> ProjectedPL:
    """The PL inequality modulo the projection onto col(H). H: (N, d), not zero; Y: (N, c).

    rtol: singular values up to rtol ||H|| count as zero (default max(N, d) eps). ValueError for H = 0.
    """
    H = finite_array(H, "H", ("N", "d"))
    Y = finite_array(Y, "Y", (H.shape[0], "c"))
    values = singular_values(H)
    require(values[0] > 0, "H", "a nonzero matrix", "a zero matrix")
    rtol = max(H.shape) * np.finfo(float).eps if rtol is None else finite_float(rtol, "rtol", low=0.0, high=1.0)
    rank = int(np.sum(values > rtol * values[0]))
    basis = np.linalg.svd(H, full_matrices=False)[0][:, :rank]
    outside = Y - basis @ (basis.T @ Y)
    return ProjectedPL(float(values[rank - 1] ** 2), float(0.5 * np.sum(outside**2)), rank, float(values[0] ** 2))
