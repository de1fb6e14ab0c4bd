"""The board of queued, running and stuck deletions and reassignments."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from controller.rules.election import Strategy
from dashboards.catalogue import partition_metrics
from deploy.boards import shared
from deploy.boards.board import new_board, section
from deploy.boards.panels import ANY_IS_DOUBTFUL, Line, graph, number
from deploy.boards.queries import increase, legend, newest

_DELETING = 'state=~"deletion_.*"'


def board() -> dashboard.Dashboard:
    """Return the board."""
    deletions = new_board(
        "deletions", "deletions and reassignments", "Queued and stuck deletions, and elections by reassignments."
    )
    section(
        deletions,
        "Now",
        number("Topics to delete", "Topics whose deletion is queued.", newest(partition_metrics.TOPICS_TO_DELETE)),
        number(
            "Ineligible topics",
            "Queued deletions that cannot continue, because a broker with a replica is missing or the topic is "
            "reassigned.",
            newest(partition_metrics.TOPICS_INELIGIBLE),
            limits=ANY_IS_DOUBTFUL,
        ),
        number(
            "Replicas to delete", "Replicas whose deletion is queued.", newest(partition_metrics.REPLICAS_TO_DELETE)
        ),
        number(
            "Ineligible replicas",
            "Their deletion is queued and cannot go on for now.",
            newest(partition_metrics.REPLICAS_INELIGIBLE),
            limits=ANY_IS_DOUBTFUL,
        ),
        number("Topics", "As Kafka's GlobalTopicCount.", newest(partition_metrics.TOPICS)),
        shared.pending_writes(),
    )
    section(
        deletions,
        "Deletions",
        graph(
            "Queued deletions of topics",
            "Queued deletions, and those that cannot continue.",
            Line(newest(partition_metrics.TOPICS_TO_DELETE), legend(word="to delete")),
            Line(newest(partition_metrics.TOPICS_INELIGIBLE), legend(word="cannot go on")),
            stepped=True,
        ),
        graph(
            "Queued deletions of replicas",
            "Replicas of topics in deletion, and those that cannot be deleted.",
            Line(newest(partition_metrics.REPLICAS_TO_DELETE), legend(word="to delete")),
            Line(newest(partition_metrics.REPLICAS_INELIGIBLE), legend(word="cannot go on")),
            stepped=True,
        ),
        graph(
            "Replicas by state of deletion",
            "Started means that StopReplica was sent. Successful means that the broker answered. Ineligible "
            "means blocked for now.",
            Line(newest(partition_metrics.REPLICAS, "state", matchers=(_DELETING,)), legend("state")),
            stepped=True,
        ),
        graph("Topics over time", "As Kafka's GlobalTopicCount.", Line(newest(partition_metrics.TOPICS)), stepped=True),
    )
    return section(
        deletions,
        "Reassignments",
        graph(
            "Reassignments under way",
            "Partitions whose replicas are being exchanged.",
            Line(newest(partition_metrics.REASSIGNING)),
            stepped=True,
        ),
        graph(
            "Elections by reassignments",
            "Leaders that were moved because their replica is being removed.",
            Line(increase(partition_metrics.ELECTIONS, matchers=(f'strategy="{Strategy.REASSIGN.value}"',))),
        ),
        shared.isr_changes(),
    )
