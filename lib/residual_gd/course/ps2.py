"""Problem set 2: the instances of a student (numbers only; no question is answered here)."""

import numpy as np

from ..parameters import initialize
from ..transformer import Transformer
from .person import generator

# "Write this yourself": the functions of the library that the tests of question 2 close.
JACOBIANS = (
    "residual_gd.jacobian.jacobian",
    "residual_gd.jacobian.jacobian_blocks",
    "residual_gd.jacobian.features_jacobian",
    "residual_gd.jacobian.jvp",
    "residual_gd.jacobian.vjp",
    "residual_gd.jacobian._dense",
    "residual_gd.jacobian.pushforward",
    "residual_gd.transformer.pullback",
)


def two_sided_map(student_id):
    """Question 1: matrices A, B, C, D of the map X -> A X B + C X^T D, with X of size 2 x 3."""
    rng = generator(student_id, "ps2/q1")
    return tuple(rng.integers(-3, 4, size=shape).astype(float) for shape in ((4, 2), (3, 2), (4, 3), (2, 2)))


def random_network(rng, *, P=2, n=3, d=4, d_k=2, m=5, c=2, **options):
    """(net, theta, X) with independent normal entries; ``options`` are those of Transformer."""
    net = Transformer(d=d, d_k=d_k, m=m, c=c, **options)
    return net, initialize(net, rng), rng.standard_normal((P, n, d))


def network(student_id):
    """Question 2: (net, theta, X, V), the student's network and a direction V in which W_V moves."""
    rng = generator(student_id, "ps2/q2")
    beta_A, beta_F = np.round(rng.uniform(0.5, 1.5, 2), 1).tolist()
    activation = str(rng.choice(["gelu", "tanh", "softplus"]))
    net, theta, X = random_network(rng, activation=activation, beta_attention=beta_A, beta_ffn=beta_F)
    return net, theta, X, rng.standard_normal((net.d, net.d))


def gains(student_id):
    """Question 3: (net, theta, X, Y, g), a network whose feed-forward skip has one coefficient a channel."""
    rng = generator(student_id, "ps2/q3")
    net, theta, X = random_network(rng, activation="tanh")
    return net, theta, X, rng.standard_normal((*X.shape[:2], net.c)), np.round(rng.uniform(0.2, 2.0, net.d), 1)


def weights(student_id):
    """Question 4a: attention weights of one token over five."""
    w = generator(student_id, "ps2/q4a").integers(1, 10, size=5)
    return w / w.sum()


def two_tokens(student_id):
    """Question 4b and d: (n, i, j), the number of tokens, and two of them, counted from 0, i < j."""
    rng = generator(student_id, "ps2/q4b")
    n = int(rng.integers(4, 8))
    i, j = sorted(rng.choice(n, size=2, replace=False).tolist())
    return n, i, j


def share(student_id):
    """Question 4c: (n, k), the number of tokens, and the largest weight allowed as 1/k."""
    rng = generator(student_id, "ps2/q4c")
    k = int(rng.integers(3, 7))
    return k + int(rng.integers(1, 4)), k


def bend(student_id):
    """Question 5: a, for the activation phi(x) = x where x >= 0 and -a x where x < 0."""
    return float(generator(student_id, "ps2/q5").choice([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]))
