"""Delivery of alerts to Alertmanager."""

from __future__ import annotations

from dashboards.catalogue.metric import Metric, MetricType


def _of_delivery(name: str, text: str, *labels: str, kind: MetricType = MetricType.GAUGE, unit: str = "") -> Metric:
    return Metric(
        name=f"kontrast_{name}",
        help=text,
        labels=("alertmanager", *labels),
        type=kind,
        unit=unit,
        before_ready=True,
        switched_on_by="serve.alertmanager",
    )


ALERT_DELIVERIES = _of_delivery(
    "alert_deliveries_total",
    "Alerts told to an Alertmanager, each re-sending too: accepted, refused (the log says why), or failed, for it does "
    "not answer and is told again.",
    "result",
    kind=MetricType.COUNTER,
)
ALERTMANAGER_UP = _of_delivery(
    "alertmanager_up", "1 while the Alertmanager takes what it is told, 0 while it does not."
)
ALERTMANAGER_LAST_DELIVERY = _of_delivery(
    "alertmanager_last_delivery_timestamp_seconds",
    "When the Alertmanager last took alerts; while none is open it is told of none.",
    unit="seconds",
)
