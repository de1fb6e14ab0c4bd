"""Metrics of the active controller, its changes, speed and deviations."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, MetricType, cluster_counter, of_cluster

CONTROLLER_INFO = Metric(
    name="kontrast_controller_info",
    help="The broker that is the active controller. Absent without one.",
    type=MetricType.INFO,
    labels=(CLUSTER_LABEL, "broker"),
)
CONTROLLER_ACTIVE = of_cluster("controller_active", "1 while a broker is the active controller, else 0.")
CONTROLLER_EPOCH = of_cluster("controller_epoch", "Controller epoch as ZooKeeper has it.")
CONTROLLER_SINCE = of_cluster(
    "controller_since_timestamp_seconds",
    "Time since which this broker, or no broker, is the active controller.",
    unit="seconds",
)
CONTROLLER_CHANGES = cluster_counter("controller_changes", "Changes of the active controller.")
PENDING_WRITES = of_cluster("pending_writes", "Writes to ZooKeeper that the controller must still do.")
DIVERGENCES = cluster_counter("divergences", "Deviations of the real controller from its rules.", "kind")
WRITES = cluster_counter(
    "writes",
    "The controller's writes of partition states. `expected` writes were predicted, "
    "inference explains `inferred` writes, and `unexplained` ones have no known cause.",
    "verdict",
)
INFERRED_WRITES = cluster_counter(
    "inferred_writes", "Writes of the controller that a rule of inference explains, by rule.", "rule"
)
INFERRED_EVENTS = cluster_counter(
    "inferred_events",
    "Unannounced events of the controller, by the rule that inferred them, including those without a write.",
    "rule",
)
AGREEMENT = of_cluster(
    "agreement_ratio",
    "Share of expected and inferred writes in all writes of the controller, for the last hour (`1h`) and since "
    "the job's state began (`start`). Absent without writes.",
    "window",
    unit="ratio",
)
CONTROLLER_REACTION = Metric(
    name="kontrast_controller_reaction_seconds",
    help="From an event's cause in ZooKeeper to the controller's first and last write after it, by kind of event.",
    type=MetricType.HISTOGRAM,
    labels=(CLUSTER_LABEL, "event", "write"),
    unit="seconds",
)
