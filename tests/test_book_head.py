"""Descriptions, cards and the page for wrong addresses."""

import book_head
import build_book
import docutils.core
import pytest
import yaml
from PIL import Image
from social_card import LARGEST, PICTURE


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\|\nabla \Phi\|^2 \ge 2 \alpha \Phi", "‖∇Φ‖² ≥ 2 α Φ"),
        (r"J J^\top", "J Jᵀ"),
        (r"N \le d", "N ≤ d"),
        (r"\operatorname{vec} F", "vec F"),
        (r"n_h", "n_h"),
    ],
)
def test_formulas_as_plain_text(tex, text):
    assert book_head.plain(tex) == text


def description(text):
    settings = {"doctitle_xform": False}
    return book_head.description(docutils.core.publish_doctree(f"Title\n=====\n\n{text}", settings_overrides=settings))


def test_description_is_the_first_paragraph():
    assert description("**After this chapter you can** say what\n:math:`\\alpha` is.\n\nMore text.") == "Say what α is."
    assert description(".. note::\n\n   A note of some length, not the text.\n\nThe text of the page begins.") == (
        "The text of the page begins."
    )
    long = description("word, " * 100)
    assert len(long) <= book_head.LONGEST and long.endswith("word…")
    assert description("Short.") == ""


def test_address_of_the_site():
    assert book_head.site("https://github.com/NAME/REPOSITORY/") == "https://NAME.github.io/REPOSITORY/"
    assert book_head.site("https://github.com/Name/name.github.io") == "https://Name.github.io/"


def test_tags_are_escaped_and_absolute():
    tags = book_head.tags('A "title" & more', "About <it>", "https://x.org/b/a.html", "https://x.org/b/", "Book")
    assert 'content="A &quot;title&quot; &amp; more"' in tags and "About &lt;it&gt;" in tags
    assert f'<meta property="og:image" content="https://x.org/b/_static/{book_head.CARD}" />' in tags


def test_links_start_from_the_root():
    page = (
        '<html data-content_root="./"><a href="chapters/a.html#b"></a><a href="#c"></a><a href="https://x.org/"></a>'
        '<img src="./_static/d.png"><form action="search.html"></form><script>var a = "href"</script>'
    )
    assert book_head.from_root(page, "/book/") == (
        '<html data-content_root="/book/"><a href="/book/chapters/a.html#b"></a><a href="#c"></a>'
        '<a href="https://x.org/"></a><img src="/book/_static/d.png"><form action="/book/search.html"></form>'
        '<script>var a = "href"</script>'
    )


def test_the_card_is_small_and_has_the_size_that_the_tags_say():
    with Image.open(PICTURE) as picture:
        assert picture.size == book_head.CARD_SIZE
    assert PICTURE.stat().st_size <= LARGEST and PICTURE.name == book_head.CARD
    config = yaml.safe_load((build_book.ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert PICTURE.parent.name in config["sphinx"]["config"]["html_static_path"]
