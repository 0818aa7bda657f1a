"""What no parameters can undo: equal tokens in a sample, and samples that are permutations of each other (chapter 2).

The network treats the tokens of a sample alike, so such rows get the same outputs for all parameters, J J^T is
singular everywhere, and no certificate can hold (prop-obstructions).
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .samples import stack
from .validation import finite_array


@dataclass(frozen=True)
class Obstruction:
    """Rows of the stack that have equal outputs for all parameters.

    kind: "equal tokens" (two rows of one sample) or "permuted samples". samples: their indices. pairs: (k, 2) rows of
    the stack that are tied. floor: a lower bound of Phi, 1/4 the squared distance of their targets (0 without targets).
    """

    kind: str
    samples: tuple[int, ...]
    pairs: np.ndarray
    floor: float

    def __str__(self):
        if self.kind == "equal tokens":
            rows = ", ".join(map(str, self.pairs[0]))
            return f"rows {rows} of X are equal tokens of sample {self.samples[0]}"
        return f"samples {self.samples[0]} and {self.samples[1]} have the same tokens, up to their order"


def obstructions(X, Y=None) -> tuple[Obstruction, ...]:
    """Every obstruction in the inputs X (P, n, d), with its loss floor for targets Y (P, n, c) if given.

    Rows count as equal if they are exactly equal. ValueError for bad input. Source: prop-obstructions.
    """
    X = np.asarray(finite_array(X, "X", ("P", "n", "d")))
    P, n, _ = X.shape
    rows = stack(X)
    targets = None if Y is None else stack(np.asarray(finite_array(Y, "Y", (P, n, "c"))))

    def found(kind, samples, pairs):
        pairs = np.array(pairs)
        floor = 0.0
        if targets is not None:
            floor = 0.25 * float(np.sum((targets[pairs[:, 0]] - targets[pairs[:, 1]]) ** 2))
        return Obstruction(kind, samples, pairs, floor)

    result = [
        found("equal tokens", (i // n,), [(i, j)])
        for group in equal_rows(X)
        for sample in sorted({r // n for r in group})
        for i, j in _neighbours([r for r in group if r // n == sample])
    ]
    samples = defaultdict(list)
    for p in range(P):
        samples[b"".join(sorted(row.tobytes() for row in X[p] + 0.0))].append(p)
    for group in samples.values():
        for p, q in _neighbours(group):
            orders = [sorted(range(s * n, s * n + n), key=lambda r: (rows[r] + 0.0).tobytes()) for s in (p, q)]
            result.append(found("permuted samples", (p, q), list(zip(*orders, strict=True))))
    return tuple(result)


def equal_rows(X) -> tuple[tuple[int, ...], ...]:
    """Groups of two or more equal rows of the stack of X (P, n, d), in whatever samples they are.

    Equal rows of different samples are no obstruction, but then the stacked X has no full row rank, and near a start
    with small branches neither have the features: overlapping windows of a record are the usual case.
    """
    groups = defaultdict(list)
    for r, row in enumerate(
        stack(np.asarray(finite_array(X, "X", ("P", "n", "d")))) + 0.0
    ):  # + 0.0 makes -0.0 equal 0.0
        groups[row.tobytes()].append(r)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _neighbours(group):
    return list(pairwise(group))
