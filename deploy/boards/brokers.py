"""The board of brokers, with registrations over time, leaderships and replicas."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import alert_metrics, broker_metrics, partition_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from deploy.boards import shared
from deploy.boards.board import new_board, section
from deploy.boards.panels import ANY_IS_BAD, ANY_IS_DOUBTFUL, Column, Line, graph, listing, number, timeline
from deploy.boards.queries import CLUSTER_LEGEND, newest

_BROKER = f"{CLUSTER_LEGEND} broker {{{{broker}}}}"
_LEADERS = newest(broker_metrics.BROKER_LEADERS, "broker")
_REGISTERED = newest(broker_metrics.BROKER_REGISTERED, "broker")


def board() -> dashboard.Dashboard:
    """Return the board."""
    brokers = new_board("brokers", "brokers", "Registered brokers, their leaderships and replicas, and their balance.")
    section(
        brokers,
        "Now",
        number("Brokers", "Registered in ZooKeeper.", newest(broker_metrics.BROKERS)),
        number(
            "Brokers away",
            "Unregistered brokers that were registered before or have assigned replicas.",
            f"count by ({CLUSTER_LABEL}) ({_REGISTERED} == 0) or max by ({CLUSTER_LABEL}) ({_REGISTERED}) * 0",
            limits=ANY_IS_BAD,
        ),
        number(
            "Busiest broker's share",
            "Share of all partitions that the broker with the most leaderships leads.",
            f"max by ({CLUSTER_LABEL}) ({_LEADERS}) / (sum by ({CLUSTER_LABEL}) ({_LEADERS}) > 0)",
            unit="percentunit",
        ),
        number(
            "Not led by the preferred replica",
            "Number of partitions. A high number means that some brokers carry too much.",
            newest(partition_metrics.PREFERRED_IMBALANCE),
            limits=ANY_IS_DOUBTFUL,
        ),
        shared.at_min_isr(),
        shared.active_controller(),
    )
    section(
        brokers,
        "Registrations",
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
            Column("holds", newest(broker_metrics.BROKER_REPLICAS, "broker")),
            Column("of its own under-replicated", newest(broker_metrics.BROKER_UNDER_REPLICATED, "broker")),
            Column("under min ISR", newest(broker_metrics.BROKER_UNDER_MIN_ISR, "broker")),
            Column("at min ISR", newest(broker_metrics.BROKER_AT_MIN_ISR, "broker")),
            Column("offline without it", newest(broker_metrics.BROKER_SOLE_IN_SYNC, "broker")),
            sort_by="broker",
            empty="unknown",
        ).height(6),
        listing(
            "Maintenance in force",
            "Maintenance windows by broker, or `all`. Their alerts do not page until the end.",
            ("broker",),
            Column("until", f"{newest(alert_metrics.MAINTENANCE_UNTIL, 'broker')} * 1000", "dateTimeAsIso"),
            sort_by="until",
            empty="none",
        ),
    )
    return section(
        brokers,
        "Load",
        graph("Leaders by broker", "Partitions that each broker leads.", Line(_LEADERS, _BROKER), stepped=True),
        graph(
            "Replicas by broker",
            "Replicas that are assigned to each broker, whether they are in sync or not.",
            Line(newest(broker_metrics.BROKER_REPLICAS, "broker"), _BROKER),
            stepped=True,
        ),
    )
