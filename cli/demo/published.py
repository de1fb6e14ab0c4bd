"""Kontrast's published data about the demo's cluster, from an operator's two sources: /metrics and output journals.

This module never asks the cluster itself, so it knows only published facts.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.metadata_rows import BeginningRow, PartitionRow
from controller.contract.outputs import decode_row
from dashboards.catalogue import cluster_metrics, pipeline_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL, Metric
from outputs import open_outputs
from questions.memory import Memory
from transport.address import JournalAddress

_TIMEOUT_SECONDS = 5
_LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # past any proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCluster:
    """A cluster as Kontrast publishes it at one moment. Partitions are named `topic-partition`."""

    controller: int  # -1 without a controller
    brokers: int
    topics: int
    online: int
    unusable: dict[str, str]  # by partition, its problem in a word
    under_replicated: int
    leaders: dict[str, int]  # by partition, -1 without a leader
    pages: dict[str, str]  # by id, the cause of each open alert of severity page


class Published:
    """The outputs of the demo's Kontrast."""

    def __init__(self, metrics_address: str, derived: Path, cluster: str) -> None:
        self._metrics_address = metrics_address
        self._cluster = cluster
        self._outputs = open_outputs(JournalAddress(derived), (AlertRow.output, PartitionRow.output))
        self._memory = Memory()

    def picture(self) -> PublishedCluster | None:
        """Return the newest picture, if the exporter answers and its picture is complete."""
        samples = self._scrape()
        if _count(samples, pipeline_metrics.READY) != 1:
            return None
        self._read()
        known = self._memory.cluster(self._cluster)
        controllers = [int(sample.labels["broker"]) for sample in _of(samples, cluster_metrics.CONTROLLER_INFO)]
        return PublishedCluster(
            controller=controllers[0] if controllers else -1,
            brokers=_count(samples, cluster_metrics.BROKERS),
            topics=_count(samples, cluster_metrics.TOPICS),
            online=_count(samples, cluster_metrics.PARTITIONS, state="online"),
            unusable={
                f"{sample.labels['topic']}-{sample.labels['partition']}": sample.labels["reason"]
                for sample in _of(samples, cluster_metrics.OFFLINE_SINCE)
            },
            under_replicated=_count(samples, cluster_metrics.UNDER_REPLICATED),
            leaders={
                f"{topic}-{number}": row.leader
                for (topic, number), row in self._memory.partitions(self._cluster).items()
            },
            pages={row.id: row.cause for row in (() if known is None else known.open_alerts) if _is_page(row)},
        )

    def _read(self) -> None:
        while chunks := self._outputs.poll():
            for output, row in ((chunk.output, decode_row(line)) for chunk in chunks for line in chunk.lines):
                if isinstance(row, BeginningRow):
                    self._memory.forget(output, row.cluster)
                else:
                    self._memory.apply(row)

    def _scrape(self) -> list[Sample]:
        try:
            with _LOOPBACK.open(self._metrics_address, timeout=_TIMEOUT_SECONDS) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            return []
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return [sample for sample in samples if sample.labels.get(CLUSTER_LABEL) == self._cluster]


def _is_page(row: AlertRow) -> bool:
    return row.state == "open" and row.severity is Severity.PAGE


def _of(samples: Sequence[Sample], metric: Metric) -> list[Sample]:
    return [sample for sample in samples if sample.name == metric.name]


def _count(samples: Sequence[Sample], metric: Metric, **labels: str) -> int:
    """Return the sum of the metric's samples that have these labels."""
    return int(sum(sample.value for sample in _of(samples, metric) if labels.items() <= sample.labels.items()))
