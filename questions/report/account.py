"""One pass over the rows of a cluster or of some subjects. Parts of a cluster add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import BeginningRow, BrokerRow, ControllerRow, PartitionRow
from controller.contract.records import LATEST_MS, Record
from controller.contract.row import Row
from controller.view.gauges import gauges_row
from controller.view.types import Context
from questions.report.alerts import Alerts, AlertSpan
from questions.report.brokers import Brokers, BrokerTime
from questions.report.counters import Counters, Key
from questions.report.failovers import Controllers, ControllerTime
from questions.report.partition_time import PartitionTime, TopicTime
from questions.report.seen_time import Heartbeats, SeenTime

EVER_MS: Final = 0
"""Beginning of an open window."""


class Part(msgspec.Struct, kw_only=True):
    """Figures of some subjects of a cluster. The subjects of its parts do not overlap."""

    seen: SeenTime = msgspec.field(default_factory=SeenTime)
    topics: dict[str, TopicTime] = {}
    controllers: ControllerTime = msgspec.field(default_factory=ControllerTime)
    brokers: dict[BrokerId, BrokerTime] = {}
    alerts: list[AlertSpan] = []
    counted: list[tuple[Key, int]] = []
    complete_from_ms: int = 0  # earlier changes are lost, so the rows have only their result
    unreadable: int = 0  # number of unreadable lines
    notes: list[str] = []  # why the figures may be incomplete
    failed: bool = False  # unreadable, for the reason in the notes


class Account:
    """Rows of a cluster in the order of their places, up to the end of the window."""

    def __init__(self, since_ms: int = EVER_MS, until_ms: int = LATEST_MS) -> None:
        self._until_ms = until_ms
        self._heartbeats = Heartbeats()
        self._partitions = PartitionTime()
        self._controllers = Controllers()
        self._brokers = Brokers()
        self._alerts = Alerts()
        self._counters = Counters(since_ms)

    def take(self, row: Row) -> None:
        """Add the next row."""
        if row.time_ms > self._until_ms:
            return
        match row:
            case PartitionRow():
                self._partitions.take(row)
            case GaugesRow():
                self._heartbeats.take(row)
                self._counters.take(row)
            case AlertRow():
                self._alerts.take(row)
            case BrokerRow():
                self._brokers.take(row)
            case ControllerRow():
                self._controllers.take(row)
            case BeginningRow():
                self.begin(row.time_ms)
            case _:
                pass  # transitions and requests do not count

    def take_counts(self, context: Context, at: Record) -> None:
        """Add the counts at the last record, which can be up to a second later than the last heartbeat."""
        stamp = (at.cluster, at.generation, at.seq, 0, at.zxid, at.observed_ms)
        self.take(gauges_row(context.header, stamp))

    def count_from(self, since_ms: int) -> None:
        """Start counting at this moment."""
        self._counters.since_ms = since_ms

    def begin(self, at_ms: int) -> None:
        """Restart the cluster's state. The current rows follow again."""
        self._partitions.begin(at_ms)
        self._brokers.begin(at_ms)
        self._alerts.begin(at_ms)
        self._counters.begin()

    def part(self) -> Part:
        """Return the figures."""
        return Part(
            seen=self._heartbeats.seen,
            topics=self._partitions.topics,
            controllers=self._controllers.time,
            brokers=self._brokers.time,
            alerts=self._alerts.spans,
            counted=list(self._counters.rose.items()),
        )


def added_up(parts: Iterable[Part]) -> Part:
    """Return the sum of a cluster's parts."""
    whole, counted = Part(), Counter[Key]()
    for part in parts:
        if part.seen.newest_ms is not None:  # only one part has the heartbeats
            whole.seen = part.seen
        whole.topics.update(part.topics)
        whole.controllers.failovers.extend(part.controllers.failovers)
        whole.controllers.absent.update(part.controllers.absent)
        whole.brokers.update(part.brokers)
        whole.alerts.extend(part.alerts)
        counted.update(dict(part.counted))
        whole.complete_from_ms = max(whole.complete_from_ms, part.complete_from_ms)
        whole.unreadable += part.unreadable
        whole.notes.extend(part.notes)
        whole.failed = whole.failed or part.failed
    whole.counted = list(counted.items())
    return whole
