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


def test_what_it_still_has_to_write_outlives_the_plans_of_later_controllers():
    history = a_controller_that_sleeps()
    history.state("t", 1, 1, 1, [1, 3], OLD)  # the state of t-2 is still due
    history.broker(2)
    assert history.predicted("t", 2) == (2, 2, (2,))
    history.delete("/controller")
    history.controller(2, 3)
    due = [action.event for action in history.context.topics["t"].partitions[2].queue if action.writes]
    assert OLD in {history.context.header.events[event].epoch for event in due}


ALL_WRITTEN = {"t": {0: ([2, 1], 2, 0, [2, 1])}}  # by the next controller


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
