"""The panel of notation: by keyboard, by pointer and by touch."""

import book_notation
import pytest
from axe_playwright_python.sync_playwright import Axe

NAME = "chapters/05-rate-theorem.html"
STEP = "#thm-rate-smooth [data-symbols]"  # formulas of a statement


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def opened(request, visit):
    width, scheme = request.param
    with visit(NAME, width=width, scheme=scheme) as seen:
        height = seen.page.evaluate("document.documentElement.scrollHeight")
        seen.page.locator(".notation-button").focus()
        seen.page.keyboard.press("Enter")
        seen.page.locator("#notation-panel dl mjx-container").first.wait_for(timeout=60_000)
        yield seen, seen.page.locator("#notation-panel"), height


def rows_shown(panel):
    return {row.get_attribute("data-row") for row in panel.locator("[data-row]").all() if row.is_visible()}


def test_opens_and_closes_by_keyboard_and_moves_nothing(opened):
    seen, panel, height = opened
    page = seen.page
    assert panel.is_visible() and page.evaluate("document.documentElement.scrollHeight") == height
    assert page.evaluate("document.documentElement.scrollWidth") <= seen.width
    box = panel.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= seen.width and box["y"] > 300
    assert page.locator(".notation-button").get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")  # from the button into the panel
    assert page.evaluate("document.activeElement.closest('#notation-panel') !== null")
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    assert page.evaluate("document.activeElement.className").endswith("notation-button")
    assert seen.errors == [] and seen.failed == [] and seen.outside == []


def test_is_accessible_while_open(opened):
    seen, _, _ = opened
    violations = Axe().run(seen.page).response["violations"]
    assert [f"{v['id']}: {node['html'][:160]}" for v in violations for node in v["nodes"]] == []


def test_every_symbol_is_set_and_every_row_belongs_to_the_page(opened):
    seen, panel, _ = opened
    assert panel.locator(".math:not(:has(mjx-container))").count() == 0
    assert seen.page.locator("#notation-panel mjx-merror, #notation-panel [data-mjx-error]").count() == 0
    of_page = seen.page.eval_on_selector_all(
        ".bd-article [data-symbols]", "all => all.flatMap(e => e.dataset.symbols.split(' '))"
    )
    assert rows_shown(panel) == set(of_page)
    first = panel.locator("[data-row]").first
    symbol = book_notation.ROWS[int(first.get_attribute("data-row"))]
    assert symbol.code[0] in first.locator("code").all_inner_texts()


def test_a_formula_shows_its_own_symbols(opened):
    """By pointer or finger, and by keyboard: the focus on a formula does the same."""
    seen, panel, _ = opened
    whole = rows_shown(panel)
    formulas = seen.page.locator(STEP)
    for way in ("pointer", "focus"):
        formula = formulas.nth(1 if way == "pointer" else 2)
        own = set(formula.get_attribute("data-symbols").split())
        assert 0 < len(own) < len(whole)
        if way == "pointer":
            formula.scroll_into_view_if_needed()
            formula.hover()
        else:
            formula.locator("mjx-container[tabindex]").focus()
        shown = "n => document.querySelectorAll('#notation-panel [data-row]:not([hidden])').length == n"
        seen.page.wait_for_function(shown, arg=len(own))
        assert rows_shown(panel) == own
    panel.get_by_role("button", name="Show all symbols").click()
    assert rows_shown(panel) == whole


def test_without_a_popover_nothing_is_in_the_way(visit):
    """Closed, the panel takes no place, and without scripts the page is whole."""
    with visit(NAME, scripts=False) as seen:
        assert not seen.page.locator("#notation-panel").is_visible()
