"""Brokers that left for good and host no replica. The context keeps them for a day, then their rows end."""

from __future__ import annotations

from controller.contract.metadata_rows import BrokerRow
from controller.restore.stored_context import encode_header, restore_context
from tests.controller.znode_history import ZnodeHistory

DAY_MS = 24 * 3_600_000


def rows_of(history: ZnodeHistory, broker: int) -> list[tuple[bool, bool]]:
    rows = [row for row in history.effects if isinstance(row, BrokerRow) and row.broker == broker]
    return [(row.registered, row.forgotten) for row in rows]


def a_day_passes(history: ZnodeHistory) -> None:
    history.heartbeat(DAY_MS)
    history.heartbeat()


def test_a_broker_that_hosts_nothing_is_forgotten_a_day_after_it_left():
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.broker_leaves(3)
    history.heartbeat(DAY_MS - 1_000)
    assert rows_of(history, 3) == [(True, False), (False, False)], "a day is not over yet"
    history.heartbeat(2_000)
    assert rows_of(history, 3)[2:] == [(False, True)]
    header = history.context.header
    kept = (header.departures.last, header.departures.unordered, header.shutdowns.asked, header.shutdowns.last_asked_ms)
    assert kept == ({}, {}, {}, {})
    history.heartbeat()
    assert len(rows_of(history, 3)) == 3, "the last row comes once"


def test_its_last_row_has_since_when_it_was_away():
    history = ZnodeHistory().start(1, 2)
    history.broker_leaves(2)
    left_ms = history.now_ms
    a_day_passes(history)
    (*_, last) = [row for row in history.effects if isinstance(row, BrokerRow)]
    assert (last.broker, last.forgotten, last.since_ms) == (2, True, left_ms)


def test_the_row_of_a_broker_that_left_says_how():
    history = ZnodeHistory().start(1, 2, 3)
    history.broker_closes(3)
    history.broker_leaves(2)
    history.broker(2)
    rows = [row for row in history.effects if isinstance(row, BrokerRow) and row.broker != 1]
    assert [(row.broker, row.registered, row.left_in_order) for row in rows[-3:]] == [
        (3, False, True),
        (2, False, False),
        (2, True, None),
    ]


def test_one_that_hosts_replicas_is_missed_until_it_hosts_none():
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}, "u": {0: ([1], 1, 0, [1])}})
    history.broker_leaves(2)
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    a_day_passes(history)
    assert list(history.context.header.departures.last) == [2]
    assert "crashed at zxid" in " ".join(history.open_alerts()["BrokerCrashed/broker 2"].evidence)
    history.topic_vanishes("t", 0)
    history.heartbeat()
    assert history.context.header.departures.last == {}
    assert rows_of(history, 2)[-1] == (False, True)
    assert "BrokerCrashed/broker 2" not in history.open_alerts()


def test_one_that_comes_back_later_is_a_broker_as_any_other():
    history = ZnodeHistory().start(1, 2)
    history.broker_leaves(2)
    a_day_passes(history)
    history.broker(2)
    assert rows_of(history, 2)[-2:] == [(False, True), (True, False)]


def test_the_next_complete_read_and_a_restored_state_know_nothing_of_it():
    history = ZnodeHistory().start(1, 2)
    history.broker_leaves(2)
    a_day_passes(history)
    before = len(rows_of(history, 2))
    history.generation, history.seq = 2, -1
    history.start(1)
    assert len(rows_of(history, 2)) == before
    restored = restore_context(history.cluster, encode_header(history.context), lambda _: None)
    assert restored.header.departures.last == {}
