"""The board of one cluster: its state, offline partitions with causes, alerts, controller, brokers and due work."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, statetimeline, table

from dashboards.catalogue import cluster_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from lab.boards.board import board_of_clusters, section
from lab.boards.panels import ANY_IS_BAD, Column, Line, graph, listing, number, timeline, words
from lab.boards.queries import CLUSTER_LEGEND, legend, newest, rate
from lab.boards.shared import STATES, brokers_away_value, heartbeat_age, state_value

_BROKER = f"{CLUSTER_LEGEND} broker {{{{broker}}}}"
_LEADERS = newest(cluster_metrics.BROKER_LEADERS, "broker")
_REGISTERED = newest(cluster_metrics.BROKER_REGISTERED, "broker")
_SEVERITIES = {1: ("info", "blue"), 2: ("warn", "orange"), 3: ("page", "red")}


def board() -> dashboard.Dashboard:
    """Return the board."""
    cluster = board_of_clusters(
        "cluster", "cluster", "The cluster in ZooKeeper, and the controller's due work as Kontrast derives it."
    )
    _now(cluster)
    section(cluster, "Problems", _offline_partitions(), _partitions_under_min_isr(), _unresolved_alerts())
    _history(cluster)
    _work(cluster)
    _brokers(cluster)
    return cluster


def _now(cluster: dashboard.Dashboard) -> None:
    section(
        cluster,
        "Now",
        number("State", "The state that the page and `kontrast check` show.", state_value()).mappings(words(STATES)),
        number(
            "Offline",
            "Offline partitions as ZooKeeper has them. Unlike Kafka's own count, this one does not read 0 while no "
            "controller is active.",
            newest(cluster_metrics.OFFLINE),
            limits=ANY_IS_BAD,
        ),
        number(
            "Under min ISR",
            "Partitions with an ISR below min.insync.replicas. They reject producers with acks=all.",
            newest(cluster_metrics.UNDER_MIN_ISR),
            limits=ANY_IS_BAD,
        ),
        number(
            "Brokers away",
            "Known brokers that are not registered in ZooKeeper.",
            brokers_away_value(),
            limits=ANY_IS_BAD,
        ),
        _active_controller(),
        heartbeat_age(),
    )


def _active_controller() -> stat.Panel:
    nobody = f"{newest(cluster_metrics.CONTROLLER_ACTIVE)} == 0"
    return number(
        "Active controller",
        "The broker that holds /controller in ZooKeeper.",
        f"{nobody} or {newest(cluster_metrics.CONTROLLER_INFO, 'broker')}",
        legend=legend("broker"),
    ).mappings(words({0: ("nobody", "red"), 1: ("active", "green")}))


def _offline_partitions() -> table.Panel:
    labels = ("topic", "partition", "reason", "brokers")
    named = (CLUSTER_LABEL, "topic", "partition")
    brought_back_by = newest(cluster_metrics.BROUGHT_BACK_BY, "topic", "partition", "brokers")
    since = (
        f"({newest(cluster_metrics.OFFLINE_SINCE, 'topic', 'partition', 'reason')} "
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


def _partitions_under_min_isr() -> table.Panel:
    lacking = newest(cluster_metrics.IN_SYNC_LACKING, "topic", "partition", "brokers")
    since = newest(cluster_metrics.UNDER_MIN_ISR_SINCE, "topic", "partition")
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


def _unresolved_alerts() -> table.Panel:
    labels = ("alert", "subject")
    of_severity = {
        value: newest(cluster_metrics.ALERT_SINCE, *labels, matchers=(f'severity="{word}"',))
        for value, (word, _) in _SEVERITIES.items()
    }
    severity = " or ".join(f"({of_severity[value]} ^ 0) * {value}" for value in sorted(of_severity, reverse=True))
    return listing(
        "Unresolved alerts",
        "Open and unknown alerts of Kontrast by subject, at most a fixed number, worst first.",
        labels,
        Column("severity", severity, meaning=_SEVERITIES),
        Column("since", f"{newest(cluster_metrics.ALERT_SINCE, *labels)} * 1000", "dateTimeAsIso"),
        sort_by="severity",
        is_descending=True,
    )


def _history(cluster: dashboard.Dashboard) -> None:
    section(
        cluster,
        "History",
        graph(
            "Partitions with issues",
            "Offline, leaderless, under-replicated and under min ISR.",
            Line(newest(cluster_metrics.OFFLINE), legend(word="offline")),
            Line(newest(cluster_metrics.LEADERLESS), legend(word="leaderless")),
            Line(newest(cluster_metrics.UNDER_REPLICATED), legend(word="under-replicated")),
            Line(newest(cluster_metrics.UNDER_MIN_ISR), legend(word="under min ISR")),
            stepped=True,
        ),
        graph(
            "ISR changes",
            "Shrinks and expansions per second that partitions' leaders wrote, without the controller's removals.",
            Line(rate(cluster_metrics.ISR_CHANGES, "operation"), legend("operation")),
            unit="ops",
        ),
        _controller_timeline(),
        graph(
            "Leader elections",
            "Confirmed elections a second, by strategy.",
            Line(rate(cluster_metrics.ELECTIONS, "strategy"), legend("strategy")),
            unit="ops",
        ),
        graph(
            "Pending writes",
            "Writes to ZooKeeper that the controller must still do. A brief peak is normal work, a lasting one is a "
            "stuck controller.",
            Line(newest(cluster_metrics.PENDING_WRITES)),
            stepped=True,
        ),
    )


def _controller_timeline() -> statetimeline.Panel:
    """Return the controller over time. Every series continues at 0, because a timeline may draw over a gap."""
    is_controller = newest(cluster_metrics.CONTROLLER_INFO, "broker")
    return timeline(
        "Who is controller",
        "A bar while /controller names this broker, and one while it names no broker.",
        Line(f"{is_controller} or {_REGISTERED} * 0", f"{legend()} broker {{{{broker}}}}"),
        Line(f"({newest(cluster_metrics.CONTROLLER_ACTIVE)} == bool 0) * 2", legend(word="nobody")),
        meaning={1: ("controller", "green"), 2: ("nobody", "red"), 0: ("–", "transparent")},
    )


def _work(cluster: dashboard.Dashboard) -> None:
    section(
        cluster,
        "Reassignments and deletions",
        graph(
            "Reassignments under way",
            "Partitions whose replicas are being exchanged.",
            Line(newest(cluster_metrics.REASSIGNING)),
            stepped=True,
        ),
        graph(
            "Queued deletions",
            "Topics whose deletion is queued and their replicas, and those that cannot go on, because a broker with a "
            "replica is away or the topic is reassigned.",
            Line(newest(cluster_metrics.TOPICS_TO_DELETE), legend(word="topics")),
            Line(newest(cluster_metrics.TOPICS_INELIGIBLE), legend(word="topics that cannot go on")),
            Line(newest(cluster_metrics.REPLICAS_TO_DELETE), legend(word="replicas")),
            Line(newest(cluster_metrics.REPLICAS_INELIGIBLE), legend(word="replicas that cannot go on")),
            stepped=True,
        ),
    )


def _brokers(cluster: dashboard.Dashboard) -> None:
    section(
        cluster,
        "Brokers",
        timeline(
            "Registered brokers",
            "A registered broker has a znode in /brokers/ids.",
            Line(_REGISTERED, _BROKER),
            meaning={1: ("registered", "green"), 0: ("away", "red")},
        ),
        listing(
            "Leaders and replicas by broker",
            "Every known broker. A missing broker leads no partition, and its replicas are out of sync.",
            ("broker",),
            Column("registered", _REGISTERED, "bool_yes_no"),
            Column("leads", _LEADERS),
            Column("holds", newest(cluster_metrics.BROKER_REPLICAS, "broker")),
            Column("of its own under-replicated", newest(cluster_metrics.BROKER_UNDER_REPLICATED, "broker")),
            Column("under min ISR", newest(cluster_metrics.BROKER_UNDER_MIN_ISR, "broker")),
            Column("at min ISR", newest(cluster_metrics.BROKER_AT_MIN_ISR, "broker")),
            Column("offline without it", newest(cluster_metrics.BROKER_SOLE_IN_SYNC, "broker")),
            sort_by="broker",
            empty="unknown",
        ).height(6),
        graph("Leaders by broker", "Partitions that each broker leads.", Line(_LEADERS, _BROKER), stepped=True).span(
            24
        ),
    )
