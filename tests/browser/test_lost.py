"""Heads of the pages, and the page for a wrong address, served as GitHub Pages does: under a path, at any depth."""

import re
from importlib.metadata import version
from urllib.parse import urlsplit

import book_head
import first_cell
import pytest
from axe_playwright_python.sync_playwright import Axe
from serving import HTML, PAGES, Quiet, served

SITE = book_head.site(first_cell.repository_url())
BASE = urlsplit(SITE).path
FRAGMENTS = ("webpack-macros.html", "sbt-webpack-macros.html", "index.html")  # of the theme; a redirection


class Pages(Quiet):
    """The site under its path; everything else is its page for wrong addresses."""

    def translate_path(self, path):
        inside = urlsplit(path).path
        return super().translate_path("/" + inside.removeprefix(BASE)) if inside.startswith(BASE) else "/nowhere"

    def send_error(self, code, message=None, explain=None):
        body = (HTML / "404.html").read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def host():
    with served(Pages) as found:
        yield found


@pytest.mark.parametrize("path", ["nothing", "chapters/99-nothing.html", "a/b/c/d/"])
def test_wrong_addresses_lead_back(browser, host, path):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    failed, errors = [], []
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto(host + BASE + path, wait_until="load", timeout=60_000)
    assert failed == [host + BASE + path] and errors == []  # styles, scripts and the logo are found
    assert page.locator(".bd-article h1").inner_text() == "This page is not here"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert [v["id"] for v in Axe().run(page).response["violations"]] == []
    page.get_by_label("Search the book", exact=True).fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{BASE}search.html?q=softmax", timeout=60_000)
    page.wait_for_selector("#search-results li", timeout=60_000)
    context.close()


def test_every_link_of_the_lost_page_leads_somewhere():
    text = (HTML / "404.html").read_text(encoding="utf-8")
    links = {
        link for link in re.findall(r'\b(?:href|src|action)="([^"]*)"', text) if not link.startswith(("#", "http"))
    }
    assert len(links) > 10
    for link in links:
        assert link.startswith(BASE), link
        assert (HTML / urlsplit(link).path.removeprefix(BASE)).is_file(), link


@pytest.mark.parametrize("name", [*PAGES, "404.html", "search.html", "genindex.html"])
def test_every_page_says_what_it_is(name):
    text = (HTML / name).read_text(encoding="utf-8")
    found = dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"', text))
    for key in ("description", "og:title", "og:description", "og:url", "og:image", "og:image:alt", "twitter:card"):
        assert found.get(key), key
    assert 20 <= len(found["description"]) <= book_head.LONGEST + 60 and "\\" not in found["description"]
    assert found["og:url"].startswith(SITE) and (HTML / found["og:url"].removeprefix(SITE)).is_file()
    assert (HTML / found["og:image"].removeprefix(SITE)).read_bytes().startswith(b"\x89PNG")


def test_every_page_has_a_description_of_its_own():
    found = [re.search(r'name="description" content="([^"]*)"', (HTML / name).read_text())[1] for name in PAGES]
    assert len(set(found)) == len(found)


def test_every_page_carries_the_version():
    for path in HTML.rglob("*.html"):
        if path.name not in FRAGMENTS and "_static" not in path.parts:
            assert f"residual_gd {version('residual-gd')}</p>" in path.read_text(encoding="utf-8"), path.name
