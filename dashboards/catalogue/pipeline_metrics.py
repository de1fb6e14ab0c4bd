"""Metrics of Kontrast itself: processes, reading, the job, delivery, probe and watcher."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, SOURCE_LABEL, family_of, of_cluster, of_known_cluster

_of_pages = family_of("", before_ready=True, of_pages=True)
_of_serve = family_of("", before_ready=True)
_of_job = family_of("job_", SOURCE_LABEL, before_ready=True)
_of_delivery = family_of("", "alertmanager", before_ready=True, switched_on_by="serve.alertmanager")
_of_probe = family_of("broker_view_", CLUSTER_LABEL, "broker", before_ready=True, switched_on_by="serve.probe")
_of_watch = family_of("watch_", CLUSTER_LABEL, before_ready=True, of_watch=True)

BUILD_INFO = _of_pages("build_info", "The running Kontrast; always 1.", "version python")
SMALL_OBJECTS = _of_pages(
    "process_small_objects",
    "Objects of up to 512 bytes that Python holds. They and the heap grow with a leak, while resident memory also "
    "grows with gaps between objects.",
)
HEAP_BYTES = _of_pages(
    "process_heap_bytes",
    "Size of the larger objects, which the process holds in the heap of glibc. Absent with another C library.",
)
HTTP_WRONG_LOGINS = _of_pages("http_wrong_logins_total", "Requests with a wrong login. Each is answered a second late.")
HTTP_DROPPED = _of_pages(
    "http_dropped_connections_total",
    "Closed connections, the oldest beyond the limit (limit), or those with a late request or a slow reader (timeout).",
    "reason",
)

SOURCE_UP = _of_serve(
    "source_up", "1 while the exporter can read the outputs of the streaming job, 0 while it cannot.", "source"
)
READY = of_known_cluster(
    "ready",
    "1 after a complete read of the cluster was applied and read, else 0. Also 0 if a newer Kontrast wrote rows that "
    "this exporter cannot read, while no heartbeat arrives for stale_after_seconds, and while an alert hides the "
    "cluster. Then the metrics of the cluster are absent, so that no old value looks current.",
)
CLUSTER_STATE = of_known_cluster(
    "cluster_state",
    "1 for the present state of the cluster, as the page and `kontrast check` show it, else 0. The states are "
    "affected, unknown, degraded and well.",
    "state",
)
PAGE_INFO = _of_serve(
    "page_info",
    "Address of the live page in the label `url`, for links on boards; always 1. It is page_url of "
    "[serve.alertmanager], or else the host and port of `kontrast serve`.",
    "url",
)
HEARTBEAT = of_known_cluster(
    "heartbeat_timestamp_seconds",
    "Time of the newest heartbeat that came through the whole pipeline, by the clock of `kontrast watch`, or by the "
    "job's if that one is more than 5 s off.",
)
SESSION_CONNECTED = of_known_cluster(
    "zookeeper_session_connected",
    "1 while `kontrast watch` has a live ZooKeeper session, else 0. Without a session no new change is seen.",
)
WATCH_INFO = of_known_cluster(
    "watch_info",
    "Watch mode of ZooKeeper, one persistent recursive watch, or one-shot watches on servers before 3.6.",
    "mode",
)
END_TO_END_LAG = of_known_cluster(
    "end_to_end_lag_seconds",
    "From the observation of a change in ZooKeeper to the exporter's reading of a row that it caused. Rows that were "
    "there before the exporter started are not counted.",
    is_histogram=True,
)
ROWS = of_known_cluster("rows_total", "Output rows read by the exporter since it started.", "output")
BAD_ROWS = _of_serve(
    "bad_rows_total", "Lines of an output that the exporter could not read as a row, and left out.", "output"
)
GAPS = _of_serve(
    "gaps_total",
    "How often rows of an output were dropped by retention, or damaged, before the exporter had read them.",
    "output",
)
RECORDS = of_cluster("records_total", "Records of ZooKeeper observations applied.", "kind")
REFUSED = of_cluster("refused_total", "Unreadable znodes. Their last good value stays.")
ZXID_EPOCH = of_cluster(
    "last_zxid_epoch", "ZooKeeper leader epoch of the newest applied change, the zxid's high 32 bits."
)
ZXID_SEQUENCE = of_cluster(
    "last_zxid_sequence", "Number of the newest applied change within its epoch, the zxid's low 32 bits."
)

JOB_STARTED = _of_job("start_timestamp_seconds", "When the job's process began.")
JOB_LAST_BATCH = _of_job(
    "last_batch_timestamp_seconds",
    "When the job's newest known batch was done, or later while the job waits for records.",
)
JOB_BATCHES = _of_job("batches_total", "Batches done.")
JOB_RECORDS = _of_job("records_total", "Records of ZooKeeper observations taken in.")
JOB_REFUSED = _of_job(
    "refused_total", "Lines of the stream that were not records. They are rows of the output `refused`."
)
JOB_ROWS = _of_job("rows_total", "Output rows written.")
JOB_PHASES = _of_job("phase_seconds_total", "Time that batches took, by phase in Spark's names.", "phase")
JOB_STATE_BYTES = _of_job("state_bytes", "Memory that the state stores use.")
JOB_STATE_VALUES = _of_job("state_values", "Values in the state stores, the headers and chunks of clusters.")
JOB_STATE_COMMIT = _of_job(
    "state_commit_seconds", "Time that the newest known batch's state took to commit, all tasks together."
)
JOB_LAG = of_known_cluster(
    "job_lag_seconds",
    "From the observation of the oldest record of the cluster's newest known batch until its rows were written.",
)
JOB_PROCESSES = _of_job(
    "processes", "Processes of the role (the driver, Spark's Java process, Python workers).", "role"
)
JOB_OPEN_FDS = _of_job("process_open_fds", "Open files of the role's process that is nearest its limit.", "role")
JOB_MAX_FDS = _of_job("process_max_fds", "Most files that this process may open.", "role")
JOB_THREADS = _of_job("process_threads", "Threads of the role's processes.", "role")
JOB_RESIDENT = _of_job(
    "process_resident_memory_bytes", "Resident memory of the role's processes, with pages that they share.", "role"
)

ALERT_DELIVERIES = _of_delivery(
    "alert_deliveries_total",
    "Alerts sent to an Alertmanager, including repetitions, by result (accepted, refused, failed). The log has the "
    "reason of a refusal. Kontrast sends failed alerts again.",
    "result",
)
ALERTMANAGER_UP = _of_delivery("alertmanager_up", "1 while the Alertmanager takes alerts, 0 while it does not.")
ALERTMANAGER_LAST_DELIVERY = _of_delivery(
    "alertmanager_last_delivery_timestamp_seconds",
    "Time of the last accepted delivery to the Alertmanager. Without an active alert Kontrast sends no delivery.",
)

BROKER_VIEW_DIFFERING = _of_probe(
    "partitions",
    "Partitions whose metadata at the broker differs from ZooKeeper for longer than updates travel. `stale` ones have "
    "an older leader there, `missing` ones are unknown to it, and the topics of `unexpected` ones are gone or in "
    "deletion. Absent while the broker does not answer.",
    "difference",
)
BROKER_VIEW_SECONDS = _of_probe("probe_seconds", "Time of the broker's newest answer. Absent while it does not answer.")
BROKER_VIEW_PROBES = _of_probe(
    "probes_total", "Requests for metadata to registered brokers, by result (answered, failed).", "result"
)

WATCH_LEADS = _of_watch("leads", "1 while this watcher forwards the cluster, 0 while it waits for its turn.")
WATCH_GENERATION = _of_watch(
    "generation", "Generation of this watcher's records. Readers drop records of older generations."
)
WATCH_CONNECTED = _of_watch("session_connected", "1 while the session on the watched ensemble is connected, else 0.")
WATCH_MODE = _of_watch("mode_info", "Watch mode of ZooKeeper, persistent, or one-shot on servers before 3.6.", "mode")
WATCH_ZNODES = _of_watch("znodes", "Znodes whose state has been published.")
WATCH_FORBIDDEN = _of_watch("forbidden_znodes", "Znodes that an ACL keeps from being read.")
WATCH_ZNODES_READ = _of_watch("znodes_read_total", "Reads of znodes sent to ZooKeeper.")
WATCH_BYTES_READ = _of_watch("bytes_read_total", "Bytes that ZooKeeper has sent.")
WATCH_BUDGET_WAIT = _of_watch("read_budget_wait_seconds_total", "Time that reads waited for their budget.")
WATCH_JITTER_WAIT = _of_watch("resync_jitter_seconds_total", "Time spent in random pauses before complete reads.")
WATCH_EVENTS = _of_watch("events_total", "Watch events forwarded.")
WATCH_WINDOWS = _of_watch(
    "windows_total", "Windows of events that were read together. Events divided by windows is the coalescing."
)
WATCH_EVENTS_DROPPED = _of_watch(
    "events_dropped_total",
    "Dropped watch events, because the sink accepted no records for too long. A complete read follows.",
)
WATCH_COMPLETE_READS = _of_watch(
    "complete_reads_total",
    "Complete reads by reason. start, asked (by a reader that lacks the stream's beginning), suspended (connection "
    "lost), lost (session over), overflow, rolled-back (ZooKeeper lost changes).",
    "reason",
)
WATCH_DIFFERENCES = _of_watch(
    "differences_total", "Changes found by sweeps, and by complete reads after the first, not by watches."
)
WATCH_SINK_UP = _of_watch("sink_up", "1 while records are taken by the stream, 0 while they wait.")
WATCH_RECORDS = _of_watch("records_total", "Records acknowledged by the stream.")
WATCH_HEARTBEAT = _of_watch("heartbeat_timestamp_seconds", "Time of the newest heartbeat acknowledged by the stream.")
WATCH_MAINTENANCE = _of_watch("maintenance_windows", "Maintenance windows of the cluster that are in force.")
WATCH_BAD_MAINTENANCE = _of_watch(
    "bad_maintenance_files_total",
    "Changes of the file of maintenance windows that were unreadable. The earlier windows stay.",
)
WATCH_LAG = _of_watch(
    "lag_seconds", "From a watch event's arrival to the stream's acknowledgement of its records.", is_histogram=True
)
