"""Kontrast beside a real controller on the same cores: from nothing to complete gauges, and the loss of a broker.

The controller is a broker of Kafka 3.9.2 without partitions. All other brokers are registered and never answer, so
Kontrast shares its cores with ZooKeeper and the controller alone. ZooKeeper dates the controller's writes, and the
journals show Kontrast's rows. Times of a loss count from the close of the broker's session.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from kazoo.client import KazooClient
from rich.console import Console

from cli.embedded.java import EmbeddedServer, java_command
from cli.embedded.kafka import KafkaBroker, kafka_class_path
from cli.embedded.process import ChildProcess
from cli.embedded.zookeeper import ZooKeeper
from lab.bench.core import BROKERS, Replicas, replica_lists
from lab.bench.figures import Figure, machine, options, print_listed
from lab.bench.ingest import build, connected, states
from lab.bench.job import Job
from lab.bench.questions import complete
from lab.record.registered import Heartbeats, RegisteredBroker
from streaming.java.artifacts import KAFKA_BROKER, jars
from streaming.spark_class_archive import make as make_class_archive
from tests.waiting import eventually
from transport.journal_reading import end_offset, read_journal

CONTROLLER = 1_000
CONTROLLER_HEAP_MB = 4_000  # the controller keeps unanswered requests to 100 brokers
SERVES = b"Ready to serve as the new controller"
LOAD_SECONDS = 600
LOSSES = 3
CALM_SECONDS = 15.0  # longer than the writes of a loss, and than the heartbeats that write its state
ZNODE_VERSION = 5
STREAM_BYTES = 64 * 1024**2


class Controller(KafkaBroker):
    """A broker that holds no partition, with memory for a large cluster."""

    def __init__(self, zookeeper: ZooKeeper, directory: Path) -> None:
        super().__init__(CONTROLLER, zookeeper.connect_string, directory)
        command = java_command(
            "kafka.Kafka",
            self._configuration,
            class_path=kafka_class_path(jars(KAFKA_BROKER)),
            heap_mb=CONTROLLER_HEAP_MB,
        )
        EmbeddedServer.__init__(self, "controller", command, directory / "broker.log")

    @property
    def serves(self) -> bool:
        """Return whether the controller has loaded the cluster."""
        return SERVES in self.log.read_bytes()


class Beside:
    """A cluster in ZooKeeper, its controller, and a `kontrast watch` and job that follow it."""

    def __init__(self, directory: Path, zookeeper: ZooKeeper, lists: list[Replicas], brokers: int) -> None:
        self._lists = lists
        self._directory = directory
        self._brokers = [
            RegisteredBroker(number, ("127.0.0.1", zookeeper.port), ZNODE_VERSION) for number in range(brokers)
        ]
        self._controller = Controller(zookeeper, directory / "controller")
        self._job = Job(directory / "job", [])
        self._stream = directory / "job" / "records"
        command = [sys.executable, "-m", "cli", "watch", "--cluster", "bench", "--to", f"journal:{self._stream}"]
        command += ["--zookeeper", zookeeper.connect_string]
        self._watch = ChildProcess("kontrast watch", command, directory / "watch.log")

    def figures(self, client: KazooClient) -> Iterator[Figure]:
        """Yield the start and the losses."""
        heartbeats = Heartbeats(self._brokers)
        with ExitStack() as running:
            for broker in self._brokers:
                broker.register()
                running.callback(broker.close)
            heartbeats.start()
            running.callback(heartbeats.end)
            running.callback(self._controller.kill)
            running.callback(self._watch.kill)
            yield from self._start(running)
            time.sleep(CALM_SECONDS)
            losses = [self._lose(broker, client) for broker in self._brokers[:LOSSES]]
            for name, goal in GOALS.items():
                yield Figure(f"a loss: {name}", "s", median(loss[name] for loss in losses), goal)

    def _start(self, running: ExitStack) -> Iterator[Figure]:
        began = time.perf_counter()
        self._controller.launch()
        self._watch.launch()
        running.enter_context(self._job.running())
        self._job.until_row("gauges", lambda row: row.ready)
        yield Figure("start: gauges are complete", "s", time.perf_counter() - began, "at most 10.5")
        eventually(lambda: self._controller.serves, within_seconds=LOAD_SECONDS, pause_seconds=0.1)
        yield Figure("start: the controller serves", "s", time.perf_counter() - began)

    def _lose(self, broker: RegisteredBroker, client: KazooClient) -> dict[str, float]:
        """Return the times of each stage of a loss."""
        for name in ("alerts", "metadata"):
            for _ in self._job.outputs[name].read():
                pass  # skip rows of earlier events
        offset = end_offset(self._stream)
        closed_at, began = time.time(), time.perf_counter()
        broker.close()
        self._job.until(lambda: end_offset(self._stream) > offset)
        forwarded = time.perf_counter() - began
        (seq, *_) = (json.loads(line)["seq"] for line in read_journal(self._stream, offset, STREAM_BYTES).lines)
        self._job.until_row("alerts", lambda row: row.seq >= seq)
        alerted = time.perf_counter() - began
        self._job.until_row("metadata", lambda row: row.seq >= seq)
        told = time.perf_counter() - began
        time.sleep(CALM_SECONDS)
        written = sorted(at - closed_at for at in self._writes(broker.broker_id, client) if at > closed_at)
        return dict(zip(GOALS, (written[0], median(written), written[-1], forwarded, alerted, told), strict=True))

    def _writes(self, broker: int, client: KazooClient) -> Iterator[float]:
        """Yield the time of the last write of each partition that the broker has."""
        paths = states(len(self._lists))
        on_broker = [path for path, replicas in zip(paths, self._lists, strict=True) if broker in replicas]
        for answer in [client.exists_async(path) for path in on_broker]:
            yield answer.get().mtime / 1_000


GOALS = {
    "the controller's first write": "",
    "the controller's median write": "",
    "the controller's last write": "",
    "the broker's absence is in the stream": "",
    "the alert is out": "at most 0.6",
    "all rows are out": "",
}


def measure(partitions: int, shown: Console) -> list[Figure]:
    """Build the cluster and measure."""
    lists = replica_lists(partitions)
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        ZooKeeper(Path(directory, "zookeeper"), properties={"tickTime": "2000"}, heap_mb=2_000) as zookeeper,
    ):
        client = connected(zookeeper)
        build(client, partitions, shown, lists.__getitem__, brokers=0)
        complete(client)
        client.delete("/controller")
        figures = list(Beside(Path(directory), zookeeper, lists, BROKERS).figures(client))
        client.stop()
        return figures


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = options(__doc__, 200_000).parse_args()
    make_class_archive()  # an installation has the archive, too
    figures = measure(asked.partitions, Console(stderr=True))
    title = f"Beside a real controller, {asked.partitions:,} partitions; {machine()}, load {os.getloadavg()[0]:.1f}"
    print_listed(title, figures, as_json=asked.json)


if __name__ == "__main__":
    main()
