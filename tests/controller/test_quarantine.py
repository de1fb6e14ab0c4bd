"""A cluster whose records could not be applied is unknown, says why, and goes on with the next complete read."""

from __future__ import annotations

from controller.context import Phase
from controller.outputs import AlertRow, GaugesRow, Severity
from controller.quarantine import quarantine
from controller.state import encode_header, new_context
from tests.controller.znode_history import ZnodeHistory

WHY = "records up to number 9 of generation 1 could not be applied: OverflowError: too large"


def quarantined() -> ZnodeHistory:
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    outcome = quarantine(new_context("c", 8), history.records[-1], WHY)
    history.context = outcome.context
    history.effects = list(outcome.effects)
    return history


def test_it_is_not_ready_and_a_person_is_paged_with_the_error():
    history = quarantined()
    (alert,) = (row for row in history.effects if isinstance(row, AlertRow))
    assert (alert.alert, alert.state, alert.severity, alert.cause) == ("ClusterQuarantined", "open", Severity.PAGE, WHY)
    (gauges,) = (row for row in history.effects if isinstance(row, GaugesRow))
    assert not gauges.ready
    assert history.context.header.phase is Phase.BOOTSTRAPPING
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
    assert [(row.alert, row.cause) for row in ends] == [("ClusterQuarantined", "a complete read has come in")]
    assert history.gauges().ready
    assert history.context.header.quarantined == ""
    assert [row.partitions for row in rows if isinstance(row, GaugesRow)] == [1]
