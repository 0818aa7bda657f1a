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
