"""Partition states of a complete read, many in one transaction, which are stored without conclusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.contract.decoding import UNDECODABLE
from controller.contract.records import Record, RecordKind
from controller.contract.znode_table import Place, locate, partition_id
from controller.contract.znodes import StateZnode, ZnodeError, decode, decoder_of
from controller.inference.partition_state import loaded
from controller.model.context import LOADING, Context
from controller.model.leadership import state_in
from controller.model.mutable_state import MutableState
from controller.rules.timing import CLOCK_STEP_MS
from controller.transaction.conclusion import Conclusion
from controller.transaction.transaction import Transaction
from controller.watch import generations

_PARTITION_STATE: Final = Place.PARTITION_STATE

# If the clocks of two records each differ by less than this from the first record's, no clock was set between them.
_CLOCKS_APART_MS: Final = CLOCK_STEP_MS // 2


def load(context: Context, records: Sequence[Record]) -> Context | None:
    """Return the context with the states in these records, None if a record must be applied by itself."""
    header, newest = context.header, context.header.position
    if header.phase is not LOADING or header.events or header.shutdowns.under_way:
        return None
    if not _are_one_run(records, newest.generation, newest.seq + 1):
        return None
    tx = Transaction(context, records[0])
    if tx.state.clock_set_by_ms or not _store(tx.state, records):
        return None
    tx.state.count(tx.state.happened.records, RecordKind.NODE.value, len(records))
    tx.state.advance_to(records[-1])
    generations.forget_in_time(tx.header, newest)
    tx.header.zxid = max(tx.header.zxid, max(record.zxid for record in records))
    return Conclusion(tx).finish().context


def _are_one_run(records: Sequence[Record], generation: int, first_seq: int) -> bool:
    """Return whether the records are complete and their clocks run on, so that the last record's time is the time."""
    first = before = records[0]
    is_steady = first.steady_ms >= 0
    for seq, record in enumerate(records, start=first_seq):
        if record.seq != seq or record.generation != generation or record.author:
            return False
        if is_steady:
            set_by_ms = record.observed_ms - first.observed_ms - record.steady_ms + first.steady_ms
            if record.steady_ms < before.steady_ms or abs(set_by_ms) > _CLOCKS_APART_MS:
                return False
        elif record.observed_ms < before.observed_ms or record.steady_ms >= 0:
            return False
        before = record
    return True


def _store(state: MutableState, records: Sequence[Record]) -> bool:
    """Store the states. Return whether each is of a known partition, and could be read."""
    live, strict, beginning = state.live, decoder_of(StateZnode), ""
    for record in records:
        path = record.path
        if not (beginning and path.startswith(beginning)):  # a read names a topic's states one after the other
            where = locate(path)
            if where.place is not _PARTITION_STATE or state.topics.get(where.name) is None:
                return False
            beginning = path[: path.rindex("/", 0, -len("/state")) + 1]
            partitions = state.topics.own(where.name).partitions
        number = partition_id(path[len(beginning) : -len("/state")])
        partition = partitions.get(number)
        if partition is None:
            return False
        try:
            znode = strict.decode(record.data or "")  # without the frames of `decode`, a tenth of the time of a state
        except UNDECODABLE:
            try:
                znode = decode(record.content, StateZnode)
            except ZnodeError:
                return False
        written = state_in(znode, record.version)
        if partition.zk_state != written:
            partitions[number] = loaded(partition, written, live)
    return True
