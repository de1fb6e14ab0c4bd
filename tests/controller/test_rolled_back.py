"""ZooKeeper with older data. The replica follows it like a new one, and an alert names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Request, Transition
from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from tests.controller.znode_history import ZnodeHistory, broker_znode, controller_znode, state_znode, topic_znode

Past = Callable[[ZnodeHistory], object]

_STATE = "/brokers/topics/t/partitions/0/state"
# A history's own, and the moments that only the longer one can know.
_TOLD = ("generation", "seq", "ordinal", "zxid", "time_ms", "since_ms", "controller_since_ms")
_COUNTS = ("active_brokers", "topics", "partitions", "offline_partitions", "leaderless_partitions", "pending_writes")


def failovers(history: ZnodeHistory) -> None:
    for epoch, broker in ((5, 1), (6, 2), (7, 3)):
        history.delete("/controller")
        history.controller(broker, epoch)
        history.state("t", 0, broker, epoch + 3, [broker])
    history.topic("lost", {0: [1, 2]})


def deletion_and_reassignment(history: ZnodeHistory) -> None:
    history.delete_topic("t")
    history.topic("u", {0: [1, 2]})
    history.reassign(("u", 0, [3]))
    history.broker_leaves(2)


def migration(history: ZnodeHistory) -> None:
    history.migrates()


def an_edit_of_the_controller(history: ZnodeHistory) -> None:
    history.write("/controller", controller_znode(1))
    history.write("/controller_epoch", b"57")


def back(history: ZnodeHistory) -> list[Record]:
    """Make a complete read of a backup, then kill a leader."""
    first = len(history.records)
    history.generation, history.seq = history.generation + 1, -1
    history.zxid, history.znodes, history.contents, history.registered = 60, {}, {}, set()
    history.send(RecordKind.SNAPSHOT_BEGIN, zxid=60)
    for path, content in (
        ("/controller", controller_znode(1)),
        ("/controller_epoch", b"4"),
        *((f"/brokers/ids/{broker}", broker_znode(broker)) for broker in (1, 2, 3)),
        ("/brokers/topics/t", topic_znode({0: [2, 1, 3]})),
        (_STATE, state_znode(2, 1, [2, 1], 4)),
    ):
        history.write(path, content, zxid=60)
    history.send(RecordKind.SNAPSHOT_END, zxid=60)
    history.broker_leaves(2)
    history.heartbeat()
    return history.records[first:]


def fields_of(row: Row) -> dict[str, object]:
    return {key: value for key, value in msgspec.structs.asdict(row).items() if key not in _TOLD}


def newest(rows: Sequence[Row]) -> dict[tuple[object, ...], dict[str, object]]:
    """Return the newest row of each partition, broker and controller."""
    found: dict[tuple[object, ...], dict[str, object]] = {}
    for row in rows:
        if isinstance(row, PartitionRow):
            found["partition", row.topic, row.partition] = fields_of(row) | {"details": _without_numbers(row)}
        elif isinstance(row, BrokerRow):
            found["broker", row.broker] = fields_of(row)
        elif isinstance(row, ControllerRow):
            found["controller",] = fields_of(row)
    return found


def _without_numbers(row: PartitionRow) -> object:
    """Return the details without the numbers of due events, because a longer history counts further."""
    if row.details is None:
        return None
    return msgspec.structs.replace(row.details, due_events=(-1,) * len(row.details.due_events))


def what_follows(rows: Sequence[Row]) -> list[str]:
    return [f"{type(row).__name__} {row}" for row in map(_by_itself, rows) if isinstance(row, (Transition, Request))]


def _by_itself(row: Row) -> Row:
    """Return the row without its place, its times and the names that count events."""
    blank = {name: -1 for name in ("generation", "seq", "ordinal", "zxid", "time_ms", "event") if hasattr(row, name)}
    return msgspec.structs.replace(row, **blank, **({"effect": ""} if hasattr(row, "effect") else {}))


@pytest.mark.parametrize("past", [failovers, deletion_and_reassignment, migration, an_edit_of_the_controller])
def test_older_data_is_followed_as_by_a_replica_that_never_saw_more(past: Past) -> None:
    history = ZnodeHistory().start(1, 2, 3, epoch=4, topics={"t": {0: ([2, 1, 3], 2, 1, [2, 1])}})
    past(history)
    history.heartbeat()
    seen = len(history.effects)
    records = back(history)
    fresh = steps(new_context("c", chunk_count=8), records).effects
    rows = history.effects[seen:]
    standing = {key: row for key, row in newest(history.effects).items() if row.get("state") != "NonExistentPartition"}
    assert standing == newest(fresh)
    assert what_follows(rows)[-len(what_follows(fresh)) :] == what_follows(fresh) != []
    counts = [[getattr(row, name) for name in _COUNTS] for row in rows if isinstance(row, GaugesRow)]
    assert counts == [[getattr(row, name) for name in _COUNTS] for row in fresh if isinstance(row, GaugesRow)]


def rollbacks(rows: Sequence[Row]) -> list[AlertRow]:
    return [row for row in rows if isinstance(row, AlertRow) and row.alert == "ZooKeeperRolledBack"]


def test_the_page_names_both_zxids_once_for_each_rollback() -> None:
    history = ZnodeHistory().start(1, 2, 3, epoch=4)
    failovers(history)
    before = history.zxid
    back(history)
    (page,) = rollbacks(history.effects)
    assert (page.severity.value, page.state) == ("page", "open")
    assert f"at zxid 0x3c after {before:#x}" in page.cause
    for _ in range(3):  # other forwarders read the same data, which is not older
        history.generation, history.seq = history.generation + 1, -1
        history.send(RecordKind.SNAPSHOT_BEGIN, zxid=history.zxid)
        history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid)
        history.heartbeat(6_000)
    assert rollbacks(history.effects) == [page]


def test_a_restored_ensemble_whose_zxid_is_newer_is_named_by_its_watcher() -> None:
    history = ZnodeHistory().start(1, 2, 3, epoch=4)
    status = msgspec.json.encode(ForwarderStatus("connected", lost_zxid=0x700000005)).decode()
    history.send(RecordKind.SESSION, zxid=0x800000001, data=status)
    history.heartbeat()
    (page,) = rollbacks(history.effects)
    assert "at zxid 0x800000001 after 0x700000005" in page.cause
