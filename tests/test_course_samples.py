"""`make release` and `make grade` on the shipped samples of all five sets give the grades of expected.csv."""

import csv
import shutil

import nbformat
import pytest
from course import grade, release, samples, versions

LIMITS = "c.SandboxExecute.limits = {'cell': 40, 'seconds': 300}\n"


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["Student ID"]: row for row in csv.DictReader(file)}


def answers(path):
    cells = nbformat.read(path, as_version=4).cells
    return {versions.grade_id(cell): cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("solution")}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(versions.COURSE / "source", root / "source")
    # The one that loops waits for a shorter time than in earnest.
    text = (versions.COURSE / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text(text + LIMITS)
    return root


def test_samples_get_the_expected_grades(course):
    assert release.main(course) == 0
    graded, broken = grade.run(course, versions.COURSE / "samples", jobs=2, out=lambda text: None)
    assert len(graded) == len(samples.SAMPLES) and broken == []
    got, expected = table(course / "grades.csv"), table(versions.COURSE / "samples" / "expected.csv")
    assert got == expected
    notes = (course / "notes.csv").read_text(encoding="utf-8")
    for words in ("q3a-test: longer than", "named homework-4-final.ipynb", "imports was missing", "'my-env'"):
        assert words in notes, words


def test_samples_cover_what_happens():
    expected = table(versions.COURSE / "samples" / "expected.csv")
    sets = release.sets(versions.COURSE)
    assert sets == ["ps1", "ps2", "ps3", "ps4", "ps5"]
    assert {row[f"{name} possible"] for row in expected.values() for name in sets} == {"20"}
    # Ada has every point that needs no person; Cora none; Ben and Dina something between.
    for name in sets:
        source = versions.read_source(versions.COURSE / "source" / name / f"{name}.ipynb")
        by_tests = sum(
            cell.metadata.nbgrader.points
            for cell in source.cells
            if cell.metadata.get("nbgrader", {}).get("grade") and not cell.metadata.nbgrader.solution
        )
        assert float(expected["ada"][name]) == by_tests
    assert float(expected["cora"]["ps1"]) == 0
    assert 0 < float(expected["ben"]["ps1"]) < float(expected["ada"]["ps1"])
    assert 0 < float(expected["dina"]["ps3"]) < float(expected["ada"]["ps3"])
    assert expected["fred"]["ps2"] == expected["ada"]["ps2"] and expected["emil"]["ps4"] == expected["ada"]["ps4"]


def test_samples_are_answers_to_the_present_sets(tmp_path):
    # After a change of a set: `PYTHONPATH=tools .venv/bin/python -m course.samples`.
    samples.write(tmp_path)
    paths = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.ipynb")]
    assert len(paths) == len(samples.SAMPLES)
    for path in paths:
        assert answers(versions.COURSE / "samples" / path) == answers(tmp_path / path), (
            f"{path}: write the samples anew"
        )
