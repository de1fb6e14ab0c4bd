"""Directories of processes that were killed go at the next start, those of living ones never."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from streaming.scratch import scratch_directory
from tests.waiting import eventually

_HOLDER = """
import subprocess, sys
from pathlib import Path
from streaming.scratch import scratch_directory

with scratch_directory(Path(sys.argv[1])) as scratch:
    (scratch.directory / "file").write_text("kept while it lives")
    if sys.argv[2] == "with a child":
        subprocess.Popen(["cat"], stdin=0, stdout=2, pass_fds=[scratch.lock])
    print(scratch.directory, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(parent: Path, how: str):
    """Run a process with a directory there, and kill it at the end. Its own children end with its input."""
    command = [sys.executable, "-c", _HOLDER, str(parent), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def start(parent: Path) -> None:
    with scratch_directory(parent):
        pass


def test_it_ends_with_its_block(tmp_path):
    with scratch_directory(tmp_path) as scratch:
        (scratch.directory / "below").mkdir()
        assert scratch.directory.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_the_next_start_removes_the_files_of_killed_processes_not_of_live_ones(tmp_path):
    with holder(tmp_path, "alone") as (process, directory):
        start(tmp_path)
        assert (directory / "file").exists()
        process.kill()
        process.wait()
        assert (directory / "file").exists(), "a killed process cleans nothing up"
        start(tmp_path)
        assert not directory.exists()


def test_a_child_that_has_its_lock_still_needs_it(tmp_path):
    with holder(tmp_path, "with a child") as (process, directory):
        process.kill()
        process.wait()
        start(tmp_path)
        assert (directory / "file").exists()
        process.stdin.close()

        def is_gone() -> bool:
            start(tmp_path)
            return not directory.exists()

        eventually(is_gone)


def test_what_is_not_ours_is_left_alone(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("")
    (tmp_path / "kontrast-run-link").symlink_to(elsewhere)
    (tmp_path / "kontrast-run-file").write_text("")
    (tmp_path / "kontrast-other").mkdir()
    start(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "kontrast-other", "kontrast-run-file", "kontrast-run-link"]
    assert (elsewhere / "file").exists()
