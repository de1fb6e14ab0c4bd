"""What changed in a cluster in the minutes before a moment, such as the start of an incident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow, Maintenance
from controller.contract.metadata_rows import BrokerRow, PartitionRow, TopicRow
from questions.overview.recent import News, news_of
from questions.past import Replacement
from wording.sentences import counted, joined, listed
from wording.times import moment

BEFORE_MS: Final = 10 * 60_000
_MOST: Final = 8
_SETTINGS: Final = {
    "min_insync_replicas": "min.insync.replicas",
    "unclean_election": "unclean.leader.election.enable",
}


def changes_of(changes: Iterable[Replacement]) -> tuple[News, ...]:
    """Return the changes that people and tools make, and those of brokers and the controller, the newest first.

    Like changes of several partitions of a topic are one.
    """
    found: dict[str, tuple[int, set[int]]] = {}
    news: list[News] = []
    for change in changes:
        said = None if isinstance(change.row, AlertRow) else news_of(change)
        news += [said] if said is not None else []
        for says in _said(change):
            number = {change.row.partition} if isinstance(change.row, PartitionRow) else set()
            began_ms, numbers = found.get(says, (change.row.time_ms, set()))
            found[says] = began_ms, numbers | number
    news += [
        News(began_ms, _with_partitions(says, numbers), is_bad=False) for says, (began_ms, numbers) in found.items()
    ]
    return tuple(sorted(news, key=lambda each: each.time_ms)[: -_MOST - 1 : -1])


def _with_partitions(says: str, numbers: set[int]) -> str:
    names = joined(list(map(str, sorted(numbers))))
    return f"{says}, {'partition' if len(numbers) == 1 else 'partitions'} {names}" if numbers else says


def _said(change: Replacement) -> Iterator[str]:
    before, row, _ = change
    if isinstance(row, TopicRow):
        yield from _of_topic(before if isinstance(before, TopicRow) else None, row)
    elif isinstance(row, PartitionRow) and isinstance(before, PartitionRow):
        was_moving, moves = (bool(each.adding_replicas or each.removing_replicas) for each in (before, row))
        if moves != was_moving:
            yield f"a reassignment of {row.topic} {'began' if moves else 'ended'}"
        elif before.replicas != row.replicas:
            yield f"{row.topic} was assigned to other brokers"
    elif isinstance(row, BrokerRow) and row.registered:
        if before is None:
            yield f"broker {row.broker} registered for the first time"
        elif isinstance(before, BrokerRow) and before.registered and before.epoch != row.epoch:
            yield f"broker {row.broker} registered anew"
    elif isinstance(row, GaugesRow) and isinstance(before, GaugesRow):
        yield from (f"{_window(each)} began, until {moment(each.until_ms)}" for each in _new(row, before))
        yield from (f"{_window(each)} ended" for each in _new(before, row))


def _of_topic(before: TopicRow | None, row: TopicRow) -> Iterator[str]:
    if before is None or row.removed:
        happened = f"created with {counted(row.partitions, 'partition')}" if before is None else "deleted"
        yield f"topic {row.topic} was {happened}"
        return
    if before.deletion is None and row.deletion is not None:
        yield f"the deletion of topic {row.topic} was requested"
    if before.partitions < row.partitions:
        yield f"topic {row.topic} got {counted(row.partitions - before.partitions, 'more partition')}"
    for field, name in _SETTINGS.items():
        was, is_ = getattr(before, field), getattr(row, field)
        if was != is_:
            yield f"{name} of topic {row.topic} was changed from {_value(was)} to {_value(is_)}"


def _value(value: int | bool | None) -> str:
    return "the brokers' setting" if value is None else str(value).lower()


def _new(after: GaugesRow, before: GaugesRow) -> Iterator[Maintenance]:
    return (window for window in after.maintenance if window not in before.maintenance)


def _window(window: Maintenance) -> str:
    of = listed(window.brokers) if window.brokers else "the cluster"
    return f"the maintenance window of {of}{f' ({window.reason})' if window.reason else ''}"
