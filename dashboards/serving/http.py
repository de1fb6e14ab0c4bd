"""HTTP server of pages in a thread."""

from __future__ import annotations

import socket
import threading
from functools import partial

import uvicorn
from starlette.applications import Starlette

from dashboards.errors import ServeError
from dashboards.serving.access import BasicAuthentication, Certificate
from dashboards.serving.connections import BoundedListener, BoundedProtocol, HttpFigures
from dashboards.serving.hosts import KnownHosts
from transport.listening import Listening

_GRACEFUL_SECONDS = 3
_BACKLOG = 128  # connections that asyncio accepts at once, before the server can end any

# Headers of every answer, so that no other site can use it as a script, frame or image.
_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class HttpServer:
    """uvicorn in a thread, so that the caller handles signals. Raise ServeError at once."""

    def __init__(self, app: Starlette, listening: Listening, figures: HttpFigures) -> None:
        self._certificate = None if listening.tls_certificate_file is None else Certificate(listening)
        self._login = None if listening.username is None else BasicAuthentication(app, listening, figures)
        self._socket = _listening_socket(listening, figures)
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self._certificate is None else "https"
        self.address = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        config = uvicorn.Config(
            KnownHosts(self._login or app, listening),
            http=partial(BoundedProtocol, figures),  # type: ignore[arg-type]  # a factory
            ws="none",
            backlog=_BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            headers=list(_HEADERS),
            timeout_graceful_shutdown=_GRACEFUL_SECONDS,
        )
        config.load()
        config.ssl = None if self._certificate is None else self._certificate.context
        self._server = uvicorn.Server(config)
        # A daemon, so that a request without end cannot keep the process.
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)

    def close(self) -> None:
        """Close the port of a server that was never started."""
        self._socket.close()

    def check(self) -> None:
        """Raise ServeError if the server has ended. Call this at intervals, also for renewed files."""
        if not self._thread.is_alive():
            raise ServeError(f"the HTTP server at {self.address} ended by itself (details in the log)")
        if self._certificate is not None:
            self._certificate.renew()
        if self._login is not None:
            self._login.renew()

    def __enter__(self) -> HttpServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _listening_socket(listening: Listening, figures: HttpFigures) -> socket.socket:
    listen = listening.listen
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM
        )[0]
    except (OSError, OverflowError) as error:
        raise ServeError(f"cannot listen on {listen}: {getattr(error, 'strerror', None) or error}") from error
    listening_socket = BoundedListener(family, kind, protocol, figures)
    try:
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening_socket.bind(address)
        listening_socket.listen()
    except (OSError, OverflowError) as error:
        listening_socket.close()
        reason = getattr(error, "strerror", None) or error
        raise ServeError(f"cannot listen on {listen}: {reason}. Free it or choose another") from error
    return listening_socket
