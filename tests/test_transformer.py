"""The forward pass against a loop over tokens, the gradient and the Jacobian products against autograd."""

import math

import numpy as np
import pytest
import torch
from networks import ACTIVATIONS, distance, instance

from residual_gd.jacobian import jvp, lambda_max, vjp
from residual_gd.parameters import as_torch, initialize, pick_run, stack_runs
from residual_gd.samples import half_square, stack, stack_attention, unstack
from residual_gd.transformer import Transformer, forward, forward_unchecked, gradient, loss

GRID = pytest.mark.parametrize(
    "options",
    [
        {"activation": phi, "layers": L, "heads": H, "beta": beta}
        for phi in ACTIVATIONS
        for L in (1, 3)
        for H in (1, 2)
        for beta in (0.0, 0.3, 1.0)
    ],
    ids=lambda o: "-".join(str(v) for v in o.values()),
)


def by_tokens(transformer, parameters, X):
    """F of one sample X (n, d), token by token, in plain loops."""
    T = [list(row) for row in X]
    for layer in range(1, transformer.layers + 1):
        Z = [transformer.beta_attention * np.array(t) for t in T]
        for head in range(1, transformer.heads + 1):
            W_Q, W_K, W_V = (parameters[transformer.name(b, layer, head)] for b in ("W_Q", "W_K", "W_V"))
            for i, t in enumerate(T):
                weights = [math.exp((t @ W_Q) @ (u @ W_K) / math.sqrt(transformer.d_k)) for u in np.array(T)]
                for weight, u in zip(weights, T, strict=True):
                    Z[i] = Z[i] + weight / sum(weights) * (np.array(u) @ W_V)
        W_1, W_2 = (parameters[transformer.name(b, layer)] for b in ("W_1", "W_2"))
        T = [transformer.activation(z @ W_1) @ W_2 + transformer.beta_ffn * z for z in Z]
    return np.array([t @ parameters["W_U"] for t in T])


@GRID
def test_forward_equals_loop_over_tokens(options):
    transformer, parameters, X, _ = instance(**options)
    F = forward(transformer, parameters, X).F
    loop = np.stack([by_tokens(transformer, parameters, x) for x in X])
    assert np.abs(F - loop).max() <= 1e-12 * np.abs(loop).max()


@GRID
def test_gradient_equals_autograd(options):
    transformer, parameters, X, Y = instance(**options)
    tensors = {b: W.requires_grad_() for b, W in as_torch(parameters).items()}
    half_square(forward_unchecked(transformer, tensors, torch.tensor(X)).F - torch.tensor(Y)).backward()
    assert distance(gradient(transformer, parameters, X, Y), {b: W.grad.numpy() for b, W in tensors.items()}) <= 1e-10


@GRID
def test_jacobian_products_equal_autograd(options):
    transformer, parameters, X, Y = instance(**options)
    rng = np.random.default_rng(1)
    v = {b: rng.standard_normal(W.shape) for b, W in parameters.items()}

    def F(tensors):
        return forward_unchecked(transformer, tensors, torch.tensor(X)).F

    _, moved = torch.func.jvp(F, (as_torch(parameters),), (as_torch(v),))
    assert np.linalg.norm(jvp(transformer, parameters, X, v) - moved.numpy()) <= 1e-10 * np.linalg.norm(moved)
    _, pull = torch.func.vjp(F, as_torch(parameters))
    adjoint = {b: W.numpy() for b, W in pull(torch.tensor(Y))[0].items()}
    assert distance(vjp(transformer, parameters, X, Y), adjoint) <= 1e-10


@pytest.mark.parametrize("options", [{}, {"layers": 2, "heads": 2}])
def test_lambda_max_is_the_largest_eigenvalue(options):
    transformer, parameters, X, _ = instance(**options)

    def F(tensors):
        return forward_unchecked(transformer, tensors, torch.tensor(X)).F

    blocks = torch.func.jacrev(F)(as_torch(parameters))
    J = torch.cat([b.reshape(X.shape[0] * X.shape[1] * transformer.c, -1) for b in blocks.values()], dim=1).numpy()
    found = lambda_max(transformer, parameters, X, np.random.default_rng(3), tolerance=1e-10)
    assert found == pytest.approx(np.linalg.norm(J, 2) ** 2, rel=1e-6)


def test_lambda_max_says_when_the_network_cannot_move():
    transformer, parameters, X, _ = instance(beta=0)
    still = {b: 0.0 * W for b, W in parameters.items()}
    with pytest.raises(ArithmeticError, match="does not move"):
        lambda_max(transformer, still, X, np.random.default_rng(0))
    with pytest.raises(ArithmeticError, match="not settled"):
        lambda_max(transformer, parameters, X, np.random.default_rng(0), tolerance=1e-15, max_iterations=2)


def test_each_skip_matters():
    transformer, parameters, X, _ = instance()
    both = forward(transformer, parameters, X).F
    for name in ("beta_attention", "beta_ffn"):
        assert np.abs(forward(transformer.with_beta(**{name: 0.5}), parameters, X).F - both).max() > 0.01


def test_one_layer_matrices():
    transformer, parameters, X, _ = instance(beta_attention=0.5, beta_ffn=0.25)
    f = forward(transformer, parameters, X)
    Z = stack_attention(f.S) @ stack(X) @ parameters["W_V"] + 0.5 * stack(X)
    assert np.allclose(stack(f.Z), Z)
    assert np.allclose(stack(f.E), Z @ parameters["W_1"])
    assert np.allclose(f.A, transformer.activation(f.E))
    assert np.allclose(stack(f.H), stack(f.A) @ parameters["W_2"] + 0.25 * Z)
    assert np.allclose(f.S.sum(axis=-1), 1)
    assert np.array_equal(unstack(stack(X), X.shape[0]), X)
    with pytest.raises(ValueError, match=r"^S: expected one head \(else use layers\[l\].S\[h\]\), got 2 heads"):
        _ = forward(*instance(heads=2)[:3]).S


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_torch_runs_the_same_lines(dtype, tolerance):
    transformer, parameters, X, Y = instance(layers=2, heads=2, beta=[0.3])
    batch, X_t, Y_t = as_torch(stack_runs([parameters]), dtype), as_torch(X, dtype), as_torch(Y, dtype)
    found = gradient(transformer, batch, X_t, Y_t)
    assert all(W.dtype == dtype for W in found.values())
    assert loss(transformer, batch, X_t, Y_t).dtype == dtype
    alone = gradient(transformer.with_beta(0.3), parameters, X, Y)
    assert distance({b: W[0].double().numpy() for b, W in found.items()}, alone) <= tolerance


def test_axis_of_runs():
    betas = (0.0, 0.4, 1.0)
    transformer, _, X, Y = instance(beta=betas, heads=2)
    runs = [initialize(transformer, np.random.default_rng(seed)) for seed in range(3)]
    batch = stack_runs(runs)
    together = gradient(transformer, batch, X, Y)
    for r, beta in enumerate(betas):
        single = transformer.with_beta(beta)
        assert loss(transformer, batch, X, Y)[r] == pytest.approx(loss(single, runs[r], X, Y), rel=1e-13)
        assert distance(pick_run(together, r), gradient(single, runs[r], X, Y)) <= 1e-13


def test_initializations():
    transformer = instance(layers=2)[0]
    draw = np.random.default_rng
    zero_head = initialize(transformer, draw(0), "zero-head")
    assert not zero_head["W_U"].any() and zero_head["W_V.1.1"].any()
    plain = initialize(transformer, draw(0))
    frozen = initialize(transformer, draw(0), "experiment", sigma_Q=0)
    assert not frozen["W_Q.2.1"].any() and not frozen["W_K.1.1"].any()
    assert np.array_equal(frozen["W_1.2"], plain["W_1.2"])
    wide = Transformer(d=400, d_k=4, m=300, c=1)
    assert initialize(wide, draw(0), W_2=0.5)["W_2"].std() == pytest.approx(0.5 / 300**0.5, rel=0.02)


rng = np.random.default_rng(0)
T, W, X, Y = instance()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Transformer(d=0, d_k=1, m=1, c=1), "d: expected an integer >= 1, got 0"),
        (lambda: Transformer(d=2, d_k=1, m=1, c=1, beta=-0.1), "beta_attention: expected a finite number >= 0"),
        (lambda: Transformer(d=2, d_k=1, m=1, c=1, beta=[0.1, -1]), "beta_attention: expected a finite number >= 0"),
        (lambda: Transformer(d=2, d_k=1, m=1, c=1, beta=float("nan")), "beta_attention: expected"),
        (lambda: Transformer(d=2, d_k=1, m=1, c=1, beta="x"), "beta_attention: expected an array of numbers, got str"),
        (lambda: Transformer(d=2, d_k=1, m=1, c=1, beta=1, beta_ffn=0), "beta_ffn: expected nothing beside beta"),
        (lambda: Transformer(d=2, d_k=1, m=1, c=1, activation="swish"), "activation: expected one of"),
        (lambda: forward(None, W, X), "transformer: expected a Transformer, got NoneType"),
        (lambda: forward(T, list(W), X), "parameters: expected a dict of matrices, got list"),
        (lambda: forward(T, W, X[..., :3]), r"X: expected shape \(..., P, n, 5\), got \(3, 4, 3\)"),
        (lambda: forward(T, W, X[0]), r"X: expected shape \(..., P, n, 5\), got \(4, 5\)"),
        (lambda: forward(T, W, X[:0]), "X: expected at least one sample and one token"),
        (lambda: forward(T, W, X * np.nan), "X: expected finite values, got 60 NaN or infinite of 60"),
        (lambda: loss(T, W, X, Y[:, :3]), r"Y: expected shape \(..., 3, 4, 2\), got \(3, 3, 2\)"),
        (lambda: loss(T, {b: W[b] for b in W if b != "W_K"}, X, Y), "parameters: expected the blocks .* got no W_K"),
        (lambda: loss(T, W | {"W_3": X[0]}, X, Y), "parameters: expected the blocks .* got also W_3"),
        (lambda: loss(T, W | {"W_1": W["W_2"]}, X, Y), r"W_1: expected shape \(..., 5, 7\), got \(7, 5\)"),
        (lambda: loss(T, W, np.stack([X] * 2), np.stack([Y] * 3)), "Y: expected 2 runs as in X, got 3 runs"),
        (lambda: jvp(T, W, X, {}), "direction: expected the blocks of the parameters, got no W_Q"),
        (lambda: vjp(T, W, X, X), "r: expected shape"),
        (lambda: jvp(T, W, X, W | {"W_3": X[0]}), "direction: expected the blocks of the parameters, got also W_3"),
        (lambda: forward(T, W | {"W_1": W["W_1"].tolist()}, X), "W_1: expected an array, got list"),
        (lambda: T.with_beta(beta_attention=[1, 2], beta_ffn=[1, 2, 3]), "beta_ffn: expected as many runs"),
        (lambda: initialize(T, 3), "rng: expected a numpy random Generator, got int"),
        (lambda: lambda_max(T, W, X, None), "rng: expected a numpy random Generator, got NoneType"),
        (lambda: stack_runs(W), "runs: expected a sequence of dicts, got one dict"),
        (lambda: stack_runs([W, 2]), r"runs\[1\]: expected a dict of matrices, got int"),
        (lambda: stack_runs([W, W | {"W_1": W["W_2"]}]), r"runs\[1\]\[W_1\]: expected shape \(5, 7\), got \(7, 5\)"),
        (lambda: pick_run(W, 0), "W_Q: expected a batch of runs, got 2 axes"),
        (lambda: pick_run(stack_runs([W, W]), 2), "run: expected one of 2 runs, got 2"),
        (lambda: initialize(T, rng, "other"), "scheme: expected one of gaussian, zero-head, experiment, got 'other'"),
        (lambda: initialize(T, rng, W_9=1), "scales: expected one of"),
        (lambda: initialize(T, rng, W_V=-1), "W_V: expected a finite number >= 0, got -1"),
        (lambda: initialize(T, rng, sigma_Q=1), "sigma_Q: expected scheme"),
        (lambda: stack_runs([]), "runs: expected at least one run, got none"),
        (lambda: unstack(stack(X), 5), "T: expected rows that 5 samples share evenly, got 12 rows"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="^" + message):
        call()
