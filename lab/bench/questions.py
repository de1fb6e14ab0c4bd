"""Measure how long each question takes at a real ZooKeeper with many partitions: `make bench-questions`.

Each question is a process, as an operator starts it. Kafka's own `kafka-topics.sh --describe --unavailable-partitions`
runs on the same cluster, from 2.8, the last release that asks ZooKeeper itself. `lab.bench.page` measures the pages.
"""

from __future__ import annotations

import argparse
import base64
import json
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from kazoo.client import KazooClient
from rich.console import Console
from rich.table import Table

from cli.embedded.kafka import kafka_class_path
from cli.embedded.zookeeper import ZooKeeper
from lab.bench.core import BROKERS, replica_lists
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
COMPARED_WITH_KAZOO = "kontrast snapshot --json"
TIMES_QUICKER = 12
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


@dataclass(frozen=True, slots=True)
class Measured:
    """A command, the seconds and CPU seconds of its fastest run, how many lines it printed, and its goal."""

    command: str
    seconds: float
    lines: int
    cpu_seconds: float | None = None
    goal_seconds: float | None = None


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


def timed(shown: str, command: list[str], codes: tuple[int, ...], goal_seconds: float | None = None) -> Measured:
    """Return the fastest of some runs."""
    runs = []
    for _ in range(RUNS):
        began, used = time.perf_counter(), _children_cpu_seconds()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        seconds, cpu_seconds = time.perf_counter() - began, _children_cpu_seconds() - used
        assert done.returncode in codes, f"{shown}: {done.stdout[-2000:]}{done.stderr}"
        runs.append(Measured(shown, seconds, len(done.stdout.splitlines()), cpu_seconds, goal_seconds))
    return min(runs, key=lambda run: run.seconds)


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(zookeeper: ZooKeeper, partitions: int, shown: Console) -> list[Measured]:
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
        found = [
            timed(f"kontrast {question}", [sys.executable, "-m", "cli", *question.split(), *where], (0, 1), goal)
            for question, goal in goals.items()
        ]
        class_path = ":".join(map(str, kafka_class_path(older_jars(KAFKA_BROKERS[TOOLS_RELEASE]))))
        java = [str(find_java()), f"-Xmx{TOOLS_HEAP_MB}m", "-cp", class_path, "kafka.admin.TopicCommand"]
        tool = [*java, *where, "--describe", "--unavailable-partitions"]
        reads = [kazoo_reads(client, partitions) for _ in range(RUNS)]
        kazoo = Measured(KAZOO, min(seconds for seconds, _ in reads), 0)
        decoding = Measured(DECODING, min(decode_seconds(contents) for _, contents in reads), 0)
        return [*found, timed(TOOL, tool, (0,)), kazoo, decoding]
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


def table(measured: list[Measured], partitions: int) -> Table:
    """Return the times as columns."""
    title = f"Questions about {partitions:,} partitions, {OFFLINE} without a leader, from a real ZooKeeper"
    shown = Table(title=title, title_justify="left")
    for heading in ("command", "seconds", "CPU seconds", "lines", "goal", "quicker than Kafka's tool"):
        shown.add_column(heading, justify="left" if heading == "command" else "right")
    (tool,) = (row for row in measured if row.command == TOOL)
    over_kazoo, over_decoding = ratios(measured).values()
    shown.caption = (
        f"{COMPARED_WITH_KAZOO} is {over_kazoo:.1f} times as quick as kazoo, goal {TIMES_QUICKER}, "
        f"and takes {over_decoding:.1f} times as long as msgspec's decoding alone"
    )
    for row in measured:
        cpu = "" if row.cpu_seconds is None else f"{row.cpu_seconds:.2f}"
        goal = "" if row.goal_seconds is None else f"{row.goal_seconds:g} s"
        ratio = "" if row.cpu_seconds is None or row is tool else f"{tool.seconds / row.seconds:.1f} times"
        shown.add_row(row.command, f"{row.seconds:.3g}", cpu, str(row.lines or ""), goal, ratio)
    return shown


def ratios(measured: Sequence[Measured]) -> dict[str, float]:
    """Return a snapshot's time beside kazoo's reads, and beside the decoding alone, by the name of the ratio."""
    seconds = {row.command: row.seconds for row in measured}
    snapshot = seconds[COMPARED_WITH_KAZOO]
    return {
        f"{KAZOO} / {COMPARED_WITH_KAZOO}": seconds[KAZOO] / snapshot,
        f"{COMPARED_WITH_KAZOO} / {DECODING}": snapshot / seconds[DECODING],
    }


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
        named: dict[str, object] = {row.command: [round(row.seconds, 3), row.cpu_seconds] for row in measured}
        print(json.dumps({**named, **ratios(measured)}, indent=2))
    else:
        Console().print(table(measured, asked.partitions))


if __name__ == "__main__":
    main()
