"""Route of a metrics page in the format that a scraper wants, and the live memory of this process.

All waiting scrapers share one rendering.
"""

from __future__ import annotations

import asyncio
import ctypes
import gzip
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from anyio import CapacityLimiter, Lock, to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dashboards.catalogue import pipeline_metrics
from dashboards.catalogue.families import family
from dashboards.catalogue.metric import METRICS_PAGE
from wording.sentences import own_version


class LiveMemory(NamedTuple):
    """What a process holds, without free memory between its objects."""

    small_objects: int  # of up to 512 bytes, which Python allocates itself
    heap_bytes: int | None  # of larger objects. Only glibc tells it


def live_memory() -> LiveMemory:
    """Return the live memory of this process."""
    return LiveMemory(sys.getallocatedblocks(), _heap_bytes())


class _MallocInfo(ctypes.Structure):
    """Result of `mallinfo2`, which glibc has from 2.33 on."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _heap_bytes() -> int | None:
    """Return the bytes in use in glibc's heaps, or None with another C library."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return None
    library.mallinfo2.restype = _MallocInfo
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The encoding and compression that a scraper wants."""

    encode: Callable[[CollectorRegistry], bytes] = field(compare=False)  # the content type determines it
    content_type: str
    gzip: bool

    @property
    def headers(self) -> dict[str, str]:
        """Return the answer's headers."""
        headers = {"Content-Type": self.content_type, "Vary": "Accept, Accept-Encoding"}
        return {**headers, "Content-Encoding": "gzip"} if self.gzip else headers


def _wanted_by(request: Request) -> _Wanted:
    """Return the format that the request's headers ask for. Ignore unreadable headers."""
    try:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
    except (ValueError, TypeError):  # a version is no number, or a part of it is none
        encode, content_type = choose_encoder("")
    return _Wanted(encode, content_type, gzip_accepted(request.headers.get("accept-encoding", "")))


def metrics_route(registry: CollectorRegistry) -> Route:
    """Return the page of metrics, in the format and compression that the scraper asks for."""
    # prometheus-client's make_asgi_app would collect on the event loop, so a slow scrape would delay /healthz. It also
    # compresses at gzip's slowest level.
    renderings = _Renderings(registry)

    async def metrics(request: Request) -> Response:
        wanted = _wanted_by(request)
        return Response(await renderings.of(wanted), headers=wanted.headers)

    return Route(METRICS_PAGE, metrics)


class _Renderings:
    """Renderings of a registry, one after the other, in a thread.

    All callers that wait when a rendering begins get its bytes, so any number of scrapers costs one rendering.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._turn = Lock()
        self._thread = CapacityLimiter(1)
        self._due: dict[_Wanted, asyncio.Task[bytes]] = {}

    async def of(self, wanted: _Wanted) -> bytes:
        """Render the registry, or wait for the rendering that begins next."""
        if wanted not in self._due:
            self._due[wanted] = asyncio.create_task(self._render(wanted))
        # A waiting caller may be cancelled while others still need the bytes.
        return await asyncio.shield(self._due[wanted])

    async def _render(self, wanted: _Wanted) -> bytes:
        async with self._turn:
            del self._due[wanted]
            return await to_thread.run_sync(self._encoded, wanted, limiter=self._thread)

    def _encoded(self, wanted: _Wanted) -> bytes:
        body = wanted.encode(self._registry)
        return gzip.compress(body, compresslevel=1) if wanted.gzip else body


class ProcessCollector(Collector):
    """Collector that answers each scrape with the version and the live memory of this process."""

    def __init__(self, live: Callable[[], LiveMemory] = live_memory) -> None:
        self._live = live

    def collect(self) -> Iterator[Family]:
        """Yield the families."""
        yield family(pipeline_metrics.BUILD_INFO, [((own_version("unknown"), platform.python_version()), 1)])
        objects, heap_bytes = self._live()
        yield family(pipeline_metrics.SMALL_OBJECTS, [((), objects)])
        if heap_bytes is not None:
            yield family(pipeline_metrics.HEAP_BYTES, [((), heap_bytes)])
