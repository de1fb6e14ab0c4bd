"""Routes of the live page and of its JSON interface. Both use one answer per resource."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from dashboards.drawn_timeline.picture import STYLE
from dashboards.kept_rows.reading import FOLLOWED_OUTPUTS, ReadingCounts
from dashboards.kept_rows.transitions import Transitions
from dashboards.page import interface
from dashboards.page.answers import Answers, BrokerAnswer, Groups, Quorums, TopicAnswer, TopicList, no_groups
from dashboards.page.asked import NUMBER, asked_ms, found, named, now_ms, number
from dashboards.page.config import PageConfig
from dashboards.page.hypothetical import Hypothetical
from dashboards.page.leases import Leases
from dashboards.page.newest_pages import NewestPages, PageState
from dashboards.page.restarts import Restarts
from dashboards.page.templates import render, segment
from dashboards.serving.pool import Pool
from questions.explain.explanation import Explanation
from questions.history import OLDEST, WINDOWS_SECONDS, AskedMoment, Histories, History
from questions.known_brokers import UnknownBrokersError
from questions.known_groups import KnownGroups
from questions.memory import Memory
from questions.overview.overview import Overview
from questions.search import Found, search
from questions.subjects import page_of, subject_of
from questions.whatif.losses import Losses, WhatIf
from wording.suggestions import did_you_mean
from wording.times import moment

_STATIC: Final = Path(__file__).parent / "static"
_PAGE_THREADS: Final = 2
_HTML: Final = "text/html"
_JSON: Final = "application/json"
_LOOK_SECONDS: Final = 0.25
# Below the limit of an answer (`ANSWER_SECONDS`). The browser asks again by itself.
_STREAM_SECONDS: Final = 45.0
_SIMULATIONS: Final = (interface.CONSEQUENCES, interface.RESTARTABLE, interface.HOLD_LEASE)
_QUIET_SECONDS: Final = 10.0  # without a change, so that the page can mark its content as old
_HEADERS: Final = {"Cache-Control": "no-store"}

_Answer = msgspec.Struct | tuple[msgspec.Struct, ...]
_Endpoint = Callable[[Request], Awaitable[Response]]


class _Resource(NamedTuple):
    """The answer at a path, and its template."""

    path: interface.Path
    template: str
    answer: Callable[[Request], _Answer]


class _Moment(NamedTuple):
    """The shown moment, by default the present, with a note if an earlier one was asked for than is kept."""

    at_ms: int | None = None
    note: str = ""


class LivePage:
    """Routes of the page. Streams of changes end with `stop`.

    `quorum` returns a sentence with the last answer of a cluster's KRaft quorum, and `groups` its consumer groups.
    """

    def __init__(  # noqa: PLR0913 (parts of the page)
        self,
        memory: Memory,
        reading: ReadingCounts,
        transitions: Transitions,
        config: PageConfig,
        stop: threading.Event,
        quorum: Quorums,
        groups: Groups = no_groups,
    ) -> None:
        self._memory = memory
        self._stop = stop
        self._config = config
        leases = Leases()
        self._answers = Answers(memory, reading, quorum, config, leases, groups)
        self._histories = Histories(memory, self._answers.overview_at, transitions.follow)
        self._hypothetical = Hypothetical(memory, self._answers)
        self._restarts = Restarts(self._hypothetical, leases, self._refuse_unknown, config)
        self._newest_pages = NewestPages()
        self._pages, self._what_ifs = Pool(_PAGE_THREADS), Pool(1)

    def routes(self) -> list[BaseRoute]:
        """Return pages, their JSON, the stream of changes, and the files that pages need."""
        resources = (
            _Resource(interface.FLEET, "fleet.html", self._fleet),
            _Resource(interface.CLUSTER, "cluster.html", self._overview),
            _Resource(interface.TOPICS, "topics.html", self._topics),
            _Resource(interface.TOPIC, "topic.html", self._topic),
            _Resource(interface.PARTITION, "partition.html", self._partition),
            _Resource(interface.BROKER, "broker.html", self._broker),
            _Resource(interface.CONTROLLER, "controller.html", self._controller),
            _Resource(interface.TIMELINE, "timeline.html", self._timeline),
            _Resource(interface.CONSEQUENCES, "consequences.html", self._consequences),
            _Resource(interface.SEARCH, "search.html", self._search),
            _Resource(interface.SEARCH_ALL, "search.html", self._search),
        )
        encoded_document = msgspec.json.encode(interface.document())

        async def document(_: Request) -> Response:
            return _response(encoded_document, _JSON)

        cluster = interface.CLUSTER.path
        what_if = _Resource(interface.WHAT_IF, "whatif.html", self._overview)
        return [
            Route("/", self._shown(resources[0])),
            Route(f"{cluster}/whatif", self._shown(what_if)),
            *(Route(resource.path.path, self._shown(resource)) for resource in resources),
            *(self._encoded(resource.path, resource.answer) for resource in resources),
            self._encoded(interface.RESTARTABLE, self._restarts.restartable),
            self._encoded(interface.GROUPS, self._groups),
            self._encoded(interface.HOLD_LEASE, self._restarts.hold),
            self._encoded(interface.RELEASE_LEASE, self._restarts.release),
            Route(interface.DOCUMENT, document),
            Route(f"{cluster}/explain", self._pooled(None, self._explain, self._refusal_page)),
            Route("/changes", self._changes),
            Route("/timeline.css", _colours),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ]

    def _shown(self, resource: _Resource) -> _Endpoint:
        def made(request: Request) -> Response:
            address, state = self._state_of_page(request)
            moment = _Moment()

            def page() -> bytes:
                nonlocal moment
                moment = self._moment(request) if interface.AT in resource.path.queries else moment
                return self._html(request, resource.template, resource.answer(request), moment, state.version)

            try:
                _refuse_moment(request, resource.path)
                return _response(self._newest_pages.made(address, state, page), _HTML)
            except HTTPException as error:
                return self._refusal_page(request, error, moment)

        pooled = self._pooled(resource.path, made, self._refusal_page)

        async def endpoint(request: Request) -> Response:
            # Most viewers find the page that another one had made, and need no thread.
            page = self._newest_pages.kept(*self._state_of_page(request))
            return await pooled(request) if page is None else _response(page, _HTML)

        return endpoint

    def _state_of_page(self, request: Request) -> tuple[str, PageState]:
        version = self._version(named(request, "cluster") if "cluster" in request.path_params else None)
        return f"{request.scope['path']}?{request.url.query}", PageState(version, now_ms() // 1000)

    def _encoded(self, path: interface.Path, answer: Callable[[Request], _Answer]) -> Route:
        def made(request: Request) -> Response:
            _refuse_moment(request, path)
            return _response(msgspec.json.encode(answer(request)), _JSON)

        def refused(_: Request, error: HTTPException) -> Response:
            return _response(msgspec.json.encode(interface.Refusal(error.detail)), _JSON, error)

        return Route(interface.API + path.path, self._pooled(path, made, refused), methods=[path.method.upper()])

    def _pooled(
        self,
        path: interface.Path | None,
        made: Callable[[Request], Response],
        refused: Callable[[Request, HTTPException], Response],
    ) -> _Endpoint:
        """Return an endpoint that answers in a pool's thread, or refuses on HTTPException or a full pool."""
        # A what-if needs time and memory, so it has a separate pool, and only one runs at once.
        pool = self._what_ifs if path in _SIMULATIONS else self._pages

        async def endpoint(request: Request) -> Response:
            try:
                return await pool.answer(request, made)
            except HTTPException as error:
                return refused(request, error)

        return endpoint

    def _refusal_page(self, request: Request, error: HTTPException, moment: _Moment = _Moment()) -> Response:  # noqa: B008
        return _response(self._html(request, "error.html", error.detail, moment), _HTML, error)

    def _html(self, request: Request, template: str, answer: _Answer | str, moment: _Moment, seen: int = 0) -> bytes:
        shown = {"answer": answer, "seen": seen, "now_ms": now_ms(), **moment._asdict()}
        values = {**shown, "source": self._config.source, "links": self._config.links, **_asked(request)}
        return render(template, values)

    def _fleet(self, _: Request) -> tuple[Overview, ...]:
        return self._answers.fleet()

    def _overview(self, request: Request) -> Overview:
        cluster, at_ms = named(request, "cluster"), self._moment(request).at_ms
        if at_ms is None and asked_ms(request) is not None and self._memory.cluster(cluster) is not None:
            raise HTTPException(404, _nothing_kept(cluster))
        overview = self._answers.overview(cluster, at_ms)
        return found(overview, f"There is no cluster {cluster}.", lambda: self._answers.clusters_like(cluster))

    def _topics(self, request: Request) -> TopicList:
        self._refuse_unknown(request)
        asked = request.query_params
        contains, after = asked.get("words", "").strip(), asked.get("after", "")
        lacking = asked.get("lacking") == "1"
        return self._answers.topics(named(request, "cluster"), contains, after, lacking=lacking)

    def _search(self, request: Request) -> Found:
        words = request.query_params.get("of", "")
        if "cluster" not in request.path_params:
            return search(self._memory, words)
        self._refuse_unknown(request)
        return search(self._memory, words, named(request, "cluster"))

    def _topic(self, request: Request) -> TopicAnswer:
        at_ms = self._known_moment(request)
        topic, first = named(request, "topic"), number(request.query_params.get("first", "0"), "first")
        cluster = named(request, "cluster")
        answer = self._answers.topic(cluster, topic, first, at_ms)
        similar = lambda: self._answers.topics_like(cluster, topic)  # noqa: E731
        return found(answer, f"{_there_is(at_ms)} no topic {topic}.", similar)

    def _partition(self, request: Request) -> Explanation:
        at_ms = self._known_moment(request)
        cluster, topic, number = named(request, "cluster"), named(request, "topic"), named(request, "partition")
        tp = TopicPartition(topic, PartitionId(int(number))) if NUMBER.fullmatch(number) else None
        answer = None if tp is None else self._answers.partition(cluster, tp, at_ms)
        similar = lambda: [] if tp is None else self._answers.partitions_like(cluster, tp)  # noqa: E731
        return found(answer, f"{_there_is(at_ms)} no partition {topic}-{number}.", similar)

    def _broker(self, request: Request) -> BrokerAnswer:
        at_ms = self._known_moment(request)
        cluster, number = named(request, "cluster"), named(request, "broker")
        answer = self._answers.broker(cluster, BrokerId(int(number)), at_ms) if NUMBER.fullmatch(number) else None
        return found(answer, f"{_there_is(at_ms)} no broker {number} that is registered or hosts replicas.")

    def _controller(self, request: Request) -> Explanation:
        at_ms = self._known_moment(request)
        cluster = named(request, "cluster")
        return found(self._answers.controller(cluster, at_ms), f"{_there_is(at_ms)} no cluster {cluster}.")

    def _groups(self, request: Request) -> KnownGroups:
        self._refuse_unknown(request)
        return self._answers.groups(named(request, "cluster"))

    def _timeline(self, request: Request) -> History:
        self._refuse_unknown(request)
        asked, cluster = request.query_params, named(request, "cluster")
        words = asked.get("of", "").strip()
        window = asked.get("window", str(AskedMoment().window_seconds))
        if window not in map(str, WINDOWS_SECONDS):
            raise HTTPException(400, f"window is one of {', '.join(map(str, WINDOWS_SECONDS))} seconds.")
        subject = subject_of(words)
        if words and subject is None:
            raise HTTPException(400, "of has no subject. Write orders-7, orders, broker 3 or controller.")
        moment = AskedMoment(asked_ms(request), int(window), subject)
        history = found(self._histories.history(cluster, moment), _nothing_kept(cluster))
        if history.timeline is not None or subject is None:
            return history
        similar = self._answers.subjects_like(cluster, subject)
        note = (f"There is no {words}{did_you_mean(similar)}",) if similar else ()
        return msgspec.structs.replace(history, notes=(*history.notes, *note))

    def _consequences(self, request: Request) -> WhatIf:
        return self._hypothetical.play(named(request, "cluster"), self._losses(request))

    def _explain(self, request: Request) -> Response:
        """Redirect to the page of the named subject, at the same moment, or to the search."""
        at_ms, cluster, words = (
            self._moment(request).at_ms,
            named(request, "cluster"),
            request.query_params.get("of", ""),
        )
        parts = page_of(self._memory, cluster, words, at_ms)
        then = "" if at_ms is None else f"?at={at_ms}"
        if parts is None:
            parts, then = ("clusters", cluster, "search"), f"?of={segment(words)}"
        return RedirectResponse("".join(f"/{segment(part)}" for part in parts) + then, 303, _HEADERS)

    def _losses(self, request: Request) -> Losses:
        asked = request.query_params
        brokers = {BrokerId(number(said, "broker")) for said in asked.getlist("broker")}
        try:
            for rack in asked.getlist("rack"):
                brokers |= set(self._answers.brokers_in(named(request, "cluster"), rack))
        except UnknownBrokersError as error:
            raise HTTPException(400, str(error)) from error
        if not brokers:
            raise HTTPException(
                400, "Name brokers or racks, like ?broker=3&rack=eu-1. &controlled=1 shuts them down cleanly."
            )
        return Losses(tuple(sorted(brokers)), asked.get("controlled") == "1")

    def _moment(self, request: Request) -> _Moment:
        """Return the nearest kept moment to the requested one, if the cluster has any."""
        wanted_ms, past = asked_ms(request), self._memory.kept(named(request, "cluster"))
        if wanted_ms is None or past is None:
            return _Moment()
        return _Moment(past.nearest(wanted_ms), OLDEST if wanted_ms < past.since_ms else "")

    def _known_moment(self, request: Request) -> int | None:
        """Return the answer's moment. Refuse a moment without a known state."""
        at_ms = self._moment(request).at_ms
        self._refuse_unknown(request, at_ms)
        if at_ms is None and asked_ms(request) is not None:
            raise HTTPException(404, _nothing_kept(named(request, "cluster")))
        return at_ms

    def _refuse_unknown(self, request: Request, at_ms: int | None = None) -> None:
        cluster = named(request, "cluster")
        unknown = self._answers.why_unknown(cluster, at_ms)
        if unknown is not None:
            if self._memory.cluster(cluster) is not None:
                raise HTTPException(503, f"Cluster {cluster}: {unknown}.")
            found(None, f"Cluster {cluster}: {unknown}.", lambda: self._answers.clusters_like(cluster))

    def _version(self, cluster: str | None) -> int:
        return self._memory.version(cluster, *FOLLOWED_OUTPUTS)

    async def _changes(self, request: Request) -> Response:
        """Stream a server-sent event for each change of the shown state."""
        cluster = request.query_params.get("cluster")
        seen = request.headers.get("last-event-id") or request.query_params.get("seen", "")

        async def events(known: str) -> AsyncIterator[str]:
            began = said = anyio.current_time()
            yield "retry: 500\n\n"
            while not self._stop.is_set() and (now := anyio.current_time()) < began + _STREAM_SECONDS:
                version = str(self._version(cluster))
                if version != known or now >= said + _QUIET_SECONDS:
                    known, said = version, now
                    yield f"event: changed\nid: {version}\ndata: {version}\n\n"
                await anyio.sleep(_LOOK_SECONDS)

        return StreamingResponse(events(seen), headers=_HEADERS, media_type="text/event-stream")


async def _colours(_: Request) -> Response:
    """Return the colours of drawn timelines. Written files have them inline."""
    return _response(STYLE.encode(), "text/css")


def _response(body: bytes, media_type: str, refused: HTTPException | None = None) -> Response:
    if refused is None:
        return Response(body, 200, _HEADERS, media_type)
    return Response(body, refused.status_code, {**_HEADERS, **(refused.headers or {})}, media_type)


def _asked(request: Request) -> Mapping[str, Any]:
    asked, query = request.query_params, request.url.query
    return {
        **{
            name: named(request, name) if name in request.path_params else None
            for name in ("cluster", "topic", "broker")
        },
        "path": request.scope["path"] + (f"?{query}" if query else ""),
        "query": query,
        "asked": asked,
        "lost": asked.getlist("broker"),
        "lost_racks": asked.getlist("rack"),
    }


def _refuse_moment(request: Request, path: interface.Path) -> None:
    """Refuse an earlier moment for an answer that has only the present."""
    if "at" in request.query_params and interface.AT not in path.queries:
        raise HTTPException(400, "This answer has only the present. Leave out at, or ask the timeline.")


def _there_is(at_ms: int | None) -> str:
    return "There is" if at_ms is None else f"As of {moment(at_ms)} there was"


def _nothing_kept(cluster: str) -> str:
    return f"Kontrast keeps no past of cluster {cluster} yet."
