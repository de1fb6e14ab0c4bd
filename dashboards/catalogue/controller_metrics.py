"""The active controller: which broker, since when, how fast, and where it differs from the replica."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, MetricType, cluster_counter, of_cluster

CONTROLLER_INFO = Metric(
    name="kontrast_controller_info",
    help="The broker that is the active controller; absent while no broker is.",
    type=MetricType.INFO,
    labels=(CLUSTER_LABEL, "broker"),
)
CONTROLLER_ACTIVE = of_cluster("controller_active", "1 while a broker is the active controller, else 0.")
CONTROLLER_EPOCH = of_cluster("controller_epoch", "Controller epoch as ZooKeeper has it.")
CONTROLLER_SINCE = of_cluster(
    "controller_since_timestamp_seconds",
    "Since when this broker, or none, is the active controller.",
    unit="seconds",
)
CONTROLLER_CHANGES = cluster_counter(
    "controller_changes", "Changes of the active controller since the job's state began."
)
PENDING_WRITES = of_cluster("pending_writes", "Writes to ZooKeeper that the controller must still do.")
DIVERGENCES = cluster_counter(
    "divergences", "Where the real controller did not do what it must, since the job's state began.", "kind"
)
WRITES = cluster_counter(
    "writes",
    "Writes of partition states by the controller since the job's state began: expected before they came, explained by "
    "inference (`inferred`), or unexplained.",
    "verdict",
)
INFERRED_WRITES = cluster_counter(
    "inferred_writes", "Writes of the controller that a rule of inference explains, by rule.", "rule"
)
INFERRED_EVENTS = cluster_counter(
    "inferred_events",
    "Events of the controller that no znode announced, by the rule that inferred them; with those that no write shows.",
    "rule",
)
AGREEMENT = of_cluster(
    "agreement_ratio",
    "Expected and inferred writes among all writes of the controller, of the last hour (`1h`) and since the job's "
    "state began (`start`); absent of no writes.",
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
