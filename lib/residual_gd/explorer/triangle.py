"""The explorer of a triangle: functions of three weights that sum to one, a place among them, and a direction at it."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..validation import finite_array, require
from .grid import Grid, short
from .picture import triangles

LABELS = ("token 1", "token 2", "token 3")
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])


@dataclass(frozen=True)
class Place:
    """What is shown at one setting.

    weights: (3,), nonnegative with sum 1. directions: for each map a vector (3,) with sum 0, drawn as an arrow with a
    head at both ends, or None. readings: label -> text.
    """

    weights: np.ndarray
    directions: tuple
    readings: dict = field(default_factory=dict)


class Triangle(Grid):
    """Maps over the simplex of three weights, as colours, with a place that the sliders move.

    Parameters
    ----------
    title, controls, frame, anywhere : as in ``Grid``; ``frame`` returns a ``Place``
    maps : label -> function of the weights (3,) -> a number
    side : number of steps along a side of the lattice on which the maps are computed

    ValueError as in ``Grid``, and for places that are none, and maps that are not finite.
    """

    def __init__(self, title, controls, frame, *, maps, side=24, anywhere=False):
        self.side, self.labels = side, tuple(maps)
        lattice = lattice_weights(side)
        self.values = [
            finite_array([float(f(s)) for s in lattice], label, (len(lattice),)) for label, f in maps.items()
        ]
        super().__init__(title, controls, frame, anywhere=anywhere)

    def _check(self, frame):
        require(isinstance(frame, Place), "frame", "a function that returns a Place", repr(type(frame)))

    def rounded(self, frame):
        """The place as it is stored: where it lies in the triangle of side 1, the arrows' angles, and texts."""
        s = finite_array(frame.weights, "weights", (3,))
        inside = bool(np.all(s >= -1e-12)) and abs(float(s.sum()) - 1.0) < 1e-9
        require(inside, "weights", "three numbers >= 0 with the sum 1", s.tolist())
        require(len(frame.directions) == len(self.labels), "directions", "one for each map", len(frame.directions))
        turns = [None if v is None else _angle(finite_array(v, "directions", (3,))) for v in frame.directions]
        return {"at": [short(v) for v in (s @ CORNERS).tolist()], "turn": turns, "read": self.texts(frame)}

    def _drawing(self, frames):
        maps = [
            {"label": label, "values": [short(v) for v in values.tolist()], "range": [0, short(float(values.max()))]}
            for label, values in zip(self.labels, self.values, strict=True)
        ]
        drawn = {"side": self.side, "corners": list(LABELS), "maps": maps}
        return {"readings": list(self._pattern.readings), "triangle": drawn}

    def picture(self):
        """A figure of the setting at which the sliders start, drawn from the payload."""
        places = lattice_weights(self.side) @ CORNERS
        return triangles(self.payload, self.start_frame(), places, lattice_cells(self.side), CORNERS)


def lattice_weights(side):
    """(i, j, side - i - j) / side for 0 <= i <= side, 0 <= j <= side - i, j running first."""
    return np.array([(i, j, side - i - j) for i in range(side + 1) for j in range(side + 1 - i)]) / side


def lattice_cells(side):
    """The small triangles between neighbours of ``lattice_weights``: three indices each, side^2 of them."""
    at = {(i, j): i * (2 * side + 3 - i) // 2 + j for i in range(side + 1) for j in range(side + 1 - i)}
    below = [(at[i, j], at[i + 1, j], at[i, j + 1]) for i, j in at if i + j < side]
    above = [(at[i + 1, j], at[i, j + 1], at[i + 1, j + 1]) for i, j in at if i + j < side - 1]
    return np.array(below + above)


def _angle(direction):
    """Degrees, from 0 to 179, by which the direction points upwards from the triangle's base."""
    x, y = (direction @ CORNERS).tolist()
    return round(math.degrees(math.atan2(y, x))) % 180
