"""End of a child process with the process that started it, even if one of the two is stopped or killed."""

from __future__ import annotations

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None)  # loaded here, because a child between fork and exec must not load anything
_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Let the kernel kill this process when the thread that forked it ends, in the process `parent`.

    Call it between fork and exec.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died between fork and prctl
        os._exit(1)
