"""`/metrics/jmx`, metadata under the names of Kafka's JMX exporter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import NO_BROKER, BrokerId
from controller.rules.election import Strategy
from dashboards.catalogue import jmx_metrics, partitions_page_metrics
from dashboards.catalogue.families import family
from dashboards.catalogue.jmx_metrics import BROKER_LABELS, JMX_METRICS
from dashboards.catalogue.metric import CLUSTER_LABEL, JMX_PAGE, Metric
from dashboards.exporter.discovery import scrape_address
from dashboards.exporter.scrape import brokers_in_order
from outputs.reading import ReadingCounts
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory
from questions.picture import Present

_UNCLEAN = f"Unclean{Strategy.OFFLINE.value}"

# Values on the controller. Every other broker has 0.
_OF_CONTROLLER: Mapping[Metric, Callable[[GaugesRow], int]] = MappingProxyType(
    {
        jmx_metrics.OFFLINE_PARTITIONS_COUNT: lambda gauges: gauges.offline_partitions,
        jmx_metrics.PREFERRED_REPLICA_IMBALANCE_COUNT: lambda gauges: gauges.preferred_replica_imbalance,
        jmx_metrics.GLOBAL_TOPIC_COUNT: lambda gauges: gauges.topics,
        jmx_metrics.GLOBAL_PARTITION_COUNT: lambda gauges: gauges.partitions,
        jmx_metrics.ACTIVE_BROKER_COUNT: lambda gauges: gauges.active_brokers,
        jmx_metrics.TOPICS_TO_DELETE_COUNT: lambda gauges: gauges.topics_to_delete,
        jmx_metrics.REPLICAS_TO_DELETE_COUNT: lambda gauges: gauges.replicas_to_delete,
        jmx_metrics.TOPICS_INELIGIBLE_COUNT: lambda gauges: gauges.topics_ineligible_to_delete,
        jmx_metrics.REPLICAS_INELIGIBLE_COUNT: lambda gauges: gauges.replicas_ineligible_to_delete,
        jmx_metrics.UNCLEAN_LEADER_ELECTIONS: lambda gauges: gauges.elections.get(_UNCLEAN, 0),
    }
)

# Values of a broker. A broker outside the counts has no values.
_OF_BROKER: Mapping[Metric, Callable[[GaugesRow], Mapping[BrokerId, int]]] = MappingProxyType(
    {
        jmx_metrics.ACTIVE_CONTROLLER_COUNT: lambda gauges: {gauges.controller: 1},
        jmx_metrics.LEADER_COUNT: lambda gauges: gauges.leaders_by_broker,
        jmx_metrics.PARTITION_COUNT: lambda gauges: gauges.replicas_by_broker,
        jmx_metrics.UNDER_REPLICATED_PARTITIONS: lambda gauges: gauges.under_replicated_by_broker,
        jmx_metrics.UNDER_MIN_ISR_PARTITION_COUNT: lambda gauges: gauges.under_min_isr_by_broker,
        jmx_metrics.AT_MIN_ISR_PARTITION_COUNT: lambda gauges: gauges.at_min_isr_by_broker,
    }
)


@dataclass(frozen=True, slots=True)
class _ShownCluster:
    """A cluster that is on the page, and the labels of its brokers."""

    name: str
    gauges: GaugesRow
    brokers: Mapping[BrokerId, dict[str, str]]

    def samples(self, metric: Metric) -> Iterator[tuple[dict[str, str], int]]:
        if metric in _OF_BROKER:
            counts = _OF_BROKER[metric](self.gauges)
        else:
            counts = {self._speaker(): _OF_CONTROLLER[metric](self.gauges)}
        if metric is jmx_metrics.UNCLEAN_LEADER_ELECTIONS or not self.brokers:
            # The sample has no broker, because a counter that moves between brokers would seem to grow, and because
            # a sum over no broker would have no value and raise no alert.
            yield {CLUSTER_LABEL: self.name}, sum(counts.values()) if metric in _OF_CONTROLLER else 0
            return
        for broker, labels in self.brokers.items():
            yield labels, counts.get(broker, 0)

    def _speaker(self) -> BrokerId:
        """Return the broker that shows the controller's values, which is the first broker if no controller exists."""
        return self.gauges.controller if self.gauges.controller >= 0 else next(iter(self.brokers), NO_BROKER)


class JmxCollector(Collector):
    """Collector that answers each scrape from the present memory."""

    def __init__(
        self, memory: Memory, reading: ReadingCounts, broker_limit: int, jmx_port: int | None, stale_after_ms: int
    ) -> None:
        self._memory = memory
        self._reading = reading
        self._broker_limit = broker_limit
        self._jmx_port = jmx_port
        self._stale_after_ms = stale_after_ms

    def collect(self) -> Iterator[Family]:
        """Yield whether each cluster is on the page, then every family in the order of the table."""
        clusters, reading = self._memory.clusters(), self._reading.snapshot()
        present = Present(time.time_ns() // 1_000_000, self._stale_after_ms)
        shown = [
            _ShownCluster(known.cluster, known.gauges, self._brokers(known, known.gauges))
            for known in clusters
            if known.gauges is not None and known.is_seen(present) and reading.vouches_for(known.cluster)
        ]
        names = {cluster.name for cluster in shown}
        yield family(
            partitions_page_metrics.PAGE_READY,
            [((known.cluster, JMX_PAGE), known.cluster in names) for known in clusters],
        )
        for metric in JMX_METRICS:
            built = family(metric, ())
            for cluster in shown:
                for labels, value in cluster.samples(metric):
                    built.add_sample(metric.name, labels, value)
            yield built

    def _brokers(self, cluster: ClusterSnapshot, gauges: GaugesRow) -> dict[BrokerId, dict[str, str]]:
        """Return the labels of each registered broker, and of the controller even if it is not registered."""
        rows = {row.broker: row for row in cluster.brokers if row.registered}
        named = [broker for broker in brokers_in_order(cluster, gauges) if broker in rows][: self._broker_limit]
        if gauges.controller >= 0 and gauges.controller not in named:
            named.append(gauges.controller)
        labels = {}
        for broker in named:
            address = scrape_address(rows[broker], self._jmx_port) if broker in rows else None
            # Without an address, Prometheus sets the address of the exporter.
            values = (cluster.cluster, str(broker), address or "")
            labels[broker] = {name: value for name, value in zip(BROKER_LABELS, values, strict=True) if value}
        return labels
