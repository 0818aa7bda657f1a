"""Submissions that misbehave: what they do costs their own points, and touches nothing outside of the sandbox."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from course import probe, sandbox, watch

LIMITS = sandbox.Limits(
    cell=30, seconds=240, memory=1_500_000_000, disk=20_000_000, file=5_000_000, processes=48, output=5_000, grace=5
)
KINDS = [kind for kind in sandbox.KINDS if probe.find((kind,))[0]]


def fault(output):
    return f"{output['ename']}: {output['evalue']}"


def run(kind, *sources, files=None, **limits):
    """Text of each cell's outputs, errors as "Name: text"; every second cell is one that grades."""
    cells = [{"index": i, "source": text, "graded": i % 2 == 1} for i, text in enumerate(sources)]
    used = sandbox.Limits(**(vars(LIMITS) | limits))
    done = sandbox.execute(kind, cells, student="ann", limits=used, files=files, modules=["residual_gd.course"])
    texts = {}
    for i, outputs in done.outputs.items():
        parts = [
            o.get("text") or o.get("data", {}).get("text/plain") or f"{o['ename']}: {o['evalue']}" for o in outputs
        ]
        texts[i] = "".join(parts)
    return texts, done.ended


def test_bubblewrap_works_here():
    # Elsewhere `make grade` says what is missing; the tests of this project must not pass without a sandbox.
    assert "bwrap" in KINDS, probe.find(("bwrap",))[1]
    assert probe.find()[0] == "bwrap"
    assert probe.find(("no-such-tool",)) == (None, {"no-such-tool": "not installed"})


@pytest.fixture(scope="module", params=KINDS)
def harm(request, tmp_path_factory):
    """One run in which every cell tries something, the cells in between say 1."""
    victim = tmp_path_factory.mktemp("victim") / "grades.csv"
    victim.write_text("ann,20")
    here = Path(__file__).resolve()
    attempts = {
        "delete": f"import os; os.remove({str(victim)!r})",
        "home": f"import os; print(os.listdir({str(Path.home())!r}), os.path.exists({str(here)!r}))",
        "solutions": f"import os; print(os.path.exists({str(here.parents[1] / 'assignments')!r}))",
        "system": "open('/usr/lib/x', 'w')",
        "library": "import residual_gd.course as c; open(c.__file__, 'a')",
        "net": "import socket; socket.create_connection(('127.0.0.1', 22), timeout=5)",
        "names": "import socket; socket.getaddrinfo('example.org', 80)",
        "disk": "for i in range(100): open(f'f{i}', 'wb').write(bytes(10**6))",
        "file": "import os\nfor i in range(100):\n    if os.path.exists(f'f{i}'): os.remove(f'f{i}')\n"
        "open('big', 'wb').write(bytes(6 * 10**6))",
        "memory": "x = [bytearray(10**8) for _ in range(100)]",
        "environment": "import os; print(sorted(os.environ), os.getuid(), os.listdir())",
        "shadow": "import residual_gd.course, json, helper; print(json.__file__, residual_gd.__file__, helper.VALUE)",
        "rights": "import os; os.setuid(0); os.mount",
        "mount": "from subprocess import run\n"
        "print(run(['mount', '-o', 'remount,rw', '/'], capture_output=True).returncode)",
        "show": "from IPython.display import HTML, display; display(HTML('<script>alert(1)</script>'))",
        "lie": "import glob\nfor p in glob.glob('/proc/[0-9]*/fd/*'):\n    try:\n"
        "        open(p, 'w').write('0 {\"finished\": true}\\n')\n    except OSError:\n        pass",
        "hide": "get_ipython().showtraceback = lambda *a, **k: None\n1 / 0",
        "rebind": "import residual_gd.course as c\nc.fresh = c.matches = None\nimport builtins\nbuiltins.abs = None",
    }
    helpers = {"json.py": b"raise SystemExit", "residual_gd.py": b"1 / 0", "helper.py": b"VALUE = 42", "../out.py": b""}
    check = "from residual_gd.course import fresh; fresh().matches('one', abs(-1), 1); print(1)"
    sources = [text for attempt in attempts.values() for text in (attempt, check)]
    os.environ["A_SECRET"] = "grader's own"
    try:
        texts, ended = run(request.param, *sources, files=helpers)
    finally:
        del os.environ["A_SECRET"]
    said = {name: texts[2 * i] for i, name in enumerate(attempts)}
    checks = {name: texts[2 * i + 1] for i, name in enumerate(attempts)}
    return said, checks, ended, victim


def test_nothing_outside_is_touched_or_seen(harm):
    said, _, _, victim = harm
    assert victim.read_text() == "ann,20" and "FileNotFoundError" in said["delete"]
    assert "test_course" not in said["home"] and "False" in said["home"]
    assert "False" in said["solutions"]
    assert "Read-only file system" in said["system"]
    assert any(word in said["library"] for word in ("Read-only file system", "Permission denied"))
    assert not Path("/usr/lib/x").exists()
    assert "A_SECRET" not in said["environment"] and "RESIDUAL_GD_STUDENT" in said["environment"]
    assert "out.py" not in said["environment"]


def test_there_is_no_network(harm):
    said, *_ = harm
    assert any(word in said["net"] for word in ("Connection refused", "unreachable")), said["net"]
    assert "gaierror" in said["names"]


def test_disk_file_and_memory_are_limited(harm):
    said, *_ = harm
    assert "No space left" in said["disk"] and "File too large" in said["file"]
    assert "MemoryError" in said["memory"]


def test_rights_are_gone(harm):
    said, *_ = harm
    assert "PermissionError" in said["rights"] and said["mount"].strip() != "0"


def test_files_of_a_submission_shadow_nothing(harm):
    said, *_ = harm
    assert "residual_gd/__init__.py" in said["shadow"] and "42" in said["shadow"] and "submission" not in said["shadow"]


def test_outputs_are_cleaned_and_errors_are_not_hidden(harm):
    said, *_ = harm
    assert "<script>" not in said["show"]
    assert "ZeroDivisionError" in said["hide"]


def test_every_attempt_costs_its_own_cell_only(harm):
    _, checks, ended, _ = harm
    assert ended is None
    assert {name: text.strip() for name, text in checks.items()} == dict.fromkeys(checks, "1")


@pytest.mark.parametrize("kind", KINDS)
def test_loops_and_floods_are_stopped(kind):
    flood = "while True: print('x' * 1000)"
    deaf = "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass"
    start = time.monotonic()
    texts, ended = run(kind, "while True: pass", "1", flood, "1", "print('x' * 10**7)", "1", deaf, "1", cell=6, grace=4)
    assert "longer than 6 seconds" in texts[0] and "more than 5000 characters" in texts[2]
    assert len(texts[2]) < 6_000 and len(texts[4]) < 6_000
    assert texts[1] == texts[3] == texts[5] == "1" and ended is None
    assert "LimitExceeded" in texts[6] or "KernelLost" in texts[6]
    assert time.monotonic() - start < 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_ends_itself_leaves_errors(kind):
    texts, ended = run(kind, "import os; os._exit(0)", "1")
    assert "the kernel died" in texts[0] and texts[1].startswith("NotRun") and ended is None
    # In its own process namespace it may end what it finds: the reports before that count.
    texts, ended = run(kind, "print(1)", "1", "import os, signal; os.kill(-1, signal.SIGKILL)", "1")
    assert texts[0] == "1\n" and texts[1] == "1"
    # (The runner is the first process of an unshare sandbox, which no signal from inside ends.)
    assert 3 not in texts or kind == "unshare"


@pytest.mark.parametrize("kind", KINDS)
def test_forks_without_end_are_limited(kind):
    before = len(os.listdir("/proc"))
    texts, ended = run(kind, "import os\nwhile True:\n    os.fork()", "1", cell=6, grace=3, seconds=60)
    assert ended is not None or texts[0] != "", (texts, ended)
    time.sleep(1)
    assert len(os.listdir("/proc")) < before + 100  # all of them are gone


def test_memory_of_all_processes_together_is_limited():
    many = (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n"
        "        x = bytearray(b'x') * 4 * 10**7\n        time.sleep(60)\n        os._exit(0)\ntime.sleep(60)"
    )
    texts, ended = run("bwrap", many, "1", memory=250_000_000)
    assert ended == "more than 250 MB of memory" or "MemoryError" in texts.get(0, "")


def test_forged_reports_are_not_believed():
    key = b"k" * 32
    genuine = {"cell": 0, "outputs": []}
    lines = []
    for used in (key, b"f" * 32):
        text = json.dumps(genuine).encode()
        lines.append(sandbox.hmac.new(used, text, "sha256").hexdigest().encode() + b" " + text + b"\n")
    assert sandbox._genuine([*lines, b"nonsense\n", b"\n", b"\xff \xff\n"], key) == [genuine]


def test_without_a_sandbox_limits_hold_and_the_variables_are_cleared(monkeypatch):
    texts, ended = run(
        "unsafe", "import os; print('HOME' in os.environ, os.getcwd())", "1", "while True: pass", "1", cell=6
    )
    assert "unsafe-" in texts[0] and texts[1] == "1" and "longer than" in texts[2] and ended is None


def test_a_run_of_everything_too_long_is_ended():
    texts, ended = run("unsafe", "import time; time.sleep(60)", "1", seconds=8)
    assert ended == "longer than 8 seconds" and texts == {}


def test_descendants_are_found_and_counted():
    command = [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '30'])"]
    with subprocess.Popen(command) as process:
        for _ in range(100):
            if watch.descendants(process.pid):
                break
            time.sleep(0.1)
        family = watch.descendants(process.pid)
        assert len(family) == 1 and watch.memory(family[0]) >= 0 and watch.memory(process.pid) > 0
        assert watch.until_end(process, sandbox.Limits(seconds=0)) == "longer than 0 seconds"
    assert not Path(f"/proc/{family[0]}").exists() or watch.memory(family[0]) == 0


def test_a_broken_sandbox_is_no_fault_of_the_submission(monkeypatch):
    monkeypatch.setitem(sandbox.COMMANDS, "unsafe", lambda limits: ["false"])
    with pytest.raises(sandbox.SandboxError, match="does not start"):
        run("unsafe", "1")


def test_an_interrupted_run_ends_its_sandboxes(monkeypatch):
    real, seen = watch.until_end, []

    def interrupt(process, limits):
        seen.append(process)
        for _ in range(100):
            if len(watch.descendants(process.pid)) > 1:
                break
            time.sleep(0.1)
        sandbox.end_all()
        return real(process, limits)

    monkeypatch.setattr(watch, "until_end", interrupt)
    with pytest.raises(sandbox.SandboxError):
        run("bwrap", "import time; time.sleep(100)")
    assert seen[0].returncode is not None and sandbox._running == set()
