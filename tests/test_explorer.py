"""The explorers: the payload is the library's numbers, rounded; bad input is refused; the same bytes each time."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from residual_gd.certificates import certify
from residual_gd.depth import pure_attention, token_spread
from residual_gd.descent import descend, feature_step
from residual_gd.experiments import sentiment_records
from residual_gd.experiments.records import MANIFEST, PACKAGES
from residual_gd.experiments.sentiment_explorer import sentiment_explorer
from residual_gd.experiments.weather_records import recorded_sweeps
from residual_gd.explorer import Axis, Control, Explorer, Frame, Place, Row, Triangle, number
from residual_gd.explorer.live import widget
from residual_gd.explorer.rate import certified_loss
from residual_gd.explorer.runs import FOUR, beta_sweeps, four_residuals
from residual_gd.explorer.softmax import three_weights
from residual_gd.explorer.spectrum import attention_output, before_and_after, merging_tokens
from residual_gd.explorer.triangle import lattice_weights
from residual_gd.jacobian import softmax_jacobian
from residual_gd.majorants import softmax_constants
from residual_gd.matrices import sigma_max, singular_values
from residual_gd.parameters import initialize, stack_runs
from residual_gd.samples import softmax
from residual_gd.transformer import Transformer


def powers(strength, n):
    rows = (Row("small", (number(strength), "< 5"), strength < 5),)
    return Frame({"power": strength * np.arange(1, n + 1.0) ** -2, "one": np.ones(n)}, {"n": str(n)}, rows)


def build(**changes):
    options = {
        "title": "Powers of the index",
        "controls": (Control("strength", (0.1, 1.0, 10.0), 1), Control("n", (4, 8))),
        "frame": powers,
        "x": np.arange(1, 9),
        "x_axis": Axis("index"),
        "y_axis": Axis("value", log=True),
        "marks": {"power": "points"},
        "table": ("What holds", ("hypothesis", "measured", "needed")),
    }
    return Explorer(**(options | changes))


def frame_of(explorer, *setting):
    """The stored frame of a setting of the grid."""
    index = 0
    for control, value in zip(explorer.controls, setting, strict=True):
        index = index * len(control.values) + control.values.index(value)
    return explorer.payload["frames"][index]


def stored(values):
    """Values as an explorer stores them, None where they are not finite."""
    return [float(f"{v:.3g}") if np.isfinite(v) else None for v in values]


def test_the_payload_holds_every_setting():
    explorer = build()
    assert len(explorer.payload["frames"]) == 6
    for strength in (0.1, 1.0, 10.0):
        for n in (4, 8):
            frame = frame_of(explorer, strength, n)
            assert frame["y"][0] == stored(powers(strength, n).curves["power"])
            assert frame["read"] == [str(n)]
            assert frame["rows"] == [[number(strength), "< 5"]]
            assert frame["fails"] == ([] if strength < 5 else [0])
    assert explorer.start_frame() == frame_of(explorer, 1.0, 4)


def test_the_output_is_plain_and_always_the_same():
    first, second = build(title="a </script> in a title").html(), build(title="a </script> in a title").html()
    assert first == second
    assert first.count("</script>") == 1
    body = first.partition('application/json">')[2].partition("</script>")[0]
    assert json.loads(body)["title"] == "a </script> in a title"
    assert "NaN" not in first and "widget" not in first


def test_gaps_and_numbers():
    explorer = build(frame=lambda s, n: Frame({"a": np.array([s, np.nan, np.inf, 1234.5, 1e-9])}), marks={}, table=None)
    assert frame_of(explorer, 0.1, 4)["y"] == [[0.1, None, None, 1230, 1e-9]]
    assert (number(float("nan")), number(0), number(1.0), number(0.012345)) == ("-", "0", "1", "0.0123")
    assert number(float("inf")) == "inf"


def test_axes_cover_all_frames():
    axes = build().payload["axes"]
    assert axes["x"]["range"] == [1.0, 8.0]
    assert axes["y"]["range"] == [1e-3, 10.0]
    fixed = build(y_axis=Axis("value", low=0.0, high=2.0)).payload["axes"]["y"]
    assert fixed == {"label": "value", "log": False, "range": [0.0, 2.0]}


def test_the_picture_is_drawn_from_the_payload():
    explorer = build()
    fig = explorer.picture()
    lines = fig.axes[0].lines
    assert [line.get_label() for line in lines] == ["power", "one"]
    assert list(lines[0].get_ydata()) == explorer.start_frame()["y"][0]
    assert [line.get_linestyle() for line in lines] == ["None", "-"]
    assert fig.axes[0].get_yscale() == "log"
    plt.close(fig)


def test_settings_between_those_of_the_grid():
    explorer = build()
    assert explorer.frame_at(0.1, 8) == frame_of(explorer, 0.1, 8)
    assert explorer.frame_at(3, 5)["y"][0] == stored(powers(3.0, 5).curves["power"])
    for values, text in (((3,), "values"), ((30, 4), "strength"), ((np.nan, 4), "strength"), ((3, 4.5), "whole")):
        with pytest.raises(ValueError, match=text):
            explorer.frame_at(*values)
    named = build(
        controls=(Control("strength", (1.0,)), Control("n", ("few", "many"))), frame=lambda s, n: powers(s, 4)
    )
    with pytest.raises(ValueError, match="n: expected"):
        named.frame_at(1.0, "none")


def test_the_widget_answers_with_frames_and_with_errors():
    explorer = build(anywhere=True)
    live = widget(explorer)
    live.wanted = {"number": 1, "values": [3, 5]}
    assert live.answer == {"number": 1, "frame": explorer.frame_at(3, 5)}
    live.wanted = {"number": 2, "values": [3, 50]}
    assert live.answer["number"] == 2 and "expected" in live.answer["error"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"title": " "}, "title"),
        ({"frame": 3}, "frame"),
        ({"frame": lambda s, n: [1.0]}, "frame"),
        ({"controls": ()}, "controls"),
        ({"controls": (Control("strength", ()), Control("n", (4,)))}, "strength"),
        ({"controls": (Control("strength", (1.0, "two")), Control("n", (4,)))}, "strength"),
        ({"controls": (Control("strength", (1.0,), 1), Control("n", (4,)))}, "start of strength"),
        ({"x": [[1.0]]}, "x: expected"),
        ({"x": np.arange(3)}, "power: expected"),
        ({"marks": {"other": "line"}}, "marks"),
        ({"marks": {"power": "stars"}}, "mark of power"),
        ({"table": None}, "table"),
        ({"table": ("caption", ("one", "two"))}, "table"),
        ({"x_axis": "index"}, "x_axis"),
        ({"y_axis": Axis("value", log=True, low=0.0)}, "low of y_axis"),
        ({"y_axis": Axis("value", low=2.0, high=1.0)}, "y_axis"),
        ({"frame": lambda s, n: Frame({}), "marks": {}}, "curves"),
        ({"frame": lambda s, n: Frame({f"curve {s}": [1.0]}), "marks": {}}, "labels"),
        ({"frame": lambda s, n: Frame({"a": [-1.0]}), "marks": {}}, "y_axis"),
        ({"frame": lambda s, n: Frame({"a": [1.0]}, rows=(Row(f"{s}", ("", "")),)), "marks": {}}, "rows"),
        ({"controls": (Control("strength", tuple(np.linspace(0.1, 1.0, 400))), Control("n", (4, 8)))}, "bytes"),
    ],
)
def test_bad_input_is_named(changes, text):
    with pytest.raises(ValueError, match=text):
        build(**changes)


def small_start(size, scale):
    rng = np.random.default_rng(5)
    net = Transformer(d=24, d_k=4, m=24, c=2)
    X, Y = rng.standard_normal((2, 4, 24)), rng.standard_normal((2, 4, 2))
    theta = initialize(net, rng, W_Q=0.05, W_K=0.05, W_V=scale, W_1=scale, W_2=scale, W_U=0.0)
    return net, theta, X, size * Y / np.linalg.norm(Y)


def test_certified_loss_shows_the_certificate():
    sizes, scales = (0.01, 100.0), (0.1, 0.3)
    explorer = certified_loss(small_start, certify, descend, feature_step, sizes=sizes, scales=scales, steps=12)
    seen = set()
    for size in sizes:
        certificate = certify(*small_start(size, 0.1), tau=0.5)
        seen.add(certificate.holds)
        frame = frame_of(explorer, size, 0.1, 0.5)
        assert frame["read"][0] == ("holds" if certificate.holds else "refused")
        for row, hypothesis in zip(frame["rows"], certificate.hypotheses, strict=True):
            assert row[0] == number(hypothesis.measured)
            assert row[1] == f"{hypothesis.sense} {number(hypothesis.needed)}"
            assert row[2].endswith("fails") == (not hypothesis.holds)
        assert frame["fails"] == [k for k, h in enumerate(certificate.hypotheses) if not h.holds]
        if certificate.holds:
            parts = small_start(size, 0.1)
            run = descend(*parts, steps=12, step=certificate.step, trace_every=3, spectra=False)
            assert frame["y"][0] == stored(run.relative_loss)
            assert frame["y"][1] == stored(certificate.envelope(run.iterations) / certificate.loss)
            assert all(loss <= bound for loss, bound in zip(*frame["y"], strict=True))
        else:
            assert frame["y"][1] == [None] * 5
    assert seen == {True, False}


def test_attention_output_shows_singular_values():
    rng = np.random.default_rng(3)
    X, W_V = rng.standard_normal((6, 6)), rng.standard_normal((6, 6))

    def attention(X, strength):
        S = softmax(strength * X @ X.T)
        return S, S @ X @ W_V

    explorer = attention_output(
        lambda n: X[:n], attention, singular_values, strengths=(0.1, 10.0), betas=(0.0, 1.0), lengths=(3, 6)
    )
    for strength in (0.1, 10.0):
        S = softmax(strength * X[:3] @ X[:3].T)
        sigma = np.linalg.svd(S @ X[:3] @ W_V + X[:3], compute_uv=False)
        frame = frame_of(explorer, strength, 1.0, 3)
        np.testing.assert_allclose(frame["y"][0], sigma, rtol=5e-3)
        assert frame["read"][0] == number(sigma[-1])
        assert frame["read"][2] == number(np.linalg.norm(S - 1 / 3))


def test_before_and_after_leaves_rounding_out():
    of_X, start, end = [3.0, 2.0, 1e-15], [4.0, 1.0, 1e-3], [4.0, 2e-11, 1e-17]
    explorer = before_and_after(
        lambda name, beta: (of_X, np.multiply(start, 1 + beta), end), settings=("one", "two"), betas=(0.0, 1.0)
    )
    frame = frame_of(explorer, "two", 1.0)
    assert frame["y"] == [[3, 2, None], [8, 2, 0.002], [4, None, None]]
    assert frame["read"] == ["2", "3", "1", "0.002", "4"]


def test_merging_tokens_shows_the_spread():
    X = 0.15 * np.random.default_rng(2).standard_normal((1, 6, 8))

    def spreads(strength, beta):
        net = Transformer(d=8, d_k=8, m=1, c=1, layers=3, beta_ffn=1.0, beta_attention=beta)
        theta = pure_attention(net, np.random.default_rng(2), **dict.fromkeys(("W_Q", "W_K", "W_V"), strength))
        return token_spread(net, theta, X)[:, 0]

    explorer = merging_tokens(spreads, betas=(0.5, 1.0), strengths=(0.5, 1.0), layers=3)
    with_skip, without = spreads(1.0, 0.5), spreads(1.0, 0.0)
    frame = frame_of(explorer, 1.0, 0.5)
    assert frame["y"][0] == stored(with_skip / with_skip[0])
    kept = np.where(without / without[0] > 1e-12, without / without[0], np.nan)
    assert frame["y"][1] == stored(kept)


def half_turn(count=360):
    angle = np.pi * np.arange(count)[:, None] / count
    plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    return np.cos(angle) * plane[0] + np.sin(angle) * plane[1]


def moments(s):
    centered = half_turn() - (half_turn() @ s)[:, None]
    return centered**2 @ s, abs(centered**3 @ s)


def test_three_weights_shows_norms_under_their_bounds():
    explorer = three_weights(moments, half_turn(), softmax_constants, weights=(0.0, 0.3, 1.0), shares=(0.0, 0.25, 0.5))
    drawn = explorer.payload["triangle"]
    lattice = lattice_weights(drawn["side"])
    assert np.allclose(lattice.sum(axis=1), 1.0) and len(np.unique(lattice, axis=0)) == 25 * 26 / 2
    first, second = (np.array(m["values"]) for m in drawn["maps"])
    np.testing.assert_allclose(first, [sigma_max(softmax_jacobian(s)) for s in lattice], rtol=6e-3, atol=1e-12)
    for values, k in ((first, 0), (second, 1)):
        assert np.all(values <= [softmax_constants(float(s.max()))[k] + 1e-3 for s in lattice])
    # The second derivative in every pair of directions is no larger than in the best single one.
    s = lattice[100]
    u, v = half_turn(60)[:, None], half_turn(60)[None]
    pairs = (u - (u @ s)[..., None]) * (v - (v @ s)[..., None])
    sizes = np.linalg.norm(pairs * s - (pairs @ s)[..., None] * s, axis=-1)  # D^2 softmax[u, v]
    assert sizes.max() == pytest.approx(second[100], rel=5e-3)


def test_three_weights_points_where_the_norms_are_attained():
    explorer = three_weights(moments, half_turn(), softmax_constants, weights=(0.0, 0.3, 1.0), shares=(0.0, 0.25, 0.5))
    middle = frame_of(explorer, 0.0, 0.5)  # of the side from token 2 to token 3, which leans to the left by 60 degrees
    assert middle["at"] == [0.75, 0.433] and middle["turn"] == [120, None]
    assert middle["read"][:3] == ["(0.00, 0.50, 0.50)", "0.5 of at most 0.5", "(0.00, 0.71, -0.71)"]
    corner = frame_of(explorer, 1.0, 0.25)
    assert corner["at"] == [0, 0] and corner["turn"] == [None, None] and corner["read"][2] == "none"
    s = np.array([0.3, 0.175, 0.525])
    frame = frame_of(explorer, 0.3, 0.25)
    values, vectors = np.linalg.eigh(softmax_jacobian(s))
    x, y = vectors[1:, -1] @ np.array([[1.0, 0.0], [0.5, 0.75**0.5]])
    assert abs((frame["turn"][0] - np.degrees(np.arctan2(y, x)) + 90) % 180 - 90) <= 1
    assert frame["read"][1].split()[0] == number(values[-1])
    fig = explorer.picture()
    assert [ax.get_title() for ax in fig.axes[:2]] == [m["label"] for m in explorer.payload["triangle"]["maps"]]
    plt.close(fig)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ([0.5, 0.5, 0.0], "a Place"),
        (Place(np.array([0.5, 0.5]), (None,)), "weights"),
        (Place(np.array([0.5, 0.6, -0.1]), (None,)), "weights"),
        (Place(np.array([0.5, 0.2, 0.2]), (None,)), "weights"),
        (Place(np.array([0.5, 0.2, 0.3]), ()), "directions"),
        (Place(np.array([0.5, 0.2, 0.3]), (np.array([np.nan, 0.0, 0.0]),)), "directions"),
    ],
)
def test_a_place_that_is_none_is_named(place, text):
    with pytest.raises(ValueError, match=text):
        Triangle("Somewhere", (Control("n", (1,)),), lambda n: place, maps={"largest": np.max}, side=4)


def test_four_residuals_shows_the_runs():
    net, theta, X, Y = small_start(1.0, 1.0)
    beta_A, beta_F = np.array(list(FOUR.values()), dtype=float).T
    four = net.with_beta(beta_attention=beta_A, beta_ffn=beta_F)

    def run(step, start):
        options = {"steps": 8, "trace_every": 2, "spectra": False, "on_divergence": "mark"}
        return descend(four, stack_runs([theta] * 4), X, Y, step=step, **options).relative_loss

    explorer = four_residuals(run, steps=(0.001, 100.0), starts=("the start",), iterations=np.arange(0, 9, 2))
    one = descend(
        net.with_beta(beta_attention=0.0, beta_ffn=1.0), theta, X, Y, steps=8, step=0.001, trace_every=2, spectra=False
    )
    frame = frame_of(explorer, 0.001, "the start")
    assert frame["y"][2] == stored(one.relative_loss) and frame["read"][2] == number(one.relative_loss[-1])
    assert "diverges" in frame_of(explorer, 100.0, "the start")["read"]


def test_beta_sweeps_shows_the_record():
    sweeps = {name: recorded_sweeps(name) for name in ("weather-jena-W2", "weather-mast-W2")}
    records = {name: (s["common"].iterations, s["common"], s["fair"]) for name, s in sweeps.items()}
    betas = sweeps["weather-jena-W2"]["common"].betas
    explorer = beta_sweeps(records, betas)
    for name, found in sweeps.items():
        frame = frame_of(explorer, name, 0.25)
        for k, rule in enumerate(("common", "fair")):
            median = np.median(found[rule].relative_loss[:, 1], axis=-1)
            at = dict(zip(found[rule].iterations, median, strict=True))
            expected = [at[i] if at[i] > 1e-12 else np.nan for i in explorer.payload["x"] if i in at]
            assert frame["y"][k] == stored(expected)


def view(seed, L, rise):
    rising = [0.1 + rise * l + 0.01 * seed for l in range(L + 1)]
    return {"token_cosine": rising, "sentence_cosine": rising[::-1], "stable_rank": [5.0 - seed] * (L + 1)}


@pytest.fixture
def sentiment_record(tmp_path):
    """A record of chapter 8's form: three seeds, of which one diverged without residuals and 10 layers."""
    curves = {}
    for run, how in sentiment_records.SIX.items():
        for seed in range(3):
            inside = {"start": view(seed, how["layers"], 0.01), "end": view(seed, how["layers"], 0.05)}
            if run == "L10-without" and seed == 2:
                del inside["end"]
            curves[sentiment_records.piece_name(run, seed)] = {"inside": inside}
    empty = {str: "some", dict: {}, int: 1}
    manifest = {key: empty[kind if isinstance(kind, type) else int] for key, kind in MANIFEST.items()}
    manifest |= {"configuration": {"seeds": [0, 1, 2]}, "versions": dict.fromkeys(PACKAGES, "1")}
    path = tmp_path / "sentiment-sst2.json"
    path.write_text(json.dumps({"manifest": manifest, "curves": curves}))
    return path


def test_sentiment_explorer_shows_the_record(sentiment_record):
    explorer = sentiment_explorer(folder=sentiment_record.parent)
    assert explorer.payload["x"] == list(range(11))
    for L in (2, 6, 10):
        for when, rise in (("before training", 0.01), ("after training", 0.05)):
            frame = frame_of(explorer, L, "with residual connections", when)
            expected = [0.1 + rise * l + 0.01 for l in range(L + 1)]  # the seed in the middle
            assert frame["y"] == [stored(expected), stored(expected[::-1])]
            last = [number(expected[-1] + more) for more in (0.0, -0.01, 0.01)]
            assert frame["read"] == ["{} ({} to {})".format(*last), "0.11 (0.1 to 0.12)", "4 (3 to 5)", "3 of 3"]
    assert frame_of(explorer, 10, "without residual connections", "after training")["read"][-1] == "2 of 3"
    with pytest.raises(ValueError, match="name"):
        sentiment_explorer("sentiment-ablations", folder=sentiment_record.parent)
    with pytest.raises(FileNotFoundError):
        sentiment_explorer("sentiment-memorize", folder=sentiment_record.parent)


def test_a_setting_whose_runs_all_diverged_is_shown_as_such(sentiment_record):
    record = json.loads(sentiment_record.read_text())
    for seed in range(3):
        record["curves"][f"L2-without-seed{seed}"]["inside"].pop("end")
    sentiment_record.write_text(json.dumps(record))
    explorer = sentiment_explorer(folder=sentiment_record.parent)
    frame = frame_of(explorer, 2, "without residual connections", "after training")
    assert frame["y"] == [[None] * 3] * 2 and frame["read"][0] == "diverges" and frame["read"][-1] == "0 of 3"
