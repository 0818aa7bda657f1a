import math

import numpy as np
import pytest
import torch

from residual_gd.activations import ACTIVATIONS, activation, smooth_relu

x = np.linspace(-60, 60, 240_001)
PHI = [*ACTIVATIONS.values(), smooth_relu(0.1)]
names = [phi.name for phi in PHI]
oracle = {
    "gelu": torch.nn.functional.gelu,
    "tanh": torch.tanh,
    "softplus": torch.nn.functional.softplus,
    "relu": torch.relu,
}


@pytest.mark.parametrize("name", oracle)
def test_value_equals_torch(name):
    at = np.linspace(-15, 15, 3001)  # beyond 20, torch's softplus is replaced by x
    assert np.allclose(ACTIVATIONS[name](at), oracle[name](torch.tensor(at)).numpy(), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("phi", PHI, ids=names)
def test_derivatives_equal_autograd(phi):
    at = torch.linspace(-5, 5, 1001, dtype=torch.float64).add(1e-3).requires_grad_()
    (slope,) = torch.autograd.grad(phi(at).sum(), at, create_graph=True)
    assert torch.allclose(phi.derivative(at), slope, atol=1e-12)
    if phi.smooth:
        (bend,) = torch.autograd.grad(slope.sum(), at)
        assert torch.allclose(phi.second_derivative(at), bend, atol=1e-12)


@pytest.mark.parametrize("phi", PHI, ids=names)
def test_constants_are_the_suprema(phi):
    steepest = np.abs(phi.derivative(x)).max()
    assert 0.999 * phi.l_phi <= steepest <= phi.l_phi * (1 + 1e-12)
    assert phi.at_zero == pytest.approx(float(phi(np.zeros(1))[0]), abs=1e-15)
    if phi.smooth:
        sharpest = np.abs(phi.second_derivative(x)).max()
        assert 0.999 * phi.b_phi <= sharpest <= phi.b_phi * (1 + 1e-12)


def test_stated_constants():
    assert ACTIVATIONS["gelu"].l_phi == pytest.approx(1.128904, abs=5e-7)
    assert ACTIVATIONS["gelu"].b_phi == pytest.approx(0.797885, abs=5e-7)
    assert ACTIVATIONS["tanh"].b_phi == pytest.approx(0.769800, abs=5e-7)
    assert ACTIVATIONS["relu"].b_phi == math.inf and not ACTIVATIONS["relu"].smooth


def test_extreme_arguments_stay_finite():
    for phi in PHI:
        values = np.concatenate([phi(np.array([-1e3, 1e3])), phi.derivative(np.array([-1e3, 1e3]))])
        assert np.isfinite(values).all(), phi


def test_bad_input():
    with pytest.raises(ValueError, match=r"^activation: expected one of gelu, .*, got 'swish'"):
        activation("swish")
    with pytest.raises(ValueError, match=r"^epsilon: expected a finite number > 0, got 0"):
        smooth_relu(0)
