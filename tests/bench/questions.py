"""Measure how long each question takes at a real ZooKeeper with many partitions: `make bench-questions`.

A process each, as an operator starts it, beside Kafka's own `kafka-topics.sh --describe --unavailable-partitions` (of
2.8, the last that asks ZooKeeper itself) on the same cluster.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from kazoo.client import KazooClient
from rich.console import Console
from rich.table import Table

from cli.embedded.kafka import kafka_class_path
from cli.embedded.zookeeper import ZooKeeper
from streaming.java.installation import find_java
from tests.bench.ingest import build, connected, states
from tests.older_releases import KAFKA_BROKERS, older_jars

GOAL_SECONDS = 3.0
OFFLINE = 100  # partitions without a leader
GONE = 77  # a broker that is not registered
RUNS = 3
TOOL = "kafka-topics.sh --describe --unavailable-partitions"
TOOLS_RELEASE = "2.8.2"
TOOLS_HEAP_MB = 1_000
QUESTIONS = (
    "explain topic-00000-0",
    "explain topic-00000",
    "explain topic-00000 --key customer-4711",
    "explain broker 3",
    "explain controller",
    "check",
    "lint",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A command, its fastest run, and how many lines it printed."""

    command: str
    seconds: float
    lines: int


def take_offline(client: KazooClient, partitions: int) -> None:
    """Write the states of some partitions as a controller does that has lost their only in-sync replica."""
    paths = states(partitions)
    for path in paths[:: max(1, len(paths) // OFFLINE)]:
        content = {"controller_epoch": 7, "leader": -1, "version": 1, "leader_epoch": 1, "isr": [GONE]}
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


def timed(shown: str, command: list[str], codes: tuple[int, ...]) -> Measured:
    """The fastest of some runs."""
    best, lines = float("inf"), 0
    for _ in range(RUNS):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        best = min(best, time.perf_counter() - began)
        assert done.returncode in codes, f"{shown}: {done.stdout[-2000:]}{done.stderr}"
        lines = len(done.stdout.splitlines())
    return Measured(shown, best, lines)


def measure(zookeeper: ZooKeeper, partitions: int, shown: Console) -> list[Measured]:
    """Each question, and Kafka's own tool, one after the other on the same cluster."""
    client = connected(zookeeper)
    try:
        build(client, partitions, shown)
        complete(client)
        take_offline(client, partitions)
        where = ["--zookeeper", zookeeper.connect_string]
        found = [
            timed(f"kontrast {question}", [sys.executable, "-m", "cli", *question.split(), *where], (0, 1))
            for question in QUESTIONS
        ]
        class_path = ":".join(map(str, kafka_class_path(older_jars(KAFKA_BROKERS[TOOLS_RELEASE]))))
        java = [str(find_java()), f"-Xmx{TOOLS_HEAP_MB}m", "-cp", class_path, "kafka.admin.TopicCommand"]
        tool = [*java, *where, "--describe", "--unavailable-partitions"]
        return [*found, timed(TOOL, tool, (0,))]
    finally:
        client.stop()
        client.close()


def table(measured: list[Measured], partitions: int) -> Table:
    """The times beside each other."""
    title = f"Questions about {partitions:,} partitions, {OFFLINE} of them without a leader, from a real ZooKeeper"
    shown = Table(title=title, title_justify="left")
    for heading in ("command", "seconds", "lines", "goal"):
        shown.add_column(heading, justify="left" if heading == "command" else "right")
    for row in measured:
        goal = "" if row.command == TOOL else f"{GOAL_SECONDS:g} s"
        shown.add_row(row.command, f"{row.seconds:.2f}", str(row.lines), goal)
    return shown


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=200_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    shown = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        ZooKeeper(Path(directory), properties={"tickTime": "2000"}, heap_mb=2_000) as zookeeper,
    ):
        measured = measure(zookeeper, asked.partitions, shown)
    if asked.json:
        print(json.dumps({row.command: round(row.seconds, 3) for row in measured}, indent=2))
    else:
        Console().print(table(measured, asked.partitions))


if __name__ == "__main__":
    main()
