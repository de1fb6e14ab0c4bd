"""A recording as a live forwarder publishes it, with events in windows, each value read once at a window's end.

The messages of ZooKeeper and the results of reads belong here. The forwarder's own code does the rest.
`ingest.observed.observations` orders a window, and the publisher numbers it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import cast

from controller.contract.ids import UNKNOWN_ZXID
from controller.contract.records import Record, RecordKind
from ingest.election import ForwardingTerm
from ingest.maintenance import MaintenanceFile
from ingest.observed.inbox import SessionState
from ingest.observed.observations import Value, ZnodeEvent, ZnodeEventKind, observe_window
from ingest.observed.tree import complete
from ingest.publisher import MachineClocks, Publisher
from ingest.sinks.sink import Sink
from ingest.zookeeper.reading import WatchMode
from transport.forwarding import Forwarding

_CHANGES = (RecordKind.NODE, RecordKind.DELETED)


def watched_live(history: Iterable[Record], windows_ms: Iterator[int], *, has_zxids: bool) -> Iterator[Record]:
    """Yield the records of a live watch with windows of these lengths. Servers before 3.9 send no zxids."""
    forwarder = _Forwarder(windows_ms, has_zxids=has_zxids)
    for (_, is_change), records in groupby(history, key=lambda record: (record.zxid, record.kind in _CHANGES)):
        if is_change and not forwarder.is_reading:
            yield from forwarder.transaction(list(records))
        else:
            for record in records:
                yield from forwarder.other(record)
    yield from forwarder.end()


class _Forwarder:
    """The forwarder's loop, with the recording's time in place of a clock."""

    def __init__(self, windows_ms: Iterator[int], *, has_zxids: bool) -> None:
        self.is_reading = True  # the complete read comes first
        self._windows_ms = windows_ms
        self._has_zxids = has_zxids
        forwarding = Forwarding("recorded")
        no_windows = MaintenanceFile(None, forwarding)
        clocks = MachineClocks(lambda: self._now_ms * 1_000_000, lambda: self._now_ms * 1_000_000)
        term = ForwardingTerm(1, lambda: True)
        self._publisher = Publisher(cast(Sink, self), term, threading.Event(), forwarding, no_windows, clocks)
        self._published: list[Record] = []
        self._now_ms = 0
        self._zxid = UNKNOWN_ZXID
        self._values: dict[str, Value] = {}
        self._events: list[ZnodeEvent] = []
        self._ends_ms = 0
        self._heartbeats_due = 0

    def append(self, records: Sequence[Record]) -> None:
        """Take records as the publisher's sink, at the recording's time."""
        self._published += records

    def close(self) -> None:
        """Close the sink, which has no resources to free."""

    def transaction(self, records: list[Record]) -> list[Record]:
        """Return the records that are published once this transaction's time has come."""
        self._end_window_before(records[0].observed_ms)
        if not self._events:
            self._ends_ms = records[0].observed_ms + next(self._windows_ms)
        self._zxid = records[0].zxid
        for record in reversed(records):  # the server promises no order within one transaction
            self._events += self._change(record)
        return self._take()

    def other(self, record: Record) -> list[Record]:
        """Return the records that are published once a record of another kind has come."""
        self._end_window_before(record.observed_ms)
        if record.kind is RecordKind.NODE:
            self._values[record.path] = _value(record)
        elif record.kind is RecordKind.SNAPSHOT_END:
            self._now_ms, self.is_reading = record.observed_ms, False
            self._publisher.publish_complete_read(complete(self._values), record.zxid)
        elif record.kind is RecordKind.HEARTBEAT and not record.author:  # a write in vain shows in the log alone
            self._heartbeats_due += 1
            if not self._events:
                self._now_ms = record.observed_ms
                self._heartbeats()
        return self._take()

    def end(self) -> list[Record]:
        """Return the last published records."""
        self._end_window_before(self._ends_ms + 1)
        return self._take()

    def _take(self) -> list[Record]:
        published, self._published = self._published, []
        return published

    def _change(self, record: Record) -> list[ZnodeEvent]:
        zxid = record.zxid if self._has_zxids else UNKNOWN_ZXID
        before = self._values.pop(record.path, None)
        if record.kind is RecordKind.DELETED:
            return [ZnodeEvent(ZnodeEventKind.DELETED, record.path, zxid)]
        value = self._values[record.path] = _value(record)
        if before is not None and before.czxid == value.czxid:
            return [ZnodeEvent(ZnodeEventKind.CHANGED, record.path, zxid)]
        gone = [ZnodeEvent(ZnodeEventKind.DELETED, record.path, zxid)] if before is not None else []
        return [*gone, ZnodeEvent(ZnodeEventKind.CREATED, record.path, zxid)]

    def _end_window_before(self, time_ms: int) -> None:
        if not self._events or time_ms <= self._ends_ms:
            return
        values = {event.path: self._values.get(event.path) for event in self._events}
        self._now_ms = self._ends_ms
        self._publisher.publish(observe_window(self._events, values, self._publisher.tree.known))
        self._events = []
        self._heartbeats()

    def _heartbeats(self) -> None:
        for _ in range(self._heartbeats_due):
            self._publisher.publish_state(
                RecordKind.HEARTBEAT, SessionState.CONNECTED, WatchMode.PERSISTENT, self._zxid
            )
        self._heartbeats_due = 0


def _value(record: Record) -> Value:
    return Value(record.raw, record.czxid, record.mzxid, record.version, record.ephemeral_owner)
