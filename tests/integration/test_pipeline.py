"""The whole pipeline on a real cluster: real ZooKeeper and brokers, and Kontrast's commands as processes."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from cli.embedded.process import ChildProcess, free_port
from controller.outputs import OUTPUTS, STANDING_OUTPUTS, BeginningRow, OutputRow, PartitionRow, decode_row
from controller.records import decode_record
from controller.state import new_context
from controller.step import step
from transport.journal import read_journal

DEADLINE_SECONDS = 120
BROKERS = (1, 2, 3)


class Pipeline:
    """`kontrast watch`, `stream` and `serve` over journals in a directory."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        self.listen = f"127.0.0.1:{free_port()}"
        changes, derived = f"journal:{directory / 'changes'}", f"journal:{directory / 'derived'}"
        self.watch = self._part("watch", "--zookeeper", zookeeper, "--cluster", "c", "--to", changes)
        self.stream = self._part(
            "stream", "--from", changes, "--to", derived, "--checkpoint", str(directory / "checkpoint")
        )
        self.serve = self._part("serve", "--from", derived, "--listen", self.listen)

    def _part(self, command: str, *arguments: str) -> ChildProcess:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KONTRAST_")}
        log = self.directory / f"{command}.log"
        return ChildProcess(command, (sys.executable, "-m", "cli", command, *arguments), log, environment=environment)

    def samples(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        try:
            with urllib.request.urlopen(f"http://{self.listen}/metrics", timeout=5) as answer:  # noqa: S310
                text = answer.read().decode()
        except OSError:
            return {}
        found = (s for family in text_string_to_metric_families(text) for s in family.samples if s.name == name)
        return {tuple(sorted(sample.labels.items())): sample.value for sample in found}

    def rows(self, output: str) -> list[OutputRow]:
        return [decode_row(line) for line in lines_of(self.directory / "derived" / output)]

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            for part in (self.watch, self.serve):
                assert part.running, part.describe("ended by itself")
            assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS} s: {what}\n{self.stream.log_tail(20)}"
            time.sleep(0.2)


def lines_of(journal: Path) -> list[bytes]:
    offset, lines = 0, []
    while (batch := read_journal(journal, offset, 1 << 24)).lines:
        lines.extend(batch.lines)
        offset = batch.next_offset
    return lines


@pytest.fixture
def cluster(start_kafka_cluster):
    return start_kafka_cluster(broker_ids=BROKERS, properties={"zookeeper.session.timeout.ms": "3000"})


@pytest.fixture
def pipeline(cluster, tmp_path) -> Iterator[Pipeline]:
    directory = tmp_path / "kontrast"
    directory.mkdir()
    running = Pipeline(directory, cluster.zookeeper.connect_string)
    parts = (running.watch, running.stream, running.serve)
    try:
        for part in parts:
            part.launch()
        yield running
    finally:
        for part in parts:
            part.stop()


def create(cluster, **topics: dict[int, list[int]]) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(name, replica_assignments=parts) for name, parts in topics.items()])


def test_the_offline_partitions_of_a_killed_broker_are_named_by_the_exporter(cluster, pipeline):
    create(cluster, alone={0: [1], 1: [2], 2: [3]}, shared={0: [3, 1], 1: [1, 2]})
    online = (("kafka_cluster", "c"), ("state", "online"))
    pipeline.until("five partitions online", lambda: pipeline.samples("kontrast_partitions").get(online) == 5)

    controller = dict(next(iter(pipeline.samples("kontrast_controller_info"))))["broker"]
    victim = next(broker for broker in BROKERS if str(broker) != controller)
    cluster.brokers[victim].kill()
    named = {
        (
            ("kafka_cluster", "c"),
            ("partition", str(victim - 1)),
            ("reason", "no_live_in_sync_replica"),
            ("topic", "alone"),
        )
    }
    offline_since = "kontrast_partition_offline_since_timestamp_seconds"
    pipeline.until("the partition is named", lambda: set(pipeline.samples(offline_since)) == named)
    pipeline.until("it is counted", lambda: pipeline.samples("kontrast_partitions_offline") == counted(1))

    cluster.brokers[victim].start()
    pipeline.until("all clear", lambda: pipeline.samples(offline_since) == {})
    pipeline.until("none is counted", lambda: pipeline.samples("kontrast_partitions_offline") == counted(0))


def test_a_job_killed_and_restarted_in_the_middle_loses_and_doubles_nothing(cluster, pipeline):
    create(cluster, first={0: [1, 2], 1: [2, 3]})
    pipeline.until("the first topic is published", lambda: topics_of(pipeline) == {"first"})
    pipeline.stream.kill()
    create(cluster, second={0: [3, 1], 1: [1, 2], 2: [2, 3]})
    pipeline.stream.launch()
    create(cluster, third={0: [1, 3]})
    pipeline.until("all topics are published", lambda: topics_of(pipeline) == {"first", "second", "third"})
    cluster.brokers[2].stop()
    pipeline.until("the stopped broker is noticed", lambda: leaders_of(pipeline) <= {1, 3})

    pipeline.watch.stop()
    changes = lines_of(pipeline.directory / "changes")
    expected = expected_rows(changes)
    total = sum(map(len, expected.values()))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while sum(len(pipeline.rows(output)) for output in OUTPUTS) < total and time.monotonic() < deadline:
        time.sleep(0.2)
    for output in OUTPUTS:
        assert pipeline.rows(output) == expected[output], f"{output} differs from an undisturbed run"


def counted(number: int) -> dict[tuple[tuple[str, str], ...], float]:
    return {(("kafka_cluster", "c"),): float(number)}


def topics_of(pipeline: Pipeline) -> set[str]:
    rows = pipeline.rows("metadata")
    return {row.topic for row in rows if isinstance(row, PartitionRow) and row.leader >= 0}


def leaders_of(pipeline: Pipeline) -> set[int]:
    newest = {row.subject_key(): row for row in pipeline.rows("metadata") if isinstance(row, PartitionRow)}
    return set(Counter(row.leader for row in newest.values()))


def expected_rows(changes: list[bytes]) -> dict[str, list[OutputRow]]:
    """What one undisturbed pass over the records gives."""
    context = new_context("c", 64)
    rows: dict[str, list[OutputRow]] = {output: [] for output in OUTPUTS}
    first = decode_record(changes[0])
    stamp = {"ordinal": -1, "zxid": first.zxid, "time_ms": first.observed_ms}
    for output in STANDING_OUTPUTS:
        rows[output].append(BeginningRow(cluster="c", generation=first.generation, seq=first.seq, **stamp))
    for line in changes:
        outcome = step(context, decode_record(line))
        context = outcome.context
        for row in outcome.effects:
            rows[row.output].append(row)
    return rows
