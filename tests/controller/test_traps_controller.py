"""Traps about brokers, controllers and their memory for a replica that follows Kafka's documentation alone.

A release in brackets names where a behaviour applies.
"""

import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import ControllerRow
from controller.contract.records import RecordKind
from tests.controller.znode_history import ZnodeHistory, broker_znode, controller_znode

TOPIC = {"t": {0: ([2, 3], 2, 0, [2, 3])}}


def open_alerts(history: ZnodeHistory) -> dict[str, AlertRow]:
    last = {row.id: row for row in history.effects if isinstance(row, AlertRow)}
    return {key: row for key, row in last.items() if row.state == "open"}


def assert_nobody_acts(history: ZnodeHistory) -> None:
    """Kill a broker, and expect no action of a controller."""
    effects = history.broker_leaves(2)
    assert history.transitions(effects) == []
    assert history.requests(effects) == []
    assert history.gauges().pending_writes == 0


# 8: broker epochs


# Trap 8. The czxid of a broker's znode is the broker epoch. A fresh registration already has data version 1 (from
# 2.2).
def test_trap_08_a_fresh_registration_already_has_data_version_1_and_is_no_change():
    history = ZnodeHistory().start(1, 2, topics=TOPIC)
    history.zxid += 1
    effects = history.write("/brokers/ids/3", broker_znode(3), same_zxid=True, version=1)
    assert history.transitions(effects)[0] == "final broker 3 dead -> live"
    assert history.brokers()[3].epoch == history.zxid


def test_trap_08_changed_endpoints_are_sent_to_all_brokers_and_a_rack_to_none():
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    assert history.requests(history.write("/brokers/ids/2", broker_znode(2) | {"rack": "r1"})) == []
    epoch = history.brokers()[2].epoch
    changed = broker_znode(2) | {"endpoints": ["PLAINTEXT://elsewhere:9094"]}
    assert history.requests(history.write("/brokers/ids/2", changed)) == [
        "final UpdateMetadata to 1,2,3: no partitions"
    ]
    assert (history.brokers()[2].epoch, history.gauges().pending_writes) == (epoch, 0)


# 9 and 10: epochs


# Trap 10. `/controller_epoch` begins with 0 from 2.1 on and with 1 before. An old controller epoch in a state is
# normal.
@pytest.mark.parametrize("first_epoch", [b"0", None])
def test_trap_10_the_first_epoch_is_1_whether_or_not_the_znode_was_made_as_0(first_epoch):
    history = ZnodeHistory()
    history.snapshot()
    history.broker(1)
    if first_epoch is not None:  # from 2.1 on
        history.write("/controller_epoch", first_epoch)
    history.write("/controller", controller_znode(1))
    assert not history.context.header.acting
    history.write("/controller_epoch", b"1")
    assert history.context.header.acting
    assert history.gauges().controller_epoch == 1


# 11: ghosts


def test_trap_11_who_writes_the_acting_controllers_id_again_changes_nothing():
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    edited = {**controller_znode(1), "timestamp": "99"}
    assert [row for row in history.write("/controller", edited) if isinstance(row, (Transition, ControllerRow))] == []
    history.heartbeat(60_000)
    assert "GhostController" not in history.open_alerts()
    history.topic("later", {0: [2, 3]})
    assert history.predicted("later", 0) == (2, 0, (2, 3))


def test_trap_11_the_id_that_is_set_back_makes_nobody_act_again():
    """The broker counts itself as active then, but does not act."""
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    history.write("/controller", controller_znode(3))
    history.write("/controller", controller_znode(1))
    assert_nobody_acts(history)
    history.heartbeat(60_000)
    assert "/controller names broker 1 but was edited" in history.open_alerts()["GhostController"].cause


def test_trap_11_a_ghost_that_a_snapshot_finds_is_one_too():
    history = ZnodeHistory()
    history.znodes["/controller"] = (90, 0)
    history.start(1, 2, 3, topics=TOPIC)
    assert_nobody_acts(history)


# 24, memory that a failover clears


# 30 to 32, the counts


TOPIC_V1 = {"version": 1, "partitions": {"0": [1]}}
TOPIC_V2 = {"version": 2, "partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}}
TOPIC_V3 = TOPIC_V2 | {"version": 3, "topic_id": "_EOu-aHUSKuKzvTtnqs9Zw"}
BROKER_V1 = {"version": 1, "host": "h", "port": 1, "jmx_port": -1, "timestamp": "1"}
BROKER_V2 = BROKER_V1 | {"version": 2, "endpoints": ["PLAINTEXT://h:1"]}
BROKER_V4 = BROKER_V2 | {"version": 4, "host": None, "port": -1, "listener_security_protocol_map": {"PLAINTEXT": "SSL"}}
BROKER_V5 = BROKER_V4 | {"version": 5, "features": {"f": {"min_version": 1, "max_version": 2}}}


# Trap 31. A topic znode's version follows the binary, a broker znode's version follows the IBP.
@pytest.mark.parametrize(
    ("broker", "topic", "release"),
    [
        (BROKER_V4, TOPIC_V1, (2, 2)),
        (BROKER_V4, TOPIC_V2, (2, 4)),
        (BROKER_V5, TOPIC_V2, (2, 7)),
        (BROKER_V4, TOPIC_V3, (2, 8)),  # an IBP that was held back. The topic's version follows the binary
    ],
)
def test_trap_31_the_release_follows_from_the_topic_znode_rather_than_the_brokers(broker, topic, release):
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/controller", {"version": 1, "brokerid": 1, "timestamp": "1"}, owner=0x1001)
    history.write("/controller_epoch", b"1")
    history.write("/brokers/ids/1", broker, version=1)
    history.write("/brokers/topics/t", topic)
    history.send(RecordKind.SNAPSHOT_END)
    assert history.context.header.profile.release == release
    # If several releases leave the same znodes, a session gets the longest timeout among them.
    timeout_ms = 6_000 if release < (2, 4) else 18_000
    assert history.context.header.settings.zookeeper_session_timeout_ms == timeout_ms


def with_features(topic: dict, broker: dict, *features: object) -> ZnodeHistory:
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/controller", {"version": 1, "brokerid": 1, "timestamp": "1"}, owner=0x1001)
    history.write("/controller_epoch", b"1")
    history.write("/brokers/ids/1", broker, version=1)
    history.write("/brokers/topics/t", topic)
    for written in features:
        history.write("/feature", written)
    history.send(RecordKind.SNAPSHOT_END)
    return history


OFF, ON, ON_V2 = (
    {"version": version, "status": status, "features": {}} for version, status in ((1, 0), (1, 1), (2, 1))
)


@pytest.mark.parametrize(
    ("topic", "broker", "features", "release", "asks"),
    [
        (TOPIC_V2, BROKER_V4, [], (2, 4), False),
        (TOPIC_V2, BROKER_V4, [OFF], (2, 7), False),  # the IBP is an older one
        (TOPIC_V2, BROKER_V4, [OFF, ON], (2, 7), True),  # until the next controller has another
        (TOPIC_V2, BROKER_V5, [ON], (2, 7), True),
        (TOPIC_V3, BROKER_V4, [OFF], (2, 8), False),
        (TOPIC_V3, BROKER_V5, [ON], (2, 8), True),
        (TOPIC_V3, BROKER_V5, [ON_V2], (3, 3), True),
        (TOPIC_V3, BROKER_V5, [ON_V2, ON], (3, 3), True),  # no controller takes the version back
    ],
)
def test_trap_31_features_part_releases_that_leave_the_same_topics_and_brokers(topic, broker, features, release, asks):
    history = with_features(topic, broker, *features)
    profile = history.context.header.profile
    assert (profile.release, profile.hears_isr_changes_at_once) == (release, asks)
    assert history.refusals() == []


@pytest.mark.parametrize("features", [b"", b"{}", OFF | {"version": 0}, OFF | {"status": 2}, OFF | {"status": None}])
def test_trap_31_features_that_kafka_refuses_say_nothing_and_are_refused(features):
    history = with_features(TOPIC_V2, BROKER_V4, features)
    assert history.context.header.profile.release == (2, 4)
    assert [refused.path for refused in history.refusals()] == ["/feature"]


# Trap 32. Zxids give the order, not clocks. Data versions and leader epochs show how many ISR changes were not seen.
def test_trap_32_the_order_is_by_zxid_and_position_never_by_the_clock():
    history = ZnodeHistory().start(1, 2, 3, topics=TOPIC)
    history.broker_leaves(2)
    history.now_ms -= 500_000
    history.state("t", 0, 3, 1, [3])
    assert history.row("t", 0).leader == 3
    assert history.context.header.zxid == history.zxid


def test_trap_32_an_unread_isr_change_is_counted_by_versions_and_epochs():
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([2, 1, 3], 2, 0, [2, 1, 3])}})
    history.broker_leaves(3)
    path = "/brokers/topics/t/partitions/0/state"
    history.znodes[path] = (history.znodes[path][0], 1)  # version 1, the leader's own write, is never read
    history.state("t", 0, 2, 1, [2])
    gauges = history.gauges()
    assert history.row("t", 0).partition_epoch == 2
    assert (gauges.isr_changes, gauges.divergences, gauges.pending_writes) == ({"shrink": 1}, {"missed_changes": 1}, 0)


# 33 and 34, the end of predictions


def test_trap_34_a_topic_whose_id_the_snapshot_repeats_is_alerted_too():
    history = ZnodeHistory()
    history.start(
        1, 2, topics={"a": {0: ([1], 1, 0, [1])}, "b": {0: ([2], 2, 0, [2])}}, topic_id="sameAAAAAAAAAAAAAAAAAA"
    )
    history.heartbeat(60_000)
    causes = [row.cause for row in open_alerts(history).values()]
    assert any("topics a and b have" in cause and "same" in cause for cause in causes)
    assert isinstance(history.gauges(), GaugesRow)
