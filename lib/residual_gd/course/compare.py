"""Compare an answer with the expected one, and say what is wrong with it.

The comparison is plain Python on plain numbers: it calls nothing of NumPy but the conversion to a list, so that a
rebound ``numpy.allclose`` changes no verdict.
"""

import math
import numbers
import sys

import numpy as np

NEAR = 1e-6  # how close an answer must be to the transpose, a multiple, ... to be called that


def matches(what, got, expected, *, rtol=1e-8, atol=0, instead=None):
    """Return if the answer is the expected one; otherwise raise AssertionError with what is wrong with it.

    Parameters
    ----------
    what : str
        What is compared, as the message calls it: "the loss", "the gradient by W_1".
    got : object
        The student's answer: number, array (NumPy, torch, or nested lists), truth value, text, tuple, or dictionary.
    expected : object
        The right answer. An array is compared with an array of the same shape, a dictionary entry by entry under the
        same keys, a tuple entry by entry, a truth value, text or integer exactly.
    rtol, atol : float
        Largest deviation allowed in any entry: ``atol + rtol * (the largest absolute value of expected)``.
    instead : dict, optional
        What a usual mistake gives: the sentence that names it -> the number or array. A wrong answer that equals one of
        them is told this sentence and nothing else.

    Raises
    ------
    AssertionError
        Not answered, wrong type, wrong shape, not finite, the sign reversed, the transpose, a multiple, the right
        numbers in another order, single precision; else the worst entry and its relative error.
    """
    if got is None or got is ... or got is NotImplemented:
        _fail(what, f"not answered yet, it is {got}")
    if isinstance(expected, dict):
        _match_dict(what, got, expected, rtol, atol)
    elif isinstance(expected, tuple):
        _match_tuple(what, got, expected, rtol, atol)
    elif isinstance(expected, str | bool | np.bool_):
        _match_exactly(what, got, expected)
    else:
        try:
            _match_numbers(what, got, expected, rtol, atol)
            return
        except AssertionError as error:
            fault = error
        for sentence, value in (instead or {}).items():
            if _equals(got, value):
                _fail(what, sentence)
        raise fault


def _equals(got, value):
    try:
        _match_numbers("", got, value, NEAR, 0)
    except AssertionError:
        return False
    return True


def _fail(what, why):
    raise AssertionError(f"{what}: {why}")


def _match_dict(what, got, expected, rtol, atol):
    if not isinstance(got, dict):
        _fail(what, f"expected a dictionary with the keys {', '.join(map(str, expected))}, got {_kind(got)}")
    lacking = [str(key) for key in expected if key not in got]
    surplus = [str(key) for key in got if key not in expected]
    if lacking:
        _fail(what, "the key " + ", ".join(lacking) + " is missing")
    if surplus:
        _fail(what, "the key " + ", ".join(surplus) + " does not belong there")
    for key, value in expected.items():
        matches(f"{what}, {key}", got[key], value, rtol=rtol, atol=atol)


def _match_tuple(what, got, expected, rtol, atol):
    if not isinstance(got, tuple | list):
        _fail(what, f"expected {len(expected)} values in a tuple, got {_kind(got)}")
    if len(got) != len(expected):
        _fail(what, f"expected {len(expected)} values, got {len(got)}")
    for i, (one, value) in enumerate(zip(got, expected, strict=True)):
        matches(f"{what}, value {i + 1}", one, value, rtol=rtol, atol=atol)


def _match_exactly(what, got, expected):
    if isinstance(expected, str):
        if not isinstance(got, str):
            _fail(what, f"expected a text, got {_kind(got)}")
        if str.strip(got) != str.strip(expected):
            _fail(what, f"{got!r} is not right")
        return
    if not isinstance(got, bool | np.bool_):
        _fail(what, f"expected True or False, got {_kind(got)}")
    if bool(got) != bool(expected):
        _fail(what, f"{bool(got)} is not right")


def _match_numbers(what, got, expected, rtol, atol):
    want, want_shape = _flat(expected)
    try:
        have, shape = _flat(got)
    except TypeError:
        wanted = "a number" if want_shape == () else f"an array of shape {want_shape}"
        _fail(what, f"expected {wanted}, got {_kind(got)}")
    bad = sum(not math.isfinite(x) for x in have)
    if bad:
        _fail(what, f"{bad} of {len(have)} entries are not finite (NaN or infinite)" if shape else f"it is {have[0]}")
    scale = max(map(abs, want), default=0.0)
    allowed = atol + rtol * scale
    if shape == want_shape and _close(have, want, allowed):
        return
    near = max(allowed, NEAR * scale)
    if shape == want_shape and _single(got) and _close(have, want, max(allowed, 1e-4 * scale)):
        hint = "nearly right, but in single precision (float32); compute in float64"
    else:
        hint = _hint(have, shape, want, want_shape, near)
    if shape != want_shape:
        _fail(what, f"expected shape {want_shape}, got {shape}" + (f"; {hint}" if hint else ""))
    worst = max(range(len(want)), key=lambda i: abs(have[i] - want[i]))
    error = abs(have[worst] - want[worst]) / scale if scale else math.inf
    where = f"entry {_index(worst, shape)} is the worst" if shape else "the number is wrong"
    size = f"relative error {error:.1e}" if scale else "the right answer is 0"
    _fail(what, f"{hint + '; ' if hint else ''}{where}, {size}")


def _hint(have, shape, want, want_shape, near):
    """What a wrong answer is instead, or None. ``near`` is the deviation at which two numbers count as equal."""
    if len(have) != len(want):
        return None
    if not any(abs(x) > near for x in want):
        return None
    if shape == want_shape:
        if _close([-x for x in have], want, near):
            return "the sign is reversed"
        factor = _factor(have, want)
        # Any wrong number is a multiple of the right one: only the usual ones are named.
        usual = (2, 0.5, 4, 0.25, -2, -0.5)
        if factor is not None and len(want) == 1:
            factor = next((u for u in usual if abs(factor - u) < NEAR * abs(u)), None)
        if factor is not None and _close(have, [factor * x for x in want], near * max(1.0, abs(factor))):
            return f"yours is {factor:.6g} times as large"
    if len(shape) >= 2 and shape[:-2] == want_shape[:-2] and shape[-2:] == want_shape[-2:][::-1]:
        turned = _transposed(have, shape)
        if _close(turned, want, near):
            return "yours is the transpose"
        if _close([-x for x in turned], want, near):
            return "yours is the transpose with the sign reversed"
    if shape != want_shape and _close(have, want, near):
        return "the numbers are right, only the shape is not"
    if len(want) > 1 and not _close(have, want, near) and _close(sorted(have), sorted(want), near):
        return "these are the right numbers in another order"
    return None


def _close(have, want, allowed):
    return len(have) == len(want) and all(abs(x - y) <= allowed for x, y in zip(have, want, strict=True))


def _factor(have, want):
    """The number f with have = f * want by least squares; None if it is 0 or 1."""
    square = math.fsum(y * y for y in want)
    factor = math.fsum(x * y for x, y in zip(have, want, strict=True)) / square if square else 0.0
    return factor if math.isfinite(factor) and min(abs(factor), abs(factor - 1)) > NEAR else None


def _transposed(have, shape):
    rows, columns = shape[-2:]
    block = rows * columns
    starts = range(0, len(have), block)
    return [have[k + i * columns + j] for k in starts for j in range(columns) for i in range(rows)]


def _index(position, shape):
    index = []
    for size in reversed(shape):
        position, rest = divmod(position, size)
        index.append(rest)
    return "[" + ", ".join(map(str, reversed(index))) + "]"


def _flat(value):
    """The numbers of an array in row order, and its shape; TypeError unless they are real numbers."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().resolve_conj().numpy()
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in "fiu":
            raise TypeError(str(value.dtype))
        value, shape = (np.ndarray if isinstance(value, np.ndarray) else np.generic).tolist(value), tuple(value.shape)
    elif isinstance(value, list | tuple):
        shape = _shape(value)
    else:
        shape = ()
    flat = []
    _collect(value, flat)
    if len(flat) != math.prod(shape):
        raise TypeError("ragged")
    return flat, shape


def _shape(value):
    if not isinstance(value, list | tuple):
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            return tuple(value.shape)
        return ()
    inner = {_shape(one) for one in value}
    if len(inner) > 1:
        raise TypeError("ragged")
    return (len(value), *(inner.pop() if inner else ()))


def _collect(value, flat):
    if isinstance(value, np.ndarray):
        value = np.ndarray.tolist(value)
    if isinstance(value, list | tuple):
        for one in value:
            _collect(one, flat)
    elif isinstance(value, float):
        flat.append(float.__add__(value, 0.0))
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        flat.append(float(int(value)))
    elif isinstance(value, np.floating):
        flat.append(float(np.generic.item(value)))
    else:
        raise TypeError(type(value).__name__)


def _single(value):
    return str(getattr(value, "dtype", "")).endswith(("float32", "float16"))


def _kind(value):
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if callable(value):
        return f"the function {getattr(value, '__name__', '')}".strip()
    return f"{type(value).__name__} {value!r}"[:80]
