"""Problem set 1: right answers get full points, an empty one gets none, and wrong ones what they deserve."""

import numpy as np
import pytest
from problem_sets import graded, reference, student_version
from wrong_answers import Wrong, check_wrong

from residual_gd.course import ps1
from residual_gd.transformer import forward, gradient, loss

STUDENT, OTHER = "ab1234", "cd5678"
TESTS = {
    "q1": ("q1a-test", "q1b-test", "q1c-test"),
    "q2a": ("q2a-test", "q2a-test-2", "q2a-test-3"),
    "q2b": ("q2b-test",),
    "q3": ("q3-test", "q3-test-2", "q3-test-3", "q3-test-4"),
    "q4a": ("q4a-test", "q4a-test-2"),
    "q4b": ("q4b-test",),
    "q5a": ("q5a-test",),
    "q5b": ("q5b-test", "q5b-test-2"),
}
ALL = tuple(name for names in TESTS.values() for name in names)


def literal(array):
    return repr(np.round(array, 12).tolist())


def numbers(student):
    """The answers of question 1 and 5b as plain numbers, as a student would type them in, or copy them."""
    net, theta, X, Y = ps1.paper_network(student)
    at = forward(net, theta, X)
    H, g = at.H[0], gradient(net, theta, X, Y)["W_U"]
    best = np.sum(g**2) / np.sum((H @ g) ** 2)
    instance = ps1.suspect(student)
    right = gradient(*instance[:4])
    wrong = {block for block in right if not np.allclose(right[block], instance[4][block])}
    mistakes = [
        k
        for k, fault in enumerate(ps1.FAULTS, start=1)
        if all(np.allclose(fault(*instance[:4])[block], instance[4][block]) for block in right)
    ]
    assert len(mistakes) == 1
    return {
        "q1a": f"S_hand = {literal(at.S[0])}\nZ_hand = {literal(at.Z[0])}",
        "q1b": f"H_hand = {literal(H)}\nF_hand = {literal(at.F[0])}\nloss_hand = {float(loss(net, theta, X, Y))}",
        "q1c": f"head_gradient = {literal(g)}\nbest_step = {float(best)}",
        "q5b": f"wrong_blocks = {wrong!r}\nmistake = {mistakes[0]}",
    }


OWN, COPIED = numbers(STUDENT), numbers(OTHER)
AUTOMATIC = """
import torch

def backward_attention(net, theta, X, at, Z_bar):
    names = ("W_V", "W_Q", "W_K")
    W = {name: torch.tensor(theta[name], requires_grad=True) for name in names}
    X = torch.tensor(X)
    G = X @ W["W_Q"] @ (X @ W["W_K"]).mT / net.d_k**0.5
    Z = torch.softmax(G, dim=-1) @ X @ W["W_V"]
    found = torch.autograd.grad((Z * torch.tensor(Z_bar)).sum(), [W[name] for name in names])
    return {name: g.numpy() for name, g in zip(names, found)}
"""
COLUMNS = """
S_hand = np.exp(theta["W_Q"] @ [[1.0, 0.0]])
S_hand = S_hand / S_hand.sum(axis=0)
Z_hand = S_hand @ theta["W_V"] + net.beta_attention * np.eye(2)
"""

WRONG = {
    "by hand, the first skip is forgotten": Wrong(
        {"q1a": (" + net.beta_attention * np.eye(2)", "")},
        lost=("q1a-test",),
        says={"q1a-test": "Z_hand: the skip beta_A X is missing"},
    ),
    "by hand, softmax of the columns": Wrong(
        {"q1a": COLUMNS},
        lost=("q1a-test",),
        says={"q1a-test": "the sum of each row of S_hand"},
    ),
    "by hand, activation forgotten": Wrong(
        {"q1b": ('np.maximum(Z_hand @ theta["W_1"], 0)', 'Z_hand @ theta["W_1"]')},
        lost=("q1b-test",),
        says={"q1b-test": "the activation is missing"},
    ),
    "by hand, the loss without its factor": Wrong(
        {"q1b": ("0.5 * np.sum", "np.sum")}, lost=("q1b-test",), says={"q1b-test": "the factor 1/2 is missing"}
    ),
    "by hand, twice the best step": Wrong(
        {"q1c": ("best_step = np.sum", "best_step = 2 * np.sum")},
        lost=("q1c-test",),
        says={"q1c-test": "the best step is half of it"},
    ),
    "the numbers of another student": Wrong(
        {name: COPIED[name] for name in ("q1a", "q1b", "q1c", "q5b")},
        lost=("q1a-test", "q1b-test", "q1c-test", "q5b-test", "q5b-test-2"),
        says={"q5b-test-2": "has other numbers than those you were given"},
    ),
    "no skip in the code of attention": Wrong(
        {"q2a": (" + beta * X", "")}, lost=("q2a-test-2",), says={"q2a-test-2": "the skip beta X is missing"}
    ),
    "the skip's coefficient is ignored": Wrong(
        {"q2a": ("beta * X", "X"), "q2b": ("beta * Z", "Z")},
        lost=("q2a-test-2", "q2b-test"),
        says={
            "q2b-test": "H: the skip has the coefficient 1 in your code",
            "q2a-test-2": "the coefficient 1 in your code",
        },
    ),
    "no division by the root of d_k": Wrong(
        {"q2a": (" / np.sqrt(W_Q.shape[1])", "")},
        lost=TESTS["q2a"],
        says={"q2a-test": "the division by the square root of d_k is missing"},
    ),
    "the softmax overflows": Wrong(
        {"q2a": (" - G.max(axis=-1, keepdims=True)", "")},
        lost=("q2a-test-3",),
        says={"q2a-test-3": "not finite"},
    ),
    "constants in place of a function": Wrong(
        {
            "q2a": 'constant = forward(*ps1.small_network(ID, "ps1/q2")[:3])\n\n'
            "def attention(X, W_Q, W_K, W_V, beta):\n    return constant.G, constant.S, constant.Z"
        },
        lost=TESTS["q2a"],
        says={"q2a-test": "G for X of shape"},
    ),
    "the library does the work": Wrong(
        {
            "q3": "def backward(net, theta, at, R):\n"
            "    X = at.layers[0].T\n"
            '    return gradient(net, theta, X, at.F - R) | {"Z": R @ theta["W_U"].T}'
        },
        lost=TESTS["q3"],
        says={"q3-test": "write this yourself"},
    ),
    "the sign of the skip's road": Wrong(
        {"q3": ("+ net.beta_ffn * H_bar", "- net.beta_ffn * H_bar")},
        lost=("q3-test-4",),
        says={"q3-test-4": "the sign of the skip's road is reversed"},
    ),
    "the skip's road is missing": Wrong(
        {"q3": (" + net.beta_ffn * H_bar", "")},
        lost=("q3-test-4",),
        says={"q3-test-4": "the road through the skip is missing"},
    ),
    "no slope of the activation": Wrong(
        {"q3": (" * net.activation.derivative(at.E)", "")},
        lost=("q3-test-3", "q3-test-4"),
        says={"q3-test-3": "the slope phi'(E) is missing", "q3-test-4": "the slope phi'(E) is missing"},
    ),
    "the mean over the samples": Wrong(
        {"q3": ('return np.einsum("pia,pib->ab", T, U)', 'return np.einsum("pia,pib->ab", T, U) / len(T)')},
        lost=("q3-test", "q3-test-2", "q3-test-3"),
        says={"q3-test": "this is the mean over the samples"},
    ),
    "the residual's sign": Wrong(
        {"q3": ("H_bar = R @", "R = -R\n    H_bar = R @")},
        lost=TESTS["q3"],
        says={"q3-test": "the sign is reversed", "q3-test-4": "the sign is reversed"},
    ),
    "one gradient of four": Wrong(
        {"q3": 'def backward(net, theta, at, R):\n    return {"W_U": np.einsum("pia,pib->ab", at.H, R)}'},
        lost=("q3-test-2", "q3-test-3", "q3-test-4"),
        says={"q3-test-2": "not answered yet"},
    ),
    "attention the wrong way round": Wrong(
        {"q4a": ("transposed(at.S @ X) @ Z_bar", "transposed(X) @ at.S @ Z_bar")},
        lost=("q4a-test",),
        says={"q4a-test": "S stands the wrong way round"},
    ),
    "no mean in the softmax Jacobian": Wrong(
        {"q4a": (" - np.sum(at.S * S_bar, axis=-1, keepdims=True)", "")},
        lost=("q4a-test-2",),
        says={"q4a-test-2": "the part s s^T of the softmax Jacobian is missing"},
    ),
    "the logits' adjoint transposed for the keys": Wrong(
        {"q4a": ("transposed(X) @ transposed(G_bar)", "transposed(X) @ G_bar")},
        lost=("q4a-test-2",),
        says={"q4a-test-2": "W_K: the adjoint of the logits stands the wrong way round"},
    ),
    "automatic differentiation": Wrong(
        {"q4a": AUTOMATIC}, lost=TESTS["q4a"], says={"q4a-test": "torch.autograd.grad was called: write this yourself"}
    ),
    "the wrong adjoint for a skip": Wrong(
        {"q4b": ("np.sum(Z_bar * X)", "np.sum(H_bar * X)")},
        lost=("q4b-test",),
        says={"q4b-test": "in place of that of Z"},
    ),
    "a quotient to one side": Wrong(
        {"q5a": ("(f(W + t * V) - f(W - t * V)) / (2 * t)", "(f(W + t * V) - f(W)) / t")},
        lost=("q5a-test",),
        says={"q5a-test": "the quotient to one side, forward"},
    ),
    "the right blocks, a wrong mistake": Wrong(
        {"q5b": OWN["q5b"].replace("mistake = ", "mistake = 1 + ")},
        lost=("q5b-test-2",),
        says={"q5b-test-2": "has other numbers"},
    ),
    "printing that all is well": Wrong(
        dict.fromkeys(("q1a", "q1b", "q1c", *list(TESTS)[1:]), 'print("all tests passed")'), lost=ALL
    ),
    "the checker is replaced": Wrong(
        {
            "q3": "import residual_gd.course, residual_gd.course.compare\n"
            "class Kind:\n    def __getattr__(self, name):\n        return lambda *a, **k: None\n"
            "fresh = residual_gd.course.fresh = lambda: Kind()\n"
            "residual_gd.course.matches = residual_gd.course.compare.matches = lambda *a, **k: None\n"
            "np.allclose = lambda *a, **k: True\n"
            "def backward(net, theta, at, R):\n    return {}"
        },
        lost=TESTS["q3"],
    ),
    "a test cell is deleted": Wrong(
        {"q3": (" * net.activation.derivative(at.E)", "")},
        lost=("q3-test-3", "q3-test-4"),
        edit=lambda notebook: notebook.cells.remove(
            next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "q3-test-3")
        ),
    ),
    "a syntax error": Wrong({"q2b": "def feed_forward(Z, W_1"}, lost=("q2b-test",), says={"q2b": "SyntaxError"}),
}


@pytest.mark.parametrize("student", [f"student{i}" for i in range(20)])
def test_reference_gets_full_points(student):
    result = graded("ps1", student, reference("ps1"))
    assert result.points == result.possible_points, result.messages
    assert result.possible == 17 and set(result.manual) == {"q6"}  # the free text is worth the other 3


def test_numbers_typed_in_get_full_points():
    result = graded("ps1", STUDENT, reference("ps1") | OWN)
    assert result.points == result.possible_points, result.messages


OTHER_WAYS = {
    "q2a": """
from scipy.special import softmax as soft

def attention(X, W_Q, W_K, W_V, beta):
    G = np.array([(x @ W_Q) @ (x @ W_K).T / len(W_Q[0]) ** 0.5 for x in X])
    S = np.array([[soft(row) for row in g] for g in G])
    return [G, S, np.einsum("pij,pjd,de->pie", S, X, W_V) + beta * X]
""",
    "q3": """
def backward(net, theta, at, R):
    P, n, c = R.shape
    flat = {name: getattr(at, name).reshape(P * n, -1) for name in "ZEAH"}
    r, D = R.reshape(P * n, c), []
    for k in range(P * n):
        h_bar = theta["W_U"] @ r[k]
        D.append((h_bar, net.activation.derivative(flat["E"][k]) * (theta["W_2"] @ h_bar)))
    H_bar, E_bar = (np.array([pair[i] for pair in D]) for i in (0, 1))
    Z_bar = E_bar @ theta["W_1"].T + net.beta_ffn * H_bar
    blocks = dict(W_1=flat["Z"].T @ E_bar, W_2=flat["A"].T @ H_bar, W_U=flat["H"].T @ r)
    return blocks | {"Z": Z_bar.reshape(at.Z.shape), "mine": 0}
""",
    "q4a": """
def backward_attention(net, theta, X, at, Z_bar):
    g = {b: np.zeros_like(theta[b]) for b in ("W_Q", "W_K", "W_V")}
    for x, S, z in zip(X, at.S, Z_bar):
        s_bar = z @ (x @ theta["W_V"]).T
        g_bar = np.array([(np.diag(s) - np.outer(s, s)) @ b for s, b in zip(S, s_bar)]) / net.d_k**0.5
        g["W_V"] += x.T @ S.T @ z
        g["W_Q"] += x.T @ g_bar @ x @ theta["W_K"]
        g["W_K"] += x.T @ g_bar.T @ x @ theta["W_Q"]
    return g
""",
    "q4b": "def skip_slopes(X, Z, Z_bar, H_bar):\n    return np.array([np.vdot(X, Z_bar), np.vdot(Z, H_bar)])",
}


def test_other_right_ways_get_full_points():
    result = graded("ps1", STUDENT, reference("ps1") | OWN | OTHER_WAYS)
    assert result.points == result.possible_points, result.messages


def test_empty_gets_nothing():
    result = graded("ps1", STUDENT)
    assert result.total == 0 and result.manual == {"q6": 0.0}
    assert set(result.points) == set(ALL)
    first = next(name for name in result.messages)
    assert first == "q1a" and "q1a: your answer is missing here" in result.messages[first]


def test_blank_id_is_told(monkeypatch):
    monkeypatch.delenv("RESIDUAL_GD_STUDENT", raising=False)
    names = {}
    with pytest.raises(ValueError, match="Write it in the cell"):
        for cell in student_version("ps1").cells:
            if cell.cell_type == "code":
                exec(cell.source, names)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_get_what_they_deserve(name):
    check_wrong("ps1", STUDENT, WRONG[name], also={"q5b": OWN["q5b"]})
