"""What watching a large cluster costs: Kontrast's reads and watches beside kazoo's own, on a real ZooKeeper in one run.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine, and the
ratios less so. Complete reads are kazoo's pipelined ones and Kontrast's. A separate `kontrast watch` serves for all
later events, measured from the outside by its journal.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kazoo.client import KazooClient
from rich.console import Console
from rich.progress import track

from cli.embedded.process import ChildProcess
from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import Record, RecordKind, decode_record
from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from ingest.observed.paths import WATCHED
from lab.bench.core import PARTITIONS_A_TOPIC, Replicas
from lab.bench.figures import Figure, options, print_listed
from tests.relay import Relay
from tests.waiting import eventually
from transport.journal_reading import end_offset, read_journal

BROKERS = 30
IN_FLIGHT = 1_000
SINGLE_CHANGES = 300
DEADLINE_SECONDS = 600
until = partial(eventually, within_seconds=DEADLINE_SECONDS, pause_seconds=0.001)


def topic(number: int) -> str:
    return f"topic-{number:05}"


def states(partitions: int) -> list[str]:
    """Return the state znodes of the made-up cluster."""
    return [
        f"/brokers/topics/{topic(at // PARTITIONS_A_TOPIC)}/partitions/{at % PARTITIONS_A_TOPIC}/state"
        for at in range(partitions)
    ]


def hosts_of(at: int) -> Replicas:
    """Return the replicas of a partition, three neighbours."""
    return tuple((at + place) % BROKERS for place in range(3))


def state(at: int, epoch: int) -> bytes:
    return state_on(hosts_of(at), epoch)


def state_on(hosts: Replicas, epoch: int) -> bytes:
    content = {"controller_epoch": 7, "leader": hosts[0], "version": 1, "leader_epoch": epoch, "isr": hosts}
    return json.dumps(content).encode()


def build(
    client: KazooClient,
    partitions: int,
    shown: Console,
    replicas: Callable[[int], Replicas] = hosts_of,
    brokers: int = BROKERS,
) -> None:
    """Make the cluster's znodes, a topic a transaction."""
    for parent in ("/brokers/ids", "/brokers/topics", "/admin/delete_topics", "/config/topics"):
        client.ensure_path(parent)
    client.create("/controller_epoch", b"7")
    client.create("/controller", b'{"version":2,"brokerid":0,"timestamp":"1"}', ephemeral=True)
    for broker in range(brokers):
        endpoints = json.dumps({"version": 5, "jmx_port": -1, "endpoints": [f"PLAINTEXT://b{broker}:9092"]}).encode()
        client.create(f"/brokers/ids/{broker}", endpoints, ephemeral=True)
    for number in track(range(partitions // PARTITIONS_A_TOPIC), "build", console=shown, transient=True):
        path = f"/brokers/topics/{topic(number)}"
        first = number * PARTITIONS_A_TOPIC
        hosts = {at: replicas(first + at) for at in range(PARTITIONS_A_TOPIC)}
        transaction = client.transaction()
        transaction.create(
            path,
            json.dumps({"version": 3, "topic_id": f"{zlib.crc32(path.encode()):022}", "partitions": hosts}).encode(),
        )
        transaction.create(f"{path}/partitions")
        for at in range(PARTITIONS_A_TOPIC):
            transaction.create(f"{path}/partitions/{at}")
            transaction.create(f"{path}/partitions/{at}/state", state_on(hosts[at], 0))
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        assert not failed, failed[0]


def connected(zookeeper: ZooKeeper) -> KazooClient:
    client = KazooClient(zookeeper.connect_string, timeout=60)
    client.start(timeout=60)
    return client


def kazoo_reads(client: KazooClient, partitions: int) -> tuple[float, list[bytes]]:
    """Return the seconds in which kazoo reads every topic and state, with its own number in flight, and their bytes."""
    started = time.perf_counter()
    topics = client.get_children("/brokers/topics")
    waiting = deque(client.get_async(f"/brokers/topics/{name}") for name in topics)
    contents = []
    for path in states(partitions):
        waiting.append(client.get_async(path))
        if len(waiting) >= IN_FLIGHT:
            contents.append(waiting.popleft().get()[0])
    contents += [result.get()[0] for result in waiting]
    return time.perf_counter() - started, contents


def server_watches(zookeeper: ZooKeeper) -> int:
    """Return the server's number of watches."""
    answer = zookeeper.ask("mntr")
    return int(next(line for line in answer.splitlines() if line.startswith("zk_watch_count")).split()[1])


def change_all(connect_string: str, paths: list[str], epoch: int) -> None:
    """Write these states once. A separate process runs this, so that it slows no watcher."""
    client = KazooClient(connect_string, timeout=60)
    client.start(timeout=60)
    waiting = []
    for at, path in enumerate(paths):
        waiting.append(client.set_async(path, state(at, epoch)))
        if len(waiting) >= IN_FLIGHT:
            waiting.pop(0).get()
    for result in waiting:
        result.get()
    client.stop()


def burst(zookeeper: ZooKeeper, paths: list[str], epoch: int, done: Callable[[], bool]) -> float:
    """Return the seconds from the first of many changes until all are known."""
    writing = multiprocessing.get_context("spawn").Process(
        target=change_all, args=(zookeeper.connect_string, paths, epoch)
    )
    started = time.perf_counter()
    writing.start()
    until(done)
    writing.join()
    return time.perf_counter() - started


class Journal:
    """The records that a `kontrast watch` publishes, as they come."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset = 0
        self.read: dict[int, set[str]] = defaultdict(set)  # leader epoch -> the states that arrived with it
        self.mzxids: dict[str, int] = {}
        self.kinds: dict[RecordKind, int] = {}
        self.nodes = 0

    def follow(self) -> None:
        """Take the newly arrived records."""
        while self._offset < end_offset(self._directory):
            batch = read_journal(self._directory, self._offset, 1 << 24)
            self._offset = batch.next_offset
            for line in batch.lines:
                self._take(decode_record(line))

    def _take(self, record: Record) -> None:
        self.kinds[record.kind] = self.kinds.get(record.kind, 0) + 1
        if record.kind is RecordKind.NODE:
            self.nodes += 1
            self.mzxids[record.path] = record.mzxid
            if record.path.endswith("/state"):
                self.read[json.loads(record.data or "{}")["leader_epoch"]].add(record.path)

    def has_read(self, epoch: int, count: int) -> bool:
        self.follow()
        return len(self.read[epoch]) >= count

    def has(self, kind: RecordKind, count: int = 1) -> bool:
        self.follow()
        return self.kinds.get(kind, 0) >= count


def readings(zookeeper: ZooKeeper, client: KazooClient, partitions: int) -> Iterator[Figure]:
    """Yield a complete read, then the figures of a watcher."""
    pipelined, _ = kazoo_reads(client, partitions)
    started = time.perf_counter()
    read = read_once(ZooKeeperConfig(zookeeper=zookeeper.connect_string), threading.Event())
    ours = time.perf_counter() - started
    assert len(read.values) >= partitions + partitions // PARTITIONS_A_TOPIC
    yield Figure("complete read by kazoo, pipelined", "s", pipelined)
    yield Figure("complete read", "s", ours, "a 25th of the pipelined reads")
    paths = states(partitions)[: min(20_000, partitions)]
    yield from _watched(zookeeper, client, paths)
    yield from _cut_off(zookeeper, client, paths)


def _watched(zookeeper: ZooKeeper, client: KazooClient, paths: list[str]) -> Iterator[Figure]:
    """Yield the figures of a watcher that stays connected."""
    with _watching(zookeeper.port) as journal:
        yield Figure("watches on the server", "", server_watches(zookeeper), f"one a watched subtree, {len(WATCHED)}")
        ours = burst(zookeeper, paths, 2, lambda: journal.has_read(2, len(paths)))
        yield Figure(f"burst of {len(paths):,} changes, all known", "s", ours)
        latencies = sorted(_single_changes(client, journal, paths))
        yield Figure("a change, to the sink's acknowledgement, p50", "ms", statistics.median(latencies))
        yield Figure("the same, p99", "ms", latencies[int(len(latencies) * 0.99)], "at most 25")


def _cut_off(zookeeper: ZooKeeper, client: KazooClient, paths: list[str]) -> Iterator[Figure]:
    """Yield the figures of a watcher that loses its connection."""
    with Relay(zookeeper.port) as relay, _watching(relay.port) as journal:
        yield from _resync(relay, client, journal, paths)


@contextmanager
def _watching(port: int) -> Iterator[Journal]:
    """Run a `kontrast watch` that has read everything. Yield its journal."""
    with tempfile.TemporaryDirectory() as directory:
        changes = Path(directory) / "changes"
        command = [sys.executable, "-m", "cli", "watch", "--cluster", "bench", "--to", f"journal:{changes}"]
        command += ["--resync-jitter-seconds", "0"]  # the pause is a setting, and the rest is the cost
        watch = ChildProcess(
            "kontrast watch", [*command, "--zookeeper", f"127.0.0.1:{port}"], Path(directory) / "watch.log"
        )
        journal = Journal(changes)
        watch.launch()
        try:
            until(lambda: changes.is_dir() and journal.has(RecordKind.SNAPSHOT_END))
            yield journal
        finally:
            watch.kill()


def _single_changes(client: KazooClient, journal: Journal, paths: list[str]) -> Iterator[float]:
    for at in range(SINGLE_CHANGES):
        time.sleep(0.02)
        started = time.perf_counter()
        changed = client.set(paths[at], state(at, 3)).mzxid

        def is_told(path: str = paths[at], zxid: int = changed) -> bool:
            journal.follow()
            return journal.mzxids[path] == zxid

        until(is_told)
        yield (time.perf_counter() - started) * 1_000


def _resync(relay: Relay, client: KazooClient, journal: Journal, paths: list[str]) -> Iterator[Figure]:
    sessions = journal.kinds.get(RecordKind.SESSION, 0)
    relay.close_door()
    until(lambda: journal.has(RecordKind.SESSION, sessions + 1))  # it reports the lost connection
    client.set(paths[0], state(0, 4))
    nodes = journal.nodes
    started = time.perf_counter()
    relay.open_door()
    until(lambda: journal.has(RecordKind.SESSION, sessions + 2))  # it reports that it is in step again
    yield Figure("in step again after a lost connection", "s", time.perf_counter() - started)
    yield Figure("records published for the one change meanwhile", "", journal.nodes - nodes, "1")


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = options(__doc__, 200_000).parse_args()
    shown = Console(stderr=True)
    # The heap that an embedded ZooKeeper gets else is for small clusters.
    with (
        tempfile.TemporaryDirectory() as directory,
        ZooKeeper(Path(directory), properties={"tickTime": "2000"}, heap_mb=2_000) as zookeeper,
    ):
        client = connected(zookeeper)
        build(client, asked.partitions, shown)
        measured = list(readings(zookeeper, client, asked.partitions))
        client.stop()
    title = f"Watching {asked.partitions:,} partitions of a real ZooKeeper"
    print_listed(title, measured, as_json=asked.json)


if __name__ == "__main__":
    main()
