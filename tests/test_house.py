"""What the commands and services read: pins, addresses, versions, licences, the Makefile, Binder's and CI's files."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata

import address
import build_book
import first_cell
import pytest
import yaml

ROOT = build_book.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def name_of(requirement):
    return re.split(r"[<>=!~ \[]", requirement)[0].lower().replace("_", "-")


def test_every_requirement_is_pinned_and_installed():
    for line in requirements():
        name, separator, pin = line.partition("==")
        assert separator and re.fullmatch(r"\d[\w.]*", pin), line
        assert metadata.version(name).partition("+")[0] == pin, line


def test_pyproject_has_lower_bounds_only_and_the_pins_meet_them():
    pins = {name_of(line): line.partition("==")[2] for line in requirements()}
    listed = PROJECT["dependencies"] + [r for extra in PROJECT["optional-dependencies"].values() for r in extra]
    for requirement in listed:
        name, separator, bound = requirement.partition(">=")
        assert separator and re.fullmatch(r"[\d.]+", bound), requirement
        assert numbers(pins[name_of(name)]) >= numbers(bound), requirement


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)][:3]


def test_direct_imports_of_the_library_are_required():
    names = {name_of(r) for r in PROJECT["dependencies"]} | {"ipywidgets", "anywidget", "tokenizers"}
    imported = set()
    for path in (ROOT / "lib" / "residual_gd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    # cycler comes with matplotlib, dask with distributed, traitlets with anywidget, IPython with every kernel
    known = {n.replace("-", "_") for n in names} | {"residual_gd", "cycler", "dask", "traitlets", "IPython"}
    assert imported - known - set(sys.stdlib_module_names) == set()


def test_one_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"] == metadata.version("residual-gd")
    assert citation["license"] == PROJECT["license"] == "MIT"


def test_one_address(capsys):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["repository-code"] == first_cell.repository_url()
    assert address.main(["--check"]) == 0, capsys.readouterr().out


def test_address_is_changed_everywhere(tmp_path, monkeypatch, capsys):
    for name in ("README.md", "CITATION.cff", "_config.yml"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.setattr(address, "ROOT", tmp_path)
    monkeypatch.setattr(address, "files", lambda: sorted(tmp_path.iterdir()))
    own = address.short(first_cell.repository_url())
    assert address.main(["https://github.com/someone/elsewhere/"]) == 0
    for path in tmp_path.iterdir():
        assert own not in path.read_text() and "someone/elsewhere" in path.read_text()
    assert address.main(["--check"]) == 1  # the other files still say the old one
    capsys.readouterr()
    assert address.main(["not an address"]) == 2
    assert "must look like" in capsys.readouterr().err


def test_configuration_is_as_the_pages_need_it():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert config["execute"]["execute_notebooks"] == "force"
    assert config["sphinx"]["config"]["nb_execution_raise_on_error"] is True
    assert config["launch_buttons"]["thebe"] is False
    assert not (ROOT / "_static").exists()


@pytest.mark.parametrize("target", ["book", "pdf", "serve", "test", "browser", "notebooks", "clean"])
def test_make_help_says_what_each_command_does(target):
    text = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^  make {target} +\w", text, re.MULTILINE)


def bare_python(folder, *, version_ok=True):
    """A stand-in for a bare Debian's python3: no venv, no ensurepip, no virtualenv."""
    path = folder / "bare-python"
    path.write_text(
        '#!/bin/sh\ncase "$*" in\n  *version_info*) exit ' + ("0" if version_ok else "1") + ";;\n"
        "  *platform*) echo 3.9.2;;\n  --version) echo Python 3.11.2;;\n  *) exit 1;;\nesac\n"
    )
    path.chmod(0o755)
    return path


def make_venv(folder, python):
    shutil.copy(ROOT / "tools" / "make_venv.sh", folder)
    # Without apt-get and virtualenv on the path; `id` says that we are not root.
    tools = folder / "bin"
    tools.mkdir()
    for name in ("sh", "rm", "printf", "touch"):
        (tools / name).symlink_to(shutil.which(name))
    (tools / "id").write_text("#!/bin/sh\necho 1000\n")
    (tools / "id").chmod(0o755)
    command = ["sh", "make_venv.sh", str(python)]
    return subprocess.run(command, cwd=folder, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)


def test_environment_without_venv_says_what_to_install(tmp_path):
    run = make_venv(tmp_path, bare_python(tmp_path))
    assert run.returncode == 1 and "apt-get install python3-venv" in run.stderr


def test_environment_wants_a_new_enough_python(tmp_path):
    run = make_venv(tmp_path, bare_python(tmp_path, version_ok=False))
    assert run.returncode == 1 and "3.11 or later" in run.stderr and "3.9.2" in run.stderr


def test_environment_without_python_says_so(tmp_path):
    run = make_venv(tmp_path, "python-nowhere")
    assert run.returncode == 1 and "No python-nowhere here" in run.stderr


def test_pdf_without_texlive_says_what_to_install(tmp_path):
    (tmp_path / "sh").symlink_to(shutil.which("sh"))
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    command = ["sh", str(ROOT / "tools" / "need_texlive.sh")]
    run = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "missing: latexmk xelatex" in run.stderr and "sudo apt-get install latexmk texlive-xetex" in run.stderr


def test_ci_runs_the_book_and_its_tests():
    script = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    # One execution for pages and PDF, whatever the files' times.
    assert script.index("make book") < script.index("for target in pdf test browser")
    assert "--old-file=_build/executed/record.json --old-file=_build/html/.complete" in script
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text())
    runs = [step["run"].split(" PIP_ARGS")[0] for step in workflow["jobs"]["book"]["steps"] if "run" in step]
    needs = ["sudo sh tools/need_texlive.sh", "sudo sh tools/need_bubblewrap.sh --namespaces"]
    assert runs == ["make book", needs[0], "make pdf", needs[1], "make test", "make browser"]


def test_pre_commit_uses_the_pinned_ruff():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    ruff = next(repo for repo in hooks if "ruff" in repo["repo"])
    assert f"ruff=={ruff['rev'].removeprefix('v')}" in requirements()
