"""A controller up to 2.0 that slept through the end of its term, and goes on as if nothing had been."""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from tests.controller.znode_history import ZnodeHistory

OLD, NEW = 1, 2  # the epochs of the two controllers

# Broker 2 leads t-0 and t-2 and follows in t-1; the controller on broker 1 waits for its connection when it dies.
TOPIC = {"t": {0: ([2, 1], 2, 0, [2, 1]), 1: ([1, 2, 3], 1, 0, [1, 2, 3]), 2: ([2], 2, 0, [2])}}


def a_controller_that_sleeps(release: tuple[int, int] = (2, 0)) -> ZnodeHistory:
    """Broker 2 dies, broker 1 is deposed before it has done anything about it, broker 3 takes over and does it."""
    history = ZnodeHistory(release=release).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    return deposed(history)


def deposed(history: ZnodeHistory) -> ZnodeHistory:
    history.delete("/controller")
    history.controller(3, NEW)
    history.the_controller_writes_its_due()
    history.heartbeat(5_000)
    return history


def of(epoch: int, history: ZnodeHistory, effects: tuple) -> list[str]:
    """What is certain of that controller's moves and requests."""
    mine = [row for row in effects if isinstance(row, Transition | Request) and row.controller_epoch == epoch]
    final = [row for row in mine if row.status is Status.FINAL and getattr(row, "api", "") != "UpdateMetadata"]
    return [line.removeprefix("final ") for line in (*history.transitions(final), *history.requests(final))]


def test_it_goes_on_with_a_death_but_leaves_alone_what_the_next_one_has_written():
    history = a_controller_that_sleeps()
    states = history.context.topics["t"].partitions[1].replica_states
    effects = history.state("t", 2, -1, 1, [2], OLD) + history.state("t", 1, 1, 1, [1, 3], OLD)
    assert of(OLD, history, effects) == [
        "t-0 OnlinePartition -> OfflinePartition",  # it knows of no other leader
        "t-2 OnlinePartition -> OfflinePartition",
        "t-1@2 OnlineReplica -> OfflineReplica",
        "t-2@2 OnlineReplica -> OfflineReplica",
        "LeaderAndIsr to 1: t-1 leader=1 epoch=1 isr=[1, 3]",
        "LeaderAndIsr to 3: t-1 leader=1 epoch=1 isr=[1, 3]",
        "StopReplica to 2: t-0",
        "StopReplica to 2: t-1",
        "StopReplica to 2: t-2",
    ]
    assert history.context.topics["t"].partitions[1].replica_states == states
    assert history.gauges().pending_writes == 0


def test_what_it_writes_does_not_reach_the_acting_controllers_copy():
    history = a_controller_that_sleeps()
    history.state("t", 2, -1, 1, [2], OLD)
    effects = history.broker(2)
    assert "provisional LeaderAndIsr to 2: t-2 leader=-1 epoch=1 isr=[2]" in history.requests(effects)


def test_it_removes_nobody_whom_a_leader_has_removed_by_then():
    history = a_controller_that_sleeps()
    history.state("t", 1, 1, 0, [1, 3], OLD)
    effects = history.state("t", 2, -1, 1, [2], OLD)
    assert "t-1@2 OnlineReplica -> OfflineReplica" in of(OLD, history, effects)
    assert history.gauges().pending_writes == 0


@pytest.mark.parametrize(
    ("until", "leader", "leader_epoch"),
    [
        pytest.param(lambda history: history.broker_leaves(1), 1, 1, id="its broker goes"),
        pytest.param(lambda history: becomes_controller_again(history), 1, 1, id="it is controller again"),
        pytest.param(lambda history: history.heartbeat(30_000), 1, 1, id="it waits no longer"),
        pytest.param(lambda history: None, 1, 0, id="a leader changes the ISR"),
    ],
)
def test_it_does_not_go_on(until, leader, leader_epoch):
    history = a_controller_that_sleeps()
    until(history)
    effects = history.state("t", 1, leader, leader_epoch, [1, 3], OLD)
    assert [line for line in of(OLD, history, effects) if "t-0" in line] == []


def becomes_controller_again(history: ZnodeHistory) -> None:
    history.delete("/controller")
    history.controller(1, NEW + 1)


def test_from_2_1_on_its_writes_are_refused_and_so_nothing_is_kept_of_it():
    assert a_controller_that_sleeps((2, 0)).context.header.former.unfenced is not None
    assert a_controller_that_sleeps((2, 1)).context.header.former.unfenced is None


def test_one_that_was_doing_nothing_has_nothing_to_go_on_with():
    history = deposed(ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC))
    assert history.context.header.former.unfenced is None


def test_what_it_writes_while_the_next_one_takes_over_is_no_sign_of_sleep():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.delete("/controller")
    history.controller(3, NEW)
    effects = history.state("t", 0, 1, 1, [1], OLD)
    assert of(OLD, history, effects) == []


def test_it_creates_partitions_as_their_topic_says_by_then():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.topic("n", {0: [2]})  # nobody who is there can lead it
    deposed(history)
    history.reassign(("n", 0, [3, 1]))
    history.topic("n", {0: [3, 1, 2]})
    effects = history.state("n", 0, 3, 0, [3, 1], OLD)
    assert of(OLD, history, effects) == [
        "n-0 NonExistentPartition -> NewPartition",
        "n-0@1 NonExistentReplica -> NewReplica",
        "n-0@2 NonExistentReplica -> NewReplica",
        "n-0@3 NonExistentReplica -> NewReplica",
        "n-0 NewPartition -> OnlinePartition leader=3 epoch=0 isr=[3, 1]",
        "n-0@1 NewReplica -> OnlineReplica",
        "n-0@2 NewReplica -> OnlineReplica",
        "n-0@3 NewReplica -> OnlineReplica",
        "LeaderAndIsr to 1: n-0 leader=3 epoch=0 isr=[3, 1] new",
        "LeaderAndIsr to 3: n-0 leader=3 epoch=0 isr=[3, 1] new",
    ]


def test_of_a_deletion_nothing_is_done_behind_what_fails():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC | {"d": {0: ([3, 1], 3, 0, [3, 1])}})
    history.broker_leaves(2)
    history.delete_topic("d")
    deposed(history)  # the next one has begun to delete the topic
    effects = history.state("t", 2, -1, 1, [2], OLD) + history.state("t", 1, 1, 1, [1, 3], OLD)
    assert [line for line in of(OLD, history, effects) if "d-0" in line] == [
        "StopReplica to 1: d-0",
        "StopReplica to 3: d-0",
    ]


def test_a_topic_that_is_gone_by_then_is_gone():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC | {"d": {0: ([2, 1], 2, 0, [2, 1])}})
    history.broker_leaves(2)
    deposed(history)
    history.delete("/brokers/topics/d/partitions/0/state")
    history.delete("/brokers/topics/d")
    effects = history.state("t", 2, -1, 1, [2], OLD) + history.state("t", 1, 1, 1, [1, 3], OLD)
    assert [line for line in of(OLD, history, effects) if "d-0" in line] == []


def test_a_reassignment_is_not_begun_whose_request_is_gone_by_then():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.reassign(("t", 1, [1, 3]))
    deposed(history)
    history.delete("/admin/reassign_partitions")
    effects = history.state("t", 2, -1, 1, [2], OLD)
    assert not any("to move" in row.cause for row in effects if isinstance(row, Transition | Request))
