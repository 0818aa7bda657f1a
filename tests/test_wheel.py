"""The library as a reader installs it: its wheel, in a folder of its own, without the repository beside it."""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import first_cell
import notebooks
import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "lib", "results")
ALL = os.environ.get("RESIDUAL_GD_ALONE") == "1"  # `make nightly` runs every notebook


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".checkpoints")
    for part in PARTS:
        source, target = ROOT / part, folder / "source" / part
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(source, target, ignore=ignored) if source.is_dir() else shutil.copy(source, target)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, folder / "source")
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel):
    """The folder in which the wheel is installed."""
    target = wheel.parent / "installed"
    pip("install", "--no-deps", "--no-index", "--target", target, wheel)
    return target


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def environment(installed):
    """As on a machine without a network and without the repository."""
    unset = {"RESIDUAL_GD_DATA", "PYTEST_ADDOPTS", "MPLBACKEND"}  # a kernel draws into the notebook
    kept = {key: value for key, value in os.environ.items() if key not in unset}
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return kept | nowhere | {"PYTHONPATH": str(installed), "RESIDUAL_GD_PROGRESS": "0"}


def alone(script, installed, folder):
    """What a script prints in an empty folder."""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment(installed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def imports_of(path):
    """Import statements of a notebook's cells."""
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "code":
            source = re.sub(r"^(\s*)%.*$", r"\1pass", cell.source, flags=re.MULTILINE)
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield ast.unparse(node)


def test_wheel_has_every_module_and_file_of_the_library(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("residual_gd/")}
    library = ROOT / "lib"
    sources = {
        path.relative_to(library).as_posix()
        for path in (library / "residual_gd").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    records = {f"residual_gd/results/{path.name}" for path in (ROOT / "results").glob("*.json")}
    assert records and inside == sources | records


def test_records_are_those_of_the_repository(installed, tmp_path):
    script = """
import hashlib, residual_gd
from residual_gd.experiments import records, run
print(residual_gd.__file__)
print(run.FOLDER)
for path in sorted(records.RESULTS.glob("*.json")):
    assert records.load(path.stem)["curves"]
    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
"""
    library, folder, *lines = alone(script, installed, tmp_path).splitlines()
    assert Path(library).is_relative_to(installed) and folder == "results"
    assert dict(line.split() for line in lines) == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (ROOT / "results").glob("*.json")
    }


def test_every_import_of_every_chapter_is_found(installed, tmp_path):
    statements = {text for path in notebooks.chapters() for text in imports_of(path)}
    script = "import sys\n" + "\n".join(sorted(statements)) + "\nprint('residual_gd' in sys.modules)"
    assert alone(script, installed, tmp_path) == "True\n"


def test_first_cell_finds_the_library_and_installs_nothing(installed, tmp_path):
    """Also on Colab, where the module google.colab is loaded: the library is there already."""
    lines = first_cell.install_lines().replace(first_cell.LAST_LINE_START, "    raise SystemExit #")
    script = f"import sys, types\nsys.modules['google.colab'] = types.ModuleType('colab')\n{lines}\nprint('quiet')"
    assert alone(script, installed, tmp_path) == "quiet\n"


@pytest.mark.skipif(not ALL, reason="runs every notebook: make nightly")
@pytest.mark.parametrize("path", notebooks.chapters(), ids=lambda path: path.stem)
def test_notebook_runs_alone(path, installed, tmp_path, monkeypatch):
    """In an empty folder, without a network, with the installed library: the outputs are the stored ones."""
    for key, value in environment(installed).items():
        monkeypatch.setenv(key, value)
    for name in ("RESIDUAL_GD_DATA", "MPLBACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"])
    copy = shutil.copy(path, tmp_path)
    assert notebooks.text_of(notebooks.execute(Path(copy))) == path.read_text(encoding="utf-8")
