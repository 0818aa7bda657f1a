"""Sphinx extension: what a page says of itself to search engines and social networks, and the page for a wrong address.

- Each page has a description (its first paragraph, in plain text) and the tags of a card with the book's picture.
- `404.html` works wherever the wrong address was: all its links start from the root of the site.

The site's address is `html_baseurl`; where the configuration names none, the one of the repository's GitHub Pages.
"""

from __future__ import annotations

import html
import re
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes

CARD = "social-card.png"  # in assets/, by tools/social_card.py
CARD_SIZE = (1200, 630)
CARD_TEXT = (
    "The book's title beside a plot: with the residual connection the loss falls to zero on a straight line under its "
    "proved bound, without it the loss stays at a floor"
)
LONGEST = 200  # characters of a description
OPENING = "After this chapter you can "

NAMES = {
    "top": "ᵀ", "nabla": "∇", "ge": "≥", "le": "≤", "times": "×", "cdot": "·", "dots": "…", "to": "→", "ne": "≠",
    "|": "‖", "min": "min", "max": "max", "tfrac": "", ",": " ", "{": "{", "}": "}",
}  # fmt: skip


def plain(tex: str) -> str:
    """A formula in the text as Unicode: `\\|\\nabla \\Phi\\|^2` is ‖∇Φ‖²."""

    def letter(match):
        name = match[1]
        if name in NAMES:
            return NAMES[name]
        size = "CAPITAL" if name[0].isupper() else "SMALL"
        try:
            return unicodedata.lookup(f"GREEK {size} LETTER {name.upper()}")
        except KeyError:
            return name if name.isalpha() else ""

    tex = re.sub(r"\\(?:operatorname|mathrm|text|mathbf)\s*\{([^{}]*)\}", r"\1", tex)
    tex = re.sub(r"\s*\\(top|nabla|cdot)\s*", r"\\\1", tex)
    tex = re.sub(r"\\([A-Za-z]+|.)", letter, tex)
    tex = re.sub(r"\^\{?2\}?", "²", tex)
    tex = re.sub(r"\^\{?ᵀ\}?", "ᵀ", tex)
    return re.sub(r"\s+", " ", re.sub(r"[{}]", "", tex)).strip()


def _text(node: nodes.Node) -> str:
    if isinstance(node, nodes.math):
        return plain(node.astext())
    if isinstance(node, nodes.Text):
        return node.astext()
    return "".join(_text(child) for child in node.children)


def description(doctree: nodes.document) -> str:
    """The first paragraph of the text in at most `LONGEST` characters, cut between words."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, nodes.section):
            continue
        text = re.sub(r"\s+", " ", _text(paragraph)).strip()
        if len(text) < 20:
            continue
        text = text.removeprefix(OPENING)
        text = text[0].upper() + text[1:]
        if len(text) > LONGEST:
            text = text[: LONGEST - 1].rsplit(" ", 1)[0].rstrip(",;:(") + "…"
        return text
    return ""


def site(repository: str) -> str:
    """Address of GitHub Pages for a repository's address, with a slash at its end."""
    owner, name = repository.rstrip("/").removesuffix(".git").split("/")[-2:]
    home = f"{owner}.github.io"
    return f"https://{home}/" if name.lower() == home.lower() else f"https://{home}/{name}/"


def tags(title: str, about: str, address: str, base: str, book: str) -> str:
    """The tags of a page's head."""
    width, height = CARD_SIZE
    named = {"description": about, "twitter:card": "summary_large_image", "twitter:image:alt": CARD_TEXT}
    properties = {
        "og:type": "website" if title == book else "article",
        "og:site_name": book,
        "og:title": title,
        "og:description": about,
        "og:url": address,
        "og:image": f"{base}_static/{CARD}",
        "og:image:width": width,
        "og:image:height": height,
        "og:image:alt": CARD_TEXT,
    }
    lines = [f'<meta name="{key}" content="{html.escape(str(value))}" />' for key, value in named.items()]
    lines += [f'<meta property="{key}" content="{html.escape(str(value))}" />' for key, value in properties.items()]
    return "\n".join(["", *lines, ""])


def _set_address(app, config) -> None:
    repository = config.html_theme_options.get("repository_url", "")
    if not config.html_baseurl and repository:
        config.html_baseurl = site(repository)


def _describe(app, pagename, templatename, context, doctree) -> None:
    config = app.config
    if not config.html_baseurl:
        return
    about = (doctree and description(doctree)) or f"A page of the book “{config.html_title}”."
    title = re.sub("<[^>]*>", "", html.unescape(context.get("title", "") or config.html_title))
    address = config.html_baseurl + app.builder.get_target_uri(pagename)
    context["metatags"] = context.get("metatags", "") + tags(
        title, about, address, config.html_baseurl, config.html_title
    )
    if pagename == LOST_PAGE:
        context["metatags"] += '<meta name="robots" content="noindex" />\n'


LOST_PAGE = "404"
LOST = """<section id="page-not-found">
<h1>This page is not here</h1>
<p>The book has no page at this address. It may have moved. Look for a word of it, or begin with the
<a href="intro.html">introduction</a>; the list of chapters stands at the side.</p>
<form class="lost-search" action="search.html" method="get" role="search">
<label for="lost-query">Search the book</label>
<input type="search" class="form-control" id="lost-query" name="q" required>
<button type="submit" class="btn btn-primary">Search</button>
</form>
</section>
"""


def _lost_page(app):
    yield LOST_PAGE, {"title": "Page not found", "body": LOST}, "page.html"


def from_root(page: str, base: str) -> str:
    """The page with every link within the book starting from `base`, the path of the site's root."""
    outside = r"(?:[a-z][a-z0-9+.-]*:|//?|#)"
    page = re.sub(rf'\b(href|src|action)="(?!{outside})(?:\./)?([^"]*)"', rf'\1="{base}\2"', page)
    return re.sub(r'data-content_root="[^"]*"', f'data-content_root="{base}"', page)


def _finish_lost_page(app, exception) -> None:
    path = Path(app.outdir) / f"{LOST_PAGE}.html"
    if exception is None and path.is_file():
        base = urlsplit(app.config.html_baseurl).path or "/"
        path.write_text(from_root(path.read_text(encoding="utf-8"), base), encoding="utf-8")


def setup(app):
    app.connect("config-inited", _set_address, priority=400)
    app.connect("html-page-context", _describe)
    app.connect("html-collect-pages", _lost_page)
    app.connect("build-finished", _finish_lost_page, priority=900)  # after the pages were tidied
    return {"parallel_read_safe": True, "parallel_write_safe": True}
