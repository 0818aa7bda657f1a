"""The ledger page: each statement with its hypotheses, how tight its bound was found, its control, tests and exercises.

``entries(chapter)`` measures the statements of a chapter; ``Entries`` shows itself as the Markdown of the page.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

from ..validation import one_of
from .argument import STEPS
from .base import CHAPTERS, LEDGER, Control, Statement, Verdict, run_control, verify

INSTANCES = 5  # a statement; the chapter itself draws more
TESTS = ("test_no_counterexample", "test_check_holds", "test_control_fails", "test_sharp_statements_have_an_ascent")
BLOCK = re.compile(r"^(:{3,})\{(exercise|solution)\}(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.MULTILINE)
REFERENCE = re.compile(r"\{prf:ref\}`(?:[^`<]*<)?([\w-]+)>?`")


@dataclass(frozen=True)
class Entry:
    """A statement with its verdict, its control's outcome and the labels of the exercises that cite it."""

    statement: Statement
    verdict: Verdict
    control: Control
    exercises: tuple[str, ...]

    def slack(self) -> str:
        """How near the worst case came to the bound, in two digits; "at least 0.99" where the check demands it."""
        worst = self.verdict.worst
        if not self.verdict.holds:
            return "the check FAILS"
        if worst.identity:
            return f"an equality, to {worst.bound:.0e} of its size"
        if worst.bound == 0:
            return "the bound is zero, and was met"
        return "at least 0.99" if self.verdict.sharp else f"{worst.ratio:.2f}"

    def broken(self) -> str:
        """The control's outcome in words and two digits."""
        sides = [number(side) for side in self.control.sides]
        verdict = "the conclusion fails" if self.control.fails else "the conclusion DOES NOT FAIL"
        return f"{self.control.dropped}. Then {verdict}: {self.control.quantity.rstrip(':')} {sides[0]} > {sides[1]}"

    def tests(self) -> tuple[str, ...]:
        """Names of the tests in ``tests/test_statements.py`` that run for this statement."""
        return TESTS if self.statement.sharp else TESTS[:3]


@dataclass(frozen=True, repr=False)
class Entries:
    """The entries of a chapter, in the order of the book."""

    entries: tuple[Entry, ...]

    def __repr__(self):
        return "\n".join(f"{e.statement.id:32s} {e.slack()}" for e in self.entries)

    def _repr_markdown_(self):
        return "\n\n".join(_markdown(entry) for entry in self.entries)


def entries(chapter, *, pages=None, instances=INSTANCES, seed=0) -> Entries:
    """Check the statements of a chapter (a key of ``CHAPTERS``), run their controls, find their exercises.

    pages: folder with the chapters' notebooks, for the exercises; None leaves them out. ValueError for another key.
    """
    one_of(chapter, CHAPTERS, "chapter")
    used = exercises(read_pages(pages)) if pages is not None else {}
    ordered = [LEDGER[step.id] for step in STEPS if step.chapter == chapter and step.id in LEDGER]
    return Entries(tuple(_entry(claim, instances, seed, used.get(claim.id, ())) for claim in ordered))


def _entry(claim, instances, seed, used):
    # one ascent suffices for the ratio; where the check demands 99 % it gets the number of its default
    found = verify(claim.id, instances=instances, ascents=4 if claim.sharp else 1, seed=seed)
    return Entry(claim, found, run_control(claim.id, seed=seed), used)


def read_pages(folder) -> list[str]:
    """The Markdown text of every chapter in ``folder``, in order; empty where there are none."""
    pages = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("[0-9]*.ipynb"))]
    return ["\n\n".join("".join(c["source"]) for c in page["cells"] if c["cell_type"] == "markdown") for page in pages]


def exercises(texts) -> dict[str, tuple[str, ...]]:
    """For each statement's id, the labels of the exercises that cite it, themselves or in their solution."""
    used: dict[str, list[str]] = {}
    for text in texts:
        for block in BLOCK.finditer(text):
            kind, body = block[2], block[3]
            own = LABEL.search(body) if kind == "exercise" else re.match(r"[ \t]*(\S+)", body)
            if own is None:
                continue
            for id in REFERENCE.findall(body):
                if own[1] not in used.setdefault(id, []):
                    used[id].append(own[1])
    return {id: tuple(labels) for id, labels in used.items()}


def number(value) -> str:
    """Two significant digits; one and the power of ten for large and small numbers."""
    value = float(value)
    if not math.isfinite(value):
        return "infinity" if value > 0 else str(value)
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    return f"{value:.2g}" if 0.01 <= abs(value) < 100 else f"{value:.0e}"


def _plain(text):
    """Plain text as Markdown: what could be read as markup is escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$'^\"])", r"\\\1", str(text))


def _markdown(entry):
    claim = entry.statement
    star = ", starred" if claim.starred else ""
    tests = f"{len(entry.tests())} tests: `pytest tests/test_statements.py -k {claim.id}`"
    lines = [
        f"{{prf:ref}}`{claim.id}`{star}: {_plain(claim.title)} (`{claim.id}`)",
        f": *Hypotheses:* {_plain('; '.join(claim.hypotheses))}.",
        f": *Worst measured/bound:* {_plain(entry.slack())}.",
        f": *Broken on purpose:* {_plain(entry.broken())}.",
        f": *Tests:* {tests}",
    ]
    if entry.exercises:
        lines.append(": *Exercises:* " + ", ".join(f"{{numref}}`{label}`" for label in entry.exercises) + ".")
    return "\n".join(lines)
