"""Traps about leaders and in-sync replicas for a replica that follows Kafka's documentation alone.

A release in brackets names where a behaviour applies.
"""

from controller.contract.effect_rows import Request, Transition
from controller.rules.settings import GivenSettings
from tests.controller.znode_history import ZnodeHistory

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


def test_trap_29_a_death_without_a_write_lets_the_controller_read_the_state_again():
    assert isr_told_to_a_newcomer((2, 6), dies_first=True) == {(1,)}
