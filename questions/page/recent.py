"""The past of a cluster in short: the state of each hour, the newest events, and what changed before a moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow, Maintenance
from controller.contract.ids import NO_BROKER
from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow, TopicRow
from controller.contract.row import Row
from questions.check.state import HITS_CLIENTS, State
from questions.doubts import BLINDING
from questions.memory import Memory
from questions.past import Replacement, is_notable
from wording.facts import Left, without_zxid
from wording.sentences import counted, event_of, joined, listed
from wording.times import moment

HOURS: Final = 24
_HOUR_MS: Final = 3_600_000
_STRIP_MS: Final = 15 * 60_000
_BEFORE_MS: Final = 10 * 60_000
_MOST: Final = 8
_SETTINGS: Final = {
    "min_insync_replicas": "min.insync.replicas",
    "unclean_election": "unclean.leader.election.enable",
}
_AN_ADMIN: Final = "an admin"  # because no broker writes /config, /admin or a larger assignment unasked
_WORST_FIRST: Final = (State.AFFECTED, State.DEGRADED, State.UNKNOWN)


class News(msgspec.Struct, frozen=True):
    """A change that a person wants to read of."""

    time_ms: int
    says: str
    is_bad: bool


def day_begin_ms(now_ms: int) -> int:
    """Return the beginning of the first shown hour."""
    return now_ms - HOURS * _HOUR_MS


class StateSpan(NamedTuple):
    """A time in which the cluster was in one state."""

    begin_ms: int
    end_ms: int
    state: State


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """The time around a moment, with its events. Where no span is, the cluster was well."""

    begin_ms: int
    end_ms: int
    at_ms: int  # the shown moment
    kept_since_ms: int  # nothing is known before
    spans: tuple[StateSpan, ...]  # the worst last, so that it covers the others
    events: tuple[News, ...]  # the oldest first


def strip_of(past: KnownPast, cluster: str, memory: Memory, at_ms: int) -> Strip:
    """Return the last quarter of an hour, or the quarter around an earlier moment."""
    begin_ms = (past.now_ms if past.now_ms - at_ms < _STRIP_MS else at_ms + _STRIP_MS // 2) - _STRIP_MS
    end_ms, rows = begin_ms + _STRIP_MS, memory.changes(cluster, begin_ms, past.now_ms, {AlertRow.output})
    spans = [
        StateSpan(max(begin_ms, span.begin_ms), min(end_ms, span.end_ms), span.state)
        for span in _known_spans(rows, past)
        if span.begin_ms < end_ms and span.end_ms >= begin_ms
    ]
    events = (news_of(change) for change in memory.newest_events(cluster) if begin_ms <= change.row.time_ms <= end_ms)
    return Strip(
        begin_ms=begin_ms,
        end_ms=end_ms,
        at_ms=at_ms,
        kept_since_ms=past.since_ms,
        spans=tuple(sorted(spans, key=lambda span: -_WORST_FIRST.index(span.state))),
        events=tuple(sorted((news for news in events if news is not None), key=lambda news: news.time_ms)),
    )


class KnownPast(NamedTuple):
    """How much of a cluster's past is known, and its open alerts."""

    open_alerts: Collection[AlertRow]
    since_ms: int
    unknown_since_ms: int | None  # Kontrast has not seen the cluster since then, if set
    now_ms: int


def hours_of(rows: Iterable[Row], past: KnownPast) -> tuple[str, ...]:
    """Return the worst state of each of the last hours. An hour that is not kept is empty."""
    begin_ms = day_begin_ms(past.now_ms)
    spans = _known_spans(rows, past)

    def worst(at_ms: int) -> str:
        until_ms = at_ms + _HOUR_MS
        states = {span.state for span in spans if span.begin_ms < until_ms and span.end_ms >= at_ms}
        bad = next((state for state in _WORST_FIRST if state in states), None)
        if bad is None and until_ms <= past.since_ms:
            return ""
        return (bad or State.WELL).value

    return tuple(worst(begin_ms + hour * _HOUR_MS) for hour in range(HOURS))


def _known_spans(rows: Iterable[Row], past: KnownPast) -> list[StateSpan]:
    """Return the times of alerts, without those in which the cluster was not seen, which have spans of their own."""
    spans = list(_spans(rows, past.open_alerts, past.now_ms))
    if past.unknown_since_ms is not None:
        spans.append(StateSpan(past.unknown_since_ms, past.now_ms, State.UNKNOWN))
    unknown = sorted((span.begin_ms, span.end_ms) for span in spans if span.state is State.UNKNOWN)
    return [each for span in spans for each in ([span] if span.state is State.UNKNOWN else _without(span, unknown))]


def _spans(rows: Iterable[Row], still_open: Iterable[AlertRow], now_ms: int) -> Iterator[StateSpan]:
    """Yield the times of open alerts, with the state that each means."""
    known: dict[str, AlertRow] = {row.id: row for row in still_open}
    opened: dict[str, AlertRow] = {}
    for row in rows:
        if not isinstance(row, AlertRow):
            continue
        if not row.ends_subject:
            opened[row.id] = row
        elif row.id in opened:
            yield from _span(opened.pop(row.id), row.time_ms)
    for row in {**opened, **known}.values():
        yield from _span(row, now_ms)


def _span(row: AlertRow, end_ms: int) -> Iterator[StateSpan]:
    state = State.UNKNOWN if row.alert in BLINDING else State.AFFECTED if row.alert in HITS_CLIENTS else State.DEGRADED
    if state is not State.DEGRADED or row.severity is not Severity.INFO:
        yield StateSpan(row.since_ms, end_ms, state)


def _without(span: StateSpan, unknown: Iterable[tuple[int, int]]) -> Iterator[StateSpan]:
    """Yield the parts of a span in which the cluster was known."""
    begin_ms, end_ms, state = span
    for from_ms, until_ms in unknown:
        if begin_ms < from_ms < end_ms:
            yield StateSpan(begin_ms, from_ms - 1, state)
        if from_ms < end_ms and until_ms > begin_ms:
            begin_ms = until_ms
    if begin_ms < end_ms:
        yield StateSpan(begin_ms, end_ms, state)


def news_of(change: Replacement) -> News | None:
    """Return the change of a broker, the controller or an alert as news, if it is any."""
    row = change.row
    if not is_notable(change):
        return None
    if isinstance(row, BrokerRow):
        left = Left.SHUT_DOWN if row.left_in_order else Left.CRASHED
        happened = "registered" if row.registered else left.value
        return News(row.time_ms, f"broker {row.broker} {happened}", not row.registered)
    if isinstance(row, ControllerRow):
        if row.broker == NO_BROKER:
            return News(row.time_ms, "no broker is controller", is_bad=True)
        who = "KRaft controller" if row.kraft_epoch >= 0 else "broker"
        return News(row.time_ms, f"{who} {row.broker} became controller", is_bad=False)
    if isinstance(row, AlertRow) and row.ends_subject:
        return News(row.time_ms, f"{row.alert} of {row.subject} ended", is_bad=False)
    was_open = isinstance(change.before, AlertRow) and change.before.state == "open"  # with another severity
    if isinstance(row, AlertRow) and row.state == "open" and not was_open:
        return News(row.time_ms, f"{row.alert} opened: {without_zxid(event_of(row.cause))}", is_bad=True)
    return None


def changes_before(end_ms: int, cluster: str, memory: Memory) -> tuple[News, ...]:
    """Return what people and tools, brokers and the controller changed in the minutes before, the newest first.

    Like changes of several partitions of a topic are one.
    """
    changes = memory.replaced_between(cluster, end_ms - _BEFORE_MS, end_ms)
    found: dict[str, tuple[int, set[int]]] = {}
    news: list[News] = []
    # Brokers that register after an empty first read are no change either.
    begins = any(isinstance(each.before, GaugesRow) and not each.before.active_brokers for each in changes)
    for change in changes:
        said = None if isinstance(change.row, AlertRow) else news_of(change)
        news += [said] if said is not None else []
        for says in () if begins and isinstance(change.row, BrokerRow) else _said(change):
            number = {change.row.partition} if isinstance(change.row, PartitionRow) else set()
            began_ms, numbers = found.get(says, (change.row.time_ms, set()))
            found[says] = began_ms, numbers | number
    news += [News(began_ms, f"{says}{_named(numbers)}", is_bad=False) for says, (began_ms, numbers) in found.items()]
    return tuple(sorted(news, key=lambda each: each.time_ms)[: -_MOST - 1 : -1])


def _named(numbers: set[int]) -> str:
    names = joined(list(map(str, sorted(numbers))))
    return f", {'partition' if len(numbers) == 1 else 'partitions'} {names}" if numbers else ""


def _said(change: Replacement) -> Iterator[str]:
    before, row, _ = change
    if isinstance(row, TopicRow):
        yield from _of_topic(before if isinstance(before, TopicRow) else None, row)
    elif isinstance(row, PartitionRow) and isinstance(before, PartitionRow):
        was_moving, moves = (bool(each.adding_replicas or each.removing_replicas) for each in (before, row))
        if moves != was_moving:
            yield (
                f"{_AN_ADMIN} asked for a reassignment of {row.topic}"
                if moves
                else f"a reassignment of {row.topic} ended"
            )
        elif before.replicas != row.replicas:
            yield f"{row.topic} was assigned to other brokers"
    elif isinstance(row, BrokerRow) and row.registered:
        if before is None:
            yield f"broker {row.broker} registered for the first time"
        elif isinstance(before, BrokerRow) and before.registered and before.epoch != row.epoch:
            yield f"broker {row.broker} registered again"
    elif isinstance(row, GaugesRow) and isinstance(before, GaugesRow):
        yield from (f"{_window(each)} began, until {moment(each.until_ms)}" for each in _new(row, before))
        yield from (f"{_window(each)} ended" for each in _new(before, row))


def _of_topic(before: TopicRow | None, row: TopicRow) -> Iterator[str]:
    if before is None or row.removed:
        by = " by the controller" if before is not None and before.deletion is not None else ""
        happened = f"created with {counted(row.partitions, 'partition')}" if before is None else f"deleted{by}"
        yield f"topic {row.topic} was {happened}"
        return
    if before.deletion is None and row.deletion is not None:
        yield f"{_AN_ADMIN} asked for the deletion of topic {row.topic}"
    if before.partitions < row.partitions:
        yield f"{_AN_ADMIN} gave topic {row.topic} {counted(row.partitions - before.partitions, 'more partition')}"
    for field, name in _SETTINGS.items():
        was, is_ = getattr(before, field), getattr(row, field)
        if was != is_:
            yield f"{_AN_ADMIN} changed {name} of topic {row.topic} from {_value(was)} to {_value(is_)}"


def _value(value: int | bool | None) -> str:
    return "the brokers' setting" if value is None else str(value).lower()


def _new(after: GaugesRow, before: GaugesRow) -> Iterator[Maintenance]:
    return (window for window in after.maintenance if window not in before.maintenance)


def _window(window: Maintenance) -> str:
    of = listed(window.brokers) if window.brokers else "the cluster"
    return f"the maintenance window of {of}{f' ({window.reason})' if window.reason else ''}"
