"""Actions of the controller while leaders change ISRs, brokers shut down in turn, and brokers die together.

Stories in which one lengthy thing meets another belong here. Each follows a recorded controller.
"""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.row import Row
from tests.controller.znode_history import ZnodeHistory, assert_all_as_expected, on, t0

ALL = (1, 2, 3)
BACKOFF = {"controlled.shutdown.retry.backoff.ms": 1_000}


def told_finally(rows: list[Row], broker: int) -> list[tuple[int | None, tuple[int, ...] | None]]:
    """Return leader epoch and ISR of the final requests to a broker, in order."""
    requests = [row for row in rows if isinstance(row, Request) and row.status is Status.FINAL]
    sent = [row for row in requests if row.api == "LeaderAndIsr" and broker in row.brokers]
    return [(state.leader_epoch, state.isr) for row in sent for state in row.partition_states]


def causes_of(rows: list[Row]) -> list[str]:
    """Return the causes of certain moves, one for each event."""
    certain = [row for row in rows if isinstance(row, Transition) and row.status is Status.FINAL]
    return list({row.effect.rpartition("-")[0]: row.cause for row in certain}.values())


# A shutdown that is under way


def test_a_shutdown_under_way_moves_what_a_replica_got_in_sync_for_as_one_attempt():
    topics = on([2, 3], 2, 0, [2, 3]) | {"u": {0: ([2, 3], 2, 0, [2])}}
    history = ZnodeHistory(release=(0, 11), settings=BACKOFF).start(*ALL, topics=topics)
    history.state("t", 0, 3, 1, [3])
    assert set(history.context.header.shutdowns.attempts) == {2}  # u has no other in-sync replica yet
    history.state("u", 0, 2, 0, [2, 3])
    history.state("u", 0, 3, 1, [3])
    assert causes_of(history.effects) == ["ControlledShutdown: broker 2 shuts down"] * 2
    assert history.context.header.shutdowns.attempts == {}  # it leads no partition any more, and will not ask again
    assert not [row for row in history.heartbeat(10_000) if isinstance(row, Transition)]
    assert_all_as_expected(history)


def test_a_shutdown_that_is_under_way_and_leaves_something_is_tried_again():
    topics = {name: {0: ([2, 3], 2, 0, [2])} for name in ("u", "v")} | on([2, 3], 2, 0, [2, 3])
    history = ZnodeHistory(release=(0, 11), settings=BACKOFF).start(*ALL, topics=topics)
    history.state("t", 0, 3, 1, [3])
    history.state("u", 0, 2, 0, [2, 3])
    history.state("u", 0, 3, 1, [3])
    assert set(history.context.header.shutdowns.attempts) == {2}  # v


# Brokers that shut down one behind the other


def test_a_controller_that_shuts_down_itself_and_was_let_go_answers_nobody():
    """It closes its sockets first, so later requests fail and use up their attempts."""
    topics = on([2, 3], 2, 0, [2, 3]) | {"u": {0: ([2, 1], 2, 0, [2])}, "v": {0: ([1, 3], 1, 0, [1, 3])}}
    history = ZnodeHistory(settings=BACKOFF).start(*ALL, topics=topics)
    history.state("t", 0, 3, 1, [3])
    assert set(history.context.header.shutdowns.attempts) == {2}
    history.state("v", 0, 3, 1, [3])  # the controller's own broker. 3 leads all its partitions now
    seen = len(history.effects)
    history.heartbeat(10_000)
    assert causes_of(history.effects[seen:]) == []
    assert history.context.header.shutdowns.attempts == {}


# A shutdown that no znode showed


def test_a_new_controller_sends_its_copy_until_it_reads_the_offline_state_again():
    topics = {"t": {0: ([1, 2, 3], 1, 0, [1])}, "u": {0: ([3], 3, 0, [3])}}  # 3 is not there
    moving = {"adding_replicas": {"0": [2]}, "removing_replicas": {"0": [3]}}
    history = ZnodeHistory(release=(2, 6)).start(1, 2, topics=topics, **moving)
    history.delete("/controller")
    history.controller(2, 2)
    history.state("t", 0, 1, 0, [1, 2], 1)  # the new replica is in sync before the failover comes to it
    history.state("u", 0, -1, 1, [3])
    history.state("t", 0, 1, 1, [1, 2])
    assert told_finally(history.effects, broker=2) == [
        (0, (1,)),  # 2 is online
        (0, (1, 2)),  # 3 is not
        (0, (1, 2)),  # the reassignment ends: 2 is online
        (1, (1, 2)),
        (1, (1, 2)),
    ]


@pytest.mark.parametrize("retries", [1, 3])
def test_a_reassignment_that_ends_without_its_leader_shows_the_leaders_shutdown(retries):
    settings = BACKOFF | {"controlled.shutdown.max.retries": retries}
    topics = on([1, 3], 1, 4, [1]) | {"followed": {0: ([3, 1], 3, 0, [3])}}
    history = ZnodeHistory(release=(2, 4), settings=settings).start(1, 2, 3, controller=3, topics=topics)
    history.reassign(("t", 0, [1, 2]))
    history.topic("t", {0: [1, 2, 3]}, adding_replicas={"0": [2]}, removing_replicas={"0": [3]})
    history.the_controller_writes_its_due("t")
    history.state("t", 0, 1, 5, [1, 2])
    assert t0(history) == (1, 6, (1, 2))  # 1 would go on leading
    history.state("t", 0, 2, 6, [1, 2])
    assert history.context.header.shutdowns.under_way == (1,)
    assert history.gauges().divergences == {}
    assert (1 in history.context.header.shutdowns.attempts) == (retries > 1)
    stops = [row for row in history.effects if isinstance(row, Request) and row.api == "StopReplica"]
    assert "followed" in {state.topic for row in stops for state in row.partition_states}


# When brokers are asked


def test_brokers_are_asked_to_delete_only_after_what_the_controller_writes_before():
    topics = on([1, 2, 3], 1, 0, [1, 2, 3])
    history = ZnodeHistory().start(1, 2, 3, controller=1, topics=topics)
    history.delete_topic("t")
    asked_ms = history.context.topics["t"].asked_ms
    history.the_controller_writes_its_due("t")
    assert history.context.topics["t"].asked_ms > asked_ms


# Memory of a controller


@pytest.mark.parametrize(("release", "moves"), [((0, 10), True), ((0, 11), False)])
def test_up_to_0_10_a_process_that_is_controller_again_resumes_its_reassignments(release, moves):
    history = ZnodeHistory(release=release).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.reassign(("t", 0, [1, 3]))
    history.topic("t", {0: [1, 2, 3]})
    history.the_controller_writes_its_due("t")
    history.delete("/admin/reassign_partitions")
    history.delete("/controller")
    history.controller(1, 2)
    assert history.context.topics["t"].partitions[0].reassigning is moves


def test_another_process_knows_nothing_of_what_a_controller_was_reassigning():
    history = ZnodeHistory(release=(0, 10)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.reassign(("t", 0, [1, 3]))
    history.topic("t", {0: [1, 2, 3]})
    history.the_controller_writes_its_due("t")
    history.delete("/admin/reassign_partitions")
    history.controller_dies(1)
    history.broker(1)  # another process
    history.controller(1, 2)
    assert not history.context.topics["t"].partitions[0].reassigning
