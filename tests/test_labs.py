"""The labs: a trial is the library's certificate and run; the panel shows it, and names settings that are no good."""

import base64
import re
from dataclasses import replace
from html import unescape

import matplotlib.pyplot as plt
import nbformat
import notebooks
import numpy as np
import pytest
import yaml
from nbclient import NotebookClient

from residual_gd.certificates import certify
from residual_gd.certified_runs import run_certified
from residual_gd.descent import descend
from residual_gd.labs import Settings, rate_lab, run, skip_lab
from residual_gd.labs.panel import READY
from residual_gd.labs.picture import draw
from residual_gd.matrices import sigma_max
from residual_gd.samples import stack
from residual_gd.transformer import forward

SMALL = Settings(d=24, n=3, P=2)


def words(widget):
    """What an HTML widget says."""
    return unescape(re.sub("<[^>]*>", " ", widget.value))


def test_a_certified_trial_is_the_librarys_run():
    trial = run(SMALL)
    net, theta, X, Y = SMALL.build()
    assert np.linalg.norm(forward(net, theta, X).F - Y) == pytest.approx(SMALL.size)
    certificate = certify(net, theta, X, Y)
    assert trial.certified and trial.step == certificate.step
    expected = run_certified(certificate, steps=len(trial.loss) - 1)
    assert np.array_equal(trial.loss[: len(expected.trace.loss)], expected.trace.loss)  # part by part is the same
    assert np.array_equal(trial.envelope, certificate.envelope(trial.iterations))
    assert trial.under_envelope and "stayed under" in trial.verdict
    broken = replace(trial, loss=2 * trial.envelope)
    assert not broken.under_envelope and "LEFT" in broken.verdict


def test_a_refused_trial_runs_without_a_guarantee():
    far = replace(SMALL, size=2.0)
    trial = run(far)
    net, theta, X, Y = far.build()
    assert not trial.certified and trial.envelope is None and not trial.under_envelope
    assert trial.step == pytest.approx(1.0 / sigma_max(stack(forward(net, theta, X).H)) ** 2)
    alone = descend(net, theta, X, Y, steps=len(trial.loss) - 1, step=trial.step, spectra=False)
    assert np.array_equal(trial.loss, alone.loss)
    assert trial.verdict.startswith(f"Refused: {trial.certificate.failed[0].name} fails")


def test_a_diverging_trial_says_where():
    trial = run(replace(SMALL, size=1e4))
    assert trial.diverged > 0 and f"diverges at step {trial.diverged}" in trial.verdict
    assert np.all(np.isfinite(trial.loss[: trial.diverged])) and np.all(np.isinf(trial.loss[trial.diverged :]))
    plt.close(draw(trial))


def test_without_the_skip_the_loss_stays_above_the_floor():
    trial = skip_lab().run(d=32, n=3, P=2)
    assert trial.certified and trial.loss[-1] < 1e-6 * trial.uniform_floor
    assert np.all(trial.without >= trial.uniform_floor * (1 - 1e-9))
    cut = skip_lab().run(d=32, n=3, P=2, beta_attention=0.0)
    assert not cut.certified and cut.without is None and cut.loss.min() >= cut.uniform_floor * (1 - 1e-9)


def test_progress_only_grows():
    shares = []
    run(SMALL, compare=True, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0) and len(shares) > 6


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"d": 0}, "d: expected"),
        ({"d": 1000}, "d: expected a width of at most 256"),
        ({"n": 16, "P": 16}, "P times n: expected at most 96 rows"),
        ({"n": 2.5}, "n: expected"),
        ({"activation": "sine"}, "activation"),
        ({"form": "other"}, "form"),
        ({"beta_ffn": -1.0}, "beta_ffn"),
        ({"branches": float("nan")}, "branches"),
        ({"size": 0.0}, "size"),
        ({"tau": 0.0}, "tau"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        replace(SMALL, **changes)


def test_nothing_to_learn_from_is_named():
    with pytest.raises(ValueError, match="H_0: expected"):
        run(replace(SMALL, beta_attention=0.0, beta_ffn=0.0, branches=0.0))


@pytest.fixture
def panel():
    found = rate_lab().panel()
    for label, value in (("width d", 24), ("tokens n", 3), ("samples P", 2)):
        found.dials[label].value = value
    return found


def test_the_button_shows_certificate_and_picture(panel):
    assert READY in words(panel.message) and panel.picture.value == panel.table.value == ""
    panel.button.click()
    expected = run(SMALL)
    assert panel.trial.settings == SMALL
    assert expected.verdict in words(panel.message)
    for h in expected.certificate.hypotheses:
        assert h.name in words(panel.table)
    image = re.search(r'<img style="[^"]*" alt="([^"]+)" src="data:image/png;base64,([^"]+)">', panel.picture.value)
    assert unescape(image[1]).endswith(expected.verdict)
    assert base64.b64decode(image[2]).startswith(b"\x89PNG")
    assert panel.progress.value == 1.0 and panel.progress.bar_style == "success" and not panel.button.disabled
    assert plt.get_fignums() == []


def test_every_dial_is_obeyed(panel):
    values = {
        "activation": "tanh", "form of the theorem": "kernel", "residual coefficient β": 0.5,
        "scale of the branches": 0.2, "size of the targets ‖R₀‖": 0.01, "fraction τ of the step": 0.5, "seed": 7,
    }  # fmt: skip
    assert {*values, "width d", "tokens n", "samples P"} == set(panel.dials)
    for label, value in values.items():
        panel.dials[label].value = value
    panel.press()
    expected = Settings(
        d=24, n=3, P=2, activation="tanh", form="kernel", beta_attention=0.5, beta_ffn=0.5, branches=0.2, size=0.01,
        tau=0.5, seed=7,
    )  # fmt: skip
    assert replace(panel.trial.settings, size=0.01) == expected
    assert panel.trial.settings.size == pytest.approx(0.01)


def test_a_refusal_is_shown_as_such(panel):
    panel.dials["size of the targets ‖R₀‖"].value = 10.0
    panel.press()
    assert "Refused" in words(panel.message) and "fails" in words(panel.table)
    assert panel.progress.bar_style == "warning" and panel.picture.value


def test_bad_settings_give_a_message_and_the_panel_lives_on(panel):
    panel.press()
    for label, value, text in (
        ("fraction τ of the step", 1.5, "tau: expected a number with 0 < tau <= 1, got 1.5"),
        ("tokens n", 16, "P times n: expected at most 96 rows"),
    ):
        usual = panel.dials[label].value
        panel.dials["samples P"].value = 16 if label == "tokens n" else 2
        panel.dials[label].value = value
        panel.press()
        assert "These settings cannot be used" in words(panel.message) and text in words(panel.message)
        assert panel.trial is None and panel.picture.value == panel.table.value == ""
        assert panel.progress.bar_style == "danger" and not panel.button.disabled
        panel.dials[label].value, panel.dials["samples P"].value = usual, 2
        panel.press()
        assert panel.trial.certified


def test_the_second_labs_dials_are_obeyed():
    panel = skip_lab().panel()
    assert {"attention skip β_A", "feed-forward skip β_F", "scale of W_Q and W_K"} <= set(panel.dials)
    for label, value in (("width d", 24), ("tokens n", 3), ("samples P", 2), ("attention skip β_A", 0.5)):
        panel.dials[label].value = value
    panel.press()
    chosen = panel.trial.settings
    assert (chosen.beta_attention, chosen.beta_ffn, chosen.attention) == (0.5, 1.0, 0.0)
    assert panel.trial.without is not None


def test_builds_show_the_first_settings_and_no_widget(monkeypatch, capsys):
    monkeypatch.setenv("RESIDUAL_GD_PROGRESS", "0")
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    for lab in (rate_lab(), skip_lab()):
        lab.show()
        printed = capsys.readouterr().out
        assert printed.strip() == str(lab.run()) and "Certified." in printed and "margin" in printed


def test_running_notebooks_show_the_panel(monkeypatch):
    displayed = []
    monkeypatch.setenv("RESIDUAL_GD_PROGRESS", "1")
    monkeypatch.setattr("IPython.display.display", displayed.append)
    rate_lab().show()
    assert [type(box).__name__ for box in displayed] == ["VBox"]


LABS = {"05-rate-theorem": "rate_lab().show()", "06-residual-rank": "skip_lab().show()"}


@pytest.mark.parametrize("name", LABS)
def test_run_buttons_stand_beside_the_lab(name):
    cells = notebooks.read(notebooks.ROOT / "chapters" / f"{name}.ipynb").cells
    (k,) = (k for k, cell in enumerate(cells) if cell.source == LABS[name])
    repository = yaml.safe_load((notebooks.ROOT / "_config.yml").read_text())["repository"]
    place, branch = repository["url"].removeprefix("https://github.com/"), repository["branch"]
    for link in (
        f"(https://mybinder.org/v2/gh/{place}/{branch}?urlpath=lab/tree/chapters/{name}.ipynb)",
        f"(https://colab.research.google.com/github/{place}/blob/{branch}/chapters/{name}.ipynb)",
    ):
        assert link in cells[k - 1].source
    assert len(cells[k].metadata["mystnb"]["image"]["alt"]) > 20
    printed = "".join(output.get("text", "") for output in cells[k].outputs)
    assert "Certified." in printed and not any("widget" in str(output) for output in cells[k].outputs)


def test_the_chapters_cells_work_in_a_live_kernel(monkeypatch, tmp_path):
    monkeypatch.setenv("RESIDUAL_GD_PROGRESS", "1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("from residual_gd.labs import *")])
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in LABS.values()]
    drive = ("panel = rate_lab().panel()", "panel.button.click()", "print(panel.message.value)")
    notebook.cells.append(nbformat.v4.new_code_cell("\n".join(drive)))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell in notebook.cells[1:3]:
        assert ["application/vnd.jupyter.widget-view+json" in o.data for o in cell.outputs] == [True]
    assert [o.text for o in notebook.cells[3].outputs if "Certified." in o.text] != []
