"""Binder's environment: small, in the book's versions, enough for the chapters, read by repo2docker."""

import ast
import os
import re
import shutil
import subprocess
from importlib import metadata

import binder_size
import build_book
import notebooks
import pytest

ROOT = build_book.ROOT
BINDER = ROOT / ".binder"
LINES = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
PINS = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()


def test_the_books_pins_and_the_small_torch():
    assert "-c ../requirements.txt" in LINES
    (torch,) = [line for line in PINS if line.startswith("torch==")]
    assert f"{torch}+cpu" in LINES
    pinned = {line.partition("==")[0] for line in PINS}
    assert set(binder_size.named()) <= pinned
    assert (BINDER / "runtime.txt").read_text() == "python-3.11\n"
    assert os.access(BINDER / "postBuild", os.X_OK)


def test_the_chapters_find_all_that_they_import():
    there = {name.replace("-", "_") for name in binder_size.sizes(binder_size.named())}
    packages = metadata.packages_distributions()
    imported = set()
    for path in notebooks.chapters():
        for cell in notebooks.read(path).cells:
            if cell.cell_type != "code":
                continue
            source = re.sub(r"^(\s*)%.*$", r"\1pass", cell.source, flags=re.MULTILINE)
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imported.add(node.module.split(".")[0])
    needed = {name for name in imported if name in packages and name != "residual_gd"}
    assert {"numpy", "matplotlib"} <= needed
    for name in needed:
        assert {n.lower().replace("-", "_") for n in packages[name]} & there, name
    assert "jupyterlab_myst" in there and "anywidget" in there


def test_the_size_that_is_stated():
    stated = float(re.search(r"about ([\d.]+) GB", " ".join(LINES)).group(1))
    assert sum(binder_size.sizes(binder_size.named()).values()) / 1e9 == pytest.approx(stated, abs=0.1)
    assert f"about {stated:.1f} GB" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.mark.skipif(shutil.which("jupyter-repo2docker") is None, reason="pip install jupyter-repo2docker (nightly)")
def test_repo2docker_reads_the_files(tmp_path):
    for part in (".binder", "requirements.txt", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    command = ["jupyter-repo2docker", "--no-build", "--debug", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    text = run.stdout + run.stderr
    assert "environment for python=3.11" in text
    assert 'install --no-cache-dir -r ".binder/requirements.txt"' in text and "RUN ./.binder/postBuild" in text
