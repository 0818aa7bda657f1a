"""What a page costs the reader's line, and that rendering it again changes nothing."""

import gzip
from urllib.parse import unquote, urlsplit

import build_book
import build_pdf
import executed
from serving import HTML
from trees import differences

LIMIT = 1_000_000  # bytes a page, figures apart
FIGURES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
PACKED = (".woff", ".woff2", *FIGURES)  # a server does not compress these again


def transferred(path):
    """Bytes on the line for a file from a server that compresses."""
    content = path.read_bytes()
    return len(content) if path.suffix in PACKED else len(gzip.compress(content))


def test_pages_are_light(desk):
    """A page and all that it asks for, compressed, without its figures."""
    asked = desk.page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    names = {unquote(urlsplit(url).path).lstrip("/") for url in [desk.page.url, *asked] if url.startswith("http")}
    weights = {name: transferred(HTML / name) for name in names if not name.endswith(FIGURES)}
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:6]
    assert any(name.endswith(".html") for name in weights) and any(name.endswith(".js") for name in weights)
    assert sum(weights.values()) <= LIMIT, heaviest


def test_second_rendering_gives_the_same_bytes(tmp_path):
    """The pages, rendered again from the executed notebooks: each of their bytes is what was served above."""
    notebooks = executed.check(build_book.ROOT, build_book.check_toc(build_book.ROOT))
    again = build_book.render(build_book.ROOT, notebooks, base=tmp_path)
    (again / build_book.COMPLETE).touch()
    pdf = HTML / build_pdf.NAME
    if pdf.is_file():
        build_pdf.offer(again, pdf)
    assert differences(HTML, again) == []
