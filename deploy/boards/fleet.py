"""The board of the fleet, with a row for each cluster, the worst first, and a link to the cluster's page."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import partition_metrics, pipeline_metrics
from deploy.boards import shared
from deploy.boards.board import new_board, section
from deploy.boards.panels import ANY_IS_BAD, Column, Limits, listing
from deploy.boards.queries import age, newest


def board() -> dashboard.Dashboard:
    """Return the board."""
    fleet = new_board("fleet", "fleet", "Every cluster, the worst first. A row leads to the cluster's page.")
    return section(
        fleet,
        "Clusters",
        listing(
            "Clusters",
            "State, partitions that clients cannot use or write with acks=all, brokers that are away, and the age of "
            "the newest heartbeat. A cluster that Kontrast does not see has only its state and age.",
            (),
            Column("state", shared.state_value(), meaning=shared.STATES),
            Column("offline", newest(partition_metrics.OFFLINE), limits=ANY_IS_BAD),
            Column("refusing", newest(partition_metrics.UNDER_MIN_ISR), limits=ANY_IS_BAD),
            Column("brokers away", shared.brokers_away_value(), limits=ANY_IS_BAD),
            Column("age", age(pipeline_metrics.HEARTBEAT), "s", limits=Limits(orange=15, red=60)),
            sort_by="state",
            is_descending=True,
            empty="no cluster is known",
        ).height(16),
    )
