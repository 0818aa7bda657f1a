"""Every page of the book, read in a real browser."""

import re
from importlib.metadata import version
from pathlib import PurePosixPath

import pytest
from axe_playwright_python.sync_playwright import Axe
from serving import HTML, PAGES


def assert_clean(seen):
    assert seen.outside == []
    assert seen.failed == []
    assert seen.errors == []


def assert_fits(seen):
    """Nothing is wider than the window, nor hidden at the right: what sticks out must be in a box that scrolls."""
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= seen.width
    lost = seen.page.evaluate(
        """width => {
            const scrolls = e => {
                for (let box = e; box && box !== document.body; box = box.parentElement)
                    if (/auto|scroll/.test(getComputedStyle(box).overflowX)) return true;
                return false;
            };
            return [...document.querySelectorAll('.bd-article *')]
                .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > width + 1)
                .filter(e => !e.closest('mjx-assistive-mml, .visually-hidden, .sr-only') && !scrolls(e))
                .map(e => e.outerHTML.slice(0, 120));
        }""",
        seen.width,
    )
    assert lost == []


def assert_accessible(seen):
    assert seen.page.evaluate("document.documentElement.dataset.theme") == seen.scheme
    violations = Axe().run(seen.page).response["violations"]
    assert [f"{v['id']}: {node['html'][:160]}" for v in violations for node in v["nodes"]] == []


def test_opens_without_network_and_without_errors(desk):
    assert_clean(desk)


def test_opens_without_errors_in_the_dark(dark):
    assert_clean(dark)


def test_opens_without_errors_on_a_telephone(phone):
    assert_clean(phone)


@pytest.mark.parametrize("name", ["index.html", "search.html?q=residual", "genindex.html"])
def test_other_pages_open_without_errors(visit, name):
    with visit(name) as seen:
        assert_clean(seen)


def test_every_equation_is_set(desk):
    unset = "all => all.filter(e => !e.querySelector('mjx-container')).length"
    assert desk.page.eval_on_selector_all(".bd-article .math", unset) == 0
    assert desk.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    # What is left of the text, without code, is free of TeX and of markup.
    text = desk.page.evaluate(
        """() => {
            const copy = document.querySelector('.bd-article').cloneNode(true);
            copy.querySelectorAll('pre, code, mjx-container, script, style').forEach(e => e.remove());
            return copy.textContent;
        }"""
    )
    assert re.findall(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$\$?|:::|\{(?:prf:ref|ref|numref|eq|cite)\}|\ufffd", text) == []


def test_the_book_has_equations(visit):
    """Were none found at all, the test above would say nothing."""
    count = 0
    for name in PAGES:
        with visit(name, scripts=False) as seen:
            count += seen.page.locator(".bd-article .math").count()
    assert count > 10


def test_nothing_is_lost_in_a_wide_window(desk):
    assert_fits(desk)


def test_nothing_is_lost_on_a_telephone(phone):
    assert_fits(phone)


def test_every_image_is_loaded_and_described(desk):
    images = desk.page.eval_on_selector_all(
        "img", "all => all.map(e => ({alt: e.getAttribute('alt'), src: e.getAttribute('src'), width: e.naturalWidth}))"
    )
    for image in images:
        if image["alt"] == "" and "logo" in image["src"]:
            continue  # beside the book's name in letters
        assert image["width"] > 0, image
        assert image["alt"] and len(image["alt"]) >= 10, image
        assert PurePosixPath(image["src"]).stem not in image["alt"], image
        assert not re.search(r"_images|\.(png|svg|jpe?g)\b", image["alt"]), image


def test_accessible(desk):
    assert_accessible(desk)


def test_accessible_in_the_dark(dark):
    assert_accessible(dark)


def test_accessible_on_a_telephone(phone):
    assert_accessible(phone)


def test_links_within_the_book_lead_somewhere(desk, address):
    own = "all => all.map(e => new URL(e.getAttribute('href'), document.baseURI).href)"  # of drawings, too
    hrefs = desk.page.eval_on_selector_all("a[href]", own)
    for href in sorted({h for h in hrefs if h.startswith(address)}):
        path, _, anchor = href.removeprefix(address).partition("#")
        file = HTML / (path.partition("?")[0] or "index.html")
        assert file.is_file(), href
        if anchor and file.suffix == ".html":
            assert re.search(rf'(id|name)="{re.escape(anchor)}"', file.read_text(encoding="utf-8")), href


def test_ids_are_unique(desk):
    doubles = desk.page.evaluate(
        """() => {
            const seen = new Set(), twice = [];
            for (const e of document.querySelectorAll('.bd-article [id]'))
                seen.has(e.id) ? twice.push(e.id) : seen.add(e.id);
            return twice;
        }"""
    )
    assert doubles == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_needs_a_kernel(name):
    """No widget view, no widget manager, no live code."""
    text = (HTML / name).read_text(encoding="utf-8")
    for trace in ("widget-view+json", "html-manager", "require.min.js", "thebe"):
        assert trace not in text, trace


def test_solutions_are_folded_and_open(desk):
    """Each solution is closed at first and opens by its button."""
    for solution in desk.page.locator("div.solution.dropdown").all():
        button, body = solution.locator("button.toggle-button"), solution.locator("section").first
        assert not body.is_visible()
        button.click()
        body.wait_for(state="visible")


def test_pages_carry_the_version_and_the_launch_buttons(visit):
    with visit(next(name for name in PAGES if name.startswith("chapters/0"))) as seen:
        assert f"residual_gd {version('residual-gd')}" in seen.page.locator(".bd-footer-content").inner_text()
        targets = " ".join(seen.page.eval_on_selector_all("a[href]", "all => all.map(e => e.href)"))
        assert "mybinder.org" in targets and "colab.research.google.com" in targets


def test_search_finds_chapters_and_not_the_status_page(visit):
    with visit("search.html?q=chapter") as seen:
        seen.page.wait_for_selector("#search-results li", timeout=30_000)
        found = " ".join(seen.page.eval_on_selector_all("#search-results li a", "all => all.map(e => e.href)"))
        assert "chapters/0" in found
        assert "status" not in found
