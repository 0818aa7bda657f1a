"""The embedded weather record: the committed bytes, what they hold, and that the script makes them again."""

import csv
import hashlib
import os
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import make_weather_extract
import numpy as np
import pytest

from residual_gd.data import MAST_EXTRACT, MAST_EXTRACT_SHA256
from residual_gd.experiments.weather import load_embedded

WHEEL = "brightwind-2.7.0-py3-none-any.whl"


def test_committed_bytes():
    data = MAST_EXTRACT.read_bytes()
    assert hashlib.sha256(data).hexdigest() == MAST_EXTRACT_SHA256
    assert len(data) <= 1_000_000
    page = MAST_EXTRACT.with_name("README.md").read_text(encoding="utf-8")
    assert MAST_EXTRACT_SHA256 in page
    assert make_weather_extract.TABLE_SHA256 in page
    assert "Copyright (c) 2024 Stephen Holleran" in page


def test_shape_contiguity_and_ranges():
    record = load_embedded()
    assert record.values.shape == (18576, 6)
    assert record.names == ("p", "T", "rh", "wv", "wd_sin", "wd_cos")
    assert np.all(np.diff(record.times) == np.timedelta64(10, "m"))
    assert np.isfinite(record.values).all()
    assert record.report.gaps == () and record.report.faults == {} and record.report.done == ()
    assert record.column("p").min() >= make_weather_extract.LOWEST_PRESSURE
    assert np.abs(np.diff(record.column("p"))).max() <= make_weather_extract.LARGEST_PRESSURE_STEP
    assert record.column("rh").min() >= 0 and record.column("rh").max() == 100
    np.testing.assert_allclose(record.column("wd_sin") ** 2 + record.column("wd_cos") ** 2, 1.0, atol=2e-3)


def test_no_hour_of_frozen_wind():
    record = load_embedded()
    wind = record.column("wv")
    windows = np.lib.stride_tricks.sliding_window_view(wind, make_weather_extract.FROZEN)
    assert not np.any(np.ptp(windows, axis=1) == 0)


def table(rows):
    """Source rows (time, pressure, speed, direction) as the script reads them."""
    names = ("Timestamp", "P2m", "Spd40mN", "Dir38mS")
    return [dict(zip(names, map(str, row), strict=True)) for row in rows]


def clean_rows(count):
    start = datetime(2017, 1, 1)
    return [(start + i * timedelta(minutes=10), 960, 5 + i / 100, (3 * i) % 360) for i in range(count)]


def test_the_script_sees_every_kind_of_fault():
    stretch = make_weather_extract.longest_clean_stretch
    assert stretch(table(clean_rows(100)), []) == (0, 100)

    rows = clean_rows(100)
    rows[40] = (rows[40][0], 899, *rows[40][2:])
    assert stretch(table(rows), []) == (41, 100)

    rows = [row if i < 30 else (row[0], 966, *row[2:]) for i, row in enumerate(clean_rows(100))]
    assert stretch(table(rows), []) == (30, 100)

    rows = clean_rows(60) + clean_rows(100)[63:]
    assert stretch(table(rows), []) == (0, 60)

    for column in (2, 3):
        for length, expected in ((5, (0, 100)), (6, (26, 100))):
            rows = clean_rows(100)
            for i in range(20, 20 + length):
                rows[i] = (*rows[i][:column], 7.5, *rows[i][column + 1 :])
            assert stretch(table(rows), []) == expected

    ice = {"Start": "2017-01-01 01:00", "Stop": "2017-01-01 02:00:00"}
    assert stretch(table(clean_rows(100)), [ice | {"Sensor": "Dir"}]) == (13, 100)
    assert stretch(table(clean_rows(100)), [ice | {"Sensor": "Dir58mS"}]) == (0, 100)


def test_another_table_is_refused(tmp_path):
    wheel = tmp_path / WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(make_weather_extract.TABLE, "Timestamp,P2m\n")
        archive.writestr(make_weather_extract.CLEANING, "Sensor,Start,Stop,Reason\n")
    with pytest.raises(ValueError, match="sha256"):
        make_weather_extract.extract(wheel)


def test_the_script_makes_the_committed_bytes():
    """Needs the wheel in brightwind/ under the folder that RESIDUAL_GD_DATA names."""
    wheel = Path(os.environ.get("RESIDUAL_GD_DATA", ""), "brightwind", WHEEL)
    if not wheel.exists():
        pytest.skip(f"{WHEEL} is not here")
    data = make_weather_extract.extract(wheel)
    assert data == MAST_EXTRACT.read_bytes()
    assert len(list(csv.reader(data.decode().splitlines()))) == 18577
