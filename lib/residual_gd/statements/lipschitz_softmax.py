"""Statements of chapter 3 on the softmax and on elementwise maps."""

import math

import numpy as np

from ..activations import ACTIVATIONS, activation
from ..jacobian import softmax_jacobian
from ..majorants import C_2, softmax_constants
from ..samples import softmax
from .base import Control, at_most, equal, statement
from .instances import climb


def softmax_second_derivative(s, u, v):
    """D^2 softmax[u, v] at weights s (n,): entry j is s_j ((u_j - Eu)(v_j - Ev) - Cov(u, v)), moments under s."""
    products = (u - s @ u) * (v - s @ v)
    return s * (products - s @ products)


def _jacobian_bounds(g):
    s = softmax(g)
    norm = np.linalg.norm(softmax_jacobian(s), 2)
    return at_most(norm, 0.5, "1/2"), at_most(norm, s.max(), "largest weight")


@statement(
    "lem-softmax-jacobian",
    kind="lemma",
    title="Softmax Jacobian",
    chapter="lipschitz",
    hypotheses=("n >= 2 weights that sum to one",),
    sharp=True,
)
def softmax_jacobian_bound(draw):
    g = draw.scale(0.1, 10.0) * draw.normal(draw.integer(2, 12))
    slopes = (softmax(g + 1e-6 * np.eye(len(g))) - softmax(g - 1e-6 * np.eye(len(g)))) / 2e-6
    return *_jacobian_bounds(g), equal(softmax_jacobian(softmax(g)), slopes, "the formula", tolerance=1e-6, scale=1.0)


@softmax_jacobian_bound.ascent
def _(rng):
    start = rng.standard_normal(int(rng.integers(2, 13)))
    g, _ = climb(lambda g: _jacobian_bounds(g)[0].ratio, start, rng, steps=600)
    return _jacobian_bounds(g)[0]


@softmax_jacobian_bound.control
def _(rng):
    g = np.array([3.0, 0.0])
    measured = np.linalg.norm(np.diag(np.exp(g)), 2)
    return Control("no normalization, g = (3, 0)", measured, 0.5, "norm")


def _second_derivative_bounds(g, u, v):
    s = softmax(g)
    measured = np.linalg.norm(softmax_second_derivative(s, u, v)) / (np.linalg.norm(u) * np.linalg.norm(v))
    gamma, c_2 = softmax_constants(s.max())
    return (
        at_most(measured, C_2, "sqrt(6)/9"),
        at_most(measured, c_2, "sharp constant with the largest weight"),
        at_most(measured, math.sqrt(2.0) * gamma, "simple constant"),
    )


@statement(
    "lem-softmax-second-derivative",
    kind="lemma",
    title="Second derivative of the softmax",
    chapter="lipschitz",
    hypotheses=("n >= 2 weights that sum to one", "s = softmax(g) of the logits themselves: temperature 1"),
    sharp=True,
)
def softmax_second_derivative_bound(draw):
    n = draw.integer(2, 8)
    g, u, v = draw.scale(0.1, 10.0) * draw.normal(n), draw.normal(n), draw.normal(n)
    slope = (softmax_jacobian(softmax(g + 1e-5 * v)) - softmax_jacobian(softmax(g - 1e-5 * v))) @ u / 2e-5
    formula = softmax_second_derivative(softmax(g), u, v)
    scale = np.linalg.norm(u) * np.linalg.norm(v)
    return *_second_derivative_bounds(g, u, v), equal(formula, slope, "the formula", tolerance=1e-6, scale=scale)


@softmax_second_derivative_bound.ascent
def _(rng):
    n = int(rng.integers(2, 6))

    def bounds(z):
        return _second_derivative_bounds(*np.split(z, 3))

    z, _ = climb(lambda z: bounds(z)[0].ratio, rng.standard_normal(3 * n), rng, steps=1500)
    return bounds(z)[0]


@softmax_second_derivative_bound.control
def _(rng):
    u, s = np.array([1.0, -1.0]) / math.sqrt(2.0), (1.0 - 1.0 / math.sqrt(3.0)) / 2.0
    # softmax(2g) has the weights (s, 1 - s) somewhere; the chain rule brings the factor 2 twice
    measured = 4.0 * np.linalg.norm(softmax_second_derivative(np.array([s, 1.0 - s]), u, u))
    return Control("temperature 1/2, the softmax of 2g", measured, C_2, "norm")


@statement(
    "lem-elementwise",
    kind="lemma",
    title="Elementwise maps",
    chapter="lipschitz",
    hypotheses=("|phi'| <= l_phi, or phi Lipschitz with constant l_phi", "Frobenius norm"),
    sharp=True,
)
def elementwise(draw):
    phi = ACTIVATIONS[draw.choice(tuple(ACTIVATIONS))]
    shape = draw.integer(1, 5), draw.integer(1, 5)
    E, moved = draw.scale(0.1, 5.0) * draw.normal(*shape), draw.scale(1e-3, 5.0) * draw.normal(*shape)
    return _elementwise(phi, E, E + moved)


def _elementwise(phi, E, other):
    return at_most(np.linalg.norm(phi(E) - phi(other)), phi.l_phi * np.linalg.norm(E - other), "Frobenius norm")


@elementwise.ascent
def _(rng):
    phi = activation(str(rng.choice(["gelu", "tanh", "softplus", "smooth_relu", "relu"])))
    start = np.concatenate([rng.standard_normal(4), 0.1 * rng.standard_normal(4)])

    def bound(z):
        E, moved = z.reshape(2, 2, 2)
        return _elementwise(phi, E, E + moved)

    z, _ = climb(lambda z: bound(z).ratio, start, rng, steps=800)
    return bound(z)


@elementwise.control
def _(rng):
    E = np.array([[1.0, -1.0], [1.0, 1.0]])
    phi = activation("relu")
    return Control(
        "spectral norms, ReLU, E = [[1, -1], [1, 1]]",
        np.linalg.norm(phi(E), 2),
        phi.l_phi * np.linalg.norm(E, 2),
        "norm",
    )
