"""The last day of a cluster, with the worst state of each hour, and the newest events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from controller.contract.alert_kinds import kinds
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import NO_BROKER
from controller.contract.metadata_rows import BrokerRow, ControllerRow
from controller.contract.row import Row
from questions.doubts import BLINDING
from questions.past import Change
from questions.state import State
from wording.facts import Departure
from wording.sentences import event_of

HOURS: Final = 24
_HOUR_MS: Final = 3_600_000
_NEWS_OF_A_PAGE: Final = 6
_ZXID: Final = re.compile(r" at zxid 0x[0-9a-f]+")
_WORST_FIRST: Final = (State.AFFECTED, State.DEGRADED, State.UNKNOWN)
# They inform while a broker is shut down or maintained, but partitions are offline or reject acks=all all the same.
_DEGRADE: Final = frozenset({kinds.PARTITIONS_OFFLINE.name, kinds.UNDER_MIN_ISR.name})
_STATES: Final = {Severity.PAGE: State.AFFECTED, Severity.WARN: State.DEGRADED}


class News(msgspec.Struct, frozen=True):
    """A change that a person wants to read of."""

    time_ms: int
    says: str
    is_bad: bool


def day_begin_ms(now_ms: int) -> int:
    """Return the beginning of the first shown hour."""
    return now_ms - HOURS * _HOUR_MS


def hours_of(
    rows: Iterable[Row], still_open: Iterable[AlertRow], kept_since_ms: int, unknown_since_ms: int | None, now_ms: int
) -> tuple[str, ...]:
    """Return the worst state of each of the last hours. An hour that is not kept is empty."""
    begin_ms = day_begin_ms(now_ms)
    spans = list(_spans(rows, still_open, now_ms))
    if unknown_since_ms is not None:
        spans.append((unknown_since_ms, now_ms, State.UNKNOWN))
    unknown = sorted((begin_ms, end_ms) for begin_ms, end_ms, state in spans if state is State.UNKNOWN)
    spans = [each for span in spans for each in ([span] if span[2] is State.UNKNOWN else _without(span, unknown))]

    def worst(at_ms: int) -> str:
        until_ms = at_ms + _HOUR_MS
        states = {state for since_ms, end_ms, state in spans if since_ms < until_ms and end_ms >= at_ms}
        bad = next((state for state in _WORST_FIRST if state in states), None)
        if bad is None and until_ms <= kept_since_ms:
            return ""
        return (bad or State.WELL).value

    return tuple(worst(begin_ms + hour * _HOUR_MS) for hour in range(HOURS))


def _spans(rows: Iterable[Row], still_open: Iterable[AlertRow], now_ms: int) -> Iterator[tuple[int, int, State]]:
    """Yield the begin and end of open alerts, with the state that each means."""
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


def _span(row: AlertRow, end_ms: int) -> Iterator[tuple[int, int, State]]:
    state = State.UNKNOWN if row.alert in BLINDING else _STATES.get(row.severity)
    if state is None and row.alert in _DEGRADE:
        state = State.DEGRADED
    if state is not None:
        yield row.since_ms, end_ms, state


def _without(span: tuple[int, int, State], unknown: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, State]]:
    """Yield the parts of a span in which the cluster was known."""
    begin_ms, end_ms, state = span
    for from_ms, until_ms in unknown:
        if begin_ms < from_ms < end_ms:
            yield begin_ms, from_ms - 1, state
        if from_ms < end_ms and until_ms > begin_ms:
            begin_ms = until_ms
    if begin_ms < end_ms:
        yield begin_ms, end_ms, state


def news_of(changes: Sequence[Change]) -> tuple[News, ...]:
    """Return the newest changes, the newest first."""
    said = map(_news, sorted(changes, key=lambda change: change.row.time_ms)[::-1])
    return tuple(news for news in said if news is not None)[:_NEWS_OF_A_PAGE]


def _news(change: Change) -> News | None:
    row = change.row
    if isinstance(row, BrokerRow):
        left = Departure.SHUT_DOWN if row.left_in_order else Departure.CRASHED
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
        clause = _ZXID.sub("", event_of(row.cause))
        return News(row.time_ms, f"{row.alert} opened: {clause}", is_bad=True)
    return None
