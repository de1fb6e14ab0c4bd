"""A cluster at a kept moment, and the events around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Transition
from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from questions.cluster_rows import ClusterSnapshot
from questions.explain.subject import Subject
from questions.page.known_clusters import KnownCluster
from questions.page.overview import Overview
from questions.page.search import subject_of
from questions.page.topics import similar_subjects
from questions.picture import Origin, Picture
from questions.question import Question, meaning
from questions.timeline.events import EntryKind, HistorySpan, Selection, TimelineRows
from questions.timeline.lanes import LaneCondition, lanes_of
from questions.timeline.timeline import Timeline, timeline_of
from wording.sentences import did_you_mean

# Limits on changes of partitions that become events, for the newest ones and for beginnings of incidents.
# The picture shows all kept changes.
_MOST_NEWEST: Final = 3_000
_MOST_AT_BEGINNINGS: Final = 1_500
_NAMED_EVENTS: Final = 200
_RECENT_MS: Final = 15 * 60_000
_BEGINNING_MS: Final = 5_000  # of an incident. Brokers leave within a session timeout, elections follow within a second
WINDOWS_SECONDS: Final = MappingProxyType(
    {
        **{10: "10 seconds", 60: "a minute", 300: "5 minutes", 900: "15 minutes", 3_600: "an hour"},
        **{21_600: "6 hours", 86_400: "a day", 604_800: "a week"},
    }
)
"""Lengths of the time around a moment, with their names."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Events between two moments, and the cluster at the moment `at_ms` between them."""

    overview: Overview
    at_ms: int
    begin_ms: int
    end_ms: int
    newest_ms: int
    kept_since_ms: int
    timeline: Timeline | None  # with some of its events, if any happened
    earlier_events: int  # events that `timeline` leaves out
    previous_ms: int | None  # of the event before the moment
    next_ms: int | None
    notes: tuple[str, ...]  # why events may be missing


class ShowHistory(Question, frozen=True):
    """The cluster at a kept moment, and the events around it."""

    answer = History
    path = "/clusters/{cluster}/timeline"
    has_past = True

    window: Annotated[
        int,
        meaning("Seconds of the time around the moment."),
        msgspec.Meta(extra_json_schema={"enum": list(WINDOWS_SECONDS)}),
    ] = 3_600
    of: Annotated[
        str, meaning("Only events of this subject, for example orders-7, orders, broker 3 or controller.")
    ] = ""
    kind: Annotated[
        EntryKind | None,
        meaning("Only events of this kind. Default: all."),
        msgspec.Meta(extra_json_schema={"type": "string", "enum": [kind.value for kind in EntryKind]}),
    ] = None

    def __post_init__(self) -> None:
        """Raise ValueError for another length of time, and for words that name no subject."""
        if self.window not in WINDOWS_SECONDS:
            raise ValueError(f"window is one of {', '.join(map(str, WINDOWS_SECONDS))} seconds")
        if self.of.strip() and subject_of(self.of) is None:
            raise ValueError("of has no subject. Write orders-7, orders, broker 3 or controller")

    def on_page(self, cluster: KnownCluster) -> History:
        """Return the past around the moment, by default the newest. Raise NotFoundError if none is kept."""
        past = cluster.memory.kept(cluster.snapshot().cluster)
        if past is None:
            raise cluster.nothing_kept()
        since_ms, newest_ms = past
        at_ms = newest_ms if cluster.at_ms is None else cluster.at_ms
        lasts_ms = self.window * 1000
        end_ms = min(newest_ms, at_ms + lasts_ms // 2)
        begin_ms = max(since_ms, end_ms - lasts_ms)
        then = cluster.memory.cluster(cluster.name, at_ms)
        assert then is not None, "a cluster that was there a moment ago"
        timeline, notes = self._timeline(cluster, then, begin_ms, end_ms)
        moments = [] if timeline is None else sorted({event.time_ms for event in timeline.events})
        before, behind = bisect_left(moments, at_ms), bisect_right(moments, at_ms)
        return History(
            overview=_overview(cluster, then),
            at_ms=at_ms,
            begin_ms=begin_ms,
            end_ms=end_ms,
            newest_ms=newest_ms,
            kept_since_ms=since_ms,
            timeline=None if timeline is None else _cut(timeline),
            earlier_events=0 if timeline is None else max(0, len(timeline.events) - _NAMED_EVENTS),
            previous_ms=moments[before - 1] if before else None,
            next_ms=moments[behind] if behind < len(moments) else None,
            notes=tuple(notes),
        )

    def _timeline(
        self, cluster: KnownCluster, then: ClusterSnapshot, begin_ms: int, end_ms: int
    ) -> tuple[Timeline | None, list[str]]:
        # Before the rows are taken, because transitions that are read in between would be neither shown nor missed.
        notes = [note for note in (cluster.note, cluster.clusters.why_incomplete()) if note]
        changed, subject = cluster.memory.changes(cluster.name, begin_ms, end_ms), subject_of(self.of)
        every = _with_unchanged(changed, then, begin_ms)
        story = _beginnings_and_newest(every)
        if len(story) < len(every):
            notes.append(
                f"{len(every) - len(story)} of {len(every)} changes have no entry below. The list has the beginning of "
                "each incident and the newest changes. The picture has every change"
            )
        context = new_context(cluster.name, chunk_count=1)
        picture = Picture(origin=Origin.HISTORY, context=context, story=tuple(story), as_of_ms=end_ms)
        window = HistorySpan(since_ms=begin_ms, until_ms=end_ms)
        timeline = timeline_of(picture, _selection(subject), window, pictured=every) if story else None
        if timeline is not None and self.kind is not None:
            of_kind = tuple(event for event in timeline.events if event.kind is self.kind)
            timeline = msgspec.structs.replace(timeline, events=of_kind)
        if timeline is None and subject is not None:
            similar = did_you_mean(similar_subjects(cluster.memory, cluster.name, subject))
            notes += [f"There is no {self.of.strip()}{similar}"] if similar else []
        return timeline, notes


def recent_lanes(cluster: KnownCluster, subject: Subject) -> Timeline | None:
    """Return the lanes of a subject in the last minutes before the moment, if anything was wrong with it.

    A partition has the lanes of its brokers, too.
    """
    past = cluster.memory.kept(cluster.name)
    then = cluster.memory.cluster(cluster.name, cluster.at_ms, subject.topics or ())
    if past is None or then is None:
        return None
    end_ms = past.newest_ms if cluster.at_ms is None else past.nearest(cluster.at_ms)
    begin_ms = max(past.since_ms, end_ms - _RECENT_MS)
    changed = cluster.memory.changes(cluster.name, begin_ms, end_ms, {PartitionRow.output, AlertRow.output})
    wanted = _selection(subject)
    if subject.partition is not None:
        tp = subject.partition
        row = then.topics[tp.topic].partitions.get(tp.partition) if tp.topic in then.topics else None
        wanted = Selection(partitions=frozenset({tp}), brokers=frozenset(row.replicas if row is not None else ()))
    rows = [row for row in _with_unchanged(changed, then, begin_ms) if _is_of(row, wanted)]
    lanes = lanes_of(rows, wanted, begin_ms, end_ms, by_topic=bool(wanted.topics))
    if all(span.condition is LaneCondition.WELL for lane in lanes.lanes for span in lane.spans):
        return None
    return Timeline(
        cluster=cluster.name, about=wanted.words, begin_ms=begin_ms, end_ms=end_ms, events=(), pictured=lanes
    )


def _overview(cluster: KnownCluster, then: ClusterSnapshot) -> Overview:
    """Return the cluster at the moment, or as it is known now if no moment is asked for."""
    whole = cluster.memory.cluster(cluster.name, cluster.at_ms, None) or then
    found = replace(whole, topics={})
    made = cluster.clusters.overviews.overview(found, cluster.present(found), cluster.at_ms)
    return cluster.mapped(made, whole)


def _is_of(row: Row, wanted: Selection) -> bool:
    """Return whether a lane of the subject shows the row. Alerts show when Kontrast or the controller was away."""
    if isinstance(row, PartitionRow):
        return wanted.names(row.topic, row.partition)
    return isinstance(row, AlertRow) or wanted.is_about(row, None)


def _with_unchanged(changed: Iterable[Row], then: ClusterSnapshot, begin_ms: int) -> list[Row]:
    """Return the rows of timelines in their order, with brokers, controller and partitions that did not change."""
    of_topics = (row for topic in then.topics.values() for row in topic.partitions.values())
    unchanged = (
        *(*then.brokers, *then.unusable, *then.under_min_isr, *of_topics),
        *([then.controller] if then.controller else []),
    )
    rows = {(row.generation, row.seq, row.ordinal): row for row in changed}
    rows |= {(row.generation, row.seq, row.ordinal): row for row in unchanged if row.time_ms < begin_ms}
    is_kept = TimelineRows()
    return [rows[place] for place in sorted(rows) if is_kept(rows[place])]


def _beginnings_and_newest(rows: list[Row]) -> list[Row]:
    """Return the rows, of very many changes of partitions only the newest and those where an incident begins."""
    begun_ms = [row.time_ms for row in rows if _begins_an_incident(row)]
    of_partitions = [at for at, row in enumerate(rows) if _is_of_partition(row)]
    if len(of_partitions) <= _MOST_NEWEST:
        return rows
    kept = set(of_partitions[-_MOST_NEWEST:])
    share = _MOST_AT_BEGINNINGS // max(1, len(begun_ms))
    times_ms = [rows[at].time_ms for at in of_partitions]
    for begin_ms in begun_ms:
        first = bisect_left(times_ms, begin_ms)
        last = bisect_right(times_ms, begin_ms + _BEGINNING_MS)
        kept.update(of_partitions[first : min(last, first + share)])
    return [row for at, row in enumerate(rows) if at in kept or not _is_of_partition(row)]


def _is_of_partition(row: Row) -> bool:
    return isinstance(row, PartitionRow) or (isinstance(row, Transition) and row.subject == "partition")


def _begins_an_incident(row: Row) -> bool:
    if isinstance(row, BrokerRow):
        return not row.registered
    return isinstance(row, ControllerRow) or (isinstance(row, AlertRow) and row.state == "open")


def _selection(subject: Subject | None) -> Selection:
    if subject is None:
        return Selection()
    return Selection(
        topics=frozenset() if subject.topic is None else frozenset({subject.topic}),
        partitions=frozenset() if subject.partition is None else frozenset({subject.partition}),
        brokers=frozenset() if subject.broker is None else frozenset({subject.broker}),
        controller=subject.is_controller,
    )


def _cut(timeline: Timeline) -> Timeline:
    """Return the timeline with one page of events, the newest ones and those around alerts."""
    events = timeline.events
    if len(events) <= _NAMED_EVENTS:
        return timeline
    alerts_ms = [event.time_ms for event in events if event.severity is not None]
    kept = set(range(len(events) - _NAMED_EVENTS // 2, len(events)))
    for at, event in enumerate(events):
        near = bisect_right(alerts_ms, event.time_ms + _BEGINNING_MS) - bisect_left(alerts_ms, event.time_ms)
        if near and len(kept) < _NAMED_EVENTS:
            kept.add(at)
    return msgspec.structs.replace(timeline, events=tuple(event for at, event in enumerate(events) if at in kept))
