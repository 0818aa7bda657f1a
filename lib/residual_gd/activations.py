"""Activations with the constants that the theory needs (chapter 1).

For each phi: its value, its derivative, ``l_phi`` = sup |phi'|, ``b_phi`` = sup |phi''| (infinite for ReLU, which is
only Lipschitz) and phi(0).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import scipy.special
from array_api_compat import array_namespace, is_torch_array

from .validation import one_of, positive_float


@dataclass(frozen=True)
class Activation:
    """An activation phi, applied entry by entry.

    ``value``, ``derivative`` and ``second_derivative`` map an array to an array of the same shape;
    ``second_derivative`` is None where phi is not twice differentiable.
    """

    name: str
    value: Callable
    derivative: Callable
    second_derivative: Callable | None
    l_phi: float
    b_phi: float
    at_zero: float

    @property
    def smooth(self) -> bool:
        """True if phi has a bounded second derivative (the class S of the rate theorems in smooth form)."""
        return math.isfinite(self.b_phi)

    def __call__(self, x):
        return self.value(x)

    def __repr__(self):
        return f"Activation({self.name!r})"


def normal_cdf(x):
    """Psi(x), the standard normal distribution function (the one special function that the array API lacks)."""
    if is_torch_array(x):
        import torch

        return 0.5 * torch.special.erfc(-x / math.sqrt(2.0))
    return scipy.special.ndtr(x)


def normal_density(x):
    """Derivative of Psi."""
    return array_namespace(x).exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _gelu():
    root = math.sqrt(2.0)
    return Activation(
        name="gelu",
        value=lambda x: x * normal_cdf(x),
        derivative=lambda x: normal_cdf(x) + x * normal_density(x),
        second_derivative=lambda x: (2.0 - x * x) * normal_density(x),
        # phi'' = (2 - x^2) density vanishes at sqrt(2), where phi' is largest; |phi''| is largest at 0
        l_phi=float(scipy.special.ndtr(root) + root * math.exp(-1.0) / math.sqrt(2.0 * math.pi)),
        b_phi=2.0 / math.sqrt(2.0 * math.pi),
        at_zero=0.0,
    )


def _tanh():
    def slope(x):
        return 1.0 - array_namespace(x).tanh(x) ** 2

    return Activation(
        name="tanh",
        value=lambda x: array_namespace(x).tanh(x),
        derivative=slope,
        second_derivative=lambda x: -2.0 * array_namespace(x).tanh(x) * slope(x),
        l_phi=1.0,
        b_phi=4.0 / (3.0 * math.sqrt(3.0)),
        at_zero=0.0,
    )


def _sigmoid(x):
    return 0.5 * (1.0 + array_namespace(x).tanh(0.5 * x))


def _softplus():
    def value(x):
        xp = array_namespace(x)
        return xp.where(x > 0, x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x)))

    return Activation(
        name="softplus",
        value=value,
        derivative=_sigmoid,
        second_derivative=lambda x: _sigmoid(x) * (1.0 - _sigmoid(x)),
        l_phi=1.0,
        b_phi=0.25,
        at_zero=math.log(2.0),
    )


def smooth_relu(epsilon=1.0):
    """phi(x) = (x + sqrt(x^2 + epsilon^2) - epsilon) / 2, a smooth ReLU with phi(0) = 0 (``epsilon`` > 0)."""
    epsilon = positive_float(epsilon, "epsilon")

    def root(x):
        return array_namespace(x).sqrt(x * x + epsilon**2)

    return Activation(
        name=f"smooth_relu({epsilon:g})",
        value=lambda x: 0.5 * (x + root(x) - epsilon),
        derivative=lambda x: 0.5 * (1.0 + x / root(x)),
        second_derivative=lambda x: 0.5 * epsilon**2 / root(x) ** 3,
        l_phi=1.0,
        b_phi=0.5 / epsilon,
        at_zero=0.0,
    )


def _relu():
    def value(x):
        xp = array_namespace(x)
        return xp.where(x > 0, x, xp.zeros_like(x))

    def derivative(x):
        xp = array_namespace(x)
        return xp.where(x > 0, xp.ones_like(x), xp.zeros_like(x))

    return Activation("relu", value, derivative, None, l_phi=1.0, b_phi=math.inf, at_zero=0.0)


ACTIVATIONS = {"gelu": _gelu(), "tanh": _tanh(), "softplus": _softplus(), "smooth_relu": smooth_relu(), "relu": _relu()}


def activation(phi) -> Activation:
    """The activation of this name (gelu, tanh, softplus, smooth_relu, relu); an ``Activation`` is returned as it is.

    Raises ValueError for an unknown name.
    """
    if isinstance(phi, Activation):
        return phi
    return ACTIVATIONS[one_of(phi, ACTIVATIONS, "activation")]
