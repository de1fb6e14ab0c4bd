"""Predicted losses of a broker, compared with recordings of real clusters that lost one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from controller.contract.records import Record, RecordKind
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.step import step
from questions.whatif.hypothetical_cluster import HypotheticalCluster
from tests.conformance.recording import unpack

_WATCHED_MS = 3_000
_OF_A_LOSS = ("/controller", "/controller_epoch")

# The automatic rebalance moved one leader 2.9 s after this crash.
REBALANCED = {("hard39", 0x119): {("c", 1)}}

States = dict[tuple[str, int], tuple[int, tuple[int, ...]]]


class Crash(NamedTuple):
    """The states before a crash, the predicted states after it, and the real states after it."""

    zxid: int
    before: States
    predicted: States
    observed: States


def states(context: Context) -> States:
    return {
        (name, number): (partition.zk_state.leader, partition.zk_state.isr)
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
        if partition.zk_state
    }


def is_at_rest(context: Context) -> bool:
    partitions = (partition for _, topic in context.topics for partition in topic.partitions.values())
    return context.header.acting and not any(partition.write_due for partition in partitions)


def until_something_else_happens(records: list[Record], at: int) -> Iterator[Record]:
    for record in records[at:]:
        is_write = record.path.endswith("/state") or record.path in _OF_A_LOSS or record is records[at]
        late = record.observed_ms - records[at].observed_ms > _WATCHED_MS
        if late or not (is_write or record.kind is RecordKind.HEARTBEAT):
            return
        yield record


def crashes(name: str, directory: Path) -> Iterator[Crash]:
    """Yield every expiry of a broker's session that met a cluster at rest."""
    recording = unpack(name, directory)
    records = list(recording.records())
    context = new_context("recorded", recording.settings(), recording.profile(), chunk_count=16)
    for at, record in enumerate(records):
        expired = record.kind is RecordKind.DELETED and record.path.startswith("/brokers/ids/") and record.cxid == 0
        if expired and records[at - 1].kind is RecordKind.HEARTBEAT and is_at_rest(context):
            cluster = HypotheticalCluster(context)
            cluster.lose((int(record.path.rpartition("/")[2]),))
            after = context
            for later in until_something_else_happens(records, at):
                after = step(after, later).context
            yield Crash(record.zxid, states(context), states(cluster.context), states(after))
        context = step(context, record).context


@pytest.mark.parametrize(("name", "count"), [("dev39", 2), ("dev28", 3), ("hard39", 4), ("race39", 3)])
def test_the_predicted_leaders_and_isrs_are_those_of_the_real_controller(name, count, tmp_path):
    found = list(crashes(name, tmp_path))
    assert len(found) == count
    for crash in found:
        assert crash.predicted != crash.before
        differing = {key for key, state in crash.predicted.items() if crash.observed.get(key) != state}
        assert differing == REBALANCED.get((name, crash.zxid), set())
