"""Measure how long each question takes at a real ZooKeeper with many partitions: `make bench-questions`.

Each question is a process, as an operator starts it. Kafka's own `kafka-topics.sh --describe --unavailable-partitions`
runs on the same cluster, from 2.8, the last release that asks ZooKeeper itself. `lab.bench.page` measures the pages.
"""

from __future__ import annotations

import base64
import json
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from kazoo.client import KazooClient
from rich.console import Console

from cli.embedded.kafka import kafka_class_path
from cli.embedded.zookeeper import ZooKeeper
from lab.bench.core import BROKERS, replica_lists
from lab.bench.figures import Figure, options, print_listed
from lab.bench.ingest import build, connected, kazoo_reads, states
from streaming.java.installation import find_java
from tests.older_releases import KAFKA_BROKERS, older_jars

QUESTION_SECONDS = {"check": 2.0, "snapshot --json": 1.5, "migration check": 5.0}
OTHER_QUESTIONS_SECONDS = 3.0
OFFLINE = 100  # partitions without a leader
RUNS = 3
TOOL = "kafka-topics.sh --describe --unavailable-partitions"
KAZOO = "kazoo's pipelined reads of every topic and state"
DECODING = "msgspec's decoding of these bytes"
TOOLS_RELEASE = "2.8.2"
TOOLS_HEAP_MB = 1_000
QUESTIONS = (
    "explain topic-00000-0",
    "explain topic-00000",
    "explain topic-00000 --key customer-4711",
    "explain broker 3",
    "explain controller",
    "check",
    "snapshot",
    "snapshot --json",
    "lint",
    "whatif --lose-broker 3",
    "whatif --each",
    "whatif --rolling",
    "place --from-cluster --drain 3",
)


def take_offline(client: KazooClient, partitions: int, gone: int) -> None:
    """Write the states of some partitions as a controller does that has lost their only in-sync replica, `gone`."""
    paths = states(partitions)
    for path in paths[:: max(1, len(paths) // OFFLINE)]:
        content = {"controller_epoch": 7, "leader": -1, "version": 1, "leader_epoch": 1, "isr": [gone]}
        client.set(path, json.dumps(content).encode())


def complete(client: KazooClient) -> None:
    """Give the znodes all that Kafka's own tool reads in them."""
    for name in client.get_children("/brokers/ids"):
        registration = {
            "version": 5,
            "endpoints": [f"PLAINTEXT://b{name}:9092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "host": f"b{name}",
            "port": 9092,
            "jmx_port": -1,
            "timestamp": "1",
            "features": {},
        }
        client.set(f"/brokers/ids/{name}", json.dumps(registration).encode())
    for name in client.get_children("/brokers/topics"):
        content = json.loads(client.get(f"/brokers/topics/{name}")[0])
        content |= {
            "topic_id": base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
            "adding_replicas": {},
            "removing_replicas": {},
        }
        client.set(f"/brokers/topics/{name}", json.dumps(content).encode())


def timed(shown: str, command: list[str], codes: tuple[int, ...], goal: str = "") -> Iterator[Figure]:
    """Yield the time of the fastest of some runs, and its CPU time."""
    runs = []
    for _ in range(RUNS):
        began, used = time.perf_counter(), _children_cpu_seconds()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        runs.append((time.perf_counter() - began, _children_cpu_seconds() - used))
        assert done.returncode in codes, f"{shown}: {done.stdout[-2000:]}{done.stderr}"
    seconds, cpu_seconds = min(runs)
    yield Figure(shown, "s", seconds, goal)
    yield Figure(f"{shown}, CPU", "s", cpu_seconds)


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(zookeeper: ZooKeeper, partitions: int, shown: Console) -> Iterator[Figure]:
    """Measure each question, and Kafka's own tool, one after the other on the same cluster."""
    client = connected(zookeeper)
    try:
        lists = replica_lists(partitions)
        shown.print(f"{len(set(lists)):,} distinct replica lists")
        build(client, partitions, shown, lists.__getitem__, BROKERS)
        complete(client)
        take_offline(client, partitions, gone=BROKERS)
        where = ["--zookeeper", zookeeper.connect_string]
        goals = dict.fromkeys(QUESTIONS, OTHER_QUESTIONS_SECONDS) | QUESTION_SECONDS
        for question, goal in goals.items():
            command = [sys.executable, "-m", "cli", *question.split(), *where]
            yield from timed(f"kontrast {question}", command, (0, 1), f"at most {goal:g}")
        class_path = ":".join(map(str, kafka_class_path(older_jars(KAFKA_BROKERS[TOOLS_RELEASE]))))
        java = [str(find_java()), f"-Xmx{TOOLS_HEAP_MB}m", "-cp", class_path, "kafka.admin.TopicCommand"]
        tool = [*java, *where, "--describe", "--unavailable-partitions"]
        reads = [kazoo_reads(client, partitions) for _ in range(RUNS)]
        yield from timed(TOOL, tool, (0,))
        yield Figure(KAZOO, "s", min(seconds for seconds, _ in reads), "12 times `kontrast snapshot --json`")
        yield Figure(DECODING, "s", min(decode_seconds(contents) for _, contents in reads))
    finally:
        client.stop()
        client.close()


def decode_seconds(contents: Sequence[bytes]) -> float:
    """Return the seconds in which msgspec alone reads the contents as JSON: no reader of znodes is faster."""
    decode = msgspec.json.Decoder().decode
    began = time.perf_counter()
    for content in contents:
        decode(content)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = options(__doc__, 200_000).parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        ZooKeeper(Path(directory), properties={"tickTime": "2000"}, heap_mb=2_000) as zookeeper,
    ):
        measured = list(measure(zookeeper, asked.partitions, Console(stderr=True)))
    title = f"Questions about {asked.partitions:,} partitions, {OFFLINE} without a leader, from a real ZooKeeper"
    print_listed(title, measured, as_json=asked.json)


if __name__ == "__main__":
    main()
