"""Problem set 4: the instances of a student (numbers only; no question is answered here)."""

import numpy as np

from ..parameters import initialize
from ..rank import exceptional_betas
from ..samples import softmax
from ..transformer import Transformer
from .person import generator


def logits(rng, n):
    """Question 1: logits (n, n) of very different columns, so that rows and columns oscillate differently."""
    return rng.standard_normal((n, n)) + np.linspace(0.0, 3.0, n)


def own_logits(student_id):
    """Question 1a: the student's logits (5, 5)."""
    return logits(generator(student_id, "ps4/q1"), 5)


def own_tokens(student_id):
    """Question 1b: n, the number of tokens for which the bound shall be attained."""
    return int(generator(student_id, "ps4/q1b").integers(5, 9))


def pool(student_id):
    """Question 2: (tokens, W_Q, W_K, beta): nine tokens in width six, one of them twice, one the sum of two others."""
    rng = generator(student_id, "ps4/q2")
    tokens = rng.standard_normal((7, 6))
    one, other, double = rng.permutation(7)[:3]
    tokens = np.vstack([tokens, tokens[one] + tokens[other], tokens[double]])
    W_Q, W_K = 0.5 * rng.standard_normal((6, 3)) + 0.1 * rng.standard_normal((2, 6, 3))
    return tokens[rng.permutation(9)], W_Q, W_K, float(rng.choice([0.5, 0.6, 0.7, 0.8, 1.2, 1.3, 1.4, 1.5]))


def square(rng, n):
    """Question 3: (S, X, W_V), one sample of n tokens in width n: S is an attention matrix, X is well conditioned."""
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    X, W_V = left * np.linspace(1.0, 2.0, n) @ right, rng.standard_normal((n, n)) / n**0.5
    return softmax(0.5 * X @ X.T), X, W_V


def own_square(student_id):
    """Question 3: the student's (S, X, W_V, beta) with n = 5; there is at least one exceptional beta."""
    rng = generator(student_id, "ps4/q3")
    beta = float(np.round(rng.uniform(0.5, 1.5), 2))
    while True:
        S, X, W_V = square(rng, 5)
        if len(exceptional_betas(S, X, W_V)):
            return S, X, W_V, beta


def uniform_start(rng):
    """Question 4: (net, theta, X, Y), three samples of four tokens, with W_Q = W_K = 0 and both skips 1."""
    net = Transformer(d=16, d_k=2, m=16, c=2)
    theta = initialize(net, rng, W_Q=0.0, W_K=0.0)
    return net, theta, rng.standard_normal((3, 4, net.d)), rng.standard_normal((3, 4, net.c))


def own_uniform_start(student_id):
    """Question 4: the student's ``uniform_start``."""
    return uniform_start(generator(student_id, "ps4/q4"))


def deep(rng, *, n=5, d=6, d_k=3, layers=5):
    """Question 5: (X, weights), one sample (n, d) of near tokens and a list of (W_Q, W_K, W_V), one a layer."""
    shapes = ((d, d_k), (d, d_k), (d, d))
    weights = [tuple(rng.standard_normal(shape) / d**0.5 for shape in shapes) for _ in range(layers)]
    return rng.standard_normal(d) + 0.3 * rng.standard_normal((n, d)), weights


def own_deep(student_id):
    """Question 5: the student's ``deep``."""
    return deep(generator(student_id, "ps4/q5"))


def pair(student_id):
    """Question 5c: (X, W, beta), two tokens (2, 4), the matrix W = W_Q = W_K (4, 2), the skip's coefficient."""
    rng = generator(student_id, "ps4/q5c")
    return rng.standard_normal((2, 4)), 0.7 * rng.standard_normal((4, 2)), float(np.round(rng.uniform(0.5, 1.5), 2))
