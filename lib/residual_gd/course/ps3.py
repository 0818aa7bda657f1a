"""Problem set 3: the instances of a student (numbers only; no question is answered here)."""

import numpy as np

from ..parameters import initialize
from ..transformer import Transformer, forward
from .person import generator

NAMES = ("Ada", "Blaise", "Carl", "Dora")
SIZES = {"d": 24, "d_k": 2, "m": 8, "c": 2}
SMALL = {"W_Q": 0.1, "W_K": 0.1, "W_V": 0.05, "W_1": 0.1, "W_2": 0.05, "W_U": 0.03}


def constants(rng):
    """Question 1: (f1, f2, alpha, residual) as a network with four blocks might have them, with alpha < ||f1||^2."""
    f1, half = rng.uniform(1.0, 3.5, 4), rng.uniform(0.0, 1.0, (4, 4))
    return f1, half + half.T, float(rng.uniform(0.2, 0.6) * f1 @ f1), float(rng.uniform(0.1, 0.2))


def own_constants(student_id):
    """Question 1: the student's ``constants``."""
    return constants(generator(student_id, "ps3/q1"))


def near_start(rng, distance, activation="tanh", **scales):
    """(net, theta, X, Y): a network with small matrices, two samples of three tokens, and ||F_0 - Y||_F = distance."""
    net = Transformer(**SIZES, activation=activation)
    theta, X = initialize(net, rng, **SMALL | scales), rng.standard_normal((2, 3, net.d))
    return net, theta, X, _targets_near(net, theta, X, distance, rng)


def start(student_id):
    """Questions 2 to 5: the student's (net, theta, X, Y), which the smooth form certifies."""
    return near_start(generator(student_id, "ps3/start"), 0.06)


def _targets_near(net, theta, X, distance, rng):
    F, direction = forward(net, theta, X).F, rng.standard_normal((*X.shape[:2], net.c))
    return F + distance * direction / np.linalg.norm(direction)


def refusals(student_id):
    """Question 6: four starts that are refused, name -> (net, theta, X, Y, form), in an order of the student's own."""
    rng = generator(student_id, "ps3/q6")
    starts = [_far_target(rng), _large_head(rng), _no_attention_skip(rng), _equal_rows(rng)]
    return dict(zip(NAMES, (starts[i] for i in rng.permutation(4)), strict=True))


def _small_network(rng, activation, *, W_U=0.0, **options):
    net = Transformer(**SIZES, activation=activation, **options)
    theta = initialize(net, rng, **SMALL | {"W_V": 0.02, "W_2": 0.02, "W_U": W_U})
    return net, theta, rng.standard_normal((3, 3, net.d))


def _far_target(rng):
    net, theta, X = _small_network(rng, "tanh")
    return net, theta, X, _targets_near(net, theta, X, 30.0, rng), "smooth"


def _large_head(rng):
    net, theta, X = _small_network(rng, "relu", W_U=3.0)
    Y = rng.standard_normal((*X.shape[:2], net.c))
    return net, theta, X, 0.01 * Y / np.linalg.norm(Y), "lipschitz"


def _no_attention_skip(rng):
    net, theta, X = _small_network(rng, "gelu", beta_attention=0.0, beta_ffn=1.0)
    theta = theta | {block: 0.0 * theta[block] for block in ("W_Q", "W_K")}
    return net, theta, X, _targets_near(net, theta, X, 0.01, rng), "smooth"


def _equal_rows(rng):
    net, theta, X = _small_network(rng, "tanh")
    theta = theta | {"W_V": 0.0 * theta["W_V"]}
    one, other = rng.permutation(3)[:2]
    X[other, 0] = X[one, 2]
    return net, theta, X, _targets_near(net, theta, X, 0.01, rng), "smooth"
