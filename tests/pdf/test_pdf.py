"""The finished PDF, read with poppler's tools and held against the executed chapters and the built pages."""

import html
import json
import re
import subprocess
import unicodedata
import xml.etree.ElementTree as ElementTree

import build_book
import build_pdf
import executed
import pytest

ROOT = build_book.ROOT
PDF = build_pdf.pdf_of(ROOT)
ENTRIES = build_book.toc_entries(ROOT)
STATEMENT = r"(?:Definition|Theorem|Lemma|Proposition|Corollary|Remark|Example|Algorithm|Exercise) \d+\.\d+"


def letters(text):
    """The text's plain letters and digits: formulas and spaces are written differently in every medium."""
    text = unicodedata.normalize("NFKC", re.sub(r"\$[^$]*\$", "", text))  # italic letters are letters
    return re.sub(r"[^a-z0-9]", "", text.lower())


@pytest.fixture(scope="module")
def text():
    """The PDF's text, line by line as it was set."""
    assert PDF.is_file(), "no PDF: run make pdf"
    return subprocess.run(["pdftotext", "-raw", str(PDF), "-"], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def outline(tmp_path_factory):
    """The titles in the PDF's outline."""
    target = tmp_path_factory.mktemp("outline") / "book"
    command = ["pdftohtml", "-xml", "-i", "-q", str(PDF), str(target)]
    subprocess.run(command, check=True)
    xml = target.with_suffix(".xml").read_text(encoding="utf-8")
    part = xml[xml.index("<outline>") : xml.rindex("</outline>") + len("</outline>")]
    return ["".join(item.itertext()) for item in ElementTree.fromstring(part).iter("item")]


def source(entry):
    """A page's text, cells left out."""
    path = ROOT / (entry + ".ipynb")
    if path.is_file():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return (ROOT / (entry + ".md")).read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", ENTRIES)
def test_outline_has_every_chapter(entry, outline):
    title = re.search(r"^# (.+)$", source(entry), re.MULTILINE)[1]
    if entry == ENTRIES[0]:
        title = "Introduction"  # its own title is the book's
    assert letters(title) in {letters(item) for item in outline}


def test_contents_have_every_chapter(text):
    contents = letters(text[: text.index("Introduction", text.index("Contents") + 200)])
    for entry in ENTRIES[1:]:
        title = re.search(r"^# (.+)$", source(entry), re.MULTILINE)[1]
        assert letters(title)[:40] in contents, entry


def test_no_reference_dangles(text):
    assert re.findall(r".*\?\?.*|.*\[\?\].*", text) == []


def test_no_markup_is_left(text):
    assert re.findall(r"\\(?:begin|frac|operatorname|mathbb)\b|:::|\{(?:prf:ref|numref|eq|cite)\}", text) == []
    assert "\ufffd" not in text


def test_statements_have_the_pages_numbers(text):
    """Every statement and exercise of the pages is in the PDF under the same number and title."""
    pages = ROOT / "_build" / "html"
    if not (pages / build_book.COMPLETE).is_file():
        pytest.skip("no built pages to compare with: make book builds them")
    flat, count = letters(text), 0
    for entry in ENTRIES:
        page = (pages / (entry + ".html")).read_text(encoding="utf-8")
        for title in re.findall(r'<p class="admonition-title">(.*?)</p>', page, re.DOTALL):
            words = html.unescape(re.sub(r"<[^>]+>", "", title)).strip()
            if re.match(STATEMENT, words):
                count += 1
                assert letters(words.partition("\\(")[0]) in flat, f"{entry}: {words}"  # up to the first formula
    assert count > 50


def test_it_shows_what_was_executed(text):
    """A line that a cell of each chapter printed stands in the PDF."""
    folder = executed.check(ROOT, ENTRIES)
    flat = letters(text)
    for path in sorted(folder.rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        hidden = {"remove-cell", "remove-output", "hide-output", "hide-cell"}
        printed = [
            "".join(output["text"])
            for cell in cells
            if cell["cell_type"] == "code" and not hidden & set(cell["metadata"].get("tags", []))
            for output in cell["outputs"]
            if output["output_type"] == "stream"
        ]
        lines = [line for output in printed for line in output.splitlines() if 20 < len(line) < 70]
        assert all(letters(line) in flat for line in lines[:5]), path.name


def test_every_figure_is_there():
    drawn = set()
    for path in executed.folder_of(ROOT).rglob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            pictures = [output.get("data", {}).get("image/png") for output in cell.get("outputs", [])]
            drawn |= {picture for picture in pictures if picture}
    listed = subprocess.run(["pdfimages", "-list", str(PDF)], capture_output=True, text=True, check=True).stdout
    kinds = [line.split()[2] for line in listed.splitlines()[2:]]  # the others are the pictures' masks
    assert kinds.count("image") >= len(drawn) > 0
