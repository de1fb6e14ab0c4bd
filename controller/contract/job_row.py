"""The row of the job that applies the records, one a batch; it is of no cluster."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from controller.contract.records import Int64
from controller.contract.row import OUTPUT_VERSION, Count

# Clocks of a forwarder and of the job that are closer agree: the newest record may be a heartbeat's second old, and as
# long on its way as a slow disk or broker takes. It is far below what is called late: 30 s.
CLOCKS_AGREE_WITHIN_MS = 5_000


class ClusterProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of one cluster in a batch; lag from the observation of its first record until its rows were written.

    `observed_ms` is the first record's, by the forwarder's wall clock. A step of a wall clock does not change the lag.

    Of a past that `kontrast replay` publishes the lag is 0: its records are as old as the past is. `clock_behind_ms` is
    how far the forwarder's wall clock is behind the job's (below 0: ahead), 0 if they agree or for such a past.
    """

    records: Int64
    observed_ms: Int64
    lag_ms: Int64
    clock_behind_ms: Int64 = 0


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of the job's processes of one role: the driver, Spark's Java process, or its Python workers.

    Files are of the process that is nearest its limit. Threads and memory are of all processes together.
    """

    processes: Count
    open_files: Count
    open_files_limit: Count
    threads: Count
    resident_bytes: Count


class OutputEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an output's journal. Each new journal has another `identity`, and the offset only grows."""

    identity: str
    offset: Count


class JobRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """Progress of the job itself, as of its last batch but one; it belongs to no cluster and no record.

    A job without a record to read repeats its last row each ten seconds, with a newer time and without clusters.

    Totals count from the start of the job's process, `began_ms`.
    """

    output: ClassVar[str] = "job"

    v: Int64 = msgspec.field(default_factory=lambda: OUTPUT_VERSION)
    time_ms: Int64  # end of the batch, or a later moment without a record to read; by the job's clock
    began_ms: Int64
    batch: Int64
    batches: Count  # in all
    records: Count  # in all
    refused: Count  # lines that were no records, in all
    rows: Count  # in all
    phase_ms: dict[str, Int64]  # of the batch, by Spark's names
    total_phase_ms: dict[str, Count]  # in all
    state_bytes: Int64  # in the memory of the state stores
    state_values: Int64
    state_commit_ms: Int64  # of the batch, all tasks together
    clusters: dict[str, ClusterProgress] = {}  # clusters with records in the batch
    processes: dict[str, ProcessUse] = {}  # by role, read each ten seconds
    ends: dict[str, OutputEnd] = {}  # of the outputs, with the rows of the batch that wrote this row
    version: str = ""  # of the Kontrast that runs the job, empty in a source tree that is not installed

    def subject_key(self) -> str:
        """Key with one row a job."""
        return "job"
