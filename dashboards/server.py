"""The exporter: answers Prometheus and health checks over HTTP.

Here belong the pages and how they are served. What is on `/metrics` is the collector's business.
"""

from __future__ import annotations

import gzip
import html
import logging
import socket
import threading
from collections.abc import Callable

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from dashboards.collector import ViewCollector
from dashboards.config import ServeConfig
from dashboards.errors import ServeError
from dashboards.follower import Follower, Source
from dashboards.journal_source import JournalSource
from dashboards.kafka_source import KafkaSource
from dashboards.reading import Reading
from dashboards.view import View
from transport.address import Address, JournalAddress

_LOOK_SECONDS = 0.2
_GRACEFUL_SECONDS = 3

_logger = logging.getLogger("kontrast.dashboards")


def run(config: ServeConfig, stop: threading.Event, started: Callable[[str], None] | None = None) -> None:
    """Serve until `stop` is set; `started` is told the address, once it answers.

    Raises ServeError with a sentence: the port is in use, the source cannot be read.
    """
    view, reading = View(), Reading()
    with _listening_socket(config) as listening:
        follower = Follower(_source(config.source), view, reading, config.connect_timeout_seconds)
        registry = CollectorRegistry()
        registry.register(ViewCollector(view, reading, config.partition_detail_limit))
        app = build_app(registry, reading, follower, config.source)
        with follower, _Server(app, listening) as server:
            _logger.info("serving %s at %s", config.source, server.address)
            if started is not None:
                started(server.address)
            while not stop.wait(_LOOK_SECONDS):
                if follower.failure is not None:
                    raise follower.failure
                if not server.alive:
                    raise ServeError(f"the HTTP server at {server.address} ended by itself; the log has the details")


def build_app(registry: CollectorRegistry, reading: Reading, follower: Follower, source: Address) -> Starlette:
    """The pages."""

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = encode(registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if gzip_accepted(request.headers.get("accept-encoding", "")):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        return Response(body, headers=headers)

    def healthz(_: Request) -> Response:
        if follower.alive:
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the outputs are no longer read\n", status_code=503)

    def readyz(_: Request) -> Response:
        state = reading.snapshot()
        if not state.source_up:
            return PlainTextResponse(f"{source} cannot be read\n", status_code=503)
        if not state.caught_up:
            return PlainTextResponse(f"still reading what {source} holds\n", status_code=503)
        return PlainTextResponse("ready\n")

    def index(_: Request) -> Response:
        return HTMLResponse(_INDEX.format(source=html.escape(str(source))))

    return Starlette(
        routes=[
            Route("/", index),
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )


_INDEX = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Kontrast</title></head>
<body>
<h1>Kontrast</h1>
<p>A second Kafka controller that never writes. This exporter reads <code>{source}</code>.</p>
<ul>
<li><a href="/metrics">/metrics</a>: for Prometheus</li>
<li><a href="/readyz">/readyz</a>: whether all that was there has been read</li>
<li><a href="/healthz">/healthz</a>: whether the exporter is at work</li>
</ul>
</body>
</html>
"""


def _source(address: Address) -> Source:
    if isinstance(address, JournalAddress):
        return JournalSource(address.directory)
    return KafkaSource(address)


def _listening_socket(config: ServeConfig) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ServeError(f"cannot listen on {config.listen}: {error.strerror}") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise ServeError(f"cannot listen on {config.listen}: {error.strerror}; free it or choose another") from error
    return listening


class _Server:
    """uvicorn in a thread of its own, so that signals stay with whoever called `run`."""

    def __init__(self, app: Starlette, listening: socket.socket) -> None:
        host, port = listening.getsockname()[:2]
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
        self._thread = threading.Thread(target=self._server.run, args=([listening],), name="http", daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> _Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
