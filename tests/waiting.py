"""Waiting for expected conditions, with one generous deadline for progress and a failure that shows the last answer.

Meanwhile a thread can repeat something.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

DEADLINE_SECONDS = 240  # far beyond any duration with several Sparks on two cores. Only failures wait for it
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
    """Return the first answer that holds. `meanwhile` may fail earlier.

    Fail if the answer does not change within the time, or does not hold within twice the time, because an answer that
    contains an age always changes.
    """
    last: object = None
    give_up_at = time.monotonic() + within_seconds
    latest = give_up_at + within_seconds
    while not holds(answer := ask()):
        meanwhile()
        if answer != last:  # a loaded machine is slow, but it makes progress
            last, give_up_at = answer, min(time.monotonic() + within_seconds, latest)
        assert time.monotonic() < give_up_at, f"not within {within_seconds:g} s, still {answer!r:.2000}"
        time.sleep(pause_seconds)
    return answer


@contextmanager
def repeating(act: Callable[[], object], every_seconds: float) -> Iterator[Callable[[], None]]:
    """Act again and again in a thread, until the `with` ends or the yielded function is called."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_seconds):
            act()

    def end() -> None:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield end
    finally:
        end()
