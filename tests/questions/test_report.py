"""Accounts of a cluster, from made-up rows, and from recordings beside the core's own counts."""

from __future__ import annotations

import msgspec
import pytest

from controller.contract.gauges_row import REACTION_BUCKETS_MS, ReactionTimes
from controller.contract.metadata_rows import BeginningRow
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import step
from ingest.files.history import History
from questions.clients.teams import read_teams
from questions.report.account import Account, Part, added_up
from questions.report.cluster_report import ClusterReport, report_of
from questions.report.report import report_against
from tests.conformance.recording import unpack
from tests.rows import TIME_MS, Rows

_MINUTE_MS = 60_000


def at(seconds: float) -> int:
    return TIME_MS + round(seconds * 1000)


def heartbeats(rows: Rows, first: int, last: int, **fields: object) -> list[Row]:
    return [rows.gauges(time_ms=at(second), **fields) for second in range(first, last + 1)]


def report(*taken: Row, since_ms: int | None = None, until_ms: int | None = None) -> ClusterReport:
    account = Account(since_ms or 0)
    for row in sorted(taken, key=lambda row: row.time_ms):
        account.take(row)
    return report_of("north", account.part(), since_ms, until_ms)


def minutes(seconds: float) -> float:
    return pytest.approx(seconds / 60)


@pytest.mark.parametrize("name", ["dev39", "fuzz28a"])
def test_time_offline_is_what_the_core_counts_at_each_step(name, tmp_path):
    history = History((unpack(name, tmp_path).directory / "zk",), "north", chroot="/")
    context, account = new_context("north"), Account()
    account.begin(0)
    leaderless, newest_ms, expected_ms = 0, None, 0
    for record in history.records():
        if newest_ms is not None:
            expected_ms += leaderless * (record.observed_ms - newest_ms)
        outcome = step(context, record)
        context = outcome.context
        for row in outcome.effects:
            account.take(row)
        if context.header.phase.name == "FOLLOWING":
            leaderless, newest_ms = context.header.tally.gauges.leaderless, record.observed_ms
    account.take_counts(context, record)
    found = report_of("north", account.part())
    assert expected_ms > 0
    assert found.offline_partition_minutes * _MINUTE_MS == pytest.approx(expected_ms)
    assert sum(topic.offline_partition_minutes for topic in found.topics) * _MINUTE_MS == pytest.approx(expected_ms)
    assert found.window.unseen_seconds == 0
    writes = context.header.tally.writes
    assert found.writes == {key: count for key, count in msgspec.structs.asdict(writes).items() if count}
    assert found.elections == context.header.tally.happened.elections
    for event, times in context.header.reactions.by_event.items():
        counts = {reaction.to: reaction.count for reaction in found.reactions if reaction.event == event}
        assert counts == {
            to: sum(buckets)
            for to, buckets in (("first_write", times.first), ("last_write", times.last))
            if sum(buckets)
        }


def test_what_was_offline_and_what_refused_acks_all_is_measured_by_topic(rows):
    found = report(
        *heartbeats(rows, 0, 100),
        rows.partition("orders", 0, time_ms=at(0), writable_acks_all=True),
        rows.partition("orders", 1, time_ms=at(0), writable_acks_all=True),
        rows.offline("orders", 1, time_ms=at(10), writable_acks_all=False),
        rows.under_min_isr("orders", 1, time_ms=at(30)),
        rows.partition("orders", 1, time_ms=at(40), writable_acks_all=True),
        rows.partition("audit", 0, time_ms=at(20), writable_acks_all=False, deleting=True),
        rows.partition("audit", 0, time_ms=at(80), state="NonExistentPartition", removed=True),
    )
    orders, audit = found.topics
    assert (orders.topic, orders.partition_minutes) == ("orders", minutes(200))
    assert (orders.offline_partition_minutes, orders.unwritable_partition_minutes) == (minutes(20), minutes(30))
    assert (orders.online, orders.writable) == (pytest.approx(0.9), pytest.approx(0.85))
    assert (audit.topic, audit.partition_minutes, audit.online, audit.writable) == ("audit", minutes(60), 1, 1)
    assert found.partition_minutes == minutes(260)


def test_rows_of_before_acks_all_was_judged_are_unwritable_while_offline(rows):
    found = report(
        *heartbeats(rows, 0, 10),
        rows.offline("orders", 0, time_ms=at(0), writable_acks_all=None),
        rows.partition("orders", 0, time_ms=at(5), writable_acks_all=None),
    )
    assert found.topics[0].unwritable_partition_minutes == minutes(5)


def test_rows_before_the_window_give_the_state_at_its_begin_and_count_nothing(rows):
    found = report(
        *heartbeats(rows, 0, 100, elections={"OfflinePartitionLeaderElection": 3}),
        rows.gauges(time_ms=at(60) + 1, elections={"OfflinePartitionLeaderElection": 5}),
        rows.offline("orders", 0, time_ms=at(0), writable_acks_all=False),
        rows.broker(1, time_ms=at(1)),
        rows.broker(1, time_ms=at(2), registered=False, left_in_order=False),
        rows.controller(1, time_ms=at(1)),
        rows.controller(-1, time_ms=at(10)),
        rows.controller(2, time_ms=at(20)),
        rows.alert("a", time_ms=at(5)),
        rows.alert("a", "resolved", time_ms=at(55)),
        rows.alert("b", time_ms=at(5)),
        rows.alert("b", "resolved", time_ms=at(6)),
        since_ms=at(50),
        until_ms=at(90),
    )
    assert (found.window.since_ms, found.window.until_ms, found.window.seen_seconds) == (at(50), at(90), 40)
    assert found.topics[0].offline_partition_minutes == minutes(40)
    assert (found.failovers, found.without_controller_seconds) == ((), 0)
    assert found.elections == {"OfflinePartitionLeaderElection": 2 + 5 - 2}
    (broker,) = found.brokers
    assert (broker.crashes, broker.away_minutes) == (0, minutes(40))
    (alerts,) = found.alerts
    assert (alerts.count, alerts.still_open, alerts.total_seconds, alerts.longest_seconds) == (1, 0, 5, 5)


def test_time_that_nobody_saw_is_no_time_online(rows):
    found = report(
        *heartbeats(rows, 0, 10),
        *heartbeats(rows, 60, 70),  # the forwarder was silent
        *heartbeats(rows, 71, 80, generation=2),  # a second passed between two forwarders
        *heartbeats(rows, 81, 90, generation=2, session="suspended"),
        *heartbeats(rows, 91, 100, generation=2),
        rows.partition("orders", 0, time_ms=at(0)),
        rows.offline("orders", 0, time_ms=at(5)),
        rows.partition("orders", 0, time_ms=at(65)),
        since_ms=at(-100),
        until_ms=at(200),
    )
    window = found.window
    assert (window.seen_from_ms, window.seen_until_ms) == (at(0), at(100))
    assert window.seen_seconds == 10 + 10 + 9 + 1 + 9
    assert window.seen_seconds + window.unseen_seconds == 300
    assert found.topics[0].partition_minutes == minutes(39)
    assert found.topics[0].offline_partition_minutes == minutes(5 + 5)


def test_a_log_of_transactions_has_no_silence(rows):
    quiet = {"watch_mode": "transaction-log", "session": "replay"}
    found = report(rows.gauges(time_ms=at(0), **quiet), rows.gauges(time_ms=at(3_600), **quiet))
    assert found.window.seen_seconds == 3_600


def test_nothing_seen_is_no_availability(rows):
    found = report(rows.partition("orders", 0, time_ms=at(0)), since_ms=at(0), until_ms=at(60))
    assert (found.window.seen_from_ms, found.window.unseen_seconds, found.topics) == (None, 60, ())


def test_what_is_said_again_behind_a_beginning_counts_once(rows):
    before = [
        *heartbeats(rows, 0, 20),
        rows.partition("gone", 0, time_ms=at(0)),
        rows.offline("orders", 0, time_ms=at(0)),
        rows.broker(1, time_ms=at(0), registered=False),
        rows.alert("stays", time_ms=at(1), since_ms=at(1)),
        rows.alert("goes", time_ms=at(1), since_ms=at(1)),
    ]
    place = {"cluster": "north", "generation": 1, "seq": 99, "ordinal": -1, "zxid": 9}
    beginning = BeginningRow(**place, time_ms=at(21))
    behind = [
        rows.gauges(time_ms=at(22), elections={"OfflinePartitionLeaderElection": 1}),
        rows.offline("orders", 0, time_ms=at(22)),
        rows.broker(1, time_ms=at(22), registered=False),
        rows.alert("stays", time_ms=at(30), since_ms=at(1)),
        rows.alert("stays", "resolved", time_ms=at(31), since_ms=at(1)),
        *heartbeats(rows, 23, 40),
    ]
    found = report(*before, beginning, *behind)
    orders, gone = found.topics
    assert (orders.offline_partition_minutes, orders.partition_minutes) == (minutes(39), minutes(39))
    assert (gone.topic, gone.partition_minutes) == ("gone", minutes(21))
    assert found.brokers[0].away_minutes == minutes(39)
    (alerts,) = found.alerts
    assert (alerts.count, alerts.still_open, alerts.longest_seconds) == (2, 0, 30)
    assert found.elections == {"OfflinePartitionLeaderElection": 1}  # earlier elections came before the first row


def test_a_failover_lasts_from_the_loss_of_a_controller_until_the_next(rows):
    found = report(
        *heartbeats(rows, 0, 100),
        rows.controller(-1, time_ms=at(0), since_ms=at(0)),
        rows.controller(1, time_ms=at(1), epoch=1, since_ms=at(1)),
        rows.controller(-1, time_ms=at(10), epoch=1, since_ms=at(10)),
        rows.controller(2, time_ms=at(12), epoch=1, since_ms=at(12)),
        rows.controller(2, time_ms=at(12.5), epoch=2, since_ms=at(12)),
        rows.controller(3, time_ms=at(40), epoch=3, since_ms=at(40)),  # both changes were read together
        rows.controller(3, time_ms=at(45), epoch=3, since_ms=at(45)),  # the same broker lost the role and won it again
        rows.controller(-1, time_ms=at(90), epoch=3, since_ms=at(90)),
    )
    assert [
        (failover.began_ms, failover.from_broker, failover.to_broker, failover.to_epoch, failover.without_controller_ms)
        for failover in found.failovers
    ] == [(at(10), 1, 2, 2, 2_000), (at(40), 2, 3, 3, 0), (at(45), 3, 3, 3, 0), (at(90), 3, None, None, None)]
    assert found.without_controller_seconds == 2 + 10


def test_brokers_crash_shut_down_and_bounce(rows):
    found = report(
        *heartbeats(rows, 0, 100),
        *(rows.broker(broker, time_ms=at(0), epoch=5) for broker in (1, 2, 3)),
        rows.broker(1, time_ms=at(10), epoch=-1, registered=False, left_in_order=False),
        rows.broker(1, time_ms=at(20), epoch=6),
        rows.broker(1, time_ms=at(30), epoch=-1, registered=False, left_in_order=True),
        rows.broker(2, time_ms=at(30), epoch=7),
        rows.broker(2, time_ms=at(31), epoch=7, rack="b"),
        rows.broker(3, time_ms=at(35), epoch=-1, registered=False),  # written by an older Kontrast
        rows.broker(3, time_ms=at(36), epoch=9),
        rows.broker(4, time_ms=at(40), epoch=-1, registered=False),
        rows.broker(4, time_ms=at(50), epoch=-1, registered=False, forgotten=True),
    )
    assert [
        (broker.broker, broker.crashes, broker.shutdowns, broker.bounces, broker.unknown, broker.away_minutes)
        for broker in found.brokers
    ] == [(1, 1, 1, 0, 0, minutes(80)), (2, 0, 0, 1, 0, 0), (4, 0, 0, 0, 0, minutes(10)), (3, 0, 0, 0, 1, minutes(1))]


def test_alerts_are_counted_by_kind_with_their_worst_severity(rows):
    found = report(
        *heartbeats(rows, 0, 100),
        rows.alert("a", time_ms=at(10)),
        rows.alert("a", time_ms=at(15), cause="two more"),
        rows.alert("a", "resolved", time_ms=at(20)),
        rows.alert("a", time_ms=at(60)),
        rows.alert("never opened", "resolved", time_ms=at(70)),
    )
    (offline,) = found.alerts
    assert (offline.alert, offline.severity.value, offline.count, offline.still_open) == (
        "PartitionsOffline",
        "page",
        2,
        1,
    )
    assert (offline.total_seconds, offline.longest_seconds) == (10 + 40, 40)


def test_percentiles_are_bounds_that_hold(rows):
    def times(*first: int, total_ms: int = 0) -> dict[str, ReactionTimes]:
        buckets = (*first, *[0] * (len(REACTION_BUCKETS_MS) + 1 - len(first)))
        return {"BrokerChange": ReactionTimes(buckets, total_ms)}

    slow = (*[0] * len(REACTION_BUCKETS_MS), 1)
    found = report(
        rows.gauges(time_ms=at(0), reactions=times(7)),
        rows.gauges(time_ms=at(1), reactions=times(7 + 50, 45, 3, 1, total_ms=990)),
        rows.gauges(time_ms=at(2), reactions=times(*slow, total_ms=70_000)),  # the job counts from 0 again
    )
    (first,) = found.reactions
    assert (first.event, first.to, first.count) == ("BrokerChange", "first_write", 100)
    assert first.mean_ms == pytest.approx((990 + 70_000) / 100)
    assert (first.p50_at_most_ms, first.p95_at_most_ms, first.p99_at_most_ms) == (10, 25, 100)
    (last,) = report(
        rows.gauges(time_ms=at(0), reactions={}), rows.gauges(time_ms=at(1), reactions=times(*slow))
    ).reactions
    assert (last.p50_at_most_ms, last.p99_at_most_ms) == (None, None)


def test_parts_of_a_cluster_add_up_to_the_whole(rows):
    taken = [
        *heartbeats(rows, 0, 100),
        rows.offline("orders", 0, time_ms=at(1)),
        rows.partition("audit", 0, time_ms=at(1)),
        rows.broker(1, time_ms=at(0)),
        rows.broker(1, time_ms=at(5), registered=False, left_in_order=False),
        rows.alert("a", time_ms=at(9)),
        rows.controller(1, time_ms=at(1)),
        rows.controller(-1, time_ms=at(2)),
    ]

    def part(*chosen: Row) -> Part:
        account = Account()
        for row in sorted(chosen, key=lambda row: row.time_ms):
            account.take(row)
        return msgspec.msgpack.decode(msgspec.msgpack.encode(account.part()), type=Part)

    by_subject: dict[str, list[Row]] = {}
    for row in taken:
        by_subject.setdefault(getattr(row, "topic", None) or type(row).__name__, []).append(row)
    apart = added_up(part(*chosen) for chosen in by_subject.values())
    assert len(by_subject) > 4
    assert report_of("north", apart) == report_of("north", part(*taken)) == report(*taken)


def test_the_impact_on_a_team_is_the_sum_over_its_topics_in_all_clusters(rows):
    teams = read_teams(
        {"pay*": {"team": "payments", "contact": "#pay", "rank": 2}, "audit": {"team": "security", "rank": 1}}
    )
    beats = heartbeats(rows, 0, 100)
    north = report(
        *beats,
        rows.partition("pay-in", 0, time_ms=at(0), writable_acks_all=True),
        rows.offline("pay-in", 0, time_ms=at(90), writable_acks_all=False),
        rows.under_min_isr("pay-out", 0, time_ms=at(80)),
        rows.offline("scratch", 0, time_ms=at(0), writable_acks_all=False),
    )
    south = report(*beats, rows.partition("pay-in", 0, time_ms=at(0), writable_acks_all=True))
    (payments,) = report_against(None, (north, south), teams).teams  # security has no topic
    assert (str(payments), payments.topics) == ("payments (#pay)", 3)
    assert payments.partition_minutes == minutes(220)
    assert (payments.offline_partition_minutes, payments.unwritable_partition_minutes) == (minutes(10), minutes(30))
    assert (payments.online, payments.writable) == (pytest.approx(1 - 10 / 220), pytest.approx(1 - 30 / 220))
    owned = report(*beats, rows.partition("audit", 0, time_ms=at(0), writable_acks_all=True))
    assert [team.team for team in report_against(None, (north, owned), teams).teams] == ["security", "payments"]
    assert report_against(None, (north,)).teams == ()
