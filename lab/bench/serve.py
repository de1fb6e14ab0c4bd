"""A `kontrast serve` of its own over the outputs of a made-up cluster, seen over HTTP."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.contract.outputs import encode_row
from controller.contract.row import Row
from tests.rows import Rows
from tests.waiting import eventually
from transport.journal import JournalWriter

BROKERS = 30
PARTITIONS_A_TOPIC = 100
ROWS_A_BATCH = 10_000
DEADLINE_SECONDS = 600
until = partial(eventually, within_seconds=DEADLINE_SECONDS, pause_seconds=0.05)


class Outputs:
    """A made-up cluster's outputs, as the job would write them."""

    def __init__(self, directory: Path, partitions: int) -> None:
        self.directory = directory
        self.partitions = partitions
        self._rows = Rows()
        self._topics = 0

    def partition(self, at: int, **fields: Any) -> PartitionRow:
        return self._rows.partition(*self._name(at), **{**self._now(), **self._hosts(at), **fields})

    def broker(self, broker: int) -> BrokerRow:
        return self._rows.broker(broker, **self._now(), endpoints=(f"PLAINTEXT://b{broker}:9092",))

    def controller(self) -> ControllerRow:
        return self._rows.controller(1, **self._now())

    def gauges(self) -> GaugesRow:
        """Return gauges that count one topic more each time, so that a reader can identify them."""
        self._topics += 1
        shares = dict.fromkeys(range(BROKERS), self.partitions // BROKERS)
        counts = {"active_brokers": BROKERS, "topics": self._topics, "partitions": self.partitions}
        return self._rows.gauges(**self._now(), **counts, leaders_by_broker=shares, replicas_by_broker=shares)

    def offline(self, at: int) -> Iterable[Row]:
        topic, number = self._name(at)
        why = "no live in-sync replica: broker 1 crashed"
        trouble = {"problem_since_ms": at, "reason": why, "leader": -1}
        yield self._rows.offline(topic, number, **{**self._now(), **self._hosts(at), **trouble})
        about: dict[str, Any] = {
            "subject": f"partition {topic}-{number}",
            "group": "brokers 1 away",
            "since_ms": at,
            "cause": why,
        }
        yield self._rows.alert(f"PartitionsOffline/{at}", **self._now(), **about)

    def _now(self) -> dict[str, Any]:
        return {"cluster": "bench", "time_ms": int(time.time() * 1000)}

    def _name(self, at: int) -> tuple[str, int]:
        topic, number = divmod(at, PARTITIONS_A_TOPIC)
        return f"topic-{topic:05}", number

    def _hosts(self, at: int) -> dict[str, Any]:
        hosts = tuple((at + place) % BROKERS for place in range(3))
        return {"leader": hosts[0], "leader_epoch": 3, "isr": hosts, "replicas": hosts}

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


class Serve:
    """A separate `kontrast serve` with a client."""

    def __init__(self, directory: Path) -> None:
        self._log = directory.parent / "serve.log"
        command = [sys.executable, "-m", "cli", "serve", "--from", f"journal:{directory}", "--listen", "127.0.0.1:0"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log, cwd=Path(__file__).parents[2])
        found = until(lambda: re.search(r"metrics: http://([^/]+)/metrics", self._log.read_text()))
        assert found is not None
        self.address = f"http://{found[1]}"
        self._connection = http.client.HTTPConnection(found[1], timeout=DEADLINE_SECONDS)

    def get(self, path: str) -> bytes:
        """Return the answer's body as it came over the wire."""
        try:
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # the server closes a connection after some seconds without a request
            self._connection.close()
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body)
        return body

    def value(self, sample: str) -> float | None:
        """Return the sample's value on /metrics, or None before it exists."""
        found = re.search(rf"^{re.escape(sample)} (\S+)$", self.get("/metrics").decode(), re.MULTILINE)
        return float(found[1]) if found else None

    def wait_for(self, topics: int) -> None:
        """Return when it has read the heartbeat that counts so many topics."""
        until(lambda: self.value('kontrast_topics{kafka_cluster="bench"}') == topics)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@contextmanager
def serving(directory: Path) -> Iterator[Serve]:
    running = Serve(directory)
    try:
        yield running
    finally:
        running.end()
