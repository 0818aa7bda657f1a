"""One list of statements: planned, registered, stated in the chapters, checked there; and the ledger page."""

import ast
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from residual_gd.statements import LEDGER, Control
from residual_gd.statements.argument import CHAPTER_PAGES, STEPS
from residual_gd.statements.base import CHAPTERS, KINDS, Comparison, Verdict
from residual_gd.statements.ledger_page import Entries, Entry, entries, exercises, number, read_pages

ROOT = Path(__file__).resolve().parent.parent
PLANNED = (ROOT / "tests" / "data" / "statement_ids.txt").read_text(encoding="utf-8").split()
STATED = re.compile(rf"^:{{3,}}\{{prf:({'|'.join(KINDS)})\}}[ ]*(.*)\n((?::\w+:.*\n)*)", re.MULTILINE)
RUNS = ("check", "breaks")


def cells():
    """(page, position, cell) of every notebook of the book."""
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for position, cell in enumerate(nbformat.read(path, as_version=4).cells):
            yield path.stem, position, cell


def stated():
    """(page, position, kind, title, id) of every theorem, lemma, proposition and corollary in the book's pages."""
    for page, position, cell in cells():
        for kind, title, options in STATED.findall(cell.source if cell.cell_type == "markdown" else ""):
            label = re.search(r"^:label: (\S+)", options, re.MULTILINE)
            yield page, position, kind, title, label[1] if label else None


def runs():
    """(page, position, "check" or "breaks", id) of every such call in the book's pages."""
    for page, position, cell in cells():
        if cell.cell_type != "code" or not any(f"{name}(" in cell.source for name in RUNS):
            continue
        for node in ast.walk(ast.parse(re.sub(r"^[ \t]*[%!].*$", "pass", cell.source, flags=re.MULTILINE))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RUNS:
                yield page, position, node.func.id, ast.literal_eval(node.args[0])


STATEMENTS, CALLS = list(stated()), list(runs())


def test_planned_statements_are_registered():
    assert set(PLANNED) <= set(LEDGER)


def test_registered_statements_are_stated_once_each_and_nothing_else_is():
    assert sorted(id or "no label" for *_, id in STATEMENTS) == sorted(LEDGER)


@pytest.mark.parametrize(("page", "position", "kind", "title", "id"), STATEMENTS, ids=[str(s[-1]) for s in STATEMENTS])
def test_chapter_and_ledger_agree(page, position, kind, title, id):
    claim = LEDGER[id]
    assert f"chapters/{page}" == CHAPTER_PAGES[claim.chapter][0]
    assert kind == claim.kind
    # a star marks optional reading; dollars enclose formulas
    assert title.replace("$", "").rstrip(" *") == claim.title


@pytest.mark.parametrize("id", LEDGER)
def test_statement_is_followed_by_its_check_and_its_control(id):
    places = [(page, position) for page, position, *_, label in STATEMENTS if label == id]
    assert places, f"{id} is not stated"
    page, start = places[0]
    after = [(p, name) for other, p, name, label in CALLS if other == page and p > start and label == id]
    end = min((p for other, p, *_ in STATEMENTS if other == page and p > start), default=10**6)
    assert any(name == "check" and p < end for p, name in after), f"{page}: {id} has no check before the next statement"
    assert any(name == "breaks" for _, name in after), f"{page}: {id} has no control"


def test_every_check_is_of_a_statement_of_its_chapter():
    for page, _, name, id in CALLS:
        assert id in LEDGER, f'{page}: {name}("{id}")'
        if not page.startswith("appendix"):
            assert f"chapters/{page}" == CHAPTER_PAGES[LEDGER[id].chapter][0], f'{page}: {name}("{id}")'


# The page


def entry(id="lem-elementwise", *, worst=None, control=None, used=(), holds=True):
    worst = worst or Comparison(0.5, 1.0)
    control = control or Control("x_1 <= 0 dropped", 2.0, 1.0, "norm")
    return Entry(LEDGER[id], Verdict(id, 5, 1, worst, holds, LEDGER[id].sharp), control, used)


def test_entry_says_how_tight_the_bound_is():
    assert entry().slack() == "at least 0.99"
    assert entry("prop-pl-on-ball").slack() == "0.50"
    assert (
        entry("prop-pl-on-ball", worst=Comparison(1e-12, 1e-9, identity=True)).slack()
        == "an equality, to 1e-09 of its size"
    )
    assert entry("prop-pl-on-ball", worst=Comparison(0.0, 0.0)).slack() == "the bound is zero, and was met"
    assert entry(holds=False).slack() == "the check FAILS"


def test_entry_says_how_the_control_fails_and_leaves_rounding_out():
    assert entry().broken() == "x_1 <= 0 dropped. Then the conclusion fails: norm 2 > 1"
    rounding = Control("rank dropped", np.float64(0.5062), 6.4e-32, "bound:")
    assert entry(control=rounding).broken().endswith("bound 0.51 > 0")
    assert "DOES NOT FAIL" in entry(control=Control("nothing", 1.0, 1.0)).broken()
    assert "infinity > 0.01" in entry(control=Control("step", np.inf, 0.0108)).broken()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (5, "5"), (1.48, "1.5"), (0.0123, "0.012"), (3323.3, "3e+03"), (1e-6, "1e-06"), (np.inf, "infinity")],
)
def test_numbers_have_two_digits_at_most(value, text):
    assert number(value) == text


def test_markdown_escapes_what_is_not_markup():
    text = Entries((entry(used=("ex-one", "ex-two")),))._repr_markdown_()
    assert text.startswith("{prf:ref}`lem-elementwise`: Elementwise maps (`lem-elementwise`)\n: *Hypotheses:* ")
    assert r"x\_1 \<= 0 dropped" in text
    assert ": *Exercises:* {numref}`ex-one`, {numref}`ex-two`." in text
    assert "4 tests: `pytest tests/test_statements.py -k lem-elementwise`" in text


def test_page_has_every_statement_of_a_chapter_in_order():
    shown = entries("lipschitz", instances=1)
    assert [e.statement.id for e in shown.entries] == [s.id for s in STEPS if s.chapter == "lipschitz"]
    assert all(e.control.fails for e in shown.entries)
    assert repr(shown).count("\n") == len(shown.entries) - 1
    with pytest.raises(ValueError, match="chapter: expected one of"):
        entries("weather")


def test_ledger_page_shows_every_chapter():
    page = nbformat.read(ROOT / "chapters" / "appendix-ledger.ipynb", as_version=4)
    shown = re.findall(r'entries\("([\w-]+)", pages="\."\)', "\n".join(cell.source for cell in page.cells))
    assert tuple(shown) == CHAPTERS
    text = "\n".join(o.data["text/markdown"] for c in page.cells if c.cell_type == "code" for o in c.outputs)
    assert re.findall(r"^\{prf:ref\}`([\w-]+)`", text, re.MULTILINE) == [step.id for step in STEPS]
    assert "FAIL" not in text


def test_exercises_are_found_by_what_they_cite():
    text = (
        ":::{exercise} Title\n:label: ex-one\n\nUse {prf:ref}`lem-a`.\n:::\n\n"
        ":::{solution} ex-one\n:class: dropdown\n\nBy {prf:ref}`lem-a` and {prf:ref}`the bound <prop-b>`.\n:::\n\n"
        "Outside: {prf:ref}`thm-c`.\n\n::::{exercise}\n:label: ex-two\n\n{prf:ref}`prop-b`\n::::\n"
    )
    assert exercises([text]) == {"lem-a": ("ex-one",), "prop-b": ("ex-one", "ex-two")}


def test_exercises_of_the_book_exist_and_cite_statements():
    texts = read_pages(ROOT / "chapters")
    labels = set(re.findall(r"^:label: (ex-\S+)", "\n".join(texts), re.MULTILINE))
    found = exercises(texts)
    assert {label for used in found.values() for label in used} <= labels
    assert len(set(found) & set(LEDGER)) >= 5


def test_no_pages_no_exercises(tmp_path):
    assert read_pages(tmp_path) == [] and exercises([]) == {}
