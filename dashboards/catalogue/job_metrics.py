"""Metrics of the streaming job, from its row in the output `job`. Counters start at zero with the job's process."""

from __future__ import annotations

from dashboards.catalogue.metric import SOURCE_LABEL, Metric, MetricType


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
