"""A report as one self-contained page with pictures and tables, without scripts or foreign files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from dashboards.drawn_report.pictures import drawn_availability, drawn_failovers
from dashboards.drawn_timeline.page import begun_page, written
from questions.report.cluster_report import ClusterReport
from questions.report.report import Report, allowed_partition_minutes
from transport.printable import printable
from wording.sentences import counted, minutes_of, share
from wording.times import exact_moment

_STYLE: Final = """
svg.lanes line.objective { stroke: var(--affected); opacity: 1; stroke-dasharray: 5 3; }
table { margin-bottom: 1.2rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; padding-right: 1.2rem; }
"""
_MOST_TOPICS: Final = 100  # rows of a cluster's table, while CSV and JSON have all topics


def page_of(report: Report, doubts: Iterable[str] = ()) -> str:
    """Return the page's HTML. `doubts` are the reasons why the report may be incomplete."""
    names = [cluster.cluster for cluster in report.clusters if cluster.cluster]
    subject = f"cluster {names[0]}" if len(names) == 1 else counted(len(names), "cluster")
    page, body = begun_page(printable(f"Availability, failovers and alerts of {subject}"), _STYLE)
    for doubt in doubts:
        SubElement(body, "p", {"class": "warn"}).text = printable(doubt)
    _availability(body, report)
    _teams(body, report)
    SubElement(body, "h2").text = "Without a controller"
    body.append(drawn_failovers(report.clusters))
    for cluster in report.clusters:
        if cluster.window.seen_from_ms is not None:
            _cluster(body, cluster, report.objective_percent)
    return written(page)


def _availability(body: Element, report: Report) -> None:
    SubElement(body, "h2").text = "Time that topics were not writable with acks=all"
    topics = sum(len(cluster.topics) for cluster in report.clusters)
    if report.objective_percent is not None:
        missed = f"{len(report.misses)} of {counted(topics, 'topic')} missed the objective of"
        SubElement(body, "p").text = f"{missed} {report.objective_percent:g} %, the dashed line."
    picture, others = drawn_availability(report)
    body.append(picture)
    legend = SubElement(body, "p")
    SubElement(legend, "span", {"class": "key down"}).tail = "offline"
    SubElement(legend, "span", {"class": "key refusing"}).tail = "led, but rejecting acks=all"
    if others:
        SubElement(legend, "br").tail = f"{counted(others, 'more topic')} always writable, or better than these."


def _teams(body: Element, report: Report) -> None:
    if report.teams:
        SubElement(body, "h2").text = "Impact by team"
    columns = ("team", "topics", "partition-minutes", "offline", "rejecting acks=all", "online", "writable")
    rows = [
        (
            *(str(team), str(team.topics), minutes_of(team.partition_minutes)),
            *map(minutes_of, (team.offline_partition_minutes, team.unwritable_partition_minutes)),
            *map(share, (team.online, team.writable)),
        )
        for team in report.teams
    ]
    _table(body, columns, rows)


def _cluster(body: Element, cluster: ClusterReport, objective_percent: float | None) -> None:
    window = cluster.window
    SubElement(body, "h2").text = printable(f"Cluster {cluster.cluster}")
    SubElement(body, "p").text = (
        f"Seen from {_day(window.seen_from_ms)} to {_day(window.seen_until_ms)} UTC, {window.seen_seconds / 3600:.2f} "
        f"hours in all. {counted(len(cluster.failovers), 'failover')}, {cluster.without_controller_seconds:.3f} s "
        f"without a controller. {minutes_of(cluster.offline_partition_minutes)} partition-minutes offline and "
        f"{minutes_of(cluster.unwritable_partition_minutes)} rejecting acks=all, "
        f"of {minutes_of(cluster.partition_minutes)}."
    )
    _topics(body, cluster, objective_percent)
    _failovers(body, cluster)
    _reactions(body, cluster)
    _brokers_and_alerts(body, cluster)


def _topics(body: Element, cluster: ClusterReport, objective_percent: float | None) -> None:
    columns = ("topic", "partition-minutes", "offline", "rejecting acks=all", "allowed", "online", "writable")
    shown = cluster.topics[:_MOST_TOPICS]
    rows = [
        (
            topic.topic,
            minutes_of(topic.partition_minutes),
            minutes_of(topic.offline_partition_minutes),
            minutes_of(topic.unwritable_partition_minutes),
            "-" if objective_percent is None else minutes_of(allowed_partition_minutes(objective_percent, topic)),
            share(topic.online),
            share(topic.writable),
        )
        for topic in shown
    ]
    _table(body, columns, rows)
    if len(cluster.topics) > len(shown):
        SubElement(body, "p").text = f"{len(cluster.topics) - len(shown)} more topics were offline for less time."


def _failovers(body: Element, cluster: ClusterReport) -> None:
    rows = [
        (
            _day(failover.began_ms),
            str(failover.from_broker),
            "none yet" if failover.to_broker is None else str(failover.to_broker),
            "-" if failover.to_epoch is None else str(failover.to_epoch),
            "-" if failover.without_controller_ms is None else f"{failover.without_controller_ms / 1000:.3f}",
        )
        for failover in cluster.failovers
    ]
    _table(body, ("failover (UTC)", "from broker", "to broker", "epoch", "seconds without"), rows)


def _reactions(body: Element, cluster: ClusterReport) -> None:
    columns = ("the controller's reaction to", "until its", "count", "mean ms", "p50 ms", "p95 ms", "p99 ms")
    rows = [
        (
            *(time.event, time.to.replace("_", " "), str(time.count), f"{time.mean_ms:.0f}"),
            *map(_bound, (time.p50_at_most_ms, time.p95_at_most_ms, time.p99_at_most_ms)),
        )
        for time in cluster.reactions
    ]
    _table(body, columns, rows)


def _brokers_and_alerts(body: Element, cluster: ClusterReport) -> None:
    brokers = [
        (
            *(str(one.broker), str(one.crashes), str(one.bounces), str(one.shutdowns), str(one.unknown)),
            minutes_of(one.away_minutes),
        )
        for one in cluster.brokers
    ]
    _table(body, ("broker", "crashes", "bounces", "clean shutdowns", "of unknown kind", "minutes away"), brokers)
    alerts = [
        (
            *(kind.alert, kind.severity.value, str(kind.count)),
            *(f"{kind.total_seconds:.1f}", f"{kind.longest_seconds:.1f}", str(kind.still_open)),
        )
        for kind in cluster.alerts
    ]
    _table(body, ("alert", "severity", "count", "seconds in all", "the longest", "still open"), alerts)
    elections = [(strategy, str(count)) for strategy, count in cluster.elections.items()]
    _table(body, ("leader election", "count"), elections)


def _table(body: Element, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Add a table with a name in its first column, or nothing if there are no rows."""
    if not rows:
        return
    table = SubElement(body, "table")
    heading = SubElement(SubElement(table, "thead"), "tr")
    for at, words in enumerate(columns):
        SubElement(heading, "th", {"scope": "col", **({"class": "number"} if at else {})}).text = words
    lines = SubElement(table, "tbody")
    for row in rows:
        line = SubElement(lines, "tr")
        for at, cell in enumerate(row):
            SubElement(line, "td", {"class": "number"} if at else {}).text = printable(cell)


def _bound(at_most_ms: int | None) -> str:
    return "> 60,000" if at_most_ms is None else f"≤ {at_most_ms:,}"


def _day(ms: int | None) -> str:
    return exact_moment(ms or 0).removesuffix("Z")
