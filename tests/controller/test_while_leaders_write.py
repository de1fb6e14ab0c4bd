"""Actions of the controller while leaders change ISRs, brokers shut down in turn, and brokers die together.

Stories in which one lengthy thing meets another belong here. Each follows a recorded controller.
"""

import pytest

from controller.contract.effect_rows import Request, Status
from controller.contract.row import Row
from tests.controller.znode_history import ZnodeHistory, on


def told_finally(rows: list[Row], broker: int) -> list[tuple[int | None, tuple[int, ...] | None]]:
    """Return leader epoch and ISR of the final requests to a broker, in order."""
    requests = [row for row in rows if isinstance(row, Request) and row.status is Status.FINAL]
    sent = [row for row in requests if row.api == "LeaderAndIsr" and broker in row.brokers]
    return [(state.leader_epoch, state.isr) for row in sent for state in row.partition_states]


# A shutdown that is under way


# Brokers that shut down one behind the other


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
