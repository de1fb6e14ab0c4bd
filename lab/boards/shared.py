"""States, brokers that are away, and the age of the data, which more than one board shows."""

from __future__ import annotations

from grafana_foundation_sdk.builders import stat

from dashboards.catalogue import cluster_metrics, pipeline_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from lab.boards.panels import Limits, number
from lab.boards.queries import age, newest

# The worst state has the highest value, so that a board can sort by it, as the page sorts clusters.
STATES = {1: ("well", "green"), 2: ("degraded", "orange"), 3: ("unknown", "purple"), 4: ("affected", "red")}
LATE = Limits(orange=15, red=60)


def state_value() -> str:
    """Return the expression of a cluster's state, in which a higher value is worse."""
    return " or ".join(
        "(" + newest(pipeline_metrics.CLUSTER_STATE, matchers=(f'state="{word}"',)) + f" == 1) * {value}"
        for value, (word, _) in STATES.items()
    )


def brokers_away_value() -> str:
    """Return the expression that counts known brokers that are not registered."""
    return f"sum by ({CLUSTER_LABEL}) (1 - {newest(cluster_metrics.BROKER_REGISTERED, 'broker')})"


def heartbeat_age() -> stat.Panel:
    """Return the age of the data."""
    return number(
        "Heartbeat age",
        "Since the newest heartbeat that came through the whole pipeline. If it is old, so is all else here.",
        age(pipeline_metrics.HEARTBEAT),
        unit="s",
        limits=LATE,
    )
