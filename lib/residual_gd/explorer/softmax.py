"""Chapter 3: first and second derivative of the softmax over the weights of three tokens."""

import numpy as np

from .grid import Control, number
from .triangle import Place, Triangle

FIRST, SECOND = "first derivative", "second derivative"


def three_weights(forms, directions, constants, *, weights, shares):
    """Explorer of both norms over the simplex, with the direction in which each is attained.

    directions: (M, 3) unit vectors with sum zero. forms: s (3,) -> the sizes (M,) of the first and (M,) of the second
    derivative in each of them; a norm is the largest. constants: largest weight -> their two bounds (gamma, c_2).
    weights: values of the first weight; shares: of token 2's share in the rest.
    """
    names = (FIRST, SECOND)

    def norm(k):
        return lambda s: forms(s)[k].max()

    def frame(first, share):
        rest = 1.0 - first
        s = np.array([first, rest * share, rest * (1.0 - share)])
        found, arrows, readings = forms(s), [], {"weights": _vector(s)}
        for label, sizes, bound in zip(names, found, constants(float(s.max())), strict=True):
            # Ties, as between two directions that mirror each other, go to the first on every processor.
            worst = int(np.argmax(np.round(sizes, 9)))
            arrows.append(_upright(directions[worst]) if sizes[worst] > 1e-9 else None)
            readings[label] = f"{number(round(float(sizes[worst]), 9))} of at most {number(bound)}"
            readings[f"direction of the {label.split()[0]}"] = "none" if arrows[-1] is None else _vector(arrows[-1])
        return Place(s, tuple(arrows), readings)

    return Triangle(
        "How fast three attention weights can move",
        (
            Control("weight of token 1", tuple(weights), len(weights) // 5),
            Control("share of token 2 in the rest", tuple(shares), len(shares) // 3),
        ),
        frame,
        maps={f"norm of the {label}": norm(k) for k, label in enumerate(names)},
        anywhere=True,
    )


def _upright(direction):
    """The direction or its opposite: that with the largest entry positive."""
    return direction * np.sign(direction[np.argmax(np.round(abs(direction), 9))])


def _vector(values):
    return "(" + ", ".join(f"{value + 0.0:.2f}" for value in np.round(values, 9)) + ")"
