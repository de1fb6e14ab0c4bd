"""Traps about leaders and in-sync replicas for a replica that follows Kafka's documentation alone.

A release in brackets names where a behaviour applies.
"""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from controller.rules.election import (
    Elected,
    elect_for_controlled_shutdown,
    elect_offline,
)
from controller.rules.settings import GivenSettings
from tests.controller.znode_history import ZnodeHistory, t0

# 1, the new leader and its cost for the ISR


# Trap 1. The first live ISR member in assignment order leads, not the first of the ISR. Only offline elections and
# controlled shutdowns shrink the ISR.
def test_trap_01_the_leader_is_the_first_live_member_by_assignment_not_by_isr():
    assert elect_offline([3, 1, 2], isr=[2, 1, 3], online={1, 2}, allow_unclean=False) == Elected(1, (2, 1))
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([3, 1, 2], 3, 0, [2, 3, 1])}})
    history.broker_leaves(3)
    assert t0(history) == (1, 1, (2, 1))


def test_trap_01_a_preferred_election_leaves_a_dead_member_in_the_isr():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2, 9], 2, 4, [2, 1, 9])}})
    history.elect_preferred(("t", 0))
    assert t0(history) == (1, 5, (2, 1, 9))


def test_trap_01_a_reassignment_leaves_a_dead_member_of_its_target_in_the_isr():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2, 9], 1, 4, [1, 2, 9])}})
    history.reassign(("t", 0, [2, 9]))
    history.state("t", 0, 2, 5, [1, 2, 9])
    assert history.row("t", 0).isr == (1, 2, 9)
    assert t0(history) == (2, 6, (2, 9))


# 2: a new partition


# Trap 2. A new partition's ISR has its live replicas only. Without a live replica the partition stays NewPartition
# and does not count as offline.
def test_trap_02_a_new_partitions_isr_is_its_live_replicas_only():
    history = ZnodeHistory().start(1, 3)
    history.topic("t", {0: [2, 3, 1]})
    assert t0(history) == (3, 0, (3, 1))


def test_trap_02_a_new_partition_without_live_replica_stays_new_and_is_not_offline():
    history = ZnodeHistory().start(1)
    history.topic("t", {0: [8, 9]})
    row, gauges = history.row("t", 0), history.gauges()
    assert (row.state, row.problem, t0(history)) == ("NewPartition", "no_live_replica_at_creation", None)
    assert (gauges.offline_partitions, gauges.partitions, gauges.topics) == (0, 0, 1)


def test_trap_02_a_new_partition_is_created_by_the_first_of_its_brokers_that_comes():
    history = ZnodeHistory().start(1)
    history.topic("t", {0: [8, 9]})
    history.broker(9)
    assert t0(history) == (9, 0, (9,))


# 3 to 5: deaths


# Trap 3. A failover with a dead leader writes twice: no leader and a smaller ISR, then the election (from 2.3). A
# broker failure writes once.
def test_trap_03_a_failover_up_to_2_2_writes_once_and_leaves_dead_followers_in_isr():
    topics = {"t": {0: ([1, 2, 3], 1, 2, [1, 3, 2]), 1: ([2, 1, 3], 2, 0, [2, 1, 3])}}
    history = ZnodeHistory(release=(2, 2)).start(1, 2, 3, topics=topics)
    history.controller_dies(1)
    history.controller(2, 2)
    assert t0(history) == (2, 3, (3, 2))
    assert history.predicted("t", 1) is None


# Trap 4. The last ISR member stays (from 1.1). Before, the ISR becomes empty where unclean elections are allowed.
def test_trap_04_the_last_member_of_the_isr_is_never_removed():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 2, 5, [2])}})
    history.broker_leaves(2)
    assert t0(history) == (-1, 6, (2,))


@pytest.mark.parametrize(
    ("release", "unclean", "isr"), [((1, 0), True, ()), ((1, 0), False, (2,)), ((1, 1), True, (2,))]
)
def test_trap_04_up_to_1_0_the_isr_becomes_empty_with_unclean_elections_allowed(release, unclean, isr):
    settings = {"unclean.leader.election.enable": unclean}
    history = ZnodeHistory(release=release, settings=settings).start(1, 2, topics={"t": {0: ([2], 2, 5, [2])}})
    history.broker_leaves(2)
    assert t0(history) == (-1, 6, isr)


# Trap 5. A failover writes an equal state under the next leader epoch if the only ISR member is dead (from 2.3).
def test_trap_05_a_failover_writes_a_dead_partition_again_with_the_same_content():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([9], -1, 3, [9])}})
    history.controller_dies(1)
    effects = history.controller(2, 2)
    assert t0(history) == (-1, 4, (9,))
    history.state("t", 0, -1, 4, [9])
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.elections, gauges.divergences) == (0, {}, {})
    moves = [row for row in effects if isinstance(row, Transition) and row.subject == "partition"]
    assert not [row for row in moves if row.to_state == "OnlinePartition"]


def test_trap_05_up_to_2_2_a_failover_leaves_a_dead_partition_alone():
    history = ZnodeHistory(release=(2, 2)).start(1, 2, topics={"t": {0: ([9], -1, 3, [9])}})
    history.controller_dies(1)
    history.controller(2, 2)
    assert t0(history) is None


# 6 and 7: several brokers at once


# Trap 6. If several ISR members die in one event, any of them can stay as the last member.
@pytest.mark.parametrize(
    "writes",
    [
        [(-1, 1, [3]), (-1, 2, [3])],  # 2 left the ISR first
        [(2, 1, [2]), (-1, 2, [2])],  # 3 left first
        [(-1, 2, [3])],  # the first write was overwritten before it was read
        [(-1, 2, [2])],
    ],
)
def test_trap_06_any_member_may_survive_where_the_whole_isr_dies_at_once(writes):
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([2, 3], 2, 0, [2, 3])}})
    history.broker_leaves(2)
    history.broker_leaves(3)
    for leader, epoch, isr in writes:
        history.state("t", 0, leader, epoch, isr)
    row, gauges = history.row("t", 0), history.gauges()
    assert (row.state, row.problem, row.predicted_leader) == ("OfflinePartition", "no_live_in_sync_replica", None)
    assert (gauges.pending_writes, gauges.divergences, gauges.offline_partitions) == (0, {}, 1)


# Trap 7. One broker change handles new brokers first, then bounced ones, then dead ones. The dead still count as
# live until then.
def test_trap_07_new_brokers_are_handled_while_the_dead_still_count_as_live():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 4], 2, 0, [2])}})
    started = history.broker(4)
    history.broker_leaves(2)
    assert "final LeaderAndIsr to 4: t-0 leader=2 epoch=0 isr=[2]" in history.requests(started)
    assert t0(history) == (-1, 1, (2,))


# 23: controlled shutdown


# Trap 23. A controlled shutdown skips partitions with one replica, and removes every broker that shuts down from the
# ISR.
def test_trap_23_a_controlled_shutdown_drops_every_broker_that_shuts_down():
    elected = elect_for_controlled_shutdown([1, 2, 3], isr=[1, 2, 3], registered={1, 2, 3}, shutting_down={1, 2})
    assert elected == Elected(3, (3,))
    everybody = elect_for_controlled_shutdown([1, 2], isr=[1, 2], registered={1, 2}, shutting_down={1, 2})
    assert everybody is None
    topics = {"t": {0: ([2, 3, 1], 2, 0, [2, 3, 1]), 1: ([3, 2, 1], 3, 0, [3, 2, 1])}}
    history = ZnodeHistory().start(1, 2, 3, topics=topics)
    history.state("t", 0, 3, 1, [3, 1])  # 2 shuts down. It loses its leaders first, then its followers
    history.state("t", 1, 3, 1, [3, 1])
    history.state("t", 1, 1, 2, [1])  # then 3
    assert t0(history) == (1, 2, (1,))


# 27 and 28: preferred elections


def rebalance(settings: GivenSettings | None, led_elsewhere: int) -> tuple[ZnodeHistory, str]:
    """Return ten partitions that prefer broker 2, some led by 1. Long after the failover one moves back."""
    partitions = {n: ([2, 1], 1 if n < led_elsewhere else 2, 4, [1, 2]) for n in range(10)}
    history = ZnodeHistory(settings=settings).start(1, 2, topics={"t": partitions})
    history.heartbeat(400_000)
    effects = history.state("t", 0, 2, 5, [1, 2])
    return history, next(row.cause for row in effects if isinstance(row, Transition))


# Trap 27. The automatic rebalance writes no trigger znode, and starts above its percentage, not at it. Up to 3.3 any
# reassignment holds it.
def test_trap_27_above_the_percentage_it_is_the_automatic_rebalance():
    assert rebalance(None, 2)[1].startswith("AutoPreferredReplicaLeaderElection:")


def test_trap_27_at_the_percentage_it_is_not_because_the_comparison_is_strict():
    assert rebalance(None, 1)[1].startswith("ReplicaLeaderElection:")


def test_trap_27_with_the_rebalance_switched_off_it_was_asked_for():
    settings = {"auto.leader.rebalance.enable": False}
    assert rebalance(settings, 9)[1].startswith("ReplicaLeaderElection:")


@pytest.mark.parametrize(("release", "event"), [((3, 3), "ReplicaLeaderElection"), ((3, 4), "AutoPreferredReplica")])
def test_trap_27_up_to_3_3_any_reassignment_holds_the_rebalance(release, event):
    topics = {"t": {n: ([2, 1], 1, 4, [1, 2]) for n in range(4)}, "moving": {0: ([1], 1, 0, [1])}}
    history = ZnodeHistory(release=release).start(1, 2, topics=topics)
    history.reassign(("moving", 0, [9]))
    history.state("moving", 0, 1, 1, [1])
    history.heartbeat(400_000)
    effects = history.state("t", 0, 2, 5, [1, 2])
    assert next(row.cause for row in effects if isinstance(row, Transition)).startswith(event)


def test_trap_27_the_preferred_replica_must_be_in_the_isr():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 1, 4, [1])}})
    history.state("t", 0, 2, 5, [1])
    assert history.gauges().elections == {}
    assert history.gauges().divergences == {"illegal_state": 1, "unexplained_write": 1}


# 29: who writes ISR changes


NOTIFICATION = "/isr_change_notification/isr_change_0000000000"


def isr_told_to_a_newcomer(release: tuple[int, int], *, notified: str = "", dies_first: bool = False) -> set:
    """Shrink the ISR by the leader's own write. Then 3 registers and gets the partition's state."""
    brokers = (1, 2, 3) if dies_first else (1, 2)
    history = ZnodeHistory(release=release).start(*brokers, topics={"t": {0: ([1, 2, 3], 1, 4, [1, 2])}})
    history.state("t", 0, 1, 4, [1])
    assert history.row("t", 0).leader_epoch == 4
    if notified == "unread":
        history.came_and_went(NOTIFICATION)
    elif notified:
        history.write(NOTIFICATION, {"version": 1, "partitions": [{"topic": "t", "partition": 0}]})
    if notified == "removed":
        history.delete(NOTIFICATION)
    if dies_first:
        history.broker_leaves(3)
    told = [row for row in history.broker(3) if isinstance(row, Request) and row.api == "LeaderAndIsr"]
    return {state.isr for row in told if row.brokers == (3,) for state in row.partition_states}


# Trap 29. Leaders write ISR changes and notify the controller up to IBP 2.7-IV1. Later the controller writes them.
# The leader epoch stays.
@pytest.mark.parametrize(
    ("release", "notified", "isr"),
    [
        ((2, 6), "", (1, 2)),
        ((2, 6), "waits", (1, 2)),
        ((2, 6), "removed", (1,)),
        ((2, 6), "unread", (1,)),
        ((2, 7), "", (1,)),
    ],
)
def test_trap_29_before_2_7_the_controller_knows_an_isr_change_once_notified(release, notified, isr):
    assert isr_told_to_a_newcomer(release, notified=notified) == {isr}


@pytest.mark.parametrize(("removed", "leader_epoch"), [(False, 0), (True, 1)])
def test_trap_29_a_notification_is_read_only_when_the_controller_removes_it(removed, leader_epoch):
    """Up to 2.3 the controller's copy lacks its own writes until it reads the notification."""
    history = ZnodeHistory(release=(2, 3)).start(1, 2, topics={"t": {0: ([1, 2, 3], 1, 0, [1, 2])}})
    history.write(NOTIFICATION, {"version": 1, "partitions": [{"topic": "t", "partition": 0}]})
    history.reassign(("t", 0, [1, 3]))
    history.topic("t", {0: [1, 3, 2]})
    history.state("t", 0, 1, 1, [1, 2])
    if removed:
        history.delete(NOTIFICATION)
    effects = history.broker(3) + history.the_controller_writes_its_due()
    told = [row for row in effects if isinstance(row, Request) and row.status is Status.FINAL and row.brokers == (3,)]
    (state,) = next(row.partition_states for row in told if row.api == "LeaderAndIsr")
    assert state.leader_epoch == leader_epoch


def test_trap_29_a_death_without_a_write_lets_the_controller_read_the_state_again():
    assert isr_told_to_a_newcomer((2, 6), dies_first=True) == {(1,)}


def test_trap_29_an_isr_change_costs_no_leader_epoch_and_is_nobodys_election():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 4, [1, 2])}})
    history.state("t", 0, 1, 4, [1])
    effects = history.state("t", 0, 1, 4, [1, 2])
    gauges = history.gauges()
    assert history.transitions(effects) == []
    assert (gauges.isr_changes, gauges.elections, gauges.divergences) == ({"shrink": 1, "expand": 1}, {}, {})
