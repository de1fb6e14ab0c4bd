"""Partitions and leadership: which partitions cannot be used and why, what was elected, what shrank."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.boards import shared
from dashboards.boards.board import UNCLEAN, new_board, section
from dashboards.boards.panels import ANY_IS_BAD, ANY_IS_DOUBTFUL, Line, graph, number
from dashboards.boards.queries import JMX_IMBALANCE, increase, jmx, legend, newest
from dashboards.catalogue import partition_metrics, topic_metrics


def board() -> dashboard.Dashboard:
    """The board."""
    partitions = new_board(
        "partitions",
        "partitions and leadership",
        "Which partitions cannot be used, since when and why; who was elected.",
    )
    section(
        partitions,
        "Now",
        number(
            "Offline",
            "As Kafka's OfflinePartitionsCount, but counted on while no controller is active.",
            newest(partition_metrics.OFFLINE),
            limits=ANY_IS_BAD,
        ),
        shared.leaderless(),
        number(
            "Not named below",
            "Partitions that cannot be used, or refuse acks=all, but are not in the tables: the exporter names a "
            "bounded number of each.",
            f"{newest(partition_metrics.DETAIL_DROPPED)} + {newest(partition_metrics.UNDER_MIN_ISR_DROPPED)}",
            limits=ANY_IS_DOUBTFUL,
        ),
        number(
            "Under-replicated",
            "Their ISR lacks an assigned replica.",
            newest(partition_metrics.UNDER_REPLICATED),
            limits=ANY_IS_DOUBTFUL,
        ),
        shared.under_min_isr(),
        shared.at_min_isr(),
    )
    section(partitions, "Partitions that cannot be used", shared.offline_partitions())
    section(partitions, "Partitions that refuse acks=all", shared.partitions_under_min_isr())
    section(
        partitions,
        "State",
        graph(
            "Partitions by state",
            "The controller's partition states, as its state machine has them.",
            Line(newest(partition_metrics.PARTITIONS, "state"), legend("state")),
            stepped=True,
        ),
        shared.partition_issues(),
        graph(
            "Replicas by state",
            "The controller's replica states, as its state machine has them.",
            Line(newest(partition_metrics.REPLICAS, "state"), legend("state")),
            stepped=True,
        ),
        graph(
            "Topics",
            "As Kafka's GlobalTopicCount.",
            Line(newest(topic_metrics.TOPICS)),
            stepped=True,
        ),
    )
    return section(
        partitions,
        "Leadership",
        shared.elections(),
        graph(
            "Unclean elections",
            "Leaders elected that were not in sync: what the old leader alone had is lost.",
            Line(increase(partition_metrics.ELECTIONS, matchers=(UNCLEAN,))),
        ),
        shared.isr_changes(),
        graph(
            "Not led by the preferred replica",
            "As Kafka's PreferredReplicaImbalanceCount, beside Kafka's own where JMX is scraped.",
            Line(newest(partition_metrics.PREFERRED_IMBALANCE), legend(word="by Kontrast")),
            Line(jmx(JMX_IMBALANCE), legend(word="by JMX")),
            stepped=True,
        ),
    )
