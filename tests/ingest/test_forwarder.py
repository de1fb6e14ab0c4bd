"""A forwarder from end to end, from a ZooKeeper to a journal."""

from __future__ import annotations

import json
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import RecordKind, decode_record
from ingest.config import IngestConfig
from ingest.errors import IngestError
from ingest.forwarder import Forwarder
from tests.ingest.conftest import TREE, Watching, changes, make_cluster, replayed_tree, server_tree, server_zxid
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.forwarding import ReadReason
from transport.journal import JournalWriter
from transport.journal_reading import end_offset, read_journal
from transport.topics import request_complete_read

Watch = Callable[..., Watching]


def create_and_delete(kafka: KazooClient, path: str) -> None:
    """Create and delete a znode in one transaction, so that no client can read its value."""
    transaction = kafka.transaction()
    transaction.create(path)
    transaction.delete(path)
    assert transaction.commit() == [path, True]


@pytest.mark.parametrize("chroot", ["", "/kafka/blue"])
def test_the_first_read_holds_every_recorded_znode_in_order(kafka: KazooClient, watch: Watch, chroot: str) -> None:
    make_cluster(kafka, chroot)
    records = watch(chroot=chroot).records()
    assert [record.seq for record in records] == list(range(len(records)))
    assert records[0].kind is RecordKind.SNAPSHOT_BEGIN
    assert [(record.kind, record.path) for record in records[1:8]] == [
        *((RecordKind.NODE, path) for path in TREE),
        (RecordKind.SNAPSHOT_END, ""),
    ]
    controller = records[2]
    stat = kafka.exists(chroot + "/controller")
    assert controller.data == '{"brokerid":1}'
    assert (controller.czxid, controller.mzxid, controller.version) == (stat.czxid, stat.mzxid, stat.version)
    assert controller.ephemeral_owner == kafka.client_id[0]


def test_changes_arrive_with_their_zxid_and_bytes_that_are_no_text(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch()
    seq = watching.settled()
    stat = kafka.set("/brokers/topics/t/partitions/0/state", b'{"leader":-1}')
    kafka.create("/config/brokers", b"")
    kafka.create("/config/brokers/<default>", b"\xff\xfe\x00")
    watching.settled()
    state, default = (record for record in watching.after(seq) if record.path)
    assert (state.kind, state.data, state.zxid, state.mzxid, state.version) == (
        RecordKind.NODE,
        '{"leader":-1}',
        stat.mzxid,
        stat.mzxid,
        1,
    )
    assert (default.path, default.data, default.raw) == ("/config/brokers/<default>", None, b"\xff\xfe\x00")


def test_the_cluster_s_id_is_forwarded_also_of_a_cluster_that_begins_later(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch()
    seq = watching.settled()
    kafka.create("/cluster/id", b'{"version":"1","id":"x"}', makepath=True)
    watching.settled()
    (created,) = (record for record in watching.after(seq) if record.path)
    assert (created.path, created.data) == ("/cluster/id", '{"version":"1","id":"x"}')
    assert "/cluster/id" in {record.path for record in watch(journal="another").records()}


def test_a_transaction_is_never_split_under_load(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch(coalesce_ms=0)
    seq = watching.settled()
    for number in range(200):
        transaction = kafka.transaction()
        transaction.create(f"/brokers/topics/n{number}", b"{}")
        transaction.set_data("/controller_epoch", str(number).encode())
        transaction.commit()
    watching.settled()
    records = [record for record in watching.after(seq) if record.path]
    zxids = [record.zxid for record in records]
    assert zxids == sorted(zxids)
    created = [record for record in records if record.path.startswith("/brokers/topics/n")]
    assert len(created) == 200
    for epoch in (record for record in records if record.path == "/controller_epoch"):
        # The epoch precedes the other change of its transaction.
        following = records[records.index(epoch) + 1]
        assert following.zxid == epoch.zxid


def test_heartbeats_tell_the_newest_zxid_and_the_session(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch()
    stat = kafka.set("/controller_epoch", b"2")
    watching.settled()
    heartbeats = [record for record in watching.records() if record.kind is RecordKind.HEARTBEAT]
    assert json.loads(heartbeats[-1].data or "") == {"session": "connected", "watch_mode": "persistent"}
    assert heartbeats[-1].zxid >= stat.mzxid
    times = [record.observed_ms for record in watching.records()]
    assert times == sorted(times)


def test_no_heartbeat_comes_before_what_it_has_seen(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch(heartbeat_seconds=0.1)
    for number in range(300):
        kafka.set("/controller_epoch", str(number).encode())
    watching.settled()
    newest = 0
    for record in watching.records():
        if record.kind is RecordKind.HEARTBEAT:
            newest = record.zxid
        elif record.kind is RecordKind.NODE and not record.resync:
            assert record.zxid > newest or newest == 0


def test_a_new_start_has_a_higher_generation_and_a_new_snapshot(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    first = watch()
    first.stop()
    second = watch()
    eventually(lambda: second.count(RecordKind.SNAPSHOT_END) == 2)
    generations = {record.generation for record in second.records()}
    assert len(generations) == 2
    positions = [record.position for record in second.records()]
    assert positions == sorted(positions)


def test_two_clusters_of_one_process_share_a_journal(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka, "/a")
    make_cluster(kafka, "/b")
    first = watch(cluster="a", chroot="/a")
    watch(cluster="b", chroot="/b")
    eventually(lambda: first.count(RecordKind.SNAPSHOT_END) == 2)
    of_cluster = {name: [record for record in first.records() if record.cluster == name] for name in ("a", "b")}
    for records in of_cluster.values():
        assert [record.seq for record in records] == list(range(len(records)))
        assert [record.path for record in records if record.kind is RecordKind.NODE] == TREE


def test_the_watched_ensemble_sees_nothing_but_a_session_that_opens_and_closes(
    zookeeper: ZooKeeper, kafka: KazooClient, watch: Watch
) -> None:
    make_cluster(kafka)
    before = server_zxid(zookeeper)
    watching = watch()
    watching.settled()
    assert server_zxid(zookeeper) == before + 1  # createSession
    watching.stop()
    assert server_zxid(zookeeper) == before + 2  # closeSession. Each create, set, delete or failure would count too


def test_it_ends_soon_after_it_is_asked_to(in_memory: ZooKeeperInMemory, watch: Watch) -> None:
    assert watch().stop() < 2
    paused = watch(journal="paused")
    in_memory.pause()
    try:
        assert paused.stop() < 4
    finally:
        in_memory.resume()


def test_a_zookeeper_that_comes_late_is_waited_for(
    in_memory: ZooKeeperInMemory, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    in_memory.kill()
    late = watch(connect_timeout_seconds=60, wait=False)
    eventually(lambda: f"ZooKeeper at {in_memory.connect_string} is not reachable, trying again" in caplog.text)
    in_memory.start()
    eventually(lambda: late.count(RecordKind.SNAPSHOT_END) == 1)


def test_a_zookeeper_that_is_away_for_longer_than_the_timeout_is_not_given_up(
    in_memory: ZooKeeperInMemory, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    in_memory.kill()
    late = watch(connect_timeout_seconds=1, wait=False)
    given_up = f"test: ZooKeeper at {in_memory.connect_string} could not be reached within 1 s"
    eventually(lambda: caplog.text.count(given_up) >= 2)
    assert "Kontrast goes on trying" in caplog.text
    in_memory.start()
    eventually(lambda: late.count(RecordKind.SNAPSHOT_END) == 1)


def test_sessions_of_a_process_share_their_threads(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watch().settled()
    one = threading.active_count()
    watch(journal="second").settled()
    assert threading.active_count() - one == 2  # the forwarder's and kazoo's connection


def test_a_journal_that_another_process_writes_is_one_sentence(tmp_path: Path) -> None:
    with JournalWriter(tmp_path):
        config = IngestConfig(cluster="c", zookeeper="127.0.0.1:1", to=JournalAddress(tmp_path))
        with pytest.raises(IngestError, match="is being written by another process"):
            Forwarder(config).run(threading.Event())


@contextmanager
def no_room_beyond(size_bytes: int) -> Iterator[None]:
    """Keep every file of this process below a size, as if its disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_after_too_many_changes_only_what_no_read_can_show_is_sent_before_the_read(
    kafka: KazooClient, watch: Watch, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cluster(kafka)
    monkeypatch.setattr("ingest.observed.inbox.MAX_WAITING_EVENTS", 20)
    watching = watch(heartbeat_seconds=60)
    eventually(lambda: watching.count(RecordKind.HEARTBEAT, "connected") == 1)  # the last heartbeat of its start
    seq = watching.records()[-1].seq
    segment = next((tmp_path / "journal").glob("*.log"))
    with no_room_beyond(segment.stat().st_size):
        kafka.set("/brokers/topics/t", b"in need")
        eventually(lambda: "records cannot be delivered" in caplog.text)
        create_and_delete(kafka, "/admin/delete_topics/t")
        for number in range(30):
            kafka.set("/brokers/topics/t/partitions/0/state", str(number).encode())
        assert watching.forwarding.sink_is_up is False
    eventually(lambda: watching.forwarding.complete_reads[ReadReason.OVERFLOW] == 1)
    records = [record for record in watching.after(seq) if record.path]
    assert changes(records) == [
        ("node", "/brokers/topics/t"),
        ("created", "/admin/delete_topics/t"),
        ("deleted", "/admin/delete_topics/t"),
        ("node", "/brokers/topics/t/partitions/0/state"),
    ]
    assert [record.resync for record in records] == [False, False, False, True]
    assert records[-1].data == "29"
    assert watching.forwarding.sink_is_up is True
    assert watching.forwarding.events_dropped >= 18


def test_a_forwarder_knows_its_own_work(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch(read_budget_znodes_per_second=500)
    for number in range(3):
        kafka.set("/brokers/topics/t", str(number).encode())
        watching.settled()
    shown = watching.forwarding
    assert (shown.leads, shown.is_connected, shown.watch_mode) == (True, True, "persistent")
    assert shown.generation == watching.records()[0].generation
    assert shown.znodes == len(TREE)
    assert shown.znodes_read > len(TREE)
    assert shown.bytes_read > 0
    assert shown.budget_wait_seconds > 0
    assert (shown.events, sum(shown.lag.counts)) == (3, 3)
    changes = {record.mzxid for record in watching.records() if record.path == "/brokers/topics/t"}
    assert {example.zxid for example in shown.lag.examples if example is not None} <= changes
    assert any(shown.lag.examples)
    assert 1 <= shown.windows <= 3
    assert shown.complete_reads[ReadReason.START] == sum(shown.complete_reads.values()) == 1
    assert shown.heartbeat_ms > 0
    assert shown.records >= len(watching.records()) - 1


def test_a_reader_without_the_beginning_gets_a_new_generation_with_a_complete_read(
    kafka: KazooClient, watch: Watch, tmp_path: Path
) -> None:
    make_cluster(kafka)
    request_complete_read(tmp_path)  # in another directory, so it has no effect here
    watching = watch()
    kafka.delete("/config/topics/t")
    watching.settled()
    first = watching.records()[0].generation
    request_complete_read(tmp_path / "journal")
    eventually(lambda: watching.count(RecordKind.SNAPSHOT_END) == 2)
    kafka.set("/brokers/topics/t", b"later")
    watching.settled()
    assert watching.count(RecordKind.SNAPSHOT_END) == 2
    assert watching.forwarding.complete_reads[ReadReason.ASKED] == 1
    records = [record for record in watching.records() if record.generation > first]
    assert records[0].kind is RecordKind.SNAPSHOT_BEGIN
    assert [record.seq for record in records] == list(range(len(records)))
    assert replayed_tree(records) == server_tree(kafka)


@pytest.mark.parametrize("removed", ["directory", "segments"])
def test_a_journal_that_is_removed_is_begun_again_and_its_readers_go_on(
    kafka: KazooClient, watch: Watch, tmp_path: Path, caplog: pytest.LogCaptureFixture, removed: str
) -> None:
    make_cluster(kafka)
    watching = watch(heartbeat_seconds=60)
    eventually(lambda: watching.count(RecordKind.HEARTBEAT, "connected") == 1)  # the next would notice the removal
    journal = tmp_path / "journal"
    first, position = watching.records()[0].generation, end_offset(journal)
    if removed == "directory":
        shutil.rmtree(journal)
    else:
        for segment in journal.glob("*.log"):
            segment.unlink()
    eventually(lambda: end_offset(journal) > position)
    eventually(lambda: b'"snapshot-end"' in b"".join(read_journal(journal, position, 1 << 20).lines))
    kafka.set("/brokers/topics/t", b"later")
    eventually(lambda: b'"later"' in b"".join(read_journal(journal, position, 1 << 20).lines))
    records = [decode_record(line) for line in read_journal(journal, position, 1 << 20).lines]
    assert records[0].kind is RecordKind.SNAPSHOT_BEGIN
    assert records[0].generation > first
    assert replayed_tree(records) == server_tree(kafka)
    assert f"{journal} was removed or replaced while it was written. The journal begins again" in caplog.text


HIDDEN = [ACL(Permissions.ALL & ~Permissions.READ, ANYONE_ID_UNSAFE)]


def test_a_znode_that_an_acl_hides_is_counted_and_its_change_is_published_later(
    watch: Callable[..., Watching], kafka: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create("/config/topics/orders", b"{}", makepath=True)
    kafka.create("/brokers/topics/orders", b'{"partitions": {}}', makepath=True)
    watching = watch(sweep_seconds=1)
    kafka.set_acls("/config/topics/orders", HIDDEN)
    eventually(lambda: watching.forwarding.forbidden_znodes, lambda hidden: hidden == 1, within_seconds=30)
    assert "/config/topics/orders may not be read" in caplog.text
    kafka.set("/config/topics/orders", b'{"config": {}}')
    kafka.set_acls("/config/topics/orders", OPEN_ACL_UNSAFE)
    eventually(lambda: replayed_tree(watching.records()) == server_tree(kafka), within_seconds=30)
    assert watching.forwarding.forbidden_znodes == 0


def test_znodes_below_a_list_that_an_acl_hid_are_found(watch: Callable[..., Watching], kafka: KazooClient) -> None:
    kafka.create("/brokers/topics", b"", makepath=True, acl=HIDDEN)
    kafka.create("/brokers/topics/early", b'{"partitions": {}}')
    watching = watch(sweep_seconds=1)
    eventually(lambda: watching.forwarding.forbidden_znodes, lambda hidden: hidden == 1)
    kafka.set_acls("/brokers/topics", OPEN_ACL_UNSAFE)
    eventually(lambda: "/brokers/topics/early" in replayed_tree(watching.records()), within_seconds=30)
    assert watching.forwarding.differences > 0
