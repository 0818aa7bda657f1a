"""The explorer: a grid of settings, what is drawn at each of them, and the ways to show it.

On the book's pages no kernel runs. So every frame of the grid is computed when the cell runs, rounded, and put into the
cell's output as JSON; ``explorer.js`` draws it and moves through it. Where there is no JavaScript, a picture of the
first setting stands in.
"""

import itertools
import json
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..validation import finite_array, finite_float, one_of, require
from .picture import picture

MARKS = ("line", "dashed", "dotted", "points")
DIGITS = 3  # what is drawn and stored; enough for a picture, and the same on every processor
LARGEST = 60_000  # bytes of one explorer
CURVES = 5  # colours that stay apart


@dataclass(frozen=True)
class Axis:
    """An axis: its label, whether it is logarithmic, and its two ends (by default those of all frames)."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Control:
    """A slider: its label, the values that it takes (numbers or strings), and the index of the one it starts at."""

    label: str
    values: tuple
    start: int = 0

    @property
    def numeric(self):
        """True if the values are numbers."""
        return not isinstance(self.values[0], str)

    @property
    def text(self):
        """The values as the reader sees them."""
        return [f"{value:g}" if self.numeric else value for value in self.values]


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


def number(value):
    """A number as a reader sees it: three digits, "-" for nan."""
    if math.isnan(value):
        return "-"
    return "0" if value == 0 else f"{value:.{DIGITS}g}"


class Explorer:
    """Curves over x at every setting of a grid.

    Parameters
    ----------
    title : one line that says what is shown
    controls : the sliders, a sequence of ``Control``
    frame : function of one value for each control -> ``Frame``; all frames have the same labels, in the same order
    x : (K,) places of the curves' points
    x_axis, y_axis : ``Axis``
    marks : label of a curve -> "line", "dashed", "dotted" or "points"; lines by default
    table : (caption, column heads), the first head that of the row's names; needed if frames have rows
    anywhere : in a live kernel, offer to compute settings between those of the grid

    ValueError for controls without values or with a start outside them, more than five curves, frames that don't match
    the first, x or curves that are no vectors, a logarithmic axis with an end <= 0, and a payload above 60 kB.
    """

    def __init__(self, title, controls, frame, *, x, x_axis, y_axis, marks=None, table=None, anywhere=False):
        require(isinstance(title, str) and bool(title.strip()), "title", "a line of text", repr(title))
        require(isinstance(frame, Callable), "frame", "a function", type(frame).__name__)
        self.title, self.controls, self.anywhere = title, tuple(controls), bool(anywhere)
        require(len(self.controls) > 0, "controls", "at least one", "none")
        for control in self.controls:
            _check_control(control)
        self._frame, self._marks, self._table = frame, dict(marks or {}), table
        self.x = finite_array(np.asarray(x, dtype=float), "x", ("K",))
        first = tuple(control.values[control.start] for control in self.controls)
        self._pattern = frame(*first)
        require(isinstance(self._pattern, Frame), "frame", "a function that returns a Frame", repr(type(self._pattern)))
        _check_pattern(self._pattern, self._marks, table)
        settings = itertools.product(*(control.values for control in self.controls))
        frames = [self.rounded(self._pattern if setting == first else frame(*setting)) for setting in settings]
        self.payload = self._payload(frames, x_axis, y_axis)
        size = len(self.json())
        require(size <= LARGEST, "controls", f"a grid of at most {LARGEST} bytes of JSON", f"{size} bytes")

    def rounded(self, frame):
        """The frame as it is stored: lists of numbers of three digits (None for a gap), and texts."""
        pattern = self._pattern
        for part, got in (("curves", frame.curves), ("readings", frame.readings)):
            labels = list(getattr(pattern, part))
            require(list(got) == labels, part, f"the labels {labels} at every setting", list(got))
        names = [row.name for row in pattern.rows]
        require([row.name for row in frame.rows] == names, "rows", f"the names {names}", [r.name for r in frame.rows])
        stored = {"y": [_vector(values, label, len(self.x)) for label, values in frame.curves.items()]}
        stored["read"] = [str(text) for text in frame.readings.values()]
        if names:
            stored["rows"] = [list(map(str, row.cells)) for row in frame.rows]
            stored["fails"] = [k for k, row in enumerate(frame.rows) if not row.holds]
        return stored

    def frame_at(self, *values):
        """The stored frame at any values, also between those of the grid, computed now.

        ValueError for another number of values, for a number outside the slider's range (or no whole number where the
        slider has whole numbers), and for a string that is none of the slider's.
        """
        require(len(values) == len(self.controls), "values", f"{len(self.controls)} of them", len(values))
        setting = [_value(value, control) for value, control in zip(values, self.controls, strict=True)]
        return self.rounded(self._frame(*setting))

    def _payload(self, frames, x_axis, y_axis):
        heights = [v for frame in frames for curve in frame["y"] for v in curve if v is not None]
        payload = {
            "title": self.title,
            "controls": [
                {"label": c.label, "text": c.text, "start": c.start, "numbers": list(c.values) if c.numeric else None}
                for c in self.controls
            ],
            "axes": {"x": _axis(x_axis, self.x.tolist(), "x_axis"), "y": _axis(y_axis, heights, "y_axis")},
            "x": [_rounded(v) for v in self.x.tolist()],
            "curves": [{"label": label, "mark": self._marks.get(label, "line")} for label in self._pattern.curves],
            "readings": list(self._pattern.readings),
        }
        if self._pattern.rows:
            caption, head = self._table
            names = [row.name for row in self._pattern.rows]
            payload["table"] = {"caption": caption, "head": list(head), "names": names}
        return payload | {"frames": frames}

    def json(self):
        """The payload as one line that may stand inside a script element."""
        text = json.dumps(self.payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.replace("</", "<\\/")

    def start_frame(self):
        """The stored frame at which the sliders start."""
        index = 0
        for control in self.controls:
            index = index * len(control.values) + control.start
        return self.payload["frames"][index]

    def html(self):
        """The output for the book's pages: JSON that the page's loader turns into the explorer."""
        hint = "The sliders need JavaScript, or a running notebook."
        return f'<div class="explorer-data"><p>{hint}</p><script type="application/json">{self.json()}</script></div>\n'

    def picture(self):
        """A figure of the setting at which the sliders start, drawn from the payload."""
        return picture(self.payload, self.start_frame())

    def __repr__(self):
        sliders = "; ".join(f"{c.label}: {c.text[0]} to {c.text[-1]}" for c in self.controls)
        return f"[explorer on the book's pages: {self.title}. Sliders: {sliders}]"

    def show(self):
        """Show it as the output of a cell: the picture, and after it the explorer, which takes the picture's place.

        In a live kernel with anywidget a widget is shown too, unless RESIDUAL_GD_PROGRESS=0, as in builds and tests.
        """
        from .live import show

        show(self)


def _check_control(control):
    require(isinstance(control, Control), "controls", "Control objects", type(control).__name__)
    require(len(control.values) > 0, control.label, "a slider with at least one value", "none")
    for value in control.values:
        alike = isinstance(value, numbers.Real if control.numeric else str) and not isinstance(value, bool)
        require(alike and value == value, control.label, "all numbers or all strings", repr(value))
    inside = isinstance(control.start, int) and 0 <= control.start < len(control.values)
    require(inside, f"start of {control.label}", f"an index below {len(control.values)}", repr(control.start))


def _check_pattern(frame, marks, table):
    require(0 < len(frame.curves) <= CURVES, "curves", f"1 to {CURVES} of them", len(frame.curves))
    for label, mark in marks.items():
        one_of(label, tuple(frame.curves), "marks")
        one_of(mark, MARKS, f"mark of {label}")
    if frame.rows:
        require(table is not None, "table", "a caption and column heads, since frames have rows", "None")
        width = len(frame.rows[0].cells) + 1
        require(len(table) == 2 and len(table[1]) == width, "table", f"(caption, {width} column heads)", repr(table))


def _value(value, control):
    if not control.numeric:
        return one_of(value, control.values, control.label)
    value = finite_float(value, control.label, low=float(min(control.values)), high=float(max(control.values)))
    if all(isinstance(v, numbers.Integral) for v in control.values):
        require(value == int(value), control.label, "a whole number", repr(value))
        return int(value)
    return value


def _rounded(value):
    """``value`` with three digits; whole numbers as int, so that they are short; None if it is not finite."""
    if not math.isfinite(value):
        return None
    value = float(f"{value:.{DIGITS}g}")
    return int(value) if value == int(value) and abs(value) < 1e6 else value


def _vector(values, label, length):
    values = np.asarray(values, dtype=float)
    require(values.ndim == 1 and len(values) <= length, label, f"a vector of at most {length} values", values.shape)
    return [_rounded(value) for value in values.tolist()]


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
