"""The station's CSV files: published formats are read, defects reported, bad files refused by line."""

from pathlib import Path

import numpy as np
import pytest

from residual_gd.experiments import weather
from residual_gd.experiments.station_csv import read_station_csv

OLD_HEADER = (
    '"Date Time","p (mbar)","T (degC)","Tpot (K)","Tdew (degC)","rh (%)","VPmax (mbar)","VPact (mbar)","VPdef (mbar)",'
    '"sh (g/kg)","H2OC (mmol/mol)","rho (g/m**3)","wv (m/s)","max. wv (m/s)","wd (deg)"'
)
OLD_ROW = "{time},996.5,{T},265.4,-8.9,93.3,3.33,3.11,0.22,1.94,3.12,1307.7,{wv},1.75,{wd}"
NEW_HEADER = (
    b"date,p (mbar),T (degC),Tpot (K),Tdew (degC),rh (%),VPmax (mbar),VPact (mbar),VPdef (mbar),sh (g/kg),"
    b"H2OC (mmol/mol),rho (g/m**3),wv (m/s),max. wv (m/s),wd (deg),rain (mm),raining (s),SWDR (W/m\xb2),"
    b"PAR (\xb5mol/m\xb2/s),max. PAR (\xb5mol/m\xb2/s),Tlog (degC),OT"
)
NEW_ROW = (
    "{time},1008.9,{T},273.2,-0.7,86.1,6.43,5.54,0.89,3.42,5.49,1280.6,1.02,1.60,224.3,0,0,0.0,{par},0.0,11.45,428.1"
)


def old_file(rows):
    """A file of 2009-2016: rows are (time, T, wv, wd)."""
    text = [OLD_ROW.format(time=time, T=T, wv=wv, wd=wd) for time, T, wv, wd in rows]
    return "\n".join([OLD_HEADER, *text]) + "\n"


def times(count, first=0):
    """``count`` stamps of January 2009, ten minutes apart."""
    return [f"01.01.2009 {i // 6 % 24:02d}:{i % 6}0:00" for i in range(first, first + count)]


GOOD = old_file([(time, i, 1.0, 90.0) for i, time in enumerate(times(6))])


# --- what is read --------------------------------------------------------------------------------------------


def test_old_format(tmp_path):
    path = tmp_path / "jena.csv"
    path.write_text(GOOD)
    record = weather.load_jena(path)
    assert record.names[:2] == ("p", "T") and record.names[-2:] == ("wd_sin", "wd_cos") and "wd" not in record.names
    assert record.units[record.names.index("rho")] == "g/m**3"
    np.testing.assert_array_equal(record.column("T"), range(6))
    np.testing.assert_allclose(record.column("wd_sin"), 1.0)
    np.testing.assert_allclose(record.column("wd_cos"), 0.0, atol=1e-15)
    assert record.times[1] == np.datetime64("2009-01-01T00:10:00")
    report = record.report
    assert (report.rows_read, report.rows, report.repeated, report.out_of_order, report.missing) == (6, 6, 0, 0, 0)
    assert (report.gaps, report.faults, report.damaged) == ((), {}, ())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig", "replaced"])
def test_later_format_with_damaged_units(tmp_path, encoding):
    if encoding == "replaced":  # an earlier program wrote U+FFFD for each damaged byte
        header = NEW_HEADER.decode("utf-8", "replace").encode()
    else:
        header = NEW_HEADER.decode("latin-1").encode(encoding)
    rows = [NEW_ROW.format(time=f"2020-02-29 00:{i}0:00", T=i, par=-9999.0 if i == 3 else 1.5) for i in range(6)]
    path = tmp_path / "2020.csv"
    path.write_bytes(b"\r\n".join([header, *(row.encode() for row in rows)]))
    record = weather.load_jena(path)
    assert len(record.names) == 22  # 21 columns, of which the direction becomes two
    assert record.units[record.names.index("PAR")] == "umol/m2/s"
    assert record.units[record.names.index("OT")] == "ppm"
    assert record.times[0] == np.datetime64("2020-02-29T00:00:00")
    assert record.report.faults == {"PAR": 1}
    assert np.isnan(record.column("PAR")[3])
    assert len(record.report.damaged) == (3 if encoding in ("latin-1", "replaced") else 0)
    assert ("damaged" in " ".join(record.report.done)) == bool(record.report.damaged)


def test_other_spellings_of_the_later_header(tmp_path):
    path = tmp_path / "s.csv"
    header = 'date,T (°C),"OT (CO2, ppm)",rho (g/m³)'
    rows = "2020-01-01 00:00:00,1,400,1.2\n2020-01-01 00:10:00,2,401,1.2\n\n"  # a blank line at the end does no harm
    path.write_text(f"{header}\n{rows}", encoding="utf-8")
    record = read_station_csv(path)
    assert record.names == ("T", "OT", "rho") and record.units == ("degC", "ppm", "g/m**3")


def test_faults_repeats_gaps_and_disorder_are_counted(tmp_path):
    stamp = times(12)
    rows = [(time, i, 1.0, 0.0) for i, time in enumerate(stamp)]
    rows[2] = (stamp[2], 2, -9999.0, -9999)  # both wind sensors at fault
    del rows[7:9]  # two records missing
    rows[4], rows[5] = rows[5], rows[4]  # time goes backwards once here ...
    rows.insert(4, (stamp[3], 77, 1.0, 0.0))  # ... and a stamp comes twice with another value
    rows.append(rows[-1])  # and once with the same
    path = tmp_path / "jena.csv"
    path.write_text(old_file(rows))
    record = read_station_csv(path)
    report = record.report
    np.testing.assert_array_equal(record.column("T"), [0, 1, 2, 3, 4, 5, 6, 9, 10, 11])
    assert (report.rows_read, report.rows, report.repeated, report.out_of_order) == (12, 10, 2, 1)
    assert report.faults == {"wv": 1, "wd": 1}
    assert all(np.isnan(record.column(name)[2]) for name in ("wv", "wd_sin", "wd_cos"))
    assert np.isfinite(np.delete(record.values, 2, axis=0)).all()
    assert report.gaps == ((np.datetime64("2009-01-01T01:00:00"), np.datetime64("2009-01-01T01:30:00")),)
    assert report.missing == 2 and report.step == np.timedelta64(600, "s")
    assert any("1 of the dropped ones had other values" in line for line in report.done)
    text = str(report)
    assert "12 read, 10 kept" in text and "wv 1, wd 1" in text and "backwards 1" in text
    assert "1, 2 records missing, the longest from 2009-01-01 01:00 to 2009-01-01 01:30" in text


def test_a_later_year_with_all_its_defects(tmp_path):
    """A whole year, 52,704 records, with two days missing, a repeated hour and faulty sensors; then windows of it."""
    stamps = np.datetime64("2020-01-01T00:10:00") + np.arange(52_704) * np.timedelta64(10, "m")
    rows = []
    for i, stamp in enumerate(stamps):
        T = 10 - 12 * np.cos(2 * np.pi * i / 52_704) - 4 * np.cos(2 * np.pi * i / 144)
        rows.append(NEW_ROW.format(time=str(stamp).replace("T", " "), T=f"{T:.2f}", par=-9999.0 if i < 30 else i % 7))
    rows[20_000:20_006] = rows[19_994:20_000]
    del rows[30_000:30_288]
    path = tmp_path / "2020.csv"
    path.write_bytes(NEW_HEADER + b"\n" + "\n".join(rows).encode())
    record = weather.load_jena(path)
    report = record.report
    assert (report.rows_read, report.rows, report.repeated) == (52_416, 52_410, 6)
    assert (len(report.gaps), report.missing, report.out_of_order) == (2, 294, 1)
    assert report.faults == {"PAR": 30}
    found = weather.windows(record, samples=300, columns=["T", "PAR"])
    gap = stamps[30_000]
    assert not np.any((found.times[:, 0] < gap) & (found.times[:, -1] > gap))
    assert found.times.min() == stamps[30]
    with pytest.raises(ValueError, match=r"got p = 1008\.9 everywhere"):
        weather.windows(record)


def test_unknown_column():
    record = weather.load_embedded()
    with pytest.raises(ValueError, match=r"name: expected one of p, T, rh, .*, got 'wd'"):
        record.column("wd")


# --- what is refused -----------------------------------------------------------------------------------------


def with_line(number, text):
    lines = GOOD.splitlines()
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


LINE_4 = GOOD.splitlines()[3]
BAD_FILES = {
    "empty file": ("", r"line 1: expected a header .*, got an empty file"),
    "header only": (OLD_HEADER + "\n", r"line 2: expected records after the header, got the end of the file"),
    "no header": (GOOD.split("\n", 1)[1], r"line 1: expected a header .*, got '01.01.2009 00:00:00'"),
    "semicolons": (
        GOOD.replace(",", ";"),
        r"line 1: expected a header of comma-separated fields .*, got '\"?Date Time",
    ),
    "tabs": (GOOD.replace(",", "\t"), r"line 1: expected a header of comma-separated fields"),
    "unknown column": (
        GOOD.replace("rho (g/m**3)", "snow (cm)"),
        r"line 1: expected columns .*, got 'snow \(cm\)'",
    ),
    "wrong unit": (GOOD.replace("T (degC)", "T (degF)"), r"line 1: expected column T in degC, got 'T \(degF\)'"),
    "duplicate column": (GOOD.replace("Tdew (degC)", "T (degC)"), r"line 1: expected each column once, got T twice"),
    "no temperature": ("date,p (mbar)\n2020-01-01 00:00:00,1\n", r"line 1: expected a temperature .*, got 'p'"),
    "too few fields": (with_line(4, LINE_4.rsplit(",", 1)[0]), r"line 4: expected 15 fields, got 14"),
    "too many fields": (with_line(4, LINE_4 + ",1"), r"line 4: expected 15 fields, got 16"),
    "decimal comma": (with_line(4, LINE_4.replace("996.5", "996,5")), r"line 4: expected 15 fields, got 16"),
    "cut in the middle": (GOOD[:-30], r"line 7: expected 15 fields, got 1\d"),
    "open quote": (with_line(4, '"' + LINE_4), r"line 4: expected 15 fields, got 1"),
    "not a number": (
        with_line(4, LINE_4.replace("996.5", "high")),
        r"line 4: expected a finite number in column p, got 'hi",
    ),
    "no value": (with_line(4, LINE_4.replace("996.5", "")), r"line 4: expected a finite number in column p, got ''"),
    "nan": (
        with_line(4, LINE_4.replace("265.4", "nan")),
        r"line 4: expected a finite number in column Tpot, got 'nan'",
    ),
    "first of two": (with_line(4, LINE_4.replace("996.5", "inf")) + "and more", r"line 4: .*column p, got 'inf'"),
    "bad month": (
        with_line(4, LINE_4.replace(".01.", ".13.")),
        r"line 4: expected a time stamp .*'01.13.2009 00",
    ),
    "other date": (with_line(4, LINE_4.replace("01.01.2009 ", "2009/01/01 ")), r"line 4: expected a time stamp"),
    "date alone": (
        with_line(4, LINE_4.replace(" 00:20:00", "")),
        r"line 4: expected a time stamp .*'01.01.2009'",
    ),
    "time zone": (with_line(4, LINE_4.replace("20:00", "20:00+01:00")), r"line 4: .*time stamp"),
    "one record": ("\n".join(GOOD.splitlines()[:2]), r"expected at least two time stamps, got one"),
    "only faults": (
        old_file([(time, -9999, -9999, -9999) for time in times(4)]),
        r"line 2: expected values of the temperature, got a sensor fault \(-9999\) in all 4 records",
    ),
    "binary": (bytes(range(256)) * 8, r"line 1: expected a header in plain text, got binary data"),
    "bytes without zeros": (bytes(range(128, 256)) * 8, r"line 1: expected a header of comma-separated fields"),
    "utf-16": (GOOD.encode("utf-16"), r"line 1: expected a header in plain text, got binary data"),
    "huge field": (with_line(4, "1" * 200_000), r"line 4: expected comma-separated fields, got field larger"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_name_the_file_and_the_first_bad_line(tmp_path, kind):
    content, message = BAD_FILES[kind]
    path = tmp_path / "station.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as caught:
        weather.load_jena(path)
    assert str(caught.value).startswith(str(path))
    assert Path(caught.traceback[-1].path).name in ("validation.py", "station_csv.py")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"none.csv: expected a CSV file of the weather station, got no such file"
    ):
        weather.load_jena(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="expected a CSV file, got a folder"):
        weather.load_jena(tmp_path)
    with pytest.raises(ValueError, match="path: expected the path of a CSV file, got 3"):
        weather.load_jena(3)
    with pytest.raises(ValueError, match="cache: expected a folder, got 3"):
        weather.load_jena(cache=3)
