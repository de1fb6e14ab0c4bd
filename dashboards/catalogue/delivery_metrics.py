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
    "Alerts sent to an Alertmanager, including repetitions, by result (accepted, refused, failed). "
    "The log has the reason of a refusal. Kontrast sends failed alerts again.",
    "result",
    kind=MetricType.COUNTER,
)
ALERTMANAGER_UP = _of_delivery("alertmanager_up", "1 while the Alertmanager takes alerts, 0 while it does not.")
ALERTMANAGER_LAST_DELIVERY = _of_delivery(
    "alertmanager_last_delivery_timestamp_seconds",
    "Time of the last accepted delivery to the Alertmanager. Without an active alert Kontrast sends no delivery.",
    unit="seconds",
)
