"""Clients that load the pages of `kontrast serve`, and the time that health and metrics take meanwhile."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

PROBED = ("/healthz", "/readyz", "/metrics")
_ANSWER_SECONDS = 240


def asking(address: str, path: str) -> socket.socket:
    """Open a connection that has asked for the page."""
    host, port = address.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.settimeout(_ANSWER_SECONDS)
    connection.connect((host, int(port)))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n".encode())
    return connection


def ask_and_leave(address: str, path: str, times: int) -> None:
    """Ask so often, each time over a connection that is closed at once."""
    for connection in [asking(address, path) for _ in range(times)]:
        connection.close()


@contextmanager
def at_once(address: str, path: str, clients: int) -> Iterator[tuple[Callable[[], bool], list[int]]]:
    """Let so many clients ask at once. Yield a function that is true until all have an answer, and the statuses."""
    statuses: list[int] = []

    def ask() -> None:
        statuses.append(status_of(address, path))

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    yield lambda: any(thread.is_alive() for thread in threads), statuses
    for thread in threads:
        thread.join()


def status_of(address: str, path: str) -> int:
    """Ask over a connection of its own and read the whole answer."""
    with closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=_ANSWER_SECONDS)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def slowest_seconds(address: str, busy: Callable[[], bool]) -> dict[str, float]:
    """Ask each probed page repeatedly while it is busy, and once more. Return the longest time of each."""
    slowest = dict.fromkeys(PROBED, 0.0)
    goes_on = True
    while goes_on:
        goes_on = busy()
        for path in PROBED:
            began = time.perf_counter()
            status_of(address, path)
            slowest[path] = max(slowest[path], time.perf_counter() - began)
    return slowest
