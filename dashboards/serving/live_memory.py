"""Live memory of this process: what it holds, without free memory between its objects."""

from __future__ import annotations

import ctypes
import sys
from typing import NamedTuple


class LiveMemory(NamedTuple):
    """What a process holds, without free memory between its objects."""

    small_objects: int  # of up to 512 bytes, which Python allocates itself
    heap_bytes: int | None  # of larger objects. Only glibc tells it


def live_memory() -> LiveMemory:
    """Return the live memory of this process."""
    return LiveMemory(sys.getallocatedblocks(), _heap_bytes())


class _MallocInfo(ctypes.Structure):
    """Result of `mallinfo2`, which glibc has from 2.33 on."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _heap_bytes() -> int | None:
    """Return the bytes in use in glibc's heaps, or None with another C library."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return None
    library.mallinfo2.restype = _MallocInfo
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)
