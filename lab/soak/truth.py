"""Comparison of Kontrast's output with ZooKeeper, and the agreement of its predictions.

The current outputs and the comparison with `kontrast snapshot` belong here.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BeginningRow, BrokerRow, ControllerRow, PartitionRow
from controller.contract.outputs import decode_row
from controller.contract.row import Row
from lab.soak.kontrast import Kontrast
from transport.journal_reading import read_journal
from transport.segments import OffsetGoneError

_AT_ONCE_BYTES = 1 << 22
_EQUAL_WITHIN_SECONDS = 180
_ONE_SNAPSHOT_SECONDS = 15
_NAMED_DIFFERENCES = 3

Facts = Mapping[str, object]  # by subject


class Output:
    """The newest row of each subject in an output's journal, read on from where it was read before."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset = 0
        self.rows: dict[str, Row] = {}

    def read_on(self) -> None:
        """Read the rows that have been written since."""
        while True:
            try:
                batch = read_journal(self._directory, self._offset, _AT_ONCE_BYTES)
            except FileNotFoundError:
                return
            except OffsetGoneError as error:
                self._offset = error.earliest
                continue
            for line in batch.lines:
                self._take(line)
            if batch.next_offset == self._offset:
                return
            self._offset = batch.next_offset

    def _take(self, line: bytes) -> None:
        row = decode_row(line)
        if isinstance(row, BeginningRow):
            self.rows = {key: kept for key, kept in self.rows.items() if kept.cluster != row.cluster}
        elif isinstance(row, Row) and row.ends_subject:
            self.rows.pop(row.subject_key(), None)
        elif isinstance(row, Row):
            self.rows[row.subject_key()] = row


class Truth:
    """The outputs of a running Kontrast, and the ZooKeeper that they are about."""

    def __init__(self, kontrast: Kontrast) -> None:
        self._kontrast = kontrast
        self._metadata = Output(kontrast.outputs / "metadata")
        self._gauges = Output(kontrast.outputs / "gauges")

    def differences(self, cluster: str) -> list[str]:
        """Return the remaining differences after a generous time without changes."""
        deadline = time.monotonic() + _EQUAL_WITHIN_SECONDS
        while True:
            observed = self._snapshot(cluster)
            retake_at = min(time.monotonic() + _ONE_SNAPSHOT_SECONDS, deadline)
            while (published := self._published(cluster)) != observed and time.monotonic() < retake_at:
                time.sleep(0.3)
            if published == observed:
                return []
            if time.monotonic() > deadline:
                return _differences(published, observed)

    def gauges(self, cluster: str) -> GaugesRow | None:
        """Return the newest gauges of the cluster."""
        self._gauges.read_on()
        row = self._gauges.rows.get(f"{cluster}/gauges")
        return row if isinstance(row, GaugesRow) else None

    def _snapshot(self, cluster: str) -> Facts:
        command = self._kontrast.command("snapshot", "--cluster", cluster, "--json")
        environment = self._kontrast.environment("snapshot")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            return {"snapshot": done.stderr}
        return dict(filter(None, map(_observed_fact, map(json.loads, done.stdout.splitlines()))))

    def _published(self, cluster: str) -> Facts:
        self._metadata.read_on()
        return dict(_published_facts(row for row in self._metadata.rows.values() if row.cluster == cluster))


def _observed_fact(line: Mapping[str, Any]) -> tuple[str, object] | None:
    match line["type"]:
        case "broker":
            return (f"broker {line['broker']}", line["epoch"]) if line["registered"] else None
        case "controller":
            return "controller", (line["broker"], line["epoch"])
        case "partition":
            lists = (line["replicas"], line["isr"], line["adding_replicas"], line["removing_replicas"])
            rest = (line["leader"], line["leader_epoch"], line["deleting"])
            return f"{line['topic']}-{line['partition']}", (*map(tuple, lists), *rest)
        case other:
            return str(other), line


def _published_facts(rows: Iterator[Row]) -> Iterator[tuple[str, object]]:
    for row in rows:
        match row:
            case BrokerRow() if row.registered:
                yield f"broker {row.broker}", row.epoch
            case ControllerRow():
                yield "controller", (row.broker, row.epoch)
            case PartitionRow():
                lists = (row.replicas, row.isr, row.adding_replicas, row.removing_replicas)
                yield f"{row.topic}-{row.partition}", (*lists, row.leader, row.leader_epoch, row.deleting)


def _differences(published: Facts, observed: Facts) -> list[str]:
    differing = sorted(key for key in published.keys() | observed.keys() if published.get(key) != observed.get(key))
    named = [f"{key} is {published.get(key)} in metadata, {observed.get(key)} in ZooKeeper" for key in differing]
    more = [f"{len(named) - _NAMED_DIFFERENCES} more differ"] if len(named) > _NAMED_DIFFERENCES else []
    return [*named[:_NAMED_DIFFERENCES], *more]
