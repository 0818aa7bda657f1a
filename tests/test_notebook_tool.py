"""The tool that executes the chapters and stores them in normal form, and the first cell that it puts in."""

import json
import sys
import types
from importlib import util

import first_cell
import nbformat
import notebooks
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat import v4

URL = "https://example.org/someone/book"


def notebook(*sources, tags=None):
    """A notebook as an editor leaves it: times, widgets and traces of the editor in the metadata."""
    cells = [v4.new_markdown_cell("# A page")]
    for source in sources:
        metadata = {"execution": {"iopub.status.busy": "2026-01-01T00:00:00"}, "collapsed": True, "scrolled": False}
        cells.append(v4.new_code_cell(source, metadata=metadata | ({"tags": tags} if tags else {})))
    widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": notebooks.KERNEL, "widgets": widgets})


@pytest.fixture
def stored(tmp_path):
    """Function that writes a notebook of the given code cells and returns its path."""

    def write(*sources, **options):
        path = tmp_path / "page.ipynb"
        nbformat.write(notebook(*sources, **options), path)
        return path

    return write


DRAWS = """import matplotlib
matplotlib.use("module://matplotlib_inline.backend_inline")
import matplotlib.pyplot as plt
_ = plt.plot([1, 2])
plt.show()"""


def test_second_run_changes_no_byte(stored):
    path = stored(
        "print('a')", DRAWS, "import ipywidgets\nipywidgets.IntSlider()", "print('b', flush=True)\nprint('c')"
    )
    first_changed, _ = notebooks.store(path)
    once = path.read_bytes()
    again_changed, _ = notebooks.store(path)
    assert first_changed and not again_changed
    assert path.read_bytes() == once

    content = json.loads(once)
    codes = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in codes] == [1, 2, 3, 4, 5]
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    assert all(set(cell["metadata"]) <= {"tags"} for cell in content["cells"])
    text = once.decode()
    for trace in ("image/png", "widget-view", "widget-state", "iopub", "collapsed", "size 640x480"):
        assert trace not in text, trace
    assert codes[4]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["b\n", "c\n"]}]


def test_figure_without_alt_text_is_a_fault(stored):
    path = stored(DRAWS)
    _, faults = notebooks.store(path)
    assert faults == ['cell 3 draws a figure without alt text (metadata {"mystnb": {"image": {"alt": ...}}})']
    content = notebooks.read(path)
    content.cells[2].metadata["mystnb"] = {"image": {"alt": "a line that rises from one to two"}}
    nbformat.write(content, path)
    _, faults = notebooks.store(path)
    assert faults == [] and notebooks.check(path) == []


def test_ids_stay_and_doubles_get_a_new_one_once(stored):
    path = stored("print(1)", "print(2)")
    content = notebooks.read(path)
    content.cells[1].id = content.cells[2].id = "same"
    ids = [[cell.id for cell in notebooks.normalize(content).cells] for _ in range(2)]
    assert ids[0] == ids[1] and len(set(ids[0])) == 3 and ids[0][:2] == [content.cells[0].id, "same"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys\nprint('careful', file=sys.stderr)", "wrote to stderr:\ncareful"),
        ("import warnings\nwarnings.warn('old')", "wrote to stderr"),
    ],
)
def test_failing_notebook_is_not_stored(stored, source, message, capsys):
    path = stored(source)
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    assert message in capsys.readouterr().err
    assert path.read_bytes() == before


def test_check_wants_normal_form(stored, capsys):
    path = stored("print(1)")
    assert notebooks.main(["--check", str(path)]) == 1
    error = capsys.readouterr().err
    assert "not in normal form" in error and "execution count None, expected 1" in error
    assert "standard lines" in error
    assert notebooks.main([str(path)]) == 0
    assert notebooks.main(["--check", str(path)]) == 0
    # another way of writing the same JSON is not the normal one
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert notebooks.check(path) == ["not in normal form: run make notebooks"]


@pytest.mark.parametrize(
    "text", ["<function f at 0x7f0012345678>", "Text(0.5, 1.0, 'loss')", "[<matplotlib.lines.Line2D>]"]
)
def test_printed_objects_are_faults(text):
    content = notebook("x")
    content.cells[1].outputs = [v4.new_output("execute_result", {"text/plain": text}, execution_count=1)]
    assert any("prints an object" in fault for fault in notebooks.faults(content))


def test_no_notebook_and_broken_notebook(tmp_path, capsys):
    with pytest.raises(SystemExit):
        notebooks.main([str(tmp_path / "absent.ipynb")])
    assert "no such notebook" in capsys.readouterr().err
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    assert notebooks.main(["--check", str(broken)]) == 1
    assert "broken.ipynb: not a notebook" in capsys.readouterr().err


def test_first_cell_goes_in_once():
    content = notebook("print(1)")
    first_cell.install(content, URL)
    first_cell.install(content, URL)
    assert [cell.cell_type for cell in content.cells] == ["markdown", "code", "code"]
    assert content.cells[1].source == first_cell.install_lines(URL)
    assert first_cell.faults(content, URL) == []


def test_first_cell_keeps_the_imports_and_takes_a_new_address():
    content = notebook("import numpy as np\nfrom math import pi", "print(1)", tags=["remove-cell"])
    for url in (URL, URL + "-moved"):
        first_cell.install(content, url)
        assert len(content.cells) == 3
        assert content.cells[1].source == first_cell.install_lines(url) + "\n\nimport numpy as np\nfrom math import pi"
        assert first_cell.faults(content, url) == []
    assert first_cell.faults(content, URL)  # the old address


@pytest.mark.parametrize("extra", ["x = 1", "print(1)", "import ("])
def test_first_cell_has_imports_only(extra):
    content = notebook(first_cell.install_lines(URL) + "\n\n" + extra, tags=["remove-cell"])
    assert first_cell.faults(content, URL) == ["the first code cell has more than the standard lines and imports"]


def test_first_cell_must_be_hidden():
    content = notebook(first_cell.install_lines(URL))
    assert first_cell.faults(content, URL) == ["the first code cell lacks the tag remove-cell"]


@pytest.mark.parametrize(
    ("on_colab", "present", "installs"), [(1, 0, True), (1, 1, False), (0, 0, False), (0, 1, False)]
)
def test_first_cell_installs_on_colab_only(on_colab, present, installs, monkeypatch):
    """The lines themselves, run in an IPython shell that notes what %pip is asked for."""
    asked = []
    shell = InteractiveShell()
    shell.register_magic_function(asked.append, "line", "pip")
    if on_colab:
        monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    else:
        monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    find = util.find_spec
    monkeypatch.setattr(
        util, "find_spec", lambda name, *a: (present or None) if name == "residual_gd" else find(name, *a)
    )
    result = shell.run_cell(first_cell.install_lines(URL))
    result.raise_error()
    assert asked == ([f'install --quiet "residual-gd[widgets] @ git+{URL}"'] if installs else [])
