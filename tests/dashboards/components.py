"""Every component of the live page in every state on one page: `python -m tests.dashboards.components`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dashboards.colours import VARIABLES
from dashboards.drawn_timeline.picture import STYLE
from dashboards.page import templates
from dashboards.page.newest_pages import PageConfig
from dashboards.serving.connections import HttpFigures
from dashboards.serving.http import HttpServer
from questions.memory import Memory
from questions.page.known_clusters import KnownClusters
from questions.page.overview import worst_first
from tests.dashboards import page_cases
from tests.dashboards.page_cases import Story
from tests.dashboards.recorded_cases import recorded_story
from transport.listening import Listening

_PAGE = Path(templates.__file__).parent
_CASES = (
    page_cases.healthy,
    page_cases.shutdown,
    partial(recorded_story, "shut-down"),
    partial(recorded_story, "rack-lost"),
    page_cases.ghost,
    page_cases.zookeeper_lost,
    page_cases.migration,
)


def page_of(stories: Iterable[Story]) -> str:
    """Return the page with the components of these clusters."""
    memory = Memory()
    for story in stories:
        for row in story.rows():
            memory.apply(row)
    now_ms = time.time_ns() // 1_000_000
    known = KnownClusters(memory, PageConfig(), PageConfig().stale_after_ms, quorum=lambda _: "not asked")
    overviews = worst_first(map(known.now, memory.clusters()))
    environment = templates.ENVIRONMENT.overlay(loader=FileSystemLoader([Path(__file__).parent, _PAGE / "html"]))
    nowhere: dict[str, Any] = {
        "cluster": None,
        "topic": None,
        "broker": None,
        "at_ms": None,
        "note": "",
        "path": "/",
        "asked": {},
        "clusters": (),
        "overview": None,
    }
    shown = {"answer": overviews, "overviews": overviews, "now_ms": now_ms, "source": "stories", "links": ()}
    return environment.get_template("components.html").render(**nowhere, **shown)


@contextmanager
def serving() -> Iterator[str]:
    """Serve the page as `kontrast serve` serves its own, with the same security policy. Yield the address."""
    text = page_of(case() for case in _CASES)

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(text)

    async def colours(_: Request) -> Response:
        return Response(VARIABLES + STYLE, media_type="text/css")

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/colours.css", colours),
            Mount("/static", StaticFiles(directory=_PAGE / "static")),
        ]
    )
    with HttpServer(app, Listening(listen="127.0.0.1:0"), HttpFigures()) as server:
        yield server.address


if __name__ == "__main__":
    with serving() as address:
        print(address)
        while True:
            time.sleep(60)
