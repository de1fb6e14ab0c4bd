"""Panels that more than one board shows."""

from __future__ import annotations

from grafana_foundation_sdk.builders import stat, statetimeline, table, timeseries

from dashboards.catalogue import alert_metrics, broker_metrics, controller_metrics, partition_metrics, pipeline_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from deploy.boards.panels import (
    ANY_IS_BAD,
    ANY_IS_DOUBTFUL,
    Column,
    Limits,
    Line,
    graph,
    listing,
    number,
    timeline,
    words,
)
from deploy.boards.queries import legend, newest, quantile, rate

_PAGING = newest(alert_metrics.ALERTS_OPEN, "alert", "state", matchers=('severity="page"',))
_NOBODY = f"{newest(controller_metrics.CONTROLLER_ACTIVE)} == 0"


# The worst state has the highest value, so that a board can sort by it, as the page sorts clusters.
STATES = {1: ("well", "green"), 2: ("degraded", "orange"), 3: ("unknown", "purple"), 4: ("affected", "red")}
_SEVERITIES = {1: ("info", "blue"), 2: ("warn", "orange"), 3: ("page", "red")}


def state() -> stat.Panel:
    """Return the state of the cluster, as the page shows it."""
    return number("State", "The state that the page and `kontrast check` show.", state_value()).mappings(words(STATES))


def state_value() -> str:
    """Return the expression of a cluster's state, in which a higher value is worse."""
    return " or ".join(
        "(" + newest(pipeline_metrics.CLUSTER_STATE, matchers=(f'state="{word}"',)) + f" == 1) * {value}"
        for value, (word, _) in STATES.items()
    )


def brokers_away_value() -> str:
    """Return the expression that counts known brokers that are not registered."""
    return f"sum by ({CLUSTER_LABEL}) (1 - {newest(broker_metrics.BROKER_REGISTERED, 'broker')})"


def brokers_away() -> stat.Panel:
    """Return how many brokers are away."""
    return number(
        "Brokers away",
        "Known brokers that are not registered in ZooKeeper. The page names them.",
        brokers_away_value(),
        limits=ANY_IS_BAD,
    )


def unresolved_alerts() -> table.Panel:
    """Return the open and unknown alerts, the worst first."""
    labels = ("alert", "subject")
    of_severity = {
        value: newest(alert_metrics.ALERT_SINCE, *labels, matchers=(f'severity="{word}"',))
        for value, (word, _) in _SEVERITIES.items()
    }
    severity = " or ".join(f"({of_severity[value]} ^ 0) * {value}" for value in sorted(of_severity, reverse=True))
    return listing(
        "Unresolved alerts",
        "Open and unknown alerts of Kontrast by subject, at most a fixed number, worst first.",
        labels,
        Column("severity", severity, meaning=_SEVERITIES),
        Column("since", f"{newest(alert_metrics.ALERT_SINCE, *labels)} * 1000", "dateTimeAsIso"),
        sort_by="severity",
        is_descending=True,
    )


def active_controller() -> stat.Panel:
    """Return which broker is controller."""
    return number(
        "Active controller",
        "The broker that holds /controller in ZooKeeper.",
        f"{_NOBODY} or {newest(controller_metrics.CONTROLLER_INFO, 'broker')}",
        legend=legend("broker"),
    ).mappings(words({0: ("nobody", "red"), 1: ("active", "green")}))


def epoch() -> stat.Panel:
    """Return the controller epoch."""
    return number(
        "Controller epoch",
        "Grows by one each time that a broker becomes controller.",
        newest(controller_metrics.CONTROLLER_EPOCH),
        unit="none",
    )


def controller_timeline() -> statetimeline.Panel:
    """Return the controller over time. Every series continues at 0, because a timeline may draw over a gap."""
    is_controller = newest(controller_metrics.CONTROLLER_INFO, "broker")
    return timeline(
        "Who is controller",
        "A bar while /controller names this broker, and one while it names no broker.",
        Line(
            f"{is_controller} or {newest(broker_metrics.BROKER_REGISTERED, 'broker')} * 0",
            f"{legend()} broker {{{{broker}}}}",
        ),
        Line(f"({newest(controller_metrics.CONTROLLER_ACTIVE)} == bool 0) * 2", legend(word="nobody")),
        meaning={1: ("controller", "green"), 2: ("nobody", "red"), 0: ("–", "transparent")},
    )


def open_alerts() -> stat.Panel:
    """Return open alerts of Kontrast that page."""
    return number(
        "Open alerts to page",
        "Alerts of Kontrast itself that are open and worth waking someone.",
        f"sum by ({CLUSTER_LABEL}) ({_PAGING}) or {newest(broker_metrics.BROKERS)} * 0",
        limits=ANY_IS_BAD,
    )


def leaderless() -> stat.Panel:
    """Return the partitions without a leader."""
    return number(
        "Leaderless partitions",
        "Without a live leader right now, whether an election is due or not.",
        newest(partition_metrics.LEADERLESS),
        limits=ANY_IS_BAD,
    )


def under_min_isr() -> stat.Panel:
    """Return partitions that take no acks=all writes."""
    return number(
        "Under min ISR",
        "Partitions with an ISR below min.insync.replicas. They reject producers with acks=all.",
        newest(partition_metrics.UNDER_MIN_ISR),
        limits=ANY_IS_BAD,
    )


def at_min_isr() -> stat.Panel:
    """Return partitions that will reject acks=all after the loss of one more replica."""
    return number(
        "At min ISR",
        "Partitions with an ISR of exactly min.insync.replicas. With one replica less they reject acks=all.",
        newest(partition_metrics.AT_MIN_ISR),
        limits=ANY_IS_DOUBTFUL,
    )


def pending_writes() -> stat.Panel:
    """Return the writes that the controller must still do."""
    return number(
        "Pending writes",
        "Writes to ZooKeeper that the controller must still do. A brief peak is normal work, a lasting one is a "
        "stuck controller.",
        newest(controller_metrics.PENDING_WRITES),
        limits=ANY_IS_DOUBTFUL,
    )


def agreement() -> tuple[stat.Panel, stat.Panel]:
    """Return the agreement, the share of the controller's writes that Kontrast explains."""
    of_what = "Writes of the controller that were expected, or that a rule of inference explains, among all"
    return (
        _agreement("Agreement, last hour", f"{of_what} of the last hour.", "1h"),
        _agreement("Agreement, in all", f"{of_what} since the job's state began.", "start"),
    )


def _agreement(title: str, description: str, window: str) -> stat.Panel:
    agreeing = newest(controller_metrics.AGREEMENT, matchers=(f'window="{window}"',))
    limits = Limits(below="orange", green=0.98)
    return number(title, description, agreeing, limits=limits, unit="percentunit", absent="no writes").span(12)


def offline_partitions() -> table.Panel:
    """Return unusable partitions by name."""
    labels = ("topic", "partition", "reason", "brokers")
    named = (CLUSTER_LABEL, "topic", "partition")
    brought_back_by = newest(partition_metrics.BROUGHT_BACK_BY, "topic", "partition", "brokers")
    since = (
        f"({newest(partition_metrics.OFFLINE_SINCE, 'topic', 'partition', 'reason')} "
        f"* on ({', '.join(named)}) group_left (brokers) {brought_back_by})"
    )
    return listing(
        "Offline partitions",
        "Partitions without producers and consumers, by name, with cause, start, and the brokers each of which "
        "would bring it back. The runbook of KontrastPartitionsOffline explains each reason and its remedy.",
        labels,
        Column("since", f"{since} * 1000", "dateTimeAsIso"),
        Column("for", f"time() - {since}", "s"),
        sort_by="since",
    )


def partitions_under_min_isr() -> table.Panel:
    """Return partitions by name that have a leader and reject acks=all."""
    lacking = newest(partition_metrics.IN_SYNC_LACKING, "topic", "partition", "brokers")
    since = newest(partition_metrics.UNDER_MIN_ISR_SINCE, "topic", "partition")
    named = f"on ({CLUSTER_LABEL}, topic, partition) group_left (brokers)"
    return listing(
        "Partitions under min ISR",
        "Partitions that have a leader and reject acks=all, by name, since when, and how many of which "
        "brokers must get in sync again.",
        ("topic", "partition", "brokers"),
        Column("since", f"{since} * {named} ({lacking} ^ 0) * 1000", "dateTimeAsIso"),
        Column("must return", lacking),
        sort_by="since",
    )


def partition_issues() -> timeseries.Panel:
    """Return partitions by issue, over time."""
    return graph(
        "Partitions with issues",
        "Offline, leaderless, under-replicated and under min ISR.",
        Line(newest(partition_metrics.OFFLINE), legend(word="offline")),
        Line(newest(partition_metrics.LEADERLESS), legend(word="leaderless")),
        Line(newest(partition_metrics.UNDER_REPLICATED), legend(word="under-replicated")),
        Line(newest(partition_metrics.UNDER_MIN_ISR), legend(word="under min ISR")),
        stepped=True,
    )


def elections() -> timeseries.Panel:
    """Return the leader elections by strategy."""
    return graph(
        "Leader elections",
        "Confirmed elections a second, by strategy.",
        Line(rate(partition_metrics.ELECTIONS, "strategy"), legend("strategy")),
        unit="ops",
    )


def isr_changes() -> timeseries.Panel:
    """Return ISR changes by operation."""
    return graph(
        "ISR changes",
        "Shrinks and expansions per second that partitions' leaders wrote, without the controller's removals.",
        Line(rate(partition_metrics.ISR_CHANGES, "operation"), legend("operation")),
        unit="ops",
    )


def end_to_end_lag() -> timeseries.Panel:
    """Return the lag from a change in ZooKeeper to the exporter."""
    return graph(
        "End-to-end lag",
        "From a change in ZooKeeper to the exporter, median and 99th percentile of rows.",
        Line(quantile(0.5, pipeline_metrics.END_TO_END_LAG), legend(word="p50")),
        Line(quantile(0.99, pipeline_metrics.END_TO_END_LAG), legend(word="p99")),
        unit="s",
    )
