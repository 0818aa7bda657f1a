"""Wrong submissions of a problem set: what is handed in, which points it loses, and what the messages say."""

from collections.abc import Callable
from dataclasses import dataclass, field

from problem_sets import graded, reference


@dataclass(frozen=True)
class Wrong:
    """A submission with mistakes.

    change   grade_id -> (text of the reference answer, what stands in its place), or the whole answer as one text
    lost     grade_ids of the graded cells that get no point; all others get full points
    says     grade_id -> words that the message of this cell has
    edit     changes the filled-in notebook, as in `problem_sets.graded`
    """

    change: dict = field(default_factory=dict)
    lost: tuple = ()
    says: dict = field(default_factory=dict)
    edit: Callable | None = None


def answers(ps, change):
    """The reference answers with the changes; AssertionError if a text to replace is not there."""
    texts = reference(ps)
    for name, new in change.items():
        if isinstance(new, str):
            texts[name] = new
        else:
            old, put = new
            assert old in texts[name], f"{name}: the reference does not have {old!r}"
            texts[name] = texts[name].replace(old, put)
    return texts


def check_wrong(ps, student, wrong, also=None):
    """Grade it, and compare points and messages with what the submission deserves."""
    result = graded(ps, student, answers(ps, (also or {}) | wrong.change), edit=wrong.edit)
    deserved = {name: 0.0 if name in wrong.lost else full for name, full in result.possible_points.items()}
    assert set(wrong.lost) <= set(result.points)
    assert result.points == deserved, result.messages
    for name, words in wrong.says.items():
        assert words in result.messages[name]
