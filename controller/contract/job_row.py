"""Row of the job that applies the records, written with each batch. It belongs to no cluster."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from controller.contract.records import Int64
from controller.contract.row import OUTPUT_VERSION, Count

# If the clocks of a forwarder and of the job are closer, they agree, because the newest record may be a second old and
# was on its way for as long as a slow disk or broker takes. The alert on lag begins far above this, at 30 s.
CLOCKS_AGREE_WITHIN_MS = 5_000


class ClusterProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of one cluster in a batch. Its lag runs from its first record's observation until its rows are written.

    `observed_ms` is the first record's, by the forwarder's wall clock. A step of a wall clock does not change the lag.
    `clock_behind_ms` is how far the forwarder's wall clock is behind the job's (below 0 if ahead), 0 if they agree.
    """

    records: Int64
    observed_ms: Int64
    lag_ms: Int64
    clock_behind_ms: Int64 = 0


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of the job's processes of one role, which is the driver, Spark's Java process, or its Python workers.

    Open files are those of the process nearest its limit. Threads and memory are the sums of all processes.
    """

    processes: Count
    open_files: Count
    open_files_limit: Count
    threads: Count
    resident_bytes: Count


class OutputEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End of an output's journal. Each new journal has another `identity`, and its offset only grows."""

    identity: str
    offset: Count


class JobRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """Progress of the job itself, as of its last batch but one. It belongs to no cluster and no record.

    A job without a record to read repeats its last row every ten seconds, with a newer time and without clusters.

    Totals count from the start of the job's process, `began_ms`.
    """

    output: ClassVar[str] = "job"

    v: Int64 = msgspec.field(default_factory=lambda: OUTPUT_VERSION)
    time_ms: Int64  # end of the batch, or a later moment without a record to read, by the job's clock
    began_ms: Int64
    batch: Int64
    batches: Count  # since `began_ms`
    records: Count  # since `began_ms`
    refused: Count  # lines that were no records, since `began_ms`
    rows: Count  # since `began_ms`
    phase_ms: dict[str, Int64]  # of the batch, by Spark's names
    total_phase_ms: dict[str, Count]  # since `began_ms`
    state_bytes: Int64  # in the memory of the state stores
    state_values: Int64
    state_commit_ms: Int64  # of the batch, all tasks together
    clusters: dict[str, ClusterProgress] = {}  # clusters with records in the batch
    processes: dict[str, ProcessUse] = {}  # by role, read every ten seconds
    ends: dict[str, OutputEnd] = {}  # of the outputs, with the rows of the batch that wrote this row
    version: str = ""  # of the Kontrast that runs the job, empty in a source tree that is not installed

    def subject_key(self) -> str:
        """Return the key of the job's row, under which compaction keeps one row."""
        return "job"
