"""The job's processes by role, with the resources that each role uses, and the end of hanging processes.

This module reads /proc, which needs no answer of a hanging process.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from controller.contract.job_row import ProcessUse

DRIVER, JAVA, WORKER = "driver", "java", "worker"

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/PID/stat behind the program's name.
_THREADS, _RESIDENT_PAGES = 17, 21


class _Use(NamedTuple):
    open_files: int
    open_files_limit: int
    threads: int
    resident_bytes: int


def descendants(pid: int) -> list[int]:
    """Return the processes below this one, parents first. Processes may end meanwhile."""
    found: list[int] = []
    with suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    found += [int(child), *descendants(int(child))]
    return found


def job_processes(java: int) -> dict[str, list[int]]:
    """Return the processes by role: this process, Spark's Java process and its Python workers.

    Under spark-submit this process is below Java too.
    """
    return {DRIVER: [os.getpid()], JAVA: [java], WORKER: [pid for pid in descendants(java) if pid != os.getpid()]}


def uses_of(java: int) -> dict[str, ProcessUse]:
    """Return the present use of each role that has a process."""
    uses = {role: [use for pid in pids if (use := _use_of(pid))] for role, pids in job_processes(java).items()}
    return {role: _together(of_role) for role, of_role in uses.items() if of_role}


def kill(pids: Iterable[int]) -> None:
    """Kill these processes. Ignore processes that have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _use_of(pid: int) -> _Use | None:
    directory = _PROC / str(pid)
    try:
        open_files = len(os.listdir(directory / "fd"))
        limit, _ = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        fields = (directory / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return _Use(open_files, max(0, limit), int(fields[_THREADS]), int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES)


def _together(uses: list[_Use]) -> ProcessUse:
    fullest = max(uses, key=lambda use: use.open_files / max(1, use.open_files_limit))
    return ProcessUse(
        processes=len(uses),
        open_files=fullest.open_files,
        open_files_limit=fullest.open_files_limit,
        threads=sum(use.threads for use in uses),
        resident_bytes=sum(use.resident_bytes for use in uses),
    )


_LIBC = ctypes.CDLL(None)  # loaded here, because a child between fork and exec must not load anything
_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Let the kernel kill this process when the thread that forked it ends, in the process `parent`.

    Call it between fork and exec.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died between fork and prctl
        os._exit(1)
