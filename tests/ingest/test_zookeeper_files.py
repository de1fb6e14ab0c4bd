"""ZooKeeper's own files, written by a real server, whole and damaged. The records must match a client's view."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.alert_row import AlertRow
from controller.contract.records import Record, RecordKind, decode_record, encode_record
from controller.restore.stored_context import new_context
from controller.step import step
from ingest.errors import IngestError
from ingest.files.data_directory import Until
from ingest.files.history import TRAILING_MS, FileHistory
from ingest.files.jute import DamagedFileError
from ingest.files.snapshot_file import read_snapshot
from ingest.files.transaction_log import LoggedTransaction, read_log
from ingest.observed.paths import PARENTS, is_recorded
from tests.clients import zookeeper_client
from tests.ingest.conftest import DEADLINE_SECONDS
from tests.waiting import eventually

Znode = tuple[bytes, int, int, int, int]
STATE = "/brokers/topics/t/partitions/0/state"
HEADER_BYTES = 16


@dataclass(frozen=True)
class Recording:
    """A server's directory after its end, with its clients' view."""

    directory: Path
    tree: dict[str, Znode]
    sessions: dict[str, int]

    @property
    def log(self) -> Path:
        (log,) = self.directory.glob("version-2/log.*")
        return log


def client(server: ZooKeeper, chroot: str = "") -> AbstractContextManager[KazooClient]:
    return zookeeper_client(server.connect_string + chroot, 30)


def read_tree(kafka: KazooClient) -> dict[str, Znode]:
    """Return every recorded znode that a client sees."""
    found: dict[str, Znode] = {}
    todo = ["/"]
    while todo:
        path = todo.pop()
        todo += [f"{path.rstrip('/')}/{child}" for child in kafka.get_children(path)]
        data, stat = kafka.get(path)
        if is_recorded(path):
            found[path] = (data, stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner)
    return found


def fold(records: Sequence[Record]) -> dict[str, Znode]:
    """Return the znodes that a reader of the records has at their end."""
    tree: dict[str, Znode] = {}
    for record in records:
        if record.kind is RecordKind.SNAPSHOT_BEGIN:
            tree = {}
        elif record.kind is RecordKind.NODE:
            tree[record.path] = (
                record.raw or b"", record.czxid, record.mzxid, record.version, record.ephemeral_owner,
            )  # fmt: skip
        elif record.kind is RecordKind.DELETED:
            tree.pop(record.path, None)
    return tree


def records_of(directory: Path, **options: object) -> list[Record]:
    return list(FileHistory([directory], "orders", **options).records())


def told(records: Sequence[Record]) -> list[Record]:
    """Return the records that have a znode's path."""
    return [record for record in records if record.path]


def spoil(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


def entry_offsets(log: Path) -> list[int]:
    """Return the offset behind the header and behind each entry."""
    offsets = [HEADER_BYTES]
    list(read_log(log, offsets.append))
    return offsets


def read_as_far_as_possible(path: Path) -> tuple[list[object], str | None]:
    """Return the content of a log or snapshot, and the sentence about the rest."""
    good: list[object] = []
    try:
        good.extend(read_log(path) if path.read_bytes().startswith(b"ZKLG") else read_snapshot(path))
    except (DamagedFileError, IngestError) as error:
        return good, str(error)
    return good, None


def write_log(path: Path, transactions: Sequence[tuple[int, int]]) -> None:
    """Write a log of sessions that begin, each with its zxid and time."""
    content = struct.pack(">4siq", b"ZKLG", 2, 0)
    for zxid, time_ms in transactions:
        entry = struct.pack(">qiqqii", 1, 0, zxid, time_ms, -10, 30_000)
        content += struct.pack(">qi", zlib.adler32(entry), len(entry)) + entry + b"B"
    path.write_bytes(content + bytes(64))


def play_kafka(server: ZooKeeper) -> tuple[dict[str, Znode], dict[str, int]]:
    """Write every kind of transaction."""
    with client(server) as kafka:
        for parent in PARENTS:
            kafka.ensure_path(parent)
        kafka.create("/controller_epoch", b"0")
        with client(server) as broker:
            session = broker.client_id[0]
            broker.create("/brokers/ids/1", b'{"host":"one"}', ephemeral=True)
            election = broker.transaction()
            election.create("/controller", b'{"brokerid":1}', ephemeral=True)
            election.set_data("/controller_epoch", b"1", version=0)
            assert not any(isinstance(result, Exception) for result in election.commit())
            kafka.create("/config/topics/t", b"{}", makepath=True)
            kafka.create("/brokers/topics/t", b'{"partitions":{"0":[1]}}')
            kafka.create(STATE, b'{"leader":1}', makepath=True)
            kafka.set(STATE, b'{"leader":-1}')
            kafka.create("/isr_change_notification/isr_change_", b"\xff\xfe", sequence=True)
            kafka.create("/consumers", b"not watched")
            for session_of in (kafka, broker):
                with pytest.raises(NoNodeError):
                    session_of.delete("/admin/reassign_partitions")
            expired = subprocess.run(
                [sys.executable, "-c", _DIE_WITH_AN_EPHEMERAL, server.connect_string],
                capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS,
            )  # fmt: skip
            eventually(lambda: kafka.exists("/brokers/ids/9") is None)
        twice = kafka.transaction()
        twice.set_data("/config/topics/t", b"1")
        twice.create("/admin/delete_topics/t", b"")
        twice.set_data("/config/topics/t", b"2")
        assert not any(isinstance(result, Exception) for result in twice.commit())
        again = kafka.transaction()
        again.delete(STATE)
        again.create(STATE, b'{"leader":2}')
        assert not any(isinstance(result, Exception) for result in again.commit())
        failed = kafka.transaction()
        failed.create("/admin/delete_topics/never", b"")
        failed.check("/controller_epoch", version=7)
        assert isinstance(failed.commit()[1], BadVersionError)
        kafka.delete("/admin/delete_topics/t")
        sessions = {"closed": session, "expired": int(expired.stdout), "kafka": kafka.client_id[0]}
        return read_tree(kafka), sessions


_DIE_WITH_AN_EPHEMERAL = """
import os, sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1], timeout=1)
client.start()
client.create("/brokers/ids/9", b"", ephemeral=True)
print(client.client_id[0], flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def recording(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    with ZooKeeper(tmp_path_factory.mktemp("recording"), properties={"preAllocSize": "64"}) as server:
        tree, sessions = play_kafka(server)
    return Recording(server.data_directory, tree, sessions)


@pytest.fixture
def copied(recording: Recording, tmp_path: Path) -> Recording:
    """Return a copy of the recording's files, to be damaged."""
    shutil.copytree(recording.directory, tmp_path / "copied")
    return Recording(tmp_path / "copied", recording.tree, recording.sessions)


@pytest.fixture(scope="module")
def long_recording(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Record a history over many logs, with snapshots that were written while znodes changed."""
    properties = {"snapCount": "40", "preAllocSize": "64"}
    with ZooKeeper(tmp_path_factory.mktemp("long"), properties=properties) as server, client(server) as kafka:
        for parent in PARENTS:
            kafka.ensure_path(parent)
        for number in range(20):
            kafka.create(f"/config/topics/t{number}", b"0")
        for round_number in range(30):
            changes = [kafka.set_async(f"/config/topics/t{n}", b"%d" % round_number) for n in range(0, 20, 2)]
            changes += [kafka.delete_async("/config/topics/t1"), kafka.create_async("/config/topics/t1", b"again")]
            for change in changes:
                change.get(timeout=DEADLINE_SECONDS)
        tree = read_tree(kafka)
    return Recording(server.data_directory, tree, {})


def test_the_records_end_with_the_tree_that_a_client_reads(recording: Recording) -> None:
    assert b"/admin/delete_topics/never" in recording.log.read_bytes()  # of a multi that failed
    assert fold(records_of(recording.directory)) == recording.tree


def test_the_records_are_an_empty_complete_read_and_then_every_change_in_order(recording: Recording) -> None:
    records = records_of(recording.directory)
    assert [record.kind for record in records[:2]] == [RecordKind.SNAPSHOT_BEGIN, RecordKind.SNAPSHOT_END]
    assert [(record.generation, record.seq) for record in records] == [(1, seq) for seq in range(len(records))]
    assert [record.observed_ms for record in records] == sorted(record.observed_ms for record in records)
    assert all(decode_record(encode_record(record)) == record for record in records)
    assert [(record.kind.value, record.path) for record in told(records)] == [
        ("node", "/controller_epoch"),
        ("node", "/brokers/ids/1"),
        ("node", "/controller"),
        ("node", "/controller_epoch"),
        ("node", "/config/topics/t"),
        ("node", "/brokers/topics/t"),
        ("node", STATE),
        ("node", STATE),
        ("node", "/isr_change_notification/isr_change_0000000000"),
        ("node", "/brokers/ids/9"),
        ("deleted", "/brokers/ids/9"),
        ("deleted", "/controller"),
        ("deleted", "/brokers/ids/1"),
        ("node", "/config/topics/t"),
        ("node", "/admin/delete_topics/t"),
        ("node", STATE),
        ("deleted", "/admin/delete_topics/t"),
    ]


def test_what_only_the_log_knows_travels_too(recording: Recording) -> None:
    records = told(records_of(recording.directory))
    ends = {record.path: record for record in records if record.kind is RecordKind.DELETED}
    closed, owner, expired = ends["/controller"], ends["/brokers/ids/1"], ends["/brokers/ids/9"]
    assert closed.zxid == owner.zxid
    assert (closed.author, owner.author) == (recording.sessions["closed"],) * 2
    assert closed.cxid == owner.cxid > 0
    assert (expired.author, expired.cxid) == (recording.sessions["expired"], 0)
    assert records[0].author == recording.sessions["kafka"]


def test_what_the_controller_asks_for_in_vain_shows_that_it_lives(recording: Recording) -> None:
    records = records_of(recording.directory)
    (in_vain,) = [record for record in records if record.kind is RecordKind.HEARTBEAT and record.author]
    assert in_vain.author == recording.sessions["closed"]
    assert in_vain.cxid > 0
    before = [record.zxid for record in records[: in_vain.seq] if record.path]
    assert in_vain.zxid > before[-1]


def test_a_chroot_is_stripped_and_what_is_beside_it_left_out(zookeeper: ZooKeeper) -> None:
    with client(zookeeper) as outside:
        outside.create("/controller_epoch", b"7")
        outside.create("/kafka-two/controller_epoch", b"8", makepath=True)
        outside.ensure_path("/kafka")
    with client(zookeeper, "/kafka") as kafka:
        kafka.create("/controller_epoch", b"9")
        tree = read_tree(kafka)
    history = FileHistory([zookeeper.data_directory], "orders", chroot="/kafka/")
    assert fold(list(history.records())) == tree
    assert tree["/controller_epoch"][0] == b"9"
    assert history.below.others == {"/", "/kafka-two"}


def zeros_at(content: bytes, offset: int) -> int:
    """Return the number of zero bytes at an entry's start, which look like ZooKeeper's preallocated space.

    The checksum's upper half gives four of them, and sometimes its lower half begins with zeros, too.
    """
    entry = content[offset:]
    return len(entry) - len(entry.lstrip(b"\0"))


def test_a_log_cut_anywhere_in_its_last_entries_ends_where_the_good_part_ends(copied: Recording) -> None:
    whole = told(records_of(copied.directory))
    content, offsets = copied.log.read_bytes(), entry_offsets(copied.log)
    for length in range(offsets[-9], offsets[-1] + 3):
        copied.log.write_bytes(content[:length])
        history = FileHistory([copied.directory], "orders")
        records = told(list(history.records()))
        assert records == whole[: len(records)]
        last_good = max(offset for offset in offsets if offset <= length)
        assert bool(history.files.notes) == (last_good + zeros_at(content, last_good) < length < offsets[-1])
        assert all(f"from byte {last_good} on" in note for note in history.files.notes)


def test_a_log_that_was_just_begun_holds_nothing(copied: Recording) -> None:
    for length in range(HEADER_BYTES, -1, -1):
        copied.log.write_bytes(copied.log.read_bytes()[:length])
        assert told(records_of(copied.directory)) == []


def test_a_torn_entry_in_space_allocated_ahead_is_the_end(copied: Recording) -> None:
    content, offsets = copied.log.read_bytes(), entry_offsets(copied.log)
    for length in range(offsets[-3] + zeros_at(content, offsets[-3]) + 1, offsets[-2]):
        copied.log.write_bytes(content[:length] + bytes(len(content) - length))
        with pytest.raises(DamagedFileError) as caught:
            list(read_log(copied.log))
        assert (caught.value.offset, caught.value.torn) == (offsets[-3], True)


def test_a_flipped_bit_in_the_newest_log_ends_the_history_there(copied: Recording) -> None:
    whole, content, offsets = told(records_of(copied.directory)), copied.log.read_bytes(), entry_offsets(copied.log)
    first, behind = offsets[-8], offsets[-7]
    good = list(read_log(copied.log))[:-7]
    for offset in range(first, behind):
        copied.log.write_bytes(content)
        spoil(copied.log, offset)
        history = FileHistory([copied.directory], "orders")
        records = told(list(history.records()))
        assert records == [record for record in whole if record.zxid <= good[-1].zxid]
        (note,) = history.files.notes
        assert f"{copied.log} cannot be read from byte {first} on" in note


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_damaged_file_at_worst(
    tmp_path_factory: pytest.TempPathFactory, rest: bytes, log: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes((b"ZKLG" if log else b"ZKSN") + bytes(3) + b"\2" + bytes(8) + rest)
    good, damage = read_as_far_as_possible(path)
    assert damage is None or damage.startswith(str(path))
    assert good == [] or not log


@given(st.binary(max_size=120))
def test_an_entry_with_a_good_checksum_but_no_transaction_in_it_is_damage(
    tmp_path_factory: pytest.TempPathFactory, entry: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "good-checksum"
    framed = struct.pack(">qi", zlib.adler32(entry), len(entry)) + entry + b"B"
    path.write_bytes(struct.pack(">4siq", b"ZKLG", 2, 0) + framed)
    good, damage = read_as_far_as_possible(path)
    assert (len(good) == 1) == (damage is None)
    assert damage is None or damage.startswith(str(path))


def test_every_snapshot_leads_to_the_same_end(long_recording: Recording) -> None:
    snapshots = sorted(int(path.name[9:], 16) for path in long_recording.directory.glob("version-2/snapshot.*"))
    assert len(snapshots) > 5
    whole = told(records_of(long_recording.directory))
    assert whole[0].author != 0  # from the very beginning, without znodes from a snapshot
    for snapshot in snapshots:
        history = FileHistory([long_recording.directory], "orders", start_zxid=snapshot + 1)
        records = list(history.records())
        assert (records[0].kind, records[0].zxid) == (RecordKind.SNAPSHOT_BEGIN, snapshot)
        assert fold(records) == long_recording.tree
        assert history.files.notes == []
        end = next(index for index, record in enumerate(records) if record.kind is RecordKind.SNAPSHOT_END)
        after = [(record.zxid, record.path) for record in told(records[end:])]
        assert set(after) <= {(record.zxid, record.path) for record in whole if record.zxid > snapshot}


def test_a_snapshot_with_what_came_while_it_was_written_tells_nothing_twice(
    long_recording: Recording, tmp_path: Path
) -> None:
    shutil.copytree(long_recording.directory, tmp_path / "zk")
    folder = tmp_path / "zk/version-2"
    zxids = sorted(int(path.name[9:], 16) for path in folder.glob("snapshot.*"))
    newest, begun = zxids[-1], zxids[-2] + 1
    (folder / f"snapshot.{newest:x}").rename(folder / f"snapshot.{begun:x}")
    records = records_of(tmp_path / "zk", start_zxid=begun + 1)
    assert records[0].zxid == begun
    assert fold(records) == long_recording.tree
    read = told(records[: [record.kind for record in records].index(RecordKind.SNAPSHOT_END)])
    assert any(record.mzxid > begun for record in read)  # so the snapshot was written while znodes changed
    assert all(record.czxid <= begun for record in read)
    newest_known: dict[str, int] = {}
    for record in told(records):
        assert record.zxid > newest_known.get(record.path, -1)
        newest_known[record.path] = record.zxid


def test_a_complete_read_tells_causes_before_effects(copied: Recording) -> None:
    with ZooKeeper(copied.directory.parent / "server") as server:
        play_kafka(server)
        with zookeeper_client(server.connect_string) as broker:
            broker.create("/brokers/ids/2", b"", ephemeral=True)
            broker.create("/controller", b"", ephemeral=True)
            server.stop()
            server.start()  # it writes a snapshot before it serves
    for log in server.data_directory.glob("version-2/log.*"):
        log.unlink()
    records = records_of(server.data_directory)
    assert {record.kind for record in records[1:-1]} >= {RecordKind.NODE}
    paths = [record.path for record in told(records)]
    assert set(paths[:2]) == {"/controller", "/controller_epoch"}
    assert paths[2] == "/brokers/ids/2"
    assert paths[-1] == STATE
    assert len(paths) > 5


def test_the_oldest_snapshot_begins_the_history_when_older_files_were_purged(
    long_recording: Recording, tmp_path: Path
) -> None:
    shutil.copytree(long_recording.directory, tmp_path / "zk")
    logs = sorted((tmp_path / "zk/version-2").glob("log.*"), key=lambda path: int(path.name[4:], 16))
    for log in logs[:3]:
        log.unlink()
    first = int(logs[3].name[4:], 16)
    snapshots = sorted(int(path.name[9:], 16) for path in (tmp_path / "zk/version-2").glob("snapshot.*"))
    history = FileHistory([tmp_path / "zk"], "orders")
    records = list(history.records())
    assert records[0].zxid == min(zxid for zxid in snapshots if zxid >= first - 1)
    assert history.files.notes == []
    assert fold(records) == long_recording.tree


def _without(recording: Recording, directory: Path, *, log: int, snapshots_after: bool) -> Path:
    """Make a copy without one log, and perhaps without snapshots."""
    shutil.copytree(recording.directory, directory)
    logs = sorted(directory.glob("version-2/log.*"), key=lambda path: int(path.name[4:], 16))
    logs[log].unlink()
    for snapshot in directory.glob("version-2/snapshot.*"):
        if not snapshots_after and snapshot.name != "snapshot.0":
            snapshot.unlink()
    return directory


def test_a_missing_log_is_bridged_by_the_next_snapshot_as_a_new_generation(long_recording, tmp_path: Path) -> None:
    history = FileHistory([_without(long_recording, tmp_path / "zk", log=3, snapshots_after=True)], "orders")
    records = list(history.records())
    assert {record.generation for record in records} == {1, 2}
    assert fold(records) == long_recording.tree
    assert len(history.files.notes) == 1


def test_a_missing_log_without_a_snapshot_is_named_with_the_way_out(long_recording, tmp_path: Path) -> None:
    directory = _without(long_recording, tmp_path / "zk", log=3, snapshots_after=False)
    with pytest.raises(IngestError, match="lacks the transactions between .* Put the missing log file back"):
        records_of(directory)


def test_damage_in_an_older_log_is_named_with_its_file_and_offset(long_recording, tmp_path: Path) -> None:
    shutil.copytree(long_recording.directory, tmp_path / "zk")
    log = sorted((tmp_path / "zk/version-2").glob("log.*"), key=lambda path: int(path.name[4:], 16))[2]
    spoil(log, entry_offsets(log)[3] + 20)
    with pytest.raises(IngestError, match=f"{log} cannot be read from byte {entry_offsets_of_good(log)} on"):
        records_of(tmp_path / "zk")


def entry_offsets_of_good(log: Path) -> int:
    offsets = [HEADER_BYTES]
    with pytest.raises(DamagedFileError):
        list(read_log(log, offsets.append))
    return offsets[-1]


def test_an_older_log_that_a_crash_tore_is_no_gap(tmp_path: Path) -> None:
    write_log(tmp_path / "log.1", [(1, 1000), (2, 1000)])
    write_log(tmp_path / "log.3", [(3, 2000)])
    with (tmp_path / "log.1").open("r+b") as log:
        log.seek(entry_offsets(tmp_path / "log.1")[-1])
        log.write(b"\0\0\0\0\x12\x34")
    history = FileHistory([tmp_path], "orders")
    assert list(history.records())[-1].zxid == 3
    assert len(history.files.notes) == 1


def test_damage_right_before_a_new_epoch_is_a_gap_unless_a_crash_explains_it(tmp_path: Path) -> None:
    epoch = 1 << 32
    write_log(tmp_path / "log.1", [(1, 1000), (2, 1000), (3, 1000)])
    write_log(tmp_path / f"log.{epoch + 1:x}", [(epoch + 1, 2000)])
    whole, offsets = (tmp_path / "log.1").read_bytes(), entry_offsets(tmp_path / "log.1")
    (tmp_path / "log.1").write_bytes(whole[: offsets[2] + 9])
    assert records_of(tmp_path)[-1].zxid == epoch + 1
    (tmp_path / "log.1").write_bytes(whole)
    spoil(tmp_path / "log.1", offsets[1] + 20)
    with pytest.raises(IngestError, match=f"from byte {offsets[1]} on.*Restore the file"):
        records_of(tmp_path)


def test_a_new_epoch_follows_the_one_before(tmp_path: Path) -> None:
    epoch = 1 << 32
    write_log(tmp_path / f"log.{epoch + 1:x}", [(epoch + 1, 1000), (epoch + 2, 1000)])
    write_log(tmp_path / f"log.{3 * epoch + 1:x}", [(3 * epoch + 1, 2000)])
    records = records_of(tmp_path)
    assert (records[0].zxid, records[-1].zxid) == (epoch, 3 * epoch + 1)


@pytest.mark.parametrize(("known", "generations"), [(True, {1}), (False, {1, 2})])
def test_a_snapshot_between_two_epochs_matters_only_if_it_has_something_new(
    long_recording: Recording, tmp_path: Path, known: bool, generations: set[int]
) -> None:
    epoch = 1 << 32
    write_log(tmp_path / "log.1", [(1, 1000)])
    write_log(tmp_path / f"log.{epoch + 1:x}", [(epoch + 1, 2000)])
    snapshots = sorted(long_recording.directory.glob("version-2/snapshot.*"), key=lambda path: int(path.name[9:], 16))
    shutil.copy(snapshots[0 if known else -1], tmp_path / f"snapshot.{epoch:x}")
    history = FileHistory([tmp_path], "orders")
    records = list(history.records())
    assert {record.generation for record in records} == generations
    assert len(history.files.notes) == len(generations) - 1
    assert records[-1].zxid == epoch + 1


@pytest.mark.parametrize("time_ms", [-(2**63), -1, 2**63 - 1])
def test_a_clock_that_was_set_to_anything_gives_times_that_records_may_have(tmp_path: Path, time_ms: int) -> None:
    write_log(tmp_path / "log.1", [(1, 1000), (2, time_ms)])
    history = FileHistory([tmp_path], "orders", until=Until(zxid=2))
    for record in history.records():
        assert decode_record(encode_record(record)) == record


def test_logs_that_do_not_begin_at_the_beginning_need_a_snapshot(tmp_path: Path) -> None:
    write_log(tmp_path / "log.9", [(9, 1000)])
    with pytest.raises(IngestError, match="no good snapshot"):
        records_of(tmp_path)


def test_logs_and_snapshots_may_lie_in_two_directories(long_recording, tmp_path: Path) -> None:
    for kind in ("log", "snapshot"):
        (tmp_path / kind / "version-2").mkdir(parents=True)
        for path in long_recording.directory.glob(f"version-2/{kind}.*"):
            shutil.copy(path, tmp_path / kind / "version-2")
    for log in ("log.1",):
        (tmp_path / "log/version-2" / log).unlink()
    history = FileHistory([tmp_path / "snapshot", tmp_path / "log"], "orders")
    assert fold(list(history.records())) == long_recording.tree
    with pytest.raises(IngestError, match="dataLogDir"):
        records_of(tmp_path / "log")


def test_a_damaged_snapshot_is_named_and_an_older_one_taken(long_recording, tmp_path: Path) -> None:
    shutil.copytree(long_recording.directory, tmp_path / "zk")
    snapshots = sorted((tmp_path / "zk/version-2").glob("snapshot.*"), key=lambda path: int(path.name[9:], 16))
    newest, older = snapshots[-1], snapshots[-2]
    content = newest.read_bytes()
    for spoilt in (content[: len(content) // 2], content[:100] + b"\x55" + content[101:], b"", content[:9]):
        newest.write_bytes(spoilt)
        history = FileHistory([tmp_path / "zk"], "orders", start_zxid=1 << 40)
        records = list(history.records())
        assert records[0].zxid == int(older.name[9:], 16)
        assert fold(records) == long_recording.tree
        assert str(newest) in history.files.notes[0]


@pytest.mark.parametrize("damage", ["cut", "spoilt"])
def test_a_damaged_gzipped_snapshot_is_named(long_recording, tmp_path: Path, damage: str) -> None:
    snapshot = max(long_recording.directory.glob("version-2/snapshot.*"), key=lambda path: int(path.name[9:], 16))
    content = bytearray(gzip.compress(snapshot.read_bytes()))
    content[len(content) // 2] ^= damage == "spoilt"
    path = tmp_path / "snapshot.5.gz"
    path.write_bytes(content if damage == "spoilt" else content[: len(content) // 2])
    with pytest.raises(DamagedFileError):
        list(read_snapshot(path))


def _restarted(directory: Path, method: str) -> tuple[Path, dict[str, Znode]]:
    """Return the only file of a restarted server, its snapshot, compressed by the method."""
    with ZooKeeper(directory, properties={"snapshot.compression.method": method}) as server:
        with client(server) as kafka:
            kafka.create("/controller_epoch", b"3")
        server.stop()
        server.start()
        with client(server) as kafka:
            tree = read_tree(kafka)
    for log in server.data_directory.glob("version-2/log.*"):
        log.unlink()
    return server.data_directory, tree


def test_a_snapshot_that_zookeeper_gzipped_is_read(java: Path, tmp_path: Path) -> None:
    directory, tree = _restarted(tmp_path / "zk", "gz")
    assert list(directory.glob("version-2/snapshot.*.gz"))
    assert fold(records_of(directory)) == tree != {}


def test_snappy_is_refused_in_a_sentence(java: Path, tmp_path: Path) -> None:
    directory, _ = _restarted(tmp_path / "zk", "snappy")
    with pytest.raises(IngestError, match=r"snapshot\.\w+\.snappy is compressed with snappy"):
        records_of(directory)


def test_a_directory_without_logs_or_snapshots_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="has no log"):
        records_of(tmp_path)
    with pytest.raises(IngestError, match="is no directory"):
        records_of(tmp_path / "absent")


def test_the_history_ends_at_a_zxid_or_a_time_that_included(recording: Recording) -> None:
    transactions = [transaction for transaction in read_log(recording.log) if transaction.changes]
    middle = transactions[len(transactions) // 2]
    by_zxid = records_of(recording.directory, until=Until(zxid=middle.zxid))
    assert max(record.zxid for record in by_zxid) == middle.zxid
    by_time = records_of(recording.directory, until=Until(time_ms=middle.time_ms))
    assert max(record.zxid for record in by_time) >= middle.zxid
    assert max(record.observed_ms for record in by_time) <= middle.time_ms
    whole = records_of(recording.directory)
    assert by_zxid == whole[: len(by_zxid)]
    assert by_time == whole[: len(by_time)]
    with pytest.raises(IngestError, match="begins after the wanted end"):
        records_of(recording.directory, until=Until(time_ms=1))


def heartbeat_times(records: Sequence[Record]) -> list[int]:
    return [record.observed_ms for record in records if record.kind is RecordKind.HEARTBEAT]


def test_there_is_a_heartbeat_each_second_and_a_while_after_the_end(tmp_path: Path) -> None:
    write_log(tmp_path / "log.1", [(1, 10_000), (2, 12_500), (3, 12_600)])
    records = records_of(tmp_path)
    assert heartbeat_times(records) == list(range(11_000, 12_600 + TRAILING_MS + 1, 1_000))
    assert records[-1].data == '{"session":"replay","watch_mode":"transaction-log"}'
    assert [record.zxid for record in records if record.kind is RecordKind.HEARTBEAT][:3] == [1, 1, 3]


def test_a_long_silence_has_fewer_heartbeats_the_longer_it_lasts(tmp_path: Path) -> None:
    year_ms = 365 * 86_400_000
    write_log(tmp_path / "log.1", [(1, 0), (2, year_ms)])
    times = heartbeat_times(records_of(tmp_path))
    assert times[:300] == list(range(1_000, 301_000, 1_000))
    assert len(times) < 5_000
    assert all(later - now <= max(1_000, now // 300) for now, later in zip(times, times[1:], strict=False))
    assert times[-1] == pytest.approx(year_ms + TRAILING_MS, abs=year_ms // 300)


def test_silence_is_noted_only_up_to_what_the_end_leaves_out(tmp_path: Path) -> None:
    write_log(tmp_path / "log.1", [(1, 10_000), (2, 13_500), (3, 90_000)])
    assert heartbeat_times(records_of(tmp_path, until=Until(zxid=1)))[-1] == 13_000
    assert heartbeat_times(records_of(tmp_path, until=Until(zxid=2)))[-1] == 23_000
    assert heartbeat_times(records_of(tmp_path, until=Until(time_ms=60_000)))[-1] == 60_000


def test_a_leaders_clock_that_was_set_back_goes_on_from_there(tmp_path: Path) -> None:
    write_log(tmp_path / "log.1", [(1, 10_000), (2, 3_605_000), (3, 5_000), (4, 7_500), (5, 7_400)])
    times = heartbeat_times(records_of(tmp_path))
    turned = times.index(6_000)
    assert times[:turned] == sorted(times[:turned])
    assert times[turned - 1] > 3_500_000
    assert times[turned:] == list(range(6_000, 7_500 + TRAILING_MS + 1, 1_000))


def test_of_a_leaders_clock_that_was_set_back_a_replay_says_so_and_deadlines_go_on(tmp_path: Path) -> None:
    write_log(tmp_path / "log.1", [(1, 10_000_000), (2, 10_050_000), (3, 1_000_000), (4, 1_060_000)])
    context = new_context("orders", chunk_count=8)
    rows = []
    for record in records_of(tmp_path):
        outcome = step(context, record)
        context = outcome.context
        rows += [row for row in outcome.effects if isinstance(row, AlertRow)]
    opened = {row.alert: row for row in rows if row.state == "open"}
    assert opened["ClockStepped"].cause.startswith("the clock of ZooKeeper's leader was set back by 2 h 30 min")
    assert context.header.time_ms == 10_050_000 + 59_000 + TRAILING_MS


def test_the_types_that_kafka_does_not_write_are_read_too(tmp_path: Path) -> None:
    def text(value: bytes) -> bytes:
        return struct.pack(">i", len(value)) + value

    acl = struct.pack(">ii", 1, 31) + text(b"world") + text(b"anyone")
    bodies = [
        (19, text(b"/config/topics/c") + text(b"x") + acl + struct.pack(">i", 1)),
        (21, text(b"/config/topics/t") + text(b"y") + acl + struct.pack(">iq", 2, 60_000)),
        (15, text(b"/config/topics/e") + struct.pack(">i", -1) + acl + b"\1" + struct.pack(">i", 3)),
        (7, text(b"/config/topics/c") + acl + struct.pack(">i", 1)),
        (20, text(b"/config/topics/c")),
        (-11, b""),
    ]
    content = struct.pack(">4siq", b"ZKLG", 2, 0)
    for zxid, (kind, body) in enumerate(bodies, start=1):
        entry = struct.pack(">qiqqi", 5, 1, zxid, 1_000, kind) + body + struct.pack(">iq", 2, 99)
        content += struct.pack(">qi", zlib.adler32(entry), len(entry)) + entry + b"B"
    (tmp_path / "log.1").write_bytes(content)
    assert all(isinstance(entry, LoggedTransaction) for entry in read_log(tmp_path / "log.1"))
    found = [
        (record.kind.value, record.path, record.raw, record.ephemeral_owner) for record in told(records_of(tmp_path))
    ]
    assert found == [
        ("node", "/config/topics/c", b"x", -(1 << 63)),
        ("node", "/config/topics/t", b"y", -(1 << 56) + 60_000),
        ("node", "/config/topics/e", None, 5),
        ("deleted", "/config/topics/c", None, 0),
        ("deleted", "/config/topics/e", None, 0),
    ]


def test_a_newer_zookeepers_transaction_is_refused_in_a_sentence(tmp_path: Path) -> None:
    entry = struct.pack(">qiqqi", 5, 1, 1, 1_000, 99)
    framed = struct.pack(">qi", zlib.adler32(entry), len(entry)) + entry + b"B"
    (tmp_path / "log.1").write_bytes(struct.pack(">4siq", b"ZKLG", 2, 0) + framed)
    with pytest.raises(IngestError, match="type 99 at byte 16"):
        records_of(tmp_path)
