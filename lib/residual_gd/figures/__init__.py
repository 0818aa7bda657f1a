"""Figures in one style. They draw what they are handed and import no theory: ``figures.curves.envelope(...)``."""

from . import argument, constants, curves, landscape, network, rank, rates, sentiment, style, weather

__all__ = ["argument", "constants", "curves", "landscape", "network", "rank", "rates", "sentiment", "style", "weather"]
