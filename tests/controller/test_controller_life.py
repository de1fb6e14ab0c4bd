"""Scenarios of Kafka's ControllerIntegrationTest, as ZooKeeper shows them.

Cases that are no trap of their own belong here. Deletion is in `test_topic_deletion`.
"""

import pytest

from controller.contract.effect_rows import Request
from controller.contract.gauges_row import GaugesRow
from controller.contract.records import RecordKind
from controller.restore.stored_context import reconfigured
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, assert_all_as_expected, controller_znode, on

ALL = (1, 2, 3)


# Controllers


def test_the_controller_epoch_outlives_all_brokers():
    history = ZnodeHistory().start(1)
    history.controller_dies(1)
    history.broker(1)
    history.controller(1, 2)
    assert history.gauges().controller_epoch == 2


def test_a_read_takes_settings_without_their_topic_and_ignores_events_of_the_past():
    history = ZnodeHistory()
    history.snapshot(
        ("/config/topics/later", {"version": 1, "config": {"min.insync.replicas": "2"}}),
        ("/controller", controller_znode(1)),
        ("/controller_epoch", b"1"),
        (LOG_DIR_EVENT, {"version": 1, "broker": 1, "event": 1}),
    )
    gauges = history.gauges()
    assert (gauges.topics, gauges.ready) == (0, True)
    assert history.context.header.triggers.log_dir_failures == {}
    history.topic("later", {0: [1]})
    assert history.context.topics.get("later").min_insync_replicas == 2


def test_what_vanishes_during_a_read_is_gone_at_its_end():
    history = ZnodeHistory().start(1, topics=on([1], 1, 0, [1]))
    history.generation, history.seq = 2, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/controller", controller_znode(1))
    history.write("/controller_epoch", b"1")
    history.topic("t", {0: [1]})
    history.delete("/brokers/topics/t")
    history.send(RecordKind.SNAPSHOT_END)
    assert history.gauges().topics == 0


def test_the_end_of_a_read_that_never_began_is_nothing():
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_END)
    assert history.gauges().ready is False


def test_a_read_that_repeats_what_is_known_changes_no_partition():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    before = history.context.topics.get("t").partitions
    history.generation, history.seq = 2, -1
    history.start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    assert history.context.topics.get("t").partitions == before
    assert_all_as_expected(history)


def test_what_comes_or_vanishes_before_the_first_read_is_nothing():
    history = ZnodeHistory()
    assert history.broker(1) == ()
    assert history.broker_leaves(1) == ()
    assert history.topic_vanishes("t", 0) == ()
    assert (history.context.header.brokers, history.context.header.departures.last) == ({}, {})


def test_the_cluster_s_id_is_kept_and_an_unreadable_one_is_refused():
    history = ZnodeHistory().start(1, 2)
    assert history.context.header.cluster_id == ""
    assert history.write("/cluster/id", {"version": "1", "id": "x"}) == ()
    assert history.context.header.cluster_id == "x"
    (refused,) = history.write("/cluster/id", {"version": "1", "id": "x" * 101})
    assert refused.path == "/cluster/id"
    assert history.context.header.cluster_id == "x"


def test_a_forwarder_whose_standing_cannot_be_read_is_of_unknown_standing():
    history = ZnodeHistory().start(1, 2)
    assert history.gauges().session == "connected"
    (*_, gauges) = history.send(RecordKind.HEARTBEAT, zxid=history.zxid, data="not json")
    assert (gauges.session, gauges.watch_mode) == ("unknown", "unknown")


# Brokers and topics


def test_a_broker_that_registers_as_the_only_one_gets_all_and_no_other_gets_any():
    history = ZnodeHistory().start(controller=1)
    assert history.requests(history.broker(1)) == ["final UpdateMetadata to 1: all partitions"]


@pytest.mark.parametrize(("after_ms", "kind"), [(0, "ControllerFailover"), (30, "TopicChange")])
def test_a_topic_that_comes_with_a_new_controller_is_read_by_it_not_heard_of(after_ms, kind):
    history = ZnodeHistory().start(1, 2)
    history.delete("/controller")
    history.controller(2, 2)
    history.now_ms += after_ms
    effects = history.topic("new", {0: [1, 2], 1: [9]})
    assert {row.cause.partition(":")[0] for row in effects if isinstance(row, Request)} == {kind}
    history.state("new", 0, 1, 0, [1, 2])
    assert_all_as_expected(history)
    assert [history.row("new", number).state for number in (0, 1)] == ["OnlinePartition", "NewPartition"]


@pytest.mark.parametrize("by", ["start", "znode"])
def test_without_a_controller_the_settings_of_now_say_what_the_next_must_do(by):
    history = ZnodeHistory().start(1, 2, 3, controller=3, topics=on([2, 1], 2, 4, [2]))
    history.controller_dies(3)
    history.broker_leaves(2)
    assert history.row("t", 0).problem == "no_live_in_sync_replica"
    if by == "znode":
        history.write("/config/brokers/<default>", {"version": 1, "config": {"unclean.leader.election.enable": "true"}})
    else:
        history.context = reconfigured(history.context, {"unclean.leader.election.enable": True}, None)
    history.heartbeat()
    assert history.row("t", 0).problem == "election_due"
    assert [type(row) for row in history.heartbeat()] == [GaugesRow], "once is enough"


# Writes of leaders


def overtaken() -> ZnodeHistory:
    """Kill broker 2. The controller writes t-0 and a later event's new-0, but not u-0, which 2 leads too."""
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([2, 3], 2, 0, [2, 3])}}
    history = ZnodeHistory().start(*ALL, topics=topics)
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    history.topic("new", {0: [3]})
    history.state("new", 0, 3, 0, [3])
    assert history.predicted("u", 0) == (3, 1, (3,))
    return history


def test_what_does_not_come_while_records_are_lacking_is_not_given_up():
    history = overtaken()
    history.generation += 1
    history.seq = 5
    assert history.heartbeat(4_000)[-1].divergences == {"records_missing": 1}
    assert history.predicted("u", 0) == (3, 1, (3,))


def test_writes_that_fit_nothing_that_is_due_win_and_what_is_due_goes():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2, 3], 1, 0, [1, 2, 3]))
    history.broker_leaves(2)
    path = "/brokers/topics/t/partitions/0/state"
    history.znodes[path] = (history.znodes[path][0], 5)
    history.state("t", 0, 3, 4, [3])
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences) == (0, {"different_leader": 1, "missed_changes": 5})
