"""Certainty of the replica, as counts of the controller's writes by explanation, and the rules behind its rows."""

import pytest

from controller.contract.effect_rows import Request, Transition
from controller.contract.gauges_row import INFERENCES, INFERENCES_BY_WRITE
from controller.inference.hypotheses.table import OTHER_INFERENCES, RULES
from tests.controller.znode_history import ZnodeHistory, on

ALL = (1, 2, 3)
MINUTE_MS = 60_000


def started() -> ZnodeHistory:
    return ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))


def inferred(history: ZnodeHistory) -> set[tuple[str, str]]:
    rows = (row for row in history.effects if isinstance(row, (Transition, Request)) and row.inferred_by)
    return {(row.inferred_by, row.inferred_from) for row in rows}


def test_without_a_write_there_is_no_agreement_to_state():
    gauges = started().gauges()
    assert gauges.writes == {"expected": 0, "inferred": 0, "unexplained": 0}
    assert (gauges.agreement, gauges.agreement_of_last_hour) == (None, None)


def test_expected_and_inferred_writes_agree_and_unexplained_ones_do_not():
    history = started()
    history.broker_leaves(2)
    history.the_controller_writes_its_due()  # expected: 3 leads
    history.broker(2)
    history.state("t", 0, 3, 1, [3, 2])  # a leader's own ISR change is no write of the controller
    history.state("t", 0, 2, 2, [3, 2])  # inferred. The preferred replica leads again
    history.state("t", 0, 3, 9, [3, 2])  # unexplained. Seven leader epochs are missing
    gauges = history.gauges()
    assert gauges.writes == {"expected": 1, "inferred": 1, "unexplained": 1}
    assert gauges.inferences == {"preferred-election": 1}
    assert gauges.inferred_events == {"preferred-election": 1}
    assert gauges.agreement == gauges.agreement_of_last_hour == pytest.approx(2 / 3)


def test_the_last_hour_forgets_in_steps_of_five_minutes_what_the_whole_keeps():
    history = started()
    history.state("t", 0, 3, 9, [3, 2])  # unexplained
    history.heartbeat(50 * MINUTE_MS)
    history.state("t", 0, 2, 10, [3, 2])  # a preferred election
    both = history.gauges()
    assert both.writes_of_last_hour == {"expected": 0, "inferred": 1, "unexplained": 1}
    history.heartbeat(11 * MINUTE_MS)
    later = history.gauges()
    assert later.writes_of_last_hour == {"expected": 0, "inferred": 1, "unexplained": 0}
    assert (later.agreement, later.agreement_of_last_hour) == (0.5, 1)
    history.heartbeat(70 * MINUTE_MS)
    assert history.gauges().writes_of_last_hour == {"expected": 0, "inferred": 0, "unexplained": 0}
    assert history.gauges().agreement_of_last_hour is None
    history.state("t", 0, 3, 11, [3, 2])
    assert len(history.context.header.tally.hour) == 1  # the spans before are dropped with the next write


def test_writes_of_one_span_are_counted_from_its_beginning():
    history = started()
    history.state("t", 0, 3, 9, [3, 2])
    history.state("t", 0, 2, 10, [3, 2])
    assert len(history.context.header.tally.hour) == 1
    assert history.gauges().writes_of_last_hour == history.gauges().writes


def test_a_later_attempt_that_no_write_shows_names_its_rule_and_the_backoff():
    topics = on([2, 3], 2, 0, [2, 3]) | {"u": {0: ([2, 3], 2, 0, [2])}}
    history = ZnodeHistory(settings={"controlled.shutdown.retry.backoff.ms": 1_000}).start(*ALL, topics=topics)
    history.state("t", 0, 3, 1, [3])
    history.heartbeat(1_500)
    assert ("shutdown-asked-again", "the retry backoff since the attempt before") in inferred(history)
    gauges = history.gauges()
    assert gauges.inferred_events == {"shutdown-asked": 1, "shutdown-asked-again": 1}
    assert gauges.inferences == {"shutdown-asked": 1}  # no write shows the second one


def test_a_shutdown_that_only_the_end_of_the_session_shows_names_that():
    history = ZnodeHistory().start(*ALL, topics=on([3, 2], 3, 0, [3]))
    history.heartbeat(10_000)
    history.broker_closes(2)
    shown_by = f"/brokers/ids/2 at {history.zxid:#x}"
    assert inferred(history) == {("shutdown-asked-before-session-end", shown_by)}
    assert history.gauges().writes["inferred"] == 0


def test_responses_that_only_time_shows_name_that():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2, 9], 1, 0, [1, 2])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(20_000)
    assert inferred(history) == {("deletion-answered-in-time", "the time since StopReplica was sent")}


def test_a_completion_whose_isr_was_not_read_names_the_topics_znode():
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2, 1]))
    history.topic("t", {0: [2, 1]}, adding_replicas={"0": [2]})
    history.state("t", 0, 1, 1, [1])
    history.topic("t", {0: [2, 1]})
    assert inferred(history) == {("reassignment-completed-unread", f"/brokers/topics/t at {history.zxid:#x}")}


def test_the_contract_names_each_rule_once():
    assert INFERENCES_BY_WRITE[: len(RULES)] == tuple(rule.name for rule in RULES)
    assert sorted(INFERENCES) == sorted(inference.name for inference in (*RULES, *OTHER_INFERENCES))
