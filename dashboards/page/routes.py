"""Routes of the live page and of its JSON interface. Both use one answer per resource."""

from __future__ import annotations

import asyncio
import mimetypes
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from prometheus_client.exposition import gzip_accepted
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from dashboards.colours import VARIABLES
from dashboards.drawn_map.canvas import segment
from dashboards.drawn_map.map import picture_of
from dashboards.drawn_timeline.picture import STYLE
from dashboards.page import interface
from dashboards.page.interface import Answer, Resources, named, recent
from dashboards.page.newest_pages import NewestPages, PageConfig, PageState, RenderedPage, compressed
from dashboards.page.templates import render
from dashboards.serving.http import Pool
from outputs.reading import FOLLOWED_OUTPUTS, ReadingCounts
from outputs.transitions import Transitions
from questions.clients.groups import NO_CLIENTS
from questions.memory import Memory
from questions.page.known_clusters import ClientsOf, KnownClusters, now_ms
from questions.page.overview import Overview
from questions.page.pages import ChooseLosses, LoseBrokers, ShowCluster, ShowFleet
from questions.page.search import Found, Search, page_of
from questions.question import Question
from questions.whatif.may_restart import MayRestart

_STATIC: Final = Path(__file__).parent / "static"
_PAGES: Final = Path(__file__).parent / "html"  # a path of the interface is a page, too, if a file has its name
_SERVED: Final = (".css", ".js", ".svg")
_PAGE_THREADS: Final = 2
_HTML: Final = "text/html"
_JSON: Final = "application/json"
_LOOK_SECONDS: Final = 0.25
# A stream ends before the limit of an answer (`ANSWER_SECONDS`), and the browser opens the next one by itself.
_STREAM_SECONDS: Final = 45.0
_SIMULATIONS: Final = (LoseBrokers, MayRestart)
_QUIET_SECONDS: Final = 10.0  # then a change is sent in any case, so that the page can mark old content
_HEADERS: Final = {"Cache-Control": "no-store"}

_Endpoint = Callable[[Request], Awaitable[Response]]


class LivePage:
    """Routes of the page. Streams of changes end with `stop`.

    `quorum` returns a sentence with the last answer of a cluster's KRaft quorum, and `clients` its consumer groups.
    """

    def __init__(  # noqa: PLR0913 (parts of the page)
        self,
        memory: Memory,
        reading: ReadingCounts,
        transitions: Transitions,
        config: PageConfig,
        stop: threading.Event,
        quorum: Callable[[str], str],
        clients: ClientsOf = lambda _: NO_CLIENTS,
    ) -> None:
        self._memory = memory
        self._stop = stop
        self._config = config
        known = KnownClusters(
            memory, config, config.stale_after_ms, clients, quorum, reading.why_unread, transitions.follow
        )
        self.resources = Resources(known, config)
        self._newest_pages = NewestPages()
        self._awaited: dict[str | None, asyncio.Task[None]] = {}
        self._pages, self._what_ifs = Pool(_PAGE_THREADS), Pool(1)

    def routes(self) -> list[BaseRoute]:
        """Return pages, their JSON, the stream of changes, and the files that pages need."""
        encoded_document = msgspec.json.encode(interface.document())

        async def document(_: Request) -> Response:
            return _response(encoded_document, _JSON)

        cluster = ShowCluster.path
        pages = ((path, f"{path.path.rpartition('/')[2].strip('{}')}.html") for path in interface.PATHS)
        explain = self._pooled(None, self._explain, self._refusal_page)
        return [
            Route("/", self._shown(ShowFleet, "clusters.html")),
            *(Route(path.path, self._shown(path, page)) for path, page in pages if (_PAGES / page).exists()),
            Route(f"{cluster}/whatif", self._shown(ChooseLosses, "whatif.html")),
            *map(self._encoded, interface.PATHS),
            Route(interface.DOCUMENT, document),
            Route(f"{cluster}/map.svg", self._pooled(None, self._picture, self._refusal_page)),
            *(Route(f"{place}/explain", explain) for place in ("", cluster)),
            Route("/changes", self._changes),
            *_files(),
        ]

    def _shown(self, path: type[Question], page_name: str) -> _Endpoint:
        def made(request: Request) -> Response:
            address, state = self._state_of_page(request)
            cluster = self.resources.now(request)

            def shown(template: str, answer: Answer | str) -> bytes:
                overview = self.resources.shown_cluster(cluster, answer, state)
                beside = {"overview": overview, "recent": recent(cluster, answer), "seen": state.version}
                return self._html(request, template, answer, {**beside, "at_ms": cluster.at_ms, "note": cluster.note})

            def page() -> bytes:
                nonlocal cluster
                cluster = self.resources.then(request, path)
                return shown(page_name, self.resources.answer(request, path, cluster))

            try:
                return _page(request, self._newest_pages.made(address, state, page))
            except HTTPException as error:
                return _response(shown("error.html", error.detail), _HTML, error)

        def kept(request: Request) -> Response | None:
            page = self._newest_pages.kept(*self._state_of_page(request))
            return None if page is None else _page(request, page)

        return self._pooled(path, made, self._refusal_page, kept)

    def _state_of_page(self, request: Request) -> tuple[str, PageState]:
        version = self._version(named(request, "cluster") if "cluster" in request.path_params else None)
        return f"{request.scope['path']}?{request.url.query}", PageState(version, now_ms() // 1000)

    def _encoded(self, path: type[Question]) -> Route:
        def made(request: Request) -> Response:
            answer = self.resources.answer(request, path, self.resources.then(request, path))
            return _response(msgspec.json.encode(answer), _JSON)

        def refused(_: Request, error: HTTPException) -> Response:
            return _response(msgspec.json.encode(interface.Refusal(error.detail)), _JSON, error)

        return Route(interface.API + path.path, self._pooled(path, made, refused))

    def _pooled(
        self,
        path: type[Question] | None,
        made: Callable[[Request], Response],
        refused: Callable[[Request, HTTPException], Response],
        kept: Callable[[Request], Response | None] = lambda _: None,
    ) -> _Endpoint:
        """Return an endpoint that answers in a pool's thread, or refuses on HTTPException or a full pool."""
        # A what-if needs time and memory, so it has a separate pool, and only one runs at once.
        pool = self._what_ifs if path in _SIMULATIONS else self._pages

        async def endpoint(request: Request) -> Response:
            try:
                return await pool.answer(request, made, kept)
            except HTTPException as error:
                return refused(request, error)

        return endpoint

    def _refusal_page(self, request: Request, error: HTTPException) -> Response:
        beside = {"overview": None, "at_ms": None, "clusters": ()}  # asks nothing, because the event loop must not wait
        return _response(self._html(request, "error.html", error.detail, beside), _HTML, error)

    def _html(self, request: Request, template: str, answer: Answer | str, beside: Mapping[str, Any]) -> bytes:
        shown = {"answer": answer, "now_ms": now_ms(), "clusters": self._memory.names(), **beside}
        config = {"source": self._config.source, "links": self._config.links}
        return render(template, {**shown, **config, **_asked(request)})

    def _picture(self, request: Request) -> Response:
        """Draw the map alone, for a message in a chat."""
        cluster = self.resources.then(request, ShowCluster)
        overview = self.resources.answer(request, ShowCluster, cluster)
        assert isinstance(overview, Overview), "the answer of the path"
        picture = picture_of(overview, cluster.at_ms)
        if picture is None:
            raise HTTPException(503, f"Cluster {overview.cluster}: {overview.unknown or 'no counts are kept'}.")
        return _response(picture.encode("utf-8", "replace"), "image/svg+xml")

    def _explain(self, request: Request) -> Response:
        """Redirect to the page of the named subject at the same moment, of the only hit, or to the search."""
        words, then = request.query_params.get("of", ""), ""
        cluster, parts = self.resources.now(request), None
        place = ("clusters", cluster.name) if cluster.name else ()
        if cluster.name:
            cluster = self.resources.then(request, ShowCluster)
            parts = page_of(self._memory, cluster.name, words, cluster.at_ms)
            then = "" if cluster.at_ms is None else f"?at={cluster.at_ms}"
        if parts is None:
            found = self.resources.answer(request, Search, cluster)
            hits = found.hits if isinstance(found, Found) else ()
            is_only = len(hits) == 1
            parts = hits[0].path if is_only else (*place, "search")
            then = then if is_only else f"?of={segment(words)}"
        return RedirectResponse("".join(f"/{segment(part)}" for part in parts) + then, 303, _HEADERS)

    def _version(self, cluster: str | None) -> int:
        return self._memory.version(cluster, *FOLLOWED_OUTPUTS)

    async def _change_of(self, cluster: str | None) -> None:
        """Wait for a change, in one task for all viewers of the cluster, or until it was quiet for so long."""
        if cluster not in self._awaited:
            self._awaited[cluster] = asyncio.create_task(self._look(cluster))
        await asyncio.shield(self._awaited[cluster])  # a viewer may leave while others wait

    async def _look(self, cluster: str | None) -> None:
        seen, ends = self._version(cluster), anyio.current_time() + _QUIET_SECONDS
        while seen == self._version(cluster) and not self._stop.is_set() and anyio.current_time() < ends:
            await anyio.sleep(_LOOK_SECONDS)
        del self._awaited[cluster]

    async def _changes(self, request: Request) -> Response:
        """Stream a server-sent event for each change of the shown state."""
        cluster = request.query_params.get("cluster")
        seen = request.headers.get("last-event-id") or request.query_params.get("seen", "")

        async def events(known: str) -> AsyncIterator[str]:
            ends = anyio.current_time() + _STREAM_SECONDS
            yield "retry: 500\n\n"
            while not self._stop.is_set() and anyio.current_time() < ends:
                if str(self._version(cluster)) == known:
                    await self._change_of(cluster)
                known = str(self._version(cluster))
                yield f"event: changed\nid: {known}\ndata: {known}\n\n"
                await anyio.sleep(_LOOK_SECONDS)  # so that a long backlog is not an event for each row

        return StreamingResponse(events(seen), headers=_HEADERS, media_type="text/event-stream")


def _files() -> list[Route]:
    """Return the routes of the files that pages need, compressed once. Written timelines have the colours inline."""
    found = {f"/static/{path.name}": path.read_bytes() for path in _STATIC.iterdir() if path.suffix in _SERVED}
    found["/colours.css"] = (VARIABLES + STYLE).encode()

    def route(path: str, content: bytes) -> Route:
        file, kind = compressed(content, 9), mimetypes.guess_type(path)[0] or _HTML

        async def answer(request: Request) -> Response:
            return _page(request, file, kind, {"Cache-Control": "no-cache"})

        return Route(path, answer)

    return [route(path, content) for path, content in found.items()]


def _page(
    request: Request, page: RenderedPage, media_type: str = _HTML, caching: Mapping[str, str] = _HEADERS
) -> Response:
    """Return the page in the form that the client accepts, or 304 if the client has a page of this state."""
    headers = {**caching, "Vary": "Accept-Encoding", "ETag": page.tag, **({"Heard": page.heard} if page.heard else {})}
    if request.headers.get("if-none-match") == page.tag:
        return Response(None, 304, headers)
    if gzip_accepted(request.headers.get("accept-encoding", "")):
        return Response(page.gzipped, 200, {**headers, "Content-Encoding": "gzip"}, media_type)
    return Response(page.plain, 200, headers, media_type)


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
