"""Alerts of each kind, which must open, update and resolve at the right record, and at no other."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from controller.alerts import lifecycle
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.gauges_row import GaugesRow, Maintenance
from controller.contract.records import RecordKind
from controller.contract.row import Row
from controller.says.alert_kinds import kinds as kinds, replica
from controller.says.alert_kinds.kind import AlertKind
from controller.says.alert_kinds.kinds import ALERT_KINDS
from tests.controller.znode_history import ZnodeHistory, broker_znode, controller_znode, on

MINUTE_MS = 60_000
THREE = {"t": {0: ([1, 2, 3], 1, 0, [1, 2, 3]), 1: ([2, 3, 1], 2, 0, [2, 3, 1])}, "one": {0: ([3], 3, 0, [3])}}


def a_cluster(*brokers: int, **more) -> ZnodeHistory:
    history = ZnodeHistory(**{key: more.pop(key) for key in ("release", "settings") if key in more})
    return history.start(*(brokers or (1, 2, 3)), **{"topics": THREE, **more})


def opened(rows: tuple[Row, ...]) -> list[str]:
    return [row.id for row in rows if isinstance(row, AlertRow) and row.state == "open"]


def resolved(rows: tuple[Row, ...]) -> list[str]:
    return [row.id for row in rows if isinstance(row, AlertRow) and row.state == "resolved"]


def severity(history: ZnodeHistory, alert_id: str) -> Severity:
    return history.open_alerts()[alert_id].severity


# --- the life of an alert


def test_an_alert_about_kontrast_itself_is_no_incident_of_the_cluster():
    named = [kind for kind in vars(replica).values() if isinstance(kind, AlertKind)]
    assert len(named) == 7
    assert [kind.name for kind in named if not kind.of_replica] == []


def test_one_brokers_death_is_one_alert_with_all_its_replicas():
    topics = {"t": {number: ([1 + number % 2, 3], 1 + number % 2, 0, [1 + number % 2, 3]) for number in range(200)}}
    history = a_cluster(topics=topics)
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    (alert,) = history.open_alerts().values()
    assert (alert.id, alert.partitions, len(alert.examples)) == ("BrokerCrashed/broker 3", 200, 10)
    assert alert.cause == (
        f"broker 3 crashed at zxid {history.zxid - 200:#x}: 200 partitions are under-replicated. "
        "Keep brokers 1 and 2 up. They have the only in-sync replica of 200 partitions"
    )
    assert alert.action == kinds.BROKER_CRASHED.action


def test_an_alert_that_was_sent_is_published_again_when_it_changed_but_not_always():
    history = a_cluster()
    history.broker_leaves(2)
    since_ms = history.open_alerts()["BrokerCrashed/broker 2"].since_ms
    history.the_controller_writes_its_due()
    assert opened(history.heartbeat(1_000)) == ["BrokerCrashed/broker 2"]  # before a pager has its first message
    assert opened(history.heartbeat(6_000)) == []

    def another_partition_lacks_broker_2(topic: str) -> None:
        history.topic(topic, {0: [1, 2]})
        history.state(topic, 0, 1, 0, [1])

    another_partition_lacks_broker_2("u")
    assert opened(history.heartbeat(1_000)) == ["BrokerCrashed/broker 2"]
    another_partition_lacks_broker_2("v")
    assert "BrokerCrashed/broker 2" not in opened(history.heartbeat(1_000))
    assert opened(history.heartbeat(5_000)) == ["BrokerCrashed/broker 2"]
    assert history.open_alerts()["BrokerCrashed/broker 2"].since_ms == since_ms


def test_how_long_the_session_is_lost_counts_from_the_forwarders_record():
    history = a_cluster()
    assert history.heartbeat()[-1].session == "connected"
    history.send(RecordKind.SESSION, zxid=history.zxid, data=json.dumps({"session": "lost"}))
    assert opened(history.heartbeat(9_000, session="lost")) == []
    assert opened(history.heartbeat(1_000, session="lost")) == ["ReplicaDisconnected"]


def test_what_happens_again_is_counted_in_the_alert_that_is_open():
    history = a_cluster()
    for number in range(12):
        history.write(f"/brokers/topics/u{number}/partitions/0/state", b"{}")
        history.state(f"u{number}", 0, 1, 0, [1])
    history.heartbeat()
    alert = history.open_alerts()["ControllerDisagrees/orphan_state"]
    assert alert.cause == (
        "12 partitions have a state but are not in their topics' assignments (u2-0, u3-0, …): the topics may be half "
        "deleted, or were edited"
    )
    assert alert.evidence[0].startswith("u11-0 has a state but is not in its topic's assignment")
    assert (alert.partitions, len(alert.examples)) == (12, 10)
    history.state("u3", 0, 1, 1, [1])
    history.heartbeat(6_000)
    assert history.open_alerts()["ControllerDisagrees/orphan_state"].cause.endswith("or were edited (13 times)")


def test_every_kind_is_open_for_a_while_or_as_long_as_it_is_so():
    assert all(kind.lasts_ms for kind in ALERT_KINDS.values() if kind.divergence)
    assert all(kind.name == name and kind.headline and kind.action for name, kind in ALERT_KINDS.items())


# --- partitions


def test_a_leader_that_dies_is_published_only_if_nobody_is_elected():
    history = a_cluster(topics=on([3, 1], 3, 4, [3, 1]))
    history.broker_leaves(3)
    assert "ElectionDue/broker 3" not in history.open_alerts()
    assert "ElectionDue/broker 3" in opened(history.heartbeat(6_000))
    assert "until controller 1 in epoch 1 elects another" in history.open_alerts()["ElectionDue/broker 3"].cause
    history.the_controller_writes_its_due()
    assert "ElectionDue/broker 3" not in history.open_alerts()


def test_beyond_many_groups_of_partitions_the_next_ones_wait():
    isrs = [list(isr) for isr in combinations(range(1, 14), 3)]
    topic = {number: (isr, isr[0], 1, isr) for number, isr in enumerate(isrs)}
    history = ZnodeHistory(release=(1, 1)).start(*range(1, 14), topics={"t": topic})
    judged = []
    for number, isr in enumerate(isrs):  # every 10 ms
        history.state("t", number, -1, 2, isr)
        judged.append(history.context.header.alerts.judged_ms == history.context.header.time_ms)
    assert judged.index(False) == 154
    assert sum(judged[154:]) == 49
    history.heartbeat(11_000)
    assert history.open_alerts()["PartitionsLeaderless/partitions"].partitions == len(isrs)


def test_beyond_very_many_groups_heartbeats_wait_too_and_writes_pass_none_over(monkeypatch):
    monkeypatch.setattr(lifecycle, "_WAIT_A_MS", 0.1)  # 100 groups more are as slow as 10,000
    isrs = [list(isr) for isr in combinations(range(1, 14), 3)]
    topic = {number: (isr, -1, 1, isr) for number, isr in enumerate(isrs)}
    history = ZnodeHistory(release=(1, 1)).start(*range(1, 14), topics={"t": topic})
    assert len(history.context.header.tally.issues) == 286

    def is_judged() -> bool:
        return history.context.header.alerts.judged_ms == history.context.header.time_ms

    judged = []
    for second in range(12):
        history.heartbeat(900)
        judged.append(is_judged())
        history.state("t", second, -1, 2 + second, [14])  # another group
        assert not is_judged()
    assert judged == [False, True] * 6


def test_what_only_waits_to_be_elected_for_less_than_a_heartbeat_is_no_news():
    history = ZnodeHistory().start(1, 2, 3, topics={"lonely": {0: ([3], 3, 0, [3])}})
    for elected_after_ms, sentences in ((0, []), (6_000, ["until controller 1 in epoch 1 elects a leader"])):
        history.broker_leaves(3)
        history.the_controller_writes_its_due()
        history.heartbeat(6_000)
        history.effects.clear()
        history.broker(3)
        if elected_after_ms:
            history.heartbeat(elected_after_ms)
        history.the_controller_writes_its_due()
        rows = [row for row in history.effects if isinstance(row, AlertRow) and row.alert == "PartitionsOffline"]
        assert [row.state for row in rows] == ["open"] * len(sentences) + ["resolved"]
        assert all(row.cause.endswith(said) for row, said in zip(rows, sentences, strict=False))


def test_under_min_isr_pages_at_once_and_lagging_replicas_warn_after_a_minute():
    history = a_cluster(topics=on([1, 2, 3], 1, 0, [1, 2, 3]), settings={"min.insync.replicas": 2})
    history.state("t", 0, 1, 0, [1, 2])
    assert opened(history.heartbeat(30_000)) == []
    assert opened(history.heartbeat(30_000)) == ["PartitionsUnderReplicated/broker 3"]
    assert history.open_alerts()["PartitionsUnderReplicated/broker 3"].cause == (
        "broker 3 lags behind: 1 partition is under-replicated. 1 is one loss away from rejecting acks=all"
    )
    rows = history.state("t", 0, 1, 0, [1])
    assert opened(rows) == ["PartitionsUnderMinIsr/broker 2"]
    assert severity(history, "PartitionsUnderMinIsr/broker 2") is Severity.PAGE
    assert history.open_alerts()["PartitionsUnderMinIsr/broker 2"].cause == (
        "1 partition rejects acks=all (t-0): brokers 2 and 3 lag behind. Keep broker 1 up. It has the only "
        "in-sync replica of 1 partition"
    )
    assert opened(history.heartbeat(MINUTE_MS)) == ["PartitionsUnderReplicated/broker 2"]
    assert len(resolved(history.state("t", 0, 1, 0, [1, 2, 3]))) == 2
    assert history.open_alerts() == {}


def test_every_partition_that_was_uncleanly_elected_counts_once_and_ten_are_named():
    """Repeated elections of one partition count once."""
    many = {number: ([3, 2], 3, 4, [3]) for number in range(528)}
    history = a_cluster(topics={"t": many}, settings={"unclean.leader.election.enable": True})
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    alert = history.open_alerts()["UncleanElection"]
    assert (alert.partitions, len(alert.examples)) == (528, 10)
    assert alert.cause.startswith(
        "528 partitions (t-518, t-519, …) may have lost records: replicas that were not in sync"
    )
    assert not alert.cause.endswith("times)")
    assert alert.evidence[0].startswith("t-527 may have lost records that only broker 3 had")
    history.broker(3)
    history.state("t", 7, 2, 5, [2])
    history.broker_leaves(2)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    again = history.open_alerts()["UncleanElection"]
    assert again.partitions == 528
    assert int(again.cause.rpartition("(")[2].partition(" ")[0]) > 528


def test_an_unclean_election_where_the_isr_is_empty_names_nobody():
    """Up to 1.0 the controller writes an empty ISR."""
    history = a_cluster(1, 3, topics=on([2], -1, 4, []), settings={"unclean.leader.election.enable": True})
    history.broker(2)
    history.the_controller_writes_its_due()
    history.heartbeat()
    alert = history.open_alerts()["UncleanElection"]
    assert alert.cause.startswith("t-0 may have lost records that only its last in-sync replicas had")
    assert f"zxid {history.zxid:#x}" in alert.evidence[0]


# --- explanations of the alert


@pytest.mark.parametrize(("patience_ms", "is_set"), [(0, True), (5_000, True), (60_000, False)])
def test_what_a_clean_stop_takes_pages_after_the_operators_time_or_a_minute(patience_ms, is_set):
    history = ZnodeHistory()
    if is_set:
        history.context.header.configure({}, None, (), (), patience_ms)
    history.start(1, 2, 3, topics=THREE)
    history.broker_closes(3)
    history.heartbeat(patience_ms // 2)
    if patience_ms:
        assert severity(history, "PartitionsOffline/broker 3") is Severity.INFO
    history.heartbeat(patience_ms // 2 + 1_000)
    assert severity(history, "PartitionsOffline/broker 3") is Severity.PAGE


def test_a_broker_that_is_back_from_a_shutdown_may_catch_up():
    history = a_cluster(topics=on([1, 3], 1, 0, [1, 3]), settings={"min.insync.replicas": 2})
    history.state("t", 0, 1, 1, [1])
    assert history.open_alerts()["PartitionsUnderMinIsr/broker 3"].cause.endswith("(broker 3 is shutting down cleanly)")
    history.broker_closes(3)
    history.broker(3)
    history.heartbeat(2_000)
    assert severity(history, "PartitionsUnderMinIsr/broker 3") is Severity.INFO
    history.heartbeat(6 * MINUTE_MS)
    assert severity(history, "PartitionsUnderMinIsr/broker 3") is Severity.PAGE


def maintenance(history: ZnodeHistory) -> tuple[Maintenance, ...]:
    """Return the maintenance windows in force, from the newest gauges."""
    return [row for row in history.effects if isinstance(row, GaugesRow)][-1].maintenance


def test_a_maintenance_holds_back_what_it_explains_and_nothing_else():
    history = a_cluster(1, 2, 3, 4, topics={**THREE, "other": {0: ([4], 4, 0, [4])}})
    window = MaintenanceWindow((3,), history.now_ms + 10 * MINUTE_MS, "a new disk")
    history.heartbeat(maintenance=(window,))
    history.broker_leaves(3)
    history.broker_leaves(4)
    history.heartbeat(maintenance=(window,))
    assert severity(history, "BrokerCrashed/broker 3") is Severity.INFO
    assert severity(history, "PartitionsOffline/broker 3") is Severity.INFO
    assert history.open_alerts()["BrokerCrashed/broker 3"].cause.endswith("(maintenance: a new disk)")
    assert [row for row in history.effects if isinstance(row, GaugesRow)][-1].maintenance == (
        Maintenance((3,), window.until_ms, "a new disk"),
    )
    assert severity(history, "BrokerCrashed/broker 4") is Severity.WARN
    assert severity(history, "PartitionsOffline/broker 4") is Severity.PAGE
    history.heartbeat(11 * MINUTE_MS, maintenance=(window,))
    assert severity(history, "BrokerCrashed/broker 3") is Severity.WARN
    assert severity(history, "PartitionsOffline/broker 3") is Severity.PAGE
    assert maintenance(history) == ()


def test_a_maintenance_explains_that_its_broker_bounced():
    history = a_cluster()
    window = MaintenanceWindow((2,), history.now_ms + MINUTE_MS)
    history.broker_bounces(2)
    history.broker_bounces(3)
    history.heartbeat(maintenance=(window,))
    assert severity(history, "BrokerBounced/broker 2") is Severity.INFO
    assert severity(history, "BrokerBounced/broker 3") is Severity.WARN


def test_a_maintenance_of_the_cluster_holds_back_what_happens_too():
    history = a_cluster()
    history.heartbeat(maintenance=(MaintenanceWindow((), history.now_ms + MINUTE_MS),))
    history.broker_bounces(2)
    history.heartbeat(maintenance=(MaintenanceWindow((), history.now_ms + MINUTE_MS),))
    assert severity(history, "BrokerBounced/broker 2") is Severity.INFO
    history.heartbeat()
    assert severity(history, "BrokerBounced/broker 2") is Severity.WARN


# --- brokers


def test_a_broker_that_an_old_reassignment_adds_is_no_lost_one():
    history = a_cluster(topics=on([1, 2], 1, 0, [1, 2]), release=(1, 1))
    history.write("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":0,"replicas":[1,9],"x":1}]}')
    history.topic("t", {0: [1, 9, 2]})
    history.the_controller_writes_its_due()
    history.heartbeat()
    history.heartbeat(11_000)
    assert history.open_alerts()["BrokerUnknown/broker 9"].cause.startswith("broker 9 has never registered here as far")


def test_a_deletion_that_waits_for_ids_that_nobody_has_says_so():
    history = a_cluster(topics={"t": {0: ([8],)}})
    history.delete_topic("t")
    history.heartbeat()
    history.heartbeat(61_000)
    assert history.open_alerts()["DeletionStuck/broker 8"].cause == (
        "deletion of t waits for broker 8: 1 partition is not deleted, because broker 8 has never registered here as "
        "far as ZooKeeper shows"
    )


def test_a_broker_that_left_unwatched_is_alerted_without_a_zxid():
    history = a_cluster()
    history.generation, history.seq = 2, -1
    history.start(1, 2, topics=THREE)
    assert history.open_alerts()["BrokerCrashed/broker 3"].cause.startswith("broker 3 crashed, unseen:")


def test_a_broker_that_hosts_nothing_is_missed_for_ten_minutes_and_pages_nobody():
    history = a_cluster(1, 2, 3, 7)
    history.broker_leaves(7)
    history.heartbeat()
    assert severity(history, "BrokerCrashed/broker 7") is Severity.INFO
    assert history.open_alerts()["BrokerCrashed/broker 7"].cause.endswith(
        "it hosts no replicas, and may have shut down cleanly"
    )
    assert resolved(history.heartbeat(11 * MINUTE_MS)) == ["BrokerCrashed/broker 7"]


# --- the controller


def test_a_controller_whose_predecessor_was_never_seen_moved_from_nobody():
    history = ZnodeHistory().start(1, 2, controller=2, epoch=1, topics=THREE)
    history.generation, history.seq = 2, -1
    del history.znodes["/controller"]
    history.snapshot(("/controller_epoch", b"3"), ("/brokers/ids/1", {"version": 4, "host": "h", "port": 1}))
    history.controller(1, 4)
    history.heartbeat()
    assert history.open_alerts()["ControllerMoved"].cause == "broker 1 became controller in epoch 4"


def test_a_controller_that_is_not_registered_is_a_ghost_in_the_end():
    history = a_cluster()
    history.broker_leaves(1)
    assert "GhostController" not in history.open_alerts()
    assert "GhostController" not in opened(history.heartbeat(1_000))
    assert "GhostController" in opened(history.heartbeat(11_000))
    assert history.open_alerts()["GhostController"].cause.startswith("controller 1 is not registered: brokers do not")


def test_a_controller_znode_of_another_session_is_a_ghost():
    history = a_cluster()
    history.delete("/controller")
    history.write("/controller", controller_znode(2), owner=12345)
    history.heartbeat()
    alert = history.open_alerts()["GhostController"]
    assert "belongs to another session" in alert.cause
    assert alert.evidence[0] == f"/controller is owned by session {12345:#x}"


def test_a_controller_is_a_ghost_since_its_broker_registered_with_another_session():
    history = a_cluster()
    controller = history.context.header.controller
    history.heartbeat(30_000)
    history.broker_leaves(controller)
    history.heartbeat(5_000)
    history.write(f"/brokers/ids/{controller}", broker_znode(controller), owner=12345)
    registered_ms = history.context.header.time_ms
    history.heartbeat()
    assert history.open_alerts()["GhostController"].since_ms == registered_ms


def test_a_notification_that_nobody_saw_may_be_removed():
    history = a_cluster(release=(2, 6))
    before = history.context
    history.delete("/isr_change_notification/isr_change_3")
    assert history.context.topics.get("t") == before.topics.get("t")
    assert opened(history.heartbeat(31_000)) == []


def test_so_many_notifications_are_remembered_and_no_more():
    history = a_cluster(release=(2, 6))
    for number in range(1_005):
        history.write(f"/isr_change_notification/isr_change_{number}", {"version": 1, "partitions": []})
    assert len(history.context.header.triggers.isr_notifications) == 1_000


# --- topics


def test_reassigned_partitions_and_partitions_with_one_in_sync_replica_are_counted():
    history = a_cluster(topics={"t": {0: ([1, 2], 1, 0, [1]), 1: ([2, 1], 2, 0, [2, 1]), 2: ([3], 3, 0, [3])}})
    assert history.gauges().sole_in_sync_by_broker == {1: 1, 3: 1}
    history.topic("t", {0: [1, 2], 1: [2, 1, 3], 2: [3]}, adding_replicas={"1": [3]})
    assert history.gauges().reassigning_partitions == 1


@pytest.mark.parametrize(
    ("entries", "named"),
    [([("nothing", 0, [1])], "It names nothing-0 to [1]"), ([], "It names no partition")],
    ids=["one", "none"],
)
def test_a_reassignment_that_is_never_done_is_alerted(entries, named):
    history = a_cluster()
    history.reassign(*entries)
    assert opened(history.heartbeat(MINUTE_MS)) == []
    assert opened(history.heartbeat(MINUTE_MS)) == ["InvalidReassignment"]
    assert history.open_alerts()["InvalidReassignment"].cause.endswith(named)
    history.delete("/admin/reassign_partitions")
    assert resolved(history.heartbeat()) == ["InvalidReassignment"]


def test_leaders_that_are_not_brought_back_are_alerted():
    topics = on([1, 2], 2, 1, [1, 2])
    history = a_cluster(topics=topics, settings={"leader.imbalance.check.interval.seconds": 30})
    assert opened(history.heartbeat(MINUTE_MS)) == []
    assert opened(history.heartbeat(2 * MINUTE_MS)) == ["PreferredImbalance"]
    by_hand = a_cluster(topics=topics, settings={"auto.leader.rebalance.enable": False})
    by_hand.heartbeat()
    assert opened(by_hand.heartbeat(10 * MINUTE_MS)) == ["PreferredImbalance"]
    assert "without a request" in by_hand.open_alerts()["PreferredImbalance"].expected


# --- writes that differ


def test_another_leader_than_expected_is_alerted_with_both_values():
    history = a_cluster(topics=on([3, 2, 1], 3, 4, [3, 2, 1]))
    history.broker_leaves(3)
    history.state("t", 0, 1, 7, [1])
    history.heartbeat()
    alert = history.open_alerts()["DifferentLeader"]
    assert alert.cause == "t-0 got leader 1, but the controller's rules give leader 2"
    assert alert.evidence[1].startswith("before or predicted: leader 2, leader epoch 5, ISR [2, 1]")
    assert alert.evidence[2].startswith("written: leader 1, leader epoch 7, ISR [1]")


def test_a_state_that_no_controller_writes_is_alerted():
    history = a_cluster(topics=on([3, 2, 1], 3, 4, [3, 2, 1]))
    history.state("t", 0, 1, 5, [2, 3])
    history.state("t", 0, 2, 3, [2, 3])
    history.heartbeat(6_000)
    assert history.open_alerts()["ControllerDisagrees/illegal_state"].cause.endswith(
        "its leader epoch went back from 5 to 3. Find out who wrote it (2 times)"
    )


# --- how long the controller takes


def test_reactions_are_measured_from_the_cause_to_the_first_and_the_last_write():
    history = a_cluster(topics={"t": {number: ([3, 1], 3, 0, [3, 1]) for number in range(2)}})
    history.broker_leaves(3)
    history.now_ms += 40
    history.state("t", 0, 1, 1, [1])
    history.now_ms += 290
    history.state("t", 1, 1, 1, [1])
    times = history.gauges().reactions["BrokerChange"]
    assert (times.first_sum_ms, times.last_sum_ms) == (50, 350)
    assert (sum(times.first), times.first[2], sum(times.last), times.last[5]) == (1, 1, 1, 1)
    (slow,) = history.gauges().slowest_reactions
    assert (slow.event, slow.first_ms, slow.last_ms) == ("BrokerChange", 50, 350)


def test_what_is_inferred_from_a_write_has_no_reaction_time():
    history = a_cluster(topics=on([1, 2], 2, 1, [1, 2]))
    history.state("t", 0, 1, 2, [1, 2])
    assert history.gauges().elections == {"PreferredReplicaPartitionLeaderElection": 1}
    assert history.gauges().reactions == {}


@pytest.mark.parametrize(
    ("late", "effect"),
    [
        (lambda history: history.broker_leaves(1), "partitions may lack a leader"),
        (lambda history: history.topic("new", {0: [1, 2]}), "clients cannot use new partitions"),
        (lambda history: history.reassign(("t", 0, [2, 3])), "replicas do not move to the brokers of the reassignment"),
        (lambda history: history.delete_topic("t"), "topics stay, with their data, until they are deleted"),
    ],
)
def test_a_late_controller_is_blamed_for_what_the_late_writes_would_do(late, effect):
    history = a_cluster(1, 2, 3, 4, controller=4, release=(3, 9), topics=on([1, 2], 1, 0, [1, 2]))
    late(history)
    history.heartbeat(21_000)
    assert f": {effect}. The oldest is due for " in history.open_alerts()["ControllerOverdue"].cause
