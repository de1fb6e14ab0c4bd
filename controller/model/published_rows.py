"""Rows that a transaction publishes, in order, and the choice of rows that it publishes."""

from __future__ import annotations

from copy import copy
from typing import Final

import msgspec

from controller.contract.records import Record, RecordKind
from controller.contract.row import Row, Stamp


class RowKinds(msgspec.Struct, frozen=True):
    """Kinds of rows that a transaction publishes beside the rows of alerts and of the controller."""

    partitions: bool = True  # rows of partitions and topics. False if the reader takes them from the context
    steps: bool = True  # transitions and requests
    unchanged: bool = False  # a row of each partition, changed or not, as at the end of a complete read
    gauges: bool = False  # the cluster's counts, as at each heartbeat

    def by(self, record: Record, *, is_loading: bool) -> RowKinds:
        """Return the kinds for this record, with gauges at a heartbeat or at the end of a complete read."""
        ends = record.kind is RecordKind.SNAPSHOT_END
        if not (ends or record.kind is RecordKind.HEARTBEAT):
            return self
        return msgspec.structs.replace(self, gauges=True, unchanged=ends and is_loading)


EVERY_CHANGE: Final = RowKinds()


class PublishedRows:
    """Rows of a transaction so far. `first` is the index of its newest record's first row."""

    __slots__ = ("effects", "first", "record", "shown")

    def __init__(self, record: Record, shown: RowKinds) -> None:
        self.effects: list[Row] = []
        self.shown = shown
        self.begin(record)

    def begin(self, record: Record) -> None:
        """Begin the rows of this record."""
        self.record = record
        self.first = len(self.effects)

    def fork(self) -> PublishedRows:
        """Return a copy, which can get further rows without a change of this object."""
        forked = copy(self)
        forked.effects = list(self.effects)
        return forked

    def stamp(self) -> Stamp:
        """Return the fields that every row has, in their order."""
        record = self.record
        ordinal = len(self.effects) - self.first
        return record.cluster, record.generation, record.seq, ordinal, record.zxid, record.observed_ms

    def number_from(self, ordinal: int) -> None:
        """Number the rows of this record from this ordinal on."""
        self.first = len(self.effects) - ordinal
