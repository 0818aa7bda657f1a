"""Release and grading with the real nbgrader on tiny sets: thirty submissions, three broken, in every layout."""

import csv
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from copy import deepcopy
from pathlib import Path

import nbformat
import problem_sets
import pytest
from course import collect, grade, people, preprocess, probe, release, sandbox, versions
from tiny_set import tiny_set

REFERENCE = {
    "q1": "total = numbers.sum()",
    "q2": "def double(x):\n    return 2 * x",
    "q3": "Because sums are sums.",
}
BROKEN = {
    "zoe": "is not JSON",
    "yan": "there is no notebook in it",
    "xia": "it is the notebook of ps2, handed in as ps1",
}


def second_set():
    notebook = tiny_set()
    for cell in notebook.cells:
        cell.source = cell.source.replace("tiny/", "second/").replace("A tiny set", "Another set")
        cell.source = cell.source.replace("The sum of your numbers", "The sum of your other numbers")
    return notebook


def make_course(root, sets):
    for name, notebook in sets.items():
        (root / "source" / name).mkdir(parents=True)
        nbformat.write(notebook, root / "source" / name / f"{name}.ipynb")
    text = (versions.COURSE / "nbgrader_config.py").read_text()
    limits = "c.SandboxExecute.limits = {'cell': 8, 'seconds': 120, 'grace': 4, 'output': 20000}\n"
    (root / "nbgrader_config.py").write_text(text + limits)
    return root


def answered(course, name, student, answers=REFERENCE, edit=lambda notebook: None):
    source = versions.read_source(course / "source" / name / f"{name}.ipynb")
    notebook = versions.released(source, versions.settings(course))
    texts = {"student": f'STUDENT_ID = "{student}"', **answers}
    for cell in notebook.cells:
        cell.source = texts.get(versions.grade_id(cell), cell.source)
    edit(notebook)
    return nbformat.writes(notebook).encode()


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def zipped(**files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/") + ".ipynb", content)
    return data.getvalue()


def delete_and_turn(notebook):
    notebook.cells = [c for c in reversed(notebook.cells) if versions.grade_id(c) not in ("imports", "q1-test")]
    notebook.metadata["kernelspec"] = {"name": "julia", "display_name": "Julia", "language": "julia"}


def double(notebook):
    copy = deepcopy(next(c for c in notebook.cells if versions.grade_id(c) == "q2-test"))
    copy.id, copy.source = "copy", "assert True"
    notebook.cells.append(copy)


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {(row["Student ID"], row.get("Set"), row.get("Note")): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("course"), {"ps1": tiny_set(), "ps2": second_set()})


@pytest.fixture(scope="module")
def batch(course):
    """Thirty submissions of ps1, and the points that 27 of them should get."""
    folder = course / "handed in"
    expected = {}
    full = {f"s{k:02d}": 10.0 for k in range(14)}
    for student in full:
        put(folder / student / "ps1" / "ps1.ipynb", answered(course, "ps1", student))
    expected |= full
    for student, points, answers in (
        ("empty", 0, {}),
        ("sign", 5, REFERENCE | {"q1": "total = -numbers.sum()"}),
        ("copy", 5, REFERENCE | {"q1": "total = 1.2345678"}),
        ("loop", 5, REFERENCE | {"q2": "import time\nwhile True: time.sleep(0.1)"}),
        ("flood", 5, REFERENCE | {"q2": "while True: print('x' * 1000)"}),
        ("dead", 5, REFERENCE | {"q2": "import os\nos._exit(1)"}),
        ("cheat", 0, {"q1": "import residual_gd.course as c\nc.fresh = c.compare.matches = print\ntotal = 1.0"}),
    ):
        expected[student] = float(points)
        put(folder / student / "ps1" / "ps1.ipynb", answered(course, "ps1", student, answers))
    for student, edit in (("turned", delete_and_turn), ("doubled", double)):
        expected[student] = 10.0
        put(folder / student / "ps1" / "ps1.ipynb", answered(course, "ps1", student, edit=edit))
    expected |= {"renamed": 10.0, "zipper": 10.0, "mo": 10.0, "cn": 10.0}
    put(folder / "renamed" / "ps1" / "my homework.ipynb", answered(course, "ps1", "renamed"))
    put(folder / "renamed" / "ps1" / "residual_gd.py", b"raise SystemExit")
    put(folder / "zipper_ps1.zip", zipped(homework=answered(course, "ps1", "zipper")))
    put(folder / "Mo Odle_12_assignsubmission_file_" / "ps1.ipynb", answered(course, "ps1", "mo"))
    put(folder / "canvasna_LATE_4711_815_ps1-2.ipynb", answered(course, "ps1", "cn"))
    put(folder / "zoe" / "ps1" / "ps1.ipynb", b"{'not': json}")
    put(folder / "yan" / "ps1" / "homework.pdf", b"%PDF")
    put(folder / "xia" / "ps1" / "ps1.ipynb", answered(course, "ps2", "xia"))
    put(folder / "s00" / "ps1" / ".ipynb_checkpoints" / "ps1-checkpoint.ipynb", b"old")
    (course / "students.csv").write_text(
        "id,name,email,alias\ncn,Cana Vas,cana@example.org,canvasna\ns00,Ann Lee,ann@example.org,\nabsent,=cmd(),,\n"
    )
    return folder, expected


@pytest.fixture(scope="module")
def done(course, batch):
    said = []
    graded, broken = grade.run(course, batch[0], jobs=2, out=said.append)
    return graded, broken, said


def test_thirty_submissions_with_three_broken_give_27_grades(course, batch, done):
    graded, broken, said = done
    expected = batch[1]
    assert len(expected) == 27 == len(graded) and len(broken) == 3
    assert "27 submissions (27 to grade), 3 that cannot" in said[-1]
    assert {one.student: one for one in broken}.keys() == BROKEN.keys()
    for one in broken:
        assert BROKEN[one.student] in one.why and one.name == "ps1"
    table = {key[0]: row for key, row in rows(course / "grades.csv").items()}
    got = {student: float(table[student]["ps1"]) for student in expected}
    assert got == expected
    for student, words in BROKEN.items():
        assert table[student]["ps1"] == "" and words in table[student]["ps1 status"]


def test_table_for_a_learning_system(course, done):
    table = {key[0]: row for key, row in rows(course / "grades.csv").items()}
    row = table["s00"]
    assert (row["Name"], row["Email"], row["ps1 possible"]) == ("Ann Lee", "ann@example.org", "14")
    assert (
        row["ps1 status"] == "graded, a free text waits" and row["ps2 status"] == "not handed in" and row["ps2"] == ""
    )
    assert (row["Total"], row["Total possible"]) == ("10", "28")
    assert table["empty"]["ps1 status"] == "graded"  # an empty free text needs nobody
    assert table["absent"]["ps1 status"] == "not handed in" and table["absent"]["Name"].startswith("'=")
    assert len(table) == 31


def test_notes_tell_what_was_repaired(course, done):
    notes = {}
    for (student, _, note), _row in rows(course / "notes.csv").items():
        notes.setdefault(student, []).append(note)
    text = {student: " / ".join(lines) for student, lines in notes.items()}
    assert "my homework.ipynb" in text["renamed"]
    for words in ("imports was missing", "q1-test was missing", "put back in order", "kernel was 'julia'"):
        assert words in text["turned"], words
    assert "q2-test stands several times" in text["doubled"]
    assert "longer than 8 seconds" in text["loop"] and "20000 characters" in text["flood"] and "died" in text["dead"]
    assert "the id mo is the notebook's own" in text["mo"]
    assert not set(text) & {"s01", "empty", "sign", "cheat", "cn"}


def test_feedback_says_what_was_wrong(course, done):
    page = (course / "feedback" / "sign" / "ps1" / "ps1.html").read_text(encoding="utf-8")
    assert "the sign is reversed" in page and "<script>alert" not in page
    page = (course / "feedback" / "turned" / "ps1" / "ps1.html").read_text(encoding="utf-8")
    assert "Notes of the grader" in page and "q1-test was missing" in page
    assert len(list((course / "feedback").glob("*/ps1/ps1.html"))) == 27


def test_graded_submissions_keep_their_text(course, done):
    path = course / "autograded" / "sign" / "ps1" / "ps1.ipynb"
    cells = {versions.grade_id(c): c for c in nbformat.read(path, as_version=4).cells}
    assert cells["q1"].source == "total = -numbers.sum()"
    assert cells["q2-test"].metadata.nbgrader.points == 5
    assert "SOLUTION" not in path.read_text()


def test_the_harness_gives_the_same_points(course, batch, done):
    ps = course / "source" / "ps1" / "ps1.ipynb"
    for answers, student in (({}, "empty"), (REFERENCE | {"q1": "total = -numbers.sum()"}, "sign")):
        assert problem_sets.graded(ps, student, answers).total == batch[1][student]
    assert problem_sets.graded(ps, "turned", REFERENCE, edit=delete_and_turn).total == batch[1]["turned"]


def test_a_second_run_grades_only_what_changed(course, batch, done, monkeypatch):
    ran = []
    execute = sandbox.execute
    monkeypatch.setattr(sandbox, "execute", lambda *a, **k: ran.append(k["student"]) or execute(*a, **k))
    said = []
    grade.run(course, batch[0], out=said.append)
    assert ran == [] and "27 submissions (0 to grade)" in said[-1]
    put(batch[0] / "empty" / "ps1" / "ps1.ipynb", answered(course, "ps1", "empty"))
    put(batch[0] / "zoe" / "ps1" / "ps1.ipynb", answered(course, "ps1", "zoe"))
    graded, broken = grade.run(course, batch[0], out=said.append)
    assert sorted(ran) == ["empty", "zoe"] and len(graded) == 28 and len(broken) == 2
    table = {key[0]: row for key, row in rows(course / "grades.csv").items()}
    assert table["empty"]["ps1"] == table["zoe"]["ps1"] == "10"


def address(folder, seconds=120):
    """The address of the server whose runtime folder this is, once it listens there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path in folder.glob("jpserver-*.json"):
            try:
                about = json.loads(path.read_text())
                socket.create_connection((about["hostname"], about["port"]), timeout=5).close()
                return about["url"]
            except (json.JSONDecodeError, OSError):
                continue
        time.sleep(0.2)
    raise AssertionError("the server does not start")


def test_formgrader_answers(course, done):
    # As `make formgrader` starts it, without JupyterLab's page around it.
    program = Path(sys.executable).with_name("jupyter")
    command = [program, "server", "--no-browser", "--port=0", "--allow-root", "--ServerApp.token=t"]
    variables = os.environ | {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "JUPYTER_RUNTIME_DIR": str(course / "run"),
    }
    with subprocess.Popen(
        command, cwd=course, env=variables, stderr=subprocess.DEVNULL, start_new_session=True
    ) as server:
        try:
            url = address(course / "run")
            with urllib.request.urlopen(f"{url}formgrader/api/submissions/ps1?token=t") as answer:
                got = {one["student"]: one["score"] for one in json.load(answer)}
            with urllib.request.urlopen(f"{url}formgrader/gradebook?token=t") as answer:
                page = answer.read().decode()
        finally:
            os.killpg(server.pid, signal.SIGKILL)
    assert got["s01"] == 10 and got["sign"] == 5 and len(got) >= 27
    assert "<title>nbgrader formgrade</title>" in page


def test_points_of_a_person_come_into_table_and_feedback(course, batch, done):
    page = course / "feedback" / "s01" / "ps1" / "ps1.html"
    old = page.stat().st_mtime_ns
    with release.api(course).gradebook as book:
        book.find_grade("q3", "ps1", "ps1", "s01").manual_score = 3.5
        book.find_grade("q3", "ps1", "ps1", "s01").needs_manual_grade = False
        book.find_comment("q3", "ps1", "ps1", "s01").manual_comment = "Nearly."
        book.db.commit()
    grade.run(course, batch[0], out=lambda text: None)
    row = next(row for key, row in rows(course / "grades.csv").items() if key[0] == "s01")
    assert (row["ps1"], row["ps1 status"]) == ("13.5", "graded")
    assert page.stat().st_mtime_ns > old and "Nearly." in page.read_text(encoding="utf-8")


def test_a_failure_of_nbgrader_is_reported_and_stops_nothing(course, batch, done, monkeypatch):
    put(batch[0] / "s02" / "ps1" / "ps1.ipynb", answered(course, "ps1", "s02", REFERENCE | {"q1": "total = 0.0"}))
    put(batch[0] / "s03" / "ps1" / "ps1.ipynb", answered(course, "ps1", "s03", REFERENCE | {"q1": "total = 0.0"}))
    real = preprocess.RestoreCells.preprocess

    def fail(self, nb, resources):
        if resources["nbgrader"]["student"] == "s02":
            raise RuntimeError("the disk is full")
        return real(self, nb, resources)

    monkeypatch.setattr(preprocess.RestoreCells, "preprocess", fail)
    graded, broken = grade.run(course, batch[0], out=lambda text: None)
    assert [one.why for one in broken if one.student == "s02"] == ["nbgrader failed: RuntimeError: the disk is full"]
    assert "s03" in {one.student for one in graded}


def test_nothing_is_graded_without_a_sandbox(course, batch, monkeypatch, capsys):
    monkeypatch.setattr(probe, "find", lambda *a: (None, {"bwrap": "not installed", "unshare": "not permitted"}))
    monkeypatch.delenv("UNSAFE", raising=False)
    preprocess.working_kind.cache_clear()
    try:
        assert grade.main([str(batch[0]), "--course", str(course)]) == 1
        said = capsys.readouterr().err
        assert "Nothing was graded" in said and "UNSAFE=1" in said and "unshare: not permitted" in said
        monkeypatch.setenv("UNSAFE", "1")
        assert preprocess.working_kind() == "unsafe"
    finally:
        preprocess.working_kind.cache_clear()
    assert grade.main(["/nowhere/at/all"]) == 2


def test_release_writes_what_students_may_see(course, done):
    assert release.check(course, "ps1") == []
    first = (course / "release" / "ps1.zip").read_bytes()
    assert release.main(course) == 0
    assert (course / "release" / "ps1.zip").read_bytes() == first
    with zipfile.ZipFile(course / "release" / "ps1.zip") as archive:
        assert archive.namelist() == ["ps1/ps1.ipynb"]
        text = archive.read("ps1/ps1.ipynb").decode()
    assert "your answer is missing here" in text and "total = numbers" not in text and "hidden" not in text


@pytest.mark.parametrize(
    ("where", "leak"),
    [
        ("ps1.ipynb", {"source": "total = numbers.sum()"}),
        ("ps1.ipynb", {"source": "# check.matches('hidden', float(total), sum(own.tolist()))"}),
        ("ps1.ipynb", {"source": "x", "metadata": {"old": "    return x + x"}}),
        ("ps1.ipynb", {"source": "### BEGIN SOLUTION"}),
        ("notes.txt", "because sums are sums"),
    ],
)
def test_release_finds_leaks(course, done, where, leak, tmp_path):
    shutil.copytree(course / "source", tmp_path / "source")
    shutil.copytree(course / "release", tmp_path / "release")
    path = tmp_path / "release" / "ps1" / where
    if isinstance(leak, str):
        path.write_text(leak)
    else:
        raw = json.loads(path.read_text())
        raw["cells"].append({"cell_type": "markdown", "metadata": {}, "id": "new", **leak})
        path.write_text(json.dumps(raw))
    assert any(where in fault for fault in release.check(tmp_path, "ps1"))


def test_real_sets_hide_what_they_should():
    for name in release.sets(versions.COURSE):
        source = versions.read_source(versions.COURSE / "source" / name / f"{name}.ipynb")
        secrets = release.secrets_of(source)
        shown = nbformat.writes(versions.released(source, versions.settings()))
        assert len(secrets) > 40 and release.leaks(release.readable(shown.encode(), "x.ipynb"), secrets) == []
        assert release.points(versions.COURSE, name) == 20


@pytest.mark.parametrize(
    ("path", "who", "which"),
    [
        ("ann/ps1/ps1.ipynb", "ann", "ps1"),
        ("ps1/ann/homework.ipynb", "ann", "ps1"),
        ("ann/ps1.ipynb", "ann", "ps1"),
        ("ann/anything.ipynb", "ann", ""),
        ("ann_ps1/x.ipynb", "ann", "ps1"),
        ("PS1-ann/x.ipynb", "ann", "ps1"),
        ("ann_ps1.ipynb", "ann", "ps1"),
        ("Ann Lee_12_assignsubmission_file_/ps1.ipynb", "Ann Lee", "ps1"),
        ("Ann Lee_12_assignsubmission_file_ps1.ipynb", "Ann Lee", "ps1"),
        ("ps1/leeann_12_345_ps1-1.ipynb", "leeann", "ps1"),
        ("leeann_LATE_12_345_homework.ipynb", "leeann", ""),
        ("download/ann/ps10/x.ipynb", "download", ""),
    ],
)
def test_paths_say_who_and_which(course, path, who, which):
    assert collect._owner(collect.PurePosixPath(path), collect.Sets(course, ["ps1", "ps2"])) == (who, which)


def test_zips_that_are_traps(course, tmp_path, monkeypatch):
    put(tmp_path / "broken_ps1.zip", b"PK no zip")
    put(tmp_path / "list.csv", b"who,when")
    put(tmp_path / "paper_12_345_ps1.pdf", b"%PDF")
    put(tmp_path / "up_ps1.zip", zipped(**{"..__..__ps1": answered(course, "ps1", "up")}))
    put(tmp_path / "two_ps1.zip", zipped(a=answered(course, "ps1", "two"), b=answered(course, "ps1", "two", {})))
    (tmp_path / "nothing" / "ps1").mkdir(parents=True)
    good, broken = collect.collect(tmp_path, course, ["ps1", "ps2"])
    assert {one.student for one in good} == {"up", "two"}
    assert "b.ipynb" in next(one.path for one in good if one.student == "two")
    assert {(one.student, one.why.split(" (")[0]) for one in broken} == {
        ("broken", "the zip cannot be opened"),
        ("nothing", "there is no notebook in it"),
        ("paper", "there is no notebook in it"),
    }
    monkeypatch.setattr(collect, "UNPACKED", 1000)
    assert any("larger than" in one.why for one in collect.collect(tmp_path, course, ["ps1"])[1])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1, 2]", "no notebook"),
        (b'{"nbformat": 4}', "damaged"),
        (b'{"nbformat": 99, "cells": []}', "damaged"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}', "damaged"),
    ],
)
def test_files_that_are_no_notebooks(data, words):
    with pytest.raises(ValueError, match=words):
        collect.parse(data)


def test_two_under_one_id(course, tmp_path):
    put(tmp_path / "ann" / "ps1" / "ps1.ipynb", answered(course, "ps1", "ann"))
    put(tmp_path / "A N_1_assignsubmission_file_" / "ps1.ipynb", answered(course, "ps1", "ann"))
    good, broken = collect.collect(tmp_path, course, ["ps1", "ps2"])
    assert len(good) == 1 and "handed in already" in broken[0].why


def test_students_csv_is_checked(tmp_path):
    path = tmp_path / "students.csv"
    assert people.people(path) == {}
    path.write_text("\ufeffID,Name\nann,Ann\n")
    assert people.people(path)["ann"].name == "Ann"
    path.write_text("name\nAnn\n")
    with pytest.raises(ValueError, match="a column id"):
        people.people(path)
    path.write_text("id\nann\nann\n")
    with pytest.raises(ValueError, match="ann twice"):
        people.people(path)


def test_files_beside_a_notebook_are_bounded(tmp_path, monkeypatch):
    put(tmp_path / "a.csv", b"1" * 100)
    put(tmp_path / "b.csv", b"2" * 100)
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert set(preprocess.attached(tmp_path)) == {"a.csv", "b.csv"}
    monkeypatch.setattr(sandbox, "ATTACHED", 150)
    assert set(preprocess.attached(tmp_path)) == {"a.csv"}
    assert preprocess.attached(Path("/nowhere")) == {}


def test_cells_cannot_be_added_once_a_set_is_graded(course, done, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(course, root)
    path = root / "source" / "ps1" / "ps1.ipynb"
    source = nbformat.read(path, as_version=4)
    extra = deepcopy(next(c for c in source.cells if versions.grade_id(c) == "q2-test"))
    extra.id = extra.metadata.nbgrader.grade_id = "q2-test-2"
    source.cells.append(extra)
    nbformat.write(source, path)
    (fault,) = release.release(root, "ps1")
    assert "Cannot add or remove cells" in fault and "before it is graded" in fault and "\n" not in fault
