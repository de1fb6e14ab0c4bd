"""A cluster whose records could not be applied.

It is unknown, gives its reason, and recovers with the next complete read.
"""

from __future__ import annotations

from msgspec.structs import replace

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.model.watch_state import Quarantines
from controller.restore.altered_context import quarantine, quarantines_with
from controller.restore.stored_context import encode_header, new_context
from tests.controller.znode_history import ZnodeHistory

WHY = "records up to number 9 of generation 1 could not be applied (OverflowError: too large)"
PAGE = f"Kontrast failed and does not follow this cluster until the next complete read. {WHY[:1].upper()}{WHY[1:]}"


PLACE = "OverflowError in turn.py, conclude"
HOUR_MS = 3_600_000


NONE = Quarantines()


def quarantined(before: Quarantines = NONE) -> ZnodeHistory:
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    last = history.records[-1]
    outcome = quarantine(new_context("c", chunk_count=8), quarantines_with(before, 7, last, PLACE), last, WHY)
    history.context = outcome.context
    history.effects = list(outcome.effects)
    return history


def test_it_is_not_ready_and_a_person_is_paged_with_the_error():
    history = quarantined()
    (alert,) = (row for row in history.effects if isinstance(row, AlertRow))
    assert (alert.alert, alert.state, alert.severity, alert.cause) == (
        "ClusterQuarantined",
        "open",
        Severity.PAGE,
        PAGE,
    )
    (gauges,) = (row for row in history.effects if isinstance(row, GaugesRow))
    assert not gauges.ready
    assert history.context.header.position == history.records[-1].position
    assert encode_header(history.context)


def test_what_comes_before_the_next_complete_read_concludes_nothing():
    history = quarantined()
    history.broker_leaves(2)
    history.state("t", 0, 1, 1, [1])
    history.heartbeat()
    assert [row.alert for row in history.effects if isinstance(row, AlertRow)] == ["ClusterQuarantined"]
    assert not history.gauges().ready


def test_the_next_complete_read_ends_it():
    history = quarantined()
    history.generation, history.seq = 2, -1
    history.start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    rows = history.heartbeat()
    ends = [row for row in history.effects if isinstance(row, AlertRow) and row.state == "resolved"]
    assert [(row.alert, row.cause) for row in ends] == [("ClusterQuarantined", "a complete read has arrived")]
    assert history.gauges().ready
    assert history.open_alerts() == {}
    assert [row.partitions for row in rows if isinstance(row, GaugesRow)] == [1]


def test_the_records_of_a_failure_are_kept_once_and_counted_from_then_on():
    last = quarantined().records[-1]
    first = quarantines_with(NONE, 7, last, PLACE)
    assert first == Quarantines(1, last.observed_ms, (PLACE,), 0)
    again = quarantines_with(first, 9, replace(last, observed_ms=last.observed_ms + HOUR_MS), PLACE)
    assert (again.times, again.kept, again.unkept) == (2, (PLACE,), 9)
    other = quarantines_with(again, 5, last, "KeyError in gauges.py, recount")
    assert (other.times, other.kept, other.unkept) == (3, (PLACE, "KeyError in gauges.py, recount"), 9)
    many = other
    for number in range(40):
        many = quarantines_with(many, 1, last, f"KeyError in gauges.py, f{number}")
    assert (many.times, len(many.kept), many.unkept) == (43, 16, 9)


def test_a_failure_long_after_the_last_is_a_first_one():
    last = quarantined().records[-1]
    first = quarantines_with(NONE, 7, last, PLACE)
    later = replace(last, observed_ms=last.observed_ms + 2 * HOUR_MS + 1)
    assert quarantines_with(first, 7, later, PLACE) == Quarantines(1, later.observed_ms, (PLACE,), 0)


def test_the_page_says_how_often_it_failed_and_what_is_not_kept():
    history = quarantined(Quarantines(3, 1_000_000, (PLACE,), 20))
    (alert,) = (row for row in history.effects if isinstance(row, AlertRow))
    assert alert.cause == (f"{PAGE}, failure 4 in a row. 27 records are not kept in `refused`")


def test_a_complete_read_does_not_make_it_forget_that_it_failed():
    history = quarantined()
    history.generation, history.seq = 2, -1
    history.start(1, 2, topics={})
    assert history.context.header.feed.quarantines.times == 1
    assert history.context.header.feed.quarantined == ""
