"""The exporter: answers Prometheus and health checks over HTTP.

Here belong the pages. What is on `/metrics` is the collector's business.
"""

from __future__ import annotations

import html
import logging
import threading
from collections.abc import Callable

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from dashboards.collector import ViewCollector
from dashboards.config import ServeConfig
from dashboards.follower import Follower
from dashboards.http import HttpServer, metrics_route
from dashboards.reading import FOLLOWED_OUTPUTS, Reading
from dashboards.view import View
from outputs import open_outputs
from transport.address import Address

_LOOK_SECONDS = 0.2

_logger = logging.getLogger("kontrast.dashboards")


def run(config: ServeConfig, stop: threading.Event, started: Callable[[str], None] | None = None) -> None:
    """Serve until `stop` is set; `started` is told the address, once it answers.

    Raises ServeError with a sentence: the port is in use, the source cannot be read.
    """
    view, reading = View(), Reading()
    follower = Follower(open_outputs(config.source, FOLLOWED_OUTPUTS), view, reading, config.connect_timeout_seconds)
    registry = CollectorRegistry()
    registry.register(ViewCollector(view, reading, config.partition_detail_limit))
    server = HttpServer(build_app(registry, reading, follower, config.source), config.listen)
    with server, follower:
        _logger.info("serving %s at %s", config.source, server.address)
        if started is not None:
            started(server.address)
        while not stop.wait(_LOOK_SECONDS):
            if follower.failure is not None:
                raise follower.failure
            server.check()


def build_app(registry: CollectorRegistry, reading: Reading, follower: Follower, source: Address) -> Starlette:
    """The pages."""

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
            metrics_route(registry),
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
