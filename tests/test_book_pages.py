"""What the book's Sphinx extension does to a page."""

import re

import book_pages
import pytest

MATH = '<span class="math notranslate nohighlight">\\(x\\)</span>'


def test_proofs_are_plain_and_have_ids_of_their_own():
    proof = '<div class="proof admonition" id="proof">\n<p>Proof. Clear.</p>\n</div>'
    page = book_pages.tidy(proof + proof)
    assert re.findall(r'id="([^"]+)"', page) == ["proof-1", "proof-2"]
    assert page.count("<em>Proof.</em> Clear.") == 2 and "admonition" not in page


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<section class="lemma-content" id="proof-content">', '<section class="lemma-content">'),
        ('<section id="exercise-content">', "<section>"),
        ('<th class="head"><p></p></th>', "<td></td>"),
        ("<th></th>", "<td></td>"),
        ('<a href="../_sources/a.ipynb" target="_blank"', '<a href="../_sources/a.ipynb" download'),
        ('<a href="https://github.com/a/b" target="_blank"', '<a href="https://github.com/a/b" target="_blank"'),
        ('<p>\n  <script src="../_static/vendor/fontawesome/6.5.2/js/all.min.js?digest=d"></script>\n', "<p>\n"),
        ('<div class="citation" id="a" role="doc-biblioentry">', '<div class="citation" id="a" role="listitem">'),
        (f"so {MATH} is", f"so {MATH} is"),
        (f"({MATH}), so", f'<span class="together">({MATH}),</span> so'),
        (f"is {MATH}.", f'is <span class="together">{MATH}.</span>'),
    ],
)
def test_tidy(before, after):
    assert book_pages.tidy(before) == after


def test_mathjax_is_copied_in_part(tmp_path):
    book_pages.copy_mathjax(tmp_path)
    assert (tmp_path / "tex-mml-chtml.js").stat().st_size > 1_000_000
    assert list((tmp_path / "output" / "chtml" / "fonts" / "woff-v2").glob("*.woff"))
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 5_000_000
