"""Problem set 4: right answers get full points, an empty one gets none, and wrong ones what they deserve."""

import numpy as np
import pytest
from problem_sets import graded, reference
from wrong_answers import Wrong, check_wrong

from residual_gd.course import ps4
from residual_gd.samples import softmax

STUDENT, OTHER = "ab1234", "cd5678"
ANSWERS = ("q1a", "q1b", "q2a", "q2b", "q3a", "q3b", "q3c", "q4a", "q4b", "q4c", "q5a", "q5b", "q5c")
ALL = tuple(name + "-test" for name in ANSWERS)


def after(name, text):
    """The reference answer with more lines behind it."""
    return reference("ps4")[name] + "\n" + text


def literal(array):
    return f"np.array({np.asarray(array).tolist()!r})"


def copied():
    """Question 1b, 2 and 5c as another student would have typed them in."""
    n = ps4.own_tokens(OTHER)
    pool, W_Q, W_K, beta = ps4.pool(OTHER)
    X = pool[:5] if np.linalg.matrix_rank(pool[:5]) == 5 else pool[4:]
    rows = list(range(5)) if X is not pool[4:] and np.array_equal(X, pool[:5]) else list(range(4, 9))
    SX = softmax(X @ W_Q @ (X @ W_K).T / 3**0.5) @ X
    normal = np.linalg.svd(X)[2][-1]
    V = -beta * np.linalg.pinv(SX) @ X + np.outer(normal, normal)
    X, W, beta = ps4.pair(OTHER)
    S, delta = softmax(X @ W @ (X @ W).T / 2**0.5), X[0] - X[1]
    pair = -beta / (S[0, 0] - S[1, 0]) * np.outer(delta, delta) / (delta @ delta)
    first = np.append(np.log(n - 1), np.zeros(n - 1))
    return {
        "q1b": f"G_sharp = {literal(np.tile(first, (n, 1)))}",
        "q2a": f"rows = {rows}\nW_V = {literal(V)}",
        "q2b": f"W_V_zero = {literal(V)}",
        "q5c": f"W_V_pair = {literal(pair)}",
    }


POOL = ps4.pool(STUDENT)[0]
TWICE = next([i, j] for i in range(9) for j in range(i) if np.array_equal(POOL[i], POOL[j]))
SUM = next(
    [i, j, k]
    for i in range(9)
    for j in range(9)
    for k in range(j)
    if len({i, j, k}) == 3 and np.allclose(POOL[i], POOL[j] + POOL[k], atol=1e-12)
)


def five_with(chosen, without=()):
    """Five indices that contain these, filled up with tokens that add rank where they can."""
    rows = list(chosen)
    for r in range(9):
        if len(rows) < 5 and r not in rows and r not in without:
            rows.append(r)
    return rows


MINUS = "-beta * np.eye(6)"

WRONG = {
    "oscillation down the columns": Wrong(
        {"q1a": ("np.max(G, axis=1) - np.min(G, axis=1)", "np.max(G, axis=0) - np.min(G, axis=0)")},
        lost=("q1a-test",),
        says={"q1a-test": "down the columns; it counts within each row"},
    ),
    "oscillation of the whole matrix, a uniform matrix": Wrong(
        {
            "q1a": ("np.max(np.max(G, axis=1) - np.min(G, axis=1))", "np.max(G) - np.min(G)"),
            "q1b": "G_sharp = np.zeros((n_own, n_own))",
        },
        lost=("q1a-test", "q1b-test"),
        says={"q1a-test": "it counts within each row", "q1b-test": "take eps >= 0.1"},
    ),
    "eps is not halved, the book's logits": Wrong(
        {
            "q1a": ("np.sinh(eps / 2)", "np.sinh(eps)"),
            "q1b": "G_sharp = np.zeros((n_own, n_own))\nG_sharp[:, 0] = np.log(2)",
        },
        lost=("q1a-test", "q1b-test"),
        says={"q1a-test": "eps must be halved", "q1b-test": "at equality it is"},
    ),
    "a softmax of the columns, three different logits": Wrong(
        {"q1a": ("softmax(G)", "softmax(G.T).T"), "q1b": "G_sharp = np.outer(np.ones(n_own), np.arange(n_own))"},
        lost=("q1a-test", "q1b-test"),
        says={"q1a-test": "not in each column", "q1b-test": "between its smallest and its largest"},
    ),
    "the counterexample of the book": Wrong(
        {"q2a": after("q2a", f"W_V = {MINUS}"), "q2b": f"W_V_zero = {MINUS}"},
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "multiple of the identity", "q2b-test": "takes away one rank of each sample, no more"},
    ),
    "a token is chosen twice": Wrong(
        {
            "q2a": f"rows = {[0, 0, 1, 2, 3]}\nW_V = np.diag(np.arange(1.0, 7))",
            "q2b": "W_V_zero = np.eye(6)",
        },
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "a token is chosen twice", "q2b-test": "with X of full row rank"},
    ),
    "two tokens are equal": Wrong(
        {
            "q2a": f"rows = {five_with(TWICE, SUM)}\nW_V = np.diag(np.arange(1.0, 7))",
            "q2b": "W_V_zero = np.eye(6)",
        },
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "two of your tokens are equal"},
    ),
    "the tokens are dependent": Wrong(
        {
            "q2a": f"rows = {five_with(SUM, TWICE[:1])}\nW_V = np.diag(np.arange(1.0, 7))",
            "q2b": "W_V_zero = np.eye(6)",
        },
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "one of your tokens is the sum of two others"},
    ),
    "a counterexample with the wrong sign": Wrong(
        {"q2a": after("q2a", "W_V = -W_V"), "q2b": after("q2b", "W_V_zero = -W_V_zero")},
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "it would for -W_V", "q2b-test": "it would be 0 for -W_V"},
    ),
    "the transpose of a counterexample": Wrong(
        {"q2a": after("q2a", "W_V = W_V.T"), "q2b": after("q2b", "W_V_zero = W_V_zero.T")},
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "the transpose of your W_V", "q2b-test": "the transpose of your W_V"},
    ),
    "a counterexample without the skip, and one of low rank": Wrong(
        {
            "q2a": after("q2a", "g = np.linalg.svd(attention(X) @ X)[2][0]\nW_V = np.eye(6) - np.outer(g, g)"),
            "q2b": ("W_V_zero = W_V_zero + np.outer(normal, normal)", ""),
        },
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "it would without the skip beta X", "q2b-test": "W_V has rank 5, not 6"},
    ),
    "beta is taken to be 1": Wrong(
        {"q2a": ("-beta * X.T", "-X.T"), "q2b": ("-beta *", "-1 *")},
        lost=("q2a-test", "q2b-test"),
        says={"q2a-test": "it would for beta = 1", "q2b-test": "it would be 0 for beta = 1"},
    ),
    "the answers of another student": Wrong(
        copied(),
        lost=("q1b-test", "q2a-test", "q2b-test", "q5c-test"),
        says={"q2b-test": "W_V_zero", "q5c-test": "the tokens do not merge"},
    ),
    "eigenvalues without their sign, and the wrong norm": Wrong(
        {"q3a": ("values = -np", "values = np"), "q3b": ("sigma_max(S @ X @ W_V)", "np.linalg.norm(S @ X @ W_V)")},
        lost=("q3a-test", "q3b-test"),
        says={"q3a-test": "beta must be the negative of one", "q3b-test": "this has the Frobenius norm"},
    ),
    "negative and complex values are kept, ||X|| for sigma_min(X)": Wrong(
        {
            "q3a": (" & (values.real >= 0)", ""),
            "q3b": ("/ sigma_min(X)", "/ sigma_max(X)"),
            "q3c": "v = -1.0",
        },
        lost=("q3a-test", "q3b-test", "q3c-test"),
        says={
            "q3a-test": "beta >= 0 is asked for",
            "q3b-test": "the weakest direction of X decides",
            "q3c-test": "a negative v works against the skip",
        },
    ),
    "complex eigenvalues count, v is too small": Wrong(
        {"q3a": ("(np.abs(values.imag) <= 1e-8) & ", ""), "q3c": "v = 1e-3"},
        lost=("q3a-test", "q3c-test"),
        says={"q3a-test": "complex eigenvalues belong to no real beta", "q3c-test": "take a larger v"},
    ),
    "X does not belong to V": Wrong(
        {"q3a": ("S @ X @ W_V @ np.linalg.inv(X)", "S @ W_V")},
        lost=("q3a-test",),
        says={"q3a-test": "these belong to S W_V"},
    ),
    "the library finds them": Wrong(
        {
            "q3a": "from residual_gd.rank import exceptional_betas as exceptional",
            "q4a": "from residual_gd.rank import uniform_loss_floor as loss_floor",
        },
        lost=("q3a-test", "q4a-test"),
        says={"q3a-test": "write this yourself", "q4a-test": "write this yourself"},
    ),
    "one mean for all samples, a head fitted to Z": Wrong(
        {"q4a": ("Y.mean(axis=1, keepdims=True)", "Y.mean(axis=(0, 1))"), "q4b": ("X).H", "X).Z")},
        lost=("q4a-test", "q4b-test", "q4c-test"),
        says={"q4a-test": "one mean for all samples", "q4b-test": "it is fitted to Z; the head reads H"},
    ),
    "no square and no factor 1/2": Wrong(
        {"q4a": ("0.5 * np.sum(", "1.0 * np.sum("), "q4b": ("return np", "return -np")},
        lost=("q4a-test", "q4b-test", "q4c-test"),
        says={"q4a-test": "yours is 2 times as large", "q4b-test": "the sign is reversed"},
    ),
    "the two skips exchanged": Wrong(
        {"q4c": after("q4c", "table = {(f, a): ratio for (a, f), ratio in table.items()}")},
        lost=("q4c-test",),
        says={"q4c-test": "the two skips are exchanged"},
    ),
    "numbers that look right": Wrong(
        {
            "q4a": "def loss_floor(Y):\n    return 1.0 if Y.size == 2 else 0.0 if Y.size == 4 else 11.0",
            "q4c": "table = {(0, 0): 1.0, (0, 1): 1.0, (1, 0): 0.5, (1, 1): 0.5}",
        },
        lost=("q4a-test", "q4c-test"),
        says={"q4a-test": "the floor for Y", "q4c-test": "table, beta_A = 1, beta_F = 0"},
    ),
    "the loss over the first loss": Wrong(
        {"q4c": ("/ loss_floor(Y_data)", "/ run.loss[0]")}, lost=("q4c-test",), says={"q4c-test": "divide by the floor"}
    ),
    "no skip through the layers": Wrong(
        {"q5a": (" + beta * T", ""), "q5b": ("1 / (np.sqrt(a) * apart)", "1 / (a * apart)")},
        lost=("q5a-test", "q5b-test"),
        says={"q5a-test": "the skip beta T is missing", "q5b-test": "a stands without its root"},
    ),
    "no division by the root of d_k": Wrong(
        {"q5a": (" / np.sqrt(W_Q.shape[1])", ""), "q5b": (" / (2 * np.sqrt(W_Q.shape[1]))", " / 2")},
        lost=("q5a-test", "q5b-test"),
        says={"q5a-test": "must be divided by sqrt(d_k)", "q5b-test": "sqrt(d_k) is missing in a_l"},
    ),
    "attention of the input in every layer, the product of the norms": Wrong(
        {
            "q5a": ("T @ W_Q @ (T @ W_K).T", "X @ W_Q @ (X @ W_K).T"),
            "q5b": ("sigma_max(W_Q @ W_K.T)", "sigma_max(W_Q) * sigma_max(W_K)"),
        },
        lost=("q5a-test", "q5b-test"),
        says={"q5a-test": "is computed from T_{l-1}, not from X", "q5b-test": "not the product of the norms"},
    ),
    "the tokens are not centered": Wrong(
        {
            "q5a": ("T - T.mean(axis=0)", "T"),
            "q5b": ("np.linalg.norm(X - X.mean(axis=0))", "np.linalg.norm(X - 0.5 * X.mean(axis=0))"),
            "q5c": after("q5c", "W_V_pair = -W_V_pair"),
        },
        lost=("q5a-test", "q5b-test", "q5c-test"),
        says={"q5a-test": "distances", "q5c-test": "it would for -W_V"},
    ),
    "both tokens are sent to zero": Wrong(
        {"q5c": after("q5c", "W_V_pair = -beta_pair * np.linalg.pinv(S_pair @ X_pair) @ X_pair")},
        lost=("q5c-test",),
        says={"q5c-test": "both tokens became zero"},
    ),
    "printing that all is well": Wrong(dict.fromkeys(ANSWERS, 'print("all tests passed")'), lost=ALL),
    "the checker is replaced": Wrong(
        {
            "q5a": "import residual_gd.course, residual_gd.course.compare\n"
            "class Kind:\n    def __getattr__(self, name):\n        return lambda *a, **k: None\n"
            "fresh = residual_gd.course.fresh = lambda: Kind()\n"
            "residual_gd.course.matches = residual_gd.course.compare.matches = lambda *a, **k: None\n"
            "np.linalg.norm = lambda *a, **k: 0.0\n"
            "def distances(X, weights, beta):\n    return np.zeros(len(weights) + 1)"
        },
        lost=("q5a-test",),
    ),
    "a test cell is deleted": Wrong(
        {"q5b": ("for W_Q, W_K, W_V in weights", "for W_Q, W_K, W_V in weights[:1]")},
        lost=("q5b-test",),
        says={"q5b-test": "the largest a_l counts, not the first"},
        edit=lambda notebook: notebook.cells.remove(
            next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "q5b-test")
        ),
    ),
    "a syntax error": Wrong({"q3b": "def safe_beta(S, X"}, lost=("q3b-test",), says={"q3b": "SyntaxError"}),
}


@pytest.mark.parametrize("student", [f"student{i}" for i in range(20)])
def test_reference_gets_full_points(student):
    result = graded("ps4", student, reference("ps4"))
    assert result.points == result.possible_points, result.messages
    assert result.possible == 18 and set(result.manual) == {"q6"}  # the free text is worth the other 2


def test_empty_gets_nothing():
    result = graded("ps4", STUDENT)
    assert result.total == 0 and result.manual == {"q6": 0.0} and set(result.points) == set(ALL)
    assert "q1a: your answer is missing here" in result.messages["q1a-test"]


OTHER_WAYS = {
    # More than one weight is large, where n allows it; other tokens; a counterexample that is found by its first row.
    "q2a": "rng = np.random.default_rng(0)\n"
    "rows = max(([*rng.permutation(9)[:5]] for _ in range(60)), key=lambda r: sigma_min(pool[r]))\n"
    "X = pool[rows]\nS_five = attention(X)\nW_V = None\n"
    "while W_V is None or np.linalg.cond(W_V) > 500:\n"
    "    u, M = rng.standard_normal(5), rng.standard_normal((6, 6))\n"
    "    a, b = X.T @ S_five.T @ u, -beta * X.T @ u\n"
    "    W_V = M + np.outer(a, b - M.T @ a) / (a @ a)",
    "q2b": "inverse = np.linalg.inv(attention(X))\n"
    "extra = np.linalg.svd(X)[2][-1:]\n"
    "W_V_zero = np.linalg.solve(np.vstack([X, extra]), np.vstack([-beta * inverse @ X, 3.0 * extra]))",
    "q3c": "v = 50.0",
    "q4b": "def best_head(net, theta, X, Y):\n"
    "    H = forward(net, theta, X).H.reshape(-1, net.d)\n    return np.linalg.pinv(H) @ Y.reshape(-1, net.c)",
    "q5c": "S_pair = softmax(X_pair @ W_pair @ (X_pair @ W_pair).T / np.sqrt(2))\n"
    "W_V_pair = -beta_pair / (S_pair[0, 0] - S_pair[1, 0]) * np.eye(4)",
}


def test_other_right_answers_count():
    """Any counterexample and any minimizer counts, not that of the reference alone."""
    result = graded("ps4", STUDENT, reference("ps4") | OTHER_WAYS)
    assert result.points == result.possible_points, result.messages


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_get_what_they_deserve(name):
    check_wrong("ps4", STUDENT, WRONG[name])
