"""Report to the manager of a service, systemd or `kontrast up`, that the service is ready, alive or stopping.

The protocol is sd_notify(3), a datagram to the socket that `NOTIFY_SOCKET` names. Without that variable, `notify` does
not send.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

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
        if self._limit_seconds and now >= self._next_report and (self._is_stopping or self._is_alive(at_work, now)):
            self._next_report = now + self._limit_seconds / _REPORTS
            notify(ALIVE)

    def stop(self) -> None:
        """Ask every part to stop."""
        if self._ready and not self._is_stopping:
            notify(STOPPING)
        self._is_stopping = True
        for stop in self._stops.values():
            stop.set()

    def _is_alive(self, at_work: Collection[str], now: float) -> bool:
        allowed_seconds = self._limit_seconds * _ALIVE_SHARE
        return all(now - self._stops[name].looked_at < allowed_seconds for name in at_work)


def notify(state: str) -> None:
    """Send one state to the manager, if there is one."""
    address = os.environ.get(SOCKET_VARIABLE, "")
    if not address:
        return
    if address.startswith("@"):  # an abstract address without a file
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), socket.MSG_DONTWAIT, address)
