"""Metrics of `/metrics/partitions`, one series per partition, and the cost of rendering."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, JMX_PAGE, PARTITIONS_PAGE, Metric

_PAGE = f"/clusters/{{{CLUSTER_LABEL}}}/topics/{{topic}}/{{partition}}"  # in the help, because a sample has no link


def _of_partition(name: str, text: str) -> Metric:
    labels = (CLUSTER_LABEL, "topic", "partition")
    return Metric(name=f"kontrast_partition_{name}", help=f"{text} Why: {_PAGE}", labels=labels, page=PARTITIONS_PAGE)


PAGE_READY = Metric(
    name="kontrast_page_ready",
    help="1 while the cluster is on the page, 0 while it is not ready and the page leaves it out.",
    labels=(CLUSTER_LABEL, "page"),
    before_ready=True,
    page=f"{PARTITIONS_PAGE}, {JMX_PAGE}",
)
PAGE_RENDER = Metric(
    name="kontrast_partitions_page_render_seconds",
    help=f"Time that the newest rendering of {PARTITIONS_PAGE} took. It renders only changed segments.",
    unit="seconds",
    labels=(),
    before_ready=True,
)
PAGE_BYTES = Metric(
    name="kontrast_partitions_page_size_bytes",
    help=f"Size of {PARTITIONS_PAGE}, as it is (identity) and as it is kept and sent (gzip).",
    unit="bytes",
    labels=("encoding",),
    before_ready=True,
)
PARTITION_LEADER = _of_partition("leader", "The broker that leads the partition in ZooKeeper, or -1.")
PARTITION_LEADER_EPOCH = _of_partition("leader_epoch", "The partition's leader epoch as ZooKeeper has it.")
PARTITION_REPLICAS = _of_partition("replicas", "Replicas that are assigned to the partition.")
PARTITION_IN_SYNC = _of_partition("in_sync_replicas", "Replicas of the partition that are in the ISR.")
PARTITION_STATE = _of_partition(
    "state", "The controller's state of the partition, by Kafka's numbers: 0 new, 1 online, 2 offline."
)
PARTITION_WRITABLE_ACKS_ALL = _of_partition(
    "writable_acks_all",
    "1 while the partition accepts writes with acks=all by ZooKeeper's data, else 0. NaN for a row of an older "
    "Kontrast without this fact.",
)
