"""Explorers: what a reader moves through with sliders, on a page of the book and in a live kernel.

An ``Explorer`` (of curves) or a ``Triangle`` is handed a function from a setting to what is shown there, and a grid of
settings. It imports no theory: the functions that compute come from the chapter.
"""

from .explorer import Axis, Explorer, Frame, Row
from .grid import Control, Grid, number
from .triangle import Place, Triangle

__all__ = ["Axis", "Control", "Explorer", "Frame", "Grid", "Place", "Row", "Triangle", "number"]
