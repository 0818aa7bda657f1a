"""Figures in one style. They draw what they are handed and import no theory: ``figures.curves.envelope(...)``."""

from . import curves, style

__all__ = ["curves", "style"]
