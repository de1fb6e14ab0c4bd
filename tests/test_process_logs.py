"""Output of a failing test, which includes its processes' logs, or names a missing one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

FAILING = """
import subprocess, sys
import pytest
from tests.programs import program

def say(log, words):
    with log.open("wb") as written:
        command = [sys.executable, "-c", f"for line in range(40): print({words!r}, line)"]
        subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT).wait()

def test_passes(tmp_path):
    say(tmp_path / "earlier.log", "an earlier test's")

def test_fails(tmp_path):
    say(tmp_path / "mine.log", "what I said")
    assert False

def test_lacks_a_program(monkeypatch):
    monkeypatch.setenv("PATH", "")
    program("promtool")
"""


def output_of_failing_tests(directory: Path) -> str:
    file = directory / "test_failing.py"
    file.write_text(FAILING)
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.process_logs", "-c", ROOT / "pyproject.toml"]
    ended = subprocess.run([*pytest, file], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    return ended.stdout


def test_the_end_of_each_log_is_shown_and_a_missing_program_is_one_sentence(tmp_path):
    shown = output_of_failing_tests(tmp_path)
    assert "mine.log" in shown
    assert "what I said 39\n" in shown
    assert "what I said 14\n" not in shown
    assert "an earlier test's" not in shown
    (lacking,) = (line for line in shown.splitlines() if line.startswith("promtool is not in PATH"))
    assert lacking == "promtool is not in PATH: install it (Debian: package prometheus)"
