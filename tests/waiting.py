"""Waiting for what a test expects to come true, with one generous deadline and a failure that shows what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE_SECONDS = 240  # far beyond what anything takes where several Sparks share two cores; only failures wait for it
_PAUSE_SECONDS = 0.02

_Answer = TypeVar("_Answer")


def eventually(
    ask: Callable[[], _Answer],
    holds: Callable[[_Answer], object] = bool,
    *,
    meanwhile: Callable[[], object] = lambda: None,
    within_seconds: float = DEADLINE_SECONDS,
    pause_seconds: float = _PAUSE_SECONDS,
) -> _Answer:
    """The first answer that holds; fails with the last one after the deadline. `meanwhile` may fail earlier."""
    give_up_at = time.monotonic() + within_seconds
    while not holds(answer := ask()):
        meanwhile()
        assert time.monotonic() < give_up_at, f"not within {within_seconds:g} s, still {answer!r:.2000}"
        time.sleep(pause_seconds)
    return answer
