"""The pages on paper."""

import re
import shutil
import subprocess

import pytest

LONGEST_PHRASE = """all => all.map(box => {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode())
        if (!walker.currentNode.parentElement.closest('mjx-container, pre, code, script'))
            found.push(walker.currentNode.data.split(/\\s+/).filter(Boolean).slice(0, 4).join(' '));
    return found.sort((a, b) => b.length - a.length)[0];
})"""  # the first words of a piece of text between two formulas
A4 = {"format": "A4", "prefer_css_page_size": True}


def sheets(pdf):
    """Number of pages of a PDF, counted in its page tree."""
    (count,) = {int(n) for n in re.findall(rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d+)", pdf)} or {0}
    return count


def words(pdf, tmp_path):
    (tmp_path / "page.pdf").write_bytes(pdf)
    run = subprocess.run(["pdftotext", "page.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True)
    return " ".join(run.stdout.split())


def test_the_card_is_one_sheet(visit):
    with visit("chapters/card.html") as seen:
        pdf = seen.page.pdf(**A4)
        assert sheets(pdf) == 1
        assert b"/MediaBox [0 0 59" in pdf or b"/MediaBox[0 0 59" in pdf  # 595 x 842 points
        seen.page.emulate_media(media="print")
        lost = seen.page.evaluate(
            """() => {
                const card = document.querySelector('.theorem-card');
                return [...card.querySelectorAll('mjx-container')]
                    .filter(e => getComputedStyle(e).overflowX !== 'visible').length;
            }"""
        )
        assert lost == 0  # nothing is cut off


def test_the_card_repeats_the_chapters_word_for_word(visit):
    """Every statement of the card is the one of its chapter."""
    texts = {}
    for name in ("chapters/card.html", "chapters/05-rate-theorem.html", "chapters/06-residual-rank.html"):
        with visit(name, scripts=False) as seen:
            pick = ".repeated-statement" if "card" in name else ".theorem.admonition > section"
            texts[name] = [" ".join(t.split()) for t in seen.page.locator(pick).all_inner_texts()]
    card = texts.pop("chapters/card.html")
    own = [re.sub(r"\s*\(\d+\.\d+\)#?", "", text) for found in texts.values() for text in found]
    assert len(card) == 5
    for text in card:
        assert re.sub(r"\s*\(\d+\.\d+\)#?", "", text) in own


@pytest.fixture(scope="module")
def printed(visit):
    with visit("chapters/05-rate-theorem.html") as seen:
        seen.page.emulate_media(media="print")
        yield seen.page


def test_boxes_are_not_split_and_sidebars_are_left_out(printed):
    for box in printed.locator(".bd-article :is(.proof, .exercise).admonition").all():
        assert box.evaluate("e => getComputedStyle(e).breakInside") == "avoid"
    for gone in (
        ".bd-sidebar-primary",
        ".bd-sidebar-secondary",
        ".bd-header-article",
        ".prev-next-area",
        "#notation-panel",
    ):
        assert not printed.locator(gone).first.is_visible(), gone


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext: apt-get install poppler-utils")
def test_solutions_are_open_on_paper(visit, tmp_path):
    with visit("chapters/05-rate-theorem.html") as seen:
        bodies = seen.page.locator("div.solution.dropdown section")
        count = bodies.count()
        before = [body.is_visible() for body in bodies.all()]
        text = words(seen.page.pdf(**A4), tmp_path)
        phrases = bodies.evaluate_all(LONGEST_PHRASE)
        assert count > 0 and not any(before) and text.count("Solution to") == count
        assert [phrase for phrase in phrases if phrase not in text] == []
        assert not any(body.is_visible() for body in bodies.all())  # closed again
