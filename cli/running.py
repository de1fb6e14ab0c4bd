"""Run the parts that a command wires, each in a thread, until they end or a signal asks them to.

Here belong signals, isolation of the parts from each other, and exit codes. What a part does is its own business.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType

from cli import output
from dashboards.errors import ServeError
from ingest.errors import IngestError
from streaming.errors import StreamError

Part = Callable[[threading.Event], None]

_LOG = logging.getLogger("kontrast.cli.running")

# A signal that comes just before the main thread goes to sleep does not wake it: Python runs its handler at the next
# wake-up, so there has to be one.
_WAKE_EVERY_SECONDS = 0.2


class ExitCode(IntEnum):
    """What the command's end says."""

    OK = 0
    FAILED = 1  # a defect in Kontrast, or a finding of a command that looks for some
    USAGE = 2
    UNAVAILABLE = 3


class _Stop(int):
    """The number of a signal that asked for the end."""


def run_until_stopped(parts: Mapping[str, Part]) -> ExitCode:
    """Run all parts; one that fails is reported and leaves the others running.

    The first SIGINT or SIGTERM asks every part to finish, the second ends the process at once. To be called from the
    main thread, which only waits: the parts' own libraries cannot take the signals over from there.
    """
    stop = threading.Event()
    # A signal handler may call SimpleQueue.put, but not Event.set: the thread it interrupts can hold the event's lock.
    happened: queue.SimpleQueue[ExitCode | _Stop] = queue.SimpleQueue()
    ended: list[ExitCode] = []
    with _signals_put_into(happened):
        for name, part in parts.items():
            label = f"{name}: " if len(parts) > 1 else ""
            threading.Thread(target=_run, args=(label, part, stop, happened), name=name, daemon=True).start()
        while len(ended) < len(parts):
            try:
                event = happened.get(timeout=_WAKE_EVERY_SECONDS)
            except queue.Empty:
                continue
            if isinstance(event, _Stop):
                output.say(f"stopping on {signal.Signals(event).name}; a second one ends at once")
                stop.set()
            else:
                ended.append(event)
    return next((code for code in (ExitCode.FAILED, ExitCode.UNAVAILABLE) if code in ended), ExitCode.OK)


def _run(label: str, part: Part, stop: threading.Event, happened: queue.SimpleQueue[ExitCode | _Stop]) -> None:
    code = ExitCode.FAILED
    try:
        part(stop)
        code = ExitCode.OK
    except (IngestError, StreamError, ServeError) as error:
        output.complain(f"{label}{error}")
        code = ExitCode.UNAVAILABLE
    except Exception as error:
        _LOG.exception("a part of Kontrast failed")
        output.complain(f"{label}failed unexpectedly, please report it with the log: {type(error).__name__}: {error}")
    finally:
        happened.put(code)


@contextmanager
def _signals_put_into(happened: queue.SimpleQueue[ExitCode | _Stop]) -> Iterator[None]:
    asked: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        happened.put(_Stop(number))

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
