"""A complete read anywhere in creations, deletions, failovers and losses of brokers, with every later write explained.

Soaks once counted 23 writes of the controller as unexplained after a first read, and 26 after the read of a forwarder
that took over from a paused one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest

from controller.contract.effect_rows import Transition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.records import Record, RecordKind
from controller.model.context import Context
from controller.model.leadership import Write
from controller.restore.stored_context import new_context
from controller.rules.releases import NEWEST, Release, profile_of
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


def end_of_first_read(records: list[Record]) -> int:
    return next(at for at, record in enumerate(records) if record.kind is RecordKind.SNAPSHOT_END) + 1


def in_generation(generation: int, records: list[Record]) -> list[Record]:
    return [msgspec.structs.replace(record, generation=generation) for record in records]


def unexplained(
    histories: dict[tuple[int, str], list[Record]], release: Release | None = None
) -> dict[tuple[int, str], tuple[dict[str, int], int]]:
    """Return which histories end with divergences or writes that are due, by the place of their last complete read."""
    found = {}
    for place, records in histories.items():
        context = new_context("c", profile=None if release is None else profile_of(release), chunk_count=8)
        header = steps(context, records).context.header
        gauges = gauges_row(header, ("c", 0, 0, 0, header.zxid, 0))
        differing = {kind: count for kind, count in gauges.divergences.items() if kind != "missed_changes" and count}
        if differing or gauges.pending_writes:
            found[place] = (differing, gauges.pending_writes)
    return found


def four_brokers(release: Release) -> ZnodeHistory:
    topics = {
        "four": {number: ([1, 2, 3, 4], 1 + number, 0, [1, 2, 3, 4]) for number in range(4)},
        "three": {
            number: (three, three[0], 0, three) for number, three in enumerate([[1, 4, 2], [4, 3, 1], [2, 3, 1]])
        },
        "one": {0: ([1], 1, 0, [1]), 1: ([4], 4, 0, [4]), 2: ([3], 3, 0, [3])},
    }
    history = ZnodeHistory(release=release).start(1, 2, 3, 4, topics=topics)
    history.heartbeat()
    return history


def a_broker_leaves_and_returns(release: Release = NEWEST) -> list[Record]:
    history = four_brokers(release)
    history.broker_leaves(4)
    written_by_batches(history)
    history.broker(4)
    return written_by_batches(history)


def two_brokers_leave(release: Release = NEWEST) -> list[Record]:
    history = four_brokers(release)
    history.broker_leaves(4)
    history.broker_leaves(3)
    return written_by_batches(history)


def two_brokers_leave_and_one_is_controller(release: Release = NEWEST) -> list[Record]:
    history = four_brokers(release)
    history.controller_dies(1)
    history.broker_leaves(4)
    history.controller(2, 2)
    return written_by_batches(history)


def a_broker_leaves_after_the_controller(release: Release = NEWEST) -> list[Record]:
    history = four_brokers(release)
    history.controller_dies(1)
    history.controller(2, 2)
    written_by_batches(history)
    history.broker_leaves(4)
    return written_by_batches(history)


def a_topic_is_created_and_grows(release: Release = NEWEST) -> list[Record]:
    history = four_brokers(release)
    history.topic("new", {0: [1, 2], 1: [2, 3], 2: [3, 4]})
    written_by_batches(history)
    history.topic("new", {0: [1, 2], 1: [2, 3], 2: [3, 4], 3: [4, 1], 4: [1, 3]})
    return written_by_batches(history)


def a_topic_is_deleted(release: Release = NEWEST) -> list[Record]:
    history = four_brokers(release)
    history.delete_topic("three")
    written_by_batches(history)
    history.topic_vanishes("three", 0, 1, 2)
    return written_by_batches(history)


def written_by_batches(history: ZnodeHistory) -> list[Record]:
    """Write every due state in the controller's order. Return all records up to a minute later."""
    while due := sorted(due_writes(history.context)):
        _, name, number, value = due[0]
        history.state(name, number, value.leader, value.leader_epoch, value.isr)
    history.heartbeat(60_000)
    return history.records


def due_writes(context: Context) -> Iterator[tuple[int, str, int, LeaderAndIsr]]:
    """Yield batch, partition and result of the next write of each partition."""
    for name, topic in context.topics:
        for number, partition in topic.partitions.items():
            writes = (action for action in partition.queue if isinstance(action, Write))
            results = ((write.at_batch, write.apply(partition.zk_state, context.header.term.epoch)) for write in writes)
            yield from islice(((batch, name, number, value) for batch, value in results if value is not None), 1)


@pytest.mark.parametrize("b_ends_before", [True, False])
def test_each_write_after_a_first_read_anywhere_is_explained(b_ends_before):
    records = two_deletions_and_a_failover(b_ends_before=b_ends_before)
    begin = end_of_first_read(records)
    assert (
        unexplained({(at, records[at].path): from_a_first_read(records, at) for at in range(begin, len(records))}) == {}
    )


HISTORIES = (
    a_broker_leaves_and_returns,
    two_brokers_leave,
    two_brokers_leave_and_one_is_controller,
    a_broker_leaves_after_the_controller,
    a_topic_is_created_and_grows,
    a_topic_is_deleted,
)


def gaps(records: list[Record]) -> dict[tuple[int, str], list[Record]]:
    """Return the records with a gap and another forwarder's read, for gaps of many lengths that end anywhere."""
    begin = end_of_first_read(records) + 1
    return {
        (at, f"after {last}, {records[at].path}"): [*records[:last], *in_generation(2, from_a_first_read(records, at))]
        for at in range(begin, len(records))
        for last in sorted({begin, max(begin, at - 2), at})
    }


@pytest.mark.parametrize("release", [NEWEST, (1, 1)])
@pytest.mark.parametrize("history", HISTORIES)
def test_each_write_after_a_first_read_amid_an_event_is_explained(history, release):
    records = history(release)
    begin = end_of_first_read(records) + 1
    firsts = {(at, records[at].path): from_a_first_read(records, at) for at in range(begin, len(records))}
    assert unexplained(firsts, release) == {}


@pytest.mark.parametrize("history", HISTORIES)
def test_each_write_after_the_read_of_another_forwarder_is_explained(history):
    assert unexplained(gaps(history()), NEWEST) == {}


@pytest.mark.parametrize("history", [a_broker_leaves_and_returns, two_brokers_leave])
def test_no_failover_is_told_of_a_controller_that_was_known_before(history):
    for place, records in gaps(history()).items():
        effects = steps(new_context("c", chunk_count=8), records).effects
        causes = {row.cause.partition(":")[0] for row in effects if isinstance(row, Transition) and row.generation == 2}
        assert causes <= {"BrokerChange"}, place
