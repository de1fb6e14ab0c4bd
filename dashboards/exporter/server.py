"""Exporter process with its pages and their threads."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from anyio import CapacityLimiter, to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboards.alerting.delivery import Delivery
from dashboards.alerting.message import Message
from dashboards.alerting.sender import delivery_collector
from dashboards.catalogue.metric import JMX_PAGE, PARTITIONS_PAGE
from dashboards.errors import ServeError
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.discovery import targets
from dashboards.exporter.jmx import JmxCollector
from dashboards.exporter.partitions_page import PartitionsPage
from dashboards.exporter.scrape import DetailLimits
from dashboards.page.config import PageConfig
from dashboards.page.interface import API, DOCUMENT
from dashboards.page.routes import LivePage
from dashboards.probe.metrics import broker_view_collector, quorum_collector
from dashboards.probe.prober import Prober
from dashboards.serving.connections import HttpCollector, HttpFigures
from dashboards.serving.http import HttpServer
from dashboards.serving.metrics import ProcessCollector, metrics_route, wanted_by
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
    page = PartitionsPage(memory, reading, config.alertmanager.stale_after_ms) if config.partitions_page else None
    app = _App(config, memory, reading, followers, delivery.active_alerts, page)
    figures = HttpFigures()
    own = ProcessCollector(), HttpCollector(figures)
    app.show(broker_view_collector(prober), quorum_collector(prober), delivery_collector(delivery.senders), *own)
    transitions = Transitions(config.sources, config.connect_timeout_seconds, memory)
    clients = lambda cluster: Clients(prober.known_groups(cluster), config.teams)  # noqa: E731
    live = LivePage(memory, reading, transitions, _page_config(config), stop, prober.quorum_sentence, clients)
    server = HttpServer(app.pages(live), config.listening, figures)
    with ExitStack() as running:
        for part in (server, page, *followers, transitions, prober, delivery):
            if part is not None:
                running.enter_context(part)
        _logger.info("serving %s at %s", config.named_sources, server.address)
        if started is not None:
            started(server.address)
        while not stop.wait(_LOOK_SECONDS):
            for failure in (*(follower.failure for follower in followers), delivery.failure, prober.failure):
                if failure is not None:
                    raise ServeError(str(failure)) from failure
            if not app.is_compared and reading.snapshot().caught_up:
                _refuse_shared_cluster(memory)
                app.is_compared = True
            server.check()
            if page is not None:
                page.check()


def _followers(config: ServeConfig, memory: Memory, reading: JoinedCounts) -> list[Follower]:
    """Return a follower for each source. If sources are several, one that does not answer is retried for ever."""
    patience_seconds = config.connect_timeout_seconds if len(config.sources) == 1 else math.inf
    late = set(FOLLOWED_OUTPUTS).difference(ALERTING_OUTPUTS)
    return [
        Follower(open_outputs(source, FOLLOWED_OUTPUTS, late), memory, counts, patience_seconds, named)
        for source, (named, counts) in zip(config.sources, reading.parts.items(), strict=True)
    ]


def _refuse_shared_cluster(memory: Memory) -> None:
    # This check is only for the start. Later /readyz shows a shared cluster, because an exit would silence all alerts.
    twice = memory.named_twice()
    if twice is not None:
        raise ServeError(twice)


def _page_config(config: ServeConfig) -> PageConfig:
    """Return settings of the live page."""
    switched_on = [PARTITIONS_PAGE] * config.partitions_page + [JMX_PAGE] * config.jmx_page
    return PageConfig(
        source=config.named_sources,
        teams=config.teams,
        start_command=config.start_command,
        runbook_url=config.alertmanager.runbook_url,
        alertmanager_url=config.alertmanager.urls[0] if config.alertmanager.urls else None,
        stale_after_ms=config.alertmanager.stale_after_ms,
        links=("/metrics", *switched_on, "/sd/brokers", "/readyz", "/healthz", f"{API}/clusters", DOCUMENT),
    )


class _App:
    """The pages."""

    def __init__(  # noqa: PLR0913 (all parts of the pages)
        self,
        config: ServeConfig,
        memory: Memory,
        reading: JoinedCounts,
        followers: Sequence[Follower],
        alerts: Callable[[], Mapping[str, Sequence[Message]]],
        page: PartitionsPage | None,
    ) -> None:
        self.is_compared = len(config.sources) == 1  # whether it was checked that no two sources share a cluster
        self._config = config
        self._memory = memory
        self._reading = reading
        self._followers = followers
        self._alerts = alerts
        self._page = page
        self._beside: tuple[Collector, ...] = ()
        self._thread = CapacityLimiter(1)  # separate, so that pages never delay probes or discovery

    def show(self, *collectors: Collector) -> None:
        """Add collectors to /metrics."""
        self._beside = collectors

    def pages(self, live: LivePage) -> Starlette:
        """Return all pages. A page that is switched off names its switch."""
        config, page = self._config, self._page
        limits = DetailLimits(
            partitions=config.partition_detail_limit,
            brokers=config.broker_detail_limit,
            alerts=config.alert_detail_limit,
        )
        metrics, jmx = CollectorRegistry(), CollectorRegistry()
        figures = page.figures if page else None
        stale_after_ms = config.alertmanager.stale_after_ms
        sources = (self._memory, self._reading, limits, stale_after_ms, self._alerts, figures)
        metrics.register(MemoryCollector(*sources, page_url=config.page_url))
        for collector in self._beside:
            metrics.register(collector)
        jmx.register(
            JmxCollector(self._memory, self._reading, config.broker_detail_limit, config.jmx_port, stale_after_ms)
        )
        return Starlette(
            routes=[
                *live.routes(),
                metrics_route(metrics),
                Route(PARTITIONS_PAGE, self._partitions) if page else _switched_off(PARTITIONS_PAGE, "partitions_page"),
                metrics_route(jmx, JMX_PAGE) if config.jmx_page else _switched_off(JMX_PAGE, "jmx_page"),
                Route("/sd/brokers", self._in_own_thread(self._brokers)),
                Route("/healthz", self._healthz),
                Route("/readyz", self._in_own_thread(self._readyz)),
            ],
            middleware=[Middleware(NamesInPaths)],
        )

    async def _partitions(self, request: Request) -> Response:
        assert self._page is not None, "a page that is switched off"
        wanted, page = wanted_by(request), self._page.page
        file = page.openmetrics if wanted.openmetrics else page.text
        # All readers share the bytes. The server takes the next part once the client has taken enough of the last one.
        size, parts = (file.compressed_size, file.compressed()) if wanted.gzip else (file.size, file.plain())
        return StreamingResponse(_on_event_loop(parts), headers={**wanted.headers, "Content-Length": str(size)})

    def _in_own_thread(self, answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            return await to_thread.run_sync(answer, request, limiter=self._thread)

        return answered

    def _brokers(self, request: Request) -> Response:
        # Refuse a partial answer, because Prometheus keeps its targets after a refusal, but drops targets otherwise.
        chosen, state = request.query_params.get("cluster"), self._reading.snapshot()
        of_now = [known for known in self._memory.clusters() if not known.is_replayed]
        clusters = [known for known in of_now if chosen in (None, known.cluster)]
        whole = state if chosen is None else state.of(chosen)
        silent = [known.cluster for known in clusters if not (known.ready and state.vouches_for(known.cluster))]
        if not clusters or not (whole.source_up and whole.caught_up):
            return PlainTextResponse("the brokers are unknown\n", status_code=503)
        if silent:
            return PlainTextResponse(f"the brokers of {', '.join(silent)} are unknown\n", status_code=503)
        return JSONResponse([target for known in clusters for target in targets(known, self._config.jmx_port)])

    async def _healthz(self, _: Request) -> Response:
        if all(follower.alive for follower in self._followers):
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the exporter stopped reading the outputs\n", status_code=503)

    def _readyz(self, _: Request) -> Response:
        wrong = self._unready()
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


async def _on_event_loop(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts on the event loop, because each takes less time than the start of a thread."""
    for part in parts:
        yield part


def _switched_off(path: str, key: str) -> Route:
    def answer(_: Request) -> Response:
        return PlainTextResponse(f"{path} is switched off. Set {key} = true in [serve]\n", status_code=404)

    return Route(path, answer)


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
