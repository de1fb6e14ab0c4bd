"""Processes of this machine, with their parents, programs and command lines."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Return the processes below this one, parents first. It is here because benchmarks run older checkouts."""
    parents = {int(process.name): _parent(process) for process in _PROC.glob("[0-9]*")}
    found, below = [], [pid]
    while below := [child for child, parent in parents.items() if parent in below]:
        found += below
    return found


def _parent(process: Path) -> int:
    with suppress(OSError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def is_running(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def program_of(pid: int) -> str:
    """Return the name of the process's program, empty after its end."""
    with suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text().strip()
    return ""


def command_line_of(pid: int) -> str:
    """Return the process's command line, empty after its end."""
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def proportional_bytes(pid: int) -> int:
    """Return the process's memory with its share of shared pages, 0 after its end."""
    with suppress(OSError):
        words = (_PROC / str(pid) / "smaps_rollup").read_text().split()
        return int(words[words.index("Pss:") + 1]) * 1024
    return 0


def holders_of(directory: Path) -> list[int]:
    """Return the processes that have an open file below this directory."""
    return [int(process.name) for process in _PROC.glob("[0-9]*") if _holds(process, directory)]


def _holds(process: Path, directory: Path) -> bool:
    with suppress(OSError):
        return any(str(file.readlink()).startswith(str(directory)) for file in (process / "fd").iterdir())
    return False
