"""Traps about reassignments and deletions for a replica that follows Kafka's documentation alone.

A release in brackets names where a behaviour applies.
"""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from tests.controller.znode_history import ZnodeHistory, t0

REASSIGN = "/admin/reassign_partitions"
BROKERS = (1, 2, 3, 4)


def on_1_2_3(release: tuple[int, int] | None = None, brokers: tuple[int, ...] = BROKERS) -> ZnodeHistory:
    topics = {"t": {0: ([1, 2, 3], 1, 0, [1, 2, 3]), 1: ([2, 3, 1], 2, 0, [2, 3, 1])}}
    return ZnodeHistory(release=release).start(*brokers, topics=topics)


def moving(history: ZnodeHistory, replicas: list[int], adding: list[int], removing: list[int]) -> None:
    """Write the topic's znode as the controller does for partition 0 after a request by API or znode."""
    more = {
        "adding_replicas": {"0": adding} if adding else {},
        "removing_replicas": {"0": removing} if removing else {},
    }
    history.topic("t", {0: replicas, 1: [2, 3, 1]}, **more)


def assert_settled(history: ZnodeHistory, leader: int, epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...]):
    row, gauges = history.row("t", 0), history.gauges()
    assert (row.leader, row.leader_epoch, row.isr, row.replicas) == (leader, epoch, isr, replicas)
    assert (row.adding_replicas, row.removing_replicas) == ((), ())
    assert (gauges.pending_writes, gauges.divergences) == (0, {})


# 13 and 14, the triggers


# Trap 13. The znodes for reassignments and preferred elections trigger when they are created (from 1.1). An edit
# triggers nothing.
@pytest.mark.parametrize("path", [REASSIGN, "/admin/preferred_replica_election"])
@pytest.mark.parametrize(("release", "counts"), [((3, 9), False), ((1, 0), True)])
def test_trap_13_an_edit_of_a_trigger_znode_counts_up_to_1_0_only(path, release, counts):
    history = ZnodeHistory(release=release).start(1, 2, topics={"t": {0: ([2, 1], 1, 0, [1, 2])}})
    history.write(path, {"version": 1, "partitions": []})
    history.write(path, {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})
    assert (t0(history) is not None) == counts


# Trap 14. Deleting the reassignment znode by hand hides the next one until a failover (from 2.4).
def test_trap_14_deleting_the_reassign_znode_by_hand_hides_the_next_one():
    history = on_1_2_3()
    history.reassign(("t", 0, [9, 2, 3]))  # 9 never comes, so it stays in progress
    moving(history, [9, 2, 3, 1], [9], [1])
    history.state("t", 0, 1, 1, [1, 2, 3])
    history.delete(REASSIGN)
    history.reassign(("t", 1, [3, 2, 1]))
    assert history.predicted("t", 1) is None
    history.delete("/controller")
    history.controller(2, 2)
    assert history.predicted("t", 1) == (2, 1, (2, 3, 1))


@pytest.mark.parametrize("content", [b"not json", {"version": 1, "partitions": []}])
def test_trap_14_an_empty_reassign_znode_stays_and_its_deletion_by_hand_blinds_too(content):
    history = on_1_2_3()
    history.write(REASSIGN, content)
    history.delete(REASSIGN)
    history.reassign(("t", 1, [3, 2, 1]))
    assert history.predicted("t", 1) is None


def test_trap_14_a_controller_that_removes_the_znode_itself_sees_the_next_one():
    history = on_1_2_3()
    history.reassign(("t", 0, [3, 2, 1]))
    moving(history, [3, 2, 1], [], [])
    history.state("t", 0, 1, 1, [1, 2, 3])
    moving(history, [3, 2, 1], [], [])
    history.delete(REASSIGN)
    history.reassign(("t", 1, [3, 2, 1]))
    assert history.predicted("t", 1) == (2, 1, (2, 3, 1))


def test_trap_14_a_new_controller_takes_up_the_reassign_znode_it_finds():
    history = on_1_2_3()
    history.delete("/controller")
    history.reassign(("t", 0, [3, 2, 1]))
    assert t0(history) is None
    history.controller(2, 2)
    assert t0(history) == (1, 1, (1, 2, 3))


# 15 to 17, the cost of a reassignment, its source of truth, its completion


# Trap 15. A reassignment raises the leader epoch at its start, at its end and for each removed ISR member. Each
# resume repeats the start.
def test_trap_15_an_identical_list_still_costs_an_epoch():
    history = on_1_2_3()
    history.reassign(("t", 0, [1, 2, 3]))
    assert t0(history) == (1, 1, (1, 2, 3))
    history.state("t", 0, 1, 1, [1, 2, 3])
    moving(history, [1, 2, 3], [], [])
    assert_settled(history, 1, 1, (1, 2, 3), (1, 2, 3))


def test_trap_15_an_identical_list_costs_nothing_up_to_2_3():
    history = on_1_2_3((2, 3))
    history.reassign(("t", 0, [1, 2, 3]))
    assert t0(history) is None


# Trap 16. Adding and removing replicas are in the topic's znode (from 2.4). Before, only the reassignment znode has
# the target.
def test_trap_16_up_to_2_3_the_target_stands_only_in_the_reassign_znode():
    history = on_1_2_3((2, 3))
    history.reassign(("t", 0, [4, 2]))
    assert t0(history) == (1, 1, (1, 2, 3))
    history.write("/brokers/topics/t", {"version": 1, "partitions": {"0": [1, 4, 3, 2], "1": [2, 3, 1]}})
    assert set(history.row("t", 0).replicas) == {1, 2, 3, 4}
    history.state("t", 0, 1, 1, [1, 2, 3])
    history.state("t", 0, 1, 1, [1, 2, 3, 4])
    assert t0(history) == (4, 4, (2, 4))
    history.state("t", 0, 4, 2, [1, 2, 3, 4])
    history.state("t", 0, 4, 3, [2, 3, 4])
    history.state("t", 0, 4, 4, [2, 4])
    history.write("/brokers/topics/t", {"version": 1, "partitions": {"0": [4, 2], "1": [2, 3, 1]}})
    assert_settled(history, 4, 4, (2, 4), (4, 2))


# Trap 17. A reassignment is complete once its target is in the ISR. A dead removed replica leaves its log behind.
def test_trap_17_a_removed_replica_that_is_dead_never_gets_stop_replica():
    topics = {"t": {0: ([1, 2, 9], 1, 0, [1, 2])}}
    history = ZnodeHistory().start(1, 2, topics=topics)
    effects = history.reassign(("t", 0, [1, 2]))
    effects += history.state("t", 0, 1, 1, [1, 2])
    effects += history.topic("t", {0: [1, 2]})
    stops = [row for row in effects if isinstance(row, Request) and row.api == "StopReplica"]
    assert stops == []
    assert history.row("t", 0).replicas == (1, 2)
    assert not [line for line in history.requests(history.broker(9)) if "t-0" in line]


# 18, 19, 22: deletion


# Trap 18. A reassignment does not delay a deletion request.
def test_trap_18_a_live_request_to_delete_is_not_postponed_by_a_reassignment():
    history = on_1_2_3()
    moving(history, [4, 2, 3, 1], [4], [1])
    history.state("t", 0, 1, 1, [1, 2, 3])
    history.delete_topic("t")
    assert t0(history) == (-1, 4, (3,))
    assert history.predicted("t", 1) is not None


def test_trap_18_only_a_failover_finds_the_reassignment_in_the_way():
    history = on_1_2_3()
    moving(history, [4, 2, 3, 1], [4], [1])
    history.state("t", 0, 1, 1, [1, 2, 3])
    history.delete("/controller")
    history.delete_topic("t")
    history.controller(2, 2)
    assert t0(history) == (1, 2, (1, 2, 3))  # the start of the reassignment, again
    assert history.gauges().topics_ineligible_to_delete == 1


# Trap 19. A deletion removes the leader and raises the leader epoch before any znode vanishes. A broker's error
# leaves it stuck until that broker restarts or a failover.
def test_trap_19_a_deletion_that_a_broker_never_answers_is_stuck_until_it_bounces():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(600_000)
    gauges = history.gauges()
    assert (gauges.replicas_to_delete, gauges.replicas_by_state["ReplicaDeletionStarted"]) == (2, 2)
    effects = history.broker_bounces(2)
    moves = history.moves(effects, Status.FINAL) + history.moves(effects, Status.PROVISIONAL)
    assert "t-0@2 ReplicaDeletionStarted -> ReplicaDeletionIneligible" in moves
    assert "t-0@2 OfflineReplica -> ReplicaDeletionStarted" in moves
    assert "final StopReplica to 2: t-0 delete" in history.requests(effects + history.the_controller_writes_its_due())


# 20 and 21: hands in the topic znode


# Trap 20. The controller ignores edits of replica lists and removed partitions, and overwrites them later.
def test_trap_20_an_edited_replica_list_is_ignored_and_later_overwritten():
    history = on_1_2_3()
    moving(history, [4, 3, 2], [], [])
    assert history.row("t", 0).replicas == (1, 2, 3)
    assert history.gauges().divergences == {"assignment_edited": 1}
    history.reassign(("t", 1, [2, 3]))
    history.topic("t", {0: [1, 2, 3], 1: [2, 3, 1]}, removing_replicas={"1": [1]})
    assert history.row("t", 0).replicas == (1, 2, 3)
    assert history.gauges().divergences == {"assignment_edited": 1}


def test_trap_20_an_edited_replica_list_counts_from_the_next_failover_on():
    history = on_1_2_3()
    moving(history, [4, 3, 2], [], [])
    history.delete("/controller")
    history.controller(2, 2)
    assert history.row("t", 0).replicas == (4, 3, 2)


def test_trap_20_a_removed_partition_is_ignored():
    history = on_1_2_3()
    history.topic("t", {1: [2, 3, 1]})
    assert history.row("t", 0).replicas == (1, 2, 3)
    history.broker_leaves(1)
    assert t0(history) == (2, 1, (2, 3))


# Trap 21. A topic that was deleted by hand and created again has no leader until a failover.
def test_trap_21_a_topic_recreated_by_hand_stays_leaderless_until_failover():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.delete("/brokers/topics/t/partitions/0/state")
    history.delete("/brokers/topics/t")
    history.topic("t", {0: [1, 2]})
    assert t0(history) is None
    assert history.gauges().pending_writes == 0
    history.delete("/controller")
    history.controller(2, 2)
    assert t0(history) == (1, 0, (1, 2))


def test_trap_21_a_topic_deleted_in_order_and_made_again_is_created():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.topic_vanishes("t", 0)
    history.topic("t", {0: [2, 1]})
    assert t0(history) == (2, 0, (2, 1))


# 25 and 26: gauges


# Trap 25. OfflinePartitionsCount follows the state machine from 2.1 on. Before, it counts partitions whose leader is
# dead.
def test_trap_25_from_2_1_a_topic_removed_by_hand_stays_in_the_offline_count():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2], 2, 0, [2])}})
    history.broker_leaves(2)
    history.state("t", 0, -1, 1, [2])
    history.delete("/brokers/topics/t/partitions/0/state")
    history.delete("/brokers/topics/t")
    assert history.gauges().offline_partitions == 1
    history.delete("/controller")
    history.controller(1, 2)
    assert history.gauges().offline_partitions == 0


@pytest.mark.parametrize(("release", "offline"), [((3, 9), 0), ((2, 1), 0), ((2, 0), 1), ((1, 1), 1)])
def test_trap_25_up_to_2_0_no_leader_counts_as_offline_whatever_the_state(release, offline):
    # 9 is dead and in the ISR. Its reassignment is complete at once, no replica can be elected, and 1 leaves.
    history = ZnodeHistory(release=release).start(1, 2, topics={"t": {0: ([1, 9], 1, 0, [1, 9])}})
    history.reassign(("t", 0, [9]))
    history.the_controller_writes_its_due()
    row = history.row("t", 0)
    assert (row.leader, row.isr, row.state) == (-1, (9,), "OnlinePartition")
    assert history.gauges().offline_partitions == offline


@pytest.mark.parametrize("release", [(3, 9), (1, 1), (0, 10)])
def test_trap_25_topics_that_are_being_deleted_do_not_count(release):
    settings = {"delete.topic.enable": True}  # not the default of 0.10
    history = ZnodeHistory(release=release, settings=settings).start(1, 2, topics={"t": {0: ([1, 9], 1, 0, [1])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    assert history.row("t", 0).leader == -1
    assert history.gauges().offline_partitions == 0


# Trap 26. A preferred replica that is being added counts as imbalanced once it is in the ISR (from 2.4).
def test_trap_26_an_adding_preferred_replica_is_imbalanced_only_once_in_the_isr():
    history = on_1_2_3()
    moving(history, [4, 2, 3, 1], [4], [1])
    history.state("t", 0, 1, 1, [1, 2, 3])
    assert history.gauges().preferred_replica_imbalance == 0
    effects = history.state("t", 0, 1, 1, [1, 2, 3, 4])
    assert history.gauges().preferred_replica_imbalance == 1
    assert any(isinstance(row, Transition) for row in effects)  # it is complete, and the rest follows


def test_trap_26_up_to_2_3_an_adding_preferred_replica_counts_as_any_other():
    history = ZnodeHistory(release=(2, 3)).start(1, 2, 3, 4, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.reassign(("t", 0, [4, 2]))
    assert history.gauges().preferred_replica_imbalance == 1


def test_trap_26_a_partition_is_imbalanced_while_another_than_the_preferred_leads():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 1, 0, [1]), 1: ([2, 1], -1, 0, [9])}})
    assert history.gauges().preferred_replica_imbalance == 2
