"""Chapter 8: means of causal attention, tables and figures of runs; its numbers are those of the records."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from residual_gd.beyond import causal_softmax
from residual_gd.experiments import records, sentiment, sentiment_records, sentiment_tables
from residual_gd.experiments.causal_means import causal_means, cosines_of_means
from residual_gd.experiments.inside import views
from residual_gd.experiments.training import pair
from residual_gd.figures import sentiment as figures

CHAPTER = Path(__file__).resolve().parents[1] / "chapters" / "08-sentiment.ipynb"


def curves(errors, dev=None, diverged_at=-1):
    """What a run of two epochs with ten steps each leaves."""
    found = {"steps": [10, 20], "error": errors[1:], "epochs": [0.0, 1.0, 2.0], "train_error": errors}
    found |= {} if dev is None else {"dev_error": dev}
    inside = {"start": {"ratio": [1.0, 0.5]}} | ({"end": {"ratio": [0.1, 0.01]}} if diverged_at < 0 else {})
    return found | {"inside": inside, "diverged_at": diverged_at}


RUNS = {
    "with": [curves([0.5, 0.25, 0.125], [0.5, 0.4, 0.3]), curves([0.5, 0.2, 0.1], [0.5, 0.4, 0.35])],
    "without": [curves([0.5, 0.5, 0.44], [0.5, 0.5, 0.49]), curves([0.5, 0.5, 0.4], [0.5, 0.5, 0.5], diverged_at=15)],
}


def test_causal_means_are_causal_attention_with_equal_logits():
    assert np.allclose(causal_means(5), causal_softmax(np.zeros((5, 5))))
    norms = np.linalg.svd(causal_means(40), compute_uv=False)
    assert 40 < 1 / norms[-1] < 79  # n and 2 n - 1


def test_cosines_of_means():
    found = cosines_of_means(7, 3)
    i, j = np.triu_indices(7, k=1)
    assert found[0] == 0 and found[1] == pytest.approx(np.mean(np.sqrt((i + 1) / (j + 1))))
    T, S = np.eye(7), causal_means(7)
    for l in range(3):
        T = S @ (T / np.linalg.norm(T, axis=1, keepdims=True))
        unit = T / np.linalg.norm(T, axis=1, keepdims=True)
        assert found[l + 1] == pytest.approx((np.sum(unit @ unit.T) - 7) / 42)
    with pytest.raises(ValueError, match="n: expected at least 2 tokens, got 1"):
        cosines_of_means(1, 3)


def test_a_network_without_skips_starts_as_causal_means_say():
    rng = np.random.default_rng(0)
    tokens = [rng.integers(200, size=16) for _ in range(8)]
    model, _ = pair(6, "without", width=128, context=16).network(200, seed=0)
    assert np.allclose(views(model, tokens)["token_cosine"], cosines_of_means(16, 6), atol=0.03)


def test_last_errors_and_their_table():
    assert sentiment_tables.last_errors(RUNS)["with"].tolist() == [0.125, 0.1]
    held_out = sentiment_tables.last_errors(RUNS, "held-out")["without"]
    assert held_out[0] == 0.49 and np.isnan(held_out[1])
    table = sentiment_tables.error_table(RUNS, {"training": 0.44, "held-out": 0.491})
    assert table.splitlines() == [
        "         training error            held-out error",
        "with     0.113  (0.100 to 0.125)   0.325  (0.300 to 0.350)",
        "without  0.440, 1 diverged         0.490, 1 diverged",
        "constant 0.440                     0.491",
    ]
    with pytest.raises(ValueError, match="which: expected one of training, held-out"):
        sentiment_tables.last_errors(RUNS, "test")
    with pytest.raises(ValueError, match="which: expected errors that the runs have, got held-out"):
        sentiment_tables.last_errors({"with": [curves([0.5, 0.2, 0.1])]}, "held-out")


def test_curves_and_views():
    steps, errors = sentiment_tables.errors_by_epoch(RUNS["without"])
    assert steps.tolist() == [0, 10, 20] and errors.shape == (1, 3)
    steps, errors = sentiment_tables.errors_by_step(RUNS["with"])
    assert steps.tolist() == [10, 20] and errors.shape == (2, 2)
    assert sentiment_tables.views_inside(RUNS["without"], "ratio").shape == (2, 2)
    assert sentiment_tables.views_inside(RUNS["without"], "ratio", "end").tolist() == [[0.1, 0.01]]
    with pytest.raises(ValueError, match="seeds: expected at least one run that did not diverge"):
        sentiment_tables.errors_by_step(RUNS["without"][1:])


def test_figures_draw_what_they_are_handed():
    x, errors = np.arange(3), np.array([[0.5, 0.2, 0.1], [0.5, 0.3, 0.2]])
    drawn = [
        figures.errors_over_steps({"L = 2": {"with": (x, errors), "without": (x, errors[0])}}, constant=0.44),
        figures.errors_by_depth(
            (2, 6, 10), {"training": ({"with": errors.T}, 0.44), "dev": ({"with": errors.T}, 0.49)}
        ),
        figures.by_layer(
            {"cosine": {"with": (0, errors)}, "ratio": {"with": (1, 0 * errors)}, "c": {}}, log=("ratio",)
        ),
        figures.variants({"with": errors[0], "half": errors[1]}, constant=0.44, reference=(0.05, "with")),
    ]
    assert [len(fig.axes) for fig in drawn] == [1, 2, 4, 1]
    assert drawn[0].axes[0].lines[0].get_ydata().tolist() == pytest.approx([0.5, 0.25, 0.15])
    assert set(drawn[2].axes[1].lines[0].get_ydata()) == {figures.LOWEST}
    for fig in drawn:
        plt.close(fig)


# ------------------------------------------------------------------------------------------ records and the chapter


@pytest.mark.parametrize("name", sentiment_records.NAMES)
def test_the_record_is_there_and_was_made_as_planned(name):
    plan, configuration = sentiment_records.PLANS[name], records.load(name)["manifest"]["configuration"]
    recipes = {run: asdict(sentiment_records.recipe(plan.common | how)) for run, how in plan.runs.items()}
    assert configuration["recipes"] == recipes and configuration["seeds"] == list(range(plan.seeds))
    for key in ("source", "phrases", "tokenizer", "dev", "trace_every"):
        assert configuration[key] == getattr(plan, key), key


@pytest.mark.parametrize("name", sentiment_records.NAMES)
def test_runs_that_learned_nothing_have_the_constant_error(name):
    """The counts behind CONSTANT, against the runs that give one answer to every sentence; there is at least one."""
    runs = sentiment_tables.record_runs(name)
    stuck = [run for run in runs if run in ("L10-without", "without")]
    for which, constant in sentiment_tables.CONSTANT[name].items():
        errors = np.concatenate([sentiment_tables.last_errors(runs, which)[run] for run in stuck])
        assert np.any(np.isclose(errors, constant, rtol=1e-4) | np.isclose(errors, 1 - constant, rtol=1e-4))


def test_constant_error_of_the_embedded_sentences():
    corpus = sentiment.load_corpus("embedded")
    assert (
        sentiment.subset(corpus.train, 512).constant_error
        == sentiment_tables.CONSTANT["sentiment-memorize"]["training"]
    )


@pytest.mark.parametrize("name", sentiment_records.NAMES)
def test_numbers_of_the_chapter_are_those_of_the_records(name):
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    text = "\n".join("".join(output.get("text", "")) for output in outputs)
    table = sentiment_tables.error_table(sentiment_tables.record_runs(name), sentiment_tables.CONSTANT[name])
    assert table in text and sentiment_tables.provenance(name) in text


def test_no_sentence_in_the_chapter():
    """No sentence's first six words stand in the notebook."""
    text = " ".join(re.findall(r"[a-z]+", CHAPTER.read_text(encoding="utf-8").lower()))
    corpus = sentiment.load_corpus("embedded")
    for sentences in (corpus.train, corpus.dev):
        for sentence in sentences.texts:
            words = re.findall(r"[a-z]+", sentence.lower())
            assert len(words) < 6 or " ".join(words[:6]) not in text
