"""Windows of a weather record against a plain loop, with gaps and faults; the feature maps; what is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from residual_gd.experiments.station_csv import Record, read_station_csv
from residual_gd.experiments.weather import fourier_features, linear_embedding, load_embedded, windows


@pytest.fixture(scope="module")
def embedded():
    return load_embedded()


def patchy(tmp_path, seed, rows=400):
    """A record of random numbers with gaps and, in the column p, faults."""
    rng = np.random.default_rng(seed)
    lines = ["date,T (degC),p (mbar),rh (%)"]
    for i in np.flatnonzero(rng.random(rows) > 0.01):
        time = np.datetime64("2020-01-01T00:00:00") + i * np.timedelta64(600, "s")
        T, p, rh = rng.standard_normal(3)
        p = -9999.0 if rng.random() < 0.01 else p
        lines.append(f"{str(time).replace('T', ' ')},{T},{p},{rh}")
    path = tmp_path / f"{seed}.csv"
    path.write_text("\n".join(lines))
    return read_station_csv(path)


def good_starts(record, steps, stride, names):
    """By a plain loop: where a window without gap and fault can begin."""
    starts = []
    for i in range(len(record.times) - steps * stride):
        stamps = record.times[i : i + steps * stride + 1]
        whole = all(b - a == record.report.step for a, b in itertools.pairwise(stamps))
        values = [record.column(name)[i + k * stride] for name in names for k in range(steps + 1)]
        if whole and np.isfinite(values).all():
            starts.append(i)
    return starts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("steps", "stride"), [(1, 1), (3, 4), (4, 6)])
def test_windows_equal_the_plain_loop(tmp_path, seed, steps, stride):
    record = patchy(tmp_path, seed)
    good = good_starts(record, steps, stride, record.names)
    expected, end = [], 0
    for start in good:
        if start >= end:
            expected.append(start)
            end = start + steps * stride
    found = windows(record, samples=len(expected), steps=steps, stride=stride, target=["T", "rh"])
    n = steps
    for p, start in enumerate(expected):
        for i in range(n):
            row = start + i * stride
            assert found.times[p, i] == record.times[row] and found.times[p, i + 1] == record.times[row + stride]
            np.testing.assert_allclose(
                found.features[p, i] * found.scales + found.means, record.values[row], atol=1e-12
            )
            target = [record.column(name)[row + stride] for name in ("T", "rh")]
            np.testing.assert_allclose(found.in_units(found.Y[p, i]), target, atol=1e-12)
    assert found.X is found.features and found.repeated_rows == 0
    for array in (found.features, found.Y):
        np.testing.assert_allclose(array.mean(axis=(0, 1)), 0.0, atol=1e-12)
        np.testing.assert_allclose((array**2).mean(axis=(0, 1)), 1.0)
    with pytest.raises(
        ValueError, match=rf"record: expected room for {len(expected) + 1} windows .*, got {len(expected)} "
    ):
        windows(record, samples=len(expected) + 1, steps=steps, stride=stride)

    drawn = windows(record, samples=5, steps=steps, stride=stride, starts="random", rng=np.random.default_rng(seed))
    begin = np.searchsorted(record.times, drawn.times[:, 0])
    assert set(begin) <= set(good) and np.all(np.diff(begin) >= steps * stride)
    again = windows(record, samples=5, steps=steps, stride=stride, starts="random", rng=np.random.default_rng(seed))
    other = windows(
        record, samples=5, steps=steps, stride=stride, starts="random", rng=np.random.default_rng(seed + 99)
    )
    assert np.array_equal(drawn.times, again.times) and not np.array_equal(drawn.times, other.times)


def test_a_fault_in_an_unused_column_does_no_harm(tmp_path):
    record = patchy(tmp_path, 0)
    few = good_starts(record, 3, 4, ("T", "p"))
    more = good_starts(record, 3, 4, ("T", "rh"))
    only_more = sorted(set(more) - set(few))
    assert only_more
    chosen = [only_more[0], more[-1]]
    assert windows(record, steps=3, stride=4, starts=chosen, columns=["rh"]).X.shape == (2, 3, 1)
    with pytest.raises(ValueError, match=rf"starts: expected windows without gap .* begins at record {only_more[0]}"):
        windows(record, steps=3, stride=4, starts=chosen)


def test_the_two_settings_of_the_chapter(embedded):
    """Weather-like: N = 128 rows of width 32. Theory-like: N = 32 rows of width 64, of full row rank."""
    rng = np.random.default_rng(0)
    W1 = windows(embedded, samples=16, feature_map=lambda E: linear_embedding(E, 32, rng))
    assert W1.X.shape == (16, 8, 32) and W1.Y.shape == (16, 8, 1) and W1.features.shape == (16, 8, 6)
    assert W1.times[0, -1] - W1.times[0, 0] == np.timedelta64(24, "h")
    W2 = windows(embedded, samples=4, feature_map=lambda E: fourier_features(E, 64, 10.0, rng))
    assert np.linalg.matrix_rank(W2.X.reshape(32, 64)) == 32
    text = str(W1)
    assert "16 of 8 steps, one every 3:00:00; N = 128 rows" in text and "T one step ahead" in text


def test_hourly_windows_for_the_certificate(embedded):
    found = windows(
        embedded, samples=8, stride=6, feature_map=lambda E: fourier_features(E, 512, 3.0, np.random.default_rng(0))
    )
    assert found.X.shape == (8, 8, 512)
    assert np.unique(found.times[:, :-1]).size == 64
    assert np.linalg.matrix_rank(found.X.reshape(64, 512)) == 64


def test_overlap_on_purpose_repeats_rows(embedded):
    """Windows that share records have equal rows, in X too, so that X loses full row rank."""
    found = windows(
        embedded,
        stride=6,
        starts=[9000, 9012, 9600],
        feature_map=lambda E: fourier_features(E, 64, 3.0, np.random.default_rng(0)),
    )
    assert found.repeated_rows == 6
    np.testing.assert_array_equal(found.X[0, 2:], found.X[1, :-2])
    assert np.linalg.matrix_rank(found.X.reshape(24, 64)) == 18
    # shifted by half a step they overlap in time and share no record
    assert windows(embedded, stride=6, starts=[9000, 9003]).repeated_rows == 0


def test_linear_embedding_is_linear_plus_positions():
    rng = np.random.default_rng(1)
    E1, E2 = rng.standard_normal((2, 3, 5, 4))
    map_ = lambda E: linear_embedding(E, 6, np.random.default_rng(7))  # noqa: E731
    zero = map_(np.zeros((3, 5, 4)))
    np.testing.assert_allclose(map_(2.0 * E1 + E2) - zero, 2.0 * (map_(E1) - zero) + map_(E2) - zero, atol=1e-12)
    for i in range(5):
        for j in range(3):
            angle = i / 10000.0 ** (2 * j / 6)
            np.testing.assert_allclose(zero[:, i, 2 * j], np.sin(angle))
            np.testing.assert_allclose(zero[:, i, 2 * j + 1], np.cos(angle))
    wide = linear_embedding(E1, 20_000, rng) - linear_embedding(np.zeros_like(E1), 20_000, rng)
    np.testing.assert_allclose((wide**2).mean(axis=-1), (E1**2).mean(axis=-1), rtol=0.1)  # E of variance 1/k


def test_fourier_features_approximate_the_gaussian_kernel():
    E = np.random.default_rng(2).standard_normal((1, 4, 3))
    width = 200_000
    X = fourier_features(E, width, 0.7, np.random.default_rng(3))[0]
    distance = ((E[0, :, None] - E[0]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(X @ X.T / width, np.exp(-(0.7**2) * distance / 2), atol=0.015)
    assert np.abs(X).max() <= np.sqrt(2)


def test_constant_columns_are_refused(embedded):
    start = next(i for i in range(len(embedded.times)) if np.all(embedded.column("rh")[i : i + 49] == 100))
    with pytest.raises(
        ValueError, match="columns: expected columns that vary over the windows, got rh = 100 everywhere"
    ):
        windows(embedded, stride=6, starts=[start])
    windows(embedded, stride=6, starts=[start], columns=["T", "p", "wv"])
    flat = Record(embedded.times, np.full((len(embedded.times), 1), 0.1), ("T",), ("degC",), embedded.report)
    with pytest.raises(ValueError, match=r"T = 0\.1 everywhere"):  # although its standard deviation rounds to 1e-17
        windows(flat)


def test_gaps_in_every_window_and_records_too_short(tmp_path, embedded):
    lines = ["date,T (degC)"]
    for i in range(200):
        if i % 10 != 3:
            lines.append(f"2020-01-{1 + i // 144:02d} {i // 6 % 24:02d}:{i % 6}0:00,{i}")
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(
        ValueError, match=r"record: expected room for 16 windows of 48 .*, got 0 \(gaps: 20; faults: none\)"
    ):
        windows(read_station_csv(path), stride=6)
    short = replace(embedded, times=embedded.times[:144], values=embedded.values[:144])
    with pytest.raises(ValueError, match="record: expected at least 145 records for one window, got 144"):
        windows(short)
    longer = replace(embedded, times=embedded.times[:145], values=embedded.values[:145])
    assert windows(longer, samples=1, columns=["T"]).X.shape == (1, 8, 1)


BAD = {
    "no record": ({"record": 3}, "record: expected a Record, as load_embedded.. gives, got int"),
    "samples": ({"samples": 0}, "samples: expected an integer >= 1, got 0"),
    "steps": ({"steps": 2.5}, "steps: expected an integer >= 1, got 2.5"),
    "stride": ({"stride": -1}, "stride: expected an integer >= 1, got -1"),
    "unknown column": ({"columns": ["T", "snow"]}, "columns: expected columns among p, T, .*, got 'snow'"),
    "no column": ({"columns": []}, "columns: expected at least one column, got none"),
    "column twice": ({"columns": ["T", "T"]}, "columns: expected each column once, got T, T"),
    "columns no names": ({"columns": 3}, "columns: expected names of columns, got 3"),
    "unknown target": ({"target": "snow"}, "target: expected columns among p, T, .*, got 'snow'"),
    "unknown starts": ({"starts": "often"}, "starts: expected 'consecutive', 'random' or indices, got 'often'"),
    "no generator": ({"starts": "random"}, "rng: expected a seeded numpy Generator, got NoneType"),
    "a seed": ({"starts": "random", "rng": 0}, "rng: expected a seeded numpy Generator, got int"),
    "starts not whole": ({"starts": [0.5]}, "starts: expected indices of records"),
    "no starts": ({"starts": []}, "starts: expected indices of records"),
    "negative start": (
        {"starts": [-1]},
        "starts: expected windows .* inside the record, got one that begins at record -1",
    ),
    "start too late": ({"starts": [18576 - 144]}, "starts: expected windows .* begins at record 18432"),
    "too many": ({"samples": 130}, "record: expected room for 130 windows of 144 records .*, got 128"),
    "map of another shape": (
        {"feature_map": lambda E: E[:1]},
        r"feature_map: expected shape \(16, 8, d\), got \(1, 8, 6\)",
    ),
    "map no function": ({"feature_map": 3}, "feature_map: expected a function of the features, got int"),
    "odd width": (
        {"feature_map": lambda E: linear_embedding(E, 3, np.random.default_rng(0))},
        "width: expected an even",
    ),
    "no width": (
        {"feature_map": lambda E: fourier_features(E, 0, 1.0, np.random.default_rng(0))},
        "width: expected an integer",
    ),
    "no scale": (
        {"feature_map": lambda E: fourier_features(E, 8, 0.0, np.random.default_rng(0))},
        "scale: expected a finite",
    ),
    "map without generator": (
        {"feature_map": lambda E: fourier_features(E, 8, 1.0, 0)},
        "rng: expected a seeded numpy",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_arguments(embedded, kind):
    arguments, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        windows(**({"record": embedded} | arguments))


def test_outputs_in_units_have_the_right_shape(embedded):
    found = windows(embedded)
    with pytest.raises(ValueError, match=r"F: expected shape"):
        found.in_units(np.zeros((3, 2)))
