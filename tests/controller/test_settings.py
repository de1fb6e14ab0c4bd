"""Settings of topics and brokers follow their znodes, also where a znode went while nobody watched."""

from __future__ import annotations

import pytest

from tests.controller.znode_history import ZnodeHistory, on

STRICT = {"version": 1, "config": {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}}
ONE_REPLICA = on([1], 1, 0, [1])


@pytest.mark.parametrize("path", ["/config/topics/t", "/config/brokers/<default>"])
def test_a_complete_read_forgets_settings_whose_znode_is_gone(path):
    history = ZnodeHistory(release=(2, 8)).start(1, 2, topics=ONE_REPLICA)
    history.write(path, STRICT)
    history.heartbeat(5_000)
    assert history.gauges().under_min_isr_partitions == 1
    read_again(history, without=path)
    assert history.gauges().under_min_isr_partitions == 0
    assert "PartitionsUnderMinIsr/partitions" not in history.open_alerts()
    assert not history.context.header.allows_unclean_election


def test_a_complete_read_keeps_settings_whose_znode_is_there():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, topics=ONE_REPLICA)
    history.write("/config/topics/t", STRICT)
    read_again(history, without="")
    assert history.gauges().under_min_isr_partitions == 1


def test_a_complete_read_forgets_settings_of_a_topic_that_does_not_exist():
    history = ZnodeHistory(release=(2, 8)).start(1, 2)
    history.write("/config/topics/t", STRICT)
    assert history.context.topics.get("t") is not None
    read_again(history, without="/config/topics/t")
    assert history.context.topics.get("t") is None


def read_again(history: ZnodeHistory, *, without: str) -> None:
    """Let the next forwarder read every znode that was written, but for one that is gone."""
    history.generation += 1
    history.seq = -1
    history.snapshot(*((path, content) for path, content in history.contents.items() if path != without))
    history.heartbeat(5_000)
