"""Exporter process with its pages and their threads."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import MappingProxyType

from anyio import CapacityLimiter, to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboards.alerting.delivery import Delivery
from dashboards.alerting.message import Message
from dashboards.alerting.sender import delivery_collector
from dashboards.catalogue import migration_metrics, pipeline_metrics
from dashboards.catalogue.families import Sample, TableCollector, value_of
from dashboards.catalogue.metric import Metric
from dashboards.errors import ServeError
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.scrape import DetailLimits
from dashboards.page.interface import API, DOCUMENT
from dashboards.page.newest_pages import PageConfig
from dashboards.page.routes import LivePage
from dashboards.probe.prober import ProbedBroker, Prober
from dashboards.probe.quorum import QuorumSeen
from dashboards.serving.connections import HttpCollector, HttpFigures
from dashboards.serving.http import HttpServer
from dashboards.serving.metrics import ProcessCollector, metrics_route
from outputs import open_outputs
from outputs.follower import Follower
from outputs.reading import ALERTING_OUTPUTS, FOLLOWED_OUTPUTS, JoinedCounts, ReadingSnapshot
from outputs.transitions import Transitions
from questions.clients.groups import Clients
from questions.memory import Memory

_LOOK_SECONDS = 0.2

_logger = logging.getLogger("kontrast.dashboards")


def run(config: ServeConfig, stop: threading.Event, started: Callable[[str], None] | None = None) -> None:
    """Serve until `stop` is set. `started` gets the address once it answers.

    Raise ServeError with a sentence if the port is in use or the source is unreadable.
    """
    addresses = [str(source) for source in config.sources]
    memory, reading = Memory(config.past_rows, addresses), JoinedCounts(addresses)
    followers = _followers(config, memory, reading)
    prober = Prober(config.probe, memory, reading)
    delivery = Delivery(config.alertmanager, memory, reading, prober.active_alerts, config.teams)
    app = _App(config, memory, reading, followers, delivery.active_alerts)
    figures = HttpFigures()
    own = ProcessCollector(), HttpCollector(figures)
    beside = broker_view_collector(prober), quorum_collector(prober), delivery_collector(delivery.senders), *own
    transitions = Transitions(config.sources, config.connect_timeout_seconds, memory)
    clients = lambda cluster: Clients(prober.known_groups(cluster), config.teams)  # noqa: E731
    live = LivePage(memory, reading, transitions, _page_config(config), stop, prober.quorum_sentence, clients)
    server = HttpServer(app.pages(live, beside), config.listening, figures)
    parts: Sequence[AbstractContextManager[object]] = (server, *followers, transitions, prober, delivery)
    with ExitStack() as running:
        for part in parts:
            running.enter_context(part)
        _logger.info("serving %s at %s", config.named_sources, server.address)
        if started is not None:
            started(server.address)
        while not stop.wait(_LOOK_SECONDS):
            for failure in (*(follower.failure for follower in followers), delivery.failure, prober.failure):
                if failure is not None:
                    raise ServeError(str(failure)) from failure
            if not app.is_compared and reading.snapshot().caught_up:
                # Only at the start. Later /readyz shows a shared cluster, because an exit would silence all alerts.
                if twice := memory.named_twice():
                    raise ServeError(twice)
                app.is_compared = True
            server.check()


def _followers(config: ServeConfig, memory: Memory, reading: JoinedCounts) -> list[Follower]:
    """Return a follower for each source. If sources are several, one that does not answer is retried for ever."""
    patience_seconds = config.connect_timeout_seconds if len(config.sources) == 1 else math.inf
    late = set(FOLLOWED_OUTPUTS).difference(ALERTING_OUTPUTS)
    return [
        Follower(open_outputs(source, FOLLOWED_OUTPUTS, late), memory, counts, patience_seconds, named)
        for source, (named, counts) in zip(config.sources, reading.parts.items(), strict=True)
    ]


def _page_config(config: ServeConfig) -> PageConfig:
    """Return settings of the live page."""
    return PageConfig(
        source=config.named_sources,
        teams=config.teams,
        start_command=config.start_command,
        runbook_url=config.alertmanager.runbook_url,
        alertmanager_url=config.alertmanager.urls[0] if config.alertmanager.urls else None,
        stale_after_ms=config.alertmanager.stale_after_ms,
        links=("/metrics", "/readyz", "/healthz", f"{API}/clusters", DOCUMENT),
    )


class _App:
    """The pages."""

    def __init__(
        self,
        config: ServeConfig,
        memory: Memory,
        reading: JoinedCounts,
        followers: Sequence[Follower],
        alerts: Callable[[], Mapping[str, Sequence[Message]]],
    ) -> None:
        self.is_compared = len(config.sources) == 1  # whether it was checked that no two sources share a cluster
        self._config = config
        self._memory = memory
        self._reading = reading
        self._followers = followers
        self._alerts = alerts
        self._thread = CapacityLimiter(1)  # separate, so that pages never delay probes

    def pages(self, live: LivePage, beside: Iterable[Collector]) -> Starlette:
        """Return all pages. /metrics has the metrics of the collectors `beside`, too."""
        config = self._config
        limits = DetailLimits(
            partitions=config.partition_detail_limit,
            brokers=config.broker_detail_limit,
            alerts=config.alert_detail_limit,
        )
        metrics = CollectorRegistry()
        sources = (self._memory, self._reading, limits, config.alertmanager.stale_after_ms, self._alerts)
        metrics.register(MemoryCollector(*sources, page_url=config.page_url))
        for collector in beside:
            metrics.register(collector)
        return Starlette(
            routes=[
                *live.routes(),
                metrics_route(metrics),
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
            ],
            middleware=[Middleware(NamesInPaths)],
        )

    async def _healthz(self, _: Request) -> Response:
        if all(follower.alive for follower in self._followers):
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the exporter stopped reading the outputs\n", status_code=503)

    async def _readyz(self, _: Request) -> Response:
        wrong = await to_thread.run_sync(self._unready, limiter=self._thread)
        return PlainTextResponse(f"{wrong or 'ready'}\n", status_code=503 if wrong else 200)

    def _unready(self) -> str | None:
        """Return what keeps the exporter from being ready, if anything does."""
        state, known = self._reading.snapshot(), self._memory.clusters()
        unread = next(filter(None, (_unread(source, part) for source, part in state.parts.items())), None)
        if unread is not None:
            return unread
        if all(each.gauges is None for each in known):
            return "no cluster is known yet (`kontrast status` has the reason)"
        lacking = [each.cluster for each in known if state.outputs_lacking_rows_of(each.cluster)]
        if lacking:
            return _LACKS_ROWS.format(clusters=", ".join(lacking))
        return self._memory.named_twice() or (None if self.is_compared else "the outputs are not compared yet")


def _unread(source: str, state: ReadingSnapshot) -> str | None:
    """Return why rows of this source are missing, if they are."""
    if not state.source_up:
        return f"the outputs {source} cannot be read (the log has the reason)"
    if state.is_empty:
        return f"{source} holds no outputs. Start `kontrast stream --to {source}`, or check the address"
    if not state.caught_up:
        return f"the exporter is still reading the outputs {source}"
    return f"a newer Kontrast wrote the outputs {source}. Upgrade this exporter" if state.newer else None


_LACKS_ROWS = (
    "rows of {clusters} were dropped or damaged before they were read. Write them again with "
    "`kontrast stream --rebuild`"
)


class NamesInPaths:
    """Middleware that keeps a cluster's name with a slash as one part of the path for routes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application."""
        if scope["type"] == "http" and scope["path"].startswith(("/clusters/", f"{API}/clusters/")):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


def _differing(broker: ProbedBroker) -> Iterator[Sample]:
    if broker.findings is not None:
        for difference, count in broker.findings.counts().items():
            yield (difference.value,), count


# The samples of each metric for one broker.
_OF_BROKERS: Mapping[Metric, Callable[[ProbedBroker], Iterable[Sample]]] = MappingProxyType(
    {
        pipeline_metrics.BROKER_VIEW_DIFFERING: _differing,
        pipeline_metrics.BROKER_VIEW_SECONDS: value_of(lambda broker: broker.seconds),
        pipeline_metrics.BROKER_VIEW_PROBES: lambda broker: [
            (("answered",), broker.answers),
            (("failed",), broker.failures),
        ],
    }
)


def broker_view_collector(prober: Prober) -> TableCollector[ProbedBroker]:
    """Return a collector of the results of the probes so far."""
    return TableCollector(
        _OF_BROKERS,
        lambda: (
            ((probe.cluster, str(broker.broker)), broker) for probe in prober.probes() for broker in probe.brokers()
        ),
    )


# The samples of each metric for one quorum.
_OF_QUORUMS: Mapping[Metric, Callable[[QuorumSeen], Iterable[Sample]]] = MappingProxyType(
    {
        migration_metrics.MIGRATION_NODES: lambda seen: [
            ((mode,), count) for mode, count in sorted(seen.modes.items())
        ],
        migration_metrics.MIGRATION_HIGH_WATERMARK: value_of(
            lambda seen: None if seen.quorum is None else seen.quorum.high_watermark
        ),
        migration_metrics.MIGRATION_OFFSET_LAG: value_of(lambda seen: seen.offset_lag),
        migration_metrics.MIGRATION_LEADER_EPOCH: value_of(
            lambda seen: None if seen.quorum is None else seen.quorum.leader_epoch
        ),
        migration_metrics.MIGRATION_DIFFERING: lambda seen: [
            ((subject.value,), count) for subject, count in (seen.differing or {}).items()
        ],
    }
)


def quorum_collector(prober: Prober) -> TableCollector[QuorumSeen]:
    """Return a collector of the quorums' answers in the newest round."""
    return TableCollector(
        _OF_QUORUMS,
        # A probe's thread may set `seen` meanwhile.
        lambda: (((probe.cluster,), seen) for probe in prober.quorums() for seen in (probe.seen,) if seen is not None),
    )
