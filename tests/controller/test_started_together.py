"""Brokers that register before the controller has begun to handle the first of them: one BrokerChange has all."""

from __future__ import annotations

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from tests.controller.znode_history import ZnodeHistory

# Broker 5 is dead, so a new controller has a state to write; t waits for 3 and 4.
TOPICS = {
    "t": {0: ([3, 4, 1], 1, 0, [1]), 1: ([4, 3, 1], 1, 0, [1])},
    "led": {0: ([5, 1], 5, 0, [5, 1])},
}


def two_that_register(release: tuple[int, int], *, deletion: bool = False) -> ZnodeHistory:
    """Brokers 4 and 3 register while broker 2 loads in epoch 2."""
    history = ZnodeHistory(release=release).start(1, 2, topics=TOPICS)
    if deletion:
        history.delete_topic("t")
    history.delete("/controller")
    history.controller(2, 2)
    history.broker(4)
    history.broker(3)
    return history


def certain(history: ZnodeHistory) -> list[tuple[str, str]]:
    """Final moves of t's replicas on the two brokers in epoch 2, by their cause."""
    return [
        (f"{row.partition}@{row.broker} {row.to_state}", row.cause)
        for row in history.effects
        if isinstance(row, Transition) and row.status is Status.FINAL and row.topic == "t" and row.broker in (3, 4)
    ]


def test_both_start_in_one_event():
    history = two_that_register((3, 9))
    begun = len(history.effects)
    history.the_controller_writes_its_due("led")
    started = [(move, cause) for move, cause in certain(history) if move.endswith("OnlineReplica")]
    assert {cause for _, cause in started} == {"BrokerChange: broker 4 and 3 registered"}
    assert sorted(move for move, _ in started) == [f"{tp}@{broker} OnlineReplica" for tp in (0, 1) for broker in (3, 4)]
    asked = [
        (row.brokers, row.all_partitions)
        for row in history.effects[begun:]
        if isinstance(row, Request) and row.cause.startswith("BrokerChange") and row.status is Status.FINAL
    ]
    assert asked[:2] == [((1, 2), False), ((3, 4), True)]


@pytest.mark.parametrize("release", [(3, 9), (1, 1)], ids=str)
def test_a_deletion_that_both_hold_up_begins_once_with_both(release):
    history = two_that_register(release, deletion=True)
    history.the_controller_writes_its_due("led")
    history.the_controller_writes_its_due("t")
    begun = [move for move, _ in certain(history) if move.endswith("ReplicaDeletionStarted")]
    assert sorted(begun) == [f"{tp}@{broker} ReplicaDeletionStarted" for tp in (0, 1) for broker in (3, 4)]
    retired = [
        row.partition
        for row in history.effects
        if isinstance(row, Transition) and row.controller_epoch == 2 and row.cause.startswith("BrokerChange")
        if row.status is Status.FINAL and row.to_state == "NonExistentPartition"
    ]
    assert retired == ([0, 1] if release == (3, 9) else [])


def test_one_that_registers_after_the_first_was_handled_starts_by_itself():
    history = ZnodeHistory(release=(3, 9)).start(1, 2, topics={"t": TOPICS["t"]})
    history.broker(4)
    history.broker(3)
    assert {cause.partition(" registered")[0] for _, cause in certain(history)} == {
        "BrokerChange: broker 4",
        "BrokerChange: broker 3",
    }
