"""The master lemma of chapter 5, played as a game against the hypotheses."""

import math

import numpy as np

from .base import Control, at_most, statement
from .certified import STEPS


@statement(
    "lem-master",
    kind="lemma",
    title="Master lemma",
    chapter="rate",
    hypotheses=(
        "alpha I <= A A^T <= (tau/mu) I, tau <= 1, for the matrix A of step k",
        "its perturbation is at most mu omega ||R_k||",
        "delta = alpha - omega > 0",
    ),
    sharp=True,
)
def master(draw):
    rows, alpha, tau = draw.integer(1, 4), draw.scale(0.01, 0.99), draw.real(0.1, 1.0)
    game = Game(rows, alpha, draw.real(0.0, 0.95) * alpha, tau, draw.choice((1.0, draw.real(0.0, 1.0))))
    return game.play(draw.rng)


class Game:
    """r <- (I - mu A A^T) r + E with a fresh A and E at every step, as hostile as the hypotheses allow.

    The largest eigenvalue of A A^T is 1. malice: how much of the residual sits in the weakest direction of A A^T, and
    of the perturbation along the residual.
    """

    def __init__(self, rows, alpha, omega, tau, malice):
        self.rows, self.alpha, self.omega, self.tau, self.malice = rows, alpha, omega, tau, malice

    def play(self, rng, steps=STEPS):
        alpha, omega, tau = self.alpha, self.omega, self.tau
        mu, delta = tau, alpha - omega
        r = rng.standard_normal(self.rows)
        first, worst, moved, longest = np.linalg.norm(r), 0.0, np.zeros(2), 0.0
        for k in range(1, steps + 1):
            A, columns = self.operator(r, rng)
            v = A.T @ r
            moved += [mu * np.linalg.norm(v[:columns]), mu * np.linalg.norm(v[columns:])]
            longest += mu * np.linalg.norm(v)
            E = self.malice * r + (1.0 - self.malice) * rng.standard_normal(self.rows)
            E *= mu * omega * np.linalg.norm(r) / max(np.linalg.norm(E), 1e-300)
            r = r - mu * (A @ v) + E
            size = np.linalg.norm(r) / first
            if size < 1e-13:
                break
            worst = max(worst, size / (1.0 - mu * delta) ** k)
        path = math.sqrt(alpha) / (1.0 - 0.5 * tau) * first / delta
        # a = 1 here, so that no block of A^T r is longer than m_b ||R|| with m_b = 1
        return (
            at_most(worst, 1.0, "||R_k|| / ((1 - mu delta)^k ||R_0||)"),
            at_most(longest, path, "length of the path"),
            at_most(float(np.max(moved)), min(first / delta, path), "distance of a block"),
        )

    def operator(self, r, rng):
        """A with A A^T between alpha and 1, and where its columns are cut into two blocks."""
        q = np.linalg.qr(np.column_stack([r, rng.standard_normal((self.rows, self.rows))]))[0][:, : self.rows]
        values = rng.uniform(self.alpha, 1.0, self.rows)
        values[-1] = 1.0
        if self.malice == 1.0 or self.rows == 1:
            values[0] = self.alpha  # the residual itself is the weakest direction
        mix = np.linalg.qr(rng.standard_normal((self.rows + 2, self.rows + 2)))[0][: self.rows]
        return q @ (np.sqrt(values)[:, None] * mix), int(rng.integers(0, self.rows + 3))


@master.ascent
def _(rng):
    return Game(3, 0.3, 0.1, 1.0, 1.0).play(rng)[0]


@master.control
def _(rng):
    # mu a^2 = 2.5 > 1: the strongest direction is overshot
    r, mu = np.array([0.0, 1.0]), 2.5
    A = np.diag(np.sqrt([0.5, 1.0]))
    shrunk = np.linalg.norm(r - mu * A @ A.T @ r)
    return Control("mu a^2 = 2.5, R_0 in the strongest direction", shrunk, abs(1.0 - mu * 0.5), "||R_1|| / ||R_0||")
