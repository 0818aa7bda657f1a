"""The stored chapters: form, first cell, length of the cells, what they print (nbval compares the results)."""

import ast
import re

import build_book
import notebooks
import pytest

ROOT = build_book.ROOT
LONGEST_CELL = 15  # lines
RAW_FLOAT = re.compile(r"\d\.\d{9,}")
UNSEEDED = re.compile(r"(np|numpy)\.random\.(?!default_rng$)\w+|random\.\w+|time\.\w+")
CHAPTERS = notebooks.chapters()


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.name)
def chapter(request):
    return request.param


def code_cells(path):
    return [(i, cell) for i, cell in enumerate(notebooks.read(path).cells, start=1) if cell.cell_type == "code"]


def test_there_are_chapters():
    assert CHAPTERS


def test_every_chapter_is_in_the_toc_and_every_entry_exists():
    entries = build_book.check_toc(ROOT)
    pages = [page for suffix in ("*.ipynb", "*.md") for page in (ROOT / "chapters").glob(suffix)]
    assert {f"chapters/{page.stem}" for page in pages} == {e for e in entries if e.startswith("chapters/")}


def test_chapter_is_in_normal_form(chapter):
    assert notebooks.check(chapter) == []


def test_cells_are_short(chapter):
    long = {i: len(cell.source.splitlines()) for i, cell in code_cells(chapter)[1:]}
    assert {i: n for i, n in long.items() if n > LONGEST_CELL} == {}


def test_no_raw_floats_in_the_outputs(chapter):
    for i, cell in code_cells(chapter):
        for output in cell.outputs:
            text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
            assert not RAW_FLOAT.search(text), f"cell {i} prints {RAW_FLOAT.search(text).group()}"


def test_one_title_with_a_label(chapter):
    text = "\n".join(cell.source for cell in notebooks.read(chapter).cells if cell.cell_type == "markdown")
    text = re.sub(r"^(```|:::).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^# ", text, flags=re.MULTILINE)) == 1
    assert re.search(r"^\((ch|app)-[a-z-]+\)=\n# ", text, flags=re.MULTILINE)


def test_randomness_is_seeded(chapter):
    """No global random state, no unseeded generator, no clock."""
    for i, cell in code_cells(chapter):
        # a line for the shell is no Python, and may be the only one of its block
        source = re.sub(r"^([ \t]*)[%!].*$", r"\1pass", cell.source, flags=re.MULTILINE)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert not re.fullmatch(r"(np|numpy)\.random\.(?!default_rng$)\w+|random\.\w+|time\.\w+", name), (
                    i,
                    name,
                )
                if name.endswith("default_rng"):
                    assert node.args or node.keywords, f"cell {i}: default_rng() without a seed"
