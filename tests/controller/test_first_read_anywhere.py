"""A first complete read anywhere in two deletions and a failover, with every later write explained.

A soak once counted 23 writes of the controller as unexplained after such a read.
"""

from __future__ import annotations

import msgspec
import pytest

from controller.contract.records import Record, RecordKind
from controller.restore.stored_context import new_context
from controller.step import steps
from controller.view.gauges import gauges_row
from tests.controller.znode_history import ZnodeHistory

TOPICS = {
    "a": {
        number: ([1 + number % 3, 1 + (number + 1) % 3], 1 + number % 3, 0, [1 + number % 3, 1 + (number + 1) % 3])
        for number in range(4)
    },
    "b": {0: ([2, 3], 2, 0, [2, 3]), 1: ([3, 1], 3, 0, [3, 1])},
    "kept": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])},
}


def two_deletions_and_a_failover(*, b_ends_before: bool) -> list[Record]:
    """Return the records of a cluster whose controller dies beside or behind its second deletion."""
    history = ZnodeHistory().start(1, 2, 3, topics=TOPICS)
    history.delete_topic("a")
    history.the_controller_writes_its_due("a")
    history.topic_vanishes("a", 0, 1, 2, 3)
    history.delete_topic("b")
    history.the_controller_writes_its_due("b")
    if b_ends_before:
        history.topic_vanishes("b", 0, 1)
    history.controller_dies(1)
    history.controller(3, 2)
    history.the_controller_writes_its_due()
    if not b_ends_before:
        history.broker(1)
        history.the_controller_writes_its_due()
        history.topic_vanishes("b", 0, 1)
    history.heartbeat(60_000)
    return history.records


def from_a_first_read(records: list[Record], at: int) -> list[Record]:
    """Return a complete read of the znodes after the first `at` records, and the records after them."""
    znodes: dict[str, Record] = {}
    for record in records[:at]:
        if record.kind is RecordKind.NODE:
            znodes[record.path] = record
        elif record.kind is RecordKind.DELETED:
            znodes.pop(record.path, None)
    newest = records[at - 1]
    marks = [
        msgspec.structs.replace(newest, kind=kind, path="", data=None)
        for kind in (RecordKind.SNAPSHOT_BEGIN, RecordKind.SNAPSHOT_END)
    ]
    read = [marks[0], *znodes.values(), marks[1]]
    times = {"observed_ms": newest.observed_ms, "steady_ms": newest.steady_ms}
    read = [msgspec.structs.replace(record, **times) for record in read]
    return [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate([*read, *records[at:]])]


@pytest.mark.parametrize("b_ends_before", [True, False])
def test_each_write_after_a_first_read_anywhere_is_explained(b_ends_before):
    records = two_deletions_and_a_failover(b_ends_before=b_ends_before)
    begin = next(at for at, record in enumerate(records) if record.kind is RecordKind.SNAPSHOT_END) + 1
    unexplained = {}
    for at in range(begin, len(records)):
        context = steps(new_context("c", chunk_count=8), from_a_first_read(records, at)).context
        gauges = gauges_row(context.header, ("c", 0, 0, 0, context.header.zxid, 0))
        differing = {kind: count for kind, count in gauges.divergences.items() if kind != "missed_changes" and count}
        if differing or gauges.pending_writes:
            unexplained[at, records[at].path] = (differing, gauges.pending_writes)
    assert unexplained == {}
