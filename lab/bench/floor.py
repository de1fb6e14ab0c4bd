"""A job that passes records through, which shows the least time that Spark, the source and the sink take.

Sources, state store, sinks and checkpoint are those of `kontrast stream`. Only the core is left out: a heartbeat
becomes one row of gauges, and every other record one row of metadata.
"""

from __future__ import annotations

import sys

from msgspec.structs import replace

from controller.contract.ids import BrokerId, LeaderEpoch, PartitionId
from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.view.gauges import gauges_row
from controller.view.types import FOLLOWING, Context
from streaming.published import Published
from streaming.replica import ReplicaProcessor, StoredHeader

# Spark's Python processes import the processor, so it needs a module other than `__main__`.
PROGRAM = (
    sys.executable,
    "-c",
    "import streaming.job; from lab.bench.floor import PassingProcessor; "
    "streaming.job.ReplicaProcessor = PassingProcessor; from cli.start import main; main()",
    "stream",
)
_BROKER = BrokerId(1)


class PassingProcessor(ReplicaProcessor):
    """Return one row a record, and store a header, so that the state store has something to commit."""

    def _apply(self, cluster: str, records: list[Record], published: Published) -> Context:
        stored, last = self._stored_header(), records[-1].position
        unknown = self._unknown(cluster)
        # Pretend that a complete read was applied, because the job asks for one otherwise.
        unknown = replace(unknown, header=replace(unknown.header, phase=FOLLOWING))
        published.add(published.encoded(_passed(record, unknown) for record in records))
        applied = len(records) + (0 if stored is None else stored.applied)
        self._header_state.update(tuple(StoredHeader(last.generation, last.seq, applied, body=b"")))
        return unknown


def _passed(record: Record, unknown: Context) -> Row:
    stamp = (record.cluster, record.generation, record.seq, 0, record.zxid, record.observed_ms)
    if record.kind is RecordKind.HEARTBEAT:
        return replace(gauges_row(unknown.header, stamp), ready=True)
    return PartitionRow(
        *stamp,
        "passed",
        PartitionId(0),
        "OnlinePartition",
        _BROKER,
        LeaderEpoch(0),
        isr=(_BROKER,),
        replicas=(_BROKER,),
    )
