"""Explorers and labs on the built pages: the keyboard moves them, and what they show are the library's numbers."""

import json
import math
import re

import build_book
import notebooks
import pytest
from serving import HTML

from residual_gd.explorer import Grid

ROOT = build_book.ROOT
DATA = re.compile(r'<div class="explorer-data">.*?<script type="application/json">(.*?)</script>', re.DOTALL)
# The explorers of a chapter, the cells that they stand on beside the imports, and names from cells that take long.
EXPLORERS = {
    "01-setup": (1, ["ordinary = initialize("], {}),
    "03-lipschitz": (1, [], {}),
    "05-rate-theorem": (1, [], {}),
    "06-residual-rank": (2, ["deep = dict("], {}),
    "07-weather": (2, ["record = load_embedded()", "memory = setting(", "jena = {name: recorded_sweeps("], {}),
    "08-sentiment": (1, [], {}),
}
LABS = ("05-rate-theorem", "06-residual-rank")
CASES = [(page, k) for page, (count, _, _) in EXPLORERS.items() for k in range(count)]
MARGIN_OF_PICTURE = 5  # pixels that the curves' box has beyond the axes
UP = 0.75**0.5  # height of a triangle of side 1
COLOURS = 25  # of a map


def shows(source):
    return source.rstrip().endswith(".show()") and not source.rstrip().endswith(("plt.show()", "_lab().show()"))


@pytest.fixture(scope="module")
def library():
    """Explorers of a chapter, made by running its cells here."""
    made = {}

    def of(page):
        if page not in made:
            cells = [c for c in notebooks.read(ROOT / "chapters" / f"{page}.ipynb").cells if c.cell_type == "code"]
            _, needed, scope = EXPLORERS[page]
            scope, found = dict(scope), []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Grid, "show", lambda explorer, found=found: found.append(explorer))
                for k, cell in enumerate(cells):
                    if k == 0 or shows(cell.source) or any(start in cell.source for start in needed):
                        exec(re.sub(r"^(\s*)%.*$", r"\1pass", cell.source, flags=re.MULTILINE), scope)
            made[page] = found
        return made[page]

    return of


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1] + 1}")
def opened(request, visit):
    page, k = request.param
    with visit(f"chapters/{page}.html") as seen:
        yield page, k, seen, seen.page.locator(".explorer").nth(k)


def state(explorer):
    return {
        "paths": [p.get_attribute("d") for p in explorer.locator(".explorer-curves path").all()],
        "places": [g.get_attribute("transform") for g in explorer.locator(".explorer-here").all()],
        "reading": explorer.locator(".explorer-reading").inner_text(),
    }


def drawn(explorer, payload):
    """The curves as they are drawn, in the axes' units: for each a list of (x, y)."""
    box = explorer.locator(".explorer-curves")
    width, height = (float(box.get_attribute(name)) - 2 * MARGIN_OF_PICTURE for name in ("width", "height"))

    def value(axis, share):
        low, high = axis["range"]
        if not axis["log"]:
            return low + share * (high - low)
        return 10 ** (math.log10(low) + share * (math.log10(high) - math.log10(low)))

    curves = []
    for path in state(explorer)["paths"]:
        points = [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]
        axes = payload["axes"]
        curves.append([(value(axes["x"], x / width), value(axes["y"], 1 - y / height)) for x, y in points])
    return curves


def assert_marks(explorer, frame):
    """The place and the arrow on every map."""
    places = explorer.locator(".explorer-here").all()
    assert len(places) == len(frame["turn"])
    for place, turn in zip(places, frame["turn"], strict=True):
        size = float(place.get_attribute("data-size"))
        x, y = map(float, re.fullmatch(r"translate\((\S+) (\S+)\)", place.get_attribute("transform")).groups())
        assert [x / size, UP - y / size] == pytest.approx(frame["at"], abs=1e-9)
        turns = {arrow.get_attribute("transform") for arrow in place.locator("path").all()}
        assert turns == (set() if turn is None else {f"rotate({-turn})"})


def assert_colours(explorer, drawn):
    """Every small triangle of every map has the colour of the mean of its corners' values."""
    side = drawn["side"]
    for group, map_ in zip(explorer.locator(".explorer-map").all(), drawn["maps"], strict=True):
        size = float(explorer.locator(".explorer-here").first.get_attribute("data-size"))
        cells = 0
        for k, path in enumerate(group.locator("path").all()):
            for cell in re.findall(r"M([^Z]+)Z", path.get_attribute("d")):
                mean = 0.0
                for corner in cell.split("L"):
                    x, y = (float(v) / size for v in corner.split())
                    j_less_i, j_plus_i = round((2 * x - 1) * side), round(y / UP * side)
                    i, j = (j_plus_i - j_less_i) // 2, (j_plus_i + j_less_i) // 2
                    mean += map_["values"][i * (2 * side + 3 - i) // 2 + j] / 3 / map_["range"][1]
                assert k - 1e-6 <= mean * COLOURS <= k + 1 + 1e-6
                cells += 1
        assert cells == side**2


def assert_curves(explorer, payload, frame):
    for axis, values, points in zip([payload["axes"]["y"]] * 9, frame["y"], drawn(explorer, payload), strict=False):
        low, high = axis["range"]
        expected = [(x, y) for x, y in zip(payload["x"], values, strict=False) if y is not None]
        assert len(points) == len(expected)
        for (x, y), (x_0, y_0) in zip(points, expected, strict=True):
            assert x == pytest.approx(x_0, abs=1e-3 * (payload["x"][-1] - payload["x"][0]))
            if low <= y_0 <= high:  # the rest is cut off
                assert y == pytest.approx(y_0, rel=5e-3, abs=0 if axis["log"] else 1e-3 * (high - low))


def assert_shows(explorer, payload, frame):
    if "triangle" in payload:
        assert_marks(explorer, frame)
    else:
        assert_curves(explorer, payload, frame)
    text = explorer.locator(".explorer-reading").inner_text()
    for label, value in zip(payload["readings"], frame["read"], strict=True):
        assert re.search(re.escape(label) + r"\s+" + re.escape(value), text), (label, value)
    rows = explorer.locator("tbody tr")
    assert rows.count() == len(frame.get("rows", []))
    for k, cells in enumerate(frame.get("rows", [])):
        assert rows.nth(k).locator("td").all_inner_texts() == cells
        assert (rows.nth(k).get_attribute("class") == "explorer-fails") == (k in frame["fails"])


def test_every_explorer_is_tested():
    for page in (HTML / "chapters").glob("*.html"):
        found = len(DATA.findall(page.read_text(encoding="utf-8")))
        assert found == EXPLORERS.get(page.stem, (0,))[0], page.name


def test_the_data_of_a_page_are_small():
    for page in EXPLORERS:
        text = (HTML / "chapters" / f"{page}.html").read_text(encoding="utf-8")
        assert sum(len(data.encode()) for data in DATA.findall(text)) < 150_000, page


def test_the_keyboard_moves_every_slider(opened):
    _, _, seen, explorer = opened
    readings = set()
    for slider in explorer.locator("input[type=range]").all():
        slider.focus()
        slider.press("Home")
        before, told = state(explorer), slider.get_attribute("aria-valuetext")
        slider.press("End")
        after = state(explorer)
        assert slider.get_attribute("aria-valuetext") != told
        drawn = [key for key in ("paths", "places") if after[key] != before[key]]
        assert drawn or after["reading"] != before["reading"]
        slider.press("ArrowLeft")
        assert slider.get_attribute("aria-valuetext") not in (None, "")
        readings |= {before["reading"], after["reading"]}
    assert len(readings) > 1
    assert seen.errors == [] and seen.failed == [] and seen.outside == []


def test_shows_the_librarys_numbers_at_two_settings(opened, library):
    page, k, _, explorer = opened
    own = library(page)[k]
    text = (HTML / "chapters" / f"{page}.html").read_text(encoding="utf-8")
    payload = json.loads(DATA.findall(text)[k])
    if "triangle" in payload:
        assert payload["triangle"] == own.payload["triangle"]
        assert_colours(explorer, payload["triangle"])
    sliders = explorer.locator("input[type=range]").all()
    for key, end in (("Home", 0), ("End", -1)):
        for slider in sliders:
            slider.focus()
            slider.press(key)
        # Computed now, not read from the page.
        setting = [control.values[end] for control in own.controls]
        assert_shows(explorer, payload, own.frame_at(*setting))


def test_the_picture_gives_way_to_the_explorer(opened):
    _, _, _, explorer = opened
    output = explorer.locator("xpath=ancestor::div[contains(@class, 'cell_output')]")
    assert output.locator("img").count() == 1 and not output.locator("img").is_visible()


@pytest.mark.parametrize("page", EXPLORERS)
def test_without_scripts_there_is_a_picture(visit, page):
    with visit(f"chapters/{page}.html", scripts=False) as seen:
        for output in seen.page.locator(".cell_output:has(.explorer-data)").all():
            image = output.locator("img")
            assert image.is_visible() and len(image.get_attribute("alt")) > 20
        assert seen.page.locator(".explorer input").count() == 0


def test_fits_and_moves_on_a_telephone(visit):
    with visit("chapters/05-rate-theorem.html", width=390) as seen:
        explorer = seen.page.locator(".explorer").first
        box = explorer.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        slider = explorer.locator("input[type=range]").first
        before = state(explorer)
        slider.scroll_into_view_if_needed()  # the mouse clicks in the window, not on the page
        place = slider.bounding_box()
        seen.page.mouse.click(place["x"] + 0.95 * place["width"], place["y"] + place["height"] / 2)
        assert state(explorer) != before


def test_in_a_kernel_other_settings_are_computed(visit):
    """The module's other host, with a model that answers as a kernel would."""
    with visit("chapters/05-rate-theorem.html") as seen:
        outcome = seen.page.evaluate(
            """async () => {
                const module = await import(new URL("../_static/explorer/explorer.js", location.href));
                const frame = (height) => ({ y: [[height, height]], read: [String(height)] });
                const axis = (label) => ({ label, log: false, range: [0, 4] });
                const values = {
                    anywhere: true,
                    payload: {
                        title: "A line", x: [0, 4], axes: { x: axis("x"), y: axis("y") }, readings: ["height"],
                        controls: [{ label: "height", text: ["1", "3"], start: 0, numbers: [1, 3] }],
                        curves: [{ label: "line", mark: "line" }], frames: [frame(1), frame(3)],
                    },
                };
                let listener = null;
                const model = {
                    get: (name) => values[name],
                    set: (name, value) => { values[name] = value; },
                    on: (event, f) => { listener = f; },
                    off: () => { listener = null; },
                    save_changes: () => setTimeout(() => {
                        const { number, values: [height] } = values.wanted;
                        const good = height <= 3;
                        const answer = good ? { frame: frame(height) } : { error: "height: too large" };
                        values.answer = { number, ...answer };
                        listener();
                    }),
                };
                const el = document.createElement("div");
                document.querySelector(".bd-article").append(el);
                module.default.render({ model, el });
                const read = () => el.querySelector(".explorer-reading dd").textContent;
                const seen = [read()];
                for (const height of [2, 9]) {
                    el.querySelector("input[type=number]").value = height;
                    el.querySelector("button").click();
                    await new Promise((done) => setTimeout(done, 100));
                    seen.push(read(), el.querySelector(".explorer-live [role=status]").textContent);
                }
                return seen;
            }"""
        )
        assert outcome == ["1", "2", "computed by the library", "2", "height: too large"]


@pytest.mark.parametrize("page", LABS)
def test_a_lab_is_a_picture_with_run_buttons(visit, page):
    """No panel: no dead slider stands beside the picture."""
    with visit(f"chapters/{page}.html") as seen:
        cell = seen.page.locator(".cell").filter(has_text="_lab().show()")
        image = cell.locator(".cell_output img")
        assert image.is_visible() and len(image.get_attribute("alt")) > 20
        assert "Certified." in cell.locator(".cell_output").inner_text()
        assert cell.locator("input, button:not(.copybtn), [class*=widget]").count() == 0
        for place in ("mybinder.org/v2/gh/", "colab.research.google.com/github/"):
            button = seen.page.locator(f".bd-article p a[href*='{place}']")
            assert button.is_visible() and button.get_attribute("href").endswith(f"chapters/{page}.ipynb")
        assert seen.outside == []
