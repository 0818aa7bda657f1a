"""Recorded runs on a dask.distributed cluster, through joblib's own backend: a real local scheduler, two workers."""

import pytest

from residual_gd.experiments import records, run, weather_records

distributed = pytest.importorskip("distributed", reason="an extra: pip install distributed")


# dask warns about unclosed sockets and slow clean-up of its own; that is not ours to fix
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_serial_record(tmp_path, monkeypatch):
    def short(name):
        return weather_records.experiment(name, steps=20, trace_every=2)

    monkeypatch.setattr(run, "EXPERIMENTS", {"weather-mast-W2": short})
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        folder = tmp_path / "cluster"
        arguments = ["weather-mast-W2", "--folder", str(folder), "--jobs", "2", "--dask", cluster.scheduler_address]
        assert run.main(arguments) == 0
    records.run(short("weather-mast-W2"), folder=tmp_path / "serial")
    one, two = (records.load("weather-mast-W2", tmp_path / where) for where in ("serial", "cluster"))
    assert one["curves"] == two["curves"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense"])
def test_a_cluster_that_is_not_there_is_a_clear_error(tmp_path, monkeypatch, address):
    monkeypatch.setattr(run, "WAIT", 1)
    with pytest.raises(SystemExit, match=f"--dask: expected the address of a running scheduler.* got {address}"):
        run.main(["weather-mast-W2", "--folder", str(tmp_path), "--dask", address])
    assert not list(tmp_path.iterdir())
