"""Reassignments and preferred elections, as ZooKeeper shows them.

After Kafka's own ControllerIntegrationTest, by meaning. Traps are in `test_traps_topics`.
"""

import pytest

from controller.contract.effect_rows import Transition
from tests.controller.znode_history import ZnodeHistory, assert_all_as_expected, on, t0, topic_znode

ALL = (1, 2, 3)


# Reassignment


def reassigning_to_a_dead_broker() -> ZnodeHistory:
    history = ZnodeHistory().start(1, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2]))
    history.topic("t", {0: [2, 1]}, adding_replicas={"0": [2]}, removing_replicas={"0": [1]})
    history.state("t", 0, 1, 1, [1])
    return history


def test_a_reassignment_costs_three_epochs_with_one_replica_to_one_other():
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2]))
    history.state("t", 0, 1, 1, [1])
    history.state("t", 0, 1, 1, [1, 2])
    assert t0(history) == (2, 3, (2,))


def test_a_reassignment_to_a_dead_broker_halts_after_its_start():
    history = reassigning_to_a_dead_broker()
    assert t0(history) is None
    history.heartbeat(60_000)
    assert history.row("t", 0).adding_replicas == (2,)


def test_it_resumes_when_the_broker_comes_and_costs_four_epochs():
    history = reassigning_to_a_dead_broker()
    history.broker(2)
    assert t0(history) == (1, 2, (1,))
    history.state("t", 0, 1, 2, [1])
    history.state("t", 0, 1, 2, [1, 2])
    assert t0(history) == (2, 4, (2,))
    history.the_controller_writes_its_due()
    history.topic("t", {0: [2]})
    assert_all_as_expected(history)


@pytest.mark.parametrize("release", [(2, 6), (3, 9)])
def test_new_replicas_in_sync_before_they_are_waited_for_cost_no_epoch(release):
    history = ZnodeHistory(release=release).start(1, 2, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [1, 2]))
    history.topic("t", {0: [1, 2]}, adding_replicas={"0": [2]})
    history.state("t", 0, 1, 1, [1])
    history.delete("/controller")
    history.controller(2, 2)
    assert t0(history) == (1, 2, (1,))  # it begins to wait again
    history.state("t", 0, 1, 1, [1, 2], 1)
    assert t0(history) == (1, 2, (1, 2))  # and has no need to
    moves = history.transitions(history.state("t", 0, 1, 2, [1, 2]))
    assert "final t-0@2 OnlineReplica -> OnlineReplica" in moves
    history.topic("t", {0: [1, 2]})
    assert_all_as_expected(history)


def test_a_reassignment_of_what_is_unknown_or_without_state_is_dropped():
    history = ZnodeHistory().start(1, topics={"t": {0: ([9],)}})
    history.reassign(("nobody", 0, [1]), ("t", 7, [1]), ("t", 0, [1]))
    assert history.gauges().pending_writes == 0


def test_the_last_entry_of_a_partition_counts():
    history = ZnodeHistory().start(*ALL, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2]), ("t", 0, [3]))
    assert history.row("t", 0).replicas == (3, 1)


def test_a_reassignment_by_the_api_supersedes_another():
    history = ZnodeHistory().start(*ALL, topics=on([1], 1, 0, [1]))
    history.topic("t", {0: [2, 1]}, adding_replicas={"0": [2]}, removing_replicas={"0": [1]})
    history.state("t", 0, 1, 1, [1])
    effects = history.topic("t", {0: [3, 1]}, adding_replicas={"0": [3]}, removing_replicas={"0": [1]})
    assert "provisional StopReplica to 2: t-0 delete" in history.requests(effects)
    assert t0(history) == (1, 2, (1,))
    assert history.row("t", 0).replicas == (3, 1)


def test_a_reassignment_that_nobody_directs_is_seen_all_the_same():
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.delete("/controller")
    history.topic("t", {0: [2, 1]}, adding_replicas={"0": [2]}, removing_replicas={"0": [1]})
    assert history.row("t", 0).adding_replicas == (2,)
    history.controller(2, 2)
    assert t0(history) == (1, 1, (1,))


def test_an_identical_reassignment_by_the_api_is_explained_by_its_bump():
    history = ZnodeHistory().start(1, 2, topics=on([1, 2], 1, 4, [1, 2]))
    effects = history.state("t", 0, 1, 5, [1, 2])
    assert "final LeaderAndIsr to 2: t-0 leader=1 epoch=5 isr=[1, 2]" in history.requests(effects)
    history.topic("t", {0: [1, 2]})
    assert_all_as_expected(history)


def test_a_completion_whose_leader_is_dead_elects_from_the_target():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2, 3], 1, 0, [1, 2, 3]))
    history.reassign(("t", 0, [2, 3]))
    history.the_controller_writes_its_due()
    history.topic("t", {0: [2, 3]})
    row = history.row("t", 0)
    assert (row.leader, row.isr, row.leader_epoch) == (2, (2, 3), 2)
    assert history.gauges().elections == {"ReassignPartitionLeaderElection": 1}


def test_a_broker_that_is_no_target_resumes_no_reassignment():
    history = reassigning_to_a_dead_broker()
    history.broker(3)
    assert t0(history) is None


def test_a_completion_whose_isr_change_nobody_read_is_seen_in_its_election():
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2]))
    history.topic("t", {0: [2, 1]}, adding_replicas={"0": [2]}, removing_replicas={"0": [1]})
    history.state("t", 0, 1, 1, [1])
    history.lose("t", 0)  # the leader's own write: 2 is in sync
    effects = history.state("t", 0, 2, 2, [1, 2])
    assert "final t-0@2 NewReplica -> OnlineReplica" in history.transitions(effects)
    assert t0(history) == (2, 3, (2,))
    history.the_controller_writes_its_due()
    history.topic("t", {0: [2]})
    gauges = history.gauges()
    assert (gauges.elections, gauges.isr_changes) == ({"ReassignPartitionLeaderElection": 1}, {"expand": 1})
    assert_all_as_expected(history)


def test_a_completion_whose_isr_change_nobody_read_is_seen_in_the_topics_znode():
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2, 1]))
    history.topic("t", {0: [2, 1]}, adding_replicas={"0": [2]})
    history.state("t", 0, 1, 1, [1])
    effects = history.topic("t", {0: [2, 1]})
    assert {row.cause for row in effects if isinstance(row, Transition)} == {
        "AlterPartitionReceived: the new replicas of partition t-0 are in sync"
    }
    assert t0(history) == (1, 2, (1,))
    history.lose("t", 0)
    history.state("t", 0, 1, 2, [1, 2])
    assert history.row("t", 0).adding_replicas == ()
    assert_all_as_expected(history)


def test_a_completion_of_a_partition_without_state_has_no_leader_to_move():
    history = ZnodeHistory().start(1, topics={"t": {0: ([9],)}})
    history.topic("t", {0: [8, 9]}, adding_replicas={"0": [8]}, removing_replicas={"0": [9]})
    history.topic("t", {0: [8]})
    row = history.row("t", 0)
    assert (row.replicas, row.adding_replicas, row.state) == ((8,), (), "NewPartition")
    assert_all_as_expected(history)


def test_a_reassignment_that_ends_before_its_writes_takes_the_due_ones_with_it():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    history.broker_leaves(2)
    history.topic("t", {0: [3, 1]})
    assert t0(history) == (1, 1, (1,))
    history.lose("t", 0, 3)
    effects = history.state("t", 0, 3, 4, [1, 3])
    assert "withdrawn t-0@2 OnlineReplica -> OfflineReplica" in history.transitions(effects)
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences) == (
        0,
        {"assignment_edited": 1, "missed_changes": 3, "unexplained_write": 1},
    )


def test_reordering_by_the_api_costs_an_epoch_and_changes_the_preferred_replica():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    history.write("/brokers/topics/t", topic_znode({0: [2, 1]}), author=history.session_of(1))
    assert t0(history) == (1, 1, (1, 2))
    history.state("t", 0, 1, 1, [1, 2])
    history.write("/brokers/topics/t", topic_znode({0: [2, 1]}), author=history.session_of(1))
    assert history.row("t", 0).replicas == (2, 1)
    assert history.gauges().preferred_replica_imbalance == 1
    assert_all_as_expected(history)


@pytest.mark.parametrize("release", [None, (2, 3)])
def test_a_change_of_order_by_hand_is_an_edit(release):
    history = ZnodeHistory(release=release).start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    writer = 0x999 if release is None else history.session_of(1)
    history.write("/brokers/topics/t", topic_znode({0: [2, 1]}), author=writer)
    assert history.row("t", 0).replicas == (1, 2)
    assert history.gauges().divergences == {"assignment_edited": 1}


def test_an_isr_with_an_unassigned_replica_is_the_end_of_a_reassignment_not_an_edit():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    history.state("t", 0, 1, 0, [1, 3])
    history.topic("t", {0: [1, 3]})
    assert history.row("t", 0).replicas == (1, 3)
    assert history.gauges().divergences == {"unexplained_write": 1}


def test_a_reassignment_of_which_only_the_end_is_read_is_adopted_and_counted():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("t", {0: [3, 2]})  # it was done by then, and looks like an edit
    history.lose("t", 0, 3)
    history.state("t", 0, 3, 3, [2, 3])
    row = history.row("t", 0)
    assert (row.replicas, row.leader, row.isr, row.problem) == ((3, 2), 3, (2, 3), None)
    gauges = history.gauges()
    assert gauges.divergences == {"assignment_edited": 1, "missed_changes": 3, "unexplained_write": 1}
    history.broker_leaves(3)
    assert t0(history) == (2, 4, (2,))


@pytest.mark.parametrize("by_controller", [True, False])
def test_up_to_2_3_a_reassignment_that_is_taken_up_twice_is_given_up(by_controller):
    """The failover had read the request, and its watch announced it again. The target is assigned already."""
    history = ZnodeHistory(release=(1, 1)).start(1, 2, topics={"t": {0: ([3, 1], 1, 0, [1]), 1: ([1, 3], 1, 0, [1])}})
    history.reassign(("t", 0, [1, 3, 4]), ("t", 1, [1, 3]), ("gone", 0, [1]))
    history.topic("t", {0: [1, 3, 4], 1: [1, 3]})
    history.the_controller_writes_its_due()
    author = {"author": history.session_of(1), "cxid": 9} if by_controller else {}
    history.delete("/admin/reassign_partitions", **author)
    history.broker(4)
    assert history.gauges().pending_writes == (not by_controller)


def test_the_end_of_a_reassign_znode_that_nobody_saw_is_nothing():
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.delete("/admin/reassign_partitions")
    history.reassign(("t", 0, [2]))
    assert t0(history) == (1, 1, (1,))


# Preferred elections


def test_a_preferred_election_whose_replica_is_dead_does_nothing():
    history = ZnodeHistory().start(1, topics=on([9, 1], 1, 4, [1]))
    history.elect_preferred(("t", 0))
    history.delete("/admin/preferred_replica_election")
    assert_all_as_expected(history)
    assert history.row("t", 0).leader == 1


def test_preferred_elections_back_to_back():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 1, 0, [1, 2]), 1: ([2, 1], 1, 0, [1, 2])}})
    for partition in (0, 1):
        history.elect_preferred(("t", partition))
        history.delete("/admin/preferred_replica_election")
    history.the_controller_writes_its_due()
    assert [history.row("t", partition).leader for partition in (0, 1)] == [2, 2]
    assert_all_as_expected(history)


def test_up_to_2_1_an_unread_preferred_election_is_seen_in_the_epoch_it_costs():
    history = ZnodeHistory(release=(2, 1)).start(1, 2, topics=on([2, 1], 2, 4, [1, 2]))
    history.came_and_went("/admin/preferred_replica_election")
    effects = history.state("t", 0, 2, 5, [1, 2])
    cause = next(row.cause for row in effects if isinstance(row, Transition))
    assert cause == "ReplicaLeaderElection: the preferred replica of partition t-0 leads again"
    assert_all_as_expected(history)


@pytest.mark.parametrize(
    ("after_ms", "cause"), [(5_000, "AutoPreferred"), (100_000, "ReplicaLeader"), (305_000, "AutoPreferred")]
)
def test_a_rebalance_begins_five_seconds_after_a_failover_and_then_at_its_interval(after_ms, cause):
    partitions = {n: ([2, 1], 1, 4, [1, 2]) for n in range(10)}
    history = ZnodeHistory().start(*ALL, topics={"t": partitions})
    history.delete("/controller")
    history.controller(3, 2)
    history.heartbeat(after_ms)
    effects = history.state("t", 0, 2, 5, [1, 2], 2)
    assert next(row.cause for row in effects if isinstance(row, Transition)).startswith(cause)


def test_a_rebalance_takes_all_of_a_broker_once_it_has_begun():
    partitions = {n: ([2, 1], 1 if n < 2 else 2, 4, [1, 2]) for n in range(10)}
    history = ZnodeHistory().start(1, 2, topics={"t": partitions})
    history.heartbeat(400_000)
    for partition in (0, 1):  # after the first no more than the allowed tenth is led elsewhere
        effects = history.state("t", partition, 2, 5, [1, 2])
        cause = next(row.cause for row in effects if isinstance(row, Transition))
        assert cause.startswith("AutoPreferredReplicaLeaderElection:")


@pytest.mark.parametrize("acts", [True, False])
def test_a_partition_loses_its_leader_though_its_move_off_that_broker_is_planned(acts):
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, 4, controller=4, topics=on([1, 2, 3], 1, 0, [1, 2, 3]))
    history.reassign(("t", 0, [2, 3]))
    if not acts:
        history.delete("/controller")
    history.broker_leaves(1)
    assert history.row("t", 0).problem == "election_due"
    history.broker(1)
    assert history.row("t", 0).problem is None
