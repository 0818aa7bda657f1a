"""Imports go down only: a module of the library imports from floors below its own, never from its floor or above."""

import ast
from pathlib import Path

import residual_gd

LIBRARY = Path(residual_gd.__file__).parent

# From the ground to the roof. The theory, the experiments, and what stands on both.
FLOORS = (
    ("validation", "data", "figures.style"),
    ("matrices", "activations", "samples", "notation", "majorants", "explorer"),
    ("transformer",),
    ("parameters", "jacobian", "network_majorants", "rank", "obstructions", "beyond"),
    ("depth", "gram", "descent", "pl_inequality"),
    ("rate_forms",),
    ("closed_forms",),
    ("hypotheses",),
    ("advice", "certificate_text"),
    ("certificates",),
    ("certified_runs",),
    ("experiments",),
    ("gallery", "labs"),
    ("statements",),
    ("course",),
)
# Inside these packages the files form floors of their own; the test below only asks that no cycle arises.
PACKAGES = ("experiments", "statements", "figures", "explorer", "labs", "course")


def name_of(path):
    return ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__")


def imports(path):
    """Modules of the library that a file imports, as dotted names without the library's own."""
    package = list(path.relative_to(LIBRARY).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            if node.module:
                found.add(".".join(base + [node.module]))
            else:
                found |= {".".join(base + [alias.name]) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("residual_gd"):
            found.add(node.module.removeprefix("residual_gd").lstrip("."))
    return {
        name
        for name in found
        if (LIBRARY / Path(*name.split("."))).with_suffix(".py").exists() or (LIBRARY / Path(*name.split("."))).is_dir()
    }


GRAPH = {name_of(path): imports(path) for path in sorted(LIBRARY.rglob("*.py")) if path.name != "__init__.py"}


def floor(name):
    for height, modules in enumerate(FLOORS):
        if name in modules or name.split(".")[0] in modules:
            return height
    raise AssertionError(f"{name} stands on no floor: name it in FLOORS")


def test_imports_go_down():
    for name, found in GRAPH.items():
        if name.split(".")[0] == "figures":
            continue
        for other in found:
            same_package = name.split(".")[0] == other.split(".")[0] in PACKAGES
            assert same_package or floor(other) < floor(name), f"{name} imports {other}"


def test_figures_and_explorers_import_no_theory():
    for name, found in GRAPH.items():
        if name.split(".")[0] in ("figures", "explorer"):
            own = {other for other in found if other.split(".")[0] in ("figures", "explorer")}
            assert found - own <= {"validation"}, name


def test_no_cycles():
    finished, open_ = set(), []

    def visit(name):
        assert name not in open_, " -> ".join([*open_, name])
        if name not in finished:
            open_.append(name)
            for other in GRAPH.get(name, ()):
                visit(other)
            finished.add(open_.pop())

    for name in GRAPH:
        visit(name)


def test_library_imports_neither_chapters_nor_tests():
    for path in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not any(n.split(".")[0] in ("chapters", "tests", "tools", "benchmarks") for n in names), path
