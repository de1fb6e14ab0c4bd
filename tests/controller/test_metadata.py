"""Cluster metadata at one moment, from any content of the znodes."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from controller.view.metadata import (
    BrokerMetadata,
    ControllerMetadata,
    PartitionMetadata,
    UnreadableZnode,
    Znode,
    cluster_metadata,
)
from tests.controller.znode_history import broker_znode, controller_znode, state_znode, topic_znode

PATHS = [
    "/controller",
    "/controller_epoch",
    "/brokers/ids/1",
    "/brokers/topics/t",
    "/brokers/topics/t/partitions/0/state",
    "/admin/delete_topics/t",
    "/config/topics/t",
    "/config/brokers/1",
    "/somewhere/else",
]


def znode(path: str, content: object, czxid: int = 5) -> Znode:
    return Znode(path, content if isinstance(content, bytes) else json.dumps(content).encode(), czxid)


def test_a_cluster_is_published_in_order_whatever_the_order_of_its_znodes():
    told = list(
        cluster_metadata(
            [
                znode("/brokers/topics/t/partitions/1/state", state_znode(1, 4, [1])),
                znode("/brokers/topics/t", topic_znode({1: [1, 2], 0: [3]}, removing_replicas={"1": [2]})),
                znode("/admin/delete_topics/u", b""),
                znode("/brokers/topics/u", topic_znode({0: [1]})),
                znode("/brokers/topics/u/partitions/0/state", state_znode(9, 1, [9])),
                znode("/brokers/ids/2", broker_znode(2), 12),
                znode("/brokers/ids/1", broker_znode(1), 11),
                znode("/controller", controller_znode(2)),
                znode("/controller_epoch", b"7"),
                znode("/config/topics/t", {"version": 1, "config": {}}),
                znode("/feature", {"version": 1, "status": 0, "features": {}}),
            ]
        )
    )
    assert [(line.broker, line.epoch, line.registered) for line in told[:2]] == [(1, 11, True), (2, 12, True)]
    assert told[2] == BrokerMetadata(3, -1, registered=False)
    assert told[3] == ControllerMetadata(2, 7)
    assert told[4:] == [
        PartitionMetadata("t", 0, (3,), -1, -1, (), "NewPartition", (), (), False),
        PartitionMetadata("t", 1, (1, 2), 1, 4, (1,), "OnlinePartition", (), (2,), False),
        PartitionMetadata("u", 0, (1,), 9, 1, (9,), "OfflinePartition", (), (), True),
    ]


def test_of_nothing_there_is_a_cluster_without_a_controller():
    assert list(cluster_metadata([])) == [ControllerMetadata(-1, -1)]


def test_a_znode_that_cannot_be_read_is_named_before_the_rest():
    told = list(cluster_metadata([znode("/brokers/ids/1", broker_znode(1)), znode("/controller_epoch", b"seven")]))
    assert [type(line) for line in told] == [UnreadableZnode, BrokerMetadata, ControllerMetadata]
    assert told[0].path == "/controller_epoch"
    assert told[2] == ControllerMetadata(-1, -1)


def test_a_state_that_cannot_be_read_is_none_that_was_never_written():
    topic = znode("/brokers/topics/t", topic_znode({0: [1], 1: [1], 2: [1]}))
    garbage = znode("/brokers/topics/t/partitions/1/state", b"{")
    hidden = "/brokers/topics/t/partitions/2/state"
    told = list(cluster_metadata([topic, garbage], [hidden]))
    assert [line.path for line in told[:2]] == [hidden, garbage.path]
    states = [line.state for line in told if isinstance(line, PartitionMetadata)]
    assert states == ["NewPartition", "Unreadable", "Unreadable"]
    below = list(cluster_metadata([topic], ["/brokers/topics/t/partitions"]))
    assert {line.state for line in below if isinstance(line, PartitionMetadata)} == {"Unreadable"}


@given(st.lists(st.tuples(st.sampled_from(PATHS), st.none() | st.binary(max_size=40)), max_size=8))
def test_whatever_is_in_them_each_znode_is_forwarded_or_named(znodes):
    told = list(cluster_metadata(Znode(path, data, 1) for path, data in znodes))
    assert sum(isinstance(line, ControllerMetadata) for line in told) == 1
    assert all(line.reason for line in told if isinstance(line, UnreadableZnode))
