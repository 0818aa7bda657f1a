"""Recorded runs: checkpoints, resuming, manifests, and the records in results/ themselves."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from residual_gd.experiments import records, weather_records
from residual_gd.experiments.checkpoints import Checkpoint, CheckpointError, write_atomically
from residual_gd.experiments.run import main
from residual_gd.experiments.sweeps import Sweep, beta_sweep

CONFIGURATION = {"seeds": [0], "dtype": "float64", "device": "cpu"}
STORED = sorted(path.stem for path in records.RESULTS.glob("*.json"))
CHAPTER = Path(__file__).resolve().parents[1] / "chapters" / "07-weather.ipynb"


def count(upto, checkpoint):
    """A piece of work: counts, saving each number."""
    numbers = checkpoint.load() or []
    while len(numbers) < upto:
        numbers.append(len(numbers) / 3)
        checkpoint.save(numbers)
    return {"numbers": numbers}


def test_checkpoint_gives_back_what_was_saved(tmp_path):
    checkpoint = Checkpoint(tmp_path / "deep" / "c", {"a": 1})
    assert checkpoint.load() is None
    checkpoint.save({"W": np.arange(3.0)})
    assert np.array_equal(Checkpoint(tmp_path / "deep" / "c", {"a": 1}).load()["W"], np.arange(3.0))
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["c"]
    checkpoint.clear()
    assert checkpoint.load() is None


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "another file", "another configuration"])
def test_a_bad_checkpoint_is_refused_with_a_clear_error(tmp_path, damage):
    path = tmp_path / "c"
    Checkpoint(path, {"a": 1}).save(list(range(100)))
    content = path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[:-20],
            "changed": content[:-1] + b"?",
            "empty": b"",
            "another file": b"Date Time,p (mbar)\n",
            "another configuration": content,
        }[damage]
    )
    configuration = {"a": 2} if damage == "another configuration" else {"a": 1}
    with pytest.raises(CheckpointError, match=r"c: .*; remove the file to start this run anew"):
        Checkpoint(path, configuration).load()


def test_seconds_add_up_over_processes(tmp_path):
    first = Checkpoint(tmp_path / "c", {})
    first.save(1)
    first.seconds += 10.0
    first.save(2)
    second = Checkpoint(tmp_path / "c", {})
    second.load()
    assert 10.0 <= second.seconds < 11.0


def test_waiting_for_its_turn_is_no_work(tmp_path):
    waits = Checkpoint(tmp_path / "c", {})
    time.sleep(0.2)
    waits.load()
    waits.save(1)
    assert waits.seconds < 0.1


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["record.json"]


def experiment(**changes):
    parts = {
        "name": "count",
        "configuration": CONFIGURATION,
        "pieces": {"a": partial(count, 3), "b": partial(count, 5)},
    }
    return records.Experiment(**(parts | changes))


def test_record_has_a_whole_manifest_and_every_curve(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("1,2\n")
    path = records.run(experiment(data={"data.csv": data}), folder=tmp_path, command="make it")
    record = records.load("count", tmp_path)
    assert record["curves"] == {
        "a": {"numbers": [0, 0.33333, 0.66667]},
        "b": {"numbers": [0, 0.33333, 0.66667, 1, 1.3333]},
    }
    manifest = record["manifest"]
    assert set(manifest) == set(records.MANIFEST) and manifest["command"] == "make it"
    assert manifest["data"] == records.sums({"data.csv": data}) and len(manifest["data"]["data.csv"]) == 64
    assert path.read_text().endswith("\n") and not any((tmp_path / ".checkpoints" / "count").iterdir())


def test_pieces_in_parallel_give_the_same_record(tmp_path):
    curves = []
    for jobs in (1, 2):
        records.run(experiment(), folder=tmp_path / str(jobs), jobs=jobs)
        curves.append(records.load("count", tmp_path / str(jobs))["curves"])
    assert curves[0] == curves[1]


def test_a_finished_piece_is_not_done_again(tmp_path):
    calls = []

    def once(checkpoint):
        calls.append(1)
        return {"x": [1.0]}

    def fails(checkpoint):
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        records.run(experiment(pieces={"a": once, "b": fails}), folder=tmp_path)
    assert not list(tmp_path.glob("*.json"))
    records.run(experiment(pieces={"a": once, "b": once}), folder=tmp_path)
    assert len(calls) == 2


def test_changed_data_or_configuration_is_refused(tmp_path):
    def fails(checkpoint):
        checkpoint.save([1])
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        records.run(experiment(pieces={"a": fails}), folder=tmp_path)
    with pytest.raises(CheckpointError, match="of another configuration"):
        records.run(experiment(configuration=CONFIGURATION | {"seeds": [1]}), folder=tmp_path)


def test_missing_data_and_bad_configuration(tmp_path):
    with pytest.raises(FileNotFoundError, match="jena: expected a data file"):
        records.run(experiment(data={"jena": tmp_path / "none.csv"}), folder=tmp_path)
    with pytest.raises(ValueError, match='configuration: expected an entry "seeds"'):
        records.run(experiment(configuration={}), folder=tmp_path)
    with pytest.raises(ValueError, match="jobs: expected an integer >= 1"):
        records.run(experiment(), folder=tmp_path, jobs=0)


def test_records_that_are_missing_or_incomplete(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such record \(records there: none\)"):
        records.load("count", tmp_path)
    records.run(experiment(), folder=tmp_path)
    path = tmp_path / "count.json"
    whole = json.loads(path.read_text())
    for key in records.MANIFEST:
        less = {"manifest": {k: v for k, v in whole["manifest"].items() if k != key}, "curves": whole["curves"]}
        path.write_text(json.dumps(less))
        with pytest.raises(ValueError, match=f'expected "{key}" in the manifest'):
            records.load("count", tmp_path)
    path.write_text(json.dumps(whole)[:-30])
    with pytest.raises(ValueError, match="expected a whole record, got broken JSON"):
        records.load("count", tmp_path)
    path.write_bytes(json.dumps(whole).encode().replace(b"count", b"c\xf6unt"))
    with pytest.raises(ValueError, match=r"count\.json: expected a text in UTF-8"):
        records.load("count", tmp_path)
    for manifest, message in (
        (list(whole["manifest"]), "expected a manifest with names, got list"),
        (whole["manifest"] | {"data": {"a.csv": 12}}, "expected the sha256 of a.csv, got 12"),
        (whole["manifest"] | {"data": {"a.csv": "12"}}, "expected the sha256 of a.csv, got '12'"),
    ):
        path.write_text(json.dumps({"manifest": manifest, "curves": whole["curves"]}))
        with pytest.raises(ValueError, match=rf"count\.json: {message}"):
            records.load("count", tmp_path)


def test_rounded():
    found = records.rounded({"x": np.array([1 / 3, np.inf]), "n": np.int64(3), "s": "text", "t": (1, np.nan)}, 3)
    assert found == {"x": [0.333, "inf"], "n": 3, "s": "text", "t": [1, "nan"]}


KILL = """
import sys
from residual_gd.experiments import records, weather_records
made = weather_records.experiment("weather-mast-W2", steps=20, trace_every=2)
records.run(made, folder=sys.argv[1])
"""


def test_killing_at_random_moments_changes_no_curve(tmp_path):
    """The process is killed five times, at moments that a seeded generator chooses, and started again."""
    made = weather_records.experiment("weather-mast-W2", steps=20, trace_every=2)
    records.run(made, folder=tmp_path / "whole")
    whole = records.load("weather-mast-W2", tmp_path / "whole")
    rng, folder = np.random.default_rng(0), tmp_path / "killed"
    space = folder / ".checkpoints" / "weather-mast-W2"
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILL, str(folder)])
        _until(space.is_dir)
        time.sleep(rng.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([sys.executable, "-c", KILL, str(folder)], check=True)
    found = records.load("weather-mast-W2", folder)
    assert found["curves"] == whole["curves"]
    same = set(records.MANIFEST) - {"start", "seconds"}
    assert {k: found["manifest"][k] for k in same} == {k: whole["manifest"][k] for k in same}


def _until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_command_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["no-such-run", "--folder", str(tmp_path)])
    assert "no such experiment: no-such-run" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------ the records themselves


def test_every_weather_record_is_there():
    assert set(weather_records.NAMES) <= set(STORED)


@pytest.mark.parametrize("name", STORED)
def test_stored_record_is_complete_and_small(name):
    record = records.load(name)
    assert record["manifest"]["name"] == name
    assert (records.RESULTS / f"{name}.json").stat().st_size < 300_000
    assert len(record["manifest"]["commit"].removesuffix("+changes")) == 40


DAMAGED_SWEEPS = {
    "a sweep removed": (
        lambda c: c.pop("fair"),
        "weather-jena-W1: expected the sweeps common, fair, uniform, got common",
    ),
    "another sweep": (lambda c: c.update(best=c["fair"]), "got common, fair, uniform, best"),
    "no curves": (lambda c: c.update(fair=[1.0]), "weather-jena-W1, fair: expected curves by name, got list"),
    "a curve removed": (lambda c: c["fair"].pop("step"), 'weather-jena-W1, fair: expected the curve "step", got betas'),
    "losses cut": (
        lambda c: c["fair"].update(relative_loss=c["fair"]["relative_loss"][:10]),
        r"weather-jena-W1, fair: relative_loss: expected shape \(51, 5, 5\), got \(10, 5, 5\)",
    ),
    "iterations cut": (lambda c: c["common"]["iterations"].pop(), r"expected shape \(50, 5, 5\), got \(51, 5, 5\)"),
    "a ragged curve": (
        lambda c: c["common"]["min_sigma_min_Z"][3].pop(),
        "min_sigma_min_Z: expected an array of numbers",
    ),
    "too few steps": (lambda c: c["common"]["step"].pop(), r"common: step: expected shape \(5, S\), got \(4, 5\)"),
    "no scale": (lambda c: c["common"].update(scale=None), "common: scale: expected a finite number > 0, got None"),
}


@pytest.mark.parametrize("kind", DAMAGED_SWEEPS)
def test_a_damaged_weather_record_is_refused(tmp_path, kind):
    damage, message = DAMAGED_SWEEPS[kind]
    record = records.load("weather-jena-W1")
    damage(record["curves"])
    (tmp_path / "weather-jena-W1.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=message):
        weather_records.recorded_sweeps("weather-jena-W1", tmp_path)


@pytest.mark.parametrize("argument", ["steps", "trace_every"])
def test_no_steps_are_refused(argument):
    with pytest.raises(ValueError, match=f"{argument}: expected an integer >= 1, got 0"):
        weather_records.experiment("weather-mast-W2", **{argument: 0})


@pytest.mark.parametrize("name", weather_records.NAMES)
def test_weather_record_was_made_with_todays_configuration(name):
    manifest = records.load(name)["manifest"]
    source, setting, steps, trace_every = weather_records.NAMES[name]
    found = manifest["configuration"]
    assert (found["source"], found["setting"], found["steps"], found["trace_every"]) == (
        source,
        setting,
        steps,
        trace_every,
    )
    assert found["sweeps"] == weather_records.SWEEPS and len(manifest["data"]) == 1


def test_the_shortest_record_can_be_run_again():
    stored = weather_records.recorded_sweeps("weather-mast-W2")
    data = weather_records.experiment("weather-mast-W2").pieces["common"].args[0]()
    for name, sweep in stored.items():
        again = beta_sweep(data.X, data.Y, steps=60, **weather_records.SWEEPS[name])
        rows = len(again.iterations)
        assert np.array_equal(again.iterations, sweep.iterations[:rows])
        assert np.allclose(again.step, sweep.step, rtol=1e-4)
        assert np.allclose(again.loss, sweep.loss[:rows], rtol=1e-3)
        assert np.allclose(again.sigma_max_Z.max(axis=-1), sweep.sigma_max_Z[:rows, ..., 0], rtol=1e-3)


def chapter_output():
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join("".join(output.get("text", "")) for output in outputs)


def test_numbers_of_the_chapter_are_those_of_the_records():
    text = chapter_output()
    for name in ("weather-jena-W1", "weather-jena-W2"):
        sweeps = weather_records.recorded_sweeps(name)
        assert sweeps["common"].table() in text and sweeps["fair"].table() in text
    live = weather_records.recorded_sweeps("weather-mast-W2")["common"]
    assert isinstance(live, Sweep) and live.table() in text
