"""Events that ZooKeeper showed first and the controller took up last, as a later event's write shows."""

from __future__ import annotations

import pytest

from controller.contract.alert_row import Severity
from controller.contract.effect_rows import Status, Transition
from controller.events import controlled_shutdown
from controller.rules.states import PARTITION_VALID_PREVIOUS
from controller.transaction.transaction import Transaction
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_all_as_expected,
    controller_znode,
    state_znode,
    topic_znode,
)

ALL = (1, 2, 3, 4)
TOPICS = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([2, 4], 2, 0, [2, 4]), 1: ([3, 4], 3, 0, [3, 4])}}


@pytest.fixture
def history() -> ZnodeHistory:
    return ZnodeHistory().start(*ALL, topics=TOPICS)


def kinds(history: ZnodeHistory, topic: str) -> list[str]:
    """Return the events that moved the topic, in order."""
    rows = [row for row in history.effects if isinstance(row, Transition) and row.status is Status.FINAL]
    return list(dict.fromkeys(row.cause.partition(":")[0] for row in rows if row.topic == topic))


def test_a_deletion_is_begun_behind_a_shutdown_that_writes_first(history):
    history.delete_topic("u")
    history.state("t", 0, 3, 1, [3])  # 2 shuts down
    assert history.predicted("u", 0) is not None
    history.state("u", 0, 4, 1, [4])  # and hands over its partitions of u, which is not being deleted yet
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)
    assert kinds(history, "u") == ["ControlledShutdown", "TopicDeletion"]


def test_partitions_are_created_behind_a_shutdown_that_writes_first(history):
    history.topic("v", {0: [2, 3]})
    history.state("t", 0, 3, 1, [3])
    assert history.predicted("v", 0) == (3, 0, (3,))
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)


def test_a_deletion_is_begun_behind_a_reassignment_that_the_api_asked_for_before_it(history):
    """A topic under deletion is not reassigned any more. Its new replica is deleted with the others."""
    history.delete_topic("u")
    moving = {"adding_replicas": {"0": [3]}, "removing_replicas": {"0": [4]}}
    history.topic("u", {0: [2, 3, 4], 1: [3, 4]}, **moving)
    history.state("u", 0, 2, 1, [2, 4])
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)
    assert kinds(history, "u") == ["ApiPartitionReassignment", "TopicDeletion"]
    states = history.context.topics.get("u").partitions[0].all_replica_states
    assert {broker: state.word for broker, state in states.items()} == dict.fromkeys(
        (2, 3, 4), "ReplicaDeletionStarted"
    )


def test_partitions_that_are_added_with_a_reassignment_are_created_behind_it(history):
    """One value of the topic's znode shows both changes. No row had announced the creation before."""
    moving = {"adding_replicas": {"0": [3]}, "removing_replicas": {"0": [4]}}
    effects = history.topic("u", {0: [2, 3, 4], 1: [3, 4], 2: [3, 2]}, **moving)
    assert {row.status for row in effects if isinstance(row, Transition)} == {Status.PROVISIONAL}
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)
    assert kinds(history, "u") == ["ApiPartitionReassignment", "PartitionModifications"]


def test_a_death_is_handled_behind_a_shutdown_that_writes_first(history):
    history.broker_leaves(4)
    history.state("t", 0, 3, 1, [3])
    assert history.predicted("u", 0) == (-1, 2, (4,))  # 2 handed it over to 4, which was dead already
    history.state("u", 0, 4, 1, [4])
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)


@pytest.mark.parametrize("session", [0x1001, 0], ids=["log", "watch"])
def test_a_death_is_handled_behind_a_reassignment_that_the_controller_writes_first(history, session):
    history.broker_leaves(4)
    moving = topic_znode({0: [2, 3, 4]}, adding_replicas={"0": [4]})
    history.write("/brokers/topics/t", moving, author=session, cxid=7 if session else -1)
    history.state("t", 0, 2, 1, [2, 3])
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)
    told = history.moves(tuple(history.effects), Status.FINAL)
    assert [move.removeprefix("t-0@4 ") for move in told if move.startswith("t-0@4")] == [
        "NonExistentReplica -> NewReplica",
        "NewReplica -> OfflineReplica",
    ]


def test_what_cannot_be_run_again_stays_in_front(history):
    history.broker_leaves(4)
    history.broker(4)
    history.elect_preferred(("u", 1))
    history.state("t", 0, 3, 1, [3])
    assert history.context.header.shutdowns.under_way == (2,)


def test_a_broker_whose_startup_may_come_later_has_not_asked_to_be_shut_down():
    history = ZnodeHistory(release=(2, 0)).start(2, controller=2, topics={"t": {0: ([1],)}})
    history.broker(1)  # creates the partition, perhaps after the write that comes now
    history.state("t", 0, -1, 0, [])
    assert history.gauges().agreement == 0


@pytest.mark.parametrize("release", [(1, 1), (2, 1), (2, 4), (2, 8), (3, 9)])
def test_a_broker_that_is_back_stays_registered_where_another_write_comes_first(release):
    topics = {"c": {0: ([5, 1], 5, 0, [5, 1]), 1: ([5], 5, 0, [5])}, "p": {0: ([1, 3], 3, 0, [3, 1])}}
    history = ZnodeHistory(release=release).start(1, 3, 5, topics=topics)
    history.broker_leaves(5)
    history.broker(5)
    history.state("p", 0, 1, 1, [3, 1])  # a preferred election, which the API asked for before broker 5 left
    history.heartbeat()
    assert sorted(history.context.header.brokers) == sorted(history.brokers()) == [1, 3, 5]
    assert history.gauges().active_brokers == 3
    history.the_controller_writes_its_due()
    for _ in range(5):
        history.heartbeat(60_000)
    assert history.gauges().offline_partitions == history.gauges().leaderless_partitions == 0
    assert not [alert for alert in history.open_alerts().values() if alert.severity is Severity.PAGE]


def test_a_broker_that_is_not_registered_has_not_asked_in_vain(history):
    tx = Transaction(history.context, history.records[-1])
    controlled_shutdown.ask_unsuccessfully(tx, 9)
    assert tx.events.is_idle


def test_no_final_move_is_illegal_where_a_bounce_and_a_creation_change_places():
    history = ZnodeHistory(release=(2, 8))
    for path in ("/brokers/topics/a", "/brokers/topics/c/partitions/0/state"):
        history.znodes[path] = history.zxid, 0  # written before, and not named by the read
    history.snapshot(
        ("/controller", controller_znode(2)),
        ("/brokers/topics/c", topic_znode({0: [1, 5], 1: [5, 3, 2], 2: [3, 4, 1]})),
        ("/brokers/topics/c/partitions/2/state", state_znode(3, 0, [3, 4, 1])),
    )
    history.broker(1)
    history.topic("a", {0: [4, 5, 3], 1: [3, 1, 4], 2: [1]})
    history.broker_bounces(1)
    history.state("c", 0, 5, 1, [5])
    history.now_ms += 30_000
    history.state("c", 2, 3, 1, [3, 4])
    history.delete("/admin/reassign_partitions")
    finals = [
        (row.from_state, row.to_state)
        for row in history.effects
        if isinstance(row, Transition) and row.status is Status.FINAL and row.subject == "partition"
    ]
    legal = {(before.word, state.word) for state, befores in PARTITION_VALID_PREVIOUS.items() for before in befores}
    assert set(finals) <= legal
