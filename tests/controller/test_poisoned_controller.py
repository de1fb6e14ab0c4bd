"""Poisoned controllers (KAFKA-12315), with their causes, evidence and alerts."""

from __future__ import annotations

import pytest

from controller.contract.alert_row import Severity
from controller.contract.effect_rows import Status
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.step import step
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_each_effect_ends_once,
    broker_znode,
    state_znode,
    topic_znode,
)

POISONED = "ControllerPoisoned/broker 1"
UNFIT = "BrokerPoisoned"
MINUTE_MS = 60_000

# Broker 9 is in the ISR of t-0 and was never there.
OWED = {"t": {0: ([1, 2, 9], 1, 0, [1, 2, 9])}, "u": {0: ([2, 3], 2, 0, [2, 3])}}


def taken_over(release: tuple[int, int] | None = None) -> ZnodeHistory:
    """Let broker 1 become controller, with broker 9 to take out of an ISR."""
    history = ZnodeHistory(release=release).start(1, 2, 3, 4, controller=4, topics=OWED)
    history.delete("/controller")
    history.controller(1, 2)
    assert history.predicted("t", 0) == (1, 1, (1, 2))
    return history


def elect(history: ZnodeHistory, broker: int) -> None:
    history.delete("/controller")
    history.controller(broker, history.context.header.controller_epoch + 1)
    history.heartbeat()


# Causes of a poisoned process


def test_a_term_cut_before_its_first_removal_poisons_its_process():
    history = taken_over()
    history.heartbeat(600)
    history.broker(9)  # too late for the read of the brokers
    elect(history, 3)
    assert POISONED not in history.open_alerts()
    elect(history, 1)
    assert history.open_alerts()[POISONED].severity is Severity.PAGE
    assert history.predicted("t", 0) is None
    evidence = history.open_alerts()[POISONED].evidence[0]
    assert "broker 1 lost its term 2 while it had replicas to take out of ISRs" in evidence


@pytest.mark.parametrize(("author", "poisoned"), [("it", True), ("a tool", False), ("unknown", False)])
def test_a_reassignment_begun_after_controller_was_deleted_poisons_too(author, poisoned):
    history = ZnodeHistory().start(1, 2, 3, 4, topics={"t": {0: ([2, 3], 2, 0, [2, 3])}})
    sessions = {"it": history.session_of(1), "a tool": 0x99, "unknown": 0}
    history.delete("/controller", author=0x98, cxid=1)
    shrinks = topic_znode({0: [2, 3]}, removing_replicas={"0": [3]})
    history.write("/brokers/topics/t", shrinks, author=sessions[author], cxid=1)
    history.state("t", 0, 2, 1, [2, 3])  # the leader's new epoch. The removal of broker 3 is next
    history.controller(3, 2)
    history.heartbeat()
    elect(history, 1)
    assert (POISONED in history.open_alerts()) == poisoned


@pytest.mark.parametrize(("author", "poisoned"), [("it", True), ("unknown", False)])
def test_a_shutdown_asked_for_after_controller_was_deleted_poisons_too(author, poisoned):
    history = ZnodeHistory().start(1, 2, 3, 4, topics={"t": {0: ([2, 3], 2, 0, [2, 3]), 1: ([3, 2], 3, 0, [3, 2])}})
    history.delete("/controller", author=0x98, cxid=1)
    elected = state_znode(3, 1, [3], 1)  # the removal of broker 2 from t-1 is next
    session = history.session_of(1) if author == "it" else 0
    history.write("/brokers/topics/t/partitions/0/state", elected, author=session, cxid=1)
    history.controller(3, 2)
    history.heartbeat()
    elect(history, 1)
    assert (POISONED in history.open_alerts()) == poisoned


def test_before_2_3_a_controller_that_loads_removes_nothing_and_is_not_poisoned():
    history = ZnodeHistory(release=(2, 2)).start(1, 2, 3, 4, controller=4, topics=OWED)
    for broker in (1, 3, 1):
        elect(history, broker)
    assert POISONED not in history.open_alerts()


@pytest.mark.parametrize("replicas", [[2, 3], [1, 2]])  # an election comes first, or a removal
def test_a_term_cut_before_the_first_write_of_a_departure_poisons_no_process(replicas):
    """A request that ZooKeeper does not show may come before the departure."""
    history = ZnodeHistory().start(1, 2, 3, 4, topics={"t": {0: (replicas, replicas[0], 0, replicas)}})
    history.broker_leaves(2)
    for broker in (3, 1):
        elect(history, broker)
    assert POISONED not in history.open_alerts()


def test_a_process_that_was_started_again_is_not_poisoned():
    history = taken_over()
    elect(history, 3)
    history.broker_leaves(1)
    history.broker(1)
    history.the_controller_writes_its_due()
    elect(history, 1)
    assert POISONED not in history.open_alerts()


@pytest.mark.parametrize(
    ("elected", "author", "cxid", "poisoned"),
    [
        pytest.param(True, "it", 3, True, id="it registers at once"),
        pytest.param(False, "it", 3, False, id="it was asleep since it lost its term"),
        pytest.param(True, "it", 30, False, id="it starts, which takes more requests"),
        pytest.param(True, "another", 3, False, id="a tool writes its znode"),
        pytest.param(True, "unknown", -1, False, id="by a watch"),
    ],
)
def test_a_poisoned_process_that_lost_its_session_is_poisoned_as_before(elected, author, cxid, poisoned):
    history = taken_over()
    for broker in (3, 1, 3) if elected else (3,):
        elect(history, broker)
    history.broker_leaves(1)
    history.sessions[1] = session = 0x77
    authors = {"it": session, "another": 0x78, "unknown": 0}
    history.write("/brokers/ids/1", broker_znode(1), owner=session, author=authors[author], cxid=cxid)
    history.the_controller_writes_its_due()
    history.heartbeat(MINUTE_MS)
    assert any(key.startswith(UNFIT) for key in history.open_alerts()) == poisoned
    elect(history, 1)
    assert (POISONED in history.open_alerts()) == poisoned


def test_a_process_that_registered_in_the_term_of_the_one_before_it_is_not_poisoned():
    """The controller before was killed. Its session, which owns /controller, had not expired."""
    history = taken_over()
    history.broker_leaves(1)
    history.broker(1)
    elect(history, 3)
    elect(history, 1)
    assert POISONED not in history.open_alerts()


# Evidence without a view of the cut


def passed_over(release: tuple[int, int] | None = None) -> ZnodeHistory:
    """Kill broker 2. Controller 1 has created a topic since, and 2 is still in the ISR of t-0."""
    history = ZnodeHistory(release=release).start(1, 2, 3, 4, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.broker_leaves(2)
    history.topic("new", {0: [3]})
    history.state("new", 0, 3, 0, [3])
    return history


def test_a_removal_that_later_writes_pass_over_shows_a_poisoned_controller():
    history = passed_over()
    history.heartbeat(4_000)
    alert = history.open_alerts()[POISONED]
    assert alert.severity is Severity.PAGE
    assert alert.evidence[0].startswith(
        "broker 1 took no replica out of an ISR in epoch 1 and continued to write. A removal was due since"
    )
    assert history.predicted("t", 0) is None
    moved = set(history.moves(tuple(history.effects), Status.FINAL))
    assert not [move for move in moved if move.startswith("t-0@2")]


def test_a_failover_that_elects_before_it_removes_is_a_poisoned_controllers():
    topics = {"t": {0: ([1, 2, 9], 1, 0, [1, 2, 9])}, "u": {0: ([9, 3], 9, 0, [9, 3])}}
    history = ZnodeHistory().start(1, 2, 3, 4, controller=4, topics=topics)
    elect(history, 1)
    assert (history.predicted("t", 0), history.predicted("u", 0)) == ((1, 1, (1, 2)), (3, 2, (3,)))
    history.state("u", 0, 3, 1, [3])  # a healthy one would have taken 9 out of the ISR by a write before that
    history.heartbeat(4_000)
    assert POISONED in history.open_alerts()
    assert history.predicted("t", 0) is None
    assert history.gauges().divergences == {}


def test_elections_that_are_still_due_stay_expected_of_a_poisoned_controller():
    topics = {
        "t": {0: ([1, 2, 9], 1, 0, [1, 2, 9])},
        "u": {0: ([9, 3], 9, 0, [9, 3])},
        "v": {0: ([9, 4], 9, 0, [9, 4])},
    }
    history = ZnodeHistory().start(1, 2, 3, 4, controller=3, topics=topics)
    elect(history, 1)
    history.state("u", 0, 3, 1, [3])
    history.heartbeat(4_000)
    assert history.predicted("v", 0) == (4, 1, (4,))


# Alerts about a process that is not controller


def test_a_poisoned_process_is_warned_of_while_another_is_controller():
    history = taken_over()
    elect(history, 3)
    history.the_controller_writes_its_due()
    assert not [key for key in history.open_alerts() if key.startswith(UNFIT)]
    history.heartbeat(MINUTE_MS)
    (alert,) = (row for key, row in history.open_alerts().items() if key.startswith(UNFIT))
    assert (alert.severity, alert.brokers) == (Severity.WARN, (1,))
    elect(history, 1)
    assert POISONED in history.open_alerts()
    assert not [key for key in history.open_alerts() if key.startswith(UNFIT)]
    elect(history, 3)
    history.heartbeat(MINUTE_MS)
    assert [key for key in history.open_alerts() if key.startswith(UNFIT)]
    history.broker_leaves(1)
    history.broker(1)
    history.heartbeat()
    assert not [key for key in history.open_alerts() if key.startswith(UNFIT)]


@pytest.mark.parametrize("cut", [True, False])
def test_what_is_known_of_a_poisoned_process_outlives_a_restart_of_the_job(cut):
    history = taken_over() if cut else passed_over()
    history.heartbeat(1_000 if cut else 4_000)
    elect(history, 3)
    chunks = changed_chunks(new_context("c", chunk_count=8), history.context)
    kept = restore_context("c", encode_header(history.context), chunks.get)
    assert kept.header.former.poisoned == history.context.header.former.poisoned != {}
    assert kept.header.former.poisoned_by == history.context.header.former.poisoned_by


@pytest.mark.parametrize("release", [(2, 3), (2, 4), (2, 8), (3, 9)])
def test_what_a_poisoned_controller_does_not_do_is_withdrawn_once(release):
    """The withdrawn failover was in flight before the heartbeat that shows the poisoned controller."""
    history = ZnodeHistory(release=release).start(1, 3, topics={"b": {0: ([2], 2, 0, [2])}})
    history.controller_dies(1)
    history.topic("c", {0: [3], 1: [9]})
    history.controller(3, 2)
    history.state("c", 0, 3, 0, [3])
    before = history.context
    effects = history.heartbeat(60_000)
    assert POISONED.replace("1", "3") in history.open_alerts()
    assert_each_effect_ends_once(history)
    assert step(before, history.records[-1]).effects == effects
