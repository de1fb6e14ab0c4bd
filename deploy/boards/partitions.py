"""The board of partitions, with reasons for unusable ones, elections and ISR changes."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import partition_metrics
from deploy.boards import shared
from deploy.boards.board import UNCLEAN, new_board, section
from deploy.boards.panels import ANY_IS_BAD, ANY_IS_DOUBTFUL, Line, graph, number
from deploy.boards.queries import JMX_IMBALANCE, increase, jmx, legend, newest


def board() -> dashboard.Dashboard:
    """Return the board."""
    partitions = new_board(
        "partitions",
        "partitions and leadership",
        "Unusable partitions with start and reason, and elections.",
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
            "Unusable partitions, or partitions that reject acks=all, beyond the named ones. The exporter names "
            "a limited number.",
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
    section(partitions, "Partitions that reject acks=all", shared.partitions_under_min_isr())
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
            Line(newest(partition_metrics.TOPICS)),
            stepped=True,
        ),
    )
    return section(
        partitions,
        "Leadership",
        shared.elections(),
        graph(
            "Unclean elections",
            "Elected leaders outside the ISR. Records that only the old leader had are lost.",
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
