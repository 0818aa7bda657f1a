"""The map of the argument: its table against the ledger and the chapters, and its drawing."""

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
import yaml

from residual_gd.figures.argument import COLOURS, ArgumentMap
from residual_gd.statements import LEDGER
from residual_gd.statements.argument import CHAPTER_PAGES, STEPS, page_links

ROOT = Path(__file__).resolve().parent.parent
TITLES = {key: title for key, (_, title) in CHAPTER_PAGES.items()}
KINDS = {"lem": "lemma", "prop": "proposition", "thm": "theorem", "cor": "corollary"}
PROVED = "|".join(KINDS.values())
STATEMENT = re.compile(rf"^(:{{3,}})\{{prf:(?:{PROVED})\}}.*?\n:label: (\S+)\n", re.MULTILINE)
PROOF = re.compile(r"^(:{3,})\{prf:proof\}(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
REFERENCE = re.compile(r"\{prf:ref\}`(?:[^`<]*<)?([\w-]+)>?`")


def pages_in_toc():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = {chapter["file"].removesuffix(".ipynb") for part in toc["parts"] for chapter in part["chapters"]}
    return [key for key, (page, _) in CHAPTER_PAGES.items() if page in files]


def text_of(key):
    notebook = nbformat.read(ROOT / f"{CHAPTER_PAGES[key][0]}.ipynb", as_version=4)
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_every_registered_statement_is_on_the_map():
    by_id = {step.id: step for step in STEPS}
    for id, statement in LEDGER.items():
        assert id in by_id, f"put {id} on the map: statements/argument.py"
        assert by_id[id].chapter == statement.chapter
        assert KINDS[id.split("-")[0]] == statement.kind


@pytest.mark.parametrize("key", pages_in_toc())
def test_a_chapter_states_what_the_map_says(key):
    stated = [match[2] for match in STATEMENT.finditer(text_of(key))]
    assert sorted(stated) == sorted(step.id for step in STEPS if step.chapter == key)


@pytest.mark.parametrize("key", pages_in_toc())
def test_every_statement_that_a_proof_cites_has_its_arc(key):
    uses = {step.id: set(step.uses) for step in STEPS}
    text = text_of(key)
    places = [(match.start(), match[2]) for match in STATEMENT.finditer(text)]
    for proof in PROOF.finditer(text):
        proved = [id for start, id in places if start < proof.start()][-1]
        cited = {id for id in REFERENCE.findall(proof[2]) if id in uses} - {proved}
        assert cited <= uses[proved], f"{proved} also uses {', '.join(sorted(cited - uses[proved]))}"


def test_links_go_to_pages_of_the_table_of_contents_only():
    links = page_links("- file: chapters/03-lipschitz\n- file: chapters/05-rate-theorem")
    assert links["thm-rate-smooth"] == "chapters/05-rate-theorem.html#thm-rate-smooth"
    assert links["lipschitz"] == "chapters/03-lipschitz.html"
    assert len(links) == 2 + sum(step.chapter in ("lipschitz", "rate") for step in STEPS)
    assert page_links("") == {}


def test_drawing_has_every_statement_and_every_use():
    drawn = ArgumentMap(STEPS, TITLES, page_links("chapters/05-rate-theorem"))
    svg = ElementTree.fromstring(drawn.svg())
    texts = [node.text for node in svg.iter("text")]
    assert set(texts) == {step.label for step in STEPS} | set(TITLES.values())
    assert len(texts) == len(STEPS) + len(TITLES)
    assert len(list(svg.iter("path"))) == sum(len(step.uses) for step in STEPS)
    assert len(list(svg.iter("a"))) == 1 + sum(step.chapter == "rate" for step in STEPS)
    for step in STEPS:  # 13 pixels in a 360 pixel drawing: at most 38 letters beside the arcs
        assert len(step.label) <= 38, step.label


def test_words_say_what_the_arcs_show():
    text = repr(ArgumentMap(STEPS, TITLES))
    assert "Rate theorem, kernel form: uses Master lemma; How far the Jacobian drifts." in text
    html = ArgumentMap(STEPS, TITLES)._repr_html_()
    assert html.count("<li>") == len(STEPS)
    assert "How fast things can change" in html


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("background", ["#FFFFFF", "#14181E"])
def test_arcs_stand_out_in_light_and_dark_mode(colour, background):
    def luminance(code):
        channels = [int(code[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


@dataclass
class Node:
    id: str
    chapter: str = "one"
    uses: tuple = ()
    label: str = "a label"
    theorem: bool = False


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([Node("a"), Node("a")], "steps: expected every id once, got 'a'"),
        ([Node("a", uses=("b",)), Node("b")], "steps: expected a to use earlier steps, got b"),
        ([Node("a", uses=("a",))], "steps: expected a to use earlier steps, got a"),
        ([Node("a", chapter="three")], "steps: expected chapters of the map, got 'three'"),
        (
            [Node("a"), Node("b", chapter="two"), Node("c")],
            "steps: expected the steps of a chapter together, got 'one'",
        ),
    ],
)
def test_a_table_that_is_no_argument_is_refused(steps, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        ArgumentMap(tuple(steps), {"one": "One", "two": "Two"})
