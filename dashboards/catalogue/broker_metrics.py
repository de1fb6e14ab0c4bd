"""Metrics of brokers, their registration, leaderships, replicas and partitions."""

from __future__ import annotations

from dashboards.catalogue.metric import of_cluster

BROKERS = of_cluster("brokers", "Brokers that are registered in ZooKeeper.")
BROKER_REGISTERED = of_cluster(
    "broker_registered",
    "1 while a known broker is registered, else 0. A broker without replicas is known for a day after it left.",
    "broker",
)
BROKER_LEADERS = of_cluster("broker_leaders", "Partitions that the broker leads.", "broker")
BROKER_REPLICAS = of_cluster("broker_replicas", "Replicas that are assigned to the broker.", "broker")
BROKER_UNDER_REPLICATED = of_cluster(
    "broker_partitions_under_replicated", "Under-replicated partitions that the broker leads.", "broker"
)
BROKER_UNDER_MIN_ISR = of_cluster(
    "broker_partitions_under_min_isr", "Partitions below min.insync.replicas that the broker leads.", "broker"
)
BROKER_AT_MIN_ISR = of_cluster(
    "broker_partitions_at_min_isr", "Partitions at exactly min.insync.replicas that the broker leads.", "broker"
)
BROKER_SOLE_IN_SYNC = of_cluster(
    "broker_sole_in_sync_partitions",
    "Partitions whose only in-sync replica is on this broker. Its loss takes them offline.",
    "broker",
)
BROKER_DETAIL_DROPPED = of_cluster(
    "broker_detail_dropped", "Brokers, known or with replicas, that are not named, for there are too many."
)
