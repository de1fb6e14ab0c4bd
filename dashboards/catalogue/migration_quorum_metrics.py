"""Metrics from the answers of Kafka's nodes and the KRaft quorum during a migration."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric


def _of_quorum(name: str, text: str, *labels: str) -> Metric:
    return Metric(
        name=f"kontrast_migration_{name}",
        help=text,
        labels=(CLUSTER_LABEL, *labels),
        before_ready=True,
        switched_on_by="serve.probe",
    )


MIGRATION_NODES = _of_quorum(
    "nodes",
    "Brokers and KRaft controllers by mode, as each reports itself. zookeeper (without the migration's flag), "
    "zookeeper-migrating, kraft, controller-migrating, controller (without the flag, also after finalization), "
    "silent (no answer). Absent while Kontrast asks no quorum.",
    "mode",
)
MIGRATION_HIGH_WATERMARK = _of_quorum(
    "quorum_high_watermark",
    "High watermark of the quorum's log. The offset in /migration is 1 less when ZooKeeper has everything. "
    "Absent while no node reports it.",
)
MIGRATION_OFFSET_LAG = _of_quorum(
    "offset_lag",
    "Records of the quorum's log that ZooKeeper lacked at the last request, its high watermark - 1 - the offset "
    "in /migration. Absent while no node reports the high watermark, or no KRaft controller leads.",
)
MIGRATION_LEADER_EPOCH = _of_quorum(
    "quorum_leader_epoch", "Epoch of the quorum's leader as a node reports it. Absent while no node does."
)
MIGRATION_DIFFERING = _of_quorum(
    "differing_values",
    "Partitions of which ZooKeeper has other replicas, or another leader, leader epoch or ISR (partitions), than the "
    "quorum, for longer than confirm_seconds. Absent while the quorum cannot be compared.",
    "subject",
)
