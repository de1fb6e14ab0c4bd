"""Brokers whose changes the controller reads at once.

Failures of brokers that leave together are planned once beyond some plans. The end is the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest

from controller.contract.effect_rows import Transition
from controller.contract.metadata_rows import BrokerRow, PartitionRow
from controller.events import broker_change
from tests.controller.znode_history import ZnodeHistory

ALWAYS, NEVER = -1, 10**9  # whether failures wait for each other
EXAMPLES = re.compile(r" \(t\d.*?\)")  # which follow the order of the issues


def on_seven(controller: int = 7) -> ZnodeHistory:
    """Return a cluster of 60 partitions at random placement."""
    chance = Random(1)
    replicas = [chance.sample(range(1, 7), 3) for _ in range(60)]
    topics = {f"t{at}": {0: (each, each[0], 0, each)} for at, each in enumerate(replicas)}
    history = ZnodeHistory().start(*range(1, 8), controller=controller, topics=topics)
    history.heartbeat(6_000)
    return history


def rack(history: ZnodeHistory) -> None:
    for broker in (1, 2, 3, 4):
        history.broker_leaves(broker)


def one_returns_at_once(history: ZnodeHistory) -> None:
    rack(history)
    history.broker(3)


def the_controllers_broker_too(history: ZnodeHistory) -> None:
    history.broker_leaves(1)
    history.broker_leaves(2)
    history.controller_dies(7)
    history.broker_leaves(3)


def one_was_shutting_down(history: ZnodeHistory) -> None:
    for name, topic in [(f"t{at}", history.row(f"t{at}", 0)) for at in range(60)]:
        if topic.leader == 2:
            left = [replica for replica in topic.isr if replica != 2]
            history.state(name, 0, left[0], 1, left)
            break
    rack(history)


def the_controller_writes_in_between(history: ZnodeHistory) -> None:
    history.broker_leaves(1)
    history.broker_leaves(2)
    history.state("t0", 0, 5, 1, [5])  # its other replicas are 2 and 1, so the controller knows of both
    history.broker_leaves(3)
    history.broker_leaves(4)


STORIES = [
    rack,
    one_returns_at_once,
    the_controllers_broker_too,
    one_was_shutting_down,
    the_controller_writes_in_between,
]


def end_of(story: Callable[[ZnodeHistory], None], monkeypatch: pytest.MonkeyPatch, most: int) -> list[object]:
    """Return what is known once the controller has written what is due, and what it was said to owe before."""
    monkeypatch.setattr(broker_change, "_PLANNED_AGAIN_AT_ONCE", most)
    history = on_seven()
    story(history)
    history.heartbeat()
    known: list[object] = [known_of(history)]
    if history.context.header.acting:
        history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    return [*known, known_of(history), history.gauges().writes]


def known_of(history: ZnodeHistory) -> dict[str, object]:
    rows = {row.subject_key(): row for row in history.effects if isinstance(row, PartitionRow | BrokerRow)}
    partitions = {
        key: (row.leader, row.isr, row.predicted_leader, row.problem, row.reason)
        for key, row in rows.items()
        if isinstance(row, PartitionRow)
    }
    brokers = {key: row.registered for key, row in rows.items() if isinstance(row, BrokerRow)}
    alerts = {
        key: (EXAMPLES.sub("", row.cause), row.partitions, row.action) for key, row in history.open_alerts().items()
    }
    return {**partitions, **brokers, **alerts}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_failures_that_waited_end_as_those_that_did_not(story, monkeypatch):
    assert end_of(story, monkeypatch, ALWAYS) == end_of(story, monkeypatch, NEVER)


def test_beyond_some_plans_a_rack_is_planned_twice_however_many_brokers_it_has(monkeypatch):
    monkeypatch.setattr(broker_change, "_PLANNED_AGAIN_AT_ONCE", ALWAYS)
    history = on_seven()
    assert any(isinstance(row, Transition) and row.subject == "partition" for row in history.broker_leaves(1))
    for broker in (2, 3, 4):
        rows = history.broker_leaves(broker)
        assert [row.broker for row in rows if isinstance(row, BrokerRow)] == [broker]
        assert history.open_alerts()["BrokerCrashed/broker 1"].brokers == tuple(range(1, broker + 1))
        assert not any(isinstance(row, PartitionRow | Transition) for row in rows)
    history.heartbeat()
    dead = [row for row in history.effects if isinstance(row, Transition) and row.subject == "broker"]
    assert [row.broker for row in dead] == [1, 2, 3, 4]
    assert not history.context.header.departures.unplanned


def test_a_failure_that_waits_is_stored_with_the_context(monkeypatch):
    monkeypatch.setattr(broker_change, "_PLANNED_AGAIN_AT_ONCE", ALWAYS)
    history = on_seven()
    rack(history)
    history.restart()
    assert set(history.context.header.departures.unplanned) == {2, 3, 4}
    history.heartbeat()
    assert history.open_alerts()["BrokerCrashed/broker 1"].brokers == (1, 2, 3, 4)


def test_failures_that_wait_are_not_planned_once_records_are_missing(monkeypatch):
    monkeypatch.setattr(broker_change, "_PLANNED_AGAIN_AT_ONCE", ALWAYS)
    history = on_seven()
    rack(history)
    history.seq += 1
    rows = history.heartbeat()
    assert not history.context.header.departures.unplanned
    assert not any(isinstance(row, Transition | PartitionRow) for row in rows)


def test_a_failure_and_a_startup_that_the_controller_read_at_once_are_one_event():
    history = ZnodeHistory(settings={"unclean.leader.election.enable": True})
    history.start(1, 2, topics={"t": {0: ([2, 3], 2, 0, [2])}})
    history.broker_leaves(2)
    history.broker(3)
    history.state("t", 0, 3, 1, [3])  # read one after the other, broker 2's failure would have written epoch 1 before
    header = history.context.header
    assert header.tally.happened.inferences == {"read-together": 1}
    assert header.events == {}
