"""Which partitions reject acks=all, since when, and which brokers would change that."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import Problem
from controller.model.context import Context
from controller.restore.stored_context import changed_chunks, encode_header, new_context, reconfigured, restore_context
from controller.rules.releases import profile_of
from tests.controller.znode_history import ZnodeHistory, broker_znode, controller_znode, state_znode, topic_znode

LED_BY_EACH = {"t": {0: ([1, 2, 3], 1, 0, [1]), 1: ([2, 1, 3], 2, 0, [2]), 2: ([3, 1, 2], 3, 0, [3, 1])}}


def rows_of(history: ZnodeHistory, topic: str = "t") -> dict[int, PartitionRow]:
    """Return the newest row of each partition."""
    return {row.partition: row for row in history.effects if isinstance(row, PartitionRow) and row.topic == topic}


def refusing(history: ZnodeHistory) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Return the lack of each partition that rejects acks=all. Its row, problem, gauge and alert must agree."""
    history.heartbeat(60_000)  # an open alert names more partitions only from time to time
    found = {
        number: (row.in_sync_lacking, row.in_sync_candidates)
        for number, row in rows_of(history).items()
        if row.problem == "under_min_isr"
    }
    assert {number for number, row in rows_of(history).items() if not row.writable_acks_all} == set(found)
    assert history.gauges().under_min_isr_partitions == len(found)
    alerts = [alert for alert in history.open_alerts().values() if alert.alert == "PartitionsUnderMinIsr"]
    assert sorted(name for alert in alerts for name in alert.examples) == [f"t-{number}" for number in sorted(found)]
    return found


def configure(history: ZnodeHistory, path: str, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    history.write(f"/config/{path}", {"version": 1, "config": settings})
    history.heartbeat()


def led(**settings: int) -> ZnodeHistory:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    history = ZnodeHistory(release=(3, 6), settings=given).start(1, 2, 3, topics=LED_BY_EACH)
    history.heartbeat()
    return history


def test_a_partition_says_how_many_of_which_brokers_it_needs():
    history = led(min_insync_replicas=3)
    assert refusing(history) == {0: (2, (2, 3)), 1: (2, (1, 3)), 2: (1, (2,))}
    assert rows_of(history)[2].reason == (
        "rejects acks=all: 2 of 3 replicas are in sync, 3 needed. Missing: broker 2 is live"
    )
    history.state("t", 0, 1, 0, [1, 3])
    history.heartbeat()
    assert refusing(history)[0] == (1, (2,))
    history.state("t", 0, 1, 0, [1, 3, 2])
    history.heartbeat()
    assert 0 not in refusing(history)
    assert rows_of(history)[0].problem is None


def test_brokers_settings_hold_by_kafkas_precedence_in_rows_counts_and_alerts():
    history = led()
    assert refusing(history) == {}
    configure(history, "brokers/<default>", min_insync_replicas="2")
    assert refusing(history) == {0: (1, (2, 3)), 1: (1, (1, 3))}
    configure(history, "brokers/1", min_insync_replicas="1")
    assert refusing(history) == {1: (1, (1, 3))}
    configure(history, "brokers/3", min_insync_replicas="3")
    assert refusing(history) == {1: (1, (1, 3)), 2: (1, (2,))}
    configure(history, "topics/t", min_insync_replicas="3")
    assert refusing(history) == {0: (2, (2, 3)), 1: (2, (1, 3)), 2: (1, (2,))}
    configure(history, "topics/t", min_insync_replicas="1")
    assert refusing(history) == {}
    history.delete("/config/topics/t")
    history.delete("/config/brokers/3")
    history.delete("/config/brokers/<default>")
    history.heartbeat()
    assert refusing(history) == {}


def test_a_row_follows_a_default_that_asks_for_still_more():
    history = led()
    configure(history, "brokers/<default>", min_insync_replicas="2")
    since = rows_of(history)[0].problem_since_ms
    configure(history, "brokers/<default>", min_insync_replicas="3")
    assert refusing(history)[0] == (2, (2, 3))
    assert rows_of(history)[0].problem_since_ms == since


def test_a_partition_without_a_leader_lacks_nothing_when_a_default_asks_for_more():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([3], 3, 0, [3])}}
    history = ZnodeHistory(release=(3, 6)).start(1, 2, 3, topics=topics)
    history.delete("/brokers/ids/3")
    history.heartbeat()
    configure(history, "brokers/<default>", min_insync_replicas="3")
    lacking_of = {number: (row.problem, row.in_sync_lacking) for number, row in rows_of(history).items()}
    assert lacking_of == {0: ("under_min_isr", 1), 1: ("no_live_in_sync_replica", 0)}


def test_no_default_that_changes_nothing_gives_rows():
    history = led()
    seen = len(rows := [row for row in history.effects if isinstance(row, PartitionRow)])
    configure(history, "brokers/7", min_insync_replicas="3")  # broker 7 leads no partition
    assert [row for row in history.effects if isinstance(row, PartitionRow)] == rows
    assert seen == 3


@pytest.mark.parametrize(("release", "lacking"), [((3, 6), 1), ((3, 7), 0)])
def test_more_than_there_are_replicas_no_broker_can_help_up_to_3_6(release, lacking):
    topics = {"t": {0: ([1], 1, 0, [1])}}
    history = ZnodeHistory(release=release, settings={"min.insync.replicas": 2}).start(1, 2, topics=topics)
    (row,) = rows_of(history).values()
    assert (row.in_sync_lacking, row.in_sync_candidates) == (lacking, ())
    assert row.writable_acks_all == (not lacking)
    if lacking:
        assert row.reason == (
            "rejects acks=all: 1 of 1 replica is in sync, 2 needed, more than it has replicas. No broker can help"
        )


def test_the_worst_problem_is_the_one_that_is_shown():
    """The partition is under-replicated throughout."""
    history = ZnodeHistory(release=(3, 6), settings={"min.insync.replicas": 2})
    history.start(1, 2, 3, topics={"t": {0: ([1, 2, 3], 1, 0, [1, 2])}})
    shown = [rows_of(history)[0]]
    for lose in (
        lambda: history.state("t", 0, 1, 0, [1]),
        lambda: history.broker_leaves(1),
        lambda: history.the_controller_writes_its_due(),
        lambda: history.broker(1),
        lambda: history.the_controller_writes_its_due(),
        lambda: history.state("t", 0, 1, rows_of(history)[0].leader_epoch, [1, 2]),
    ):
        history.now_ms += 1_000
        lose()
        shown.append(rows_of(history)[0])
    assert [row.problem for row in shown] == [
        "under_replicated",
        "under_min_isr",
        "no_live_in_sync_replica",
        "no_live_in_sync_replica",
        "election_due",
        "under_min_isr",
        "under_replicated",
    ]
    order = list(Problem)
    assert order.index(Problem.UNDER_MIN_ISR) == len(order) - 2
    assert [row.writable_acks_all for row in shown] == [True, False, False, False, False, False, True]
    # Only a partition with a leader names its lacking replicas. The others need a leader first.
    assert [row.in_sync_lacking for row in shown] == [0, 1, 0, 0, 0, 1, 0]
    same = [(now.problem_since_ms == before.problem_since_ms) for before, now in pairwise(shown)]
    assert same == [False, False, True, True, False, False]


def test_a_topic_that_is_being_deleted_has_no_problem_and_takes_no_writes():
    history = led(min_insync_replicas=3)
    history.delete_topic("t")
    history.heartbeat()
    for row in rows_of(history).values():
        assert (row.problem, row.writable_acks_all, row.in_sync_lacking) == (None, False, 0)


def restored(context: Context) -> Context:
    chunks = changed_chunks(new_context("c", chunk_count=context.header.chunk_count), context)
    return restore_context("c", encode_header(context), chunks.get)


def test_a_restart_under_other_static_settings_names_them_with_the_next_heartbeat():
    history = led()
    two = {"min.insync.replicas": 2}
    history.context = reconfigured(restored(history.context), two, profile_of((3, 6)))
    history.heartbeat()
    assert refusing(history) == {0: (1, (2, 3)), 1: (1, (1, 3))}
    history.context = reconfigured(restored(history.context), {}, profile_of((3, 6)))
    history.heartbeat()
    assert refusing(history) == {}


def test_dynamic_settings_are_there_after_a_restart():
    history = led()
    configure(history, "brokers/<default>", min_insync_replicas="2")
    history.context = restored(history.context)
    assert refusing(history) == {0: (1, (2, 3)), 1: (1, (1, 3))}


def test_a_release_that_shows_later_is_followed():
    """From 3.7 on, the limit is at most the number of replicas. `/controller` shows that the release is so new."""
    history = ZnodeHistory(settings={"min.insync.replicas": 2})
    history.snapshot(
        ("/controller", {**controller_znode(1), "version": 1}),
        ("/controller_epoch", b"1"),
        ("/brokers/ids/1", broker_znode(1)),
        ("/brokers/topics/t", topic_znode({0: [1]})),
        ("/brokers/topics/t/partitions/0/state", state_znode(1, 0, [1])),
    )
    lacking = [rows_of(history)[0].in_sync_lacking]
    history.delete("/controller")
    history.write("/controller", {**controller_znode(1), "version": 2})
    history.heartbeat()
    lacking.append(rows_of(history)[0].in_sync_lacking)
    assert lacking == [1, 0]
    history.write("/brokers/ids/1", {**broker_znode(1), "version": 4})
    assert history.context.header.tally.gauges.under_min_isr_partitions == 0, "all look so old"
    history.broker(2)
    assert history.context.header.tally.gauges.under_min_isr_partitions == 1, "broker 2 is newer"
    history.broker_leaves(2)
    assert history.context.header.tally.gauges.under_min_isr_partitions == 0


def test_what_was_stored_before_it_was_judged_is_judged_with_the_next_heartbeat():
    history = led(min_insync_replicas=2)
    before = restored(history.context)
    before.header.tally.judged_by = None
    partitions = before.topics["t"].partitions
    for number in (0, 1):
        partitions[number] = replace(partitions[number], problem=Problem.UNDER_REPLICATED, in_sync_lacking=0)
    history.context = before
    history.effects.clear()
    history.heartbeat()
    assert set(rows_of(history)) == {0, 1}
    assert history.context.topics.partition(TopicPartition("t", 0)).problem is Problem.UNDER_MIN_ISR


# One complete read, as `kontrast snapshot` prints it


def told(*more: tuple[str, object], controller_version: int = 1) -> dict[int, PartitionRow]:
    history = ZnodeHistory()
    history.snapshot(
        ("/controller", {**controller_znode(1), "version": controller_version}),
        *((f"/brokers/ids/{broker}", broker_znode(broker)) for broker in (1, 2, 3)),
        ("/brokers/topics/t", topic_znode({0: [1, 2, 3], 1: [2, 1, 3], 2: [3], 3: [9, 1]})),
        ("/brokers/topics/t/partitions/0/state", state_znode(1, 4, [1])),
        ("/brokers/topics/t/partitions/1/state", state_znode(2, 4, [2])),
        ("/brokers/topics/t/partitions/2/state", state_znode(3, 4, [3])),
        ("/brokers/topics/t/partitions/3/state", state_znode(9, 4, [9])),
        *more,
    )
    return rows_of(history)


def config(**settings: str) -> dict:
    return {"version": 1, "config": {name.replace("_", "."): value for name, value in settings.items()}}


def lacking(lines: dict[int, PartitionRow]) -> dict[int, tuple[int, tuple[int, ...]]]:
    found = {number: (line.in_sync_lacking, line.in_sync_candidates) for number, line in lines.items()}
    assert {number for number, line in lines.items() if line.writable_acks_all} == {
        number for number, (count, _) in found.items() if not count and lines[number].state == "OnlinePartition"
    }
    return {number: what for number, what in found.items() if what[0]}


def test_a_snapshot_follows_the_same_precedence():
    default = ("/config/brokers/<default>", config(min_insync_replicas="2"))
    first = ("/config/brokers/1", config(min_insync_replicas="1"))
    topic = ("/config/topics/t", config(min_insync_replicas="3"))
    assert lacking(told()) == {}
    assert lacking(told(default)) == {0: (1, (2, 3)), 1: (1, (1, 3)), 2: (1, ())}
    assert lacking(told(default, first)) == {1: (1, (1, 3)), 2: (1, ())}
    assert lacking(told(default, first, topic)) == {0: (2, (2, 3)), 1: (2, (1, 3)), 2: (2, ())}
    assert lacking(told(default, first, controller_version=2)) == {1: (1, (1, 3))}


def test_a_snapshot_says_nothing_of_what_a_topic_on_its_way_out_lacks():
    queued = told(("/config/topics/t", config(min_insync_replicas="3")), ("/admin/delete_topics/t", b""))
    assert [(line.writable_acks_all, line.in_sync_lacking) for line in queued.values()] == [(False, 0)] * 4
