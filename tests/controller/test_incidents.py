"""Incidents of any size. Brokers that are away together page once for their partitions and once for themselves."""

from __future__ import annotations

import random
from copy import copy
from functools import lru_cache
from itertools import product

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.model.context import Context
from controller.says.alert_kinds.divergences import CONTROLLER_DISAGREES
from tests.controller.znode_history import (
    ZnodeHistory,
    broker_znode,
    catch_up,
    controller_znode,
    state_znode,
    topic_znode,
)

BROKERS = 30
RACKS = 3
MINUTE_MS = 60_000
# One process makes each large cluster once, which takes seconds. All take a minute and no branch that smaller clusters
# do not take, so they run with the long tests.
OF_LARGE = [pytest.mark.nightly, pytest.mark.xdist_group("large clusters")]
LARGE = pytest.param(200_000, marks=OF_LARGE)
UNTRACED = pytest.mark.no_cover  # with the branches of 200 partitions, in a third of the time
SIZES = (200, pytest.param(12_000, marks=UNTRACED), LARGE)
PLACED = ("anywhere", "one in each rack", "within a rack")
AT_ONCE_FROM = 10_000  # partitions. From this size on, the loss of many brokers is one complete read without them
OF_PARTITIONS = {"PartitionsOffline", "PartitionsUnderMinIsr", "PartitionsLeaderless", "ElectionDue"}


def rack_of(broker: int) -> str:
    return f"eu-{broker % RACKS + 1}"


@lru_cache(maxsize=8)
def a_large_cluster(partitions: int, placed: str) -> ZnodeHistory:
    """Return 30 brokers in three racks. Partitions lie anywhere, one replica in each rack, or within one rack."""
    placement = random.Random(partitions)
    topics: dict[str, dict[int, list[int]]] = {}
    for number in range(partitions):
        topics.setdefault(f"topic-{number % 40}", {})[number // 40] = replicas_of(placement, placed)
    znodes = {
        "/controller": controller_znode(1),
        "/controller_epoch": 1,
        **{f"/brokers/ids/{broker}": broker_znode(broker) | {"rack": rack_of(broker)} for broker in range(BROKERS)},
        **{f"/brokers/topics/{name}": topic_znode(replicas) for name, replicas in topics.items()},
        **{
            f"/brokers/topics/{name}/partitions/{number}/state": state_znode(replicas[0], 0, replicas, 1)
            for name, assignment in topics.items()
            for number, replicas in assignment.items()
        },
    }
    history = ZnodeHistory(chunk_count=64, settings={"min.insync.replicas": 2})
    history.start_from(znodes)
    history.heartbeat()
    return history


def replicas_of(placement: random.Random, placed: str) -> list[int]:
    if placed == "anywhere":
        return placement.sample(range(BROKERS), 3)
    rack = placement.randrange(RACKS)
    if placed == "within a rack":
        return placement.sample(range(rack, BROKERS, RACKS), 3)
    return [placement.choice(range((rack + at) % RACKS, BROKERS, RACKS)) for at in range(RACKS)]


def a_copy(partitions: int, placed: str = "anywhere") -> ZnodeHistory:
    """Return an independent history that goes on from that cluster."""
    history = a_large_cluster(partitions, placed)
    fresh = ZnodeHistory()
    vars(fresh).update({key: copy(value) for key, value in vars(history).items()})
    return fresh


def lose(history: ZnodeHistory, brokers, each_ms: int = 200) -> None:
    brokers = list(brokers)
    if len(brokers) > 2 and history.context.header.tally.gauges.partitions >= AT_ONCE_FROM:
        find_away(history, brokers)
        return
    for broker in brokers:
        history.now_ms += each_ms
        history.broker_leaves(broker)


def find_away(history: ZnodeHistory, brokers) -> None:
    """Make a complete read without these brokers."""
    away = {f"/brokers/ids/{broker}" for broker in brokers}
    history.generation += 1
    history.start_from({path: content for path, content in history.contents.items() if path not in away})


def pages(history: ZnodeHistory) -> dict[str, AlertRow]:
    return {key: row for key, row in history.open_alerts().items() if row.severity is Severity.PAGE}


def assert_one_alert_a_kind_and_incident(history: ZnodeHistory) -> None:
    by_group: dict[tuple[str, str], list[str]] = {}
    for row in history.open_alerts().values():
        if row.alert != CONTROLLER_DISAGREES.name:  # which has an alert for each kind of disagreement
            by_group.setdefault((row.group, row.alert), []).append(row.id)
    assert [item for item in by_group.items() if len(item[1]) > 1] == []
    incidents = {row.group for row in history.open_alerts().values() if row.brokers}
    assert incidents <= {incident.name for incident in history.context.header.alerts.incidents} | {
        "controller",
        "partitions",
    }
    for group in incidents - {"controller"}:
        paged = {row.alert for row in pages(history).values() if row.group == group}
        assert len(paged & OF_PARTITIONS) <= 1, paged
        assert len(paged - OF_PARTITIONS) <= 1, paged


@pytest.mark.parametrize(
    ("partitions", "placed"),
    [
        *product((200,), PLACED),
        *(pytest.param(12_000, placed, marks=UNTRACED) for placed in PLACED),
        pytest.param(200_000, "anywhere", marks=OF_LARGE),
    ],
)
def test_a_rack_is_one_incident(partitions, placed):
    history = a_copy(partitions, placed)
    rack = range(0, BROKERS, RACKS)
    lose(history, rack)
    history.heartbeat(6_000)
    assert_one_alert_a_kind_and_incident(history)
    assert {row.group for row in history.open_alerts().values() if row.broker is not None} == {"broker 0"}
    (crashed,) = [row for row in history.open_alerts().values() if row.alert == "BrokerCrashed"]
    assert crashed.brokers == tuple(rack)
    within = "1 s" if partitions >= AT_ONCE_FROM else "2 s"
    assert crashed.cause.startswith(
        f"brokers 0, 3, 6, 9, 12, 15, 18, 21, 24 and 27 crashed within {within}, rack eu-1: "
    ), crashed.cause


@pytest.mark.parametrize("partitions", SIZES)
def test_half_the_cluster_is_one_incident_that_names_whose_return_helps_most(partitions):
    history = a_copy(partitions)
    lost = range(2, 2 + BROKERS // 2)
    find_away(history, lost)
    history.heartbeat(6_000)
    assert_one_alert_a_kind_and_incident(history)
    assert {row.group for row in pages(history).values() if row.broker is not None} == {"broker 2"}
    (offline,) = [row for row in history.open_alerts().values() if row.alert == "PartitionsOffline"]
    unusable = offline_partitions(history.context)
    assert offline.partitions == len(unusable) > 0
    gains = {broker: sum(broker in isr for _, isr in unusable) for broker in lost}
    best = min(gains, key=lambda broker: (-gains[broker], broker))
    assert f". Broker {best} brings back {gains[best]}, then broker " in offline.cause
    assert f"all {len(unusable)} need " in offline.cause
    assert len(offline.examples) == 10


def offline_partitions(context: Context) -> list[tuple[str, tuple[int, ...]]]:
    live = context.header.brokers.keys()
    return [
        (f"{name}-{number}", partition.zk_state.isr)
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
        if not live & set(partition.zk_state.isr)
    ]


@pytest.mark.parametrize("partitions", SIZES)
def test_one_broker_is_one_page_and_so_are_two_within_two_seconds(partitions):
    history = a_copy(partitions, "anywhere" if partitions == 200_000 else "one in each rack")
    lose(history, [4])
    history.heartbeat()
    assert list(pages(history)) == ["BrokerCrashed/broker 4"]
    lose(history, [5], each_ms=1_000)
    history.heartbeat(6_000)
    assert_one_alert_a_kind_and_incident(history)
    assert {row.group for row in history.open_alerts().values() if row.broker is not None} == {"broker 4"}
    assert history.open_alerts()["BrokerCrashed/broker 4"].brokers == (4, 5)


def in_a_chain(history: ZnodeHistory, count: int) -> list[int]:
    """Return `count` brokers from 0 on, each with a partition in common with the one before it."""
    replicas = [partition.replicas for _, topic in history.context.topics for partition in topic.partitions.values()]
    chain = [0]
    while len(chain) < count:
        chain.append(next(at for hosts in replicas if chain[-1] in hosts for at in hosts if at not in chain))
    return chain


@pytest.mark.parametrize("partitions", SIZES)
def test_each_crash_of_a_rolling_crash_is_an_incident_of_its_own(partitions):
    history = a_copy(partitions)
    brokers = in_a_chain(history, 10 if partitions < 10_000 else 4)
    for before, broker in zip([None, *brokers], brokers, strict=False):
        lost_ms = history.now_ms
        lose(history, [broker])
        if partitions < AT_ONCE_FROM:
            history.the_controller_writes_its_due()
        history.heartbeat(10 * MINUTE_MS // len(brokers))
        crashed = history.open_alerts()[f"BrokerCrashed/broker {broker}"]
        assert (crashed.brokers, crashed.group) == ((broker,), f"broker {broker}")
        assert crashed.since_ms >= lost_ms
        if before is not None:
            history.broker(before)
        history.heartbeat()
        assert_one_alert_a_kind_and_incident(history)


@pytest.mark.parametrize("partitions", SIZES)
def test_two_racks_that_share_no_partition_are_two_incidents_however_close(partitions):
    history = a_copy(partitions, "within a rack")
    first, second = range(0, BROKERS, RACKS), range(1, BROKERS, RACKS)
    lose(history, [broker for pair in zip(first, second, strict=True) for broker in pair])
    history.heartbeat()
    assert_one_alert_a_kind_and_incident(history)
    crashed = {row.group: row.brokers for row in history.open_alerts().values() if row.alert == "BrokerCrashed"}
    assert crashed == {"broker 0": tuple(first), "broker 1": tuple(second)}


def test_incidents_stay_apart_when_a_partition_lacks_brokers_of_both():
    history = a_copy(200, "within a rack")
    lose(history, [3])
    history.heartbeat(MINUTE_MS)
    lose(history, [4])
    history.the_controller_writes_its_due()
    history.heartbeat(MINUTE_MS)
    before = {key: row.brokers for key, row in history.open_alerts().items()}
    history.topic("across", {0: [3, 4, 5]})
    history.state("across", 0, 5, 0, [5])
    history.heartbeat(MINUTE_MS)
    after = {key: row.brokers for key, row in history.open_alerts().items()}
    assert before.items() <= after.items()
    assert history.open_alerts()["PartitionsUnderMinIsr/broker 4"].examples == ("across-0",)


@pytest.mark.parametrize(("after_ms", "severity"), [(1_000, Severity.WARN), (6_000, Severity.PAGE)])
def test_a_page_that_may_have_been_sent_stays_one_when_partitions_page(after_ms, severity):
    history = a_copy(200, "within a rack")
    lose(history, [3])
    history.heartbeat(after_ms)
    assert list(pages(history)) == ["BrokerCrashed/broker 3"]
    lose(history, range(0, BROKERS, RACKS)[2:])
    history.heartbeat()
    assert "PartitionsOffline/broker 3" in pages(history)
    assert history.open_alerts()["BrokerCrashed/broker 3"].severity is severity


def test_an_incident_keeps_the_name_of_a_returned_broker_and_a_new_one_gets_another():
    history = a_copy(200, "within a rack")
    lose(history, [3, 6])
    history.broker(3)
    history.the_controller_writes_its_due()
    catch_up(history)
    history.heartbeat(MINUTE_MS)
    history.topic("alone", {0: [3]})
    history.state("alone", 0, 3, 0, [3])
    assert [(incident.name, incident.brokers) for incident in history.context.header.alerts.incidents] == [
        ("broker 3", (6,))
    ]
    crashed = history.open_alerts()["BrokerCrashed/broker 3"]
    assert crashed.brokers == (3, 6)
    assert crashed.cause.startswith("broker 6 crashed at zxid ")


@pytest.mark.parametrize(
    ("partitions", "seed", "rounds"),
    [*((200, seed, 8) for seed in range(6)), pytest.param(12_000, 1, 4, marks=UNTRACED)],
)
def test_whatever_brokers_come_and_go_alerts_never_exceed_incidents_times_kinds(partitions, seed, rounds):
    chance = random.Random(seed)
    history = a_copy(partitions, chance.choice(["anywhere", "one in each rack", "within a rack"]))
    for _ in range(rounds):
        for broker in chance.sample(range(BROKERS), chance.randint(1, 8)):
            history.now_ms += chance.choice([10, 3_000, 20_000])
            if broker in history.context.header.brokers:
                history.broker_leaves(broker)
            else:
                history.broker(broker)
            assert_one_alert_a_kind_and_incident(history)
        if partitions < 10_000 and chance.random() < 0.5:
            history.the_controller_writes_its_due()
        history.heartbeat(chance.choice([1_000, MINUTE_MS, 11 * MINUTE_MS]))
        assert_one_alert_a_kind_and_incident(history)
