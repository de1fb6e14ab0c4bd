"""Collector of `/metrics`, with every family of the catalogue's page from one snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from controller.contract.gauges_row import GaugesRow
from dashboards.alerting.message import Message
from dashboards.catalogue.families import Sample, family, lag_family
from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.cluster_samples import CLUSTER_SAMPLES
from dashboards.exporter.scrape import DetailLimits, ReadyCluster, Scrape, ready_clusters
from dashboards.exporter.scrape_samples import HISTOGRAMS, SCRAPE_SAMPLES
from outputs.reading import ReadingCounts
from questions.memory import Memory
from questions.picture import Present


class MemoryCollector(Collector):
    """Collector that answers each scrape from the present memory, reading and active alerts."""

    def __init__(  # noqa: PLR0913 (one source an argument)
        self,
        memory: Memory,
        reading: ReadingCounts,
        limits: DetailLimits,
        stale_after_ms: int,
        alerts: Callable[[], Mapping[str, Sequence[Message]]],
        *,
        page_url: str = "",
    ) -> None:
        self._memory = memory
        self._reading = reading
        self._limits = limits
        self._stale_after_ms = stale_after_ms
        self._alerts = alerts
        self._page_url = page_url

    def collect(self) -> Iterator[Family]:
        """Yield every family of the catalogue's page, in its order. A family without samples is empty."""
        scrape = Scrape(
            clusters=self._memory.clusters(),
            reading=self._reading.snapshot(),
            limits=self._limits,
            alerts=self._alerts(),
            present=Present(time.time_ns() // 1_000_000, self._stale_after_ms),
            jobs=self._memory.jobs(),
            page_url=self._page_url,
        )
        ready = tuple(ready_clusters(scrape))
        for metric in CATALOGUE:
            if metric.of_watch or metric.of_pages or metric.switched_on_by:
                continue
            if metric in HISTOGRAMS:
                yield lag_family(metric, HISTOGRAMS[metric](scrape, ready))
            elif metric in SCRAPE_SAMPLES:
                yield family(metric, SCRAPE_SAMPLES[metric](scrape))
            else:
                yield family(metric, _of_clusters(CLUSTER_SAMPLES[metric], ready))


def _of_clusters(
    read: Callable[[ReadyCluster, GaugesRow], Iterator[Sample]], clusters: Iterable[tuple[ReadyCluster, GaugesRow]]
) -> Iterator[Sample]:
    for ready, gauges in clusters:
        for labels, value in read(ready, gauges):
            yield (ready.snapshot.cluster, *labels), value
