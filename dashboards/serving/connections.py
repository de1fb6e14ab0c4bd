"""Limits on open connections to a server of pages, and on the time that a connection may wait.

uvicorn limits neither silent connections nor the time in which a request must arrive.
"""

from __future__ import annotations

import errno
import logging
import resource
import socket
import weakref
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector
from uvicorn.protocols.http.h11_impl import H11Protocol

from dashboards.catalogue import pipeline_metrics
from dashboards.catalogue.families import family
from transport.printable import Complaints

# Prometheus, probes and people need some ten connections, and a process can have more open files than this.
MOST_CONNECTIONS = 256
# A scraper's request is one packet, and ten seconds cover three retransmissions of a lost packet.
REQUEST_SECONDS = 10.0
# A page takes seconds on a slow line, and a what-if with 200,000 partitions as long to compute.
ANSWER_SECONDS = 60.0

_logger = logging.getLogger("kontrast.dashboards")


class Drop(Enum):
    """Reason for the end of a connection."""

    LIMIT = "limit"  # the connection was the oldest of too many
    TIMEOUT = "timeout"  # no request came, or the client did not take the answer


@dataclass(slots=True)
class HttpFigures:
    """Counts of a server of pages. One thread writes, any reads."""

    wrong_logins: int = 0
    dropped: Counter[Drop] = field(default_factory=lambda: Counter(dict.fromkeys(Drop, 0)))


class HttpCollector(Collector):
    """Collector that answers each scrape from the present counts."""

    def __init__(self, figures: HttpFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """Yield both families."""
        yield family(pipeline_metrics.HTTP_WRONG_LOGINS, [((), self._figures.wrong_logins)])
        yield family(
            pipeline_metrics.HTTP_DROPPED, [((why.value,), count) for why, count in self._figures.dropped.items()]
        )


class BoundedListener(socket.socket):
    """Listening socket that limits open connections. Above the limit, a new connection ends the oldest.

    If the socket rejected new connections instead, one client with silent connections could lock out all others.
    """

    def __init__(self, family: int, kind: int, protocol: int, figures: HttpFigures) -> None:
        super().__init__(family, kind, protocol)
        self._figures = figures
        self._open: deque[weakref.ref[socket.socket]] = deque()
        self._complaints = Complaints()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files // 2)

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection."""
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._drop_oldest():
                raise BlockingIOError from error  # asyncio asks again once the ended connection is closed
            raise
        self._open = deque(ref for ref in self._open if (known := ref()) is not None and known.fileno() >= 0)
        if len(self._open) >= self.most:
            self._drop_oldest()
        self._open.append(weakref.ref(connection))
        return connection, address

    def _drop_oldest(self) -> bool:
        while self._open:
            oldest = self._open.popleft()()
            if oldest is not None and oldest.fileno() >= 0:
                self._figures.dropped[Drop.LIMIT] += 1
                if count := self._complaints.due():
                    _logger.warning("more than %d connections, ended the oldest (%d)", self.most, count)
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
                return True
        return False


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with limits: a request must arrive, and the client must take its answer, in time."""

    def __init__(  # the rest is uvicorn's own
        self,
        figures: HttpFigures,
        *arguments: Any,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **options)
        self._figures = figures

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401
        """Begin to check the connection at intervals."""
        super().connection_made(transport)
        self.loop.call_later(REQUEST_SECONDS, self._look, None, REQUEST_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid bytes with the headers of all other answers, which uvicorn's own refusal lacks."""
        if self.cycle is None or self.cycle.response_complete:
            text = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            headers = [b": ".join(header) for header in (*self.server_state.default_headers, *text)]
            self.transport.write(b"\r\n".join([b"HTTP/1.1 400 Bad Request", *headers, b"", msg.encode()]))
        self.transport.close()

    def _look(self, earlier: object, for_seconds: float) -> None:
        """End the connection if it has waited too long for a request, or for the client to take an answer."""
        # uvicorn counts an answer as complete once it is buffered, and its own close waits for the client without end.
        try:
            is_untaken = self.transport.get_write_buffer_size() > 0
        except AttributeError:  # asyncio's TLS forgets a connection that is closed twice, and ends it by itself
            return
        if self.transport.is_closing() and not is_untaken:
            return
        now = self.cycle  # the newest request
        if now is not earlier:
            for_seconds = 0.0
        awaits_a_request = not is_untaken and (now is None or now.response_complete)
        if for_seconds >= (REQUEST_SECONDS if awaits_a_request else ANSWER_SECONDS):
            self._figures.dropped[Drop.TIMEOUT] += 1
            self.transport.abort()
            return
        self.loop.call_later(REQUEST_SECONDS, self._look, now, for_seconds + REQUEST_SECONDS)
