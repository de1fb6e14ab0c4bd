"""Threads of a command's parts, until they end or a signal stops them, and the exit code."""

from __future__ import annotations

import ctypes
import logging
import math
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import FrameType, MappingProxyType
from typing import Final, NamedTuple, NoReturn, TypeAlias

from cli.printing import standard_error
from dashboards.errors import ServeError
from ingest.errors import IngestError, StoppedError
from streaming.errors import StalledError, StreamError
from streaming.processes import descendants, kill
from streaming.python_memory import return_free_memory
from streaming.scratch import NoScratchError

READY: Final = "READY=1"
ALIVE: Final = "WATCHDOG=1"
STOPPING: Final = "STOPPING=1"

SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE: Final = "WATCHDOG_USEC"

# A service reports several times within the manager's time, and counts as alive for half that time.
_REPORTS: Final = 4
_ALIVE_SHARE: Final = 0.5

# Read as "the part KEY works when its value is true".
Readiness = Mapping[str, Callable[[], bool]]


class StopRequest(threading.Event):
    """Request that a part stops. It records when the part last looked, because a part that hangs does not look."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at = time.monotonic()

    def is_set(self) -> bool:
        """Return whether the stop was requested, and record the look."""
        self.looked_at = max(self.looked_at, time.monotonic())
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the stop as for any event. A part that waits counts as alive."""
        self.looked_at = float("inf") if timeout is None else max(self.looked_at, time.monotonic() + timeout)
        return super().wait(timeout)


class Service:
    """Parts of a process, and the reports to the process's manager.

    The process is ready once each part with an entry in `ready` works, and alive while each part looks whether to stop.
    Without entries the process is no service, so it sends no reports.
    """

    def __init__(self, ready: Readiness, stops: Mapping[str, StopRequest]) -> None:
        self._ready = ready
        self._stops = stops
        self._is_ready = self._is_stopping = False
        limit_usec = os.environ.get(WATCHDOG_VARIABLE, "")
        self._limit_seconds = int(limit_usec) / 1e6 if ready and limit_usec.isdecimal() else 0.0
        self._next_report = 0.0

    def look(self, ended: Collection[str]) -> None:
        """Report the state if it is due. Ended parts do not count while others work."""
        at_work = self._stops.keys() - ended
        asked = at_work & self._ready.keys()
        if not self._is_ready and asked and all(self._ready[name]() for name in asked):
            self._is_ready = True
            notify(READY)
        now = time.monotonic()
        alive_since = now - self._limit_seconds * _ALIVE_SHARE
        is_alive = self._is_stopping or all(self._stops[name].looked_at > alive_since for name in at_work)
        if self._limit_seconds and now >= self._next_report and is_alive:
            self._next_report = now + self._limit_seconds / _REPORTS
            notify(ALIVE)

    def stop(self) -> None:
        """Ask every part to stop."""
        if self._ready and not self._is_stopping:
            notify(STOPPING)
        self._is_stopping = True
        for stop in self._stops.values():
            stop.set()


def notify(state: str) -> None:
    """Send one state to the manager, if there is one."""
    address = os.environ.get(SOCKET_VARIABLE, "")
    if not address:
        return
    if address.startswith("@"):  # an abstract address without a file
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), socket.MSG_DONTWAIT, address)


Part = Callable[[threading.Event], int | None]  # runs until its end or the event, and returns an exit code, None for OK

_LOG = logging.getLogger("kontrast.cli.running")

# A signal just before the main thread sleeps does not wake the thread. Python runs the handler at the next wake-up, so
# the thread must wake up at intervals.
_WAKE_EVERY_SECONDS = 0.2

# glibc opens another heap for a thread if all heaps are in use, and each heap keeps freed memory. A watcher starts
# threads with each session, so within half an hour of a soak test, free memory in its heaps grew from 4 to 14 MB.
_MOST_HEAPS = 2
_M_ARENA_MAX = -8  # malloc.h


class ExitCode(IntEnum):
    """The exit codes of the command."""

    OK = 0
    FAILED = 1  # a defect in Kontrast, or a finding of a command that looks for some
    USAGE = 2
    UNAVAILABLE = 3
    STALLED = 4  # the job hung and was ended, and a supervisor starts it again


class _Stop(int):
    """The number of a signal to stop."""


class _Ended(NamedTuple):
    """A part's end. Without a code, the part was stopped before it had done its work."""

    name: str
    code: int | None


_Happened: TypeAlias = "queue.SimpleQueue[_Ended | _Stop]"


def run_until_stopped(
    parts: Mapping[str, Part],
    beside: Mapping[str, Part] = MappingProxyType({}),
    *,
    ready: Readiness = MappingProxyType({}),
    finish_within_seconds: float = math.inf,
) -> int:
    """Run all parts. A failed part is reported, and the other parts go on. The parts in `beside` end with them.

    `ready` makes the process a service. It has a question for each part that must work before the manager hears that
    the service is ready. The first SIGINT or SIGTERM asks every part to finish. The second, or a timeout, ends this
    process and its children. Call this from the main thread, so that no library of a part takes the signals over.
    """
    # A signal handler may put, but not set an Event, because the interrupted thread can hold the event's lock.
    happened: _Happened = queue.SimpleQueue()
    codes: dict[str, int | None] = {}
    stopped_by, end_at = 0, math.inf
    stops = {name: StopRequest() for name in {**parts, **beside}}
    service = Service(ready, stops)
    with _signals_put_into(happened):
        _start({**parts, **beside}, stops, happened)
        while len(codes) < len(stops):
            if time.monotonic() >= end_at:
                standard_error.complain(f"not finished after {finish_within_seconds:g} s, ended at once")
                _end_at_once(stopped_by)
            service.look(codes.keys())
            try:
                event = happened.get(timeout=_WAKE_EVERY_SECONDS)
            except queue.Empty:
                return_free_memory(collect=True)  # each rendered page leaves its data in a circle of macros
                continue
            if isinstance(event, _Stop):
                standard_error.say(f"stopping on {signal.Signals(event).name}, a second one ends at once")
                stopped_by, end_at = event, time.monotonic() + finish_within_seconds
                service.stop()
            else:
                codes[event.name] = event.code
                if codes.keys() >= parts.keys():
                    service.stop()
    return _worst(codes.values()) or (_code_of(stopped_by) if None in codes.values() else ExitCode.OK)


def _worst(codes: Collection[int | None]) -> int:
    other = max(filter(None, codes), default=ExitCode.OK)
    return next((code for code in (ExitCode.FAILED, ExitCode.STALLED, ExitCode.UNAVAILABLE) if code in codes), other)


def _start(parts: Mapping[str, Part], stops: Mapping[str, StopRequest], happened: _Happened) -> None:
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc
        library.mallopt(_M_ARENA_MAX, _MOST_HEAPS)
    for name, part in parts.items():
        label = f"{name}: " if len(parts) > 1 else ""
        threading.Thread(target=_run, args=(name, label, part, stops[name], happened), name=name, daemon=True).start()


def _run(name: str, label: str, part: Part, stop: threading.Event, happened: _Happened) -> None:
    code: int | None = ExitCode.FAILED
    try:
        code = part(stop) or ExitCode.OK
    except StoppedError:
        code = None
    except (IngestError, StreamError, ServeError, NoScratchError) as error:
        standard_error.complain(f"{label}{error}")
        code = ExitCode.STALLED if isinstance(error, StalledError) else ExitCode.UNAVAILABLE
    except Exception as error:
        _LOG.exception("a part of Kontrast failed")
        standard_error.complain(
            f"{label}failed unexpectedly, please report it with the log: {type(error).__name__}: {error}"
        )
    finally:
        happened.put(_Ended(name, code))


def _code_of(signal_number: int) -> int:
    return 128 + signal_number


def _end_at_once(signal_number: int) -> NoReturn:
    # A process that is stopped, or hangs, would not notice that its parent is gone.
    kill(descendants(os.getpid()))
    os._exit(_code_of(signal_number))


@contextmanager
def _signals_put_into(happened: _Happened) -> Iterator[None]:
    asked: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if asked:
            _end_at_once(number)
        asked.append(number)
        happened.put(_Stop(number))

    with signals_to(on_signal):
        yield


@contextmanager
def signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Give SIGINT and SIGTERM to this handler, even in a shell's background job, which would ignore SIGINT."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
