"""Rows of a cluster that newer ones replaced, as far back as there is room, to restore an earlier moment.

A replaced row takes 0.7 kB and 9 µs. A context for each moment would share its chunks with the next context, but with
200,000 partitions it takes 5 kB and 90 µs for each change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Mapping
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow
from controller.contract.row import Row

# Rows of one output in one cluster. A replaced partition takes 1 kB, so this is 50 MB. A broker with 3,000 replicas
# that leaves and returns makes 9,000 changes.
PAST_ROWS: Final = 50_000
# The gauges of 100 brokers take 50 kB, as 50 replaced partitions do. Gauges without news are not kept.
_ROWS_PER_GAUGES: Final = 50
_MOST_NOTABLE: Final = 100
# Start of the known time, None until the first row. Alerts are known from 0, because none was open before their first.
_BEGINNINGS: Final = MappingProxyType({PartitionRow.output: None, AlertRow.output: 0})

Replaced = Mapping[type[Row], Mapping[Hashable, Row | None]]
"""Earlier rows of the subjects that changed since, by kind and key, None for a subject that had no row."""


class Replacement(NamedTuple):
    """A row with its key among the rows of its kind, and the row that it replaced, None for a new subject."""

    before: Row | None
    row: Row
    key: Hashable


class _Changes:
    """The rows of one output in the order of arrival, each with the row that it replaced."""

    def __init__(self, most: int, since_ms: int | None) -> None:
        self._most = most
        self.since_ms = since_ms  # every later moment is known, if set
        self.kept: deque[Replacement] = deque()
        self._newest_ms = 0

    def note(self, change: Replacement) -> None:
        """Keep the row. Drop the oldest one if there is no room."""
        if self.since_ms is None:
            self.since_ms = change.row.time_ms
        if len(self.kept) == self._most:
            self.since_ms = max(self.since_ms, self.kept.popleft().row.time_ms)
        self.kept.append(change)
        self._newest_ms = max(self._newest_ms, change.row.time_ms)

    def begin_now(self) -> None:
        """Drop all changes, because rows are missing. The time from the newest change on is known again."""
        self.kept.clear()
        self.since_ms = self._newest_ms or self.since_ms

    def between(self, begin_ms: int, end_ms: int) -> list[Row]:
        """Return the rows of this time, and the previous row of each subject."""
        chosen = [change for change in self.kept if begin_ms <= change.row.time_ms <= end_ms]
        firsts = {(type(change.row), change.key): change.before for change in reversed(chosen)}
        return [*(row for row in firsts.values() if row is not None), *(change.row for change in chosen)]


class Past:
    """The changes of one cluster, and its gauges."""

    def __init__(self, most_rows: int = PAST_ROWS) -> None:
        self._most_rows = most_rows
        self._changes = {output: _Changes(most_rows, since_ms) for output, since_ms in _BEGINNINGS.items()}
        self._gauges: deque[GaugesRow] = deque(maxlen=max(1, most_rows // _ROWS_PER_GAUGES))
        self.notable: deque[Replacement] = deque(maxlen=_MOST_NOTABLE)  # of brokers, the controller and alerts

    @property
    def since_ms(self) -> int | None:
        """Return the start of the time that is completely known, if any."""
        begun = [changes.since_ms for changes in self._changes.values() if changes.since_ms is not None]
        return max(self._gauges[0].time_ms, *begun) if self._gauges and len(begun) == len(self._changes) else None

    def note(self, change: Replacement) -> None:
        """Keep a row that is newer than the one before and brings a change."""
        before, row, _ = change
        if is_notable(change):
            self.notable.append(change)
        if isinstance(row, GaugesRow):
            if not (self._gauges and _shown(self._gauges[-1]) == _shown(row)):
                self._gauges.append(row)
        elif not isinstance(row, MigrationRow) or not isinstance(before, MigrationRow) or _led(before) != _led(row):
            self._changes[row.output].note(change)

    def begin_now(self, output: str) -> None:
        """Drop this output's past, because rows are missing."""
        if output in self._changes:
            self._changes[output].begin_now()
        elif output == GaugesRow.output and self._gauges:
            self._gauges = deque([self._gauges[-1]], maxlen=self._gauges.maxlen)

    def forget(self, output: str) -> None:
        """Drop this output's past, because the output starts over."""
        self.notable = deque((each for each in self.notable if each.row.output != output), _MOST_NOTABLE)
        if output in self._changes:
            self._changes[output] = _Changes(self._most_rows, _BEGINNINGS[output])
        elif output == GaugesRow.output:
            self._gauges.clear()

    def replaced_after(self, at_ms: int) -> Replaced:
        """Return the earlier rows of subjects that changed after the moment."""
        found: dict[type[Row], dict[Hashable, Row | None]] = {}
        for changes in self._changes.values():
            for before, row, key in reversed(changes.kept):
                if row.time_ms > at_ms:  # by each row's own time, because the forwarder's clock may have been set
                    found.setdefault(type(row), {})[key] = before
        return found

    def between(self, begin_ms: int, end_ms: int, outputs: Collection[str]) -> list[Row]:
        """Return the rows of this time in these outputs, each output's after the rows that they replaced."""
        chosen = [changes for output, changes in self._changes.items() if output in outputs]
        return [row for changes in chosen for row in changes.between(begin_ms, end_ms)]

    def replaced_between(self, begin_ms: int, end_ms: int) -> list[Replacement]:
        """Return the changes of metadata and of the gauges from `begin_ms` to before `end_ms`."""
        gauges = (Replacement(before, row, None) for before, row in pairwise(self._gauges))
        every = chain(self._changes[PartitionRow.output].kept, gauges)
        return [change for change in every if begin_ms <= change.row.time_ms < end_ms]

    def gauges_at(self, at_ms: int) -> GaugesRow | None:
        """Return the newest gauges at or before the moment."""
        return next((row for row in reversed(self._gauges) if row.time_ms <= at_ms), None)


def is_notable(change: Replacement) -> bool:
    """Return whether the change is news: a broker, the controller, or an alert that opens or ends."""
    before, row, _ = change
    if isinstance(row, BrokerRow):
        return isinstance(before, BrokerRow) and before.registered != row.registered
    if isinstance(row, ControllerRow):
        return isinstance(before, ControllerRow) and before.broker != row.broker
    if not isinstance(row, AlertRow) or row.severity is Severity.INFO:
        return False
    return not isinstance(before, AlertRow) or (before.state, before.severity) != (row.state, row.severity)


def _led(row: MigrationRow) -> tuple[object, ...]:
    """Return the phase and the KRaft controller, because only their change is news in a row of each heartbeat."""
    return (row.phase, row.since_ms, row.leader, row.kraft_epoch)


def _shown(row: GaugesRow) -> tuple[object, ...]:
    """Return the fields that a past moment shows."""
    return (
        *(row.ready, row.session, row.controller, row.controller_epoch, row.active_brokers, row.topics, row.partitions),
        *(row.leaderless_partitions, row.under_replicated_partitions, row.under_min_isr_partitions),
        *(row.at_min_isr_partitions, row.preferred_replica_imbalance, row.topics_to_delete, row.reassigning_partitions),
        *(row.leaders_by_broker, row.replicas_by_broker, row.pending_writes, row.status),
        row.maintenance,
    )
