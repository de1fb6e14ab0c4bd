"""Metrics of Kontrast itself: processes, reading, the job, delivery, probe and watcher."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, SOURCE_LABEL, Metric, MetricType, cluster_counter, of_cluster

BUILD_INFO = Metric(
    name="kontrast_build_info",
    help="The running Kontrast; always 1.",
    type=MetricType.INFO,
    labels=("version", "python"),
    before_ready=True,
    of_pages=True,
)
SMALL_OBJECTS = Metric(
    name="kontrast_process_small_objects",
    help="Objects of up to 512 bytes that Python holds. They and the heap grow with a leak, while resident memory also"
    " grows with gaps between objects.",
    labels=(),
    before_ready=True,
    of_pages=True,
)
HEAP_BYTES = Metric(
    name="kontrast_process_heap_bytes",
    help="Size of the larger objects, which the process holds in the heap of glibc. Absent with another C library.",
    labels=(),
    unit="bytes",
    before_ready=True,
    of_pages=True,
)
HTTP_WRONG_LOGINS = Metric(
    name="kontrast_http_wrong_logins_total",
    help="Requests with a wrong login. Each is answered a second late.",
    type=MetricType.COUNTER,
    labels=(),
    before_ready=True,
    of_pages=True,
)
HTTP_DROPPED = Metric(
    name="kontrast_http_dropped_connections_total",
    help="Closed connections, the oldest beyond the limit (limit), or those with a late request or a slow reader"
    " (timeout).",
    type=MetricType.COUNTER,
    labels=("reason",),
    before_ready=True,
    of_pages=True,
)

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
    help="Watch mode of ZooKeeper, one persistent recursive watch, or one-shot watches on servers before 3.6.",
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


def _of_job(name: str, text: str, *labels: str, unit: str = "") -> Metric:
    return Metric(name=f"kontrast_job_{name}", help=text, labels=(SOURCE_LABEL, *labels), unit=unit, before_ready=True)


def _job_counter(name: str, text: str, *labels: str) -> Metric:
    full_name = f"kontrast_job_{name}_total"
    labels = (SOURCE_LABEL, *labels)
    return Metric(name=full_name, help=text, labels=labels, type=MetricType.COUNTER, before_ready=True)


JOB_STARTED = _of_job("start_timestamp_seconds", "When the job's process began.", unit="seconds")
JOB_LAST_BATCH = _of_job(
    "last_batch_timestamp_seconds",
    "When the job's newest known batch was done, or later while the job waits for records.",
    unit="seconds",
)
JOB_BATCHES = _job_counter("batches", "Batches done.")
JOB_RECORDS = _job_counter("records", "Records of ZooKeeper observations taken in.")
JOB_REFUSED = _job_counter(
    "refused", "Lines of the stream that were not records. They are rows of the output `refused`."
)
JOB_ROWS = _job_counter("rows", "Output rows written.")
JOB_PHASES = _job_counter("phase_seconds", "Time that batches took, by phase in Spark's names.", "phase")
JOB_STATE_BYTES = _of_job("state_bytes", "Memory that the state stores use.", unit="bytes")
JOB_STATE_VALUES = _of_job("state_values", "Values in the state stores, the headers and chunks of clusters.")
JOB_STATE_COMMIT = _of_job(
    "state_commit_seconds",
    "Time that the newest known batch's state took to commit, all tasks together.",
    unit="seconds",
)
JOB_LAG = Metric(
    name="kontrast_job_lag_seconds",
    help="From the observation of the oldest record of the cluster's newest known batch until its rows were written.",
    unit="seconds",
    before_ready=True,
)
JOB_PROCESSES = _of_job(
    "processes", "Processes of the role (the driver, Spark's Java process, Python workers).", "role"
)
JOB_OPEN_FDS = _of_job("process_open_fds", "Open files of the role's process that is nearest its limit.", "role")
JOB_MAX_FDS = _of_job("process_max_fds", "Most files that this process may open.", "role")
JOB_THREADS = _of_job("process_threads", "Threads of the role's processes.", "role")
JOB_RESIDENT = _of_job(
    "process_resident_memory_bytes",
    "Resident memory of the role's processes, with pages that they share.",
    "role",
    unit="bytes",
)


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
