"""A cluster from any source of a question, always the same from files, changes, outputs, or ZooKeeper itself."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from cli.sources.options import read_source_flags
from cli.sources.zookeeper import without_garbage_collection
from controller.contract.outputs import encode_row
from controller.contract.problem import Problem
from controller.contract.records import Record, encode_record
from controller.restore.stored_context import new_context
from controller.step import steps
from dashboards.errors import ServeError
from questions.picture import Beginning, Origin, Picture
from questions.question import EVERYTHING_NOW, NotFoundError, Scope
from tests.clients import zookeeper_client
from tests.recorded_moment import MOMENT_MS, history
from transport.journal import JournalWriter


@pytest.fixture(scope="module")
def records(recorded_files: Path) -> list[Record]:
    return list(history(recorded_files, "shop").records())


@pytest.fixture(scope="module")
def from_files(recorded_files: Path) -> Picture:
    return picture("--zk-data", recorded_files, "--until", MOMENT_MS)


def picture(*arguments: object, scope: Scope = EVERYTHING_NOW) -> Picture:
    return source(*arguments).picture(scope, threading.Event())


def source(*arguments: object) -> Any:
    """Return the source for a command with these arguments."""
    return read_source_flags(list(map(str, arguments))).source()


def write_changes(directory: Path, *lists: list[Record]) -> None:
    with JournalWriter(directory) as journal:
        for records in lists:
            journal.append([encode_record(record) for record in records])


def facts(picture: Picture) -> dict[str, object]:
    """Return the facts of every origin, with leaders, ISRs, problems and brokers."""
    header = picture.header
    partitions = {
        f"{name}-{number}": (
            partition.replicas,
            partition.zk_state and (partition.zk_state.leader, partition.zk_state.leader_epoch, partition.zk_state.isr),
            _in_short(partition.problem),
        )
        for name, topic in picture.context.topics
        for number, partition in topic.partitions.items()
    }
    brokers = {number: (broker.epoch, broker.rack) for number, broker in header.brokers.items()}
    return {**partitions, "brokers": brokers, "controller": (header.controller, header.controller_epoch)}


def _in_short(problem: Problem | None) -> Problem | None:
    """Merge the two problems of elections.

    A source without a past cannot know the controller's reason for an election.
    """
    return Problem.ELECTION_DUE if problem is Problem.LEADERLESS else problem


def test_the_recorded_moment_has_problems_of_several_kinds(from_files):
    assert from_files.origin is Origin.HISTORY
    kinds = {row.alert for row in from_files.alerts}
    assert kinds >= {"PartitionsOffline", "BrokerCrashed", "GhostController", "TopicWithDeadReplica"}
    assert [row.severity.value for row in from_files.alerts] == sorted(
        (row.severity.value for row in from_files.alerts), key=["page", "warn", "info"].index
    )


def test_changes_begin_with_the_newest_complete_read_unless_the_past_is_asked_for(tmp_path, records):
    later = [msgspec.structs.replace(record, generation=2) for record in records]
    write_changes(tmp_path / "changes", records, later)
    address = f"journal:{tmp_path / 'changes'}"
    now = picture("--from", address, scope=Scope(keeps=lambda _: True))
    past = picture("--from", address, scope=Scope(past=True, keeps=lambda _: True))
    assert {row.generation for row in now.story} == {2}
    assert {row.generation for row in past.story} == {1, 2}


def test_what_an_older_forwarder_still_sends_changes_nothing(tmp_path, records, from_files):
    late = [r for r in records if r.path == "/brokers/topics/t1"][:1]
    newer = [msgspec.structs.replace(record, generation=record.generation + 1) for record in records]
    forged = [msgspec.structs.replace(late[0], seq=late[0].seq + 10**6, path="/brokers/topics/ghost", observed_ms=1)]
    write_changes(tmp_path / "changes", newer, forged)
    found = picture("--from", f"journal:{tmp_path / 'changes'}")
    assert "/brokers/topics/ghost" not in found.records
    assert found.as_of_ms == from_files.as_of_ms
    assert facts(found) == facts(from_files)


def test_a_topic_of_changes_and_topics_of_outputs_give_the_same_too(shared_broker, own_name, records, from_files):
    outcome = steps(new_context("shop"), records)
    with closing(KafkaAdminClient(bootstrap_servers=shared_broker)) as admin:
        outputs = {f"{own_name}.derived.{output}": output for output in ("metadata", "alerts", "gauges")}
        admin.create_topics([NewTopic(name, 1, 1) for name in (own_name, *outputs)])
    with closing(KafkaProducer(bootstrap_servers=shared_broker)) as producer:
        for record in records:
            producer.send(own_name, encode_record(record))
        for topic, output in outputs.items():
            for row in outcome.effects:
                if row.output == output:
                    producer.send(topic, encode_row(row))
        producer.flush()
    changes = picture("--from", f"kafka://{shared_broker}/{own_name}")
    derived = picture("--from", f"kafka://{shared_broker}/{own_name}.derived")
    assert (changes.origin, derived.origin) == (Origin.HISTORY, Origin.HISTORY)
    assert facts(changes) == facts(derived) == facts(from_files)
    with pytest.raises(ServeError, match="holds no outputs"):
        picture("--from", f"kafka://{shared_broker}/{own_name}.absent")


def test_zookeeper_alone_gives_the_same_now_with_the_times_in_its_znodes(watched, from_files):
    with zookeeper_client(watched) as client:
        for path, record in from_files.records.items():
            client.create(path, record.raw or b"", ephemeral=record.ephemeral_owner != 0, makepath=True)
        found = picture("--zookeeper", watched)
        only = picture("--zookeeper", watched, scope=Scope(topics=frozenset({"t1", "no-such-topic"})))
    assert found.origin is Origin.LOOK
    same = ("brokers", "controller")
    assert {key: value for key, value in facts(found).items() if key not in same} == {
        key: value for key, value in facts(from_files).items() if key not in same
    }
    assert {row.alert for row in found.alerts} >= {"PartitionsOffline", "BrokerAbsent"}
    assert found.header.acting
    assert found.written_ms.keys() == found.records.keys()
    assert {name for name, topic in only.context.topics if topic.exists} == {"t1"}
    offline = next(row for row in found.alerts if row.alert == "PartitionsOffline")
    assert not found.since(offline.since_ms).exact


def test_what_one_look_cannot_date_is_said_to_be_unknown(from_files):
    assert from_files.since(0) == Beginning(None, exact=False)
    began_ms = from_files.header.read.began_ms
    assert from_files.since(began_ms) == Beginning(began_ms, exact=False)
    assert from_files.since(began_ms + 1).exact


def test_of_several_clusters_one_must_be_named(tmp_path, recorded_files, records):
    write_changes(tmp_path / "changes", records, list(history(recorded_files, "depot").records()))
    address = f"journal:{tmp_path / 'changes'}"
    with pytest.raises(NotFoundError, match="which cluster.*depot, shop"):
        picture("--from", address)
    assert picture("--from", address, "--cluster", "depot").header.cluster == "depot"
    with pytest.raises(NotFoundError, match="no rows of cluster dept: it has depot, shop"):
        picture("--from", address, "--cluster", "dept")


def test_changes_without_a_complete_read_are_no_cluster_yet(tmp_path, records):
    write_changes(tmp_path / "changes", records[:1])
    for scope in (EVERYTHING_NOW, Scope(past=True)):
        with pytest.raises(NotFoundError, match="no complete read of cluster shop"):
            picture("--from", f"journal:{tmp_path / 'changes'}", scope=scope)


def test_outputs_without_transitions_are_asked_without_their_past(tmp_path, records, caplog):
    outcome = steps(new_context("shop"), records)
    for output in ("metadata", "gauges"):
        with JournalWriter(tmp_path / "derived" / output, batches=True) as journal:
            journal.append_batch(1, [encode_row(row) for row in outcome.effects if row.output == output])
    found = picture("--from", f"journal:{tmp_path / 'derived'}", scope=Scope(past=True, keeps=lambda _: True))
    assert found.story is None
    assert "holds no transitions" in caplog.text
    assert "the causes are unknown, because" in caplog.text


def test_what_a_look_leaves_in_cycles_is_gone_after_the_next():
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    try:
        with without_garbage_collection():
            left = weakref.ref(Cycle())
        assert left() is not None
        with without_garbage_collection():
            assert left() is None
    finally:
        gc.unfreeze()
