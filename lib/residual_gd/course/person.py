"""Every student has numbers of their own: they are drawn from the student's id and the name of the question."""

import hashlib
import os

import numpy as np

VARIABLE = "RESIDUAL_GD_STUDENT"
BLANK = "your-id"


def student(student_id):
    """The id whose numbers are used.

    When a submission is graded, the environment variable ``RESIDUAL_GD_STUDENT`` holds the id under which it was handed
    in, and that one counts. Everywhere else it is the id handed in here, without blanks around it.

    Parameters
    ----------
    student_id : str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the id is no text, is blank, or is still "your-id".
    """
    graded = os.environ.get(VARIABLE, "").strip()
    if graded:
        return graded
    if not isinstance(student_id, str):
        raise ValueError(f'STUDENT_ID: expected a text such as "ab1234", got {type(student_id).__name__}')
    own = student_id.strip()
    if own in ("", BLANK):
        raise ValueError(
            f'STUDENT_ID: expected your own id, got {student_id!r}. Write it in the cell "STUDENT_ID = ..."'
        )
    return own


def generator(student_id, question):
    """The random generator of one student's numbers in one question, seeded by SHA-256 of "id/question".

    Parameters
    ----------
    student_id : str
        What `student` returned. Capital letters count.
    question : str
        For example "ps1/q2". More instances of a question have names of their own, such as "ps1/q2/shapes".

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ValueError
        If one of them is not a text or is blank; or, when a submission is graded, if the id is not the one under which
        it was handed in: a question is then answered for somebody else's numbers.
    """
    for name, value in (("student_id", student_id), ("question", question)):
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{name}: expected a text that is not blank, got {value!r}")
    graded = os.environ.get(VARIABLE, "").strip()
    if graded and student_id != graded:
        raise ValueError(f"student_id: expected {graded!r}, under which this was handed in, got {student_id!r}")
    digest = hashlib.sha256(f"{student_id}/{question}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
