"""Statements of chapter 2: the calculus, the Jacobian and the gradient."""

import math

import numpy as np
from scipy.linalg import block_diag

from ..gram import gram
from ..jacobian import jacobian_blocks, jvp, sample_entries, softmax_jacobian
from ..matrices import commutation_matrix, vec
from ..parameters import as_torch, initialize
from ..samples import half_square, stack, stack_attention
from ..transformer import Transformer, forward, forward_unchecked, gradient, loss
from .base import Control, equal, statement
from .instances import SMOOTH, Instance, network


@statement(
    "lem-vec-kronecker",
    kind="lemma",
    title="Products become Kronecker products",
    chapter="vectorization",
    hypotheses=("vec stacks columns", "matrices of fitting sizes"),
)
def vec_kronecker(draw):
    m, n, p, q = (draw.integer(1, 6) for _ in range(4))
    A, X, B = draw.normal(m, n), draw.normal(n, p), draw.normal(p, q)
    C, D = draw.normal(n, draw.integer(1, 4)), draw.normal(q, draw.integer(1, 4))
    T, norm = commutation_matrix, np.linalg.norm

    def same(left, right, what, *factors):
        # a sum that cancels is exact only up to rounding of its terms
        return equal(left, right, what, tolerance=1e-13, scale=math.prod(map(norm, factors)))

    return (
        same(vec(A @ X @ B), np.kron(B.T, A) @ vec(X), "vec(A X B)", A, X, B),
        same(np.kron(A, B) @ np.kron(C, D), np.kron(A @ C, B @ D), "mixed product", A, B, C, D),
        same(T(n, p) @ vec(X), vec(X.T), "T vec(X) = vec(X^T)", X),
        same(T(p, n) @ T(n, p), np.eye(n * p), "T undoes T", np.eye(n * p)),
        same(T(n, p).T, T(p, n), "T^T", np.eye(n * p)),
        same(T(m, p) @ np.kron(B, A), np.kron(A, B) @ T(n, q), "T exchanges the factors", A, B),
    )


@vec_kronecker.control
def _(rng):
    A, X, B = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    rows = np.kron(B.T, A) @ X.ravel()
    error = np.linalg.norm((A @ X @ B).ravel() - rows) / np.linalg.norm(rows)
    return Control("rows stacked instead of columns, same Kronecker product", error, 1e-13, "relative error")


def autograd_blocks(transformer, parameters, X):
    """The blocks of the Jacobian by torch's automatic differentiation, as matrices on the column-major vec."""
    import torch

    W, inputs = as_torch(parameters), as_torch(X)
    jacobians = torch.func.jacrev(lambda W: stack(forward_unchecked(transformer, W, inputs).F))(W)
    found = {}
    for block, J in jacobians.items():
        N, c, rows, columns = J.shape
        found[block] = J.permute(1, 0, 3, 2).reshape(c * N, columns * rows).numpy()
    return found


def printed_blocks(transformer, parameters, X):
    """The six blocks exactly as prop-jacobian-blocks prints them: one layer, one head."""
    W_Q, W_K, W_V, W_1, W_2, W_U = (parameters[b] for b in ("W_Q", "W_K", "W_V", "W_1", "W_2", "W_U"))
    d, d_k, m, c = transformer.d, transformer.d_k, transformer.m, transformer.c
    P, n, _ = X.shape
    at = forward(transformer, parameters, X)
    Z, A, H = stack(at.Z), stack(at.A), stack(at.H)
    I, Omega = np.eye, W_2 @ W_U
    slopes = np.diag(vec(stack(transformer.activation.derivative(at.E))))
    D_E = np.kron(Omega.T, I(P * n)) @ slopes
    D_Z = D_E @ np.kron(W_1.T, I(P * n)) + transformer.beta_ffn * np.kron(W_U.T, I(P * n))
    J_Q = J_K = 0.0
    for p in range(P):
        T = commutation_matrix(n, n)
        B = np.kron((X[p] @ W_V).T, I(n)) @ T @ block_diag(*softmax_jacobian(at.S[p])) @ T / math.sqrt(d_k)
        D_p = D_Z[:, sample_entries(P, n, d, p)]
        J_Q = J_Q + D_p @ B @ np.kron(X[p] @ W_K, X[p])
        J_K = J_K + D_p @ B @ np.kron(X[p], X[p] @ W_Q) @ commutation_matrix(d, d_k)
    return {
        "W_Q": J_Q,
        "W_K": J_K,
        "W_V": D_Z @ np.kron(I(d), stack_attention(at.S) @ stack(X)),
        "W_1": D_E @ np.kron(I(m), Z),
        "W_2": np.kron(W_U.T, A),
        "W_U": np.kron(I(c), H),
    }


def _blockwise(found, exact, what, tolerance):
    """``equal`` block by block; a block below a thousandth of the whole is compared on that scale."""
    whole = math.sqrt(sum(np.linalg.norm(B) ** 2 for B in exact.values()))
    return [
        equal(found[b], exact[b], f"{what} {b}", tolerance=tolerance, scale=max(np.linalg.norm(exact[b]), 1e-3 * whole))
        for b in exact
    ]


@statement(
    "prop-jacobian-blocks",
    kind="proposition",
    title="The blocks of the Jacobian",
    chapter="vectorization",
    hypotheses=("phi differentiable at every entry of E",),
)
def blocks_of_jacobian(draw):
    transformer, parameters, X, _ = network(draw, deep=True, activations=(*SMOOTH, "relu")).parts
    blocks = jacobian_blocks(transformer, parameters, X)
    found = _blockwise(blocks, autograd_blocks(transformer, parameters, X), "autograd", 1e-9)
    if transformer.layers == transformer.heads == 1:
        found += _blockwise(printed_blocks(transformer, parameters, X), blocks, "as printed", 1e-10)
    J = np.concatenate([blocks[b] for b in transformer.blocks], axis=1)
    found.append(equal(gram(transformer, parameters, X), J @ J.T, "Gram matrix by blocks", tolerance=1e-10))
    return found


def _at_the_kink(rng):
    """A ReLU network with E = 0, where phi is not differentiable, and a direction that moves W_1 alone."""
    transformer = Transformer(d=3, d_k=2, m=4, c=2, activation="relu")
    parameters = initialize(transformer, rng) | {"W_1": np.zeros((3, 4))}
    direction = {b: np.zeros_like(W) for b, W in parameters.items()} | {"W_1": rng.standard_normal((3, 4))}
    return Instance(transformer, parameters, rng.standard_normal((2, 3, 3)), rng.standard_normal((2, 3, 2))), direction


def _moved(parameters, direction, t):
    return {b: W + t * direction[b] for b, W in parameters.items()}


@blocks_of_jacobian.control
def _(rng):
    at, direction = _at_the_kink(rng)
    transformer, parameters, X, _ = at.parts
    t = 1e-7
    ahead, here = (forward(transformer, _moved(parameters, direction, s), X).F for s in (t, 0.0))
    slope = (ahead - here) / t
    error = np.linalg.norm(slope - jvp(transformer, parameters, X, direction)) / np.linalg.norm(slope)
    return Control("ReLU at E = 0, where it has no derivative", error, 1e-6, "relative error of J v against (F' - F)/t")


@statement(
    "prop-gradient",
    kind="proposition",
    title="The gradient",
    chapter="vectorization",
    hypotheses=("phi differentiable at every entry of E",),
)
def gradient_blocks(draw):
    import torch

    transformer, parameters, X, Y = network(draw, deep=True, activations=(*SMOOTH, "relu")).parts
    found = gradient(transformer, parameters, X, Y)
    r = vec(stack(forward(transformer, parameters, X).F - Y))
    shapes = transformer.shapes
    products = {
        b: (J.T @ r).reshape(shapes[b], order="F") for b, J in jacobian_blocks(transformer, parameters, X).items()
    }
    inputs, targets = as_torch(X), as_torch(Y)
    automatic = torch.func.grad(lambda W: half_square(forward_unchecked(transformer, W, inputs).F - targets))
    by_torch = {b: G.numpy() for b, G in automatic(as_torch(parameters)).items()}
    return _blockwise(found, products, "J^T r", 1e-10) + _blockwise(found, by_torch, "autograd", 1e-10)


@gradient_blocks.control
def _(rng):
    at, direction = _at_the_kink(rng)
    transformer, parameters, X, Y = at.parts
    t = 1e-7
    here, *sides = (loss(transformer, _moved(parameters, direction, s), X, Y) for s in (0.0, t, -t))
    slopes = [(side - here) / t for side in sides]
    size = abs(slopes[0]) + abs(slopes[1])
    # a gradient g gives the slopes <g, V> and -<g, V>
    return Control("ReLU at E = 0", abs(sum(slopes)) / size, 1e-5, "slopes along V and -V do not cancel: relative sum")
