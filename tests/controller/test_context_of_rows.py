"""The context from rows knows each fact that questions use, as the context that published the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import BeginningRow, BrokerRow, MetadataRow, PartitionRow, TopicRow
from controller.contract.outputs import decode_row, encode_row
from controller.contract.records import RecordKind
from controller.restore.context_of_rows import context_of_rows
from controller.restore.stored_context import new_context
from controller.view.types import Context
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, migration_znode, on, state_znode

REASSIGN = "/admin/reassign_partitions"


def standing(history: ZnodeHistory) -> list[MetadataRow]:
    """Return the newest row of each subject, as a reader of the output keeps them."""
    newest: dict[str, Any] = {}
    for row in (decode_row(encode_row(row)) for row in history.effects if row.output == "metadata"):
        assert not isinstance(row, BeginningRow)
        newest.pop(row.subject_key(), None)
        if not row.ends_subject:
            newest[row.subject_key()] = row
    return list(newest.values())


def from_rows(history: ZnodeHistory) -> Context:
    gauges = [row for row in history.effects if isinstance(row, GaugesRow)][-1]
    given = decode_row(encode_row(gauges))
    assert isinstance(given, GaugesRow)
    empty, unchanged = new_context("c", chunk_count=8), new_context("c", chunk_count=8)
    context = context_of_rows(empty, standing(history), given)
    assert empty.header == unchanged.header, "an empty context serves several readers"
    return context


def facts(context: Context) -> dict[str, Any]:
    header = context.header
    term, configuration = header.term, header.configuration
    replace = msgspec.structs.replace
    migration = header.migration
    found: dict[str, Any] = {
        "brokers": {number: replace(each, at_work=False) for number, each in header.brokers.items()},
        "departures": {
            number: replace(each, shares_with=(), was=each.was and replace(each.was, epoch=-1, session=0, since_ms=0))
            for number, each in header.departures.last.items()
        },
        "controller": (header.controller, header.controller_epoch, header.acting, header.is_ghost, header.is_poisoned),
        "term": (term.since_ms, term.session, term.ownership, term.epoch, term.broker, term.duplicate_topic_ids),
        "shutdowns": header.shutdowns.under_way,
        "requests": (header.triggers.reassign, header.triggers.preferred),
        "reassign_unwatched": header.triggers.reassign_unwatched,
        "profile": (header.profile, header.settings, configuration, header.allows_unclean_election),
        "rules": header.counting_rules,
        "events": {event.id: (event.sentence, event.zxid, event.writes_due) for event in header.events.values()},
        "gauges": header.tally.gauges,
        "issues": {key: group.count for key, group in header.tally.issues.items()},
        "offline": header.tally.offline_by_topic,
        "migration": (
            migration.phase,
            migration.since_ms,
            migration.seen,
            migration.offset,
            migration.claim.controller,
        ),
        "epochs": migration.partitions_by_epoch,
        "read": header.read.began_ms,
        "changes": header.former.changes,
    }
    found["departures"] = {
        number: replace(each, was=each.was and replace(each.was, at_work=False))
        for number, each in found["departures"].items()
    }
    for name, topic in context.topics:
        if topic.exists:
            deletion = (topic.queued_for_deletion, topic.deletion_started, topic.ineligible, topic.request_removed)
            found[name] = (topic.topic_id, topic.min_insync_replicas, topic.unclean_election, *deletion)
            for number, partition in topic.partitions.items():
                due = partition.value(header.controller_epoch) if partition.write_due else None
                events = [action.event for action in partition.queue if action.writes]
                known = replace(partition, queue=(), cached=None)
                found[f"{name}-{number}"] = (
                    known,
                    due and (due.leader, due.leader_epoch, due.isr, due.recovering),
                    events,
                )
    return found


def a_settled_cluster() -> ZnodeHistory:
    history = ZnodeHistory()
    history.start(
        1, 2, 3, topics={"t": {0: ([1, 2], 1, 4, [1, 2]), 1: ([2, 3, 1], 3, 4, [3])}}, topic_id="id-of-tAAAAAAAAAAAAAAA"
    )
    history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.write("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": "true"}})
    history.write("/config/brokers/<default>", {"version": 1, "config": {"min.insync.replicas": "2"}})
    return history


def settings_and_a_release_that_were_given() -> ZnodeHistory:
    history = ZnodeHistory(release=(1, 1), settings={"min.insync.replicas": 2, "unclean.leader.election.enable": True})
    history.start(1, 2, topics=on([1, 2], 1, 0, [1]))
    history.write("/brokers/topics/t/partitions/0/state", state_znode(1, 1, [1]) | {"leader_recovery_state": 1})
    return history


def writes_due_after_two_deaths() -> ZnodeHistory:
    history = ZnodeHistory(release=(2, 8)).start(
        1, 2, 3, 4, controller=1, topics={"t": {0: ([2, 3, 4], 2, 0, [2, 3, 4]), 1: ([2], 2, 0, [2])}}
    )
    history.broker_leaves(2)
    history.broker_leaves(3)
    history.write("/brokers/topics/young", {"version": 2, "partitions": {"0": [4, 1], "1": [2]}})
    return history


def no_controller_and_partitions_that_wait() -> ZnodeHistory:
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, controller=3, topics=on([2, 3], 2, 0, [2, 3]))
    history.delete("/controller")
    history.write("/brokers/topics/young", {"version": 2, "partitions": {"0": [1, 2]}})
    return history


def a_deletion_that_hangs() -> ZnodeHistory:
    history = ZnodeHistory(release=(2, 8)).start(
        1, 2, 3, topics={"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([1], 1, 0, [1])}}
    )
    history.broker_leaves(3)
    history.write("/admin/delete_topics/t")
    history.write("/admin/delete_topics/u")
    history.delete("/admin/delete_topics/t")
    return history


def a_deletion_that_the_next_controller_cannot_start() -> ZnodeHistory:
    history = a_deletion_that_hangs()
    history.delete("/controller")
    history.controller(2, 2)
    assert not history.context.topics["t"].deletion_started
    return history


def reassignments_under_way() -> ZnodeHistory:
    history = ZnodeHistory(release=(2, 8)).start(
        1, 2, 3, topics={"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    )
    history.write(REASSIGN, {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2]}]})
    return history


def a_reassignment_that_the_controller_does_not_heed() -> ZnodeHistory:
    history = reassignments_under_way()
    history.delete(REASSIGN)
    assert history.context.header.triggers.reassign_unwatched
    return history


def a_failed_log_directory_and_a_shutdown() -> ZnodeHistory:
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([2, 3], 2, 0, [2, 3]))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    history.write("/brokers/topics/t/partitions/0/state", state_znode(3, 1, [3]))
    history.broker_leaves(1)
    return history


def a_migration_that_kraft_leads() -> ZnodeHistory:
    history = ZnodeHistory(release=(3, 9)).start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.write("/migration", migration_znode())
    history.write("/controller", {"version": 2, "brokerid": 3000, "kraftControllerEpoch": 5}, owner=77)
    history.write("/migration", migration_znode(100, 3000, 5))
    return history


LIVES: list[Callable[[], ZnodeHistory]] = [
    a_settled_cluster,
    settings_and_a_release_that_were_given,
    writes_due_after_two_deaths,
    no_controller_and_partitions_that_wait,
    a_deletion_that_hangs,
    a_deletion_that_the_next_controller_cannot_start,
    reassignments_under_way,
    a_reassignment_that_the_controller_does_not_heed,
    a_failed_log_directory_and_a_shutdown,
    a_migration_that_kraft_leads,
]


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_each_fact_comes_back_from_rows(life):
    history = life()
    history.heartbeat()
    assert facts(from_rows(history)) == facts(history.context)


def test_a_due_write_that_is_newer_than_the_gauges_is_known_by_its_number():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics={"t": {n: ([2, 3], 2, 0, [2, 3]) for n in range(2)}})
    history.broker_leaves(2)
    (event,) = from_rows(history).header.events.values()
    (known,) = history.context.header.events.values()
    assert (event.id, event.writes_due, event.cause) == (known.id, 2, "an event that the rows do not name")


def test_an_event_affects_the_topics_with_its_due_writes():
    history = writes_due_after_two_deaths()
    history.heartbeat()
    known, found = (
        {event.id: set(event.topics) for event in context.header.events.values()}
        for context in (history.context, from_rows(history))
    )
    assert found == known
    assert {"t", "young"} == set().union(*found.values())


def test_a_topic_without_a_row_of_its_own_is_known_by_its_partitions():
    history = a_deletion_that_hangs()
    history.heartbeat()
    gauges = [row for row in history.effects if isinstance(row, GaugesRow)][-1]
    rows = [row for row in standing(history) if isinstance(row, PartitionRow)]
    topics = dict(context_of_rows(new_context("c", chunk_count=8), rows, gauges).topics)
    assert topics["t"].queued_for_deletion
    assert topics["t"].partitions.keys() == {0}


def test_only_a_removed_partition_or_topic_ends_its_rows():
    history = no_controller_and_partitions_that_wait()
    waiting = [row for row in history.effects if isinstance(row, PartitionRow) and row.topic == "young"]
    assert [(row.state, row.removed) for row in waiting] == [("NonExistentPartition", False)]
    history.delete("/brokers/topics/young")
    gone = [row for row in history.effects if isinstance(row, PartitionRow | TopicRow) and row.topic == "young"][-2:]
    assert [row.ends_subject for row in gone] == [True, True]


def test_a_topic_row_comes_when_the_topic_changes_and_not_with_its_partitions():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})

    def rows() -> list[TopicRow]:
        found = [row for row in history.effects if isinstance(row, TopicRow)]
        history.effects.clear()
        return found

    (first,) = rows()
    assert (first.partitions, first.replication_factors, first.deletion, first.min_insync_replicas) == (
        1,
        (2,),
        None,
        None,
    )
    history.write("/brokers/topics/t/partitions/0/state", state_znode(1, 0, [1]))
    history.heartbeat()
    assert rows() == []
    history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}})
    assert [row.min_insync_replicas for row in rows()] == [2]
    history.write(REASSIGN, {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})
    history.write("/brokers/topics/t/partitions/0/state", state_znode(1, 1, [1]))
    assert [row.replication_factors for row in rows()][-1:] == [(1,)]
    history.write("/admin/delete_topics/t")
    assert [row.deletion for row in rows()] == ["started"]


def test_a_topic_that_goes_during_a_complete_read_ends_its_rows():
    history = ZnodeHistory().start(1, topics={"t": {0: ([1], 1, 0, [1])}})
    history.effects.clear()
    history.generation, history.seq = 2, -1
    history.start(1)
    assert [(row.topic, row.removed) for row in history.effects if isinstance(row, TopicRow)] == [("t", True)]


def test_a_broker_keeps_its_registration_after_it_left():
    history = ZnodeHistory().start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    content = {"version": 5, "jmx_port": -1, "endpoints": ["PLAINTEXT://b2:9092"], "rack": "r2"}
    history.write("/brokers/ids/2", content)
    history.broker_leaves(2)
    (*_, row) = [row for row in history.effects if isinstance(row, BrokerRow)]
    assert (row.registered, row.rack, row.endpoints, row.least_release) == (
        False,
        "r2",
        ("PLAINTEXT://b2:9092",),
        "2.7",
    )
    assert row.left_zxid == history.zxid


def test_a_complete_read_dates_a_broker_by_its_registration():
    history = ZnodeHistory()
    at_ms = history.now_ms - 60_000
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/brokers/ids/1", {"version": 4, "jmx_port": -1, "endpoints": []}, ctime_ms=at_ms)
    history.write("/controller", {"version": 1, "brokerid": 1}, ctime_ms=at_ms + 1)
    history.send(RecordKind.SNAPSHOT_END)
    assert (history.brokers()[1].since_ms, history.brokers()[1].least_release) == (at_ms, "0.10")
    assert history.context.header.term.since_ms == at_ms + 1


def test_a_question_about_one_subject_may_leave_out_the_counts():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2])}})
    counted, bare = (
        context_of_rows(new_context("c"), standing(history), history.gauges(), counted=counted)
        for counted in (True, False)
    )
    assert bare.topics.get("t") == counted.topics.get("t")
    assert counted.header.tally != bare.header.tally
