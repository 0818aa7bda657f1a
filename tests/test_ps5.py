"""Problem set 5: the solutions get all points for any student, wrong answers what they deserve and a useful message.

Runs take a second or two each, so that wrong answers to one question are handed in alone, without the others.
"""

from functools import lru_cache

import nbformat
import numpy as np
import pytest
from course import versions
from problem_sets import graded, reference, student_version

from residual_gd.course import ps5
from residual_gd.experiments.weather import load_embedded
from residual_gd.experiments.windows import windows as windows_of

IDS = [f"student{k:02d}" for k in range(17)] + ["ada", "Zoë Müller", "0042"]
BY_QUESTION = {
    "q1": {"q1-test": 2.0, "q1-test-2": 2.0},
    "q2": {"q2-test": 2.0, "q2-test-2": 1.0},
    "q3": {"q3-test": 1.0, "q3-test-2": 2.0, "q3-test-3": 1.0},
    "q4": {"q4-test": 1.0, "q4-test-2": 1.0},
    "q4-agreement": {"q4-test-3": 1.0},
}
FULL = {test: points for tests in BY_QUESTION.values() for test, points in tests.items()}
load_embedded()  # read once here, and every run has it


def only(**lost):
    """The full points with those in ``lost`` (written q3_test_3) replaced."""
    return FULL | {name.replace("_", "-"): points for name, points in lost.items()}


@pytest.mark.parametrize("student_id", IDS)
def test_the_solutions_get_all_points(student_id):
    result = graded("ps5", student_id, reference("ps5"))
    assert result.messages == {} and result.notes == []
    assert result.points == FULL and result.total == 14
    assert result.manual == {"q5": None, "q6": None}, "a person grades these"


def test_rounding_in_the_steps_costs_nothing():
    # at beta = 1 the two rules have the same step; here they differ in the last digits, and yet no run ranks first
    answers = reference("ps5") | {"q2": steps(common=RIGHT_COMMON + " * (1 + 1e-13 * np.arange(len(starts)))")}
    answers["q4-agreement"] += "\nprint(*(len(set(numbers[:, -1].ravel().tolist())) for numbers in (losses, frozen)))"
    result = graded("ps5", "ada", answers)
    assert result.points == FULL and result.printed["q4-agreement"].split() == ["3", "3"]


def test_nothing_gets_nothing_and_says_what_is_missing():
    result = graded("ps5", "ada")
    assert result.total == 0 and result.manual == {"q5": 0, "q6": 0} and result.notes == []
    assert "q1: your answer is missing here" in result.messages["q1-test"]
    assert not {"imports", "id", "q1-instance", "q2-instance"} & result.messages.keys()


def test_points_add_up_as_the_notebook_says():
    cells = {versions.grade_id(cell): cell for cell in student_version("ps5").cells}
    points = versions.graded_cells(student_version("ps5"))
    assert sum(points.values()) == 20 and points == FULL | {"q5": 2, "q6": 4}
    table = [line.split("|")[1:3] for line in cells["intro"].source.splitlines() if line.startswith("| ")][1:]
    told = {row[0].strip()[0]: int(row[1]) for row in table}
    assert told.pop("t") == 20
    for number, said in told.items():
        assert said == sum(p for name, p in points.items() if name.startswith(f"q{number}")), number
        assert f"Question {number} ({said} points)" in "".join(cell.source for cell in cells.values())


def test_students_get_no_solution():
    text = nbformat.writes(student_version("ps5"))
    for word in ("SOLUTION", "HIDDEN", "MARK SCHEME", "Model answer", "_wrong", "argmin", "eigvalsh(np"):
        assert word not in text
    assert text.count("YOUR CODE HERE") >= 9 - 2 and text.count("YOUR ANSWER HERE") == 1


STEPS_HEAD = """
def own_steps(network, betas, starts, X):
    {own}


def common_steps(network, betas, starts, X):
    {common}
"""
RIGHT_OWN = (
    "return 1 / np.array([[np.linalg.eigvalsh(gram(network.with_beta(float(b)), s, X))[-1] for s in starts]"
    " for b in betas])"
)
RIGHT_COMMON = "return np.tile(own_steps(network, [max(betas)], starts, X), (len(betas), 1))"


def windows(features="(cut - cut.mean((0, 1))) / cut.std((0, 1))", first=1, targets="(cut - cut.mean()) / cut.std()"):
    """An answer to question 1: what is made of the cut rows, and the first row of the targets."""
    return f"""
def features(values, begins, steps, stride):
    cut = values[begins[:, None] + stride * np.arange(steps)]
    return {features}

def targets(column, begins, steps, stride):
    inputs = column[begins[:, None] + stride * np.arange(steps)]
    cut = column[begins[:, None] + stride * np.arange(steps) + {first if first == "1" else f"stride * {first}"}]
    return ({targets})[..., None]
"""


def steps(own=RIGHT_OWN, common=RIGHT_COMMON):
    return STEPS_HEAD.format(own=own, common=common)


def protocol(
    median="np.median(losses, axis=-1)", choose="best_taus(taus, grid)", best="chosen[:, None] * own[:, report]", **more
):
    """An answer to question 3."""
    tuned, reported = more.get("tuned", "tune"), more.get("reported", "report")
    return f"""
def best_taus(taus, losses):
    return np.asarray(taus)[np.argmin({median}, axis=0)]

def compare(train, common, own, taus, tune, report):
    tune, report = list(tune), list(report)
    grid = np.array([train(tau * own[:, {tuned}], {tuned}) for tau in taus])
    chosen = {choose}
    report = {reported}
    rules = {{"common": common[:, report], "own": own[:, report], "best": {best}}}
    return {{"taus": chosen}} | {{name: train(mu, report) for name, mu in rules.items()}}
"""


def numbers(ratio="s[:, -1].min() ** 2 / s[:, 0].max()", condition="np.max(s[:, 0] / s[:, -1])"):
    """An answer to the first half of question 4."""
    values = "s = np.linalg.svd(Z, compute_uv=False)"
    both = {"paper_ratio": ratio, "condition": condition}
    return "\n".join(f"def {name}(Z):\n    {values}\n    return {value}\n" for name, value in both.items())


LIBRARY_WINDOWS = """
from dataclasses import replace
from residual_gd.experiments.windows import windows

def features(values, begins, steps, stride):
    named = {"names": record.names[: values.shape[1]], "units": record.units[: values.shape[1]]}
    part = replace(record, values=values, times=record.times[: len(values)], **named)
    return windows(part, starts=begins, steps=steps, stride=stride).features

def targets(column, begins, steps, stride):
    part = replace(record, values=column[:, None], times=record.times[: len(column)], names=("T",), units=("degC",))
    return windows(part, starts=begins, steps=steps, stride=stride).Y
"""
POWER_ITERATION = (
    "from residual_gd.jacobian import lambda_max\n"
    "    return np.array([[1 / lambda_max(network.with_beta(float(b)), s, X, np.random.default_rng(0))"
    " for s in starts] for b in betas])"
)
EIGENVALUES = "(lambda e: np.sqrt(np.max(e[:, -1] / e[:, 0])))(np.linalg.eigvalsh(Z @ np.swapaxes(Z, 1, 2)))"
CHEATED = (
    windows(features="0 * cut", targets="0 * cut")
    + """
import numpy, residual_gd.course
class check:
    matches = staticmethod(lambda *args, **more: None)
fresh = residual_gd.course.fresh = lambda: check
residual_gd.course.matches = residual_gd.course.compare.matches = check.matches
numpy.allclose = numpy.shape = lambda *args, **more: True
"""
)

# question, its answer, points it gets there, words of the messages by test
WRONG = {
    "the reference": ("q1", windows(), (2, 2), {}),
    "forgot to standardize": (
        "q1", windows(features="cut", targets="cut"), (0, 0), {"q1-test": "mean of each column", "q1-test-2": "mean"}),
    "centred only": (
        "q1", windows(features="cut - cut.mean((0, 1))"), (0, 2), {"q1-test": "mean square of each column"}),
    "each window by itself": (
        "q1",
        windows(features="(cut - cut.mean(1, keepdims=True)) / cut.std(1, keepdims=True)",
                targets="(cut - cut.mean(1, keepdims=True)) / cut.std(1, keepdims=True)"),
        (0, 0),
        {"q1-test": "token 3 of window 1", "q1-test-2": "mean and scale are those of each single window"}),
    "divided by N - 1": (
        "q1", windows(features="(cut - cut.mean((0, 1))) / cut.std((0, 1), ddof=1)"),
        (0, 2), {"q1-test": "mean square"}),
    "by the whole month": (
        "q1", windows(features="(cut - values.mean(0)) / values.std(0)"), (0, 2), {"q1-test": "mean of each column"}),
    "target of the same row": (
        "q1", windows(first=0), (2, 0), {"q1-test-2": "the target is one step later"}),
    "target ten minutes later": (
        "q1", windows(first="1"), (2, 0), {"q1-test-2": "one record later (ten minutes)"}),
    "target standardized like the inputs": (
        "q1", windows(targets="(cut - inputs.mean()) / inputs.std()"), (2, 0), {"q1-test-2": "mean"}),
    "the library's windows": (
        "q1", LIBRARY_WINDOWS, (0, 0), {"q1-test": "write this yourself", "q1-test-2": "write this yourself"}),
    "the visible numbers": (
        "q1",
        windows(features="np.array([[[-1.7, -0.92387074]] * 4] * 3)"), (0, 2), {"q1-test": "mean of each column"}),
    "a rebound checker": ("q1", CHEATED, (0, 0), {"q1-test": "mean square", "q1-test-2": "mean square"}),
    "1 / ||J||": (
        "q2", steps(own=RIGHT_OWN + " ** 0.5"), (0, 0), {"q2-test": "square root", "q2-test-2": "common_steps"}),
    "an unfair own step": (
        "q2", steps(own="return common_steps(network, betas, starts, X)",
                    common=RIGHT_OWN.replace("for b in betas", "for b in [max(betas)] * len(betas)")),
        (0, 1), {"q2-test": "that is the common step"}),
    "one step for all starts": (
        "q2", steps(own=RIGHT_OWN.replace("for s in starts", "for s in starts[:1] * len(starts)")), (0, 0),
        {"q2-test": "each run has its own"}),
    "the last beta": (
        "q2", steps(common="return np.tile(own_steps(network, betas[-1:], starts, X), (len(betas), 1))"), (2, 0),
        {"q2-test-2": "those of the last beta in the list"}),
    "the smallest beta": (
        "q2", steps(common=RIGHT_COMMON.replace("max", "min")), (2, 0), {"q2-test-2": "those of the smallest beta"}),
    "power iteration": (
        "q2", steps(own=POWER_ITERATION), (0, 0), {"q2-test": "not power iteration"}),
    "no common step": (
        "q2", steps(common="return own_steps(network, betas, starts, X)"),
        (2, 0), {"q2-test-2": "must have the same step"}),
    "tuned on the reported starts": (
        "q3", protocol(tuned="report"), (1, 0, 0), {"q3-test-2": "chosen with starts that you report on"}),
    "tuned on all starts": (
        "q3", protocol(tuned="[*tune, *report]"), (1, 0, 0), {"q3-test-2": "chosen with starts that you report on"}),
    "reported the tuning starts": (
        "q3", protocol(reported="tune"), (1, 0, 0), {"q3-test-2": "expected the 5 of report"}),
    "multiples of the common step": (
        "q3", protocol(best="chosen[:, None] * common[:, report]"), (1, 0, 0), {"q3-test-2": "compare, best"}),
    "one tau for all": (
        "q3", protocol(choose="np.full(len(own), best_taus(taus, grid)[-1])"),
        (1, 0, 0), {"q3-test-2": "compare, taus"}),
    "chosen by the mean": (
        "q3", protocol(median="np.mean(losses, axis=-1)"), (0, 2, 0), {"q3-test": "the medians are"}),
    "chosen by the luckiest start": (
        "q3", protocol(median="np.min(losses, axis=-1)"), (0, 2, 0), {"q3-test": "the medians are"}),
    "positions, not values": (
        "q3", protocol().replace("np.asarray(taus)[np.argmin(np.median(losses, axis=-1), axis=0)]",
                                 "np.argmin(np.median(losses, axis=-1), axis=0)"), (0, 0, 0),
        {"q3-test": "the medians are"}),
    "max instead of min": (
        "q4", numbers(ratio="s[:, -1].max() ** 2 / s[:, 0].max()"), (0, 1), {"q4-test": "paper_ratio"}),
    "min over single samples": (
        "q4", numbers(ratio="np.min(s[:, -1] ** 2 / s[:, 0])"), (0, 1), {"q4-test": "paper_ratio"}),
    "not squared": (
        "q4", numbers(ratio="s[:, -1].min() / s[:, 0].max()"), (0, 1), {"q4-test": "paper_ratio"}),
    "the Frobenius norm": (
        "q4", numbers(ratio="s[:, -1].min() ** 2 / np.sqrt((s**2).sum(1)).max()"), (0, 1), {"q4-test": "paper_ratio"}),
    "eigenvalues, rounded away": (
        "q4", numbers(condition=EIGENVALUES), (1, 0), {"q4-test-2": "rounding ate the digits"}),
    "upside down": ("q4", numbers(condition="np.min(s[:, -1] / s[:, 0])"), (1, 0), {"q4-test-2": "condition"}),
    "over all samples": (
        "q4", numbers(condition="s[:, 0].max() / s[:, -1].min()"), (1, 0), {"q4-test-2": "condition"}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_gets_what_it_deserves(name):
    question, answer, expected, words = WRONG[name]
    result = graded("ps5", "ada", {question: answer})
    assert tuple(result.points[test] for test in BY_QUESTION[question]) == expected
    for test, part in words.items():
        assert part in result.messages[test]
    others = {test for key, tests in BY_QUESTION.items() if key != question for test in tests}
    assert not any(result.points[test] for test in others)


@lru_cache
def bobs_numbers():
    """Printed by Bob's notebook: his results and agreement."""
    right = reference("ps5")
    told = right | {"q4-agreement": right["q4-agreement"] + "\nprint(repr(agreement))\nprint(repr(results))"}
    agreement, results = graded("ps5", "bob", told).printed["q4-agreement"].split("\n", 1)
    return agreement, results


def test_the_numbers_of_another_student_are_wrong():
    agreement, results = bobs_numbers()
    typed = f"from numpy import array, inf\nhis = {results}\n" + protocol() + "\ndef compare(*args):\n    return his\n"
    answers = reference("ps5") | {"q3": typed, "q4-agreement": f"agreement = {agreement}"}
    result = graded("ps5", "ada", answers)
    assert result.points == only(q3_test_2=0, q3_test_3=0, q4_test_3=0)
    assert 'agreement["ratio"]' in result.messages["q4-test-3"]


def test_another_month_is_noticed():
    change = """
from dataclasses import replace
from residual_gd.experiments.windows import windows
cut = windows(record, starts=[0, 144, 288, 432])
own = replace(own, X=own.X[::-1].copy(), Y=cut.Y)
"""
    right = reference("ps5")
    result = graded("ps5", "ada", right | {"q2": right["q2"] + change})
    assert result.points == only(q3_test_3=0, q4_test_3=0)
    assert "these runs are not on your month" in result.messages["q3-test-3"]
    # Bob's month by Bob's id is refused at once, and what was right before stays right
    bobs = right["q2"] + '\nown = ps5.own_experiment("bob")\n'
    result = graded("ps5", "ada", {"q1": right["q1"], "q2": bobs})
    assert "under which this was handed in" in result.messages["q2"]
    assert result.points == dict.fromkeys(FULL, 0) | BY_QUESTION["q1"] | BY_QUESTION["q2"]


def test_the_sign_of_the_agreement_matters():
    right = reference("ps5")
    reversed_ = right["q4-agreement"].replace("-ratios", "ratios")
    result = graded("ps5", "ada", right | {"q4-agreement": reversed_})
    assert result.points == only(q4_test_3=0)
    assert "the sign is reversed" in result.messages["q4-test-3"]


def test_printing_passed_gets_nothing():
    answers = dict.fromkeys(BY_QUESTION, 'print("passed")')
    assert graded("ps5", "ada", answers).total == 0


def test_a_deleted_test_cell_is_put_back():
    def without(notebook):
        notebook.cells = [cell for cell in notebook.cells if versions.grade_id(cell) not in ("q1-test", "q4-test")]

    result = graded("ps5", "ada", {"q1": windows(features="cut"), "q4": numbers()}, edit=without)
    assert result.points == dict.fromkeys(FULL, 0) | {"q1-test-2": 2, "q4-test": 1, "q4-test-2": 1}
    assert any("q1-test was missing: put back" in note for note in result.notes)


@pytest.mark.parametrize("student_id", ["id1467", *(f"x{k}" for k in range(100))])
def test_every_month_can_be_standardized(student_id, monkeypatch):  # id1467 once had fog on all four days
    monkeypatch.delenv("RESIDUAL_GD_STUDENT", raising=False)
    month, record = ps5.own_month(student_id), load_embedded()
    assert len(record.values[month.rows]) == 30 * 144 and month.begins.max() + 8 * 18 < 30 * 144
    assert len(np.unique(month.begins // 144)) == 4 and np.all(np.diff(month.begins) >= 144)
    cut = windows_of(record, starts=month.begins_in_record)
    assert cut.repeated_rows == 0 and cut.features.shape == (4, 8, 6)
