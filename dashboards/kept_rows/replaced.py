"""Rows of a cluster that newer ones replaced, as far back as there is room, to restore an earlier moment."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow, TopicRow
from controller.contract.row import Row

# Rows of one output in one cluster. A replaced partition takes 1 kB, so this is 50 MB. A broker with 3,000 replicas
# that leaves and returns makes 9,000 changes.
PAST_ROWS: Final = 50_000
# The gauges of 100 brokers take 50 kB, as 50 replaced partitions do. Gauges without news are not kept.
_ROWS_PER_GAUGES: Final = 50
_MOST_NOTABLE: Final = 100


_ALWAYS: Final = 0  # before the first alert, the cluster had no alerts


class Replacement(NamedTuple):
    """A row, and the one of the same subject that it replaced."""

    before: Row | None  # unset if the subject had no row
    row: Row
    key: str  # of the subject, kept because computing it for 50,000 rows took a twentieth of a second per request


class Replacements:
    """The rows of one output in the order in which they came, each with the one that it replaced."""

    def __init__(self, most: int, since_ms: int | None = None) -> None:
        self._most = most
        self.since_ms = since_ms  # every later moment is known, if set
        self._kept: deque[Replacement] = deque()
        self._newest_ms = 0

    def note(self, before: Row | None, row: Row) -> None:
        """Keep the row. Drop the oldest one if there is no room."""
        if self.since_ms is None:
            self.since_ms = row.time_ms
        if len(self._kept) == self._most:
            self.since_ms = max(self.since_ms, self._kept.popleft().row.time_ms)
        self._kept.append(Replacement(before, row, row.subject_key()))
        self._newest_ms = max(self._newest_ms, row.time_ms)

    def begin_now(self) -> None:
        """Drop all, because rows are missing. The newest rows hold at the time of the newest one."""
        self._kept.clear()
        self.since_ms = self._newest_ms or self.since_ms

    def replaced_after(self, at_ms: int) -> dict[str, Row | None]:
        """Return, by key, the earlier rows of subjects that changed after the moment."""
        # By each row's own time, because the forwarder's clock may have been set.
        return {key: before for before, row, key in reversed(self._kept) if row.time_ms > at_ms}

    def between(self, begin_ms: int, end_ms: int) -> list[Row]:
        """Return the rows of this time, and the previous row of each subject."""
        chosen = [change for change in self._kept if begin_ms <= change.row.time_ms <= end_ms]
        firsts = {change.key: change.before for change in reversed(chosen)}
        return [*(row for row in firsts.values() if row is not None), *(change.row for change in chosen)]


class Past:
    """The changes of one cluster, and its gauges."""

    def __init__(self, most_rows: int = PAST_ROWS) -> None:
        self._most_rows = most_rows
        self.metadata = Replacements(most_rows)
        self.alerts = Replacements(most_rows, _ALWAYS)
        self._gauges: deque[GaugesRow] = deque(maxlen=max(1, most_rows // _ROWS_PER_GAUGES))
        self.notable: deque[Replacement] = deque(maxlen=_MOST_NOTABLE)  # of brokers, the controller and alerts

    @property
    def since_ms(self) -> int | None:
        """Return the start of the time that is completely known, if any."""
        if not self._gauges or self.metadata.since_ms is None:
            return None
        return max(self._gauges[0].time_ms, self.metadata.since_ms, self.alerts.since_ms or _ALWAYS)

    def note(self, before: Row | None, row: Row) -> None:
        """Keep a row that is newer than `before` and brings a change."""
        if _is_notable(before, row):
            self.notable.append(Replacement(before, row, ""))
        if isinstance(row, (PartitionRow, TopicRow, BrokerRow, ControllerRow)) or _says_another_phase(before, row):
            self.metadata.note(before, row)
        elif isinstance(row, AlertRow):
            self.alerts.note(before, row)
        elif isinstance(row, GaugesRow) and not (self._gauges and _says_the_same(self._gauges[-1], row)):
            self._gauges.append(row)

    def begin_now(self, output: str) -> None:
        """Drop this output's past."""
        if output == AlertRow.output:
            self.alerts.begin_now()
        elif output == PartitionRow.output:
            self.metadata.begin_now()
        elif output == GaugesRow.output and self._gauges:
            self._gauges = deque([self._gauges[-1]], maxlen=self._gauges.maxlen)

    def forget(self, output: str) -> None:
        """Drop this output's past, which was void."""
        self.notable = deque((each for each in self.notable if each.row.output != output), _MOST_NOTABLE)
        if output == AlertRow.output:
            self.alerts = Replacements(self._most_rows, _ALWAYS)
        elif output == PartitionRow.output:
            self.metadata = Replacements(self._most_rows)
        elif output == GaugesRow.output:
            self._gauges.clear()

    def gauges_at(self, at_ms: int) -> GaugesRow | None:
        """Return the newest gauges at or before the moment."""
        return next((row for row in reversed(self._gauges) if row.time_ms <= at_ms), None)


def _says_the_same(one: GaugesRow, other: GaugesRow) -> bool:
    """Return whether the rows agree in all fields that a past moment shows."""
    return _shown(one) == _shown(other)


def _is_notable(before: Row | None, row: Row) -> bool:
    """Return whether the change is news: a broker, the controller, or an alert that opens or ends."""
    if isinstance(row, BrokerRow):
        return isinstance(before, BrokerRow) and before.registered != row.registered
    if isinstance(row, ControllerRow):
        return isinstance(before, ControllerRow) and before.broker != row.broker
    if not isinstance(row, AlertRow) or row.severity is Severity.INFO:
        return False
    return not isinstance(before, AlertRow) or (before.state, before.severity) != (row.state, row.severity)


def _says_another_phase(before: Row | None, row: Row) -> bool:
    """Return whether a migration's row, sent with each heartbeat, is the first of a phase or KRaft controller."""
    if not isinstance(row, MigrationRow):
        return False
    return not isinstance(before, MigrationRow) or _led(before) != _led(row)


def _led(row: MigrationRow) -> tuple[object, ...]:
    return (row.phase, row.since_ms, row.leader, row.kraft_epoch)


def _shown(row: GaugesRow) -> tuple[object, ...]:
    return (
        *(row.ready, row.session, row.controller, row.controller_epoch, row.active_brokers, row.topics, row.partitions),
        *(row.leaderless_partitions, row.under_replicated_partitions, row.under_min_isr_partitions),
        *(row.at_min_isr_partitions, row.preferred_replica_imbalance, row.topics_to_delete, row.reassigning_partitions),
        *(row.leaders_by_broker, row.replicas_by_broker, row.pending_writes, row.status),
    )
