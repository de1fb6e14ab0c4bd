"""A job in a process of its own, which tests kill and start again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.processes import descendants
from tests.streaming.cluster_records import Streams
from tests.waiting import eventually

_ROOT = Path(__file__).parents[2]
_DEADLINE_SECONDS = 300


class Victim:
    """A job over `streams` that is killed and started again."""

    def __init__(self, streams: Streams, *options: str) -> None:
        self._streams = streams
        self._command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint)]
        self._command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
        self._command += ["--master", "local[2]", "--max-batch-bytes", "2048", *options]

    def start(self, *more: str) -> None:
        self._log = (self._streams.checkpoint.parent / "log").open("ab")
        self._process = subprocess.Popen([*self._command, *more], cwd=_ROOT, stderr=self._log)

    def kill(self) -> None:
        """Kill the driver and its Java process, the writer of the checkpoint first."""
        victims = [*reversed(descendants(self._process.pid)), self._process.pid]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def until(self, holds: Callable[[], bool], pause_seconds: float = 0.005) -> bool:
        """Return whether the condition became true before the job ended."""

        def seen() -> str:
            return "it holds" if holds() else "it ended" if self._process.poll() is not None else ""

        return eventually(seen, pause_seconds=pause_seconds) == "it holds"

    def finish(self, max_batch_bytes: int = 1 << 24) -> None:
        """Work off the rest, undisturbed."""
        self.start("--available-now", "--max-batch-bytes", str(max_batch_bytes))
        try:
            assert self._process.wait(_DEADLINE_SECONDS) == 0, (self._streams.checkpoint.parent / "log").read_text()
        finally:
            self.kill()
