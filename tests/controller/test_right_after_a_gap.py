"""Right after a gap of the watch: what ZooKeeper shows is what Kontrast says, and nothing else is due or open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.records import Record, RecordKind, decode_record
from controller.contract.row import Row
from controller.model.context import Context
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.rules.assignment import ReplicaAssignment
from controller.rules.releases import profile_of
from controller.step import step, steps
from lab.modelled_cluster.checks import Checked
from lab.modelled_cluster.zookeeper import Znode
from tests.controller.znode_history import (
    LOG_DIR_EVENT,
    ZnodeHistory,
    broker_znode,
    controller_znode,
    state_znode,
    topic_znode,
)

RELEASES = [(1, 1), (2, 3), (2, 8), (3, 9)]


def session(history: ZnodeHistory, state: str) -> None:
    status = msgspec.json.encode(ForwarderStatus(state, "persistent")).decode()
    history.send(RecordKind.SESSION, zxid=history.zxid, data=status)


def four_hours_later(history: ZnodeHistory) -> dict[str, object]:
    """Return the alerts that are open when all occurrences are over."""
    for after_ms in (*[60_000] * 4, *[3_600_000] * 4):
        history.heartbeat(after_ms)
    return history.open_alerts()


def assert_well(history: ZnodeHistory) -> None:
    assert set(four_hours_later(history)) <= {"PreferredImbalance"}
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.offline_partitions, gauges.leaderless_partitions) == (0, 0, 0)
    assert set(gauges.divergences) <= {"missed_changes"}


# --- a topic's deletion


@pytest.mark.parametrize("unread", [False, True])
@pytest.mark.parametrize("release", [(2, 3), (2, 7), (3, 9)])
def test_a_topic_of_the_same_name_is_another_one_after_a_gap(release, unread):
    history = ZnodeHistory(release=release).start(
        1, 2, 3, controller=3, topics={"b": {0: ([2, 1], 2, 3, [2, 1])}, "u": {0: ([1, 2], 1, 0, [1, 2])}}
    )
    history.heartbeat()
    session(history, "suspended")
    if unread:
        history.came_and_went("/admin/delete_topics/b")
    history.znodes = {path: stat for path, stat in history.znodes.items() if not path.startswith("/brokers/topics/b")}
    history.write("/brokers/topics/b", topic_znode({0: [2], 1: [2, 3]}), resync=True)
    history.write("/brokers/topics/b/partitions/0/state", state_znode(2, 0, [2], 1), resync=True)
    history.write("/brokers/topics/b/partitions/1/state", state_znode(2, 0, [2, 3], 1), resync=True)
    if unread:
        history.delete("/admin/delete_topics/b", resync=True)
    session(history, "connected")
    history.heartbeat()
    shown = {number: history.row("b", number) for number in (0, 1)}
    assert [(row.leader, row.isr, row.replicas, row.deleting) for row in shown.values()] == [
        (2, (2,), (2,), False),
        (2, (2, 3), (2, 3), False),
    ]
    assert_well(history)


def test_a_complete_read_finds_another_topic_under_the_name():
    history = ZnodeHistory(release=(2, 7)).start(1, 2, topics={"b": {0: ([2, 1], 2, 3, [2, 1])}})
    history.delete_topic("b")
    assert history.row("b", 0).deleting
    history.generation, history.seq = 2, -1
    history.znodes = {path: stat for path, stat in history.znodes.items() if not path.startswith("/brokers/topics/b")}
    history.start(1, 2, topics={"b": {0: ([1], 1, 0, [1]), 1: ([2], 2, 0, [2])}})
    assert (history.row("b", 0).replicas, history.row("b", 0).leader_epoch) == ((1,), 0)
    assert_well(history)


# --- brokers and their controller


@pytest.mark.parametrize("left_before", [True, False])
@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_that_registered_before_the_failover_was_loaded(release, leads, left_before):
    state = ([1, 3], 1, 0, [1, 3]) if leads else ([3, 1], 3, 0, [3, 1])
    topics = {"b": {0: state}, "u": {0: ([2, 3], 2, 0, [2, 3])}}
    history = ZnodeHistory(release=release).start(1, 2, 3, controller=2, topics=topics)
    history.heartbeat()
    if left_before:
        history.broker_leaves(1)
    session(history, "lost")
    registered, elected = history.zxid + 1, history.zxid + 2
    history.zxid = elected
    history.znodes["/brokers/ids/1"] = (registered, -1)
    del history.znodes["/controller"]
    at = {"zxid": elected, "mzxid": elected, "resync": True}
    history.write("/controller_epoch", b"2", same_zxid=True, **at)
    history.write("/controller", controller_znode(3), same_zxid=True, czxid=elected, **at)
    at = {"zxid": registered, "mzxid": registered, "czxid": registered, "resync": True}
    history.write("/brokers/ids/1", broker_znode(1), same_zxid=True, **at)
    session(history, "connected")
    history.heartbeat(60_000)
    history.state("u", 0, 2, 0, [2], 2)
    history.state("u", 0, 2, 0, [2, 3], 2)
    assert_well(history)


def failed_log_dirs(history: ZnodeHistory) -> tuple[int, ...]:
    return history.context.topics.get("a").partitions[0].offline_dirs


@pytest.mark.parametrize("release", [(1, 1), (3, 4)])
@pytest.mark.parametrize("how", ["watched", "differences", "complete read"])
def test_a_new_registration_forgets_failed_log_directories(how, release):
    history = ZnodeHistory(release=release).start(1, 2, 4, controller=4, topics={"a": {0: ([1], 1, 2, [1])}})
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 1, "event": 1})
    history.delete(LOG_DIR_EVENT)
    history.state("a", 0, -1, 3, [1])
    assert failed_log_dirs(history) == (1,)
    if how == "watched":
        history.broker_leaves(1)
        history.state("a", 0, -1, 4, [1])
        history.broker(1)
        history.state("a", 0, 1, 5, [1])
    elif how == "differences":
        del history.znodes["/brokers/ids/1"]
        history.write("/brokers/ids/1", broker_znode(1), resync=True)
        history.lose("a", 0)
        history.write("/brokers/topics/a/partitions/0/state", state_znode(1, 5, [1], 1), resync=True)
    else:
        history.generation, history.seq = 2, -1
        del history.znodes["/brokers/ids/1"]
        history.start(1, 2, 4, controller=4, topics={"a": {0: ([1], 1, 4, [1])}})
    assert failed_log_dirs(history) == ()
    assert_well(history)


# --- reassignments


@pytest.mark.parametrize("release", RELEASES)
def test_a_reassignment_that_began_and_ended_in_a_gap_is_what_zookeeper_shows(release):
    topics = {"b": {0: ([3, 2], 3, 0, [3, 2]), 1: ([2, 1, 3], 2, 0, [2, 1, 3])}}
    history = ZnodeHistory(release=release).start(1, 2, 3, controller=2, topics=topics)
    history.heartbeat()
    session(history, "suspended")
    history.lose("b", 1, 3)
    history.write("/brokers/topics/b", topic_znode({0: [3, 2], 1: [3]}), resync=True)
    history.write("/brokers/topics/b/partitions/1/state", state_znode(3, 4, [3], 1), resync=True)
    session(history, "connected")
    assert history.row("b", 1).replicas == (3,)
    assert_well(history)


def test_a_reassignment_under_way_after_a_gap_goes_on():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics={"b": {0: ([3, 2], 3, 0, [3, 2])}})
    session(history, "suspended")
    moving = topic_znode({0: [1, 3, 2]}, adding_replicas={"0": [1]}, removing_replicas={"0": [2]})
    history.write("/brokers/topics/b", moving, resync=True)
    history.write("/brokers/topics/b/partitions/0/state", state_znode(3, 1, [3, 2], 1), resync=True)
    session(history, "connected")
    shown = history.row("b", 0)
    assert (shown.replicas, shown.adding_replicas, shown.removing_replicas) == ((1, 3, 2), (1,), (2,))


def test_an_alert_names_a_broker_that_is_away():
    topics = {"t": {0: ([4, 1], 4, 0, [4, 1])}, "u": {0: ([2, 3], 2, 0, [2, 3])}}
    history = ZnodeHistory(release=(1, 1)).start(1, 2, 3, 4, controller=3, topics=topics)
    history.broker_leaves(4)
    history.broker_leaves(1)
    history.heartbeat(10_000)
    assert history.open_alerts()["BrokerCrashed/broker 4"].subject == "broker 4"
    history.broker(4)
    history.heartbeat(60_000)
    crashed = history.open_alerts()["BrokerCrashed/broker 4"]
    assert (crashed.subject, crashed.broker, crashed.group) == ("broker 1", 1, "broker 4")
    assert crashed.cause.startswith("broker 1 crashed")


# --- histories of random tests, as text

HISTORIES = {path.stem: path for path in (Path(__file__).parent / "histories").glob("*.jsonl")}


def records_of(name: str) -> list[Record]:
    return [decode_record(line) for line in HISTORIES[name].read_text().splitlines()]


def new_context_of(release: tuple[int, int] | None) -> Context:
    return new_context("c", profile=None if release is None else profile_of(release), chunk_count=8)


def rows_of_steps(context: Context, records: list[Record], *, restarts: bool = False) -> list[Row]:
    rows: list[Row] = []
    stored: dict[int, bytes] = {}
    for record in records:
        outcome = step(context, record)
        rows += outcome.effects
        stored |= changed_chunks(context, outcome.context)
        context = outcome.context
        if restarts:
            context = restore_context("c", encode_header(context), stored.get)
    return rows


def heartbeats_after(end: Record, *waits_ms: int) -> Iterator[Record]:
    status = msgspec.json.encode(ForwarderStatus("connected", "persistent")).decode()
    fields = {"cluster": "c", "generation": end.generation, "kind": RecordKind.HEARTBEAT, "data": status}
    for number, after_ms in enumerate(accumulate(waits_ms), 1):
        times = {"observed_ms": end.observed_ms + after_ms, "steady_ms": end.steady_ms + after_ms}
        yield Record(seq=end.seq + number, zxid=end.zxid, **fields, **times)


@pytest.mark.parametrize("release", [None, (1, 0), (2, 3), (2, 8)])
@pytest.mark.parametrize("name", sorted(HISTORIES))
def test_rows_depend_on_neither_batches_nor_restarts(name, release):
    records = records_of(name)
    rows = rows_of_steps(new_context_of(release), records)
    assert list(steps(new_context_of(release), records).effects) == rows
    assert rows_of_steps(new_context_of(release), records, restarts=True) == rows


@pytest.mark.parametrize("release", [None, (1, 0), (2, 3), (2, 7), (3, 9)])
@pytest.mark.parametrize("name", ["reassigned-in-a-gap", "reassigned-across-a-gap"])
def test_assignments_are_the_newest_znodes_after_a_gap(name, release):
    records = records_of(name)
    context = new_context_of(release)
    for record in records:
        context = step(context, record).context
    newest = {record.path: json.loads(record.data) for record in records if record.path.startswith("/brokers/topics/")}
    for topic in ("b", "c"):
        for number, replicas in newest.get(f"/brokers/topics/{topic}", {"partitions": {}})["partitions"].items():
            partition = context.topics.get(topic).partitions[int(number)]
            assert partition.assignment == ReplicaAssignment(tuple(replicas))
    for beat in heartbeats_after(records[-1], *[1_000] * 59):
        context = step(context, beat).context
    due = [
        (name, number)
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
        if partition.write_due
    ]
    assert due == []


@pytest.mark.parametrize("name", [name for name in sorted(HISTORIES) if "@" in name])
def test_a_history_comes_to_rest_as_zookeeper_shows(name):
    """A history came to rest in another state than ZooKeeper's, in the release of its file's name, if that is told."""
    records, release = records_of(name), name.partition("@")[2]
    checked = Checked(tuple(map(int, release.split("."))) if release else None, {})
    for record in (*records, *heartbeats_after(records[-1], 1_000, 1_000, *[13_000] * 10)):
        checked.apply(record)
    gone = {record.path: at for at, record in enumerate(records) if record.kind is RecordKind.DELETED}
    checked.check_at_rest(
        {
            record.path: Znode(record.content, record.czxid, record.mzxid, record.version, record.ephemeral_owner, 0)
            for at, record in enumerate(records)
            if record.kind is RecordKind.NODE and at > gone.get(record.path, -1)
        }
    )
    checked.check_other_ways()
