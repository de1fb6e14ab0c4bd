"""The processes of this machine as tests look at them: who started whom, what runs, what it was started as."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from streaming.processes import descendants as descendants

_PROC = Path("/proc")


def is_running(pid: int) -> bool:
    """Whether the process is there and not a zombie."""
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def program_of(pid: int) -> str:
    """The name of the program that the process runs, empty when it has ended."""
    with suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text().strip()
    return ""


def command_line_of(pid: int) -> str:
    """What the process was started as, empty when it has ended."""
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def holders_of(directory: Path) -> list[int]:
    """The processes that have a file below this directory open."""
    return [int(process.name) for process in _PROC.glob("[0-9]*") if _holds(process, directory)]


def _holds(process: Path, directory: Path) -> bool:
    with suppress(OSError):
        return any(str(file.readlink()).startswith(str(directory)) for file in (process / "fd").iterdir())
    return False
