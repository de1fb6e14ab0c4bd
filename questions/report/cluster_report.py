"""Report of a cluster over a window, for `kontrast replay` and `kontrast report`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from controller.contract.alert_row import Severity
from controller.contract.gauges_row import REACTION_BUCKETS_MS, Writes
from controller.contract.ids import BrokerId
from questions.picture import WORST_FIRST
from questions.report import counters
from questions.report.account import Part
from questions.report.alerts import AlertSpan
from questions.report.failovers import Failover
from questions.report.partition_time import TopicTime
from questions.report.seen_time import Measure
from wording.said import Said, first_of, line, marked
from wording.sentences import counted, minutes_of, share
from wording.times import duration, exact_moment

_MINUTE_MS = 60_000


class ReportWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Window of a report, and its seen part. The figures cover only the seen part."""

    since_ms: int
    until_ms: int
    seen_from_ms: int | None  # None if unseen
    seen_until_ms: int | None
    seen_seconds: float
    unseen_seconds: float

    @property
    def span(self) -> str:
        """Return the seen part by its ends."""
        return f"{exact_moment(self.seen_from_ms or 0)} to {exact_moment(self.seen_until_ms or 0)}"


class TopicAvailability(msgspec.Struct, frozen=True, kw_only=True):
    """Availability of a topic: its seen partition-minutes, and those offline or rejecting acks=all."""

    topic: str
    partition_minutes: float
    offline_partition_minutes: float
    unwritable_partition_minutes: float  # the offline ones included
    online: float  # share of the partition-minutes
    writable: float

    @property
    def words(self) -> str:
        """Return the topic with its figures."""
        offline, unwritable = self.offline_partition_minutes, self.unwritable_partition_minutes
        return f"{self.topic}: {figures_of(offline, self.online, unwritable, self.writable)}"


class ReactionTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time from the cause of the controller's events of one kind to their first or last write in ZooKeeper.

    Percentiles are upper bounds from `gauges_row.REACTION_BUCKETS_MS`, None beyond the last one.
    """

    event: str
    to: str  # first_write | last_write
    count: int
    mean_ms: float
    p50_at_most_ms: int | None
    p95_at_most_ms: int | None
    p99_at_most_ms: int | None

    @property
    def words(self) -> str:
        """Return the event with its times."""
        bounds = ((50, self.p50_at_most_ms), (95, self.p95_at_most_ms), (99, self.p99_at_most_ms))
        told = ", ".join(f"p{percent} {_bound(at_most_ms)}" for percent, at_most_ms in bounds)
        return f"{self.event}: {self.count}, mean {self.mean_ms:.0f} ms, {told}"


class BrokerFailures(msgspec.Struct, frozen=True, kw_only=True):
    """Departures of a broker by kind, and its time away."""

    broker: BrokerId
    crashes: int
    shutdowns: int  # controlled shutdowns
    bounces: int  # back before it was missed
    unknown: int  # departures of which an older Kontrast did not write the kind
    away_minutes: float

    @property
    def words(self) -> str:
        """Return the broker with its departures."""
        kinds = [counted(self.crashes, "crash"), counted(self.bounces, "bounce")]
        kinds += [f"{counted(self.unknown, 'departure')} of unknown kind"] if self.unknown else []
        kinds += [counted(self.shutdowns, "clean shutdown")]
        return f"broker {self.broker}: {', '.join(kinds)}, away {minutes_of(self.away_minutes)} minutes"


class AlertsOfKind(msgspec.Struct, frozen=True, kw_only=True):
    """Alerts of a kind that were open within the window, with their time open in it."""

    alert: str
    severity: Severity  # the worst
    count: int
    still_open: int
    total_seconds: float
    longest_seconds: float

    @property
    def words(self) -> str:
        """Return the alert with its times."""
        still = f", {self.still_open} still open" if self.still_open else ""
        total, longest = duration(self.total_seconds * 1_000), duration(self.longest_seconds * 1_000)
        return f"{self.alert}: {self.count}, open {total} in all, {longest} the longest{still}"


class ClusterReport(msgspec.Struct, frozen=True, kw_only=True):
    """Effects on a cluster's clients within a window, and its controller's performance."""

    cluster: str
    window: ReportWindow
    failovers: tuple[Failover, ...]
    without_controller_seconds: float
    partition_minutes: float
    offline_partition_minutes: float
    unwritable_partition_minutes: float
    topics: tuple[TopicAvailability, ...]  # the worst first
    elections: dict[str, int]  # by strategy, as Kafka names it
    writes: dict[str, int]  # the controller's, of partition states: expected | inferred | unexplained
    agreement: float | None
    reactions: tuple[ReactionTime, ...]
    brokers: tuple[BrokerFailures, ...]  # the worst first
    alerts: tuple[AlertsOfKind, ...]  # the worst first
    unreadable_lines: int = 0
    notes: tuple[str, ...] = ()  # why the figures may be incomplete
    failed: bool = False  # unreadable, for the reason in the notes

    def said(self) -> Said:
        """Yield the cluster with its figures, its controller's reactions, its brokers and its alerts."""
        window = self.window
        if window.seen_from_ms is None:
            return
        yield line(f"{self.cluster}: {window.span}, {window.seen_seconds / 3600:.2f} h seen")
        yield from self._figures()
        if self.reactions:
            yield line("the controller's reactions, from an event's cause to its last write:", indent=2)
            yield from (line(time.words, indent=4) for time in self.reactions if time.to == "last_write")
        yield line(f"{counted(len(self.brokers), 'broker')} left{':' if self.brokers else ''}", indent=2)
        yield from first_of([broker.words for broker in self.brokers], indent=4)
        total = sum(kind.count for kind in self.alerts)
        yield line(f"{counted(total, 'alert')}{':' if self.alerts else ''}", indent=2)
        for kind in self.alerts:
            yield line(marked(kind.severity.value), f" {kind.words}", indent=4)

    def summary(self) -> Said:
        """Yield the seen time, and a few lines for each figure."""
        window = self.window
        if window.seen_from_ms is None:
            yield line("summary: nothing was seen")
            return
        unseen = f", {duration(window.unseen_seconds * 1_000)} not seen" if window.unseen_seconds else ""
        yield line(f"summary of {window.span}: {duration(window.seen_seconds * 1_000)} seen{unseen}")
        yield from self._figures()

    def _figures(self) -> Said:
        absent = duration(self.without_controller_seconds * 1_000)
        failovers = f"{counted(len(self.failovers), 'failover')}, {absent} without a controller in all"
        yield line(f"{failovers}{':' if self.failovers else ''}", indent=2)
        yield from first_of([failover.words for failover in self.failovers], indent=4)
        hit = [topic.words for topic in self.topics if topic.unwritable_partition_minutes]
        offline = f"offline {minutes_of(self.offline_partition_minutes)}"
        unwritable = f"rejecting acks=all {minutes_of(self.unwritable_partition_minutes)}"
        total = f"of {minutes_of(self.partition_minutes)} partition-minutes"
        yield line(f"{offline}, {unwritable}, {total}{':' if hit else ''}", indent=2)
        yield from first_of(hit, indent=4, noun="topic")
        elections = ", ".join(f"{kind} {count:,}" for kind, count in self.elections.items())
        count = counted(sum(self.elections.values()), "leader election")
        yield line(f"{count}{f': {elections}' if elections else ''}", indent=2)


def figures_of(offline_minutes: float, online: float, unwritable_minutes: float, writable: float) -> str:
    """Return the figures of a topic or of a team's topics in half a sentence."""
    offline = f"offline {minutes_of(offline_minutes)} (online {share(online)})"
    return f"{offline}, rejecting acks=all {minutes_of(unwritable_minutes)} (writable {share(writable)})"


def _bound(at_most_ms: int | None) -> str:
    return "above 60,000 ms" if at_most_ms is None else f"at most {at_most_ms:,} ms"


def report_of(cluster: str, whole: Part, since_ms: int | None = None, until_ms: int | None = None) -> ClusterReport:
    """Return the report of a cluster. Without a window's ends, it covers all the seen time."""
    measure = whole.seen.within(since_ms, until_ms, whole.complete_from_ms)
    topics = sorted(_topics(whole, measure), key=_worst_topic_first)
    tallied = {key: count for key, count in whole.counted if count}
    writes = {kind: count for (what, kind, _), count in tallied.items() if what == counters.WRITES}
    return ClusterReport(
        cluster=cluster,
        window=_window(measure),
        failovers=tuple(failover for failover in whole.controllers.failovers if _overlaps(failover, measure)),
        without_controller_seconds=_seconds(measure.total_ms(whole.controllers.absent)),
        partition_minutes=_minutes(sum(measure.total_ms(time.partitions) for time in whole.topics.values())),
        offline_partition_minutes=_minutes(sum(measure.total_ms(time.offline) for time in whole.topics.values())),
        unwritable_partition_minutes=_minutes(sum(measure.total_ms(time.unwritable) for time in whole.topics.values())),
        topics=tuple(topics),
        elections=dict(sorted((kind, count) for (what, kind, _), count in tallied.items() if what == "elections")),
        writes=dict(sorted(writes.items())),
        agreement=Writes(**writes).agreement,
        reactions=tuple(_reactions(tallied)),
        brokers=tuple(sorted(_brokers(whole, measure), key=_worst_broker_first)),
        alerts=tuple(sorted(_alerts(whole.alerts, measure), key=_worst_alert_first)),
        unreadable_lines=whole.unreadable,
        notes=tuple(whole.notes),
        failed=whole.failed,
    )


def _window(measure: Measure) -> ReportWindow:
    return ReportWindow(
        since_ms=measure.begin_ms,
        until_ms=measure.end_ms,
        seen_from_ms=measure.seen_from_ms,
        seen_until_ms=measure.seen_until_ms,
        seen_seconds=_seconds(measure.seen_ms),
        unseen_seconds=_seconds(measure.end_ms - measure.begin_ms - measure.seen_ms),
    )


def _overlaps(failover: Failover, measure: Measure) -> bool:
    ended_ms = None if failover.without_controller_ms is None else failover.began_ms + failover.without_controller_ms
    return failover.began_ms <= measure.end_ms and (ended_ms is None or ended_ms >= measure.begin_ms)


def _topics(whole: Part, measure: Measure) -> Iterator[TopicAvailability]:
    for name, time in whole.topics.items():
        total_ms = measure.total_ms(time.partitions)
        if total_ms:
            yield _availability(name, time, total_ms, measure)


def _availability(name: str, time: TopicTime, total_ms: int, measure: Measure) -> TopicAvailability:
    offline_ms, unwritable_ms = measure.total_ms(time.offline), measure.total_ms(time.unwritable)
    return TopicAvailability(
        topic=name,
        partition_minutes=_minutes(total_ms),
        offline_partition_minutes=_minutes(offline_ms),
        unwritable_partition_minutes=_minutes(unwritable_ms),
        online=1 - offline_ms / total_ms,
        writable=1 - unwritable_ms / total_ms,
    )


def _worst_topic_first(topic: TopicAvailability) -> tuple[float, float, str]:
    return -topic.offline_partition_minutes, -topic.unwritable_partition_minutes, topic.topic


def _reactions(tallied: dict[counters.Key, int]) -> Iterator[ReactionTime]:
    ways = (("first_write", counters.FIRST, counters.FIRST_SUM), ("last_write", counters.LAST, counters.LAST_SUM))
    buckets: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * (len(REACTION_BUCKETS_MS) + 1))
    for (what, event, at), count in tallied.items():
        if what in (counters.FIRST, counters.LAST):
            buckets[event, what][at] = count
    for (event, what), counts in sorted(buckets.items()):
        to, total = next((to, total) for to, way, total in ways if way == what)
        yield ReactionTime(
            event=event,
            to=to,
            count=sum(counts),
            mean_ms=tallied.get((total, event, 0), 0) / sum(counts),
            p50_at_most_ms=_at_most_ms(counts, 50),
            p95_at_most_ms=_at_most_ms(counts, 95),
            p99_at_most_ms=_at_most_ms(counts, 99),
        )


def _at_most_ms(counts: Sequence[int], percent: int) -> int | None:
    """Return the lowest bound for this share of the counts, if it is within the last bound."""
    below = 0
    for bound_ms, count in zip(REACTION_BUCKETS_MS, counts, strict=False):
        below += count
        if below * 100 >= sum(counts) * percent:
            return bound_ms
    return None


def _brokers(whole: Part, measure: Measure) -> Iterator[BrokerFailures]:
    for broker, time in whole.brokers.items():
        found = BrokerFailures(
            broker=broker,
            crashes=_within(time.crashes_ms, measure),
            shutdowns=_within(time.shutdowns_ms, measure),
            bounces=_within(time.bounces_ms, measure),
            unknown=_within(time.unknown_ms, measure),
            away_minutes=_minutes(measure.total_ms(time.away)),
        )
        if found.crashes or found.shutdowns or found.bounces or found.unknown or found.away_minutes:
            yield found


def _within(moments_ms: Sequence[int], measure: Measure) -> int:
    return sum(measure.begin_ms <= at_ms <= measure.end_ms for at_ms in moments_ms)


def _worst_broker_first(broker: BrokerFailures) -> tuple[int, int, float, int]:
    return -broker.crashes, -broker.bounces, -broker.away_minutes, broker.broker


def _alerts(spans: Sequence[AlertSpan], measure: Measure) -> Iterator[AlertsOfKind]:
    by_kind: dict[str, list[tuple[AlertSpan, int]]] = defaultdict(list)
    for span in spans:
        ended_ms = measure.end_ms if span.resolved_ms is None else span.resolved_ms
        if span.opened_ms <= measure.end_ms and ended_ms >= measure.begin_ms:
            open_ms = min(ended_ms, measure.end_ms) - max(span.opened_ms, measure.begin_ms)
            by_kind[span.alert].append((span, max(0, open_ms)))
    for kind, found in by_kind.items():
        yield AlertsOfKind(
            alert=kind,
            severity=min((span.severity for span, _ in found), key=WORST_FIRST.__getitem__),
            count=len(found),
            still_open=sum(span.resolved_ms is None for span, _ in found),
            total_seconds=_seconds(sum(open_ms for _, open_ms in found)),
            longest_seconds=_seconds(max(open_ms for _, open_ms in found)),
        )


def _worst_alert_first(alerts: AlertsOfKind) -> tuple[int, float, str]:
    return WORST_FIRST[alerts.severity], -alerts.total_seconds, alerts.alert


def _minutes(ms: int) -> float:
    return ms / _MINUTE_MS


def _seconds(ms: int) -> float:
    return ms / 1000
