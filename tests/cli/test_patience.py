"""Patience with a process that starts, on an idle and on a busy machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.embedded import process
from cli.embedded.process import Patience, processor_seconds
from tests.waiting import eventually


@pytest.fixture
def moments(monkeypatch):
    """Return a function that sets the wall clock and the processor time of the process."""
    now = {"wall": 0.0, "worked": 0.0}
    monkeypatch.setattr(process.time, "monotonic", lambda: now["wall"])
    monkeypatch.setattr(process, "processor_seconds", lambda pid: now["worked"])
    return lambda wall, worked: now.update(wall=wall, worked=worked)


def test_a_process_without_the_processor_is_waited_for(moments):
    patience = Patience(1, 60)
    for minute in range(1, 20):
        moments(wall=50.0 * minute, worked=2.0 * minute)
        assert not patience.is_over()


def test_a_process_that_works_in_vain_or_hangs_is_given_up(moments):
    patience = Patience(1, 60)
    moments(wall=61, worked=0.9)
    assert patience.is_over()
    moments(wall=61, worked=61)
    assert patience.is_over()


def test_the_work_of_a_process_and_of_those_below_it_counts():
    busy = "while True: pass"
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", below], start_new_session=True) as working:
        eventually(lambda: processor_seconds(working.pid), lambda seconds: seconds > 0.5)
        for pid in (*process.descendants(working.pid), working.pid):
            process.os.kill(pid, 9)
    assert processor_seconds(working.pid) == 0
    assert processor_seconds(None) == 0
