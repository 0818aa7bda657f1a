"""A grid of settings, moved through by sliders, and what is shown at each of them.

On the book's pages no kernel runs. So every frame of the grid is computed when the cell runs, rounded, and put into the
cell's output as JSON; ``explorer.js`` draws it and moves through it. Where there is no JavaScript, a picture of the
first setting stands in.
"""

import itertools
import json
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ..validation import finite_float, one_of, require

DIGITS = 3  # what is drawn and stored; enough for a picture, and the same on every processor
LARGEST = 60_000  # bytes of one explorer


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


class Grid(ABC):
    """Frames at every setting of a grid; what a frame is, and how it is stored and drawn, says the kind of explorer.

    Parameters
    ----------
    title : one line that says what is shown
    controls : the sliders, a sequence of ``Control``
    frame : function of one value for each control -> a frame; all frames have the same readings (label -> text)
    anywhere : in a live kernel, offer to compute settings between those of the grid

    ValueError for controls without values or with a start outside them, and a payload above 60 kB.
    """

    def __init__(self, title, controls, frame, *, anywhere=False):
        require(isinstance(title, str) and bool(title.strip()), "title", "a line of text", repr(title))
        require(isinstance(frame, Callable), "frame", "a function", type(frame).__name__)
        self.title, self.controls, self.anywhere = title, tuple(controls), bool(anywhere)
        require(len(self.controls) > 0, "controls", "at least one", "none")
        for control in self.controls:
            _check_control(control)
        self._frame = frame
        first = tuple(control.values[control.start] for control in self.controls)
        self._pattern = frame(*first)
        self._check(self._pattern)
        settings = itertools.product(*(control.values for control in self.controls))
        frames = [self.rounded(self._pattern if setting == first else frame(*setting)) for setting in settings]
        sliders = [
            {"label": c.label, "text": c.text, "start": c.start, "numbers": list(c.values) if c.numeric else None}
            for c in self.controls
        ]
        self.payload = {"title": title, "controls": sliders} | self._drawing(frames) | {"frames": frames}
        size = len(self.json())
        require(size <= LARGEST, "controls", f"a grid of at most {LARGEST} bytes of JSON", f"{size} bytes")

    @abstractmethod
    def _check(self, frame):
        """ValueError unless ``frame``, that of the first setting, is a good pattern for the others."""

    @abstractmethod
    def rounded(self, frame) -> dict:
        """The frame as it is stored: lists of numbers of three digits (None for a gap), and texts."""

    @abstractmethod
    def _drawing(self, frames) -> dict:
        """What the payload says beside title, controls and the stored ``frames``; "readings" at least, their labels."""

    @abstractmethod
    def picture(self):
        """A figure of the setting at which the sliders start, drawn from the payload."""

    def texts(self, frame) -> list[str]:
        """The readings of a frame; ValueError unless their labels are those of the first."""
        labels = list(self._pattern.readings)
        require(list(frame.readings) == labels, "readings", f"the labels {labels} at every setting", [*frame.readings])
        return [str(text) for text in frame.readings.values()]

    def frame_at(self, *values):
        """The stored frame at any values, also between those of the grid, computed now.

        ValueError for another number of values, for a number outside the slider's range (or no whole number where the
        slider has whole numbers), and for a string that is none of the slider's.
        """
        require(len(values) == len(self.controls), "values", f"{len(self.controls)} of them", len(values))
        setting = [_value(value, control) for value, control in zip(values, self.controls, strict=True)]
        return self.rounded(self._frame(*setting))

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

    def __repr__(self):
        sliders = "; ".join(f"{c.label}: {c.text[0]} to {c.text[-1]}" for c in self.controls)
        return f"[explorer on the book's pages: {self.title}. Sliders: {sliders}]"

    def show(self):
        """Show it as the output of a cell: the picture, and after it the explorer, which takes the picture's place.

        In a live kernel with anywidget a widget is shown too, unless RESIDUAL_GD_PROGRESS=0, as in builds and tests.
        """
        from .live import show

        show(self)


def number(value):
    """A number as a reader sees it: three digits, "-" for nan."""
    if math.isnan(value):
        return "-"
    return "0" if value == 0 else f"{value:.{DIGITS}g}"


def short(value):
    """``value`` with three digits; whole numbers as int, so that they are short; None if it is not finite."""
    if not math.isfinite(value):
        return None
    value = float(f"{value:.{DIGITS}g}")
    return int(value) if value == int(value) and abs(value) < 1e6 else value


def _check_control(control):
    require(isinstance(control, Control), "controls", "Control objects", type(control).__name__)
    require(len(control.values) > 0, control.label, "a slider with at least one value", "none")
    for value in control.values:
        alike = isinstance(value, numbers.Real if control.numeric else str) and not isinstance(value, bool)
        require(alike and value == value, control.label, "all numbers or all strings", repr(value))
    inside = isinstance(control.start, int) and 0 <= control.start < len(control.values)
    require(inside, f"start of {control.label}", f"an index below {len(control.values)}", repr(control.start))


def _value(value, control):
    if not control.numeric:
        return one_of(value, control.values, control.label)
    value = finite_float(value, control.label, low=float(min(control.values)), high=float(max(control.values)))
    if all(isinstance(v, numbers.Integral) for v in control.values):
        require(value == int(value), control.label, "a whole number", repr(value))
        return int(value)
    return value
