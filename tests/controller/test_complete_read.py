"""Znodes that are gone in a new complete read, and must leave the context."""

from __future__ import annotations

import pytest

from controller.contract.alert_row import AlertRow
from tests.controller.znode_history import ZnodeHistory, on

SETTINGS = {"version": 1, "config": {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}}


def read_again(history: ZnodeHistory, *gone: str) -> None:
    """Begin the forwarder's next generation without these znodes and their children."""
    history.generation, history.seq, history.zxid = history.generation + 1, -1, history.zxid + 10
    for path in gone:
        history.znodes = {key: stat for key, stat in history.znodes.items() if not f"{key}/".startswith(f"{path}/")}


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ("/config/topics/t", ()),
        ("/config/brokers/<default>", ()),
        ("/config/brokers/1", ()),
        ("/config/topics/t", ("/brokers/topics/t",)),
    ],
    ids=["topic", "all brokers", "broker", "recreated topic"],
)
def test_settings_that_are_gone_in_a_complete_read_are_forgotten(settings, gone):
    history = ZnodeHistory(release=(2, 8)).start(1, 2, topics=on([1], 1, 0, [1]))
    history.write(settings, SETTINGS)
    assert history.gauges().under_min_isr_partitions == 1
    read_again(history, settings, *gone)
    history.start(1, 2, topics=on([1], 1, 0, [1]))
    history.heartbeat(5_000)
    assert history.gauges().under_min_isr_partitions == 0
    assert history.open_alerts() == {}
    topic = history.context.topics.get("t")
    assert (topic.min_insync_replicas, topic.unclean_election) == (None, None)
    assert history.context.header.configuration.dynamic == {}


def test_settings_outlive_their_topic_where_a_complete_read_names_them_alone():
    """The topic is created again later. Unchanged settings produce no record then."""
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 0, [1]))
    history.write("/config/topics/t", SETTINGS)
    read_again(history, "/brokers/topics/t")
    history.snapshot(("/controller", {"brokerid": 1}), ("/config/topics/t", SETTINGS))
    history.topic("t", {0: [1]})
    assert history.context.topics.get("t").min_insync_replicas == 2
    read_again(history, "/brokers/topics/t", "/config/topics/t")
    history.snapshot(("/controller", {"brokerid": 1}))
    assert history.context.topics.get("t") is None


def test_settings_that_a_complete_read_names_again_stay():
    history = ZnodeHistory().start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.write("/config/topics/t", SETTINGS)
    history.write("/config/brokers/1", SETTINGS)
    read_again(history)
    history.snapshot(("/config/topics/t", SETTINGS), ("/config/brokers/1", SETTINGS), ("/brokers/topics/t", {}))
    assert history.context.header.configuration.dynamic == {"1": SETTINGS["config"]}


def test_a_state_that_is_gone_in_a_complete_read_is_forgotten():
    """The topic was created again, and the controller has not created its partition yet."""
    history = ZnodeHistory().start(1, 2, topics=on([1], 1, 3, [1]))
    read_again(history, "/brokers/topics/t")
    history.start(1, 2, topics={"t": {0: ([2],)}})
    assert history.context.topics.get("t").partitions[0].zk_state is None
    assert history.row("t", 0).problem == "not_yet_created"


@pytest.mark.parametrize("is_back", [False, True])
def test_a_shutdown_by_a_registration_that_is_gone_in_a_complete_read_is_forgotten(is_back):
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([2, 3], 2, 0, [2])}}
    history = ZnodeHistory().start(1, 2, 3, topics=topics)
    history.state("t", 0, 3, 1, [3])
    assert history.context.header.shutdowns.under_way == (2,)
    assert history.context.header.shutdowns.attempts.keys() == {2}
    read_again(history, *(["/brokers/ids/2"] if is_back else []))
    history.start(*((1, 2, 3) if is_back else (1, 3)), topics=topics)
    assert history.context.header.shutdowns.under_way == ()
    history.heartbeat(60_000)  # no further request arrives


def test_a_broker_that_left_while_no_controller_was_active_does_not_ask_again():
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([2, 3], 2, 0, [2])}}
    history = ZnodeHistory().start(1, 2, 3, topics=topics)
    history.state("t", 0, 3, 1, [3])
    history.delete("/controller")
    history.broker_leaves(2)
    history.write("/controller", {"version": 2, "brokerid": 1, "kraftControllerEpoch": -1}, owner=0x7777)
    assert history.context.header.acting
    history.heartbeat(60_000)
    assert sorted(history.context.header.brokers) == [1, 3]


def test_a_state_that_comes_again_changes_nothing():
    history = ZnodeHistory().start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.state("t", 0, 1, 0, [1])
    written = history.records[-1]
    fields = {"path": written.path, "version": written.version, "zxid": written.zxid, "data": written.data}
    assert history.send(written.kind, **fields) == ()


def test_a_row_of_a_resolved_alert_ends_its_subject():
    history = ZnodeHistory().start(1, 2, topics=on([2], 2, 0, [2]))
    history.broker_leaves(2)
    history.heartbeat()
    assert not any(alert.ends_subject for alert in history.open_alerts().values())
    opened = set(history.open_alerts())
    history.broker(2)
    history.the_controller_writes_its_due()
    history.heartbeat(60_000)
    ended = {row.id for row in history.effects if isinstance(row, AlertRow) and row.ends_subject}
    assert opened - set(history.open_alerts()) <= ended
    assert ended
