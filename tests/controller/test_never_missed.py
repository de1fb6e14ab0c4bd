"""Departures that the controller never read, and superfluous writes. Both are withdrawn or given up in time.

The histories in `never_missed.txt` must leave exactly what they left before, and the tests below them look deeper.
`REWRITE=1 pytest tests/controller/test_never_missed.py` writes what is left now.
"""

from __future__ import annotations

from pathlib import Path

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.metadata_rows import PartitionRow
from tests.controller.trace_language import obey, partition_line, run_page
from tests.controller.znode_history import ZnodeHistory, assert_each_effect_ends_once, on
from tests.kept_texts import assert_as_before

PAGE = Path(__file__).with_name("never_missed.txt")


def provisional(history: ZnodeHistory) -> set[str]:
    """Return the expected effects that have not ended."""
    rows = [row for row in history.effects if isinstance(row, (Transition, Request))]
    ended = {row.effect for row in rows if row.status is not Status.PROVISIONAL}
    return {row.effect for row in rows} - ended


def what_is_left(history: ZnodeHistory, _: int) -> list[str]:
    """Return the partitions, the effects that have not ended, and the open alerts."""
    assert_each_effect_ends_once(history)
    rows = {(row.topic, row.partition): row for row in history.effects if isinstance(row, PartitionRow)}
    lines = [partition_line(rows[key]) for key in sorted(rows) if not rows[key].removed]
    effects, alerts = provisional(history), history.open_alerts()
    lines += [f"effects without an end: {len(effects)}"] * bool(effects)
    return [*lines, *[f"open: {', '.join(sorted(alerts))}"] * bool(alerts)]


def test_each_history_leaves_what_it_left_before():
    assert_as_before(run_page(PAGE.read_text(encoding="utf-8"), what_is_left), PAGE)


def assert_nothing_is_expected(history: ZnodeHistory) -> None:
    assert provisional(history) == set()
    assert history.gauges().pending_writes == 0
    assert not [key for key in history.open_alerts() if key.startswith(("ControllerOverdue", "Partitions", "Election"))]
    assert_each_effect_ends_once(history)


def test_a_needless_reassignment_is_given_up_with_its_assignment():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.reassign(("t", 0, [1, 2]))
    obey(history, ["isr-notification", "at-rest"])
    assert_nothing_is_expected(history)
    assert history.context.topics["t"].partitions[0].pending_assignments == ()


def test_a_person_who_removes_the_entry_of_a_new_topic_stops_no_deletion():
    history = ZnodeHistory(release=(3, 4)).start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("new", {0: [1, 2]})
    history.write("/admin/delete_topics/new", None)
    history.delete("/admin/delete_topics/new", author=0x999, cxid=1)
    assert history.context.topics["new"].queued_for_deletion


def test_a_complete_read_in_a_failover_poisons_no_controller():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([3], 3, 0, [3]))
    history.broker_leaves(3)
    history.delete("/controller")
    history.controller(2, 2)
    assert history.predicted("t", 0) == (-1, 1, (3,)), "its failover takes a replica out of an ISR"
    history.generation, history.seq = 2, -1
    history.start(1, 2, controller=2, epoch=2, topics=on([3], 3, 0, [3]))
    history.heartbeat()
    assert not history.context.header.is_poisoned
    assert not [key for key in history.open_alerts() if key.startswith("ControllerPoisoned")]


def test_a_shutdown_attempt_that_no_write_follows_was_not_made():
    topics = {"t": {0: ([1, 2], 1, 0, [1]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, controller=3, topics=topics)
    history.state("t", 1, 2, 1, [2])  # only the shutdown of broker 1, which cannot give up t-0, explains it
    assert history.context.header.shutdowns.under_way == (1,)
    history.state("t", 0, 1, 0, [1, 2])
    history.state("t", 1, 2, 1, [2, 1])
    history.heartbeat(6_000)
    assert history.gauges().pending_writes == 2, "it asks again"
    obey(history, ["at-rest"])
    assert_nothing_is_expected(history)
    assert history.context.header.shutdowns.under_way == ()


def test_a_broker_that_stays_in_its_isrs_did_not_shut_down():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, controller=3, topics=topics)
    history.state("t", 0, 2, 1, [2])
    assert history.context.header.shutdowns.under_way == (1,)
    assert history.predicted("t", 1) == (2, 1, (2,))
    obey(history, ["isr-notification", "at-rest"])
    assert provisional(history) == set()
    assert history.context.header.shutdowns.under_way == ()
