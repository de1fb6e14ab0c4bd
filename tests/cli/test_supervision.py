"""The supervisor over small processes of its own, with restarts, silence, exit codes, one log, and the end."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from cli.commands.run import up
from cli.commands.run.up import Supervisor
from streaming.scratch import NoScratchError
from tests.processes import is_running
from tests.waiting import eventually

READY = """
import os, signal, socket, sys, time
def report(state):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state, os.environ["NOTIFY_SOCKET"])
def say(text):
    print(text, flush=True)
say(os.getpid())
report(b"READY=1")
"""
# Each child handles SIGTERM and has printed before it is ready, because the supervisor may end it at once after that,
# and a handler cannot print amid another print.
PATIENT = (
    "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(say('bye')))\n"
    + READY
    + "while True: time.sleep(60)"
)
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + "while True: time.sleep(60)"


class Running:
    """A supervisor in a thread, with its children's output."""

    def __init__(self, scripts: Mapping[str, str]) -> None:
        commands = {name: [sys.executable, "-c", script] for name, script in scripts.items()}
        self.lines: list[tuple[str, str]] = []
        self.supervisor = Supervisor(commands, {}, lambda name, line: self.lines.append((name, line.decode())))
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self.supervisor.run, args=(self.stop,))
        self._thread.start()

    def of(self, name: str) -> list[str]:
        return [line for child, line in self.lines if child == name]

    def end(self) -> int:
        """Wait for its end, and return the exit code."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.supervisor.exit_code


@pytest.fixture
def start(monkeypatch):
    monkeypatch.setattr(up, "_FIRST_PAUSE_SECONDS", 0.05)
    started: list[Running] = []

    def start(**scripts: str) -> Running:
        started.append(Running(scripts))
        return started[-1]

    yield start
    for running in started:
        running.stop.set()
        running.end()


def test_all_is_ready_when_each_child_is_and_they_end_in_their_order(start):
    running = start(first=PATIENT, second=PATIENT)
    eventually(lambda: running.supervisor.is_ready)
    running.stop.set()
    assert running.end() == 0
    assert [name for name, line in running.lines if line == "bye"] == ["first", "second"]


def test_what_ends_starts_again_after_pauses_that_grow(start, caplog):
    running = start(brief=READY + "sys.exit(7)")
    eventually(lambda: len(running.of("brief")) >= 4)
    running.stop.set()
    running.end()
    assert "brief ended with exit code 7, and starts again in 0 s" in caplog.text
    pauses = [up._FIRST_PAUSE_SECONDS * 2**count for count in range(8)]
    child = running.supervisor._children[0]
    assert child._pause_seconds in pauses[3:]


@pytest.mark.parametrize(("code", "script"), [(2, READY), (3, "import sys\n")])
def test_what_no_new_start_mends_ends_all_with_its_exit_code(start, code, script, caplog):
    running = start(patient=PATIENT, wrong=script + f"sys.exit({code})")
    assert running.end() == code
    assert f"wrong ended with exit code {code}, which a restart cannot mend, so everything stops" in caplog.text


def test_what_was_ready_once_starts_again_where_something_is_unavailable(start):
    running = start(lost=READY + "sys.exit(3)")
    eventually(lambda: len(running.of("lost")) >= 3)


def test_a_child_that_reports_no_more_starts_again_and_a_pause_of_all_is_no_silence(start, monkeypatch, caplog):
    monkeypatch.setattr(up, "_SILENT_SECONDS", 0.5)
    monkeypatch.setattr(up, "_LONGEST_LOOK_SECONDS", 0.3)
    take = up.Supervisor._take
    monkeypatch.setattr(up.Supervisor, "_take", lambda *given: (take(*given), time.sleep(0.6)))  # a pause
    running = start(silent=PATIENT, speaking=READY + "while True: time.sleep(0.1); report(b'WATCHDOG=1')")
    eventually(lambda: len(running.of("silent")) >= 3)
    assert "silent has not reported for 0.5 s, so it is killed and starts again" in caplog.text
    assert len(running.of("speaking")) == 1


def test_a_child_that_does_not_end_is_killed_with_what_it_started(start, monkeypatch, caplog):
    monkeypatch.setattr(up, "_END_SECONDS", 0.5)
    parent = "import subprocess\n" + DEAF.replace("while", "say(subprocess.Popen(['sleep', '600']).pid)\nwhile")
    running = start(deaf=parent)
    eventually(lambda: len(running.of("deaf")) == 2)
    running.stop.set()
    assert running.end() == 1
    assert "deaf did not end within 0.5 s, so it is killed" in caplog.text
    assert "deaf was ended by SIGKILL when it was stopped" in caplog.text
    # The kernel ends the members of a group one after the other, and the supervisor waits for the first only.
    eventually(lambda: not [pid for pid in running.of("deaf") if is_running(int(pid))])


def test_a_line_without_an_end_and_one_without_a_limit_are_passed_on(start):
    running = start(
        wordy=READY + "say('x' * 200_000); sys.stdout.write('last'); sys.stdout.flush(); os.kill(os.getpid(), 9)"
    )
    eventually(lambda: "last" in running.of("wordy"))
    _, *parts = running.of("wordy")[: running.of("wordy").index("last")]
    assert "".join(parts) == "x" * 200_000


def test_a_child_ends_with_the_thread_that_started_it(start):
    running = start(patient=PATIENT)
    eventually(lambda: running.supervisor.is_ready)
    child = running.supervisor._children[0].process
    pid = child.pid
    child._signal(signal.SIGSTOP)
    running.stop.set()
    assert running.end() == 0
    assert pid is not None
    assert not is_running(pid)


STARTING = "import signal, time\nprint('starts', flush=True)\ntime.sleep(60)"  # without a handler of the signal yet
UNDONE = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n" + READY + "time.sleep(60)"


@pytest.mark.parametrize("script", [STARTING, UNDONE])
def test_a_child_that_is_stopped_while_it_starts_ended_as_asked(start, script):
    running = start(starting=script)
    eventually(lambda: running.of("starting"))
    running.stop.set()
    assert running.end() == 0


def test_a_directory_for_temporary_files_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    for directory, says in ((long, "shorter name"), (Path("/proc"), "no temporary directory can be made in /proc")):
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        supervisor = Supervisor({"child": ["true"]}, {}, lambda _name, _line: None)
        with pytest.raises(NoScratchError, match=says) as refused:
            supervisor.run(threading.Event())
        assert "Set TMPDIR" in str(refused.value)
