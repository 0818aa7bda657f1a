"""The build of a two-page miniature book, through the same function as `make book`: what is wrong must fail it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import build_book
import executed
import nbformat
import notebooks
import pytest
from trees import differences

import residual_gd

ROOT = Path(__file__).resolve().parent.parent
TOC = "format: jb-book\nroot: intro\nchapters:\n  - file: chapters/one\n"
INTRO = "# A small book\n\nSee {prf:ref}`thm-one` and {cite}`one1999book`.\n\n```{bibliography}\n```\n"
STATEMENT = ":::{prf:theorem} One\n:label: thm-one\n\n$1 + 1 = 2$.\n:::"
BIBLIOGRAPHY = "@book{one1999book, author = {One, A.}, title = {Ones}, publisher = {P}, year = {1999}}\n"


def write_notebook(path, *sources, text="# One\n\n" + STATEMENT):
    cells = [nbformat.v4.new_markdown_cell(text), *(nbformat.v4.new_code_cell(source) for source in sources)]
    metadata = {"kernelspec": notebooks.KERNEL}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)


@pytest.fixture
def book(tmp_path):
    """A book of two pages with this book's configuration, assets and extensions."""
    shutil.copy(ROOT / "_config.yml", tmp_path)
    shutil.copytree(ROOT / "assets", tmp_path / "assets")
    (tmp_path / "tools").mkdir()
    for part in (ROOT / "tools").glob("book_*"):
        shutil.copy(part, tmp_path / "tools")
    (tmp_path / "_toc.yml").write_text(TOC)
    (tmp_path / "intro.md").write_text(INTRO)
    (tmp_path / "references.bib").write_text(BIBLIOGRAPHY)
    write_notebook(tmp_path / "chapters" / "one.ipynb", "print(1 + 1)")
    return tmp_path


def test_raising_cell_fails_twice_in_a_row(book):
    write_notebook(book / "chapters" / "one.ipynb", "print(1 + 1)", "raise RuntimeError('planted')")
    for _ in range(2):
        with pytest.raises(build_book.BuildError, match="RuntimeError: planted"):
            build_book.build(book)
        assert not (book / "_build" / "html" / build_book.COMPLETE).exists()


def test_good_book_is_built_afresh_each_time(book, monkeypatch):
    """All pages and MathJax are there; after a change outside the notebook the page shows the new result."""
    chapter, module = book / "chapters" / "one.ipynb", book / "modules" / "constant.py"
    module.parent.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    write_notebook(chapter, "import constant\nprint('answer', constant.ANSWER)")
    for answer in (41, 42):
        module.write_text(f"ANSWER = {answer}\n")
        shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
        html = build_book.build(book)
        page = (html / "chapters" / "one.html").read_text()
        assert f"answer {answer}" in page
        assert "Theorem 1" in (html / "intro.html").read_text()
        assert f"residual_gd {version('residual-gd')}" in page
        assert (html / "index.html").is_file() and (html / build_book.COMPLETE).is_file()
        assert (html / "_static" / "mathjax" / "tex-mml-chtml.js").is_file()
        assert not re.search(r"<(script|link(?! rel=.canonical.)|img)[^>]+(src|href)=.https?:", page)


def test_second_rendering_executes_nothing_and_gives_the_same_bytes(book):
    """Pages with cells, in notebooks and in text, show what the one execution printed."""
    (book / "intro.md").write_text(
        "---\njupytext: {text_representation: {extension: .md, format_name: myst}}\n"
        "kernelspec: {name: python3}\n---\n\n" + INTRO + "\n```{code-cell} ipython3\nimport secrets\n"
        "print('drawn', open('_toc.yml').read().count('one'), secrets.token_hex())\n```\n"
    )
    with (book / "intro.md").open("a") as intro:
        intro.write("\n```{versions-used}\n```\n")
    source = "import os, secrets\nprint('drawn', len(os.listdir()), secrets.token_hex())"
    write_notebook(book / "chapters" / "one.ipynb", source)
    first = build_book.build(book)
    for page, count in (("intro.html", 1), ("chapters/one.html", 0)):  # the notebook's folder is empty
        assert re.search(rf"drawn {count} [0-9a-f]{{64}}", (first / page).read_text())
    assert f"numpy {version('numpy')}, " in (first / "intro.html").read_text()
    second = build_book.render(book, executed.check(book, ["intro", "chapters/one"]), base=book / "again")
    assert differences(first, second) == [build_book.COMPLETE]

    write_notebook(book / "chapters" / "one.ipynb", source + "  # changed")
    with pytest.raises(notebooks.NotebookError, match=r"one\.ipynb is not what was executed"):
        executed.check(book, ["intro", "chapters/one"])


def test_latex_has_the_pages_numbers_and_nothing_that_moves(book):
    """Chapters with and without number; a statement, its proof, an exercise and references to them; outputs."""
    (book / "_toc.yml").write_text(
        "format: jb-book\nroot: intro\nparts:\n  - caption: Text\n    numbered: true\n"
        "    chapters: [{file: chapters/one}]\n  - caption: Appendices\n    chapters: [{file: chapters/two}]\n"
    )
    proof = "\n\n:::{prf:proof}\nCount.\n:::\n\n:::{exercise} Two\n:label: ex-two\n\nWhat is $1 + 1$?\n:::\n"
    explorer = repr("[explorer on the book's pages: sums. Sliders: a: 1 to 2]\n")
    film = "from IPython.display import HTML\nHTML('<video></video>')"
    text = "(ch-one)=\n# One\n\n" + STATEMENT + proof
    write_notebook(book / "chapters" / "one.ipynb", f"print({explorer})", film, text=text)
    references = "See {numref}`ch-one`, {prf:ref}`thm-one` and {numref}`ex-two`.\n"
    (book / "chapters" / "two.md").write_text("# Two\n\n" + references)
    latex = build_book.render(book, build_book.execute(book), "latex")
    tex = (latex / "book.tex").read_text()
    assert r"\begin{bookbox}{proved}{\label{\detokenize{chapters/one:thm-one}}}{Theorem 1.1}{ (One)}" in tex
    assert r"\label{exercise:ex-two}}{}{Exercise 1.1 (Two)}" in tex
    assert re.search(r"\\begin\{bookproof\}\s+(\\sphinxAtStartPar\s+)?\\sphinxstyleemphasis\{Proof\.\} Count\.", tex)
    assert re.search(r"\\booknumbered[^%]*\\chapter\{One\}.*\\bookunnumbered[^%]*\\chapter\{Two\}", tex, re.DOTALL)
    assert r"{Chapter \ref{" in tex and "{Theorem 1.1}" in tex and "{Exercise 1.1}" in tex
    assert "this picture moves. sums. Sliders: a: 1 to 2" in tex
    assert "HTML object" not in tex


def test_warning_of_the_code_fails(book):
    write_notebook(book / "chapters" / "one.ipynb", "import warnings\nwarnings.warn('planted')")
    with pytest.raises(build_book.BuildError, match=r"wrote to stderr:\n(.*\n)*.*planted"):
        build_book.build(book)


def test_dangling_reference_fails(book, capfd):
    """Each kind is named in the output."""
    kinds = {"prf:ref": "thm-two", "ref": "nowhere", "numref": "ch-nowhere", "cite": "nobody1900", "eq": "eq-no"}
    with (book / "intro.md").open("a") as intro:
        intro.writelines(f"\nSee {{{kind}}}`{target}`.\n" for kind, target in kinds.items())
    with pytest.raises(build_book.BuildError, match="exit code"):
        build_book.build(book)
    text = "".join(capfd.readouterr())
    for target in kinds.values():
        assert re.search(f"WARNING: .*{target}", text), target


def test_toc_entry_without_a_page_fails(book):
    (book / "_toc.yml").write_text(TOC + "  - file: chapters/two\n")
    with pytest.raises(build_book.BuildError, match="chapters/two"):
        build_book.build(book)


def test_toc_entry_twice_fails(book):
    (book / "_toc.yml").write_text(TOC + "  - file: chapters/one\n")
    with pytest.raises(build_book.BuildError, match="twice: chapters/one"):
        build_book.build(book)


def test_missing_page_is_noticed(tmp_path):
    (tmp_path / "intro.html").touch()
    build_book.check_pages(tmp_path, ["intro"])
    with pytest.raises(build_book.BuildError, match="2 pages expected, 1 not built: chapters/one"):
        build_book.check_pages(tmp_path, ["intro", "chapters/one"])


def test_other_jupyter_book_is_refused(monkeypatch):
    monkeypatch.setattr(build_book.metadata, "version", lambda name: "2.1.6")
    with pytest.raises(build_book.BuildError, match=r"must be 1\.x, got 2\.1\.6"):
        build_book.check_version()


def test_command_says_why_and_exits_1(book, capfd):
    (book / "_toc.yml").write_text(TOC + "  - file: chapters/two\n")
    assert build_book.main([str(book)]) == 1
    assert "chapters/two" in capfd.readouterr().err


def nbval(path, library):
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", path.name, "-p", "no:cacheprovider", "--rootdir", "."]
    command += ["--nbval-sanitize-with", str(ROOT / "tests" / "nbval_sanitize.cfg")]
    environment = {**os.environ, "PYTHONPATH": str(library)}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False)


def test_changed_constant_of_the_library_is_noticed(tmp_path, monkeypatch):
    """A copy of the library in which one constant is changed no longer gives the stored output of a chapter."""
    library = tmp_path / "copied-library"
    source = Path(residual_gd.__file__).parent
    shutil.copytree(source, library / source.name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    monkeypatch.setenv("PYTHONPATH", str(library))
    path = tmp_path / "chapters" / "one.ipynb"
    write_notebook(
        path,
        "from residual_gd import activations\nprint('copied-library' in activations.__file__)",
        "print(f\"{activations.activation('softplus').b_phi:.3f}\")",
    )
    path.write_text(notebooks.text_of(notebooks.execute(path)))
    assert '"True\\n"' in path.read_text() and '"0.250\\n"' in path.read_text()

    good = nbval(path, library)
    assert good.returncode == 0, good.stdout + good.stderr

    module = library / source.name / "activations.py"
    text = module.read_text()
    assert text.count("b_phi=0.25,") == 1
    module.write_text(text.replace("b_phi=0.25,", "b_phi=0.26,"))
    bad = nbval(path, library)
    assert bad.returncode == 1 and "0.260" in bad.stdout, bad.stdout + bad.stderr
