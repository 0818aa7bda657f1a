"""The majorant calculus composed over the network: bounds of Z, E, A, H and F on a ball (chapters 3 and 9).

``measure`` computes every norm at theta_0 once; ``network_majorants`` then costs a few small matrix operations for
each choice of radii. Source: prop-layer-constants for one layer and head; the same composition for L layers.
"""

import math
from dataclasses import dataclass

import numpy as np

from . import majorants as rule
from .majorants import Majorant
from .matrices import sigma_min
from .samples import stack
from .transformer import Transformer, check_inputs, forward_unchecked
from .validation import finite_array, finite_float, require


@dataclass(frozen=True)
class Norms:
    """Spectral norms of a matrix at theta_0: of the stack, and the largest over the samples."""

    stacked: float
    sample: float


@dataclass(frozen=True)
class LayerStart:
    """One layer at theta_0. Tuples have one entry a head.

    S, ST: norms of S_p and of S_p T_p. largest_weight: the largest entry of S. Z, E, A, H: norms. margin: min |E_ij|.
    """

    S: tuple[Norms, ...]
    ST: tuple[Norms, ...]
    largest_weight: tuple[float, ...]
    Z: Norms
    E: Norms
    A: Norms
    H: Norms
    margin: float


@dataclass(frozen=True)
class Start:
    """Everything that the certificates measure at theta_0.

    weights: ||W_b|| for every block, in the order of ``transformer.blocks``. X: norms of the inputs. tokens: n.
    rows: N.
    sigma_min_H, sigma_min_A, sigma_min_Z: N-th singular values of the stacks of the last layer (0 if N exceeds the
    columns). sigma_c_head: c-th singular value of W_U. sigma_c_rows: least over the N rows e_i of E of the c-th
    singular value of diag(phi'(e_i)) Omega, Omega = W_2 W_U of the last layer (both 0 if c exceeds the size).
    omega_norm: ||Omega||.
    """

    transformer: Transformer
    weights: np.ndarray
    X: Norms
    tokens: int
    rows: int
    layers: tuple[LayerStart, ...]
    sigma_min_H: float
    sigma_min_A: float
    sigma_min_Z: float
    sigma_c_head: float
    sigma_c_rows: float
    omega_norm: float

    def weight(self, name) -> float:
        """||W_b|| at theta_0 of the block of this name."""
        return float(self.weights[self.transformer.blocks.index(name)])

    def radii_array(self, radii) -> np.ndarray:
        """Radii (B,) in the order of the blocks, from an array, a dict of all blocks, or one number for all.

        Raises ValueError for missing blocks, wrong length, negative or non-finite radii.
        """
        blocks = self.transformer.blocks
        if isinstance(radii, dict):
            require(set(radii) == set(blocks), "radii", "the blocks " + ", ".join(blocks), ", ".join(map(str, radii)))
            radii = [radii[b] for b in blocks]
        elif np.ndim(radii) == 0:
            radii = np.full(len(blocks), finite_float(radii, "radii", low=0.0))
        radii = finite_array(np.asarray(radii, dtype=float), "radii", (len(blocks),))
        require(bool(np.all(radii >= 0)), "radii", "radii >= 0", f"a radius {radii.min():g}")
        return radii


def measure(transformer, parameters, X) -> Start:
    """Measure at theta_0 = ``parameters`` every norm that anchoring and the PL constants need. X: (P, n, d), one run.

    Raises ValueError for bad input or a batch of runs.
    """
    X, _ = check_inputs(transformer, parameters, X)
    require(
        X.ndim == 3 and transformer.runs is None and all(W.ndim == 2 for W in parameters.values()),
        "parameters",
        "one run (no leading axis)",
        "a batch of runs",
    )
    parameters = {b: np.asarray(parameters[b], dtype=float) for b in transformer.blocks}
    X = np.asarray(X, dtype=float)
    values = forward_unchecked(transformer, parameters, X)
    head, last = parameters["W_U"], values.layers[-1]
    omega = parameters[transformer.name("W_2", transformer.layers)] @ head
    return Start(
        transformer=transformer,
        weights=np.array([_norm(parameters[b]) for b in transformer.blocks]),
        X=_norms(X),
        tokens=X.shape[1],
        rows=X.shape[0] * X.shape[1],
        layers=tuple(_measure_layer(at) for at in values.layers),
        sigma_min_H=float(sigma_min(stack(last.H))),
        sigma_min_A=float(sigma_min(stack(last.A))),
        sigma_min_Z=float(sigma_min(stack(last.Z))),
        sigma_c_head=_last_singular_value(head),
        sigma_c_rows=min(
            _last_singular_value(slopes[:, None] * omega) for slopes in transformer.activation.derivative(stack(last.E))
        ),
        omega_norm=_norm(omega),
    )


def _measure_layer(at):
    return LayerStart(
        S=tuple(_block_norms(S) for S in at.S),
        ST=tuple(_norms(S @ at.T) for S in at.S),
        largest_weight=tuple(float(np.max(S)) for S in at.S),
        Z=_norms(at.Z),
        E=_norms(at.E),
        A=_norms(at.A),
        H=_norms(at.H),
        margin=float(np.min(np.abs(at.E))),
    )


def _norm(A):
    return float(np.linalg.norm(A, 2))


def _norms(T):
    """Norms of samples T (P, n, columns) that are stacked one above the other."""
    return Norms(_norm(stack(T)), float(np.max(np.linalg.norm(T, 2, axis=(-2, -1)))))


def _block_norms(S):
    """Norms of samples S (P, n, n) whose stack is block diagonal."""
    largest = float(np.max(np.linalg.norm(S, 2, axis=(-2, -1))))
    return Norms(largest, largest)


def _last_singular_value(A):
    """The c-th singular value of A (rows, c), 0 if c > rows."""
    return float(sigma_min(A.T))


@dataclass(frozen=True)
class LayerMajorants:
    """Majorants of one layer on the ball; G, S, ST have one entry a head. s_max: bound of S's entries, a head."""

    G: tuple[Majorant, ...]
    s_max: tuple[float, ...]
    S: tuple[Majorant, ...]
    ST: tuple[Majorant, ...]
    Z: Majorant
    E: Majorant
    A: Majorant
    H: Majorant


@dataclass(frozen=True)
class NetworkMajorants:
    """Majorants on Ball(radii), radii (B,) in the order of ``transformer.blocks``.

    Z, E, A, H are those of the last layer, F of the output; ``layers`` holds every layer's. margin_holds: whether
    min |E_ij| at theta_0 exceeds e1 . rho in every layer, so that no pre-activation changes its sign on the ball.
    """

    radii: np.ndarray
    layers: tuple[LayerMajorants, ...]
    F: Majorant
    margin_holds: bool

    @property
    def Z(self):
        return self.layers[-1].Z

    @property
    def E(self):
        return self.layers[-1].E

    @property
    def A(self):
        return self.layers[-1].A

    @property
    def H(self):
        return self.layers[-1].H

    @property
    def h1(self):
        """First-order majorant of H: ||H(theta) - H(theta')||_F <= h1 . Delta."""
        return self.H.first

    @property
    def f1(self):
        """First-order majorant of F: ||J_b|| <= f1_b."""
        return self.F.first

    @property
    def h2(self):
        """Second-order majorant of H; ValueError if there is none."""
        return _second(self.H)

    @property
    def f2(self):
        """Second-order majorant of F; ValueError if there is none."""
        return _second(self.F)

    @property
    def Lambda(self) -> float:
        """||h1||: Lipschitz constant of H in the Euclidean norm."""
        return float(np.linalg.norm(self.h1))

    @property
    def jacobian_norm(self) -> float:
        """||f1||, a bound of ||J||. Source: cor-jacobian-bound."""
        return float(np.linalg.norm(self.f1))

    @property
    def jacobian_lipschitz(self) -> float:
        """lambda_max(f2): Lipschitz constant of J. Source: cor-jacobian-lipschitz."""
        return rule.largest_eigenvalue(self.f2)

    def smoothness(self, residual_norm) -> float:
        """M: bound of ||Hess Phi|| where ||R||_F <= ``residual_norm``. Source: cor-hessian-bound.

        ValueError where the activation has no second derivative.
        """
        residual_norm = finite_float(residual_norm, "residual_norm", low=0.0)
        return rule.largest_eigenvalue(np.outer(self.f1, self.f1) + residual_norm * self.f2)


def _second(T):
    require(T.smooth, "activation", "a bounded second derivative on the ball (a smooth phi, or a margin)", "none")
    return T.second


def network_majorants(start, radii, *, margin=False) -> NetworkMajorants:
    """Majorants of every layer and of F on the ball of these radii (array, dict of blocks, or one number).

    margin: for ReLU only, use that phi'' = 0 where no pre-activation changes its sign (prop-relu-margin); second-order
    parts then exist exactly where ``margin_holds``. Without it they are None for an activation that is only Lipschitz.

    Raises ValueError for bad radii, or for ``margin`` with another activation.
    """
    require(isinstance(start, Start), "start", "what measure() returns", type(start).__name__)
    rho = start.radii_array(radii)
    phi = start.transformer.activation
    require(not margin or phi.name == "relu", "margin", "the activation relu", phi.name)
    layers, margin_holds = [], True
    T = rule.constant(start.X.stacked, start.X.sample, len(rho))
    for number, at in enumerate(start.layers, start=1):
        Z, heads = _attention_layer(start, number, at, T, rho)
        E = _anchored(rule.product(Z, _block(start, rho, "W_1", number)), at.E, rho)
        margin_holds = margin_holds and bool(at.margin > E.first @ rho)
        b_phi = 0.0 if margin and margin_holds else phi.b_phi
        A = _anchored(rule.activate(E, phi.l_phi, b_phi), at.A, rho)
        H = rule.add(rule.product(A, _block(start, rho, "W_2", number)), rule.scale(start.transformer.beta_ffn, Z))
        T = _anchored(H, at.H, rho)
        layers.append(LayerMajorants(*zip(*heads, strict=True), Z, E, A, T))
    F = rule.product(T, _block(start, rho, "W_U"))
    return NetworkMajorants(rho, tuple(layers), F, margin_holds)


def _attention_layer(start, number, at, T, rho):
    """Majorant of Z and, for each head, (G, s_max, S, ST)."""
    Z, heads = rule.scale(start.transformer.beta_attention, T), []
    for h in range(start.transformer.heads):
        W_Q, W_K, W_V = (_block(start, rho, name, number, h + 1) for name in ("W_Q", "W_K", "W_V"))
        W = rule.scale(1.0 / math.sqrt(start.transformer.d_k), rule.product(W_Q, W_K))
        G = rule.logits(T, W)
        s_max = rule.largest_weight(at.largest_weight[h], G, rho)
        S = _anchored(rule.softmax(G, start.tokens, s_max), at.S[h], rho)
        ST = _anchored(rule.attention(S, T), at.ST[h], rho)
        Z = rule.add(Z, rule.product(ST, W_V))
        heads.append((G, s_max, S, ST))
    return _anchored(Z, at.Z, rho), heads


def _block(start, rho, name, layer=1, head=1):
    index = start.transformer.blocks.index(start.transformer.name(name, layer, head))
    return rule.block(index, float(start.weights[index]), float(rho[index]), len(rho))


def _anchored(T, norms, rho):
    return rule.anchor(T, norms.stacked, norms.sample, rho)
