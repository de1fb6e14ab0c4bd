"""The board with an overview of a cluster: its health, offline partitions with causes, and the age of the data."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import broker_metrics, partition_metrics, pipeline_metrics
from deploy.boards import shared
from deploy.boards.board import new_board, section
from deploy.boards.panels import ANY_IS_BAD, ANY_IS_DOUBTFUL, Limits, Line, graph, number
from deploy.boards.queries import JMX_OFFLINE, JMX_UNDER_REPLICATED, age, jmx, legend, newest, rate


def board() -> dashboard.Dashboard:
    """Return the board."""
    overview = new_board(
        "overview",
        "overview",
        "The cluster in ZooKeeper, and the controller's due work as Kontrast derives it.",
    )
    section(
        overview,
        "Health",
        shared.state(),
        number(
            "Offline by Kontrast",
            "Offline partitions as ZooKeeper has them, counted on while no controller is active.",
            newest(partition_metrics.OFFLINE),
            limits=ANY_IS_BAD,
        ),
        number(
            "Offline by JMX",
            "Kafka's own OfflinePartitionsCount, summed over the brokers. It is 0 while no controller is active.",
            jmx(JMX_OFFLINE),
            limits=ANY_IS_BAD,
            absent="JMX is not scraped",
        ),
        shared.active_controller(),
        number("Brokers", "Registered in ZooKeeper.", newest(broker_metrics.BROKERS)),
        shared.brokers_away(),
        shared.open_alerts(),
        number(
            "Heartbeat age",
            "Since the newest heartbeat that came through the whole pipeline. If it is old, so is all else here.",
            age(pipeline_metrics.HEARTBEAT),
            unit="s",
            limits=Limits(orange=15, red=60),
        ),
        shared.leaderless(),
        number(
            "Under-replicated",
            "Partitions whose ISR lacks an assigned replica.",
            newest(partition_metrics.UNDER_REPLICATED),
            limits=ANY_IS_DOUBTFUL,
        ),
        number(
            "Under-replicated by JMX",
            "Kafka's own UnderReplicatedPartitions, summed over the brokers. A dead broker reports no value.",
            jmx(JMX_UNDER_REPLICATED),
            limits=ANY_IS_DOUBTFUL,
            absent="JMX is not scraped",
        ),
        shared.under_min_isr(),
        shared.pending_writes(),
        shared.epoch(),
    )
    section(overview, "Partitions that cannot be used", shared.offline_partitions())
    section(
        overview,
        "Alerts of Kontrast",
        shared.unresolved_alerts(),
    )
    section(
        overview,
        "History",
        graph(
            "Offline partitions, by Kontrast and by JMX",
            "Both counts agree while a controller acts. If only Kontrast's is above 0, no controller counts for Kafka.",
            Line(newest(partition_metrics.OFFLINE), legend(word="by Kontrast")),
            Line(jmx(JMX_OFFLINE), legend(word="by JMX")),
            stepped=True,
        ),
        shared.partition_issues(),
        shared.controller_timeline(),
        shared.elections(),
        shared.isr_changes(),
    )
    return section(
        overview,
        "Kontrast itself",
        *shared.agreement(),
        shared.end_to_end_lag(),
        graph(
            "Records",
            "Observations of ZooKeeper applied a second, by kind.",
            Line(rate(pipeline_metrics.RECORDS, "kind"), legend("kind")),
            unit="ops",
        ),
    )
