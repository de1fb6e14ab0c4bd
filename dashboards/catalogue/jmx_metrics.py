"""The metrics of `/metrics/jmx`, as Prometheus' JMX exporter names Kafka's gauges in its example for Kafka."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, JMX_PAGE, Metric, MetricType

BROKER_LABELS = (CLUSTER_LABEL, "broker", "instance")


def _of_controller(name: str, text: str) -> Metric:
    full_name = f"kafka_controller_kafkacontroller_{name}"
    return Metric(name=full_name, help=text, labels=BROKER_LABELS, page=JMX_PAGE)


def _of_broker(name: str, text: str) -> Metric:
    return Metric(name=f"kafka_server_replicamanager_{name}", help=text, labels=BROKER_LABELS, page=JMX_PAGE)


ACTIVE_CONTROLLER_COUNT = _of_controller(
    "activecontrollercount", "1 for the broker that /controller names, 0 for every other registered one."
)
OFFLINE_PARTITIONS_COUNT = _of_controller(
    "offlinepartitionscount", "OfflinePartitionsCount, also while no broker is controller."
)
PREFERRED_REPLICA_IMBALANCE_COUNT = _of_controller(
    "preferredreplicaimbalancecount", "PreferredReplicaImbalanceCount, also while no broker is controller."
)
GLOBAL_TOPIC_COUNT = _of_controller("globaltopiccount", "GlobalTopicCount.")
GLOBAL_PARTITION_COUNT = _of_controller("globalpartitioncount", "GlobalPartitionCount.")
ACTIVE_BROKER_COUNT = _of_controller("activebrokercount", "ActiveBrokerCount.")
TOPICS_TO_DELETE_COUNT = _of_controller("topicstodeletecount", "TopicsToDeleteCount.")
REPLICAS_TO_DELETE_COUNT = _of_controller("replicastodeletecount", "ReplicasToDeleteCount.")
TOPICS_INELIGIBLE_COUNT = _of_controller("topicsineligibletodeletecount", "TopicsIneligibleToDeleteCount.")
REPLICAS_INELIGIBLE_COUNT = _of_controller("replicasineligibletodeletecount", "ReplicasIneligibleToDeleteCount.")
UNCLEAN_LEADER_ELECTIONS = Metric(
    name="kafka_controller_controllerstats_uncleanleaderelections_total",
    help="Confirmed unclean leader elections since the state of Kontrast's job began.",
    type=MetricType.COUNTER,
    page=JMX_PAGE,
)
LEADER_COUNT = _of_broker("leadercount", "LeaderCount, the partitions that the broker leads.")
PARTITION_COUNT = _of_broker("partitioncount", "PartitionCount: replicas on the broker.")
UNDER_REPLICATED_PARTITIONS = _of_broker(
    "underreplicatedpartitions", "UnderReplicatedPartitions that the broker leads."
)
UNDER_MIN_ISR_PARTITION_COUNT = _of_broker(
    "underminisrpartitioncount", "UnderMinIsrPartitionCount, of partitions that the broker leads."
)
AT_MIN_ISR_PARTITION_COUNT = _of_broker(
    "atminisrpartitioncount", "AtMinIsrPartitionCount, of partitions that the broker leads."
)

JMX_METRICS: tuple[Metric, ...] = tuple(value for value in tuple(globals().values()) if isinstance(value, Metric))
