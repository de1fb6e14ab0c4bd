"""Times of the live page: `kontrast serve` over a journal, real browsers that open it, and clients that keep it open.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine. A first
paint is chromium's own, of a browser without a cache. The processor's time of an update is the server's with clients,
less its time for the same updates without clients. A client does as the page's script does: it follows the changes as
server-sent events and asks for the page after each.
"""

from __future__ import annotations

import http.client
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from lab.bench.figures import Figure, options, print_by_size
from lab.bench.serve import BROKERS, DEADLINE_SECONDS, Outputs, Serve, serving
from tests.programs import program
from tests.waiting import eventually

CLIENTS = 50
UPDATES = 20
PAINTS = 5
_CLUSTER = "/clusters/bench"
PAGES = ("/", *(f"{_CLUSTER}{page}" for page in ("", "/topics", "/timeline?window=900", "/consequences?broker=3")))
# Partitions offline, each with an alert. In a cluster with fewer partitions, all of them.
CASES = {"healthy": 0, "an incident": 200, "100,000 partitions offline": 100_000}
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_PAINT_GOAL = "at most 300"
_UPDATE_GOAL = "at most 50"


class Viewer:
    """A client that follows the changes of a cluster and asks for its page after each."""

    def __init__(self, address: str) -> None:
        self._host = address.removeprefix("http://")
        self.pages = 0
        self.bytes = 0
        self._stop = threading.Event()
        self._stream = http.client.HTTPConnection(self._host, timeout=DEADLINE_SECONDS)
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Viewer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._stream.sock is not None:
            self._stream.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(DEADLINE_SECONDS)

    def _follow(self) -> None:
        asking = http.client.HTTPConnection(self._host, timeout=DEADLINE_SECONDS)
        self._stream.request("GET", "/changes?cluster=bench&seen=0", headers={"Accept": "text/event-stream"})
        events = self._stream.getresponse()
        while True:
            line = events.readline()
            if self._stop.is_set() or not line:
                return
            if not line.startswith(b"event: changed"):
                continue
            asking.request("GET", _CLUSTER, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
            answer = asking.getresponse()
            self.bytes = len(answer.read())
            assert answer.status == 200
            self.pages += 1


@contextmanager
def viewers(address: str, count: int) -> Iterator[list[Viewer]]:
    """Let so many clients view the cluster."""
    every = [Viewer(address) for _ in range(count)]
    for viewer in every:
        viewer.__enter__()
    try:
        yield every
    finally:
        for viewer in every:
            viewer.__exit__()


def paints(browser: Browser, address: str, case: str) -> Iterator[Figure]:
    """Yield the first paint of each page, in browsers without a cache."""
    for path in PAGES:
        found = []
        for _ in range(PAINTS):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            page = context.new_page()
            page.goto(address + path)
            found.append(eventually(partial(page.evaluate, _PAINT)))
            context.close()
        name = f"{case}: first paint of {path}"
        yield Figure(name, "ms", statistics.median(found), _PAINT_GOAL)
        yield Figure(f"{name}, slowest of {PAINTS}", "ms", max(found))


def update_milliseconds(running: Serve, outputs: Outputs, clients: int) -> tuple[float, int]:
    """Return the server's processor time of an update with so many clients, and the size of their page."""
    with viewers(running.address, clients) as every:
        eventually(lambda: all(viewer.pages for viewer in every), within_seconds=DEADLINE_SECONDS)
        began_seconds = running.cpu_seconds()
        for update in range(UPDATES):
            seen = [viewer.pages for viewer in every]
            ends_at = time.monotonic() + 1  # as heartbeats come
            outputs.write([outputs.partition(update, leader_epoch=100 + update)])
            eventually(partial(_have_newer, every, seen), within_seconds=DEADLINE_SECONDS)
            time.sleep(max(0.0, ends_at - time.monotonic()))
        took_seconds = running.cpu_seconds() - began_seconds
        return 1000 * took_seconds / UPDATES, max((viewer.bytes for viewer in every), default=0)


def _have_newer(every: Sequence[Viewer], seen: Sequence[int]) -> bool:
    return all(viewer.pages > before for viewer, before in zip(every, seen, strict=True))


def updates(running: Serve, outputs: Outputs, case: str) -> Iterator[Figure]:
    """Yield the cost of an update without clients and with many."""
    alone, _ = update_milliseconds(running, outputs, 0)
    with_clients, size = update_milliseconds(running, outputs, CLIENTS)
    yield Figure(f"{case}: processor, an update without clients", "ms", alone)
    yield Figure(f"{case}: processor, an update with {CLIENTS} clients", "ms", with_clients, _UPDATE_GOAL)
    yield Figure(f"{case}: processor, that {CLIENTS} clients add", "ms", with_clients - alone)
    yield Figure(f"{case}: page that a client receives", "bytes", size)


def figures(outputs: Outputs) -> Iterator[Figure]:
    """Yield all scenarios."""
    brokers = [*map(outputs.broker, range(BROKERS)), outputs.controller()]
    topics = outputs.write([*brokers, *map(outputs.partition, range(outputs.partitions))])
    with serving(outputs.directory) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        running.wait_for(topics)
        for case, offline in CASES.items():
            lost = range(min(offline, outputs.partitions))
            running.wait_for(outputs.write(row for at in lost for row in outputs.offline(at)))
            yield from paints(browser, running.address, case)
            yield from updates(running, outputs, case)
        browser.close()


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = options(__doc__, 12_000, 200_000).parse_args()
    measured = {}
    for partitions in asked.partitions:
        with tempfile.TemporaryDirectory() as directory:
            outputs = Path(directory) / "outputs"
            outputs.mkdir()
            measured[partitions] = list(figures(Outputs(outputs, partitions)))
    title = f"the page of {BROKERS} brokers, by number of partitions"
    print_by_size(title, list(measured), list(measured.values()), as_json=asked.json)


if __name__ == "__main__":
    main()
