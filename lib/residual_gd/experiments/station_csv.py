"""Read the CSV files of the Jena weather station, in all published formats, and report what was found in them.

The files of 2004-2016 write 01.01.2009 00:10:00 and have up to 14 value columns; the later yearly files write
2020-01-01 00:10:00, have 21, and often carry damaged bytes where a unit had a superscript or a Greek letter.
"""

import csv
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path

import numpy as np

from ..validation import one_of, require

FAULT = -9999.0  # what the station writes when a sensor gives no value

UNITS = {
    "p": "mbar", "T": "degC", "Tpot": "K", "Tdew": "degC", "rh": "%",
    "VPmax": "mbar", "VPact": "mbar", "VPdef": "mbar", "sh": "g/kg", "H2OC": "mmol/mol", "rho": "g/m**3",
    "wv": "m/s", "max. wv": "m/s", "wd": "deg", "rain": "mm", "raining": "s",
    "SWDR": "W/m2", "PAR": "umol/m2/s", "max. PAR": "umol/m2/s", "Tlog": "degC", "OT": "ppm", "CO2": "ppm",
    "wd_sin": "1", "wd_cos": "1",
}  # fmt: skip


@dataclass(frozen=True)
class DataReport:
    """What a file contained and what reading it changed. ``print(report)`` shows it as a small table.

    rows_read, rows : records in the file, and kept
    columns : (name, unit) of each column kept
    first, last, step : first and last time stamp, and the commonest time between two
    faults : how many values each column lacks, for the columns that lack any
    repeated, out_of_order : records dropped because their time stamp had come before; places where time went backwards
    gaps, missing : (stamp before, stamp after) wherever neighbours are not one step apart; records that would fill them
    damaged : header fields with broken characters
    done : what was changed, in words
    """

    source: str
    rows_read: int
    rows: int
    columns: tuple[tuple[str, str], ...]
    first: np.datetime64
    last: np.datetime64
    step: np.timedelta64
    faults: Mapping[str, int]
    repeated: int
    out_of_order: int
    gaps: tuple[tuple[np.datetime64, np.datetime64], ...]
    missing: int
    damaged: tuple[str, ...]
    done: tuple[str, ...]

    def __str__(self):
        gaps = "none"
        if self.gaps:
            before, after = max(self.gaps, key=lambda gap: gap[1] - gap[0])
            longest = f"the longest from {_minute(before)} to {_minute(after)}"
            gaps = f"{len(self.gaps):,}, {self.missing:,} records missing, {longest}"
        lines = [
            ("source", self.source),
            ("records", f"{self.rows_read:,} read, {self.rows:,} kept, one every {self.step.item()}"),
            ("time", f"{_minute(self.first)} to {_minute(self.last)}"),
            ("columns", ", ".join(f"{name} ({unit})" for name, unit in self.columns)),
            ("faults", ", ".join(f"{name} {count:,}" for name, count in self.faults.items()) or "none"),
            ("repeated", f"{self.repeated:,} time stamps; time goes backwards {self.out_of_order:,} times"),
            ("gaps", gaps),
            ("damaged", ", ".join(map(repr, self.damaged)) or "none"),
            ("done", "; ".join(self.done) or "nothing changed"),
        ]
        return "\n".join(f"{label:<9} {text}" for label, text in lines)


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """Records of a weather station in order of time; shown by its report.

    times : (T,) datetime64[s], strictly increasing
    values : (T, k) float64, NaN where a sensor gave no value
    names, units : k column names and their units
    """

    times: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    report: DataReport

    def __repr__(self):
        return str(self.report)

    def column(self, name: str) -> np.ndarray:
        """The values (T,) of one column; ValueError for an unknown name."""
        return self.values[:, self.names.index(one_of(name, self.names, "name"))]


def read_station_csv(path: str | Path, source: str | None = None) -> Record:
    """Read one file of the station.

    Sensor faults (-9999) become NaN, the wind direction becomes its sine and cosine, records are put in order of
    time, and of records with the same time stamp the first is kept. Gaps stay gaps. ``record.report`` counts it all.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        Anything else is wrong; the message names the file, the first bad line, what was expected and what came.
    """
    require(isinstance(path, str | Path), "path", "the path of a CSV file", repr(path))
    path = Path(path)
    require(not path.is_dir(), str(path), "a CSV file", "a folder")
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a CSV file of the weather station, got no such file")
    with path.open("rb") as file:
        require(b"\0" not in file.read(4096), f"{path}, line 1", "a header in plain text", "binary data")
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        names, damaged, times, values = _parse(path, file)
    return _tidy(path, source or path.name, names, damaged, times, values)


def _parse(path, file):
    """Header and records as they stand in the file: names, damaged header fields, times (R,), values (R, k)."""
    reader = csv.reader(file)
    times, values = [], array("d")
    line = 1
    try:
        names, damaged = _header(f"{path}, line 1", next(reader, []))
        line = reader.line_num + 1
        for row in reader:
            if row:
                if len(row) != len(names) + 1:
                    require(False, f"{path}, line {line}", f"{len(names) + 1} fields", f"{len(row)}")
                try:
                    times.append(_time(row[0]))
                    numbers = list(map(float, row[1:]))
                    sound = isfinite(sum(numbers))
                except ValueError:
                    sound = False
                if not sound:
                    _explain(f"{path}, line {line}", names, row)
                values.extend(numbers)
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{path}, line {line}: expected comma-separated fields, got {error}") from None
    require(times, f"{path}, line {line}", "records after the header", "the end of the file")
    values = np.frombuffer(values).reshape(len(times), len(names)).copy()
    return names, damaged, np.array(times, dtype="datetime64[s]"), values


def _header(where, fields):
    """Column names from fields such as 'T (degC)', and the fields with damaged characters."""
    require(fields, where, "a header that begins with 'Date Time' or 'date'", "an empty file or line")
    first = fields[0].strip()
    expected = "a header of comma-separated fields that begins with 'Date Time' or 'date'"
    require(first.lower() in ("date time", "date"), where, expected, _short(first))
    names = []
    for field in fields[1:]:
        name, unit = re.fullmatch(r"\s*(.*?)\s*(?:\((?:.*, )?(.*?)\))?\s*", field, re.DOTALL).groups()
        require(name in UNITS, where, "columns of the station (" + ", ".join(UNITS) + ")", _short(field))
        # a damaged or non-ASCII character of the unit stands for up to three characters of its plain spelling
        pattern = ".{0,3}".join(map(re.escape, re.split(r"[^\x00-\x7f]+", unit or UNITS[name])))
        require(re.fullmatch(pattern, UNITS[name]), where, f"column {name} in {UNITS[name]}", _short(field))
        require(name not in names, where, "each column once", f"{name} twice")
        names.append(name)
    require("T" in names, where, "a temperature column 'T (degC)'", _short(", ".join(names)))
    damaged = tuple(field for field in fields if re.search(r"[^\x00-\x7f²³µμ°]", field))
    return tuple(names), damaged


def _time(text):
    """The time stamp of a record, in either format; ValueError when it is in neither."""
    if text[2:3] == text[5:6] == ".":
        text = f"{text[6:10]}-{text[3:5]}-{text[:2]}{text[10:]}"
    # fromisoformat alone would accept other ISO forms, such as weeks or time zones
    if len(text) != 19 or text[4] != "-" or text[7] != "-" or text[10] != " ":
        raise ValueError
    return datetime.fromisoformat(text)


def _explain(where, names, row):
    """Raise the ValueError for the first field of ``row`` that can't be read."""
    try:
        _time(row[0])
    except ValueError:
        require(False, where, "a time stamp DD.MM.YYYY HH:MM:SS or YYYY-MM-DD HH:MM:SS", _short(row[0]))
    for name, field in zip(names, row[1:], strict=True):
        try:
            finite = isfinite(float(field))
        except ValueError:
            finite = False
        require(finite, where, f"a finite number in column {name}", _short(field))


def _tidy(path, source, names, damaged, times, values):
    """Order the records, drop repeated ones, mark the faults, and write the report."""
    done = []
    rows_read = len(times)
    out_of_order = int(np.sum(np.diff(times) < np.timedelta64(0, "s")))
    if out_of_order:
        done.append("records put in order of time")
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]

    again = np.concatenate([[False], times[1:] == times[:-1]])
    if again.any():
        other = int(np.sum(np.any(values[1:] != values[:-1], axis=1) & again[1:]))
        done.append(
            f"of records with the same time stamp the first kept ({other:,} of the dropped ones had other values)"
        )
        times, values = times[~again], values[~again]
    require(len(times) > 1, f"{path}", "at least two time stamps", "one")

    fault = values == FAULT
    values[fault] = np.nan
    faults = {name: int(count) for name, count in zip(names, fault.sum(axis=0), strict=True) if count}
    if faults:
        done.append("sensor faults (-9999) marked as missing")
    got = f"a sensor fault (-9999) in all {len(times):,} records"
    require(not fault[:, names.index("T")].all(), f"{path}, line 2", "values of the temperature", got)

    if "wd" in names:
        angle = np.radians(values[:, names.index("wd")])
        values = np.column_stack([np.delete(values, names.index("wd"), axis=1), np.sin(angle), np.cos(angle)])
        names = (*(name for name in names if name != "wd"), "wd_sin", "wd_cos")
        done.append("wind direction turned into its sine and cosine")
    if damaged:
        done.append("damaged units replaced by the station's")

    differences = np.diff(times)
    sizes, counts = np.unique(differences, return_counts=True)
    step = sizes[np.argmax(counts)]
    gaps = np.flatnonzero(differences != step)
    units = tuple(UNITS[name] for name in names)
    report = DataReport(
        source=source,
        rows_read=rows_read,
        rows=len(times),
        columns=tuple(zip(names, units, strict=True)),
        first=times[0],
        last=times[-1],
        step=step,
        faults=faults,
        repeated=int(again.sum()),
        out_of_order=out_of_order,
        gaps=tuple((times[i], times[i + 1]) for i in gaps),
        missing=int(np.sum(np.maximum(np.rint(differences[gaps] / step) - 1, 0))),
        damaged=damaged,
        done=tuple(done),
    )
    return Record(times, values, names, units, report)


def _minute(time):
    return str(time)[:16].replace("T", " ")


def _short(text):
    text = text if len(text) <= 60 else text[:57] + "..."
    return repr(text)
