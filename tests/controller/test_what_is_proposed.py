"""Hypotheses that are worth a try. One that cannot give the written state would cost a step of the cluster's size."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from controller.contract.ids import NO_LEADER, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.inference import deferral
from controller.inference.hypotheses.observed_write import ObservedWrite
from controller.inference.hypotheses.table import RULES
from controller.machines import partition_machine
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


def test_a_refused_shutdown_was_tried_on_the_written_partition_alone(monkeypatch):
    """With 3,000 partitions of one broker, a trial on all of them took 0.2 s for each write of an edit."""
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {at: ([3, 2, 1], 3, 0, [3, 2, 1]) for at in range(20)}})
    tried, elect = [], partition_machine.elect
    monkeypatch.setattr(partition_machine, "elect", lambda tx, tps, how: tried.append(len(tps)) or elect(tx, tps, how))
    history.state("t", 0, 1, 1, [2])
    assert history.gauges().writes["unexplained"] == 1
    assert set(tried) <= {0, 1}
    assert 1 in tried


@pytest.mark.parametrize("partitions", [20, 40])
def test_a_failure_is_deferred_for_few_writes_in_vain(monkeypatch, partitions):
    """With 1,000 partitions of the failed broker, deferring its failure for each write took 63 s."""
    topics = {"t": {at: ([3, 2, 1], 3, 0, [3, 2, 1]) for at in range(partitions)}}
    history = ZnodeHistory().start(1, 2, 3, controller=2, topics=topics)
    deferred_for, deferring = set(), deferral.deferring

    def counted(tx: Transaction, events: list[int]) -> AbstractContextManager[None]:
        deferred_for.update({tx.header.zxid} if events else ())
        return deferring(tx, events)

    monkeypatch.setattr(deferral, "deferring", counted)
    history.broker_leaves(3)
    for at in range(partitions):
        history.state("t", at, 1, 1, [2, 1])  # the controller would elect broker 2
    assert history.gauges().writes["unexplained"] == partitions
    assert len(deferred_for) == 8
