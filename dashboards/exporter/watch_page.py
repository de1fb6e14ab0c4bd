"""Page of `kontrast watch` with the metrics and the readiness of its forwarders, on a separate port.

The forwarders count in plain data (`transport.forwarding`) and not in prometheus-client's counters, so ingest/ needs no
such library, and a collector reads all figures of a forwarder at one moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dashboards.catalogue import pipeline_metrics
from dashboards.catalogue.families import Sample, family, lag_family, value_of
from dashboards.catalogue.metric import Metric
from dashboards.catalogue.table import CATALOGUE
from dashboards.serving.connections import HttpCollector, HttpFigures
from dashboards.serving.http import HttpServer
from dashboards.serving.metrics import ProcessCollector, metrics_route
from transport.forwarding import Forwarding
from transport.listening import Listening

_LOOK_SECONDS = 0.2


# Read as "KEY has these samples for one cluster's forwarder".
_SAMPLES: Mapping[Metric, Callable[[Forwarding], Iterable[Sample]]] = MappingProxyType(
    {
        pipeline_metrics.WATCH_LEADS: value_of(lambda forwarding: forwarding.leads),
        pipeline_metrics.WATCH_GENERATION: value_of(lambda forwarding: forwarding.generation),
        pipeline_metrics.WATCH_CONNECTED: value_of(lambda forwarding: forwarding.is_connected),
        pipeline_metrics.WATCH_MODE: lambda forwarding: [((forwarding.watch_mode,), 1)],
        pipeline_metrics.WATCH_ZNODES: value_of(lambda forwarding: forwarding.znodes),
        pipeline_metrics.WATCH_FORBIDDEN: value_of(lambda forwarding: forwarding.forbidden_znodes),
        pipeline_metrics.WATCH_ZNODES_READ: value_of(lambda forwarding: forwarding.znodes_read),
        pipeline_metrics.WATCH_BYTES_READ: value_of(lambda forwarding: forwarding.bytes_read),
        pipeline_metrics.WATCH_BUDGET_WAIT: value_of(lambda forwarding: forwarding.budget_wait_seconds),
        pipeline_metrics.WATCH_JITTER_WAIT: value_of(lambda forwarding: forwarding.jitter_wait_seconds),
        pipeline_metrics.WATCH_EVENTS: value_of(lambda forwarding: forwarding.events),
        pipeline_metrics.WATCH_WINDOWS: value_of(lambda forwarding: forwarding.windows),
        pipeline_metrics.WATCH_EVENTS_DROPPED: value_of(lambda forwarding: forwarding.events_dropped),
        pipeline_metrics.WATCH_COMPLETE_READS: lambda forwarding: [
            ((reason.value,), count) for reason, count in forwarding.complete_reads.items()
        ],
        pipeline_metrics.WATCH_DIFFERENCES: value_of(lambda forwarding: forwarding.differences),
        pipeline_metrics.WATCH_SINK_UP: value_of(lambda forwarding: forwarding.sink_is_up),
        pipeline_metrics.WATCH_RECORDS: value_of(lambda forwarding: forwarding.records),
        pipeline_metrics.WATCH_HEARTBEAT: value_of(lambda forwarding: forwarding.heartbeat_ms / 1000 or None),
        pipeline_metrics.WATCH_MAINTENANCE: value_of(lambda forwarding: forwarding.maintenance_windows),
        pipeline_metrics.WATCH_BAD_MAINTENANCE: value_of(lambda forwarding: forwarding.bad_maintenance_files),
    }
)


class ForwardingCollector(Collector):
    """Collector that answers each scrape from the present figures of these forwarders."""

    def __init__(self, forwardings: Sequence[Forwarding]) -> None:
        self._forwardings = forwardings

    def collect(self) -> Iterator[Family]:
        """Yield every family of the catalogue that describes the watcher, in order."""
        for metric in CATALOGUE:
            if not metric.of_watch:
                continue
            if metric in _SAMPLES:
                read, every = _SAMPLES[metric], self._forwardings
                samples = (((each.cluster, *labels), value) for each in every for labels, value in read(each))
                yield family(metric, samples)
            else:
                yield lag_family(metric, {(forwarding.cluster,): forwarding.lag for forwarding in self._forwardings})


def open_page(listening: Listening, forwardings: Sequence[Forwarding]) -> HttpServer:
    """Return a server of /metrics and /readyz about these forwarders. Raise ServeError if its port is taken."""
    registry = CollectorRegistry()
    figures = HttpFigures()
    registry.register(ForwardingCollector(forwardings))
    registry.register(ProcessCollector())
    registry.register(HttpCollector(figures))

    def readyz(_: Request) -> PlainTextResponse:
        waiting = [forwarding.cluster for forwarding in forwardings if not forwarding.works]
        away = [forwarding.cluster for forwarding in forwardings if forwarding.is_away]
        text = f"not completely read yet: {', '.join(waiting)}\n" if waiting else "ready\n"
        if away:
            text += f"away, but tried again and again: {', '.join(away)}\n"
        return PlainTextResponse(text, status_code=503 if waiting else 200)

    healthz = Route("/healthz", lambda _: PlainTextResponse("ok\n"))
    app = Starlette(routes=[metrics_route(registry), healthz, Route("/readyz", readyz)])
    return HttpServer(app, listening, figures)


def run(server: HttpServer, stop: threading.Event, started: Callable[[str], None] = lambda _: None) -> None:
    """Serve the page until `stop` is set. `started` gets the address. Raise ServeError if the server ends."""
    with server:
        started(server.address)
        while not stop.wait(_LOOK_SECONDS):
            server.check()
