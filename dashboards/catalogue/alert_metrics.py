"""Alerts by kind and by name, and maintenance in force."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, of_cluster

ALERTS_OPEN = of_cluster(
    "alerts_open",
    "Open alerts of Kontrast by kind. `state` is open, or unknown while the cluster is not seen.",
    "alert",
    "severity",
    "state",
)
ALERT_SINCE = Metric(
    name="kontrast_alert_since_timestamp_seconds",
    help="Start of an active alert's problem, with the labels of its messages to Alertmanager. It stays while its"
    " cluster is unknown. Alerts that page are named first, then the oldest ones. Each further broker has a series,"
    " and so has each news, whose number is in the label `news`. `rank` orders alerts as a text, the worst first.",
    unit="seconds",
    labels=(
        CLUSTER_LABEL,
        "alert",
        "severity",
        "component",
        "subject",
        "group",
        "topic",
        "partition",
        "broker",
        "other_broker",
        "news",
        "rank",
    ),
    before_ready=True,
)
ALERT_DETAIL_DROPPED = Metric(
    name="kontrast_alert_detail_dropped",
    help="Active alerts that are not named, for there are too many.",
    before_ready=True,
)
MAINTENANCE_UNTIL = of_cluster(
    "maintenance_until_timestamp_seconds",
    "End of a broker's maintenance window. `all` covers the whole cluster. Until then its alerts have severity info.",
    "broker",
    unit="seconds",
)
