"""The first message of a loss has its worst damage, and what a person must learn later is news, once."""

from __future__ import annotations

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.metadata_rows import PartitionRow
from tests.controller.znode_history import ZnodeHistory, controller_znode

TOPICS = {
    "a-scratch": {0: ([1], 1, 0, [1])},
    "ledger": {number: ([1, 2, 3], 1, 0, [1, 2, 3]) for number in range(6)},
    "orders": {0: ([1, 2], 1, 0, [1, 2]), 1: ([3], 3, 0, [3])},
}


def a_cluster(controller: int = 4) -> ZnodeHistory:
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, 4, controller=controller, topics=TOPICS)
    history.write("/config/topics/ledger", {"version": 1, "config": {"min.insync.replicas": "3"}})
    history.heartbeat()
    return history


def offline(history: ZnodeHistory, subject: str) -> list[AlertRow]:
    return [row for row in history.effects if isinstance(row, AlertRow) and row.id == f"PartitionsOffline/{subject}"]


def rejecting(history: ZnodeHistory) -> list[tuple[str, int, tuple[int, ...]]]:
    """Return the led partitions that reject acks=all, each with how many of which replicas must get in sync."""
    rows = {(row.topic, row.partition): row for row in history.effects if isinstance(row, PartitionRow)}
    found = [row for row in rows.values() if row.problem == "under_min_isr"]
    assert all(
        "rejects acks=all: 2 of 3 replicas are in sync, 3 needed. Missing: broker 1" in row.reason for row in found
    )
    return [(f"{row.topic}-{row.partition}", row.in_sync_lacking, row.in_sync_candidates) for row in found]


@pytest.mark.parametrize("controller_dies", [False, True])
def test_the_first_message_has_the_damage_of_due_writes_offline_partitions_first(controller_dies):
    history = a_cluster(controller=1 if controller_dies else 4)
    history.state("ledger", 5, 2, 1, [1, 2, 3])
    history.heartbeat()
    history.controller_dies(1) if controller_dies else history.broker_leaves(1)  # before a controller writes anything
    assert rejecting(history) == [("ledger-5", 1, (1,))]
    (first,) = offline(history, "broker 1")
    assert first.cause.startswith(
        "1 partition offline (a-scratch-0): no client can use it until broker 1 returns. 6 partitions reject acks=all "
        "(ledger-0, ledger-1, …). 7 partitions are under-replicated"
    )
    if controller_dies:
        history.controller(2, 2)
    history.the_controller_writes_its_due()
    for _ in range(600):
        history.heartbeat()
    rows = offline(history, "broker 1")
    assert {(row.news, row.brokers, row.severity) for row in rows} == {((), (1,), Severity.PAGE)}


def test_a_broker_that_joins_the_incident_is_told_at_once_with_what_it_took_offline():
    history = a_cluster()
    history.broker_leaves(1)
    history.now_ms += 1_500
    history.broker_leaves(2)
    alone, both = offline(history, "broker 1")
    assert (alone.brokers, alone.partitions) == ((1,), 1)
    assert (both.brokers, both.partitions) == ((1, 2), 2)
    assert "2 partitions offline (orders-0, a-scratch-0)" in both.cause


@pytest.mark.parametrize(
    ("survivor", "order"),
    [
        (3, ". Broker 3 brings back 2, then broker 2 makes it all 3"),  # as planned when the controller registers
        (2, " until broker 2 returns"),  # as written, because the order in the controller's memory is unknown
    ],
)
def test_the_first_message_has_the_step_after_the_next_controllers_writes(survivor, order):
    topics = {"orders": {0: ([2, 3], 2, 0, [2, 3]), 1: ([3, 2], 3, 0, [3, 2])}, "scratch": {0: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, controller=2, topics=topics)
    history.heartbeat()
    history.controller_dies(2)
    history.broker_leaves(3)  # in the same tick of ZooKeeper
    assert "until broker 2 returns" in offline(history, "broker 2")[-1].cause
    history.now_ms += 30  # as long as three brokers of 3.9.2 took
    history.controller(1, 2)
    assert ". Broker 3 brings back 2, then broker 2 makes it all 3" in offline(history, "broker 2")[-1].cause
    for number in range(2):
        history.state("orders", number, -1, 1, [survivor], controller_epoch=2)
    history.heartbeat()
    told = offline(history, "broker 2")[-1]
    assert order in told.cause
    for _ in range(20):
        history.heartbeat()
    assert offline(history, "broker 2")[-1] == told
    assert told.news == ()


def test_further_damage_and_another_next_step_are_news_and_each_is_told_once():
    history = a_cluster()
    history.delete_topic("ledger")
    history.the_controller_writes_its_due()
    history.topic_vanishes("ledger", *range(6))
    history.broker_leaves(1)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    assert offline(history, "broker 1")[-1].news == ()
    history.write("/config/topics/orders", {"version": 1, "config": {"min.insync.replicas": "2"}})
    for _ in range(60):
        history.heartbeat()
    news = "1 partition rejects acks=all (orders-0)"
    assert offline(history, "broker 1")[-1].news == (news,)
    history.write("/config/topics/orders", {"version": 1, "config": {}})
    history.heartbeat(6_000)
    history.write("/config/topics/orders", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.heartbeat(6_000)
    assert offline(history, "broker 1")[-1].news == (news,)


@pytest.mark.parametrize(("rank", "is_news"), [(1, True), (100, False), (200, False)])
def test_a_more_important_topic_that_joins_the_same_damage_is_news_once(rank, is_news):
    topics = {name: {0: ([1, 2], 1, 0, [1, 2])} for name in ("free", "ledger")}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 4, controller=4, topics=topics)
    history.context.header.topic_ranks = (("ledger", rank),)
    history.write("/config/topics/free", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.broker_leaves(2)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    history.write("/config/topics/ledger", {"version": 1, "config": {"min.insync.replicas": "2"}})
    for _ in range(60):
        history.heartbeat()
    alert = history.open_alerts()["PartitionsUnderMinIsr/broker 2"]
    names = "ledger-0, free-0" if rank < 100 else "free-0, ledger-0"
    assert alert.cause.startswith(f"2 partitions reject acks=all ({names})")
    assert alert.news == ((f"2 partitions reject acks=all ({names})",) if is_news else ())


@pytest.mark.parametrize("cut_off", [False, True])
def test_while_no_controller_acts_elections_have_its_step_and_page_nobody(cut_off):
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, controller=1, topics=TOPICS)
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    assert history.open_alerts()["PartitionsOffline/broker 3"].partitions == 1
    if cut_off:  # the controller lost only its registration
        history.broker_leaves(1)
    else:
        history.write("/controller", controller_znode(2), owner=0x77)
    for _ in range(12):
        history.heartbeat()
    assert history.open_alerts()["GhostController"].severity is Severity.PAGE
    history.broker(3)
    for _ in range(12):
        history.heartbeat()
    waiting = history.open_alerts()["PartitionsOffline/partitions"]
    assert (waiting.severity, waiting.group) == (Severity.WARN, "controller")
    assert waiting.action == history.open_alerts()["GhostController"].action
    assert "until the next controller (none is active) elects" in waiting.cause


@pytest.mark.parametrize("takes_a_partition", [True, False])
def test_a_failed_disk_ends_with_its_process_or_if_it_pages_in_sync(takes_a_partition):
    history, disk = a_cluster(), "LogDirFailed/broker 3"
    history.write("/log_dir_event_notification/log_dir_event_0", {"version": 1, "broker": 3, "event": 1})
    history.heartbeat(1_000)
    assert disk not in history.open_alerts()  # until the controller has shown what was lost
    if takes_a_partition:
        history.state("orders", 1, -1, 1, [3])
    history.heartbeat(6_000)
    pages = [row.id for row in history.open_alerts().values() if row.severity is Severity.PAGE]
    assert pages == ["PartitionsOffline/broker 3" if takes_a_partition else disk]
    assert history.open_alerts()[disk].group == history.open_alerts()[pages[0]].group
    history.broker_leaves(3)
    assert (disk in history.open_alerts()) is not takes_a_partition
    history.broker(3)
    history.heartbeat()
    assert (disk in history.open_alerts()) is not takes_a_partition
    history.the_controller_writes_its_due()
    for number in range(6):
        history.state("ledger", number, 1, 2, [1, 2, 3])
    history.heartbeat()
    assert disk not in history.open_alerts()


@pytest.mark.parametrize(
    ("topic", "pages"),
    [("orders", ["BrokerCrashed", "BrokerCrashed", "BrokerFlapping"]), ("a-scratch", ["PartitionsOffline"] * 3)],
)
def test_a_broker_that_keeps_leaving_has_one_page(topic, pages):
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 4, controller=4, topics={topic: {0: TOPICS[topic][0]}})
    for page in pages:
        history.broker_leaves(1)
        history.the_controller_writes_its_due()
        for _ in range(2):
            history.heartbeat(6_000)
        assert [row.alert for row in history.open_alerts().values() if row.severity is Severity.PAGE] == [page]
        history.broker(1)
        history.the_controller_writes_its_due()
        history.heartbeat(20_000)


def test_another_broker_to_start_first_is_news():
    topics = {"t": {0: ([1], 1, 0, [1]), 1: ([1], 1, 0, [1]), 2: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 4, controller=4, topics=topics)
    history.broker_leaves(1)
    history.broker_leaves(2)
    history.heartbeat(6_000)
    assert "Broker 1 brings back 2, then broker 2 makes it all 3" in offline(history, "broker 1")[-1].cause
    history.broker(1)
    history.the_controller_writes_its_due()
    for _ in range(10):
        history.heartbeat()
    assert offline(history, "broker 1")[-1].news == ("Next: start broker 2",)
    assert offline(history, "broker 1")[-1].state == "open"
