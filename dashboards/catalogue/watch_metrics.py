"""Metrics of `kontrast watch` about its own work."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, MetricType


def _of_watch(
    name: str,
    text: str,
    *labels: str,
    kind: MetricType = MetricType.GAUGE,
    unit: str = "",
) -> Metric:
    return Metric(
        name=f"kontrast_watch_{name}",
        help=text,
        labels=(CLUSTER_LABEL, *labels),
        type=kind,
        unit=unit,
        before_ready=True,
        of_watch=True,
    )


WATCH_LEADS = _of_watch("leads", "1 while this watcher forwards the cluster, 0 while it waits for its turn.")
WATCH_GENERATION = _of_watch(
    "generation", "Generation of this watcher's records. Readers drop records of older generations."
)
WATCH_CONNECTED = _of_watch("session_connected", "1 while the session on the watched ensemble is connected, else 0.")
WATCH_MODE = _of_watch(
    "mode_info",
    "Watch mode of ZooKeeper, persistent, or one-shot on servers before 3.6.",
    "mode",
    kind=MetricType.INFO,
)
WATCH_ZNODES = _of_watch("znodes", "Znodes whose state has been published.")
WATCH_FORBIDDEN = _of_watch("forbidden_znodes", "Znodes that an ACL keeps from being read.")
WATCH_ZNODES_READ = _of_watch("znodes_read_total", "Reads of znodes sent to ZooKeeper.", kind=MetricType.COUNTER)
WATCH_BYTES_READ = _of_watch("bytes_read_total", "Bytes that ZooKeeper has sent.", kind=MetricType.COUNTER)
WATCH_BUDGET_WAIT = _of_watch(
    "read_budget_wait_seconds_total",
    "Time that reads waited for their budget.",
    kind=MetricType.COUNTER,
    unit="seconds",
)
WATCH_JITTER_WAIT = _of_watch(
    "resync_jitter_seconds_total",
    "Time spent in random pauses before complete reads.",
    kind=MetricType.COUNTER,
    unit="seconds",
)
WATCH_EVENTS = _of_watch("events_total", "Watch events forwarded.", kind=MetricType.COUNTER)
WATCH_WINDOWS = _of_watch(
    "windows_total",
    "Windows of events that were read together. Events divided by windows is the coalescing.",
    kind=MetricType.COUNTER,
)
WATCH_EVENTS_DROPPED = _of_watch(
    "events_dropped_total",
    "Dropped watch events, because the sink accepted no records for too long. A complete read follows.",
    kind=MetricType.COUNTER,
)
WATCH_COMPLETE_READS = _of_watch(
    "complete_reads_total",
    "Complete reads by reason. start, asked (by a reader that lacks the stream's beginning), suspended "
    "(connection lost), lost (session over), overflow, rolled-back (ZooKeeper lost changes).",
    "reason",
    kind=MetricType.COUNTER,
)
WATCH_DIFFERENCES = _of_watch(
    "differences_total",
    "Changes found by sweeps, and by complete reads after the first, not by watches.",
    kind=MetricType.COUNTER,
)
WATCH_SINK_UP = _of_watch("sink_up", "1 while records are taken by the stream, 0 while they wait.")
WATCH_RECORDS = _of_watch("records_total", "Records acknowledged by the stream.", kind=MetricType.COUNTER)
WATCH_HEARTBEAT = _of_watch(
    "heartbeat_timestamp_seconds", "Time of the newest heartbeat acknowledged by the stream.", unit="seconds"
)
WATCH_MAINTENANCE = _of_watch("maintenance_windows", "Maintenance windows of the cluster that are in force.")
WATCH_BAD_MAINTENANCE = _of_watch(
    "bad_maintenance_files_total",
    "Changes of the file of maintenance windows that were unreadable. The earlier windows stay.",
    kind=MetricType.COUNTER,
)
WATCH_LAG = _of_watch(
    "lag_seconds",
    "From a watch event's arrival to the stream's acknowledgement of its records.",
    kind=MetricType.HISTOGRAM,
    unit="seconds",
)
