"""Last lines of each process that ran during a failing test, shown with the failure.

The hooks of pytest belong here, and `conftest` passes them on. A process is known by its log, the file that it writes
into. Output into a pipe is the test's matter.
"""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_LINES = 25
_TAIL_BYTES = 16 * 1024
LOGS = pytest.StashKey[list[Path]]()  # logs of the servers that tests share
_processes: dict[Path, subprocess.Popen[Any]] = {}  # by log, the newest process that writes it
_start = subprocess.Popen.__init__


def _start_and_note(process: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
    _start(process, *arguments, **options)
    for written in (options.get("stdout"), options.get("stderr")):
        name = getattr(written, "name", None)
        if isinstance(name, str):
            _processes[Path(name)] = process


subprocess.Popen.__init__ = _start_and_note  # type: ignore[method-assign, assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget the processes of earlier tests that have ended."""
    for log in [log for log, process in _processes.items() if process.poll() is not None]:
        del _processes[log]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs' ends to the report of a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"the end of {log}", _tail(log)) for log in (*item.stash.get(LOGS, []), *_processes)]
    return report


def _tail(log: Path) -> str:
    if not log.is_file():
        return "(there is no such file any more)"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-_LINES:]) or "(it is empty)"
