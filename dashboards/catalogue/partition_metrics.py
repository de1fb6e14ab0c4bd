"""Topics and their deletion, partitions and replicas by state and health, elections and ISR changes."""

from __future__ import annotations

from dashboards.catalogue.metric import cluster_counter, of_cluster

TOPICS = of_cluster("topics", "Topics, as Kafka's GlobalTopicCount.")
TOPICS_TO_DELETE = of_cluster("topics_to_delete", "Topics whose deletion is queued.")
REPLICAS_TO_DELETE = of_cluster("replicas_to_delete", "Replicas whose deletion is queued.")
TOPICS_INELIGIBLE = of_cluster("topics_ineligible_to_delete", "Topics whose deletion cannot go on for now.")
REPLICAS_INELIGIBLE = of_cluster("replicas_ineligible_to_delete", "Replicas whose deletion cannot go on for now.")
PARTITIONS = of_cluster("partitions", "Partitions by the controller's partition state.", "state")
REPLICAS = of_cluster("replicas", "Replicas by the controller's replica state.", "state")
OFFLINE = of_cluster("partitions_offline", "Offline partitions, as Kafka's OfflinePartitionsCount.")
LEADERLESS = of_cluster(
    "partitions_leaderless", "Partitions without a live leader right now, whether an election is due or not."
)
UNDER_REPLICATED = of_cluster("partitions_under_replicated", "Partitions whose ISR lacks an assigned replica.")
UNDER_MIN_ISR = of_cluster("partitions_under_min_isr", "Partitions with an ISR below min.insync.replicas.")
AT_MIN_ISR = of_cluster("partitions_at_min_isr", "Partitions with an ISR of exactly min.insync.replicas.")
PREFERRED_IMBALANCE = of_cluster(
    "partitions_preferred_imbalance",
    "Partitions that their preferred replica does not lead, as Kafka's PreferredReplicaImbalanceCount.",
)
OFFLINE_SINCE = of_cluster(
    "partition_offline_since_timestamp_seconds",
    "Time since which a partition is unusable, by name and reason. Usable partitions are absent.",
    "topic",
    "partition",
    "reason",
    unit="seconds",
)
BROUGHT_BACK_BY = of_cluster(
    "partition_brought_back_by",
    "1 for each named unusable partition. The label `brokers` lists brokers each of which would bring it back.",
    "topic",
    "partition",
    "brokers",
)
DETAIL_DROPPED = of_cluster(
    "partition_detail_dropped", "Partitions that cannot be used but are not named, for there are too many."
)
UNDER_MIN_ISR_SINCE = of_cluster(
    "partition_under_min_isr_since_timestamp_seconds",
    "Time since which a partition with a leader rejects writes with acks=all, by name. Others are absent.",
    "topic",
    "partition",
    unit="seconds",
)
IN_SYNC_LACKING = of_cluster(
    "partition_in_sync_lacking",
    "Number of replicas that must join the ISR before a named partition accepts acks=all. The label `brokers` "
    "lists the candidates.",
    "topic",
    "partition",
    "brokers",
)
UNDER_MIN_ISR_DROPPED = of_cluster(
    "partition_under_min_isr_detail_dropped",
    "Partitions that are led and reject acks=all but are not named, for there are too many.",
)
ELECTIONS = cluster_counter("leader_elections", "Confirmed leader elections.", "strategy")
ISR_CHANGES = cluster_counter("isr_changes", "ISR changes.", "operation")
REASSIGNING = of_cluster("partitions_reassigning", "Partitions that are being reassigned.")
