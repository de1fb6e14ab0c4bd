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
    """What a batch did for one cluster; lag from the observation of its oldest record until its rows were out.

    `clock_behind_ms` is how far the forwarder's wall clock is behind the job's (less than 0: ahead), 0 if they agree.
    """

    records: Int64
    observed_ms: Int64
    lag_ms: Int64
    clock_behind_ms: Int64 = 0


class JobRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """How the job itself does, as of its last batch but one; of no cluster, and no effect of a record.

    Totals count from the start of the job's process, `began_ms`.
    """

    output: ClassVar[str] = "job"

    v: Int64 = msgspec.field(default_factory=lambda: OUTPUT_VERSION)
    time_ms: Int64  # when the batch was done, by the job's clock
    began_ms: Int64
    batch: Int64
    batches: Count  # in all
    records: Count  # in all
    refused: Count  # lines that were no record, in all
    rows: Count  # in all
    phase_ms: dict[str, Int64]  # of the batch, by Spark's names
    total_phase_ms: dict[str, Count]  # in all
    state_bytes: Int64  # in the memory of the state stores
    state_values: Int64
    state_commit_ms: Int64  # of the batch, all tasks together
    clusters: dict[str, ClusterProgress] = {}  # those that the batch had records of
    version: str = ""  # the Kontrast that runs the job, empty in a source tree that is not installed

    def subject_key(self) -> str:
        """One row a job."""
        return "job"
