"""Serving pages over HTTP from a thread, and the page that Prometheus reads.

Here belongs how pages are served. Which pages there are is up to who starts a server.
"""

from __future__ import annotations

import gzip
import socket
import threading

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dashboards.errors import ServeError

_GRACEFUL_SECONDS = 3


def metrics_route(registry: CollectorRegistry) -> Route:
    """`/metrics`, in the format and compression that the scraper asks for."""

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = encode(registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if gzip_accepted(request.headers.get("accept-encoding", "")):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        return Response(body, headers=headers)

    return Route("/metrics", metrics)


class HttpServer:
    """uvicorn in a thread of its own, so that signals stay with whoever started it; raises ServeError at once.

    `listen` is HOST:PORT or [IPV6]:PORT; port 0 takes any that is free.
    """

    def __init__(self, app: Starlette, listen: str) -> None:
        self._socket = _listening_socket(listen)
        host, port = self._socket.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=_GRACEFUL_SECONDS,
            )
        )
        # Daemon: a request that never ends must not keep the process.
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)

    def check(self) -> None:
        """Raise ServeError if it no longer serves."""
        if not self._thread.is_alive():
            raise ServeError(f"the HTTP server at {self.address} ended by itself; the log has the details")

    def __enter__(self) -> HttpServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _listening_socket(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    except (OSError, OverflowError) as error:
        raise ServeError(f"cannot listen on {listen}: {getattr(error, 'strerror', None) or error}") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise ServeError(f"cannot listen on {listen}: {reason}; free it or choose another") from error
    return listening
