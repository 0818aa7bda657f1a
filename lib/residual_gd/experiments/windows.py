"""Windows of a weather record: inputs X (P, n, d) and targets Y (P, n, c) for the network of the book.

A window has n steps, ``stride`` records apart. At each step the network sees the standardized columns and
should give the target one step later. No window crosses a gap or touches a fault.

The settings of chapter 7, for a ``record`` and a seeded generator ``rng``:

    W1 (weather-like)   windows(record, samples=16, feature_map=lambda E: linear_embedding(E, 32, rng))
    W2 (theory-like)    windows(record, samples=4, feature_map=lambda E: fourier_features(E, 64, 10.0, rng))
    certificates        windows(record, samples=8, stride=6, feature_map=lambda E: fourier_features(E, 512, 3.0, rng))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..validation import finite_array, positive_float, positive_int, require
from .station_csv import DataReport, Record


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """P windows of n steps cut from a record.

    X : (P, n, d) inputs: the features, or their image under a feature map
    Y : (P, n, c) standardized targets, one step ahead
    features : (P, n, k) standardized columns
    times : (P, n + 1) time stamps; the targets of step i belong to times[:, i + 1]
    names, means, scales : the k columns, with features = (values - means) / scales
    target_names, target_means, target_scales : the same for the c targets
    report : what reading the record found
    """

    X: np.ndarray
    Y: np.ndarray
    features: np.ndarray
    times: np.ndarray
    names: tuple[str, ...]
    means: np.ndarray
    scales: np.ndarray
    target_names: tuple[str, ...]
    target_means: np.ndarray
    target_scales: np.ndarray
    report: DataReport

    @property
    def repeated_rows(self) -> int:
        """How many of the N = P n input rows repeat an earlier row because windows share records."""
        return self.times[:, :-1].size - np.unique(self.times[:, :-1]).size

    def in_units(self, F: np.ndarray) -> np.ndarray:
        """Outputs F (..., c) of the network in the units of the targets (degC for the temperature)."""
        return finite_array(F, "F", (..., len(self.target_names))) * self.target_scales + self.target_means

    def __repr__(self):
        (P, n, d), c = self.X.shape, self.Y.shape[-1]
        step = self.times[0, 1] - self.times[0, 0]
        lines = (
            ("windows", f"{P} of {n} steps, one every {step.item()}; N = {P * n} rows"),
            ("time", f"{self.times.min().item()} to {self.times.max().item()}"),
            ("inputs", f"X ({P}, {n}, {d}) from {', '.join(self.names)}"),
            ("targets", f"Y ({P}, {n}, {c}): {', '.join(self.target_names)} one step ahead"),
            ("repeated", f"{self.repeated_rows} rows"),
            ("source", self.report.source),
        )
        return "\n".join(f"{label:<9} {text}" for label, text in lines)


def windows(
    record: Record,
    *,
    samples: int = 16,
    steps: int = 8,
    stride: int = 18,
    columns: Sequence[str] | None = None,
    target: str | Sequence[str] = "T",
    starts: str | Sequence[int] = "consecutive",
    rng: np.random.Generator | None = None,
    feature_map: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Windows:
    """Cut windows from a record and standardize them.

    Parameters
    ----------
    record : the weather record
    samples, steps, stride : P windows of n steps, ``stride`` records apart (8 steps of 18 ten-minute records are a day)
    columns : names of the columns the network sees; all by default
    target : name or names of what it should give one step ahead
    starts : "consecutive", "random" (needs ``rng``) or indices of records
        The first two give windows whose inputs share no record. Indices are taken as they are, one window each, so
        that windows may overlap on purpose; ``samples`` does not count then.
    feature_map : a function of the features (P, n, k) that gives X (P, n, d), such as
        ``lambda E: fourier_features(E, 64, 10.0, rng)``; by default X is the features.

    Means and scales are those of the windows: each feature, and each target, has mean 0 and mean square 1 over the
    N = P n rows.

    Raises
    ------
    ValueError
        Bad arguments; a column that does not vary over the windows; fewer windows without gap and fault than asked for.
    """
    require(isinstance(record, Record), "record", "a Record, as load_embedded() gives", type(record).__name__)
    samples, steps = positive_int(samples, "samples"), positive_int(steps, "steps")
    stride = positive_int(stride, "stride")
    is_map = feature_map is None or callable(feature_map)
    require(is_map, "feature_map", "a function of the features", type(feature_map).__name__)
    names = record.names if columns is None else _names(record, columns, "columns")
    target_names = _names(record, target, "target")

    offsets = stride * np.arange(steps + 1)
    possible = _possible_starts(record, offsets, {*names, *target_names})
    rows = _choose(record, starts, possible, samples, steps * stride, rng)[:, None] + offsets

    features, means, scales = _standardize(record, names, rows[:, :-1])
    Y, target_means, target_scales = _standardize(record, target_names, rows[:, 1:])
    X = features if feature_map is None else finite_array(feature_map(features), "feature_map", (len(rows), steps, "d"))
    return Windows(
        X=X,
        Y=Y,
        features=features,
        times=record.times[rows],
        names=names,
        means=means,
        scales=scales,
        target_names=target_names,
        target_means=target_means,
        target_scales=target_scales,
        report=record.report,
    )


def linear_embedding(features: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """A fixed random linear map of the features plus sinusoidal positions: (P, n, k) -> (P, n, width).

    Row i is x_i E + p_i with E (k, width) of entries N(0, 1/k), and p_i = (sin(i w_j), cos(i w_j))_j with
    w_j = 10000^(-2j/width): the positions of the original Transformer. ``width`` is even.
    """
    features = finite_array(features, "features", ("P", "n", "k"))
    width = positive_int(width, "width")
    require(width % 2 == 0, "width", "an even number", width)
    _need_generator(rng)
    _, n, k = features.shape
    E = rng.standard_normal((k, width)) / np.sqrt(k)
    angles = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    positions = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, width)
    return features @ E + positions


def fourier_features(features: np.ndarray, width: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Random Fourier features: (P, n, k) -> (P, n, width).

    Row i is sqrt(2) cos(scale x_i E + b) with E (k, width) of entries N(0, 1) and b uniform in [0, 2 pi). The inner
    product of two rows, over ``width``, is about exp(-scale^2 |x - x'|^2 / 2): a larger scale tells nearby records
    apart better.
    """
    features = finite_array(features, "features", ("P", "n", "k"))
    width, scale = positive_int(width, "width"), positive_float(scale, "scale")
    _need_generator(rng)
    E = rng.standard_normal((features.shape[-1], width))
    b = rng.uniform(0.0, 2.0 * np.pi, width)
    return np.sqrt(2.0) * np.cos(scale * features @ E + b)


def _names(record, names, argument):
    """``names`` as a tuple of columns of the record."""
    require(isinstance(names, str | Sequence), argument, "names of columns", repr(names))
    names = (names,) if isinstance(names, str) else tuple(names)
    require(names, argument, "at least one column", "none")
    for name in names:
        require(name in record.names, argument, "columns among " + ", ".join(record.names), repr(name))
    require(len(set(names)) == len(names), argument, "each column once", ", ".join(names))
    return names


def _possible_starts(record, offsets, names):
    """Indices of the records where a window can begin: no gap inside, no fault at any of its steps."""
    room = len(record.times) - offsets[-1]
    require(room > 0, "record", f"at least {offsets[-1] + 1} records for one window", len(record.times))
    first = np.arange(room)
    jumps = np.concatenate([[0], np.cumsum(np.diff(record.times) != record.report.step)])
    whole = jumps[first + offsets[-1]] == jumps[first]
    known = np.all([np.isfinite(record.column(name)) for name in names], axis=0)
    return first[whole & known[first[:, None] + offsets].all(axis=1)]


def _choose(record, starts, possible, samples, span, rng):
    """The starts of the windows, as ``windows`` explains."""
    if isinstance(starts, str):
        require(starts in ("consecutive", "random"), "starts", "'consecutive', 'random' or indices", repr(starts))
        if starts == "random":
            _need_generator(rng)
            possible = rng.permutation(possible)
        chosen = []
        free = np.ones(len(record.times), dtype=bool)
        for start in possible:
            if free[start] and free[start + span - 1]:
                free[start : start + span] = False
                chosen.append(start)
            if len(chosen) == samples:
                break
        faults = ", ".join(f"{name} {count}" for name, count in record.report.faults.items()) or "none"
        got = f"{len(chosen)} (gaps: {len(record.report.gaps)}; faults: {faults})"
        expected = f"room for {samples} windows of {span} records that share none, without gap and fault"
        require(len(chosen) == samples, "record", expected, got)
        return np.sort(chosen)
    indices = finite_array(starts, "starts", ("P",))
    require(len(indices) > 0 and np.all(indices == np.rint(indices)), "starts", "indices of records", repr(starts)[:60])
    indices = indices.astype(int)
    for bad in indices[~np.isin(indices, possible)][:1]:
        require(False, "starts", "windows without gap and fault inside the record", f"one that begins at record {bad}")
    return indices


def _standardize(record, names, rows):
    """(values - mean) / scale over the given rows (P, n), for each column: (P, n, k), and the k means and scales."""
    values = np.stack([record.column(name)[rows] for name in names], axis=-1)
    means, scales = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    for name, mean, low, high in zip(names, means, values.min(axis=(0, 1)), values.max(axis=(0, 1)), strict=True):
        require(low < high, "columns", "columns that vary over the windows", f"{name} = {mean:g} everywhere")
    return (values - means) / scales, means, scales


def _need_generator(rng):
    require(isinstance(rng, np.random.Generator), "rng", "a seeded numpy Generator", type(rng).__name__)
