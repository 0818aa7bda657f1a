"""The explorer of curves: lines and points over x, with axes, a read-out and a table."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..validation import finite_array, finite_float, one_of, require
from .grid import Grid, short
from .picture import picture

MARKS = ("line", "dashed", "dotted", "points")
CURVES = 5  # colours that stay apart


@dataclass(frozen=True)
class Axis:
    """An axis: its label, whether it is logarithmic, and its two ends (by default those of all frames)."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table: its name, its cells as text, and whether what it says holds (else it is shown as failing)."""

    name: str
    cells: tuple[str, ...]
    holds: bool = True


@dataclass(frozen=True)
class Frame:
    """What is shown at one setting.

    curves: label -> values (K,) over the explorer's x; nan or inf leaves a gap, and a shorter array ends earlier.
    readings: label -> text. rows: a table, possibly empty.
    """

    curves: dict
    readings: dict = field(default_factory=dict)
    rows: tuple[Row, ...] = ()


class Explorer(Grid):
    """Curves over x at every setting of a grid.

    Parameters
    ----------
    title, controls, frame, anywhere : as in ``Grid``; ``frame`` returns a ``Frame``, and all of them have the same
        labels, in the same order
    x : (K,) places of the curves' points
    x_axis, y_axis : ``Axis``
    marks : label of a curve -> "line", "dashed", "dotted" or "points"; lines by default
    table : (caption, column heads), the first head that of the row's names; needed if frames have rows

    ValueError as in ``Grid``, and for more than five curves, frames that don't match the first, x or curves that are no
    vectors, and a logarithmic axis with an end <= 0.
    """

    def __init__(self, title, controls, frame, *, x, x_axis, y_axis, marks=None, table=None, anywhere=False):
        self._marks, self._table, self._axes = dict(marks or {}), table, (x_axis, y_axis)
        self.x = finite_array(np.asarray(x, dtype=float), "x", ("K",))
        super().__init__(title, controls, frame, anywhere=anywhere)

    def _check(self, frame):
        require(isinstance(frame, Frame), "frame", "a function that returns a Frame", repr(type(frame)))
        require(0 < len(frame.curves) <= CURVES, "curves", f"1 to {CURVES} of them", len(frame.curves))
        for label, mark in self._marks.items():
            one_of(label, tuple(frame.curves), "marks")
            one_of(mark, MARKS, f"mark of {label}")
        if frame.rows:
            require(self._table is not None, "table", "a caption and column heads, since frames have rows", "None")
            width = len(frame.rows[0].cells) + 1
            fits = len(self._table) == 2 and len(self._table[1]) == width
            require(fits, "table", f"(caption, {width} column heads)", repr(self._table))

    def rounded(self, frame):
        """The frame as it is stored: lists of numbers of three digits (None for a gap), and texts."""
        labels, names = list(self._pattern.curves), [row.name for row in self._pattern.rows]
        require(list(frame.curves) == labels, "curves", f"the labels {labels} at every setting", list(frame.curves))
        require([row.name for row in frame.rows] == names, "rows", f"the names {names}", [r.name for r in frame.rows])
        stored = {"y": [_vector(values, label, len(self.x)) for label, values in frame.curves.items()]}
        stored["read"] = self.texts(frame)
        if names:
            stored["rows"] = [list(map(str, row.cells)) for row in frame.rows]
            stored["fails"] = [k for k, row in enumerate(frame.rows) if not row.holds]
        return stored

    def _drawing(self, frames):
        heights = [v for frame in frames for curve in frame["y"] for v in curve if v is not None]
        x_axis, y_axis = self._axes
        drawing = {
            "axes": {"x": _axis(x_axis, self.x.tolist(), "x_axis"), "y": _axis(y_axis, heights, "y_axis")},
            "x": [short(v) for v in self.x.tolist()],
            "curves": [{"label": label, "mark": self._marks.get(label, "line")} for label in self._pattern.curves],
            "readings": list(self._pattern.readings),
        }
        if self._pattern.rows:
            caption, head = self._table
            names = [row.name for row in self._pattern.rows]
            drawing["table"] = {"caption": caption, "head": list(head), "names": names}
        return drawing

    def picture(self):
        """A figure of the setting at which the sliders start, drawn from the payload."""
        return picture(self.payload, self.start_frame())


def _vector(values, label, length):
    values = np.asarray(values, dtype=float)
    require(values.ndim == 1 and len(values) <= length, label, f"a vector of at most {length} values", values.shape)
    return [short(value) for value in values.tolist()]


def _axis(axis, values, name):
    require(isinstance(axis, Axis), name, "an Axis", type(axis).__name__)
    shown = [v for v in values if v > 0] if axis.log else values
    require(len(shown) > 0, name, "something to show on it", "no finite value" + " > 0" * axis.log)
    low = min(shown) if axis.low is None else finite_float(axis.low, f"low of {name}")
    high = max(shown) if axis.high is None else finite_float(axis.high, f"high of {name}")
    if axis.log:
        require(low > 0, f"low of {name}", "a number > 0 on a logarithmic axis", repr(low))
        low = 10.0 ** math.floor(math.log10(low)) if axis.low is None else low
        high = 10.0 ** math.ceil(math.log10(high)) if axis.high is None else high
    if low == high:
        low, high = (low / 10, high * 10) if axis.log else (low - 0.5, high + 0.5)
    require(low < high, name, "low < high", f"{low:g}, {high:g}")
    return {"label": axis.label, "log": axis.log, "range": [low, high]}
