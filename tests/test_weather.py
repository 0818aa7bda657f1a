"""Where the Jena record comes from: the named file, the data folder, the cache, the network, and what failures do."""

import functools
import io
import os
import socket
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from residual_gd.experiments import weather

GOOD = "date,T (degC),p (mbar)\n" + "".join(f"2020-01-01 00:{i}0:00,{i},990\n" for i in range(6))


@pytest.mark.skipif("RESIDUAL_GD_DATA" not in os.environ, reason="RESIDUAL_GD_DATA is not set")
def test_the_station_file_on_disk():
    if not list(Path(os.environ["RESIDUAL_GD_DATA"], "jena").glob("*.csv")):
        pytest.skip("no CSV in RESIDUAL_GD_DATA/jena")
    record = weather.load_jena()
    assert {"p", "T", "rh", "rho"} <= set(record.names)
    assert record.times[0] == np.datetime64("2009-01-01T00:10:00")
    assert record.column("T")[0] == -8.02
    assert record.report.rows >= 4000


@pytest.fixture
def no_data_folder(monkeypatch):
    monkeypatch.delenv("RESIDUAL_GD_DATA", raising=False)
    monkeypatch.setenv("RESIDUAL_GD_PROGRESS", "0")


def test_the_data_folder_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("RESIDUAL_GD_DATA", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="RESIDUAL_GD_DATA: expected the name of a folder"):
        weather.load_jena()
    monkeypatch.setenv("RESIDUAL_GD_DATA", str(tmp_path))
    folder = tmp_path / "jena"
    folder.mkdir()
    (folder / "a.csv").write_text(GOOD)
    assert weather.load_jena().report.source == "a.csv"
    (folder / "b.csv").write_text(GOOD)
    with pytest.raises(ValueError, match=r"RESIDUAL_GD_DATA: expected jena_climate.* or .*, got a.csv, b.csv"):
        weather.load_jena()
    (folder / weather.JENA_CSV).write_text(GOOD)
    assert weather.load_jena("auto").report.source == weather.JENA_CSV


class Handler(BaseHTTPRequestHandler):
    """Serves one body: whole, cut short, or an error; counts the requests."""

    def do_GET(self):
        self.server.requests += 1
        body, status, promised = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch, no_data_folder):
    """A local server that plays the public one: ``server.serve(body, status=200, promised=None)``."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests = 0

        def serve(body, status=200, promised=None):
            server.answer = body, status, len(body) if promised is None else promised

        server.serve = serve
        monkeypatch.setattr(weather, "JENA_URL", f"http://127.0.0.1:{server.server_port}/{weather.JENA_CSV}.zip")
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def zipped(content, name=weather.JENA_CSV):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def small_public_file(tmp_path, monkeypatch):
    """Let the small file be the one that the check expects."""
    path = tmp_path / "expected.csv"
    path.write_bytes(GOOD.encode())
    monkeypatch.setattr(weather, "JENA_BLOB", weather.git_blob(path))


def test_git_blob(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")
    assert weather.git_blob(path) == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


def test_download_is_checked_and_kept(tmp_path, server, small_public_file, capsys):
    server.serve(zipped(GOOD))
    cache = tmp_path / "cache"
    record = weather.load_jena(cache=cache)
    assert record.report.rows == 6 and record.report.source == weather.JENA_CSV
    assert [file.name for file in cache.iterdir()] == [weather.JENA_CSV]
    weather.load_jena(cache=str(cache))
    assert server.requests == 1  # the second time it came from the cache
    (cache / weather.JENA_CSV).write_text("damaged")
    assert weather.load_jena(cache=cache).report.rows == 6
    assert server.requests == 2
    assert capsys.readouterr() == ("", "")


def test_the_progress_bar_can_be_seen(tmp_path, server, small_public_file, monkeypatch, capsys):
    monkeypatch.setenv("RESIDUAL_GD_PROGRESS", "1")
    server.serve(zipped(GOOD))
    weather.load_jena(cache=tmp_path)
    assert "100%" in capsys.readouterr().err


BROKEN = {
    "wrong content": ((zipped(GOOD + "\n"),), "expected git blob"),
    "truncated zip": ((zipped(GOOD)[:200],), "BadZipFile"),
    "connection cut": ((zipped(GOOD)[:200], 200, 10_000), "expected the public Jena file"),
    "no zip": ((b"<html>please sign in</html>",), "BadZipFile"),
    "another file inside": ((zipped(GOOD, "other.csv"),), "KeyError"),
    "not found": ((b"gone", 404), "404"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_failed_download_is_an_error_and_leaves_nothing(tmp_path, server, small_public_file, kind):
    answer, message = BROKEN[kind]
    server.serve(*answer)
    cache = tmp_path / "cache"
    with pytest.raises(weather.DownloadError, match=message) as caught:
        weather.load_jena(cache=cache)
    for part in (weather.JENA_URL, "RESIDUAL_GD_DATA", "auto"):
        assert part in str(caught.value)
    assert list(cache.iterdir()) == []


def test_damaged_bytes_inside_the_zip(tmp_path, server, small_public_file):
    body = bytearray(zipped(GOOD))
    body[60:90] = bytes(30)
    server.serve(bytes(body))
    with pytest.raises(weather.DownloadError):
        weather.load_jena(cache=tmp_path / "cache")


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_without_a_network(tmp_path, monkeypatch, no_data_folder):
    monkeypatch.setattr(weather, "JENA_URL", f"http://127.0.0.1:{closed_port()}/jena.zip")
    with pytest.raises(weather.DownloadError, match="Without a network"):
        weather.load_jena(cache=tmp_path)
    with pytest.warns(UserWarning, match="using the embedded mast record instead of Jena's"):
        record = weather.load_jena("auto", cache=tmp_path)
    assert record.report.source == "embedded mast record"
    assert "taken instead of the Jena record" in str(record.report)
    np.testing.assert_array_equal(record.values, weather.load_embedded().values)


def test_a_cache_that_cannot_be_used(tmp_path, server, small_public_file):
    server.serve(zipped(GOOD))
    (tmp_path / "file").write_text("")
    with pytest.raises(weather.DownloadError, match="expected the public Jena file"):
        weather.load_jena(cache=tmp_path / "file")
