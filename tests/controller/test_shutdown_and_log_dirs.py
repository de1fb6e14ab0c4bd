"""Controlled shutdowns and failed log directories, which only the controller's writes show, not a znode.

After Kafka's own ControllerIntegrationTest and LogDirFailureTest, by meaning.
"""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.records import RecordKind
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, on

ALL = (1, 2, 3)
BACKOFF = {"controlled.shutdown.retry.backoff.ms": 1_000}


# Controlled shutdown


def test_rows_that_rest_on_an_inference_name_its_rule_and_the_write_that_shows_it():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    effects = history.state("t", 0, 3, 1, [3])
    rows = [row for row in effects if isinstance(row, (Transition, Request))]
    shown_by = f"/brokers/topics/t/partitions/0/state at {history.context.header.zxid:#x}"
    assert rows
    assert {(row.inferred_by, row.inferred_from) for row in rows} == {("shutdown-asked", shown_by)}
    gauges = history.gauges()
    assert (gauges.writes, gauges.inferences) == (
        {"expected": 0, "inferred": 1, "unexplained": 0},
        {"shutdown-asked": 1},
    )


def shutting_down(retries: int, *, leads_more: bool = True) -> ZnodeHistory:
    """Shut down broker 2. t-0 moves to 3, but u-0 cannot move because its other replica is out of sync."""
    topics = on([2, 3], 2, 0, [2, 3])
    if leads_more:
        topics["u"] = {0: ([2, 3], 2, 0, [2])}
    settings = {"controlled.shutdown.max.retries": retries, "controlled.shutdown.retry.backoff.ms": 1_000}
    history = ZnodeHistory(settings=settings).start(*ALL, topics=topics)
    history.state("t", 0, 3, 1, [3])
    return history


def test_a_broker_that_leads_nothing_any_more_does_not_ask_again():
    assert shutting_down(3, leads_more=False).context.header.shutdowns.attempts == {}


@pytest.mark.parametrize(
    ("after_ms", "wrote", "status"),
    [(5_000, False, Status.WITHDRAWN), (5_000, True, Status.FINAL), (8_000, False, Status.FINAL)],
)
def test_an_attempt_without_writes_is_certain_once_the_controller_has_written_since(after_ms, wrote, status):
    settings = {"controlled.shutdown.max.retries": 2, "zookeeper.session.timeout.ms": 6_000} | BACKOFF
    topics = on([2, 3], 2, 0, [2, 3]) | {"u": {0: ([2, 3], 2, 0, [2])}}
    history = ZnodeHistory(settings=settings).start(*ALL, topics=topics)
    history.state("t", 0, 3, 1, [3])
    history.send(RecordKind.HEARTBEAT, zxid=history.zxid, author=history.session_of(1), cxid=5)
    seen = len(history.effects)
    history.heartbeat(1_060)
    if wrote:
        history.now_ms += 100
        history.send(RecordKind.HEARTBEAT, zxid=history.zxid, author=history.session_of(1), cxid=6)
    history.heartbeat(after_ms)
    history.delete("/controller", author=history.session_of(1), cxid=0)
    history.delete("/brokers/ids/1", author=history.session_of(1), cxid=0, same_zxid=True)
    rows = [row for row in history.effects[seen:] if isinstance(row, Transition) and row.topic == "t"]
    assert [row.status for row in rows] == [Status.PROVISIONAL, status]


# Log directories


def test_a_partition_whose_only_log_directory_failed_says_so():
    history = ZnodeHistory().start(1, 2, topics=on([2], 2, 0, [2]))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    history.state("t", 0, -1, 1, [2])
    assert "log directory" in history.row("t", 0).reason
    history.delete("/controller")
    history.state("t", 0, 2, 2, [2])  # the controller had elected no replica in a failed directory
    assert history.row("t", 0).problem is None
