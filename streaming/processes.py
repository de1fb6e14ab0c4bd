"""The job's processes with their children, and the end of those that hang.

This module reads /proc, which needs no answer of a hanging process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Return the processes below this one, parents first. Processes may end meanwhile."""
    found: list[int] = []
    with suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    found += [int(child), *descendants(int(child))]
    return found


def kill(pids: Iterable[int]) -> None:
    """Kill these processes. Those that have ended are passed over."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
