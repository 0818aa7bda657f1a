"""Problem set 3: right answers get full points, an empty one gets none, and wrong ones what they deserve."""

import numpy as np
import pytest
from problem_sets import graded, reference
from wrong_answers import Wrong, check_wrong

from residual_gd.certificates import certify
from residual_gd.course import ps3
from residual_gd.transformer import forward

STUDENT, OTHER = "ab1234", "cd5678"
TESTS = {
    "q1a": ("q1a-test",),
    "q1b": ("q1b-test",),
    "q2a": ("q2a-test",),
    "q2b": ("q2b-test",),
    "q3a": ("q3a-test",),
    "q3b": ("q3b-test",),
    "q4a": ("q4a-test",),
    "q4b": ("q4b-test",),
    "q5a": ("q5a-test",),
    "q5b": ("q5b-test",),
    "q6a": ("q6a-test", "q6a-test-2"),
}
ALL = tuple(name for names in TESTS.values() for name in names)


def kind(net, theta, X, Y, form):
    if net.beta_attention == 0:
        return "skip"
    return "head" if form == "lipschitz" else "far" if np.any(theta["W_V"]) else "rows"


NAME = {kind(*parts): name for name, parts in ps3.refusals(STUDENT).items()}


def after(name, text):
    """The reference answer with more lines behind it."""
    return reference("ps3")[name] + "\n" + text


def instead_of(which, text):
    """The reference's mended cases, and for one of them, as net, theta, X, Y, form, something else."""
    name = NAME[which]
    return {"q6a": after("q6a", f'net_, theta_, X_, Y_, form_ = cases["{name}"]\nmended["{name}"] = {text}')}


WRONG = {
    "the descent form without 2 - tau, the smooth form without the square": Wrong(
        {"q1a": ("1 - (2 - tau) * step", "1 - step"), "q1b": ("(1 - step * delta) ** 2", "1 - step * delta")},
        lost=("q1a-test", "q1b-test", "q3b-test"),
        says={
            "q1a-test": "the factor 2 - tau is missing",
            "q1b-test": "that of the loss is its square",
            "q3b-test": "factor of the certificate",
        },
    ),
    "omega with the wrong sign, M as a norm": Wrong(
        {"q1b": ("alpha - omega", "alpha + omega"), "q1a": ("np.outer(f1, f1) + residual * f2", "np.outer(f1, f1)")},
        lost=("q1a-test", "q1b-test", "q3b-test"),
        says={"q1a-test": "this is ||f1||^2", "q1b-test": "omega must be subtracted"},
    ),
    "tau is forgotten": Wrong(
        {"q1a": ("step = tau / M", "step = 1 / M"), "q1b": ("step = tau / (f1 @ f1)", "step = 1 / (f1 @ f1)")},
        lost=("q1a-test", "q1b-test", "q3b-test"),
        says={"q1a-test": "where is tau?", "q1b-test": "tau is missing in the step"},
    ),
    "the norm is not squared, no minimum": Wrong(
        {
            "q1a": ("np.minimum(1, f1 / np.sqrt(alpha))", "(f1 / np.sqrt(alpha))"),
            "q1b": ("/ (f1 @ f1)", "/ np.linalg.norm(f1)"),
        },
        lost=("q1a-test", "q1b-test", "q3b-test"),
        says={"q1a-test": "the minimum with 1 is missing"},
    ),
    "numbers in place of functions": Wrong(
        {
            "q1a": "def descent_form(*_):\n    return 25.0, 0.04, 0.64, np.array([1.0, 1.0])",
            "q2a": "def alpha_at(H, A, W_U):\n    return 29.0",
            "q4b": "def verdict(*_):\n    return 1.0, 0.75",
        },
        lost=("q1a-test", "q2a-test", "q4b-test"),
        says={"q1a-test": "expected shape (4,), got (2,)", "q2a-test": "alpha_at for H", "q4b-test": "ratio of loss"},
    ),
    "singular values that are not squared, the strongest direction": Wrong(
        {"q2a": (") ** 2 + (", ") + ("), "q2b": ("left[:, -1:]", "left[:, :1]")},
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "alpha_at for the singular values", "q2b-test": "these are the fastest targets"},
    ),
    "the last singular value for the N-th, targets that are too long": Wrong(
        {"q2a": ("values[j - 1] if j <= len(values) else 0.0", "values[-1]"), "q2b": (" / np.sqrt(c)", "")},
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "the last singular value was taken although", "q2b-test": "the norm of the slowest"},
    ),
    "samples in place of the stack, the right singular vector": Wrong(
        {
            "q2a": "def alpha_at(H, A, W_U):\n"
            "    s = lambda T: min(np.linalg.svd(T, compute_uv=False)[..., -1].ravel())\n"
            "    return s(H) ** 2 + (s(A) * s(W_U)) ** 2",
            "q2b": "def slowest_targets(H, c):\n"
            "    right = np.linalg.svd(H.reshape(-1, H.shape[-1]))[2][-1]\n"
            "    return np.outer(right, np.ones(c)) / np.sqrt(c)",
        },
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "this takes the samples one by one", "q2b-test": "shape of the slowest targets"},
    ),
    "a search that stops when nothing changes": Wrong(
        {
            "q3a": "def least_radii(needed, blocks):\n    rho = np.zeros(blocks)\n    for _ in range(200):\n"
            "        new = needed(rho)\n        if not np.all(np.isfinite(new)):\n            return None\n"
            "        if np.allclose(new, rho, rtol=1e-5):\n            return rho\n        rho = new\n    return None"
        },
        lost=("q3a-test",),
        says={"q3a-test": "needed(rho) exceeds rho"},
    ),
    "a search without an end": Wrong(
        {"q3a": ("    return None\n    ### END", "    return rho\n    ### END")},
        lost=("q3a-test",),
        says={"q3a-test": "which has no solution: expected None"},
    ),
    "constants at the start, not on the ball": Wrong(
        {"q3b": ("promise(rho)\n    return", "promise(0 * rho)\n    return")},
        lost=("q3b-test",),
        says={"q3b-test": "of the certificate"},
    ),
    "only the step at the start": Wrong(
        {"q3b": ('"step": step', '"step": tau / np.sum(network_majorants(start, 0.0).f1 ** 2)')},
        lost=("q3b-test",),
        says={"q3b-test": "this is the step at rho = 0"},
    ),
    "the library certifies": Wrong(
        {
            "q3b": "def certificate(net, theta, X, Y, tau):\n    c = certify(net, theta, X, Y, tau=tau)\n"
            "    return {'radii': np.array(list(c.radii.values())), 'alpha': c.alpha, 'omega': c.omega, 'step': c.step,"
            " 'factor': c.rate} if c.holds else None",
            "q4a": "def run(net, theta, X, Y, step, steps):\n"
            "    trace = descend(net, theta, X, Y, steps=steps, step=step, spectra=False)\n"
            "    return trace.loss, trace.distances",
            "q5a": "from residual_gd.certificates import largest_certified_residual\n\n"
            "def largest_scale(net, theta, X, Y, form, rtol):\n"
            "    return largest_certified_residual(net, theta, X, Y, form=form, rtol=rtol).scale",
        },
        lost=("q3b-test", "q4a-test", "q5a-test"),
        says=dict.fromkeys(("q3b-test", "q4a-test", "q5a-test"), "write this yourself"),
    ),
    "uphill": Wrong(
        {"q4a": ("- step * slope", "+ step * slope")},
        lost=("q4a-test",),
        says={"q4a-test": "goes against the gradient"},
    ),
    "half the step, no factor 1/2": Wrong(
        {"q4a": ("- step * slope", "- 0.5 * step * slope")},
        lost=("q4a-test",),
        says={"q4a-test": "this is the run with half the step"},
    ),
    "theta is overwritten": Wrong(
        {
            "q4a": "def run(net, theta, X, Y, step, steps):\n    start = {b: W.copy() for b, W in theta.items()}\n"
            "    losses, moved = [], {b: [] for b in theta}\n    for _ in range(steps + 1):\n"
            "        losses.append(0.5 * np.sum((forward(net, theta, X).F - Y) ** 2))\n"
            "        for b, g in gradient(net, theta, X, Y).items():\n"
            "            moved[b].append(np.linalg.norm(theta[b] - start[b]))\n            theta[b] -= step * g\n"
            "    return np.array(losses), {b: np.array(rows) for b, rows in moved.items()}"
        },
        lost=("q4a-test",),
        says={"q4a-test": "it changed the matrices of theta"},
    ),
    "distances between neighbours, an envelope for the norm": Wrong(
        {
            "q4a": ("{block: np.array(rows) for", "{block: np.append(0, np.diff(rows)) for"),
            "q4b": ("factor ** np.arange(len(losses))", "factor ** (2 * np.arange(len(losses)))"),
        },
        lost=("q4a-test", "q4b-test"),
        says={"q4a-test": "measured from the start, not from the step before", "q4b-test": "the verdict"},
    ),
    "the targets are scaled, not their distance": Wrong(
        {"q5a": ("F + s * (Y - F)", "s * Y")},
        lost=("q5a-test",),
        says={"q5a-test": "it is the largest for the targets s Y"},
    ),
    "the form is ignored, the search only halves": Wrong(
        {"q5a": (", form=form)", ")")}, lost=("q5a-test",), says={"q5a-test": "it is the largest of the smooth form"}
    ),
    "the search never goes beyond the given targets": Wrong(
        {"q5a": ("    while accepted(low):\n        low = 2 * low\n", "    if accepted(low):\n        return low\n")},
        lost=("q5a-test",),
        says={"q5a-test": "they are not the farthest"},
    ),
    "the first that fails": Wrong(
        {"q5b": after("q5b", "reach += 1")}, lost=("q5b-test",), says={"q5b-test": "this is the first j that fails"}
    ),
    "two things are changed, and a skip that comes too late": Wrong(
        {
            "q6a": instead_of(
                "head", 'net_, theta_ | {"W_U": 0 * theta_["W_U"], "W_2": 0 * theta_["W_2"]}, X_, Y_, form_'
            )["q6a"]
            + f'\nmended["{NAME["skip"]}"] = cases["{NAME["skip"]}"][0].with_beta(beta_attention=0.0, beta_ffn=2.0),'
            f' *cases["{NAME["skip"]}"][1:]'
        },
        lost=("q6a-test", "q6a-test-2"),
        says={
            "q6a-test": "one thing may change, you changed W_2, W_U",
            "q6a-test-2": "changing beta_ffn like this does not help",
        },
    ),
    "targets that come too near, a sample that does no harm": Wrong(
        {
            "q6a": instead_of(
                "far",
                "net_, theta_, X_, forward(net_, theta_, X_).F + 1e-4 * (Y_ - forward(net_, theta_, X_).F), form_",
            )["q6a"]
            + f'\nnet_, theta_, X_, Y_, form_ = cases["{NAME["rows"]}"]\nharmless = [p for p in range(3)'
            " if not certify(net_, theta_, np.delete(X_, p, 0), np.delete(Y_, p, 0)).holds]\n"
            "rest = np.delete(X_, harmless[0], 0), np.delete(Y_, harmless[0], 0)\n"
            f'mended["{NAME["rows"]}"] = net_, theta_, *rest, form_'
        },
        lost=("q6a-test", "q6a-test-2"),
        says={"q6a-test": "nearer than needed", "q6a-test-2": "the samples like this does not help"},
    ),
    "another form": Wrong(
        {"q6a": after("q6a", "mended = {name: (*parts[:4], 'kernel') for name, parts in mended.items()}")},
        lost=("q6a-test", "q6a-test-2"),
        says={"q6a-test": "the form must stay"},
    ),
    "the cases of another student": Wrong(
        {
            "q6a": f'import os\n\nos.environ["RESIDUAL_GD_STUDENT"] = "{OTHER}"\ncases = ps3.refusals("{OTHER}")\n'
            f'os.environ["RESIDUAL_GD_STUDENT"] = "{STUDENT}"\n' + reference("ps3")["q6a"],
            "q5b": "reach = 40",
        },
        lost=("q5b-test", "q6a-test", "q6a-test-2"),
        says={"q6a-test": "mended"},
    ),
    "printing that all is well": Wrong(dict.fromkeys(TESTS, 'print("all tests passed")'), lost=ALL),
    "the checker is replaced": Wrong(
        {
            "q3b": "import residual_gd.course, residual_gd.course.compare\n"
            "class Kind:\n    def __getattr__(self, name):\n        return lambda *a, **k: None\n"
            "fresh = residual_gd.course.fresh = lambda: Kind()\n"
            "residual_gd.course.matches = residual_gd.course.compare.matches = lambda *a, **k: None\n"
            "def certificate(*_):\n    return {'step': 1.0, 'factor': 0.5, 'radii': [1.0], 'alpha': 1.0, 'omega': 0.0}"
        },
        lost=("q3b-test",),
    ),
    "a test cell is deleted": Wrong(
        {"q4a": ("- step * slope", "- 2 * step * slope")},
        lost=("q4a-test",),
        says={"q4a-test": "this is the run with twice the step"},
        edit=lambda notebook: notebook.cells.remove(
            next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "q4a-test")
        ),
    ),
    "a syntax error": Wrong({"q4b": "def verdict(losses"}, lost=("q4b-test",), says={"q4b": "SyntaxError"}),
}


@pytest.mark.parametrize("student", [f"student{i}" for i in range(20)])
def test_reference_gets_full_points(student):
    result = graded("ps3", student, reference("ps3"))
    assert result.points == result.possible_points, result.messages
    assert result.possible == 18 and set(result.manual) == {"q6b"}  # the free text is worth the other 2


def test_empty_gets_nothing():
    result = graded("ps3", STUDENT)
    assert result.total == 0 and result.manual == {"q6b": 0.0} and set(result.points) == set(ALL)
    assert "q1a: your answer is missing here" in result.messages["q1a-test"]
    assert "not answered yet" in result.messages["q6a-test"]


OTHER_WAYS = {
    "q2b": "def slowest_targets(H, c):\n"
    "    P, n, d = H.shape\n"
    "    stacked = H.reshape(P * n, d)\n"
    "    weak = np.linalg.eigh(stacked @ stacked.T)[1][:, 0]\n"
    "    weights = np.arange(1.0, c + 1)\n"
    "    return -np.outer(weak, weights / np.linalg.norm(weights)).reshape(P, n, c)",
    "q3b": "from residual_gd.rate_forms import Problem, smallest_radii, smooth\n\n"
    "def certificate(net, theta, X, Y, tau):\n"
    "    at = measure(net, theta, X)\n"
    "    problem = Problem(at, float(np.linalg.norm(forward(net, theta, X).F - Y)), tau)\n"
    "    found = smallest_radii(lambda rho: smooth(problem, rho), len(net.blocks))\n"
    "    return {'radii': found.rho, 'alpha': found.alpha, 'omega': found.omega, 'step': found.step,"
    " 'factor': found.rate} if found.sound else None",
    "q4a": "def run(net, theta, X, Y, step, steps):\n"
    "    path = [theta]\n"
    "    for _ in range(steps):\n"
    "        slope = gradient(net, path[-1], X, Y)\n"
    "        path.append({b: path[-1][b] - step * slope[b] for b in slope})\n"
    "    losses = [np.linalg.norm(forward(net, p, X).F - Y) ** 2 / 2 for p in path]\n"
    "    return np.array(losses), {b: [np.linalg.norm(p[b] - theta[b]) for p in path] for b in theta}",
    "q5a": "def largest_scale(net, theta, X, Y, form, rtol):\n"
    "    F = forward(net, theta, X).F\n"
    "    low, high = -7 * np.log(10), 7 * np.log(10)\n"
    "    while high - low > 0.9 * rtol:\n"
    "        middle = (low + high) / 2\n"
    "        good = certify(net, theta, X, F + np.exp(middle) * (Y - F), form=form).holds\n"
    "        low, high = (middle, high) if good else (low, middle)\n"
    "    return np.exp(low)",
    "q6a": f"""mended = dict(cases)
net_, theta_, X_, Y_, form_ = cases["{NAME["head"]}"]
mended["{NAME["head"]}"] = net_, theta_ | {{"W_U": 1e-3 * theta_["W_U"]}}, X_, Y_, form_
net_, *rest = cases["{NAME["skip"]}"]
mended["{NAME["skip"]}"] = net_.with_beta(beta_attention=0.5), *rest
net_, theta_, X_, Y_, form_ = cases["{NAME["rows"]}"]
good = [p for p in range(3) if certify(net_, theta_, np.delete(X_, p, 0), np.delete(Y_, p, 0)).holds]
mended["{NAME["rows"]}"] = net_, theta_, np.delete(X_, good[-1], 0), np.delete(Y_, good[-1], 0), form_
net_, theta_, X_, Y_, form_ = cases["{NAME["far"]}"]
far = largest_certified_residual(net_, theta_, X_, Y_, form=form_, rtol=0.1)
mended["{NAME["far"]}"] = [net_, theta_, X_, far.targets, form_]""",
}


def test_other_right_answers_count():
    """Other targets, other loops, other remedies: what is right counts, not what the reference does."""
    result = graded("ps3", STUDENT, reference("ps3") | OTHER_WAYS)
    assert result.points == result.possible_points, result.messages


@pytest.mark.parametrize("student", [STUDENT, OTHER, "e"])
def test_each_case_has_its_own_remedy(student):
    """The four refusals are of four kinds; by scaled matrices and moderate coefficients three have one remedy only."""
    remedies = {}
    for net, theta, X, Y, form in ps3.refusals(student).values():
        F, skips = forward(net, theta, X).F, {"beta_attention": net.beta_attention, "beta_ffn": net.beta_ffn}

        def holds(net=net, theta=theta, X=X, Y=Y, form=form):
            return certify(net, theta, X, Y, form=form).holds

        assert not holds()
        remedies[kind(net, theta, X, Y, form)] = {
            "targets": any(holds(Y=F + s * (Y - F)) for s in (0.3, 1e-2, 1e-4)),
            "skips": {s for s in skips for b in (0.0, 0.5, 2.0) if holds(net.with_beta(**skips | {s: b}))},
            "matrices": {b for b in net.blocks for f in (0.0, 0.1, 3.0) if holds(theta=theta | {b: f * theta[b]})},
            "samples": sum(holds(X=np.delete(X, p, 0), Y=np.delete(Y, p, 0)) for p in range(3)),
        }
    none = {"targets": False, "skips": set(), "matrices": set(), "samples": 0}
    assert remedies == {
        "far": none | {"targets": True},
        "head": none | {"matrices": {"W_U"}},
        "skip": none | {"skips": {"beta_attention"}},
        "rows": none | {"samples": 2},
    }


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_get_what_they_deserve(name):
    check_wrong("ps3", STUDENT, WRONG[name])
