"""Problem set 1: the instances of a student (numbers only; no question is answered here)."""

from dataclasses import replace

import numpy as np

from ..descent import descend
from ..parameters import initialize, stack_runs
from ..transformer import Transformer, forward, gradient, pullback
from .person import generator

# "Write this yourself": the functions of the library that the tests close, in question 2 and in questions 3 and 4.
FORWARD = (
    "residual_gd.transformer.forward",
    "residual_gd.transformer.forward_unchecked",
    "residual_gd.transformer._forward_layer",
    "residual_gd.samples.softmax",
)
BACKWARD = (
    "residual_gd.transformer.gradient",
    "residual_gd.transformer.pullback",
    "residual_gd.transformer.adjoints",
    "residual_gd.jacobian.vjp",
    "residual_gd.jacobian.jacobian_blocks",
    "residual_gd.jacobian.features_jacobian",
    "residual_gd.jacobian._dense",
)


def random_instance(rng, *, P=3, n=4, d=5, d_k=3, m=7, c=2, **options):
    """(net, theta, X, Y) with independent normal entries; ``options`` are those of Transformer."""
    net = Transformer(d=d, d_k=d_k, m=m, c=c, **options)
    theta = initialize(net, rng)
    return net, theta, rng.standard_normal((P, n, d)), rng.standard_normal((P, n, c))


def paper_network(student_id):
    """Question 1: (net, theta, X, Y) with two tokens in width two. Every number of its forward pass is simple.

    No pre-activation is zero, both signs occur and ReLU matters, H has full rank, and neither residual nor head
    gradient vanishes.
    """
    rng = generator(student_id, "ps1/q1")
    while True:
        net, theta, X = _draw_paper_network(rng)
        at = forward(net, theta, X)
        E, H, F = at.E[0], at.H[0], at.F
        R = rng.choice([-2.0, -1.0, 1.0, 2.0], size=(1, 2, 1))
        signs = np.sign(np.round(E, 9))
        mixed = np.all(signs != 0) and np.ptp(signs) == 2 and len({tuple(row) for row in signs}) == 2
        bent = np.all(np.any(np.round((at.A[0] - E) @ theta["W_2"], 9) != 0, axis=1))
        if mixed and bent and abs(np.linalg.det(H)) > 0.5 and np.all(abs(H.T @ R[0]) > 0.5):
            return net, theta, X, np.round(F - R, 9)


def _draw_paper_network(rng):
    first, second = rng.permutation(rng.choice([[1, 2], [1, 3], [1, 5], [2, 5]])).tolist()
    whole = float(np.lcm(first + 1, second + 1))  # S W_V comes out in whole numbers
    beta_A, beta_F = rng.permutation([1.0, 2.0]).tolist()
    net = Transformer(d=2, d_k=1, m=2, c=1, activation="relu", beta_attention=beta_A, beta_ffn=beta_F)
    theta = {
        "W_Q": np.log([[float(first)], [float(second)]]),
        "W_K": np.array([[1.0], [0.0]]),
        "W_V": whole * rng.permutation([[1.0, 0.0], [0.0, rng.choice([-1.0, 1.0])]]),
        "W_1": rng.choice([-1.0, 1.0], size=(2, 2)),
        "W_2": rng.choice([-1.0, 0.0, 1.0], size=(2, 2)),
        "W_U": rng.choice([-1.0, 1.0, 2.0], size=(2, 1)),
    }
    return net, theta, np.eye(2)[None]


def small_network(student_id, question):
    """Questions 2 to 5: (net, theta, X, Y) of the student, three samples of four tokens; the two skips differ."""
    rng = generator(student_id, question)
    beta_A, beta_F = np.round(rng.uniform(0.5, 1.5, 2), 1).tolist()
    activation = str(rng.choice(["gelu", "tanh", "softplus"]))
    return random_instance(rng, activation=activation, beta_attention=beta_A, beta_ffn=beta_F)


def suspect(student_id):
    """Question 5: (net, theta, X, Y, gradients), where ``gradients`` commits one of the eight ``FAULTS``."""
    rng = generator(student_id, "ps1/q5")
    net, theta, X, Y = random_instance(rng, beta_attention=1.0, beta_ffn=1.5)
    fault = FAULTS[rng.integers(len(FAULTS))]
    return net, theta, X, Y, fault(net, theta, X, Y)


def _targets_forgotten(net, theta, X, Y):
    return gradient(net, theta, X, 0.0 * Y)


def _skip_missing(net, theta, X, Y):
    return _backward_with(net.with_beta(beta_attention=net.beta_attention, beta_ffn=0.0), net, theta, X, Y)


def _slope_missing(net, theta, X, Y):
    flat = replace(net.activation, derivative=np.ones_like)
    return _backward_with(replace(net, activation=flat), net, theta, X, Y)


def _pre_activation_for_activation(net, theta, X, Y):
    at = forward(net, theta, X)
    return gradient(net, theta, X, Y) | {"W_2": _changed(net, theta, at, Y, A=at.E)["W_2"]}


def _attention_not_transposed(net, theta, X, Y):
    at = forward(net, theta, X)
    turned = (np.swapaxes(at.S, -1, -2),)
    return gradient(net, theta, X, Y) | {"W_V": _changed(net, theta, at, Y, S=turned)["W_V"]}


def _scale_missing(net, theta, X, Y):
    right = gradient(net, theta, X, Y)
    return right | {block: net.d_k**0.5 * right[block] for block in ("W_Q", "W_K")}


def _exchanged(net, theta, X, Y):
    right = gradient(net, theta, X, Y)
    return right | {"W_Q": right["W_K"], "W_K": right["W_Q"]}


def _mean_over_samples(net, theta, X, Y):
    return {block: g / X.shape[0] for block, g in gradient(net, theta, X, Y).items()}


# In the order in which the question lists them, from 1.
FAULTS = (
    _targets_forgotten,
    _skip_missing,
    _slope_missing,
    _pre_activation_for_activation,
    _attention_not_transposed,
    _scale_missing,
    _exchanged,
    _mean_over_samples,
)


def _backward_with(other, net, theta, X, Y):
    """The backward pass of another network through the forward pass of this one."""
    at = forward(net, theta, X)
    return pullback(other, theta, at, at.F - Y)


def _changed(net, theta, at, Y, **matrices):
    """The backward pass through a forward pass in which some matrices are others."""
    wrong = type(at)((replace(at.layers[0], **matrices),), at.F)
    return pullback(net, theta, wrong, at.F - Y)


def two_starts(student_id):
    """Question 6: (net, start, X, Y), the network with two runs, the first with both skips, the second without."""
    rng = generator(student_id, "ps1/q6")
    net, start, X, Y = random_instance(rng, P=3, n=4, d=24, d_k=6, m=32, c=2)
    return net.with_beta((1.0, 0.0)), stack_runs([start, start]), X, Y


def run_both(net, starts, X, Y, step, steps=150):
    """Question 6: the two runs of gradient descent; ``step`` is a number, one number a run, or a rule."""
    return descend(net, starts, X, Y, steps=steps, step=step, spectra=False, on_divergence="mark")
