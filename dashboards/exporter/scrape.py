"""Sources of one scrape: snapshots of the memory, the reading, the job and the active alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from controller.contract.job_row import JobRow
from dashboards.alerting.message import Message
from outputs.reading import ReadingSnapshot
from questions.cluster_rows import ClusterSnapshot
from questions.picture import Present


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLimits:
    """The largest numbers of partitions, brokers and alerts of a cluster that metrics name."""

    partitions: int
    brokers: int
    alerts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """The snapshots for the answer to one scrape."""

    clusters: tuple[ClusterSnapshot, ...]
    reading: ReadingSnapshot
    limits: DetailLimits
    alerts: Mapping[str, Sequence[Message]]  # active alerts by cluster, of every source, those that page first
    present: Present
    jobs: Mapping[str, JobRow] = field(default_factory=dict)  # by the address of their outputs
    page_url: str = ""  # address of the live page, if it is known

    def is_ready(self, cluster: ClusterSnapshot) -> bool:
        """Return whether the cluster is ready, read to the end, and seen now. Otherwise its rows show the past."""
        return self.reading.vouches_for(cluster.cluster) and cluster.is_seen(self.present)


@dataclass(frozen=True, slots=True)
class ReadyCluster:
    """A ready cluster, and the brokers that metrics name."""

    snapshot: ClusterSnapshot
    brokers: tuple[BrokerId, ...]
    brokers_dropped: int
    limits: DetailLimits


def ready_clusters(scrape: Scrape) -> Iterator[tuple[ReadyCluster, GaugesRow]]:
    """Yield the ready clusters with their gauges."""
    for cluster in scrape.clusters:
        if cluster.gauges is not None and scrape.is_ready(cluster):
            brokers = brokers_in_order(cluster, cluster.gauges)
            named = brokers[: scrape.limits.brokers]
            yield ReadyCluster(cluster, named, len(brokers) - len(named), scrape.limits), cluster.gauges


def brokers_in_order(cluster: ClusterSnapshot, gauges: GaugesRow) -> tuple[BrokerId, ...]:
    """Return all brokers. Registered brokers come first, then other hosts of replicas, then former brokers."""
    registered = {row.broker for row in cluster.brokers if row.registered}
    hosts = gauges.replicas_by_broker.keys() | gauges.leaders_by_broker.keys()
    known = {row.broker for row in cluster.brokers} | hosts
    return tuple(sorted(known, key=lambda broker: (broker not in registered, broker not in hosts, broker)))
