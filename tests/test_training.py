"""Training of the sentiment classifier: batches, schedule, resuming, what each entry of a recipe does, views inside."""

import io
import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from residual_gd.experiments import inside, records, sentiment_records, training
from residual_gd.experiments.checkpoints import Checkpoint, CheckpointError
from residual_gd.experiments.tokens import Encoded
from residual_gd.experiments.training import Recipe, pair

TINY = Recipe(layers=1, width=16, heads=2, context=12, learning_rate=3e-3, batch=8, epochs=2)


def sentences(count=40, seed=0, vocabulary=30):
    """Random sentences of 4 to 12 tokens; the label says whether the last token is even."""
    rng = np.random.default_rng(seed)
    tokens = tuple(rng.integers(vocabulary, size=rng.integers(4, 13)) for _ in range(count))
    return Encoded(tokens, np.array([row[-1] % 2 for row in tokens]), vocabulary)


def test_every_sentence_is_in_one_batch_of_like_lengths():
    lengths = np.random.default_rng(0).integers(1, 40, size=203)
    found = training.batches(lengths, 16, np.random.default_rng(1))
    assert sorted(np.concatenate(found)) == list(range(203)) and sorted(map(len, found)) == [11] + [16] * 12
    spans = sorted((lengths[chosen].min(), lengths[chosen].max()) for chosen in found)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    other = training.batches(lengths, 16, np.random.default_rng(2))
    assert any(list(a) != list(b) for a, b in zip(found, other, strict=True))


def test_learning_rate_rises_and_falls():
    recipe = replace(TINY, learning_rate=1.0, warmup=0.25)
    rates = [recipe.rate(step, 20) for step in range(20)]
    assert rates[:5] == [0.2, 0.4, 0.6, 0.8, 1.0] and rates[5] == 1.0
    assert np.allclose(np.diff(rates[5:]), -1 / 15) and rates[-1] == pytest.approx(1 / 15)
    assert replace(recipe, warmup=0.0).rate(0, 20) == 1.0


def test_a_network_memorizes():
    curves = training.train(replace(TINY, epochs=40), sentences(), sentences(60, seed=1), seed=0)
    assert curves["train_error"][0] > 0.3 and curves["train_error"][-1] == 0.0
    assert curves["epochs"] == list(range(41)) and curves["steps"][-1] == 200
    assert len(curves["dev_error"]) == 41 and curves["diverged_at"] == -1 and curves["start"] == "random"
    assert curves["loss"][0] == pytest.approx(math.log(2), abs=0.1) and curves["loss"][-1] < 0.05
    assert set(curves["inside"]) == {"start", "end"}


def test_runs_of_a_seed_share_their_start_and_batches():
    data = sentences()
    runs = [training._Run(replace(TINY, beta_attention=b, beta_ffn=b), data, None, 3, "cpu", False) for b in (0.0, 1.0)]
    for a, b in zip(*(run.model.parameters() for run in runs), strict=True):
        assert torch.equal(a, b)
    for run in runs:
        run.step(1e-3, 0, 0)
    assert all(np.array_equal(a, b) for a, b in zip(*(run.order[1] for run in runs), strict=True))
    other = training._Run(TINY, data, None, 4, "cpu", False)
    assert not torch.equal(other.model.wte.weight, runs[0].model.wte.weight)


CHANGES = {
    "layers": 2,
    "beta_attention": 0.5,
    "beta_ffn": 0.5,
    "width": 32,
    "heads": 4,
    "layer_norm": False,
    "init_std": 0.2,
    "shrink": False,
    "learning_rate": 1e-3,
    "warmup": 0.5,
    "clip": 0.1,
    "batch": 16,
    "epochs": 3,
    "weight_decay": 1.0,
    "evaluate": 5,
}


def test_every_entry_of_a_recipe_matters():
    data = sentences(32)
    usual = training.train(TINY, data, seed=0, inside=False)
    for name, value in CHANGES.items():
        assert training.train(replace(TINY, **{name: value}), data, seed=0, inside=False) != usual, name
    # context bounds the sentences (test_bad_input), weights needs the published network (test_gpt)
    assert {f.name for f in fields(Recipe)} - set(CHANGES) == {"context", "weights"}
    assert training.train(TINY, data, seed=1, inside=False) != usual
    assert training.train(TINY, data, seed=0, inside=False) == usual


def test_a_clipped_gradient_moves_as_if_it_were_as_long_as_the_clip():
    """AdamW's first step hides the length of a gradient, so the gradient itself is read."""
    run = training._Run(replace(TINY, clip=0.01), sentences(), None, 0, "cpu", False)
    run.step(0.0, 0, 0)
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in run.model.parameters()))
    assert norm == pytest.approx(0.01, rel=1e-3) and run.seen[0][2] > 0.1


def test_error_counts_what_the_scores_say(monkeypatch):
    monkeypatch.setattr(training, "EVALUATION_BATCH", 7)
    data = sentences()
    model, _ = TINY.network(30, 0)
    wrong = 0
    for row, label in zip(data.tokens, data.labels, strict=True):
        scores = model(torch.tensor(row)[None], torch.tensor([len(row)]))[0]
        wrong += int(scores[1] > scores[0]) != label
    assert training.error(model, data) == wrong / 40 and 0 < wrong < 40


def test_a_diverged_run_ends_and_says_when():
    curves = training.train(replace(TINY, learning_rate=1e30, warmup=0.0), sentences(), seed=0)
    assert 1 <= curves["diverged_at"] < 10 and set(curves["inside"]) == {"start"}
    json.dumps(records.rounded(curves), allow_nan=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pair(4, "with"), "layers: expected one of 2, 6, 10, got 4"),
        (lambda: pair(6, "half"), "variant: expected one of with, without, got 'half'"),
        (lambda: replace(TINY, epochs=0), "epochs: expected an integer >= 1"),
        (lambda: replace(TINY, batch=1.5), "batch: expected an integer >= 1"),
        (lambda: replace(TINY, learning_rate=-1.0), "learning_rate: expected a finite number > 0"),
        (lambda: replace(TINY, warmup=1.0), r"warmup: expected a number in \[0, 1\)"),
        (lambda: replace(TINY, clip=0.0), "clip: expected a finite number > 0"),
        (lambda: replace(TINY, weight_decay=-1.0), "weight_decay: expected a number >= 0"),
        (lambda: training.train(replace(TINY, layers=0), sentences()), "layers: expected an integer >= 1"),
        (lambda: training.train(replace(TINY, weights="best"), sentences()), "weights: expected one of auto"),
        (lambda: training.train(replace(TINY, context=3), sentences()), "tokens: expected .* n from 1 to 3"),
        (lambda: training.train(TINY, sentences(0)), "sentences: expected at least one sentence, got none"),
        (lambda: training.train(TINY, sentences(), sentences(0)), "dev: expected at least one sentence, got none"),
        (lambda: training.train(TINY, sentences(), device="tpu"), "device: expected one of cpu, cuda"),
        (lambda: training.train(TINY, sentences(), trace_every=0), "trace_every: expected an integer >= 1"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there():
    with pytest.raises(ValueError, match="device: expected cpu, for there is no CUDA device here, got cuda"):
        training.train(TINY, sentences(), device="cuda")


# --------------------------------------------------------------------------------------------------------- resuming


class Stopped(Exception):
    pass


class StopsAfter(Checkpoint):
    """A checkpoint whose process dies right after it was saved so many times."""

    left = 1

    def save(self, state):
        super().save(state)
        self.left -= 1
        if self.left == 0:
            raise Stopped


def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path):
    data, dev = sentences(), sentences(20, seed=1)
    recipe = replace(TINY, layers=2)
    options = {"seed": 2, "trace_every": 4}
    whole = training.train(recipe, data, dev, **options)
    for times in (1, 2, 3):
        path = tmp_path / str(times)
        stopping = StopsAfter(path, {})
        stopping.left = times
        with pytest.raises(Stopped):
            training.train(recipe, data, dev, checkpoint=stopping, checkpoint_every=3, **options)
        again = training.train(recipe, data, dev, checkpoint=Checkpoint(path, {}), checkpoint_every=3, **options)
        assert again == whole


@pytest.mark.parametrize("damage", ["truncated", "another configuration"])
def test_a_bad_checkpoint_is_refused(tmp_path, damage):
    stopping = StopsAfter(tmp_path / "c", {"lr": 1})
    with pytest.raises(Stopped):
        training.train(TINY, sentences(), checkpoint=stopping, checkpoint_every=3)
    if damage == "truncated":
        (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:-100])
    configuration = {"lr": 1 if damage == "truncated" else 2}
    with pytest.raises(CheckpointError, match=r"c: .*; remove the file to start this run anew"):
        training.train(TINY, sentences(), checkpoint=Checkpoint(tmp_path / "c", configuration), checkpoint_every=3)


def killed_run():
    """An experiment of two runs with 15 steps each, for the test that kills it."""
    recipe = replace(TINY, epochs=3)
    pieces = {
        f"seed{seed}": partial(_train, replace(recipe, beta_ffn=beta), seed) for seed, beta in ((0, 1.0), (1, 0.0))
    }
    configuration = {"seeds": [0, 1], "dtype": "float32", "device": "cpu"}
    return records.Experiment(name="killed", configuration=configuration, pieces=pieces)


def _train(recipe, seed, checkpoint):
    return training.train(recipe, sentences(), seed=seed, checkpoint=checkpoint, checkpoint_every=2, trace_every=2)


def test_killing_at_random_moments_changes_no_curve(tmp_path):
    """The process is killed five times, at moments that a seeded generator chooses, and started again."""
    folder = tmp_path / "killed"
    code = "import sys, test_training as t; t.records.run(t.killed_run(), folder=sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder)]
    here = {"cwd": Path(__file__).parent}
    rng = np.random.default_rng(0)
    for _ in range(5):
        process = subprocess.Popen(command, **here)
        clock = folder / ".checkpoints" / "killed" / "clock"
        before = clock.stat().st_mtime_ns if clock.exists() else None
        while process.poll() is None and (not clock.exists() or clock.stat().st_mtime_ns == before):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True, **here)
    records.run(killed_run(), folder=tmp_path / "whole")
    assert records.load("killed", folder)["curves"] == records.load("killed", tmp_path / "whole")["curves"]


# ----------------------------------------------------------------------------------------------------------- inside


def test_views_are_those_of_the_states():
    model, _ = replace(TINY, layers=2, init_std=0.2).network(30, 0)
    tokens = sentences(5).tokens
    found = inside.views(model, tokens)
    assert {name: len(values) for name, values in found.items()} == {
        "token_cosine": 3, "sentence_cosine": 3, "stable_rank": 3, "ratio": 2, "ratio_median": 2
    }  # fmt: skip
    exact = model.double()
    T, Z = [], []
    for row in tokens:
        T_0, layers = exact.states(torch.tensor(row)[None])
        T.append([x[0].detach().numpy() for x in (T_0, layers[0][1], layers[1][1])])
        Z.append([layers[l][0][0].detach().numpy() for l in range(2)])

    def cosines(rows):
        pairs = [(a, b) for i, a in enumerate(rows) for b in rows[:i]]
        return np.mean([a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in pairs])

    for l in range(3):
        assert found["token_cosine"][l] == pytest.approx(np.mean([cosines(t[l]) for t in T]), rel=1e-9)
        assert found["sentence_cosine"][l] == pytest.approx(cosines([t[l][-1] for t in T]), rel=1e-9)
        ranks = [np.sum(t[l] ** 2) / np.linalg.norm(t[l], 2) ** 2 for t in T]
        assert found["stable_rank"][l] == pytest.approx(np.mean(ranks), rel=1e-9)
    for l in range(2):
        spectra = [np.linalg.svd(z[l], compute_uv=False) for z in Z]
        low, high = np.array([s[-1] for s in spectra]), np.array([s[0] for s in spectra])
        assert found["ratio"][l] == pytest.approx(low.min() ** 2 / high.max(), rel=1e-6)
        assert found["ratio_median"][l] == pytest.approx(np.median(low**2 / high), rel=1e-6)


def test_views_do_not_touch_the_model():
    model, _ = TINY.network(30, 0)
    inside.views(model, sentences(5).tokens)
    assert model.wte.weight.dtype == torch.float32


def test_gradient_norms_are_those_of_the_layers():
    model, _ = replace(TINY, layers=2).network(30, 0)
    batch = training.padded(sentences(), range(8))
    found = inside.gradient_norms(model, *batch)
    torch.nn.functional.cross_entropy(model(*batch[:2]), batch[2]).backward()
    for block, norm in zip(model.h, found, strict=True):
        assert norm == pytest.approx(math.sqrt(sum(p.grad.square().sum().item() for p in block.parameters())), rel=1e-5)


def test_sentences_too_short_to_look_inside():
    model, _ = TINY.network(30, 0)
    with pytest.raises(ValueError, match="tokens: expected at least 2 tokens a sentence, got 1 in sentence 1"):
        inside.views(model, [np.array([1, 2]), np.array([3])])
    with pytest.raises(ValueError, match="tokens: expected at least 2 sentences, got 1"):
        inside.views(model, [np.array([1, 2])])


# ---------------------------------------------------------------------------------------------------------- records


def test_planned_records_are_those_of_the_chapter():
    plans = sentiment_records.PLANS
    six = {(recipe.layers, recipe.beta_attention, recipe.beta_ffn) for recipe in recipes("sentiment-sst2").values()}
    assert six == {(L, b, b) for L in (2, 6, 10) for b in (0.0, 1.0)}
    assert (plans["sentiment-sst2"].phrases, plans["sentiment-sst2"].seeds) == (8000, 5)
    assert {r.width for r in recipes("sentiment-sst2").values()} == {128}
    assert {r.epochs for r in recipes("sentiment-sst2").values()} == {3}
    assert plans["sentiment-sst2-all"].phrases is None and plans["sentiment-sst2-all"].source == "sst2"
    small = plans["sentiment-gpt2-small"]
    for recipe in recipes("sentiment-gpt2-small").values():
        assert (recipe.width, recipe.heads, recipe.batch) == (768, 12, 32) and small.tokenizer == "gpt2"
        assert small.phrases / recipe.batch * recipe.epochs >= 750
    ablations = recipes("sentiment-ablations")
    assert (plans["sentiment-ablations"].phrases, plans["sentiment-ablations"].seeds) == (6000, 3)
    assert {r.layers for r in ablations.values()} == {6} and len(set(ablations.values())) == len(ablations)


def recipes(name):
    plan = sentiment_records.PLANS[name]
    return {run: sentiment_records.recipe(plan.common | how) for run, how in plan.runs.items()}


def test_a_record_from_the_embedded_sentences(tmp_path):
    runs = {"L2-with": {"layers": 2, "variant": "with"}, "L2-without": {"layers": 2, "variant": "without"}}
    tiny = {"width": 16, "heads": 2, "epochs": 1, "batch": 16}
    made = sentiment_records.experiment(
        "sentiment-memorize", phrases=48, tokenizer="bpe-300", seeds=1, runs=runs, common=tiny
    )
    path = records.run(made, folder=tmp_path)
    manifest = records.load("sentiment-memorize", tmp_path)["manifest"]
    assert manifest["configuration"]["recipes"]["L2-without"]["beta_ffn"] == 0.0
    assert "tokenizers" in manifest["versions"] and set(manifest["data"]) == {"movie-reviews"}
    (curves,) = sentiment_records.recorded("sentiment-memorize", "L2-with", tmp_path)
    assert curves["epochs"] == [0, 1] and "dev_error" not in curves
    text = path.read_text()
    corpus = sentiment_records.load_corpus()
    assert not any(json.dumps(sentence)[1:-1] in text for sentence in corpus.train.texts + corpus.dev.texts)
    with pytest.raises(ValueError, match=r"run: expected one of L2-with, L2-without, .*, got 'L3-with'"):
        sentiment_records.recorded("sentiment-memorize", "L3-with", tmp_path)


STORED = [name for name in sentiment_records.NAMES if (records.RESULTS / f"{name}.json").is_file()]


@pytest.mark.parametrize("name", STORED)
def test_stored_record_was_made_with_todays_recipes(name):
    record = records.load(name)
    found, plan = record["manifest"]["configuration"], sentiment_records.PLANS[name]
    assert found["recipes"] == {run: asdict(recipe) for run, recipe in recipes(name).items()}
    assert found["seeds"] == list(range(plan.seeds)) and found["source"] == plan.source
    assert found["phrases"] == plan.phrases or found["device"] == "cuda"
    pieces = {sentiment_records.piece_name(run, seed) for run in plan.runs for seed in found["seeds"]}
    assert set(record["curves"]) == pieces


def test_the_shortest_record_can_be_run_again(tmp_path):
    """The first epoch of its smallest network; float32 figures differ a little by processor."""
    run = sentiment_records.experiment("sentiment-memorize", checkpoint_every=16).pieces["L2-with-seed0"]
    with pytest.raises(Stopped):
        run(StopsAfter(tmp_path / "c", {}))
    state = torch.load(io.BytesIO(Checkpoint(tmp_path / "c", {}).load()), weights_only=True)
    stored = sentiment_records.recorded("sentiment-memorize", "L2-with")[0]
    for name in ("loss", "gradient_norm"):
        assert np.allclose(state["curves"][name], stored[name][:2], rtol=0.02), name
    assert np.allclose(state["curves"]["train_error"], stored["train_error"][:2], atol=0.02)


def test_unknown_records_devices_and_tokens():
    with pytest.raises(ValueError, match="name: expected one of sentiment-memorize"):
        sentiment_records.experiment("sentiment-imdb")
    with pytest.raises(ValueError, match="device: expected one of cpu, cuda"):
        sentiment_records.experiment("sentiment-memorize", device="tpu")
    with pytest.raises(ValueError, match="tokenizer: expected one of bpe, gpt2, got 'words'"):
        sentiment_records.material(tokenizer="words")
