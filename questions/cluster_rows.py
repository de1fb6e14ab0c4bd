"""Newest rows of one cluster, now or at an earlier moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import UNKNOWN_ZXID, BrokerId, PartitionId
from controller.contract.metadata_rows import (
    BrokerRow,
    ControllerRow,
    MetadataRow,
    MigrationRow,
    PartitionRow,
    TopicRow,
)
from controller.contract.newest_rows import NewestRows
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.contract.row import Row
from controller.restore import CHUNK_COUNT
from controller.restore.context_of_rows import context_of_rows
from controller.restore.stored_context import new_context
from controller.rules.topic_ranks import TopicRanks
from controller.says.alert_kinds.brokers import BROKER_CRASHED, HANGS
from controller.view.types import Context
from questions.doubts import STALE, check_of, hidden_by, silence
from questions.past import Past, Replaced, Replacement
from questions.picture import Origin, Picture, Present, worst_first
from wording.sentences import counted
from wording.times import rfc3339

_REMEMBERED_ENDINGS: Final = 1_000  # resolved alerts, because the sender of an alert must also send its end

_RESTART: Final = HANGS.in_words()
_KEYS: Final[Mapping[type[Row], Callable[[Any], Hashable]]] = MappingProxyType(
    {
        PartitionRow: attrgetter("topic", "partition"),
        TopicRow: attrgetter("topic"),
        BrokerRow: attrgetter("broker"),
        ControllerRow: attrgetter("cluster"),
        MigrationRow: attrgetter("cluster"),
        AlertRow: attrgetter("id"),
        GaugesRow: attrgetter("cluster"),
    }
)

_Row = TypeVar("_Row", bound=Row)
_PartitionKey = tuple[str, PartitionId]


class TopicRows(NamedTuple):
    """A topic's settings, if they are known, and its partitions."""

    row: TopicRow | None
    partitions: Mapping[PartitionId, PartitionRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One cluster at one moment, with the topics that were asked for."""

    cluster: str
    gauges: GaugesRow | None  # None before the first heartbeat, and at a moment whose gauges are not kept
    controller: ControllerRow | None
    migration: MigrationRow | None  # None before the first row
    brokers: tuple[BrokerRow, ...]  # every known broker, registered or not
    unusable: tuple[PartitionRow, ...]  # the longest unusable first
    under_min_isr: tuple[PartitionRow, ...]  # partitions with a leader that reject acks=all, the longest refusing first
    lacking: tuple[PartitionRow, ...]  # usable partitions that lack a replica
    open_alerts: tuple[AlertRow, ...]  # not resolved, the oldest first
    resolved_alerts: tuple[AlertRow, ...]  # the newest only
    topics: Mapping[str, TopicRows]
    clock_behind_ms: int = 0  # how far the forwarder's clock is behind the job's, 0 if they agree
    shared: str = ""  # a sentence if several sources have a cluster of this name

    @property
    def metadata(self) -> list[MetadataRow]:
        """Return the rows of metadata, of topics only the requested ones."""
        rows: list[MetadataRow | None] = [*self.brokers, self.controller, self.migration]
        for topic in self.topics.values():
            rows.append(topic.row)
            rows += topic.partitions.values()
        return [row for row in rows if row is not None]

    @property
    def alert_counts(self) -> Mapping[tuple[str, str, str], int]:
        """Return the number of open alerts by name, severity and state."""
        return Counter((row.alert, row.severity.value, row.state) for row in self.open_alerts)

    @property
    def heartbeat_ms(self) -> int | None:
        """Return the time of the newest heartbeat, by the job's clock if the forwarder's is wrong."""
        return None if self.gauges is None else self.gauges.time_ms + self.clock_behind_ms

    @property
    def ready(self) -> bool:
        """Return whether the rows follow from a complete read of the cluster, and no other cluster has its name."""
        return self.gauges is not None and self.gauges.ready and not self.shared

    def picture(
        self,
        alerts: Collection[AlertRow] | None = None,
        present: Present | None = None,
        context: Context | None = None,
        *,
        counted: bool = True,
        ranks: TopicRanks = (),
    ) -> Picture:
        """Return the picture with the given open alerts, by default all. The cluster must have gauges.

        `context` is the whole cluster's, if it was built before. Only a question about one partition needs no counts.
        `ranks` give the order of topics.
        """
        assert self.gauges is not None, "a cluster that was not read"
        if context is None:
            empty = _empty(self.cluster, max(1, min(CHUNK_COUNT, len(self.topics))), ranks)
            context = context_of_rows(empty, self.metadata, self.gauges, counted=counted)
            departures = context.header.departures
            hanging = {broker for row in self.open_alerts if row.action == _RESTART for broker in row.brokers}
            for broker in hanging.intersection(departures.last):
                departures.note(broker, msgspec.structs.replace(departures.last[broker], hangs=True))
        return Picture(
            origin=Origin.HISTORY,
            context=context,
            alerts=worst_first(self.open_alerts if alerts is None else alerts),
            story=None,
            as_of_ms=self.gauges.time_ms + self.clock_behind_ms,
            present=present,
        )

    def stale_alert(self, heard_ms: int, since_ms: int, silent: str) -> AlertRow:
        """Return the alert ReplicaStale from `since_ms` on. `silent` is the process that stopped, if known."""
        unknown, gauges = len(self.open_alerts), self.gauges
        because = f" because `{silent}` is silent" if silent else ""
        return AlertRow(
            cluster=self.cluster,
            generation=gauges.generation if gauges else -1,
            seq=gauges.seq if gauges else -1,
            ordinal=0,
            zxid=gauges.zxid if gauges else UNKNOWN_ZXID,
            time_ms=heard_ms,
            id=STALE,
            alert=STALE,
            state="open",
            severity=Severity.PAGE,
            subject=f"cluster {self.cluster}",
            group="replica",
            since_ms=since_ms,
            cause=f"Kontrast has received no heartbeat of {self.cluster} since {rfc3339(heard_ms)}{because}; its "
            f"{counted(unknown, 'open alert')} may be over, and it sees no new ones",
            action=f"{check_of(silent)}. Until then use Kafka's own metrics",
            evidence=() if gauges is None else (f"the newest heartbeat is {gauges.generation}-{gauges.seq}",),
        )

    def is_seen(self, present: Present) -> bool:
        """Return whether Kontrast sees the cluster now."""
        return self.ready and not self.is_silent(present) and hidden_by(self.open_alerts) is None

    def is_silent(self, present: Present) -> bool:
        """Return whether no heartbeat arrives any more."""
        heard_ms = self.heartbeat_ms
        return heard_ms is not None and silence(heard_ms, present) is not None


@lru_cache(1 << 7)
def _empty(cluster: str, chunk_count: int, ranks: TopicRanks) -> Context:
    return new_context(cluster, chunk_count=chunk_count, topic_ranks=ranks)


def problem_since_ms(row: PartitionRow) -> int:
    """Return the start of the partition's issue, in milliseconds since 1970."""
    return row.time_ms if row.problem_since_ms is None else row.problem_since_ms


class _Partitions(MutableMapping[_PartitionKey, PartitionRow]):
    """Partitions by topic and number. A key for each row would take a seventh of the memory of all rows."""

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[PartitionId, PartitionRow]] = {}
        self._names: list[str] | None = None

    def names(self) -> list[str]:
        """Return names of topics, in order."""
        if self._names is None:
            self._names = sorted(self.by_topic)
        return self._names

    def get(self, key: _PartitionKey, default: Any = None) -> Any:  # noqa: ANN401 (as a dict's)
        rows = self.by_topic.get(key[0])
        return default if rows is None else rows.get(key[1], default)

    def __getitem__(self, key: _PartitionKey) -> PartitionRow:
        return self.by_topic[key[0]][key[1]]

    def __setitem__(self, key: _PartitionKey, row: PartitionRow) -> None:
        rows = self.by_topic.get(key[0])
        if rows is None:
            rows = self.by_topic[key[0]] = {}
            self._names = None
        rows[key[1]] = row

    def __delitem__(self, key: _PartitionKey) -> None:
        topic, number = key
        del self.by_topic[topic][number]
        if not self.by_topic[topic]:
            del self.by_topic[topic]
            self._names = None

    def __iter__(self) -> Iterator[_PartitionKey]:
        return ((topic, number) for topic, rows in self.by_topic.items() for number in rows)

    def __len__(self) -> int:
        return sum(map(len, self.by_topic.values()))

    def clear(self) -> None:
        self.by_topic, self._names = {}, None


class _OldestFirst(Generic[_Row]):
    """Some rows of a kind, sorted when they are asked for and kept sorted until one changes."""

    def __init__(
        self, kind: type[_Row], belongs: Callable[[_Row], bool], order: Callable[[_Row], tuple[object, ...]]
    ) -> None:
        self.kind = kind
        self._belongs = belongs
        self._order = order
        self._rows: dict[Hashable, _Row] = {}
        self._in_order: tuple[_Row, ...] | None = ()

    def file(self, key: Hashable, row: _Row) -> None:
        """Keep a subject's newest row if it belongs here, and drop the subject otherwise."""
        if not row.ends_subject and self._belongs(row):
            self._rows[key] = row
            self._in_order = None
        elif self._rows.pop(key, None) is not None:
            self._in_order = None

    def clear(self) -> None:
        self._rows, self._in_order = {}, ()

    def in_order(self, then: Mapping[Hashable, Any]) -> tuple[_Row, ...]:
        """Return the rows in order. At an earlier moment, `then` has the rows of subjects that changed since."""
        if then:
            rows = [row for row in _held(self._rows, then).values() if self._belongs(row)]
            return tuple(sorted(rows, key=self._order))
        if self._in_order is None:
            self._in_order = tuple(sorted(self._rows.values(), key=self._order))
        return self._in_order


def _by_age_of_problem(row: PartitionRow) -> tuple[object, ...]:
    return (problem_since_ms(row), row.topic, row.partition)


class ClusterRows:
    """The newest row of each subject of one cluster, with its past."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self.partitions = _Partitions()
        self.changes: Counter[str] = Counter()  # by output
        self.resolved: dict[str, AlertRow] = {}
        self.answering: frozenset[BrokerId] = frozenset()  # brokers that left, and whose port still answers
        self.forgotten = False  # by an operator, so the cluster does not exist until a row arrives
        self._newest: dict[type[Row], NewestRows[Any, Any]] = {kind: NewestRows() for kind in _KEYS}
        self._newest[PartitionRow] = NewestRows(self.partitions)
        self._unusable = _OldestFirst(PartitionRow, lambda row: row.problem in UNUSABLE_WORDS, _by_age_of_problem)
        self._under_min_isr = _OldestFirst(
            PartitionRow, lambda row: row.problem == Problem.UNDER_MIN_ISR.value, _by_age_of_problem
        )
        self._lacking = _OldestFirst(
            PartitionRow, lambda row: row.problem == Problem.UNDER_REPLICATED.value, _by_age_of_problem
        )
        self._open_alerts = _OldestFirst(AlertRow, lambda _: True, lambda row: (row.since_ms, row.id))
        self._ordered: tuple[_OldestFirst[Any], ...] = (
            *(self._unusable, self._under_min_isr, self._lacking),
            self._open_alerts,
        )

    @property
    def is_gone(self) -> bool:
        """Return whether the cluster was forgotten, and since then only ends of alerts have arrived."""
        return self.forgotten and not any(newest.rows for newest in self._newest.values())

    def apply(self, row: Row) -> bool:
        """Apply a row. Return False if a newer one of its subject is known."""
        kind = type(row)
        newest = self._newest.get(kind)
        if newest is None:
            return False
        key = _KEYS[kind](row)
        before = newest.rows.get(key)
        if not newest.apply(key, row, removes=row.ends_subject):
            return False
        for ordered in self._ordered:
            if ordered.kind is kind:
                ordered.file(key, row)
        if isinstance(row, AlertRow):
            self._note_ending(row)
        if isinstance(row, BrokerRow) and row.registered:
            self.answering -= {row.broker}
        self.changes[row.output] += 1
        self.past.note(Replacement(before, row, key))
        return True

    def _note_ending(self, row: AlertRow) -> None:
        self.resolved.pop(row.id, None)
        if row.ends_subject:
            self.resolved[row.id] = row
            if len(self.resolved) > _REMEMBERED_ENDINGS:
                del self.resolved[next(iter(self.resolved))]

    def forget(self, output: str, *, for_good: bool) -> None:
        """Drop the rows of this output. If `for_good`, an operator forgot the cluster, and ends of alerts stay."""
        self.changes[output] += 1
        self.past.forget(output)
        self.forgotten = for_good
        for kind, newest in self._newest.items():
            if kind.output == output:
                newest.clear()
        for ordered in self._ordered:
            if ordered.kind.output == output:
                ordered.clear()
        if output == AlertRow.output and not for_good:
            self.resolved = {}

    def gauges(self, at_ms: int | None = None) -> GaugesRow | None:
        """Return the newest gauges, or those of a moment."""
        if at_ms is None:
            return next(iter(self._newest[GaugesRow].rows.values()), None)
        then = self.past.gauges_at(at_ms)
        return None if then is None else msgspec.structs.replace(then, time_ms=at_ms)

    def snapshot(
        self, cluster: str, clock_behind_ms: int, at_ms: int | None = None, topics: Collection[str] | None = ()
    ) -> ClusterSnapshot:
        """Return the cluster now or at a kept moment, with the named topics, or all for None."""
        then = {} if at_ms is None else self.past.replaced_after(at_ms)
        brokers: dict[Any, BrokerRow] = _held(self._newest[BrokerRow].rows, then.get(BrokerRow, {}))
        controller, migration = self._newest[ControllerRow].rows, self._newest[MigrationRow].rows
        if then:
            controller = _held(controller, then.get(ControllerRow, {}))
            migration = _held(migration, then.get(MigrationRow, {}))
        alerts = self._open_alerts.in_order(then.get(AlertRow, {}))
        of_partitions = then.get(PartitionRow, {})
        return ClusterSnapshot(
            cluster=cluster,
            gauges=self.gauges(at_ms),
            controller=next(iter(controller.values()), None),
            migration=next(iter(migration.values()), None),
            brokers=tuple(map(brokers.__getitem__, sorted(brokers))),
            unusable=self._unusable.in_order(of_partitions),
            under_min_isr=self._under_min_isr.in_order(of_partitions),
            lacking=self._lacking.in_order(of_partitions),
            open_alerts=tuple(map(self._told, alerts)) if self.answering else alerts,
            resolved_alerts=tuple(self.resolved.values()),
            topics=self._topics(then, topics),
            clock_behind_ms=clock_behind_ms if at_ms is None else 0,
        )

    def _told(self, row: AlertRow) -> AlertRow:
        hang = row.alert == BROKER_CRASHED.name and self.answering.issuperset(row.brokers)
        return msgspec.structs.replace(row, action=_RESTART) if hang else row

    def _topics(self, then: Replaced, names: Collection[str] | None) -> dict[str, TopicRows]:
        """Return the named topics that have a row, or all topics for None."""
        settings: Mapping[str, TopicRow] = self._newest[TopicRow].rows
        settings_then: Mapping[Any, Any] = then.get(TopicRow, {})
        partitions_then: dict[str, dict[PartitionId, Any]] = {}
        of_partitions: Mapping[Any, Any] = then.get(PartitionRow, {})
        for (topic, number), row in of_partitions.items():
            partitions_then.setdefault(topic, {})[number] = row
        found: dict[str, TopicRows] = {}
        every = settings.keys() | self.partitions.by_topic.keys() | settings_then.keys() | partitions_then.keys()
        for name in every if names is None else names:
            row = settings_then[name] if name in settings_then else settings.get(name)
            rows = _held(self.partitions.by_topic.get(name, {}), partitions_then.get(name, {}))
            if row is not None or rows:
                found[name] = TopicRows(row, rows)
        return found


def _held(now: Mapping[Any, _Row], then: Mapping[Any, Any]) -> dict[Any, _Row]:
    """Return the rows of an earlier moment. `then` has its rows of subjects that changed since, None for no row."""
    if not then:
        return dict(now)
    return {key: row for key, row in {**now, **then}.items() if row is not None}
