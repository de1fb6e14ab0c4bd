"""What a scrape of a large cluster costs: `kontrast serve` over a journal, measured by a client over HTTP in one run.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine. A time is
from the request to the last byte of the answer, over a persistent connection, like Prometheus's. It excludes the
client's work on the bytes.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from rich.console import Console

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId, ControllerEpoch, PartitionId
from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.contract.outputs import encode_row
from controller.contract.row import Row
from lab.bench.figures import Figure, listed
from tests.dashboards.page_load import ask_and_leave, asking, at_once, slowest_seconds
from tests.rows import NO_COUNTS
from tests.waiting import eventually
from transport.journal import JournalWriter

BROKERS = 30
PARTITIONS_A_TOPIC = 100
VICTIMS_PARTITIONS = 6_000
BOMB = 100_000
SCRAPES = 40
ROWS_A_BATCH = 10_000
DEADLINE_SECONDS = 600
until = partial(eventually, within_seconds=DEADLINE_SECONDS, pause_seconds=0.05)
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
FAMILIES_A_PARTITION = 5
_CLUSTER = "/clusters/bench"
_PAGES = ("topics", "topics/topic-00001", "topics/topic-00001/7", "brokers/2", "controller")
LIVE_PAGES = ("/", _CLUSTER, *(f"{_CLUSTER}/{page}" for page in _PAGES))
TIMELINE = f"{_CLUSTER}/timeline?window=604800"


class Outputs:
    """A made-up cluster's outputs, as the job would write them."""

    def __init__(self, directory: Path, partitions: int, topics: int | None = None, brokers: int = BROKERS) -> None:
        self.directory = directory
        self.partitions = partitions
        self.brokers = brokers
        self._partitions_a_topic = PARTITIONS_A_TOPIC if topics is None else -(-partitions // topics)
        self._seq = count(1)
        self._topics = 0

    def place(self) -> dict[str, Any]:
        seq = next(self._seq)
        return {"cluster": "bench", "generation": 1, "seq": seq, "ordinal": 0, "zxid": seq,
                "time_ms": int(time.time() * 1000)}  # fmt: skip

    def partition(self, at: int, **fields: Any) -> PartitionRow:
        hosts = tuple((at + place) % self.brokers for place in range(3))
        well: dict[str, Any] = {
            "state": "OnlinePartition",
            "leader": hosts[0],
            "leader_epoch": 3,
            "isr": hosts,
            "replicas": hosts,
        }
        topic_number, number = divmod(at, self._partitions_a_topic)
        topic = f"topic-{topic_number:05}"
        return PartitionRow(**self.place(), topic=topic, partition=PartitionId(number), **{**well, **fields})

    def broker(self, broker: int) -> BrokerRow:
        well: dict[str, Any] = {"broker": broker, "registered": True, "epoch": 1, "since_ms": 1}
        endpoints = (f"PLAINTEXT://b{broker}:9092",)
        return BrokerRow(**self.place(), **well, endpoints=endpoints)

    def controller(self) -> ControllerRow:
        return ControllerRow(**self.place(), broker=BrokerId(1), epoch=ControllerEpoch(1), since_ms=1)

    def gauges(self) -> GaugesRow:
        """Return gauges that count one topic more each time, so that a reader can identify them."""
        self._topics += 1
        shares = dict.fromkeys(map(BrokerId, range(self.brokers)), self.partitions // self.brokers)
        states: dict[str, Any] = {"partitions_by_state": {"OnlinePartition": self.partitions}, "replicas_by_state": {}}
        return GaugesRow(
            **self.place(), **NO_COUNTS, **states, ready=True, session="connected",
            watch_mode="persistent", controller=BrokerId(1), controller_epoch=ControllerEpoch(1), controller_changes=1,
            active_brokers=self.brokers, topics=self._topics, partitions=self.partitions,
            leaders_by_broker=shares, replicas_by_broker=shares,
            records={}, elections={}, isr_changes={}, divergences={},
        )  # fmt: skip

    def offline(self, at: int) -> Iterable[Row]:
        trouble: dict[str, Any] = {"state": "OfflinePartition", "leader": -1, "problem": "no_live_in_sync_replica"}
        row = self.partition(at, **trouble, problem_since_ms=at, reason="no live in-sync replica: broker 1 crashed")
        yield row
        yield AlertRow(
            **self.place(), id=f"PartitionsOffline/{at}", alert="PartitionsOffline", state="open",
            severity=Severity.PAGE, subject=f"partition {row.topic}-{row.partition}", group="brokers 1 away",
            since_ms=at, cause="no live in-sync replica: broker 1 crashed",
        )  # fmt: skip

    def write(self, rows: Iterable[Row]) -> int:
        """Append the rows, then a heartbeat. Return its number of topics."""
        by_output: dict[str, list[bytes]] = {}
        for row in rows:
            by_output.setdefault(row.output, []).append(encode_row(row))
        gauges = self.gauges()
        for output, lines in {**by_output, gauges.output: [encode_row(gauges)]}.items():
            with JournalWriter(self.directory / output, batches=True) as journal:
                for at in range(0, len(lines), ROWS_A_BATCH):
                    journal.append_batch(journal.last_batch_id + 1, lines[at : at + ROWS_A_BATCH])
        return gauges.topics


@dataclass(frozen=True, slots=True)
class Scraped:
    """Times of several scrapes of one page, and the last answer's size. 0 omits the size."""

    seconds: list[float]
    size: int = 0

    def figures(self, name: str, goal: str = "") -> Iterator[Figure]:
        yield Figure(name, "ms", statistics.median(self.seconds) * 1000, goal)
        yield Figure(f"{name}, slowest of {len(self.seconds)}", "ms", max(self.seconds) * 1000)
        if self.size:
            yield Figure(f"{name}, size", "bytes", self.size)


class Exporter:
    """A separate `kontrast serve` with a client."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self._log = directory.parent / f"serve-{len(flags)}.log"
        command = [sys.executable, "-m", "cli", "serve", "--from", f"journal:{directory}", "--listen", "127.0.0.1:0"]
        self.started = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, *flags], stderr=log, cwd=Path(__file__).parents[2])
        found = until(lambda: re.search(r"metrics: http://([^/]+)/metrics", self._log.read_text()))
        assert found is not None
        self.address = f"http://{found[1]}"
        self._connection = http.client.HTTPConnection(found[1], timeout=DEADLINE_SECONDS)

    def get(self, path: str, **headers: str) -> bytes:
        """Return the answer's body as it came over the wire."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self._connection.request("GET", path, headers=named)
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # the server closes a connection after some seconds without a request
            self._connection.close()
            self._connection.request("GET", path, headers=named)
            answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body)
        return body

    def scrape(self, path: str, times: int = SCRAPES, **headers: str) -> Scraped:
        """Ask again and again."""
        seconds, body = [], b""
        for _ in range(times):
            started = time.perf_counter()
            body = self.get(path, **headers)
            seconds.append(time.perf_counter() - started)
        return Scraped(seconds, len(body))

    def value(self, sample: str) -> float | None:
        """Return the sample's value on /metrics, or None before it exists."""
        found = re.search(rf"^{re.escape(sample)} (\S+)$", self.get("/metrics").decode(), re.MULTILINE)
        return float(found[1]) if found else None

    def wait_for(self, topics: int) -> None:
        """Return when the exporter has read the heartbeat that counts so many topics."""
        until(lambda: self.value('kontrast_topics{kafka_cluster="bench"}') == topics)

    def wait_for_page(self, line: str) -> None:
        """Return when the partitions' page has this line."""
        sought = line.encode()
        until(lambda: sought in gzip.decompress(self.get("/metrics/partitions", Accept_Encoding="gzip")))

    def render_seconds(self) -> float:
        return self.value("kontrast_partitions_page_render_seconds") or 0.0

    def memory_bytes(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (kilobytes,) = re.findall(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return 1024 * int(kilobytes)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@contextmanager
def exporter(directory: Path, *flags: str) -> Iterator[Exporter]:
    running = Exporter(directory, *flags)
    try:
        yield running
    finally:
        running.end()


def figures(outputs: Outputs) -> Iterator[Figure]:
    """Yield all scenarios."""
    brokers = [*map(outputs.broker, range(BROKERS)), outputs.controller()]
    topics = outputs.write([*brokers, *map(outputs.partition, range(outputs.partitions))])
    with exporter(outputs.directory) as small:
        small.wait_for(topics)
        yield Figure("started, everything read", "s", time.perf_counter() - small.started)
        yield Figure("memory without the partitions' page", "MB", small.memory_bytes() / 1e6)
    with exporter(outputs.directory, "--partitions-page", "--jmx-page") as running:
        running.wait_for(topics)
        running.wait_for_page(page_line("leader_epoch", outputs.partitions - 1, 3))
        yield from pages(running)
        yield from rendering(running, outputs)
        yield from load(running)
        yield Figure("memory with the partitions' page", "MB", running.memory_bytes() / 1e6)
        yield from storm(running, outputs)
        yield from bomb(running, outputs)
    yield Figure("the same series by prometheus-client", "s", by_prometheus_client(outputs))


def page_line(name: str, at: int, value: int) -> str:
    labels = f'topic="topic-{at // PARTITIONS_A_TOPIC:05}",partition="{at % PARTITIONS_A_TOPIC}"'
    return f'kontrast_partition_{name}{{kafka_cluster="bench",{labels}}} {value}\n'


def pages(running: Exporter) -> Iterator[Figure]:
    """Yield each page without changes."""
    yield from running.scrape("/metrics").figures("/metrics", "at most 50")
    yield from running.scrape("/metrics", Accept=OPENMETRICS, Accept_Encoding="gzip").figures(
        "/metrics, OpenMetrics, gzip", "at most 50"
    )
    yield from running.scrape("/metrics/partitions", Accept_Encoding="gzip").figures(
        "/metrics/partitions, gzip", "at most 150"
    )
    yield from running.scrape("/metrics/partitions", times=5).figures("/metrics/partitions, plain")
    yield from running.scrape("/metrics/jmx", Accept_Encoding="gzip").figures("/metrics/jmx, gzip", "at most 50")
    yield from running.scrape("/sd/brokers").figures("/sd/brokers")
    for path in LIVE_PAGES:
        yield from running.scrape(path).figures(path, "at most 100")
    yield from running.scrape(f"{LIVE_PAGES[1]}/consequences?broker=2", times=2).figures("the loss of a broker, asked")


def load(running: Exporter) -> Iterator[Figure]:
    """Yield health and metrics during requests for pages, and the memory for slow readers."""
    with at_once(running.address, TIMELINE, 60) as (busy, _):
        slowest = slowest_seconds(running.address, busy)
    for path, seconds in slowest.items():
        yield Figure(f"{path} beside 60 timelines, slowest", "s", seconds, "at most 0.5")
    ask_and_leave(running.address, TIMELINE, 250)
    with at_once(running.address, TIMELINE, 1) as (busy, _):
        slowest = slowest_seconds(running.address, busy)
    for path, seconds in slowest.items():
        yield Figure(f"{path} after 250 closed requests, slowest", "s", seconds, "at most 0.5")
    before_bytes = running.memory_bytes()
    with ExitStack() as readers:
        for _ in range(120):
            connection = asking(running.address, "/metrics/partitions", receive_bytes=4096)
            readers.enter_context(connection)
            connection.recv(1)
        yield Figure("memory of 120 slow readers", "MB", (running.memory_bytes() - before_bytes) / 1e6)


def rendering(running: Exporter, outputs: Outputs) -> Iterator[Figure]:
    """Yield the cost of an update of the page."""
    yield Figure("render all", "ms", running.render_seconds() * 1000)
    outputs.write([outputs.partition(0, leader_epoch=4)])
    started = time.perf_counter()
    running.wait_for_page(page_line("leader_epoch", 0, 4))
    yield Figure("one change is on the page after", "s", time.perf_counter() - started)
    yield Figure("render one change", "ms", running.render_seconds() * 1000)
    victims = range(0, outputs.partitions, max(1, outputs.partitions // VICTIMS_PARTITIONS))
    outputs.write([outputs.partition(at, leader_epoch=5) for at in victims])
    running.wait_for_page(page_line("leader_epoch", victims[-1], 5))
    yield Figure(f"render a broker's death, {len(victims):,} partitions", "ms", running.render_seconds() * 1000)
    running.scrape(TIMELINE, times=1)  # the first request makes the exporter read the transitions
    yield from running.scrape(TIMELINE).figures("the timeline behind it", "at most 100")


def storm(running: Exporter, outputs: Outputs) -> Iterator[Figure]:
    """Yield /metrics while thousands of partitions all over the cluster change every second, and the page too."""
    seconds: list[float] = []
    cpu_seconds, began = running.cpu_seconds(), time.perf_counter()
    step = max(1, outputs.partitions // 2_000)
    for epoch in range(20):
        outputs.write([outputs.partition(at, leader_epoch=10 + epoch) for at in range(0, outputs.partitions, step)])
        seconds += running.scrape("/metrics", times=5, Accept_Encoding="gzip").seconds
        time.sleep(0.5)
    took = time.perf_counter() - began
    yield from Scraped(seconds).figures("/metrics while partitions change")
    yield Figure("CPU meanwhile", "%", 100 * (running.cpu_seconds() - cpu_seconds) / took)


def bomb(running: Exporter, outputs: Outputs) -> Iterator[Figure]:
    """Yield /metrics with very many offline partitions, each with an alert, at the first scrape and later."""
    many = min(BOMB, outputs.partitions)
    running.wait_for(outputs.write(row for at in range(many) for row in outputs.offline(at)))
    yield from running.scrape("/metrics").figures(f"/metrics with {many:,} partitions offline", "at most 50")
    yield from running.scrape(LIVE_PAGES[1]).figures(f"{LIVE_PAGES[1]} with as many", "at most 100")
    seconds: list[float] = []
    for at in range(10):
        running.wait_for(outputs.write(outputs.offline(at)))
        outputs.write(outputs.offline(at))
        time.sleep(0.3)
        seconds += running.scrape("/metrics", times=1).seconds
    yield from Scraped(seconds).figures(f"/metrics with {many:,} partitions offline, just changed")


def by_prometheus_client(outputs: Outputs) -> float:
    """Return the seconds in which prometheus-client writes as many series with the same labels."""
    registry = CollectorRegistry()
    families = [
        Gauge(f"family_{number}", "A family.", ("kafka_cluster", "topic", "partition"), registry=registry)
        for number in range(FAMILIES_A_PARTITION)
    ]
    for family in families:
        for at in range(outputs.partitions):
            family.labels("bench", f"topic-{at // PARTITIONS_A_TOPIC:05}", str(at % PARTITIONS_A_TOPIC)).set(1)
    started = time.perf_counter()
    generate_latest(registry)
    return time.perf_counter() - started


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=200_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outputs = Path(directory) / "outputs"
        outputs.mkdir()
        measured = list(figures(Outputs(outputs, asked.partitions)))
    if asked.json:
        print(json.dumps({figure.name: [figure.value, figure.unit] for figure in measured}, indent=2))
    else:
        title = f"kontrast serve, {asked.partitions:,} partitions, {BROKERS} brokers"
        Console().print(listed(title, measured))


if __name__ == "__main__":
    main()
