"""Problem set 2: right answers get full points, an empty one gets none, and wrong ones what they deserve."""

import numpy as np
import pytest
from problem_sets import graded, reference, student_version
from wrong_answers import Wrong, check_wrong

from residual_gd.course import ps2
from residual_gd.jacobian import jvp

STUDENT, OTHER = "ab1234", "cd5678"
TESTS = {
    "q1a": ("q1a-test",),
    "q1b": ("q1b-test",),
    "q1c": ("q1c-test",),
    "q2a": ("q2a-test",),
    "q2b": ("q2b-test",),
    "q2c": ("q2c-test",),
    "q3a": ("q3a-test",),
    "q3b": ("q3b-test",),
    "q3c": ("q3c-test",),
    "q4a": ("q4a-test",),
    "q4b": ("q4b-test",),
    "q4c": ("q4c-test",),
    "q4d": ("q4d-test",),
    "q5a": ("q5a-test",),
    "q5b": ("q5b-test",),
    "q5c": ("q5c-test", "q5c-test-2"),
}
ALL = tuple(name for names in TESTS.values() for name in names)


def vector(size, **entries):
    """The text of a vector with these entries and zeros elsewhere; a name such as _3 is a place."""
    values = np.zeros(size)
    for place, value in entries.items():
        values[int(place[1:])] = value
    return repr(values.tolist())


def numbers(student):
    """The answers that are numbers, as this student would type them in, or copy them."""
    net, theta, X, V = ps2.network(student)
    dF = jvp(net, theta, X, {block: 0 * W for block, W in theta.items()} | {"W_V": 0.01 * V})
    s = ps2.weights(student)
    n, i, j = ps2.two_tokens(student)
    n_c, k = ps2.share(student)
    half, a = 0.5**0.5, 0.5 - 0.5 / 3**0.5
    pair = vector(n, **{f"_{i}": half, f"_{j}": -half})
    sensitive = np.linalg.eigh(np.diag(s) - np.outer(s, s))[1][:, -1]
    return {
        "q2c": f"dF_last = {dF[-1].tolist()}",
        "q4a": f"v_a = {(-sensitive).tolist()}",
        "q4b": f"g_b = {vector(n, **{f'_{i}': 50.0, f'_{j}': 50.0})}\nv_b = {pair}",
        "q4c": f"s_c = {vector(n_c, **{f'_{p}': 1 / k for p in range(n_c - k, n_c)})}\n"
        f"v_c = {vector(n_c, **{f'_{n_c - 1}': half, f'_{n_c - 2}': -half})}",
        "q4d": f"s_d = {vector(n, **{f'_{j}': a, f'_{i}': 1 - a})}\nv_d = {pair}",
    }


OWN, COPIED = numbers(STUDENT), numbers(OTHER)
LIBRARY_1B = """
from residual_gd.matrices import commutation_matrix

def map_matrix(A, B, C, D):
    return np.kron(B.T, A) + np.kron(D.T, C) @ commutation_matrix(A.shape[1], B.shape[0])
"""

WRONG = {
    "the commutation matrix the wrong way round": Wrong(
        {"q1a": ("T[i * n + j, j * m + i]", "T[j * m + i, i * n + j]"), "q1b": LIBRARY_1B},
        lost=("q1a-test",),
        says={"q1a-test": "this turns vec(A^T) into vec A"},
    ),
    "the library's commutation matrix": Wrong(
        {"q1a": "from residual_gd.matrices import commutation_matrix as commutation"},
        lost=("q1a-test",),
        says={"q1a-test": "write this yourself"},
    ),
    "the wrong Kronecker order": Wrong(
        {"q1b": ("np.kron(B.T, A) + np.kron(D.T, C)", "np.kron(A, B.T) + np.kron(C, D.T)")},
        lost=("q1b-test",),
        says={"q1b-test": "exchanged: this is the rule for stacked rows"},
    ),
    "no commutation matrix for the transpose": Wrong(
        {"q1b": (" @ commutation(A.shape[1], B.shape[0])", "")},
        lost=("q1b-test",),
        says={"q1b-test": "the commutation matrix is missing"},
    ),
    "a sign in the map": Wrong({"q1b": ("+ np.kron", "- np.kron")}, lost=("q1b-test",), says={"q1b-test": "entry"}),
    "columns where rows are stacked": Wrong(
        {"q1c": ("np.kron(A, B.T)", "np.kron(B.T, A)")},
        lost=("q1c-test",),
        says={"q1c-test": "this is the matrix for stacked columns"},
    ),
    "no slope in J_1": Wrong(
        {"q2a": (" * vec(net.activation.derivative(stack(at.E)))", "")},
        lost=("q2a-test",),
        says={"q2a-test": "the slope phi'(E) is missing"},
    ),
    "slopes stacked by rows": Wrong(
        {"q2a": ("vec(net.activation.derivative(stack(at.E)))", "net.activation.derivative(stack(at.E)).ravel()")},
        lost=("q2a-test",),
        says={"q2a-test": "the slopes are stacked by rows"},
    ),
    "the wrong Kronecker order in J_1": Wrong(
        {"q2a": ("np.kron(np.eye(net.m), stack(at.Z))", "np.kron(stack(at.Z), np.eye(net.m))")},
        lost=("q2a-test",),
        says={"q2a-test": "the factors of the last Kronecker product are exchanged"},
    ),
    "no residual in J_V": Wrong(
        {"q2b": (' + net.beta_ffn * np.kron(theta["W_U"].T, I_N)', "")} | {"q2c": OWN["q2c"]},
        lost=("q2b-test",),
        says={"q2b-test": "the road through the feed-forward skip is missing"},
    ),
    "beta_A for beta_F in J_V": Wrong(
        {"q2b": ("net.beta_ffn", "net.beta_attention")} | {"q2c": OWN["q2c"]},
        lost=("q2b-test",),
        says={"q2b-test": "this is with beta_A in place of beta_F"},
    ),
    "attention transposed in J_V": Wrong(
        {"q2b": ("stack_attention(at.S)", "stack_attention(at.S).T")} | {"q2c": OWN["q2c"]},
        lost=("q2b-test",),
        says={"q2b-test": "S is transposed"},
    ),
    "the library's Jacobian": Wrong(
        {
            "q2b": "from residual_gd.jacobian import jacobian_blocks as blocks\n"
            'def J_V(net, theta, X):\n    return blocks(net, theta, X)["W_V"]'
        },
        lost=("q2b-test",),
        says={"q2b-test": "residual_gd.jacobian.jacobian_blocks was called: write this yourself"},
    ),
    "the whole change in place of the first order": Wrong(
        {
            "q2c": 'moved = theta | {"W_V": theta["W_V"] + 0.01 * V}\n'
            "dF_last = (forward(net, moved, X).F - forward(net, theta, X).F)[-1]"
        },
        lost=("q2c-test",),
        says={"q2c-test": "not its first order"},
    ),
    "the first sample": Wrong(
        {"q2c": ("[-n:]", "[:n]")}, lost=("q2c-test",), says={"q2c-test": "this is the first sample"}
    ),
    "the gains as a full matrix": Wrong(
        {"q3a": "def J_g(Z, W_U):\n    return np.kron(W_U.T, Z)"},
        lost=("q3a-test",),
        says={"q3a-test": "this is the block of a full matrix"},
    ),
    "the gradient through its Jacobian": Wrong(
        {"q3b": "def gain_gradient(Z, W_U, R):\n    return J_g(Z, W_U).T @ vec(R)"},
        lost=("q3b-test",),
        says={"q3b-test": "do without that matrix"},
    ),
    "no gains in the skip's road": Wrong(
        {"q3c": ('(g[:, None] * theta["W_U"]).T', 'theta["W_U"].T')},
        lost=("q3c-test",),
        says={"q3c-test": "the gains are missing"},
    ),
    "the same shift of all logits": Wrong(
        {"q4a": "v_a = np.ones(5) / np.sqrt(5)"},
        lost=("q4a-test",),
        says={"q4a-test": "the weights do not move at all"},
    ),
    "two logits up and down, not the best direction": Wrong(
        {"q4a": "v_a = np.array([1, -1, 0, 0, 0]) / np.sqrt(2)"},
        lost=("q4a-test",),
        says={"q4a-test": "of what is possible"},
    ),
    "not a unit vector": Wrong(
        {"q4a": ("[:, -1]", "[:, -1] * 2")}, lost=("q4a-test",), says={"q4a-test": "yours is 2 times as large"}
    ),
    "all tokens alike": Wrong(
        {"q4b": ("g_b[[i, j]] = 0.0", "g_b[:] = 0.0")}, lost=("q4b-test",), says={"q4b-test": "the two largest weights"}
    ),
    "both logits up": Wrong(
        {"q4b": ("1 / np.sqrt(2), -1 / np.sqrt(2)", "1 / np.sqrt(2), 1 / np.sqrt(2)")},
        lost=("q4b-test",),
        says={"q4b-test": "one logit must rise and the other fall"},
    ),
    "uniform attention over all tokens": Wrong(
        {"q4c": ("s_c[:k] = 1 / k", "s_c[:] = 1 / n_c")},
        lost=("q4c-test",),
        says={"q4c-test": "the largest of the weights"},
    ),
    "a direction without weight": Wrong(
        {"q4c": ("v_c[:2] = 1 / np.sqrt(2), -1 / np.sqrt(2)", "v_c[-1] = 1.0")},
        lost=("q4c-test",),
        says={"q4c-test": "it moves logits of tokens whose weight is not 1/"},
    ),
    "hesitation has no third moment": Wrong(
        {"q4d": ("a = (1 - 1 / np.sqrt(3)) / 2", "a = 1 / 2")},
        lost=("q4d-test",),
        says={"q4d-test": "with equal weights the second derivative vanishes"},
    ),
    "the numbers of another student": Wrong(
        COPIED, lost=("q2c-test", "q4a-test", "q4b-test", "q4c-test", "q4d-test"), says={"q4b-test": "g_b"}
    ),
    "a matrix that does not grow": Wrong(
        {"q5a": "E_small = np.eye(2)"}, lost=("q5a-test",), says={"q5a-test": "without a negative entry"}
    ),
    "a random matrix": Wrong(
        {"q5b": "E_large = np.random.default_rng(0).standard_normal((16, 16))"},
        lost=("q5b-test",),
        says={"q5b-test": "less than 2 (1 + a)"},
    ),
    "a larger matrix than allowed": Wrong(
        {"q5b": ("range(4)", "range(5)")}, lost=("q5b-test",), says={"q5b-test": "at most 16 rows"}
    ),
    "the trap": Wrong(
        {"q5c": ("np.linalg.norm(np.abs(E), 2)", "np.linalg.norm(E, 2)")},
        lost=TESTS["q5c"],
        says={"q5c-test": "times your bound", "q5c-test-2": "it is not valid"},
    ),
    "valid, not the smallest": Wrong(
        {"q5c": ("np.linalg.norm(np.abs(E), 2)", "np.linalg.norm(E)")},
        lost=("q5c-test-2",),
        says={"q5c-test-2": "the Frobenius norm is valid, but"},
    ),
    "the root of the rank": Wrong(
        {"q5c": ("np.linalg.norm(np.abs(E), 2)", "np.sqrt(np.linalg.matrix_rank(E)) * np.linalg.norm(E, 2)")},
        lost=TESTS["q5c"],
        says={"q5c-test": "safe_bound: valid, but"},
    ),
    "printing that all is well": Wrong(dict.fromkeys(TESTS, 'print("all tests passed")'), lost=ALL),
    "the checker is replaced": Wrong(
        {
            "q5c": "import residual_gd.course, residual_gd.course.compare\n"
            "class Kind:\n    def __getattr__(self, name):\n        return lambda *a, **k: None\n"
            "fresh = residual_gd.course.fresh = lambda: Kind()\n"
            "residual_gd.course.matches = residual_gd.course.compare.matches = lambda *a, **k: None\n"
            "np.linalg.norm = lambda *a, **k: 0.0\n"
            "def safe_bound(E, l):\n    return 0.0"
        },
        lost=TESTS["q5c"],
    ),
    "a test cell is deleted": Wrong(
        {"q3c": ('(g[:, None] * theta["W_U"]).T', 'theta["W_U"].T')},
        lost=("q3c-test",),
        edit=lambda notebook: notebook.cells.remove(
            next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "q3c-test")
        ),
    ),
    "a syntax error": Wrong({"q1c": "def row_matrix(A, B"}, lost=("q1c-test",), says={"q1c": "SyntaxError"}),
}


@pytest.mark.parametrize("student", [f"student{i}" for i in range(20)])
def test_reference_gets_full_points(student):
    result = graded("ps2", student, reference("ps2"))
    assert result.points == result.possible_points, result.messages
    assert result.possible == 17 and set(result.manual) == {"q6"}  # the free text is worth the other 3


def test_numbers_typed_in_get_full_points():
    result = graded("ps2", STUDENT, reference("ps2") | OWN)
    assert result.points == result.possible_points, result.messages


OTHER_WAYS = {
    "q1a": "def commutation(m, n):\n    return np.eye(m * n)[np.arange(m * n).reshape(m, n, order='F').ravel()]",
    "q1b": """
def map_matrix(A, B, C, D):
    m, n = A.shape[1], B.shape[0]
    units = [np.eye(m * n)[p].reshape(m, n, order="F") for p in range(m * n)]
    return np.column_stack([vec(A @ X @ B + C @ X.T @ D) for X in units])
""",
    "q2a": """
def J_1(net, theta, X):
    at = forward(net, theta, X)
    Z, slopes = stack(at.Z), net.activation.derivative(stack(at.E))
    Omega = theta["W_2"] @ theta["W_U"]
    columns = [np.outer(Z[:, i] * slopes[:, j], Omega[j]).ravel(order="F") for j in range(net.m) for i in range(net.d)]
    return np.array(columns).T
""",
    "q3a": "def J_g(Z, W_U):\n    return np.kron(W_U.T, Z)[:, :: Z.shape[1] + 1]",
    "q3b": "def gain_gradient(Z, W_U, R):\n    return np.diag(Z.T @ R @ W_U.T)",
    "q4c": "n, k = ps2.share(ID)\n"
    "s_c = np.array([1 / k, 1 / k] + [(1 - 2 / k) / (n - 2)] * (n - 2))\n"
    "v_c = np.array([1.0, -1.0] + [0] * (n - 2)) / 2**0.5",
    "q5a": "E_small = [[1, 1], [1, -1]]",
    "q5b": "from scipy.linalg import hadamard\nE_large = hadamard(16)",
    "q5c": "def safe_bound(E, l):\n    return sigma_max(l * abs(E))",
}


def test_other_right_ways_get_full_points():
    result = graded("ps2", STUDENT, reference("ps2") | OWN | OTHER_WAYS)
    assert result.points == result.possible_points, result.messages


def test_empty_gets_nothing():
    result = graded("ps2", STUDENT)
    assert result.total == 0 and result.manual == {"q6": 0.0}
    assert set(result.points) == set(ALL)
    first = next(name for name in result.messages)
    assert first == "q1a-test" and "q1a: your answer is missing here" in result.messages[first]


def test_blank_id_is_told(monkeypatch):
    monkeypatch.delenv("RESIDUAL_GD_STUDENT", raising=False)
    names = {}
    with pytest.raises(ValueError, match="Write it in the cell"):
        for cell in student_version("ps2").cells:
            if cell.cell_type == "code":
                exec(cell.source, names)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_get_what_they_deserve(name):
    check_wrong("ps2", STUDENT, WRONG[name])
