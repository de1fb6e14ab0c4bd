"""Build a picture of a cluster from records in order, or from one complete read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from controller.contract.alert_row import AlertRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.contract.znode_table import Place
from controller.restore.one_read import context_of_read
from controller.says.alert_kinds.kinds import NO_CONTROLLER, SECTIONS
from controller.step import steps
from controller.view.types import Context
from questions.picture import Origin, Picture, worst_first
from questions.question import keep_nothing

_RESOLVED = "resolved"
_NODE = RecordKind.NODE
_CONTROLLER = Place.CONTROLLER.value
_NOTHING: Mapping[str, int] = MappingProxyType({})
_OF_TOPICS = frozenset(kind.name for subject in ("Partitions", "Topics") for kind in SECTIONS[subject])


class Gathering:
    """A picture that grows with its records. `keeps` selects the rows of the story."""

    def __init__(self, context: Context, keeps: Callable[[Row], bool] = keep_nothing) -> None:
        self.context = context
        self._keeps = keeps
        self._shows_partitions = keeps is not keep_nothing
        self._story: list[Row] = []
        self._alerts: dict[str, AlertRow] = {}
        self._records: dict[str, Record] = {}
        self._as_of_ms = 0

    @property
    def has_znodes(self) -> bool:
        """Return whether the cluster has any znodes."""
        return bool(self._records)

    def take(self, records: Sequence[Record]) -> None:
        """Apply the next records."""
        position = self.context.header.position
        for record in records:
            if record.position > position:  # otherwise the record is a repetition, or an older forwarder's
                self._note(record)
                position = record.position
        outcome = steps(self.context, records, shows_partitions=self._shows_partitions)
        self.context = outcome.context
        self._take_rows(outcome.effects)

    def picture(self) -> Picture:
        """Return the cluster after the last record."""
        return self._picture(Origin.HISTORY)

    def look(
        self,
        read: Sequence[Record],
        written_ms: Mapping[str, int],
        forbidden: frozenset[str] = frozenset(),
        *,
        has_all_topics: bool = True,
    ) -> Picture:
        """Return the cluster of one complete read, with times from its znodes, because Kontrast saw no beginning.

        If the read lacks topics, the picture has no alerts on the cluster, its brokers and its controller, because
        their counts cover only a part.
        """
        self._records = {record.path: record for record in read if record.kind is _NODE}
        self._as_of_ms = read[0].observed_ms
        outcome = context_of_read(
            self.context,
            read,
            written_ms,
            shows_partitions=self._shows_partitions,
            has_all_topics=has_all_topics,
        )
        self.context = outcome.context
        self._take_rows(outcome.effects)
        if not has_all_topics:
            self._alerts = {id_: row for id_, row in self._alerts.items() if row.alert in _OF_TOPICS}
        if _CONTROLLER in forbidden:
            self._alerts = {id_: row for id_, row in self._alerts.items() if row.alert != NO_CONTROLLER.name}
        return self._picture(Origin.LOOK, written_ms, forbidden)

    def _note(self, record: Record) -> None:
        self._as_of_ms = record.observed_ms
        if record.kind is _NODE:
            self._records[record.path] = record
        elif record.kind is RecordKind.DELETED:
            self._records.pop(record.path, None)
        elif record.kind is RecordKind.SNAPSHOT_BEGIN:
            self._records = {}

    def _take_rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if isinstance(row, AlertRow):
                if row.state == _RESOLVED:
                    self._alerts.pop(row.id, None)
                else:
                    self._alerts[row.id] = row
            if self._keeps(row):
                self._story.append(row)

    def _picture(
        self, origin: Origin, written_ms: Mapping[str, int] = _NOTHING, forbidden: frozenset[str] = frozenset()
    ) -> Picture:
        return Picture(
            origin=origin,
            context=self.context,
            alerts=worst_first(self._alerts.values()),
            story=tuple(self._story),
            records=self._records,
            written_ms=written_ms,
            as_of_ms=self._as_of_ms,
            forbidden=forbidden,
        )
