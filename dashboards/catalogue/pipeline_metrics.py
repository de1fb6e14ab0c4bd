"""Metrics of the rows' age, with sources, heartbeats, lag, gaps and rejected rows."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, SOURCE_LABEL, Metric, MetricType, cluster_counter, of_cluster

SOURCE_UP = Metric(
    name="kontrast_source_up",
    help="1 while the exporter can read the outputs of the streaming job, 0 while it cannot.",
    labels=(SOURCE_LABEL,),
    before_ready=True,
)
READY = Metric(
    name="kontrast_ready",
    help="1 after a complete read of the cluster was applied and read, else 0. Also 0 if a newer Kontrast wrote "
    "rows that this exporter cannot read, while no heartbeat arrives for stale_after_seconds, and while an alert hides "
    "the cluster. Then the metrics of the cluster are absent, so that no old value looks current.",
    before_ready=True,
)
CLUSTER_STATE = Metric(
    name="kontrast_cluster_state",
    help="1 for the present state of the cluster, as the page and `kontrast check` show it, else 0. The states are "
    "affected, unknown, degraded and well.",
    labels=(CLUSTER_LABEL, "state"),
    before_ready=True,
)
PAGE_INFO = Metric(
    name="kontrast_page_info",
    help="Address of the live page in the label `url`, for links on boards; always 1. It is page_url of "
    "[serve.alertmanager], or else the host and port of `kontrast serve`.",
    type=MetricType.INFO,
    labels=("url",),
    before_ready=True,
)
HEARTBEAT = Metric(
    name="kontrast_heartbeat_timestamp_seconds",
    help="Time of the newest heartbeat that came through the whole pipeline, by the clock of `kontrast watch`, or by "
    "the job's if that one is more than 5 s off.",
    unit="seconds",
    before_ready=True,
)
SESSION_CONNECTED = Metric(
    name="kontrast_zookeeper_session_connected",
    help="1 while `kontrast watch` has a live ZooKeeper session, else 0. Without a session no new change is seen.",
    before_ready=True,
)
WATCH_INFO = Metric(
    name="kontrast_watch_info",
    help="Watch mode of ZooKeeper, one persistent recursive watch, or one-shot watches on servers before 3.6. "
    "transaction-log is a past that `kontrast replay` published.",
    type=MetricType.INFO,
    labels=(CLUSTER_LABEL, "mode"),
    before_ready=True,
)
END_TO_END_LAG = Metric(
    name="kontrast_end_to_end_lag_seconds",
    help="From the observation of a change in ZooKeeper to the exporter's reading of a row that it caused. "
    "Rows that were there before the exporter started are not counted.",
    type=MetricType.HISTOGRAM,
    unit="seconds",
    before_ready=True,
)
ROWS = Metric(
    name="kontrast_rows_total",
    help="Output rows read by the exporter since it started.",
    type=MetricType.COUNTER,
    labels=(CLUSTER_LABEL, "output"),
    before_ready=True,
)
BAD_ROWS = Metric(
    name="kontrast_bad_rows_total",
    help="Lines of an output that the exporter could not read as a row, and left out.",
    type=MetricType.COUNTER,
    labels=("output",),
    before_ready=True,
)
GAPS = Metric(
    name="kontrast_gaps_total",
    help="How often rows of an output were dropped by retention, or damaged, before the exporter had read them.",
    type=MetricType.COUNTER,
    labels=("output",),
    before_ready=True,
)
RECORDS = cluster_counter("records", "Records of ZooKeeper observations applied.", "kind")
REFUSED = cluster_counter("refused", "Unreadable znodes. Their last good value stays.")
ZXID_EPOCH = of_cluster(
    "last_zxid_epoch", "ZooKeeper leader epoch of the newest applied change, the zxid's high 32 bits."
)
ZXID_SEQUENCE = of_cluster(
    "last_zxid_sequence", "Number of the newest applied change within its epoch, the zxid's low 32 bits."
)
