"""The PDF's tool: what it takes for a fault in LaTeX's log, and the link that it puts into the pages."""

import build_book
import build_pdf
import executed
import notebooks
import pytest

MENU = '<div class="dropdown dropdown-download-buttons">\n<button></button>\n<ul class="dropdown-menu"><li></li></ul>'


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("LaTeX Warning: Reference `chapters/one:thm-one' on page 2 undefined on input line 7.", True),
        ("LaTeX Warning: Citation `qin' on page 2 undefined on input line 7.", True),
        ("Missing character: There is no β (U+03B2) in font lmroman10!", True),
        ("! Undefined control sequence.", True),
        ("Overfull \\hbox (40.1pt too wide) in paragraph at lines 3--4", True),
        ("Overfull \\hbox (3.2pt too wide) in paragraph at lines 3--4", False),
        ("Underfull \\hbox (badness 10000) in paragraph at lines 3--4", False),
        ("LaTeX Warning: Label(s) may have changed. Rerun to get cross-references right.", False),
    ],
)
def test_faults_of_a_log(line, fault):
    found = build_pdf.faults(f"This is XeTeX\n{line}\n[1] [2]\n")
    assert bool(found) == fault
    assert all(line.startswith(text) for text in found)


def test_pages_offer_the_pdf_once(tmp_path):
    html, pdf = tmp_path / "html", tmp_path / "book.pdf"
    (html / "chapters").mkdir(parents=True)
    pdf.write_bytes(b"%PDF")
    for page in ("intro.html", "chapters/one.html", "search.html"):
        (html / page).write_text("<p></p>" if page == "search.html" else MENU)
    for _ in range(2):
        build_pdf.offer(html, pdf)
    assert (html / "book.pdf").read_bytes() == b"%PDF"
    assert (html / "intro.html").read_text().count('href="book.pdf"') == 1
    assert (html / "chapters" / "one.html").read_text().count('href="../book.pdf"') == 1
    assert (html / "search.html").read_text() == "<p></p>"


def test_nothing_executed_is_an_error(tmp_path):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    (tmp_path / "intro.md").write_text("# A book\n")
    with pytest.raises(build_book.BuildError, match=r"no executed notebooks in .*: run make book"):
        build_pdf.build(tmp_path)
    with pytest.raises(notebooks.NotebookError, match="no executed notebooks"):
        executed.check(tmp_path, ["intro"])


def test_without_latexmk_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build_book.BuildError, match=r"latexmk is missing: run sh tools/need_texlive\.sh"):
        build_pdf.typeset(tmp_path)
