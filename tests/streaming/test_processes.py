"""Readings from /proc of real processes, and the end of those that do not react."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from streaming.processes import descendants, job_processes, kill, uses_of
from tests.processes import is_running
from tests.waiting import eventually

# A process in Java's place, with a child and 30 more open files. Its limit is 200. The child answers a line before
# the test begins, because a process that is still being replaced by its program has no memory of its own yet.
_PARENT = """
import os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(b"runs\\n")
child.stdin.flush()
child.stdout.readline()
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(30)]
print("ready", flush=True)
child.wait()
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        kill([*descendants(process.pid), process.pid])


def test_each_role_has_its_processes_files_threads_and_memory(parent):
    uses = uses_of(parent.pid)
    assert {role: use.processes for role, use in uses.items()} == {"driver": 1, "java": 1, "worker": 1}
    assert uses["java"].open_files == len(os.listdir(f"/proc/{parent.pid}/fd")) > 30
    assert uses["java"].open_files_limit == 200
    assert uses["driver"].open_files_limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert all(use.threads >= 1 and use.resident_bytes > 0 for use in uses.values())


def test_open_files_and_threads_that_come_are_counted(parent):
    before = uses_of(parent.pid)["driver"]
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    with ExitStack() as opened:
        thread.start()
        for _ in range(10):
            opened.enter_context(open(os.devnull, "rb"))
        now = uses_of(parent.pid)["driver"]
        done.set()
    thread.join()
    assert (now.open_files - before.open_files, now.threads - before.threads) == (10, 1)


def test_a_process_that_is_gone_has_no_role(parent):
    (child,) = job_processes(parent.pid)["worker"]
    kill([child, parent.pid])
    parent.wait()
    eventually(lambda: not is_running(child))
    assert uses_of(parent.pid).keys() == {"driver"}


def test_stopped_processes_are_killed(parent):
    everything = [parent.pid, *descendants(parent.pid)]
    assert len(everything) == 2
    for pid in everything:
        os.kill(pid, signal.SIGSTOP)
    gone = subprocess.Popen(["true"])
    gone.wait()
    kill([gone.pid, *everything])
    parent.wait()
    eventually(lambda: not any(map(is_running, everything)))
