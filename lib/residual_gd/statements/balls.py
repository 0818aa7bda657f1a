"""Majorants put to the test on the ball: functions are only evaluated, never differentiated.

Four points of the ball that form a parallelogram, theta, theta + D, theta + D', theta + D + D', test a majorant without
numerical differentiation: ||T(theta + D) - T(theta)||_F <= t1 . Delta, and the mixed difference
T(theta + D + D') - T(theta + D) - T(theta + D') + T(theta), an integral of D^2T[D, D'], is at most Delta^T t2 Delta'.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..majorants import Majorant
from ..samples import stack
from .base import at_most
from .instances import climb

NORM, FIRST, SECOND = "norm", "first order", "second order"


@dataclass(frozen=True)
class Case:
    """A matrix T(theta) and the majorant claimed for it on the ball around ``center``.

    value: blocks -> T (P, n, columns). center: dict of blocks. radii: (B,) in the order of the dict. diagonal: the
    samples are the diagonal blocks of the stack (attention matrices, logits).
    """

    value: Callable
    bound: Majorant
    center: dict
    radii: np.ndarray
    diagonal: bool = False

    @property
    def free(self) -> int:
        """Length of a vector that names a parallelogram."""
        return 3 * sum(W.size for W in self.center.values())

    def parallelogram(self, z, share):
        """Four points of the ball, and the block norms Delta, Delta' of the sides (at most ``share`` of a radius)."""
        offset, D, D2 = {}, {}, {}
        for part, size, pieces in zip(
            (offset, D, D2), (1.0 - 2.0 * share, share, share), np.split(np.asarray(z), 3), strict=True
        ):
            ends = np.cumsum([W.size for W in self.center.values()])[:-1]
            for (name, W), radius, piece in zip(self.center.items(), self.radii, np.split(pieces, ends), strict=True):
                part[name] = size * radius * piece.reshape(W.shape) / max(1.0, np.linalg.norm(piece))
        base = {b: W + offset[b] for b, W in self.center.items()}
        points = [{b: base[b] + i * D[b] + j * D2[b] for b in base} for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]
        norms = [np.array([np.linalg.norm(part[b]) for b in base]) for part in (D, D2)]
        return points, *norms

    def compare(self, z, share=1.0 / 3.0, orders=(NORM, FIRST, SECOND)):
        """The comparisons of the norms, of first and (where there is one) of second order at a parallelogram."""
        points, Delta, Delta2 = self.parallelogram(z, share)
        a, b = self.value(points[0]), self.value(points[1])
        rounding = 1e-14 * (1.0 + np.linalg.norm(a))
        found = []
        if NORM in orders:
            largest = np.linalg.norm(a, 2, axis=(-2, -1)).max()
            found.append(at_most(largest if self.diagonal else np.linalg.norm(stack(a), 2), self.bound.norm, NORM))
            found.append(at_most(largest, self.bound.sample_norm, NORM))
        if FIRST in orders:
            found.append(_beyond_rounding(b - a, self.bound.first @ Delta, FIRST, rounding))
        if SECOND in orders and self.bound.smooth:
            mixed = self.value(points[3]) - self.value(points[2]) - b + a
            found.append(_beyond_rounding(mixed, Delta @ self.bound.second @ Delta2, SECOND, 4 * rounding))
        return tuple(found)

    def random(self, draw):
        """The comparisons at a random parallelogram."""
        return self.compare(draw.normal(self.free) * draw.scale(0.1, 10.0), draw.real(0.01, 1.0 / 3.0))

    def ascend(self, rng, order=FIRST, *, share=0.02, steps=400):
        """The comparisons at the parallelogram found by climbing towards the worst ratio of this order.

        It starts where all blocks move in the direction of positive entries, from a random place of the ball.
        """

        def ratio(z):
            return max(c.ratio for c in self.compare(z, share, (order,)))

        z, _ = climb(ratio, np.abs(rng.standard_normal(self.free)), rng, steps=steps)
        return self.compare(z, share)


def _beyond_rounding(difference, bound, what, rounding):
    # what rounding makes of a difference is no violation, and would spoil the ratio of tiny bounds
    return at_most(max(np.linalg.norm(difference) - rounding, 0.0), bound, what)
