"""The board of the fleet, with a row for each cluster, the worst first, and a link to the cluster's page."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import cluster_metrics, pipeline_metrics
from lab.boards.board import new_board, section
from lab.boards.panels import ANY_IS_BAD, Column, listing
from lab.boards.queries import age, newest, of_every_cluster
from lab.boards.shared import LATE, STATES, brokers_away_value, state_value


def board() -> dashboard.Dashboard:
    """Return the board."""
    columns = (
        Column("state", state_value(), meaning=STATES),
        Column("offline", newest(cluster_metrics.OFFLINE), limits=ANY_IS_BAD),
        Column("refusing", newest(cluster_metrics.UNDER_MIN_ISR), limits=ANY_IS_BAD),
        Column("brokers away", brokers_away_value(), limits=ANY_IS_BAD),
        Column("age", age(pipeline_metrics.HEARTBEAT), "s", limits=LATE),
    )
    return section(
        new_board("fleet", "fleet", "Every cluster, the worst first. A row leads to the cluster's page."),
        "Clusters",
        listing(
            "Clusters",
            "State, partitions that clients cannot use or write with acks=all, brokers that are away, and the age of "
            "the newest heartbeat. A cluster that Kontrast does not see has only its state and age.",
            (),
            *(column._replace(expression=of_every_cluster(column.expression)) for column in columns),
            sort_by="state",
            is_descending=True,
            empty="no cluster is known",
        ).height(16),
    )
