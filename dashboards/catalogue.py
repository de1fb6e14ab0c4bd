"""Every metric that Kontrast exports: the only place where one is named.

Here belong names, types, units, labels and help texts; what is called as Kafka's JMX exporter calls it is in
`jmx_names`. Where a value comes from is the collectors' business, `docs/metrics.md` that of `metrics_page`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLUSTER_LABEL = "kafka_cluster"

METRICS_PAGE = "/metrics"
PARTITIONS_PAGE = "/metrics/partitions"
JMX_PAGE = "/metrics/jmx"


class MetricType(Enum):
    """A Prometheus metric type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric as it is written on `/metrics`; `labels` come after the cluster label where there is one.

    What is not `before_ready` is a statement about the watched cluster: it is absent, never zero, until a complete
    snapshot of that cluster has come through.
    """

    name: str
    help: str
    type: MetricType = MetricType.GAUGE
    unit: str = ""
    labels: tuple[str, ...] = (CLUSTER_LABEL,)
    before_ready: bool = False
    of_watch: bool = False  # exported by `kontrast watch` about itself, else by `kontrast serve`
    of_pages: bool = False  # exported by both: about the process and its pages
    switched_on_by: str = ""  # the table of the configuration without which it is not exported
    page: str = METRICS_PAGE


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


def _of_cluster(name: str, text: str, *labels: str, unit: str = "") -> Metric:
    return Metric(name=f"kontrast_{name}", help=text, labels=(CLUSTER_LABEL, *labels), unit=unit)


def _counter(name: str, text: str, *labels: str) -> Metric:
    full_name = f"kontrast_{name}_total"
    return Metric(name=full_name, help=text, labels=(CLUSTER_LABEL, *labels), type=MetricType.COUNTER)


def _of_partition(name: str, text: str) -> Metric:
    labels = (CLUSTER_LABEL, "topic", "partition")
    return Metric(name=f"kontrast_partition_{name}", help=text, labels=labels, page=PARTITIONS_PAGE)


def _of_job(name: str, text: str, *labels: str, unit: str = "") -> Metric:
    return Metric(name=f"kontrast_job_{name}", help=text, labels=labels, unit=unit, before_ready=True)


def _job_counter(name: str, text: str, *labels: str) -> Metric:
    full_name = f"kontrast_job_{name}_total"
    return Metric(name=full_name, help=text, labels=labels, type=MetricType.COUNTER, before_ready=True)


# What Kontrast knows of itself.
BUILD_INFO = Metric(
    name="kontrast_build_info",
    help="The running Kontrast; always 1.",
    type=MetricType.INFO,
    labels=("version", "python"),
    before_ready=True,
    of_pages=True,
)
SOURCE_UP = Metric(
    name="kontrast_source_up",
    help="1 while the exporter can read the outputs of the streaming job, 0 while it cannot.",
    labels=(),
    before_ready=True,
)
READY = Metric(
    name="kontrast_ready",
    help="1 once a complete snapshot of the cluster has been applied and read, else 0; 0 too where a newer Kontrast "
    "wrote what this exporter cannot read. While it is 0 nothing is said about the cluster.",
    before_ready=True,
)
HEARTBEAT = Metric(
    name="kontrast_heartbeat_timestamp_seconds",
    help="Time of the newest heartbeat that came through the whole pipeline, by the clock of `kontrast watch`; by the "
    "job's where that one is more than 5 s off.",
    unit="seconds",
    before_ready=True,
)
SESSION_CONNECTED = Metric(
    name="kontrast_zookeeper_session_connected",
    help="1 while `kontrast watch` has a live ZooKeeper session, else 0: then nothing new is seen of the cluster.",
    before_ready=True,
)
WATCH_INFO = Metric(
    name="kontrast_watch_info",
    help="How ZooKeeper is watched: one persistent recursive watch, or one-shot watches on servers before 3.6.",
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

# The streaming job, as it says itself; its counters start with its process.
JOB_STARTED = _of_job("start_timestamp_seconds", "When the job's process began.", unit="seconds")
JOB_LAST_BATCH = _of_job("last_batch_timestamp_seconds", "When the job's newest known batch was done.", unit="seconds")
JOB_BATCHES = _job_counter("batches", "Batches done.")
JOB_RECORDS = _job_counter("records", "Records of ZooKeeper observations taken in.")
JOB_REFUSED = _job_counter("refused", "Lines of the stream that were no record; they are rows of the output `refused`.")
JOB_ROWS = _job_counter("rows", "Output rows written.")
JOB_PHASES = _job_counter("phase_seconds", "Time that batches took, by phase in Spark's names.", "phase")
JOB_STATE_BYTES = _of_job("state_bytes", "Memory that the state stores use.", unit="bytes")
JOB_STATE_VALUES = _of_job("state_values", "Values that the state stores hold: headers and chunks of clusters.")
JOB_STATE_COMMIT = _of_job(
    "state_commit_seconds",
    "Time that the newest known batch's state took to commit, all tasks together.",
    unit="seconds",
)
JOB_LAG = _of_job(
    "lag_seconds",
    "From the observation of the oldest record of the cluster's newest known batch until its rows were written.",
    CLUSTER_LABEL,
    unit="seconds",
)

# The controller.
CONTROLLER_INFO = Metric(
    name="kontrast_controller_info",
    help="The broker that is the active controller; absent while no broker is.",
    type=MetricType.INFO,
    labels=(CLUSTER_LABEL, "broker"),
)
CONTROLLER_ACTIVE = _of_cluster("controller_active", "1 while a broker is the active controller, else 0.")
CONTROLLER_EPOCH = _of_cluster("controller_epoch", "Controller epoch as ZooKeeper has it.")
CONTROLLER_SINCE = _of_cluster(
    "controller_since_timestamp_seconds",
    "Since when this broker, or none, is the active controller.",
    unit="seconds",
)
CONTROLLER_CHANGES = _counter("controller_changes", "Changes of the active controller since the job's state began.")
PENDING_WRITES = _of_cluster("pending_writes", "Writes to ZooKeeper that the controller must still do.")

# Brokers, topics, partitions, replicas.
BROKERS = _of_cluster("brokers", "Brokers that are registered in ZooKeeper.")
BROKER_REGISTERED = _of_cluster(
    "broker_registered",
    "1 while a known broker is registered, else 0; one that hosts nothing is known for a day after it left.",
    "broker",
)
BROKER_LEADERS = _of_cluster("broker_leaders", "Partitions that the broker leads.", "broker")
BROKER_REPLICAS = _of_cluster("broker_replicas", "Replicas that are assigned to the broker.", "broker")
TOPICS = _of_cluster("topics", "Topics, as Kafka's GlobalTopicCount.")
PARTITIONS = _of_cluster("partitions", "Partitions by the controller's partition state.", "state")
REPLICAS = _of_cluster("replicas", "Replicas by the controller's replica state.", "state")
OFFLINE = _of_cluster("partitions_offline", "Offline partitions, as Kafka's OfflinePartitionsCount.")
LEADERLESS = _of_cluster(
    "partitions_leaderless", "Partitions without a live leader right now, whether an election is due or not."
)
UNDER_REPLICATED = _of_cluster("partitions_under_replicated", "Partitions whose ISR lacks an assigned replica.")
UNDER_MIN_ISR = _of_cluster("partitions_under_min_isr", "Partitions with an ISR below min.insync.replicas.")
AT_MIN_ISR = _of_cluster("partitions_at_min_isr", "Partitions with an ISR of exactly min.insync.replicas.")
PREFERRED_IMBALANCE = _of_cluster(
    "partitions_preferred_imbalance",
    "Partitions that their preferred replica does not lead, as Kafka's PreferredReplicaImbalanceCount.",
)
TOPICS_TO_DELETE = _of_cluster("topics_to_delete", "Topics whose deletion is queued.")
REPLICAS_TO_DELETE = _of_cluster("replicas_to_delete", "Replicas whose deletion is queued.")
TOPICS_INELIGIBLE = _of_cluster("topics_ineligible_to_delete", "Topics whose deletion cannot go on for now.")
REPLICAS_INELIGIBLE = _of_cluster("replicas_ineligible_to_delete", "Replicas whose deletion cannot go on for now.")
OFFLINE_SINCE = _of_cluster(
    "partition_offline_since_timestamp_seconds",
    "Since when a partition that cannot be used is so, by name and with the reason; only such partitions are named.",
    "topic",
    "partition",
    "reason",
    unit="seconds",
)
BROUGHT_BACK_BY = _of_cluster(
    "partition_brought_back_by",
    "1 for each named partition that cannot be used; the label `brokers` lists those of which any would bring it back.",
    "topic",
    "partition",
    "brokers",
)
DETAIL_DROPPED = _of_cluster(
    "partition_detail_dropped", "Partitions that cannot be used but are not named, for there are too many."
)
UNDER_MIN_ISR_SINCE = _of_cluster(
    "partition_under_min_isr_since_timestamp_seconds",
    "Since when a partition that is led has refused writes with acks=all, by name; only such partitions are named.",
    "topic",
    "partition",
    unit="seconds",
)
IN_SYNC_LACKING = _of_cluster(
    "partition_in_sync_lacking",
    "How many more replicas must be in sync before a named partition takes acks=all again; the label `brokers` lists "
    "those of which so many would do.",
    "topic",
    "partition",
    "brokers",
)
UNDER_MIN_ISR_DROPPED = _of_cluster(
    "partition_under_min_isr_detail_dropped",
    "Partitions that are led and refuse acks=all but are not named, for there are too many.",
)

# What happened.
RECORDS = _counter("records", "Records of ZooKeeper observations applied since the job's state began.", "kind")
ELECTIONS = _counter("leader_elections", "Confirmed leader elections since the job's state began.", "strategy")
ISR_CHANGES = _counter("isr_changes", "ISR changes since the job's state began.", "operation")
REFUSED = _counter("refused", "Znodes that could not be read since the job's state began; the last good value stays.")
DIVERGENCES = _counter(
    "divergences", "Where the real controller did not do what it must, since the job's state began.", "kind"
)
OPEN_ALERTS = _of_cluster("open_alerts", "Alerts of Kontrast that are not resolved.", "severity")
ZXID_EPOCH = _of_cluster("last_zxid_epoch", "ZooKeeper leader epoch of the newest change applied: zxid's high 32 bits.")
ZXID_SEQUENCE = _of_cluster(
    "last_zxid_sequence", "Number of the newest change applied within its epoch: zxid's low 32 bits."
)

# What `kontrast watch` knows of its own work.
WATCH_LEADS = _of_watch("leads", "1 while this watcher forwards the cluster, 0 while it waits for its turn.")
WATCH_GENERATION = _of_watch("generation", "Generation of this watcher's records; readers drop those of older ones.")
WATCH_CONNECTED = _of_watch("session_connected", "1 while the session on the watched ensemble is connected, else 0.")
WATCH_MODE = _of_watch(
    "mode_info",
    "How ZooKeeper is watched: persistent, or one-shot on servers before 3.6.",
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
    "Windows in which events were read together; events by windows is the coalescing.",
    kind=MetricType.COUNTER,
)
WATCH_EVENTS_DROPPED = _of_watch(
    "events_dropped_total",
    "Watch events dropped because the sink took nothing for too long; a complete read follows.",
    kind=MetricType.COUNTER,
)
WATCH_COMPLETE_READS = _of_watch(
    "complete_reads_total",
    "Complete reads by their reason: start, asked (by a reader of the stream that lacks its beginning), "
    "suspended (connection lost), lost (session over), overflow.",
    "reason",
    kind=MetricType.COUNTER,
)
WATCH_DIFFERENCES = _of_watch(
    "differences_total", "Changes found by complete reads after the first, not by watches.", kind=MetricType.COUNTER
)
WATCH_SINK_UP = _of_watch("sink_up", "1 while records are taken by the stream, 0 while they wait.")
WATCH_RECORDS = _of_watch("records_total", "Records acknowledged by the stream.", kind=MetricType.COUNTER)
WATCH_HEARTBEAT = _of_watch(
    "heartbeat_timestamp_seconds", "Time of the newest heartbeat acknowledged by the stream.", unit="seconds"
)
WATCH_MAINTENANCE = _of_watch("maintenance_windows", "Maintenance windows of the cluster that are in force.")
WATCH_BAD_MAINTENANCE = _of_watch(
    "bad_maintenance_files_total",
    "How often the file of maintenance windows had changed and could not be read; what was read before it stays.",
    kind=MetricType.COUNTER,
)
WATCH_LAG = _of_watch(
    "lag_seconds",
    "From a watch event's arrival to the stream's acknowledgement of what it led to.",
    kind=MetricType.HISTOGRAM,
    unit="seconds",
)

# Alerts by name, and what a broker's own partitions lack.
ALERTS_OPEN = _of_cluster(
    "alerts_open",
    "Alerts of Kontrast that are not resolved, by kind; `state` is open, or unknown while nothing can be said of them.",
    "alert",
    "severity",
    "state",
)
ALERT_SINCE = Metric(
    name="kontrast_alert_since_timestamp_seconds",
    help="Since when what an alert that stands tells of is so, with the labels of its message to Alertmanager; it "
    "stays while nothing can be said of its cluster. Those to page are named first, then the longest open ones.",
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
        "brokers",
    ),
    before_ready=True,
)
ALERT_DETAIL_DROPPED = Metric(
    name="kontrast_alert_detail_dropped",
    help="Alerts that stand and are not named, for there are too many.",
    before_ready=True,
)
MAINTENANCE_UNTIL = _of_cluster(
    "maintenance_until_timestamp_seconds",
    "When the maintenance in force of a broker ends; `all` is one of the whole cluster. Until then what it explains is "
    "told with severity info.",
    "broker",
    unit="seconds",
)
CONTROLLER_REACTION = Metric(
    name="kontrast_controller_reaction_seconds",
    help="From an event's cause in ZooKeeper to the controller's first and last write after it, by kind of event.",
    type=MetricType.HISTOGRAM,
    labels=(CLUSTER_LABEL, "event", "write"),
    unit="seconds",
)
BROKER_UNDER_REPLICATED = _of_cluster(
    "broker_partitions_under_replicated", "Under-replicated partitions that the broker leads.", "broker"
)
BROKER_UNDER_MIN_ISR = _of_cluster(
    "broker_partitions_under_min_isr", "Partitions below min.insync.replicas that the broker leads.", "broker"
)
BROKER_AT_MIN_ISR = _of_cluster(
    "broker_partitions_at_min_isr", "Partitions at exactly min.insync.replicas that the broker leads.", "broker"
)
BROKER_SOLE_IN_SYNC = _of_cluster(
    "broker_sole_in_sync_partitions",
    "Partitions that only this broker has in sync: its loss would take them offline, or has.",
    "broker",
)
REASSIGNING = _of_cluster("partitions_reassigning", "Partitions that are being reassigned.")
BROKER_DETAIL_DROPPED = _of_cluster(
    "broker_detail_dropped", "Brokers, known or with replicas, that are not named, for there are too many."
)

# The page that names every partition.
PAGE_READY = Metric(
    name="kontrast_page_ready",
    help="1 while the page tells of the cluster, 0 while nothing can be said of it yet and the page is silent.",
    labels=(CLUSTER_LABEL, "page"),
    before_ready=True,
    page=f"{PARTITIONS_PAGE}, {JMX_PAGE}",
)
PAGE_RENDER = Metric(
    name="kontrast_partitions_page_render_seconds",
    help=f"Time that the newest rendering of {PARTITIONS_PAGE} took; only what changed is rendered anew.",
    unit="seconds",
    labels=(),
    before_ready=True,
)
PAGE_BYTES = Metric(
    name="kontrast_partitions_page_size_bytes",
    help=f"Size of {PARTITIONS_PAGE}, as it is (identity) and as it is kept and sent (gzip).",
    unit="bytes",
    labels=("encoding",),
    before_ready=True,
)
PARTITION_LEADER = _of_partition("leader", "The broker that leads the partition, as ZooKeeper has it; -1: none.")
PARTITION_LEADER_EPOCH = _of_partition("leader_epoch", "The partition's leader epoch as ZooKeeper has it.")
PARTITION_REPLICAS = _of_partition("replicas", "Replicas that are assigned to the partition.")
PARTITION_IN_SYNC = _of_partition("in_sync_replicas", "Replicas of the partition that are in the ISR.")
PARTITION_STATE = _of_partition(
    "state", "The controller's state of the partition, by Kafka's numbers: 0 new, 1 online, 2 offline."
)
PARTITION_WRITABLE_ACKS_ALL = _of_partition(
    "writable_acks_all",
    "1 while a write with acks=all is taken, as far as ZooKeeper shows, else 0; NaN: the row is of an older Kontrast, "
    "which did not say.",
)

# What `kontrast serve` does of its own accord, where that is switched on.
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
ALERTMANAGER_TOLD = _of_delivery(
    "alertmanager_last_delivery_timestamp_seconds",
    "When the Alertmanager last took alerts; while none is open it is told of none.",
    unit="seconds",
)

BROKER_VIEW_DIFFERING = _of_probe(
    "partitions",
    "Partitions of which the broker tells clients something else than ZooKeeper says, for longer than news travels: "
    "stale (an older leader), missing (unknown to it), unexpected (its topic is gone or being deleted). Absent while "
    "the broker does not answer.",
    "difference",
)
BROKER_VIEW_SECONDS = _of_probe(
    "probe_seconds", "Time that the broker's newest answer took; absent while it does not answer.", unit="seconds"
)
BROKER_VIEW_PROBES = _of_probe(
    "probes_total",
    "How often a registered broker was asked for its metadata, by result: answered or failed.",
    "result",
    kind=MetricType.COUNTER,
)

# What every server of pages counts, that of `kontrast watch` too.
HTTP_WRONG_LOGINS = Metric(
    name="kontrast_http_wrong_logins_total",
    help="Requests with a login that is not the one that was set; each is answered a second late.",
    type=MetricType.COUNTER,
    labels=(),
    before_ready=True,
    of_pages=True,
)
HTTP_DROPPED = Metric(
    name="kontrast_http_dropped_connections_total",
    help="Connections that were ended: the oldest of too many (limit), or one whose request did not come or whose "
    "answer was not taken in time (timeout).",
    type=MetricType.COUNTER,
    labels=("reason",),
    before_ready=True,
    of_pages=True,
)

CATALOGUE: tuple[Metric, ...] = tuple(value for value in tuple(globals().values()) if isinstance(value, Metric))
