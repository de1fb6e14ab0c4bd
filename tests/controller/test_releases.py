"""Differences between releases, each as a story of one event that two releases handle differently.

Switches of `controller.profile` belong here, unless a trap or story elsewhere covers them.
"""

from __future__ import annotations

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.records import RecordKind
from controller.rules.releases import profile_of
from tests.controller.znode_history import ZnodeHistory, assert_all_as_expected, on

ALL = (1, 2, 3)
DELETES = {"delete.topic.enable": True}  # not the default before 1.0


def told_to(effects, api: str = "LeaderAndIsr") -> list[tuple[int, int | None]]:
    """Return the recipients of requests, with their leader epochs."""
    rows = [row for row in effects if isinstance(row, Request) and row.api == api]
    said = [(broker, state) for row in rows for broker in row.brokers for state in row.partition_states]
    return sorted((broker, state.leader_epoch) for broker, state in said)


@pytest.mark.parametrize(("release", "goes_offline"), [((0, 11), False), ((1, 0), True)])
def test_a_death_takes_offline_what_another_dead_broker_led_from_1_0_on(release, goes_offline):
    topics = {"t": {0: ([2, 3], -1, 4, [2])}, "u": {0: ([3, 1], 3, 0, [3, 1])}}
    history = ZnodeHistory(release=release, settings={"unclean.leader.election.enable": False})
    history.start(1, 3, topics=topics)
    effects = history.broker_leaves(3)
    history.the_controller_writes_its_due()
    assert ("provisional t-0 OfflinePartition -> OfflinePartition" in history.transitions(effects)) == goes_offline
    assert "provisional u-0 OnlinePartition -> OfflinePartition" in history.transitions(effects)


@pytest.mark.parametrize(
    ("release", "writes", "moves"), [((1, 0), 0, 1), ((1, 1), 1, 1), ((2, 1), 1, 1), ((2, 2), 0, 0)]
)
def test_a_preferred_replica_that_leads_is_written_again_from_1_1_to_2_1_only(release, writes, moves):
    history = ZnodeHistory(release=release).start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    effects = history.elect_preferred(("t", 0))
    assert history.gauges().pending_writes == writes
    assert len([row for row in effects if isinstance(row, Transition) and row.topic == "t"]) in (moves, 2 * moves)


@pytest.mark.parametrize("release", [(1, 0), (2, 0), (3, 9)])
def test_a_new_controller_elects_only_where_the_preferred_replica_does_not_lead_yet(release):
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3]), 1: ([2, 3], 3, 0, [2, 3])}}
    history = ZnodeHistory(release=release).start(*ALL, topics=topics)
    history.delete("/controller")
    history.elect_preferred(("t", 0), ("t", 1))
    history.controller(3, 2)
    assert history.predicted("t", 0) is None
    assert history.predicted("t", 1) == (2, 1, (2, 3))


@pytest.mark.parametrize(("release", "told"), [((1, 0), True), ((1, 1), False), ((2, 0), False), ((2, 1), True)])
def test_a_broker_that_shuts_down_gets_the_new_leader_but_for_1_1_and_2_0(release, told):
    history = ZnodeHistory(release=release).start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    effects = history.state("t", 0, 3, 1, [3])
    assert ((2, 1) in told_to(effects)) == told


@pytest.mark.parametrize(("release", "tried"), [((2, 0), False), ((2, 1), True)])
def test_a_topic_that_allows_unclean_elections_is_tried_at_once_from_2_1_on(release, tried):
    history = ZnodeHistory(release=release).start(*ALL, topics=on([2, 3], 2, 0, [2]))
    history.broker_leaves(2)
    history.the_controller_writes_its_due()
    history.write("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": "true"}})
    assert history.predicted("t", 0) == ((3, 2, (3,)) if tried else None)


@pytest.mark.parametrize(("release", "stopped"), [((2, 1), True), ((2, 2), False)])
def test_a_broker_that_shuts_down_stops_replicas_of_deleted_topics_up_to_2_1(release, stopped):
    topics = on([2, 3], 2, 0, [2, 3]) | {"u": {0: ([3, 2], 3, 0, [3, 2])}}
    history = ZnodeHistory(release=release).start(*ALL, topics=topics)
    history.delete_topic("u")
    history.the_controller_writes_its_due()
    effects = history.state("t", 0, 3, 1, [3])
    stops = [row for row in effects if isinstance(row, Request) and row.api == "StopReplica"]
    assert ("u" in {state.topic for row in stops for state in row.partition_states}) == stopped


@pytest.mark.parametrize(("release", "leader_epoch"), [((1, 0), 1), ((1, 1), 0), ((2, 4), 1)])
def test_an_adding_replica_gets_the_state_of_zookeeper_or_the_controllers_copy(release, leader_epoch):
    history = ZnodeHistory(release=release).start(*ALL, topics=on([2], 2, 0, [2]))
    history.reassign(("t", 0, [2, 3]))
    history.topic("t", {0: [2, 3]})
    effects = history.state("t", 0, 2, 1, [2])
    assert (3, leader_epoch) in told_to(effects)


@pytest.mark.parametrize(("release", "resumed"), [((1, 0), True), ((1, 1), False)])
def test_up_to_1_0_a_new_controller_goes_on_reassigning_what_is_being_deleted(release, resumed):
    history = ZnodeHistory(release=release, settings=DELETES).start(*ALL, topics=on([2], 2, 0, [2]))
    history.delete("/controller")
    history.delete_topic("t")
    history.reassign(("t", 0, [3]))
    history.controller(3, 2)
    due = history.predicted("t", 0)
    assert (due == (2, 1, (2,))) == resumed


@pytest.mark.parametrize(("release", "told"), [((2, 1), True), ((2, 2), False)])
def test_up_to_2_1_a_broker_that_died_is_sent_stop_replica_all_the_same(release, told):
    history = ZnodeHistory(release=release).start(*ALL, topics=on([3, 2], 3, 0, [3, 2]))
    effects = history.broker_leaves(2)
    assert ([broker for broker, _ in told_to(effects, "StopReplica")] == [2]) == told


def test_up_to_1_0_an_edited_reassignment_starts_what_is_new_in_it():
    topics = {"t": {0: ([2], 2, 0, [2]), 1: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(1, 0)).start(*ALL, topics=topics)
    history.reassign(("t", 0, [3]))
    assert history.predicted("t", 1) is None
    history.reassign(("t", 0, [3]), ("t", 1, [3]))
    assert history.predicted("t", 0) == (2, 1, (2,))
    assert history.predicted("t", 1) == (2, 1, (2,))


def test_a_replica_that_joins_the_isr_unread_leaves_by_a_write_of_its_own():
    history = ZnodeHistory(release=(2, 3)).start(*ALL, topics={"t": {n: ([3, 2], 3, 0, [3, 2]) for n in (0, 1)}})
    history.state("t", 1, 3, 0, [3])
    history.broker_leaves(2)
    assert history.predicted("t", 1) is None
    history.state("t", 1, 3, 0, [3, 2])
    assert history.predicted("t", 1) == (3, 1, (3,))
    history.the_controller_writes_its_due()
    assert_all_as_expected(history)


def test_requests_before_the_controller_reads_a_state_again_have_its_own_copy():
    history = ZnodeHistory(release=(2, 3)).start(*ALL, topics=on([2, 1], 2, 0, [2, 1]))
    history.reassign(("t", 0, [2, 3]))
    history.topic("t", {0: [2, 3, 1]})
    history.state("t", 0, 2, 1, [2, 1])
    history.state("t", 0, 2, 1, [2])  # 1 fell behind and has no ISR to leave
    effects = history.state("t", 0, 2, 1, [2, 3])
    assert (2, 0) in told_to(effects)  # OnlineReplica. Neither the bump nor the new ISR was read


@pytest.mark.parametrize(
    ("after_ms", "wrote", "status"),
    [
        (5_000, None, Status.WITHDRAWN),
        (5_000, {"kind": RecordKind.NODE, "path": "/isr_change_notification/x", "data": "{}"}, Status.FINAL),
        (5_000, {"kind": RecordKind.HEARTBEAT}, Status.FINAL),  # in vain
        (8_000, None, Status.FINAL),
    ],
)
def test_what_shows_nowhere_is_certain_only_of_a_controller_that_was_heard_of_since(after_ms, wrote, status):
    settings = {"zookeeper.session.timeout.ms": 6_000}
    history = ZnodeHistory(settings=settings).start(*ALL, topics=on([2, 3], 2, 0, [2]))
    history.delete("/brokers/ids/3", author=history.session_of(3), cxid=0)
    told = len(history.effects)
    if wrote:
        history.now_ms += 100
        history.send(zxid=history.zxid, author=history.session_of(1), cxid=6, **wrote)
    history.heartbeat(after_ms)
    history.delete("/controller", author=history.session_of(1), cxid=0)
    history.delete("/brokers/ids/1", author=history.session_of(1), cxid=0, same_zxid=True)
    rows = [row for row in history.effects[told:] if isinstance(row, Transition) and row.broker == 3]
    assert {row.status for row in rows} == {status}


@pytest.mark.parametrize(("release", "alone"), [((2, 8), False), ((3, 0), True)])
def test_from_3_0_on_tools_have_the_brokers_from_a_broker_alone(release, alone):
    assert profile_of(release).tools_ask_a_broker == alone
