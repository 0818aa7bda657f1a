"""Dense Jacobian blocks and the Gram matrix, against torch's automatic differentiation and against each other."""

import tracemalloc

import numpy as np
import pytest
import torch

from residual_gd.gram import block_grams, gram
from residual_gd.jacobian import features_jacobian, jacobian, jacobian_blocks, jvp, softmax_jacobian
from residual_gd.matrices import vec
from residual_gd.parameters import as_torch, initialize, stack_runs
from residual_gd.samples import softmax, stack, unstack
from residual_gd.statements.base import Draw
from residual_gd.statements.instances import network
from residual_gd.statements.vectorization import autograd_blocks
from residual_gd.transformer import Transformer, forward_unchecked


def instance(seed):
    """A network of random shape; every fourth has two layers, every other two heads."""
    layers, heads = 1 + (seed % 4 == 3), 1 + seed % 2
    activations = ("gelu", "tanh", "softplus", "relu")
    return network(Draw(np.random.default_rng(seed)), layers=layers, heads=heads, activations=activations)


def relative(left, right):
    scale = np.linalg.norm(right)
    return np.linalg.norm(left - right) / scale if scale > 0 else np.linalg.norm(left)


@pytest.mark.parametrize("seed", range(50))
def test_blocks_equal_autograd_and_gram_equals_product(seed):
    transformer, parameters, X, _ = instance(seed).parts
    blocks = jacobian_blocks(transformer, parameters, X)
    assert tuple(blocks) == transformer.blocks
    scale = max(np.abs(J).max() for J in blocks.values())
    for block, J in autograd_blocks(transformer, parameters, X).items():
        np.testing.assert_allclose(blocks[block], J, rtol=1e-9, atol=1e-9 * scale, err_msg=block)
    J = jacobian(transformer, parameters, X)
    assert J.shape == (X.shape[0] * X.shape[1] * transformer.c, transformer.parameter_count)
    K = gram(transformer, parameters, X)
    assert relative(K, J @ J.T) <= 1e-10
    for block, K_b in block_grams(transformer, parameters, X).items():
        assert np.linalg.norm(K_b - blocks[block] @ blocks[block].T) <= 1e-10 * np.linalg.norm(K), block


@pytest.mark.parametrize("seed", range(6))
def test_dense_jacobian_applied_to_a_vector_is_the_jvp(seed):
    transformer, parameters, X, _ = instance(seed).parts
    direction = initialize(transformer, np.random.default_rng(100 + seed))
    moved = stack(jvp(transformer, parameters, X, direction))
    stacked = np.concatenate([vec(direction[block]) for block in transformer.blocks])
    assert relative(jacobian(transformer, parameters, X) @ stacked, vec(moved)) <= 1e-12


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_gram_does_not_depend_on_the_chunk(chunk):
    transformer, parameters, X, _ = instance(7).parts
    assert relative(gram(transformer, parameters, X, chunk=chunk), gram(transformer, parameters, X)) <= 1e-13


def test_gram_of_some_blocks_is_the_sum_of_theirs():
    transformer, parameters, X, _ = instance(5).parts
    each = block_grams(transformer, parameters, X)
    some = transformer.blocks[1], transformer.blocks[-1]
    assert relative(gram(transformer, parameters, X, some), each[some[0]] + each[some[1]]) <= 1e-14
    assert relative(gram(transformer, parameters, X, "W_U"), each["W_U"]) <= 1e-14
    assert tuple(block_grams(transformer, parameters, X, some)) == some


def test_gram_on_torch_equals_numpy():
    transformer, parameters, X, _ = instance(3).parts
    K = gram(transformer, as_torch(parameters), as_torch(X))
    assert relative(K.numpy(), gram(transformer, parameters, X)) <= 1e-13
    single = gram(transformer, as_torch(parameters, torch.float32), as_torch(X, torch.float32))
    assert single.dtype == torch.float32


def test_features_jacobian_is_the_derivative_by_Z():
    transformer, parameters, X, _ = instance(4).parts
    parameters = {block: W if block in ("W_1", "W_2", "W_U") else 0.0 * W for block, W in parameters.items()}
    once = transformer.with_beta(beta_attention=1.0, beta_ffn=transformer.beta_ffn)

    def of_Z(Z):  # with W_V = 0 the attention layer hands its input on, so that Z = X
        return stack(forward_unchecked(once, as_torch(parameters), unstack(Z, X.shape[0])).F)

    J = torch.func.jacrev(of_Z)(stack(as_torch(X)))
    N, c, _, d = J.shape
    J = J.permute(1, 0, 3, 2).reshape(c * N, d * N).numpy()
    assert relative(features_jacobian(once, parameters, X), J) <= 1e-12


def test_softmax_jacobian_is_the_derivative():
    g = np.random.default_rng(0).standard_normal((2, 4))
    J = torch.stack([torch.func.jacrev(softmax)(row) for row in as_torch(g)])
    assert relative(softmax_jacobian(softmax(g)), J.numpy()) <= 1e-14


def test_gram_needs_no_array_of_the_size_of_a_block():
    """Wide matrices and few outputs: the largest array is far below the Nc x D numbers of J."""
    transformer = Transformer(d=128, d_k=128, m=512, c=2)
    parameters = initialize(transformer, np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((4, 2, 128))
    tracemalloc.start()
    gram(transformer, parameters, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * 8 * (8 * 2) * transformer.parameter_count


@pytest.mark.parametrize("function", [gram, block_grams, jacobian_blocks])
def test_an_axis_of_runs_is_refused(function):
    transformer, parameters, X, _ = instance(0).parts
    with pytest.raises(ValueError, match="axis of runs"):
        function(transformer, stack_runs([parameters, parameters]), X)
    with pytest.raises(ValueError, match="axis of runs"):
        function(transformer, parameters, X[None])
    with pytest.raises(ValueError, match="axis of runs"):
        function(transformer.with_beta([0.0, 1.0]), parameters, X)


def test_bad_arguments_are_named():
    transformer, parameters, X, _ = instance(0).parts
    with pytest.raises(ValueError, match="blocks: expected one of"):
        gram(transformer, parameters, X, ["W_X"])
    with pytest.raises(ValueError, match="blocks: expected names of blocks, got 5"):
        gram(transformer, parameters, X, 5)
    with pytest.raises(ValueError, match="chunk: expected an integer >= 1"):
        gram(transformer, parameters, X, chunk=0)
    with pytest.raises(ValueError, match="W_U"):
        jacobian_blocks(transformer, {b: W for b, W in parameters.items() if b != "W_U"}, X)
    with pytest.raises(ValueError, match="X: expected finite values"):
        gram(transformer, parameters, X * np.nan)
