"""Living processes that have a file open, as a sentence names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_STOPPED = ("T", "t")


def holders(opened: int) -> str:
    """Name the other processes that have this open file open, such as "process 7 (java), which is stopped".

    Return an empty text if none is visible. Another user's processes are not.
    """
    return " and ".join(_described(process) for process in sorted(_holding(os.fstat(opened))))


def _holding(file: os.stat_result) -> Iterator[int]:
    for process in _PROCESSES.glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with suppress(OSError):
            if any(_is(descriptor, file) for descriptor in (process / "fd").iterdir()):
                yield int(process.name)


def _is(descriptor: Path, file: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(descriptor.stat(), file)
    return False


def _described(process: int) -> str:
    try:
        # The name stands in brackets and may hold any character. The state follows.
        name, _, rest = (_PROCESSES / str(process) / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return f"process {process}"
    stopped = ", which is stopped" if rest.split()[0] in _STOPPED else ""
    return f"process {process} ({name}){stopped}"
