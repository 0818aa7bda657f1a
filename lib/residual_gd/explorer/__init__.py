"""Explorers: curves that a reader moves through with sliders, on a page of the book and in a live kernel.

An ``Explorer`` is handed a function from a setting to a ``Frame`` (curves, a read-out, a table) and a grid of settings.
It imports no theory: the functions that compute come from the chapter.
"""

from .explorer import Axis, Control, Explorer, Frame, Row, number

__all__ = ["Axis", "Control", "Explorer", "Frame", "Row", "number"]
