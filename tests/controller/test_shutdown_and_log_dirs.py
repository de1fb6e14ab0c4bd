"""Controlled shutdowns and failed log directories, which only the controller's writes show, not a znode.

After Kafka's own ControllerIntegrationTest and LogDirFailureTest, by meaning.
"""

import pytest

from controller.contract.alert_row import Severity
from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.records import RecordKind
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, assert_all_as_expected, on, t0

ALL = (1, 2, 3)
BACKOFF = {"controlled.shutdown.retry.backoff.ms": 1_000}


# Controlled shutdown


def test_no_write_is_taken_for_a_shutdown_where_controlled_shutdown_is_off():
    history = ZnodeHistory(settings={"controlled.shutdown.enable": False}).start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    effects = history.state("t", 0, 3, 1, [3])  # as if broker 2, which lives, had asked
    assert not [row for row in effects if getattr(row, "cause", "").startswith("ControlledShutdown")]
    assert history.context.header.shutdowns.asked == {}


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


def test_a_broker_that_stays_in_an_isr_as_its_last_member_shows_its_shutdown_too():
    # The topic is being deleted while broker 1 is away, so it has no leader. Kafka takes no last member out of an ISR.
    topics = on([1, 2], -1, 1, [2]) | {"u": {0: ([3, 2], 3, 0, [3])}}
    history = ZnodeHistory(release=(2, 0)).start(2, 3, topics=topics, controller=2)
    history.write("/admin/delete_topics/t")
    history.delete("/controller")
    history.controller(3, 2)  # it finds that broker 1 is away, and does not begin the deletion
    effects = history.state("t", 0, -1, 2, [2])
    assert history.moves(effects, Status.FINAL) == [f"{tp}@2 OnlineReplica -> OfflineReplica" for tp in ("t-0", "u-0")]
    assert history.gauges().inferences == {"shutdown-asked": 1}
    assert history.context.header.shutdowns.under_way == (2,)


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


@pytest.mark.parametrize("after_ms", [500, 1_010])  # while the first attempt may be going on, and behind it
def test_an_attempt_that_shows_sooner_than_expected_is_one_of_those_that_were_left(after_ms):
    history = shutting_down(3)
    history.now_ms += after_ms
    history.state("u", 0, 2, 0, [2, 3])  # 3 caught up
    history.state("u", 0, 3, 1, [3])  # 2 asks again at once, and can move u-0 now
    assert history.context.header.shutdowns.attempts == {}
    assert [row.cause for row in history.heartbeat(10_000) if isinstance(row, Transition)] == []


def test_an_attempt_that_shows_though_none_was_left_is_the_last():
    settings = {"controlled.shutdown.max.retries": 2, "controlled.shutdown.retry.backoff.ms": 1_000}
    topics = on([2, 3], 2, 0, [2, 3]) | {"u": {0: ([2, 3], 2, 0, [2])}}
    history = ZnodeHistory(settings=settings).start(*ALL, topics=topics)
    history.delete("/controller", author=history.session_of(1), cxid=0)
    history.controller(3, 2)
    history.state("t", 0, 3, 1, [3], controller_epoch=2)
    history.heartbeat(1_100)
    assert history.context.header.shutdowns.attempts == {}
    history.state("u", 0, 2, 0, [2, 3], controller_epoch=2)
    history.state("u", 0, 3, 1, [3], controller_epoch=2)
    assert_all_as_expected(history)
    assert history.context.header.shutdowns.attempts == {}


@pytest.mark.parametrize("left_out", [2, 3])
@pytest.mark.parametrize("gets_its_id", [False, True])
def test_a_topic_created_without_a_live_broker_shows_that_it_is_shutting_down(left_out, gets_its_id):
    history = ZnodeHistory().start(*ALL)
    history.topic("new", {0: [2, 3, 1], 1: [1, 2, 3]})
    if gets_its_id:
        history.topic("new", {0: [2, 3, 1], 1: [1, 2, 3]}, topic_id="aWQAAAAAAAAAAAAAAAAAAA")
    staying = [broker for broker in (2, 3, 1) if broker != left_out]
    history.state("new", 0, staying[0], 0, staying)
    history.state("new", 1, 1, 0, [broker for broker in (1, 2, 3) if broker != left_out])
    assert_all_as_expected(history)
    assert history.context.header.shutdowns.under_way == (left_out,)
    causes = [row.cause for row in history.effects if isinstance(row, Transition)]
    assert causes[-1] == "TopicChange: topic new was created"
    assert not any(cause.startswith("Unexplained") for cause in causes)


def test_a_topic_that_is_created_without_a_broker_that_left_shows_nothing():
    history = ZnodeHistory().start(*ALL)
    history.topic("new", {0: [2, 3]})
    history.broker_leaves(3)
    history.state("new", 0, 2, 0, [2])
    assert history.context.header.shutdowns.under_way == ()


def test_a_deletion_that_left_a_broker_out_began_after_its_shutdown_request():
    settings = {"controlled.shutdown.retry.backoff.ms": 1_000}
    topics = on([2, 1], 2, 0, [2]) | {"u": {0: ([1, 2], 1, 0, [1, 2])}}
    topics["t"][1] = ([1, 2], 1, 0, [1])
    history = ZnodeHistory(settings=settings).start(*ALL, topics=topics)
    seen = len(history.effects)
    history.delete_topic("t")
    history.state("t", 1, -1, 1, [1])  # and 2, which leads t-0 alone in sync, is left out
    history.topic("new", {0: [3, 2]})
    effects = history.state("new", 0, 3, 0, [3]) + history.state("u", 0, 1, 1, [1])
    assert "t-0@2 OfflineReplica -> ReplicaDeletionStarted" in history.moves(effects, Status.WITHDRAWN)
    moves = history.moves(tuple(history.effects[seen:]), Status.FINAL)
    assert [move for move in moves if move.startswith(("t-0@2", "t-1@2"))] == [
        "t-1@2 OnlineReplica -> OfflineReplica",
        "t-1@2 OfflineReplica -> ReplicaDeletionIneligible",
    ]
    attempt = history.context.header.shutdowns.attempts[2]
    assert attempt.left == 1  # it could not give up t-0, and asks again


@pytest.mark.parametrize("state", [(2, 0, [2, 3]), (3, 0, [3, 2])], ids=["leads", "follows"])
def test_a_session_that_closes_before_a_shutdown_has_written_was_closed_without_one(state):
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], *state))
    history.now_ms += 10_000
    effects = history.broker_closes(2)
    assert {row.cause for row in effects if isinstance(row, Transition)} == {"BrokerChange: broker 2 left"}
    assert history.context.header.shutdowns.asked == {}
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)


def test_a_broker_that_led_what_nobody_could_take_asked_until_it_closed_its_session():
    history = ZnodeHistory().start(*ALL, topics=on([3, 1], 3, 0, [3]))
    effects = history.broker_closes(3)
    assert t0(history) == (-1, 1, (3,))
    assert any(row.cause.startswith("BrokerChange") for row in effects if isinstance(row, Transition))
    assert history.context.header.shutdowns.attempts == {}


def test_a_broker_that_becomes_leader_again_is_not_shutting_down_any_more():
    history = shutting_down(3)
    history.broker_bounces(2)
    assert history.context.header.shutdowns.under_way == ()


def test_a_write_that_drops_two_replicas_at_once_is_nobodys_shutdown():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2, 3], 1, 0, [1, 2, 3]))
    history.state("t", 0, 1, 1, [1])
    assert history.gauges().divergences == {"unexplained_write": 1}
    assert history.context.header.shutdowns.under_way == ()


# Log directories


def test_an_unread_log_dir_event_is_of_the_broker_that_the_first_write_names():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.came_and_went(LOG_DIR_EVENT)
    effects = history.state("t", 0, 3, 1, [3])
    causes = list(dict.fromkeys(row.cause for row in effects if isinstance(row, Transition)))
    assert causes == [
        "LogDirEventNotification: broker 2 reported a failed log directory",
        "LeaderAndIsrResponseReceived: a log directory of broker 2 failed",
    ]
    assert list(history.context.header.triggers.log_dir_failures) == [2]
    assert_all_as_expected(history)


def test_a_partition_whose_only_log_directory_failed_says_so():
    history = ZnodeHistory().start(1, 2, topics=on([2], 2, 0, [2]))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    history.state("t", 0, -1, 1, [2])
    assert "log directory" in history.row("t", 0).reason


def test_a_restart_of_the_broker_forgets_its_failed_directories():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    history.state("t", 0, 3, 1, [3])
    assert history.context.topics.get("t").partitions[0].offline_dirs == (2,)
    history.broker_bounces(2)
    assert history.context.topics.get("t").partitions[0].offline_dirs == ()


def test_a_directory_that_fails_twice_moves_the_replica_twice():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    for epoch in (1, 2):
        effects = history.state("t", 0, 1, epoch, [1])
        assert next(row.cause for row in effects if isinstance(row, Transition)).startswith("LeaderAndIsrResponse")
        history.state("t", 0, 1, epoch, [1, 2])
    assert history.context.topics.get("t").partitions[0].offline_dirs == (2,)


def test_a_shutdown_does_not_excuse_what_a_failed_log_directory_took_before():
    history = ZnodeHistory().start(1, 2, controller=1, topics=on([2], 2, 0, [2]))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    history.state("t", 0, -1, 1, [2])
    history.heartbeat(60_000)
    history.broker_closes(2)
    history.heartbeat(60_000)
    alerts = [alert for alert in history.open_alerts().values() if alert.alert == "PartitionsOffline"]
    assert [alert.severity for alert in alerts] == [Severity.PAGE]
