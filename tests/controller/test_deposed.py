"""A controller up to 2.0 that slept through the end of its term, and goes on as if it were still in office."""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from tests.controller.znode_history import ZnodeHistory, topic_znode

OLD, NEW = 1, 2  # the epochs of the two controllers

# Broker 2 leads t-0 and t-2 and follows in t-1; the controller on broker 1 waits for its connection when it dies.
TOPIC = {"t": {0: ([2, 1], 2, 0, [2, 1]), 1: ([1, 2, 3], 1, 0, [1, 2, 3]), 2: ([2], 2, 0, [2])}}


def a_controller_that_sleeps(release: tuple[int, int] = (2, 0)) -> ZnodeHistory:
    """Kill broker 2, depose broker 1 before it has reacted, and let broker 3 take over and react."""
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
    """Return the final moves and requests of the controller with this epoch."""
    mine = [row for row in effects if isinstance(row, Transition | Request) and row.controller_epoch == epoch]
    final = [row for row in mine if row.status is Status.FINAL and getattr(row, "api", "") != "UpdateMetadata"]
    return [line.removeprefix("final ") for line in (*history.transitions(final), *history.requests(final))]


def test_it_goes_on_with_a_death_but_leaves_alone_what_the_next_one_has_written():
    history = a_controller_that_sleeps()
    states = history.context.topics["t"].partitions[1].all_replica_states
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
    assert history.context.topics["t"].partitions[1].all_replica_states == states
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
    assert a_controller_that_sleeps((2, 0)).context.header.former.unfenced != {}
    assert a_controller_that_sleeps((2, 1)).context.header.former.unfenced == {}


def test_one_that_was_doing_nothing_has_nothing_to_go_on_with():
    history = deposed(ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC))
    assert history.context.header.former.unfenced == {}


def loading(history: ZnodeHistory) -> ZnodeHistory:
    """Let the next controller, on broker 3, take over. It has not written yet."""
    history.delete("/controller")
    history.controller(3, NEW)
    return history


def test_what_it_writes_while_the_next_one_loads_is_its_own():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics={"t": {0: ([2, 1], 2, 0, [2, 1])}})
    history.broker_leaves(2)
    loading(history)
    effects = history.state("t", 0, 1, 1, [1], OLD)
    assert of(OLD, history, effects) == [
        "t-0 OnlinePartition -> OfflinePartition",
        "t-0 OfflinePartition -> OnlinePartition leader=1 epoch=1 isr=[1]",
        "t-0@2 OnlineReplica -> OfflineReplica",
        "LeaderAndIsr to 1: t-0 leader=1 epoch=1 isr=[1]",  # after the election, and after the removal
        "LeaderAndIsr to 1: t-0 leader=1 epoch=1 isr=[1]",
        "StopReplica to 2: t-0",
    ]
    effects = history.state("t", 0, 1, 2, [1], NEW)
    assert of(NEW, history, effects) == [
        "t-0@1 OnlineReplica -> OnlineReplica",
        "t-0 OfflinePartition -> OnlinePartition leader=1 epoch=2 isr=[1]",
        "LeaderAndIsr to 1: t-0 leader=2 epoch=0 isr=[2, 1]",  # as it had loaded it
        "LeaderAndIsr to 1: t-0 leader=1 epoch=2 isr=[1]",
    ]
    assert history.gauges().divergences.keys() <= {"stale_controller_epoch"}


def test_what_it_creates_while_the_next_one_loads_is_found_by_that():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3)
    history.topic("n", {0: [2, 1]})
    history.broker_leaves(2)
    loading(history)
    effects = history.state("n", 0, 2, 0, [2, 1], OLD)
    assert "n-0 NewPartition -> OnlinePartition leader=2 epoch=0 isr=[2, 1]" in of(OLD, history, effects)
    effects = history.state("n", 0, 1, 1, [1], OLD)
    assert "n-0 OfflinePartition -> OnlinePartition leader=1 epoch=1 isr=[1]" in of(OLD, history, effects)
    assert [line for line in of(NEW, history, effects) if "->" in line] == ["n-0@1 OnlineReplica -> OnlineReplica"]


def test_what_it_creates_later_is_not_found_by_a_load_that_is_over():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.topic("n", {0: [1]})
    history.broker_leaves(2)
    deposed(history)
    history.delete("/brokers/topics/n/partitions/0/state")  # by hand
    effects = history.state("n", 0, 1, 0, [1], OLD)
    assert "n-0 NewPartition -> OnlinePartition leader=1 epoch=0 isr=[1]" in of(OLD, history, effects)
    assert [line for line in of(NEW, history, effects) if "n-" in line] == []


def test_a_reassignment_that_it_begins_while_the_next_one_loads_is_loaded_by_that():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.reassign(("t", 0, [3, 1]))
    history.delete("/admin/reassign_partitions", author=0x999, cxid=1)  # by hand. It had read the request before
    history.broker_leaves(2)
    loading(history)
    assigned = topic_znode({0: [3, 1, 2], 1: [1, 2, 3], 2: [2]})
    effects = history.write("/brokers/topics/t", assigned, author=history.session_of(1))
    effects += history.state("t", 0, 2, 1, [2, 1], OLD)
    assert "t-0@3 NonExistentReplica -> NewReplica" in of(OLD, history, effects)
    history.the_controller_writes_its_due()
    assert "t-0@3 OnlineReplica -> OnlineReplica" in of(NEW, history, tuple(history.effects))
    assert history.context.topics["t"].partitions[0].replicas == (3, 1, 2)
    assert history.gauges().divergences.keys() <= {"stale_controller_epoch"}


def test_several_go_on_and_whatever_becomes_of_later_controllers():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, 4, topics=TOPIC)
    history.broker_leaves(2)
    deposed(history)
    history.broker_leaves(4)
    history.broker(4)
    history.delete("/controller")
    history.controller(4, 3)
    history.heartbeat(5_000)
    history.state("t", 1, 1, 1, [1, 3], OLD)
    history.delete("/controller")
    history.controller(3, 4)  # the states that the first one still has to write stay due
    effects = history.state("t", 2, -1, 1, [2], OLD)
    assert "t-2@2 OnlineReplica -> OfflineReplica" in of(OLD, history, effects)


def test_what_it_still_has_to_write_outlives_the_plans_of_later_controllers():
    history = a_controller_that_sleeps()
    history.state("t", 1, 1, 1, [1, 3], OLD)  # the state of t-2 is still due
    history.broker(2)
    assert history.predicted("t", 2) == (2, 2, (2,))
    history.delete("/controller")
    history.controller(2, 3)
    due = [action.event for action in history.context.topics["t"].partitions[2].queue if action.writes]
    assert OLD in {history.context.header.events[event].epoch for event in due}


@pytest.mark.parametrize(
    ("then", "done"),
    [
        pytest.param(lambda history: becomes_controller_again(history), True, id="it is controller again"),
        pytest.param(lambda history: history.broker_leaves(1), False, id="its broker goes"),
    ],
)
def test_what_it_has_begun_is_done_before_it_is_controller_again(then, done):
    history = a_controller_that_sleeps()
    history.state("t", 1, 1, 1, [1, 3], OLD)  # the state of t-2 is still due
    seen = len(history.effects)
    then(history)
    history.heartbeat()
    assert ("StopReplica to 2: t-1" in of(OLD, history, tuple(history.effects[seen:]))) == done
    assert "write_never_came" not in history.gauges().divergences


ALL_WRITTEN = {"t": {0: ([2, 1], 2, 0, [2, 1])}}  # by the next controller


@pytest.mark.parametrize(
    ("then", "done"),
    [
        pytest.param(lambda history: becomes_controller_again(history), True, id="it is controller again"),
        pytest.param(lambda history: history.heartbeat(31_000), True, id="it has waited for as long as it may"),
        pytest.param(lambda history: history.broker_closes(1), True, id="it closes its session"),
        pytest.param(lambda history: history.broker_leaves(1), False, id="its broker goes"),
    ],
)
def test_what_needs_no_write_is_done_by_one_that_lives_on(then, done):
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=ALL_WRITTEN)
    history.broker_leaves(2)
    deposed(history)
    seen = len(history.effects)
    then(history)
    effects = tuple(history.effects[seen:])
    expected = ["t-0 OnlinePartition -> OfflinePartition", "StopReplica to 2: t-0"]
    assert of(OLD, history, effects) == (expected if done else [])
    rows = [row for row in effects if isinstance(row, Transition) and row.topic == "t" and row.controller_epoch == OLD]
    assert {row.inferred_by for row in rows} == ({"ran-unfenced"} if done else set())


@pytest.mark.parametrize(
    ("before", "lost"),
    [
        pytest.param(lambda history: history.topic("n", {0: [2]}), {}, id="it was in another event"),
        pytest.param(lambda history: None, {"author": 1}, id="its session is over"),
        pytest.param(lambda history: history.state("t", 0, 2, 0, [2]), {}, id="it would have written"),
    ],
)
def test_nothing_is_known_of_one_that_may_not_have_gone_on(before, lost):
    topics = ALL_WRITTEN | {"u": {0: ([1, 2], 1, 0, [1, 2])}} if before(ZnodeHistory()) else ALL_WRITTEN
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=topics)
    before(history)
    history.broker_leaves(2)
    history.delete("/controller", **({"author": history.session_of(1)} if lost else {}))
    history.controller(3, NEW)
    history.the_controller_writes_its_due()
    assert of(OLD, history, history.heartbeat(31_000)) == []


def test_one_that_still_loads_does_nothing_that_came_meanwhile():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.controller_dies(1)
    history.controller(3, NEW)
    history.now_ms += 100
    history.topic("n", {0: [3]})
    history.broker(1)
    history.delete("/controller")
    history.controller(1, 3)
    (waiting,) = history.context.header.former.unfenced.values()
    assert {event.kind.value for event in waiting.events.values()} == {"ControllerFailover"}


def test_one_that_is_elected_again_at_once_goes_on_with_nothing():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.delete("/controller")
    history.controller(1, NEW)
    assert history.context.header.former.unfenced == {}


def test_it_creates_partitions_as_their_topic_says_by_then():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.topic("n", {0: [2]})  # no live broker can lead it
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


def test_what_it_goes_on_with_keeps_the_rule_that_it_rests_on():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=TOPIC)
    history.state("t", 0, 1, 1, [1])  # broker 2 has asked to be shut down
    deposed(history)
    history.state("t", 0, 1, 2, [1], NEW)
    effects = history.state("t", 1, 1, 1, [1, 3], OLD)
    rows = [row for row in effects if isinstance(row, Transition | Request) and row.controller_epoch == OLD]
    assert {row.inferred_by for row in rows} == {"shutdown-asked"}


def test_what_it_elects_before_the_next_one_reads_is_loaded_as_online():
    history = ZnodeHistory(release=(1, 1)).start(1, 2, 3, topics={"t": {0: ([2, 3], 2, 0, [2, 3])}})
    history.broker_leaves(2)
    history.delete("/controller")
    history.controller(3, NEW)
    history.state("t", 0, 3, 1, [3], OLD)
    history.broker(4)
    effects = history.heartbeat(5_000)
    assert "t-0@3 OnlineReplica -> OnlineReplica" in of(NEW, history, effects)
    assert not [line for line in of(NEW, history, effects) if line.endswith("-> OnlinePartition")]
    assert history.gauges().offline_partitions == history.gauges().pending_writes == 0
