import numpy as np
import pytest
import torch

from residual_gd.matrices import (
    commutation_matrix,
    condition_number,
    sigma_max,
    sigma_min,
    singular_values,
    stable_rank,
    unvec,
    vec,
)

rng = np.random.default_rng(0)


def test_vec_stacks_columns():
    assert vec(np.array([[1.0, 3.0], [2.0, 4.0]])).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (5, 2, 3)])
def test_unvec_undoes_vec(shape):
    A = rng.standard_normal(shape)
    assert np.array_equal(unvec(vec(A), *shape[-2:]), A)


@pytest.mark.parametrize("m, n", [(1, 1), (2, 3), (4, 2)])
def test_commutation_matrix_transposes(m, n):
    A = rng.standard_normal((m, n))
    assert np.array_equal(commutation_matrix(m, n) @ vec(A), vec(A.T))


def test_extreme_singular_values():
    A = np.diag([3.0, 2.0, 1.0])[:2]
    assert np.allclose([sigma_min(A), sigma_max(A), condition_number(A)], [2, 3, 1.5], rtol=1e-14)
    assert stable_rank(A) == pytest.approx(13 / 9)
    assert sigma_min(A.T) == 0 and condition_number(A.T) == np.inf
    assert condition_number(np.zeros((2, 3))) == np.inf


def test_batches_and_torch_agree_with_single_matrices():
    A = rng.standard_normal((4, 3, 5))
    for function in (sigma_min, sigma_max, condition_number, stable_rank, singular_values):
        batch = function(A)
        assert np.allclose(batch, [function(a) for a in A])
        assert np.allclose(function(torch.tensor(A)).numpy(), batch)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: vec(np.zeros(3)), "A"),
        (lambda: vec([[1.0, np.nan]]), "A"),
        (lambda: vec("text"), "A"),
        (lambda: unvec(np.zeros(5), 2, 3), "a"),
        (lambda: unvec(np.zeros(6), 0, 3), "rows"),
        (lambda: commutation_matrix(2.5, 3), "m"),
        (lambda: stable_rank(np.zeros((2, 2))), "A"),
        (lambda: sigma_min(np.array([[np.inf]])), "A"),
        (lambda: sigma_max(np.array([[1j]])), "A"),
        (lambda: sigma_max(np.zeros((0, 3))), "A"),
        (lambda: sigma_min(np.zeros((3, 0))), "A"),
    ],
)
def test_bad_input_names_the_argument(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*, got "):
        call()
