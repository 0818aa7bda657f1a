"""The checks that the problem sets import: a wrong answer is refused, and the message says what it is instead."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from residual_gd import course
from residual_gd.course import fresh, generator, matches, own_functions, student

RNG = np.random.default_rng(7)
MATRIX = RNG.standard_normal((3, 4))
SQUARE = RNG.standard_normal((3, 3))
STACK = RNG.standard_normal((2, 3, 5))
FIRST_NUMBER_OF_ANN = 0.06451898175656323


def message(got, expected, **keywords):
    with pytest.raises(AssertionError) as caught:
        matches("the answer", got, expected, **keywords)
    text = str(caught.value)
    assert text.startswith("the answer")
    return text


def test_student_is_the_own_id_or_the_one_it_was_handed_in_under(monkeypatch):
    monkeypatch.delenv("RESIDUAL_GD_STUDENT", raising=False)
    assert student(" ab12 ") == "ab12"
    for wrong in ("", "  ", "your-id", None, 12):
        with pytest.raises(ValueError, match="STUDENT_ID"):
            student(wrong)
    monkeypatch.setenv("RESIDUAL_GD_STUDENT", "cd34")
    assert student("ab12") == student("your-id") == "cd34"


def test_numbers_differ_by_student_and_question_and_repeat(monkeypatch):
    monkeypatch.delenv("RESIDUAL_GD_STUDENT", raising=False)
    draws = {(i, q): generator(i, q).random() for i in ("ann", "bob", "Ann") for q in ("ps1/q1", "ps1/q2")}
    assert len(set(draws.values())) == len(draws)
    assert draws["ann", "ps1/q1"] == generator("ann", "ps1/q1").random()
    # The numbers of a set that was handed out must not change: this is what "ann" has had in question ps1/q1.
    assert draws["ann", "ps1/q1"] == pytest.approx(FIRST_NUMBER_OF_ANN, rel=1e-15)
    for wrong in (("", "ps1/q1"), ("ann", " "), (None, "ps1/q1"), ("ann", 3)):
        with pytest.raises(ValueError, match="expected a text"):
            generator(*wrong)
    monkeypatch.setenv("RESIDUAL_GD_STUDENT", "ann")
    with pytest.raises(ValueError, match="under which this was handed in"):
        generator("bob", "ps1/q1")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (MATRIX, MATRIX),
        (MATRIX.tolist(), MATRIX),
        (torch.tensor(MATRIX, requires_grad=True), MATRIX),
        (MATRIX, torch.tensor(MATRIX)),
        ([MATRIX[0], MATRIX[1], MATRIX[2]], MATRIX),
        (2, 2.0),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.array(0.5), 0.5),
        (0.0, 0),
        (True, np.bool_(True)),
        (" yes", "yes"),
        ((1.0, MATRIX), (1.0, MATRIX)),
        ({"W_U": MATRIX, "W_1": SQUARE}, {"W_1": SQUARE, "W_U": MATRIX}),
        (MATRIX * (1 + 1e-10), MATRIX),
    ],
)
def test_right_answers_pass(got, expected):
    assert matches("the answer", got, expected) is None


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        (None, 1.0, "not answered"),
        (..., MATRIX, "not answered"),
        ("1.0", 1.0, "expected a number, got str"),
        (1.0, "one", "expected a text"),
        (1, True, "expected True or False"),
        (True, 1.0, "expected a number, got bool"),
        (False, True, "False is not right"),
        (1j, 1.0, "expected a number, got complex"),
        (MATRIX + 0j, MATRIX, "array of complex128"),
        (matches, MATRIX, "the function matches"),
        (lambda: 0, 1.0, "the function"),
        ([[1.0], [1.0, 2.0]], MATRIX, "expected an array of shape"),
        (MATRIX[:2], MATRIX, "expected shape (3, 4), got (2, 4)"),
        (MATRIX.reshape(4, 3), MATRIX, "the numbers are right, only the shape"),
        (np.array([1.5]), 1.5, "expected shape (), got (1,)"),
        (np.where(MATRIX > 0, np.nan, MATRIX), MATRIX, "not finite"),
        (np.inf, 1.0, "inf"),
        (-MATRIX, MATRIX, "the sign is reversed"),
        (-1.5, 1.5, "the sign is reversed"),
        (MATRIX.T, MATRIX, "yours is the transpose"),
        (SQUARE.T, SQUARE, "yours is the transpose"),
        (-SQUARE.T, SQUARE, "transpose with the sign reversed"),
        (STACK.swapaxes(1, 2), STACK, "yours is the transpose"),
        (2 * MATRIX, MATRIX, "yours is 2 times as large"),
        (MATRIX / 7, MATRIX, "yours is 0.142857 times as large"),
        (3.0, 1.5, "yours is 2 times as large"),
        (1.6, 1.5, "the number is wrong, relative error 6.7e-02"),
        (0.1, 0.0, "the right answer is 0"),
        (MATRIX.ravel()[::-1].reshape(3, 4), MATRIX, "right numbers in another order"),
        (MATRIX.astype(np.float32), MATRIX, "single precision"),
        (MATRIX + 0.1 * (np.arange(12).reshape(3, 4) == 6), MATRIX, "entry [1, 2] is the worst"),
        ([1.0, 2.0], (1.0, 2.0, 3.0), "expected 3 values, got 2"),
        ((1.0, -2.0), (1.0, 2.0), "the answer, value 2: the sign is reversed"),
        (MATRIX, {"W_U": MATRIX}, "expected a dictionary with the keys W_U"),
        ({}, {"W_U": MATRIX}, "the key W_U is missing"),
        ({"W_U": MATRIX, "W": 1}, {"W_U": MATRIX}, "the key W does not belong there"),
        (
            {"W_U": MATRIX.T},
            {"W_U": MATRIX},
            "the answer, W_U: expected shape (3, 4), got (4, 3); yours is the transpose",
        ),
    ],
)
def test_wrong_answers_are_named(got, expected, words):
    assert words in message(got, expected)


def test_tolerance_is_relative_to_the_largest_entry():
    want = np.array([1e3, 1e-9])
    matches("x", want + 1e-9, want)
    assert "worst" in message(want + [0, 1e-4], want)
    assert "relative error" in message(0.25, 0.25 + 1e-6)
    matches("x", 1e-3, 0.0, atol=1e-2)


def test_a_class_of_ones_own_cannot_lie():
    class Agreeable(float):
        def __sub__(self, other):
            return 0.0

        __rsub__ = __sub__

    class Array(np.ndarray):
        def tolist(self):
            return MATRIX.tolist()

    message(Agreeable(2.5), 1.5)
    message((MATRIX + 1).view(Array), MATRIX)


def test_rebound_names_change_no_verdict(monkeypatch):
    monkeypatch.setattr(np, "allclose", lambda *a, **k: True)
    monkeypatch.setattr(np, "abs", lambda *a, **k: 0.0)
    assert "worst" in message(MATRIX + RNG.standard_normal((3, 4)), MATRIX)


def test_fresh_reads_the_checker_again():
    # In a process of its own: the module is exchanged there.
    code = (
        "import residual_gd.course as c, residual_gd.course.compare as k\n"
        "c.matches = k.matches = c.generator = lambda *a, **k: None\n"
        "from residual_gd.course import fresh\ncheck = fresh()\n"
        "try:\n    check.matches('x', 1.0, 2.0)\nexcept AssertionError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "yours is 0.5 times as large" in run.stdout
    assert fresh.__module__ == course.__name__


def test_own_functions_refuse_under_every_name():
    from residual_gd import matrices
    from residual_gd.matrices import vec

    kept = matrices.vec
    with own_functions("residual_gd.matrices.vec", "numpy.kron", "torch.Tensor.backward"):
        for call in (lambda: vec(MATRIX), lambda: kept(T=MATRIX), lambda: matrices.vec(MATRIX), lambda: vec()):
            with pytest.raises(AssertionError, match=r"residual_gd.matrices.vec was called: write this yourself"):
                call()
        with pytest.raises(AssertionError, match="kron"):
            np.kron(MATRIX, MATRIX)
        with pytest.raises(AssertionError, match="backward"):
            torch.ones(1, requires_grad=True).sum().backward()
    assert vec(MATRIX).shape == (12,)
    assert np.kron(MATRIX, MATRIX).shape == (9, 16)
    with pytest.raises(AssertionError), own_functions("residual_gd.matrices.vec"):
        vec(MATRIX)
    vec(MATRIX)


@pytest.mark.parametrize("name", ["vec", "residual_gd.matrices.nothing", "no.such.module", "", 3, "numpy.pi"])
def test_own_functions_want_a_function(name):
    with pytest.raises(ValueError, match="dotted name"), own_functions(name):
        pass
