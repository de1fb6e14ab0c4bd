"""Hypotheses that are worth a try. One that cannot give the written state would cost a step of the cluster's size."""

from __future__ import annotations

import pytest

from controller.contract.ids import NO_LEADER, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.inference.hypotheses.observed_write import ObservedWrite
from controller.inference.hypotheses.table import RULES
from controller.transaction.transaction import Transaction
from tests.controller.znode_history import ZnodeHistory

TP = TopicPartition("t", 0)


@pytest.fixture
def history() -> ZnodeHistory:
    """Return t-0, led by broker 2, whose preferred replica is 1."""
    return ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2, 3], 2, 0, [1, 2, 3])}})


def proposed(history: ZnodeHistory, leader: int, isr: tuple[int, ...]) -> set[str]:
    """Return the rules that explain the next write of t-0 as a hypothesis."""
    tx = Transaction(history.context, history.records[-1])
    partition = history.context.topics.partition(TP)
    assert partition is not None
    write = ObservedWrite(TP, partition, partition.zk_state, LeaderAndIsr(leader, 1, isr, 1, 1))
    return {rule.name for rule in RULES if list(rule.propose(tx, write))}


def test_no_election_is_tried_where_nobody_leads(history):
    assert proposed(history, NO_LEADER, (1, 2, 3)) == set()


def test_the_preferred_election_is_tried_for_the_first_replica_alone(history):
    assert proposed(history, 1, (1, 2, 3)) == {"preferred-election", "unclean-election"}
    assert proposed(history, 3, (1, 2, 3)) == {"unclean-election"}


@pytest.mark.parametrize(
    ("leader", "isr", "is_tried"), [(NO_LEADER, (2,), True), (NO_LEADER, (2, 3), False), (2, (2,), False)]
)
def test_a_shutdown_is_tried_for_the_last_of_an_isr_that_a_write_repeats(leader, isr, is_tried):
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2, 3], leader, 0, list(isr))}})
    assert ("shutdown-asked" in proposed(history, leader, isr)) == is_tried
