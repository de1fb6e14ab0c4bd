"""Traps about reassignments and deletions for a replica that follows Kafka's documentation alone.

A release in brackets names where a behaviour applies.
"""

from controller.contract.effect_rows import Status
from tests.controller.znode_history import ZnodeHistory

# 18, 19, 22: deletion


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


# 25 and 26: gauges


def test_trap_26_a_partition_is_imbalanced_while_another_than_the_preferred_leads():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 1, 0, [1]), 1: ([2, 1], -1, 0, [9])}})
    assert history.gauges().preferred_replica_imbalance == 2
