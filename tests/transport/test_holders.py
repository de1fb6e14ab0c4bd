"""Living processes that hold a lock, named although the process that took it is gone."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from streaming.checkpoint.directory import Checkpoint
from streaming.errors import StreamError
from tests.waiting import eventually
from transport.journal import JournalWriter
from transport.segments import JournalLockedError


@pytest.fixture
def heir(tmp_path):
    """Leave a stopped process with an open, locked file, of which the first holder is gone."""

    def leave(path) -> subprocess.Popen[bytes]:
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(opened, fcntl.LOCK_EX)
        os.pwrite(opened, b"999999\n", 0)
        left.append(subprocess.Popen(["sleep", "600"], pass_fds=(opened,)))
        os.close(opened)
        left[0].send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{left[0].pid}/stat")
        eventually(lambda: status.read_text().split()[2] == "T")
        return left[0]

    left: list[subprocess.Popen[bytes]] = []
    yield leave
    for process in left:
        process.kill()
        process.wait()


def test_the_living_holder_of_a_checkpoint_is_named_and_not_the_dead_one(tmp_path, heir):
    Checkpoint(tmp_path / "checkpoint").close()
    process = heir(tmp_path / "checkpoint" / "kontrast.lock")
    named = rf"is in use by process {process.pid} \(sleep\), which is stopped\. End that one first"
    with pytest.raises(StreamError, match=named):
        Checkpoint(tmp_path / "checkpoint", lock_wait_seconds=0)


def test_the_living_holder_of_a_journal_is_named(tmp_path, heir):
    JournalWriter(tmp_path / "journal").close()
    process = heir(tmp_path / "journal" / "journal.lock")
    with pytest.raises(JournalLockedError, match=rf"by process {process.pid} \(sleep\), which is stopped"):
        JournalWriter(tmp_path / "journal")
