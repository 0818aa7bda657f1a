"""Checks of arguments, all with one form of message: the name, what was expected, what came."""

import math
import numbers

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj


def require(condition, name, expected, got):
    """Raise ValueError ``name: expected ..., got ...`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def positive_int(value, name):
    """Return ``value`` as int; ValueError unless it is an integer of at least 1."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(whole and value >= 1, name, "an integer >= 1", repr(value))
    return int(value)


def finite_float(value, name, low=-math.inf, high=math.inf):
    """Return ``value`` as float; ValueError unless it is a finite real number in [low, high]."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    inside = real and math.isfinite(value) and low <= value <= high
    if low == -math.inf and high == math.inf:
        expected = "a finite number"
    elif high == math.inf:
        expected = f"a finite number >= {low:g}"
    else:
        expected = f"a number in [{low:g}, {high:g}]"
    require(inside, name, expected, repr(value))
    return float(value)


def positive_float(value, name):
    """Return ``value`` as float; ValueError unless it is a finite number above 0."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    require(real and math.isfinite(value) and value > 0, name, "a finite number > 0", repr(value))
    return float(value)


def generator(value, name):
    """Return ``value``; ValueError unless it is a seeded numpy Generator (the only source of randomness)."""
    require(isinstance(value, np.random.Generator), name, "a numpy random Generator", type(value).__name__)
    return value


def one_of(value, choices, name):
    """Return ``value``; ValueError unless it is among ``choices``."""
    require(value in tuple(choices), name, "one of " + ", ".join(map(str, choices)), repr(value))
    return value


def finite_array(array, name, shape=None):
    """Return ``array`` (NumPy or torch; a list becomes NumPy float64); ValueError unless finite and of this shape.

    ``shape`` is matched from the right: a number must be equal, a letter such as "n" stands for any size (the same
    letter for the same size), and a leading ``...`` allows further axes in front.
    """
    if not is_array_api_obj(array):
        try:
            array = np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name}: expected an array of numbers, got {type(array).__name__}") from None
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, ("integral", "bool")):
        array = xp.astype(array, xp.float64)
    require(xp.isdtype(array.dtype, "real floating"), name, "real floating-point numbers", str(array.dtype))
    if shape is not None:
        require(_fits(tuple(array.shape), tuple(shape)), name, f"shape {_show(shape)}", _show(array.shape))
    bad = int(xp.sum(xp.astype(~xp.isfinite(array), xp.int64)))
    require(bad == 0, name, "finite values", f"{bad} NaN or infinite of {math.prod(array.shape)}")
    return array


def _fits(got, shape):
    if shape and shape[0] is ...:
        shape = shape[1:]
        if len(got) < len(shape):
            return False
        got = got[len(got) - len(shape) :]
    if len(got) != len(shape):
        return False
    sizes = {}
    for size, want in zip(got, shape, strict=True):
        if sizes.setdefault(want, size if isinstance(want, str) else want) != size:
            return False
    return True


def _show(shape):
    return "(" + ", ".join("..." if s is ... else str(s) for s in shape) + ")"
