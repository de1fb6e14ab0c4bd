"""Fixtures for real clusters, with Kontrast's commands as processes, beside real ZooKeeper and brokers."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from cli.embedded.process import ChildProcess, Patience, free_port
from controller.contract.alert_row import AlertRow
from controller.contract.outputs import OutputRow, decode_row
from transport.journal_reading import read_journal

DEADLINE_SECONDS = 120


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
        patience = Patience(self.stream.pid, DEADLINE_SECONDS)
        while not holds():
            for part in (self.watch, self.serve):
                assert part.running, part.describe("ended by itself")
            assert not patience.is_over(), f"the job worked in vain: {what}\n{self.stream.log_tail(20)}"
            time.sleep(0.2)


def lines_of(journal: Path) -> list[bytes]:
    offset, lines = 0, []
    while (batch := read_journal(journal, offset, 1 << 24)).lines:
        lines.extend(batch.lines)
        offset = batch.next_offset
    return lines


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


def told(pipeline: Pipeline, alert_id: str, state: str = "open") -> AlertRow:
    """Wait for the alert in this state, and return its first row since the last change of state."""

    def rows() -> list[AlertRow]:
        return [row for row in pipeline.rows("alerts") if isinstance(row, AlertRow) and row.id == alert_id]

    pipeline.until(f"{alert_id} is {state}", lambda: rows()[-1:] != [] and rows()[-1].state == state)
    last = rows()
    while len(last) > 1 and last[-2].state == state:
        last.pop()
    return last[-1]
