"""Metrics of the brokers' own metadata, compared with ZooKeeper's."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, MetricType


def _of_probe(name: str, text: str, *labels: str, kind: MetricType = MetricType.GAUGE, unit: str = "") -> Metric:
    return Metric(
        name=f"kontrast_broker_view_{name}",
        help=text,
        labels=(CLUSTER_LABEL, "broker", *labels),
        type=kind,
        unit=unit,
        before_ready=True,
        switched_on_by="serve.probe",
    )


BROKER_VIEW_DIFFERING = _of_probe(
    "partitions",
    "Partitions whose metadata at the broker differs from ZooKeeper for longer than updates travel. `stale` ones "
    "have an older leader there, `missing` ones are unknown to it, and the topics of `unexpected` ones are gone or "
    "in deletion. Absent while the broker does not answer.",
    "difference",
)
BROKER_VIEW_SECONDS = _of_probe(
    "probe_seconds", "Time of the broker's newest answer. Absent while it does not answer.", unit="seconds"
)
BROKER_VIEW_PROBES = _of_probe(
    "probes_total",
    "Requests for metadata to registered brokers, by result (answered, failed).",
    "result",
    kind=MetricType.COUNTER,
)
