"""The past of a recorded cluster, published like the output of `kontrast watch`, with its pace and refusals."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from kafka.admin import KafkaAdminClient

from controller.contract.gauges_row import GaugesRow
from controller.contract.records import Record, RecordKind, decode_record, encode_record
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.errors import IngestError
from ingest.files.history import History
from ingest.replay.pace import Pace
from ingest.replay.publication import Publication
from ingest.sinks.kafka_sink import KafkaSink, identity_of
from ingest.sinks.sink import SinkUnavailableError
from tests.ingest.test_kafka_sink import consume
from tests.recorded_moment import history
from tests.waiting import eventually
from transport.address import Address, JournalAddress, KafkaAddress
from transport.journal import JournalFullError, JournalWriter, read_journal

CLUSTER = "past"
AT_ONCE = Pace(math.inf)


@pytest.fixture(scope="module")
def records(recorded_files: Path) -> list[Record]:
    return list(history(recorded_files, CLUSTER).records())


def publish(records: Iterator[Record], to: Address, pace: Pace = AT_ONCE, stop: threading.Event | None = None) -> bool:
    return Publication(to, CLUSTER, pace, stop or threading.Event()).run(iter(records), lambda: None)


def journal_of(directory: Path) -> list[Record]:
    return [decode_record(line) for line in read_journal(directory, 0, 1 << 40).lines]


def rows_of(records: list[Record]) -> tuple[Row, ...]:
    return steps(new_context(CLUSTER, chunk_count=8), records).effects


def test_a_journal_gets_the_records_of_the_files(recorded_files, records, tmp_path):
    assert publish(history(recorded_files, CLUSTER).records(), JournalAddress(tmp_path / "past"))
    assert journal_of(tmp_path / "past") == records


def test_a_topic_gets_the_records_of_the_files_under_the_clusters_name(records, shared_broker, own_name):
    to = KafkaAddress(shared_broker, own_name)
    assert publish(records, to)
    (messages,) = consume(to).values()
    assert messages == [(CLUSTER.encode(), record) for record in records]


def test_every_count_of_it_says_that_it_is_of_the_past(records):
    gauges = [row for row in rows_of(records) if isinstance(row, GaugesRow)]
    assert "heartbeat" not in gauges[0].records  # also the one of the complete read, before any heartbeat
    assert all(row.is_replayed for row in gauges)


def test_no_pause_is_longer_than_a_thread_can_wait():
    pace = Pace(1e-300)
    pace.wait_seconds(heartbeat(0, 0))
    assert pace.wait_seconds(heartbeat(1, 1_000)) == threading.TIMEOUT_MAX


class VirtualTime(threading.Event):
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now_seconds = 100.0

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout
        self.now_seconds += timeout
        return False


def heartbeat(seq: int, at_ms: int, zxid: int = 5) -> Record:
    kind = RecordKind.NODE if seq == 0 else RecordKind.HEARTBEAT
    path = "/controller_epoch" if seq == 0 else ""
    return Record(cluster=CLUSTER, generation=1, seq=seq, kind=kind, observed_ms=at_ms, zxid=zxid, path=path)


def seconds_of(records: list[Record], pace_at: float, from_zxid: int = 0) -> list[float]:
    """Return the due time of each record, after the first."""
    time = VirtualTime()
    pace = Pace(pace_at, from_zxid=from_zxid, now_seconds=lambda: time.now_seconds)
    due = []
    for record in records:
        if wait_seconds := pace.wait_seconds(record):
            time.wait(wait_seconds)
        due.append(pytest.approx(time.now_seconds - 100))
    return due


def test_pauses_last_as_long_as_they_did_by_the_speed():
    moments = [heartbeat(0, 7_000), heartbeat(1, 7_500), heartbeat(2, 7_500), heartbeat(3, 67_000)]
    assert seconds_of(moments, 1) == [0, 0.5, 0.5, 60]
    assert seconds_of(moments, 10) == [0, 0.05, 0.05, 6]
    assert seconds_of(moments, 0.5) == [0, 1, 1, 120]
    assert seconds_of(moments, math.inf) == [0, 0, 0, 0]


def test_what_leads_up_to_the_beginning_takes_no_time():
    moments = [heartbeat(0, 0, zxid=1), heartbeat(1, 50_000, zxid=2), heartbeat(2, 60_000), heartbeat(3, 61_000)]
    assert seconds_of(moments, 1, from_zxid=5) == [0, 0, 0, 1]


def test_a_clock_that_was_set_back_goes_on_from_there():
    moments = [heartbeat(0, 90_000), heartbeat(1, 91_000), heartbeat(2, 1_000), heartbeat(3, 2_000)]
    assert seconds_of(moments, 1) == [0, 1, 1, 2]


def test_a_record_that_came_late_does_not_delay_the_next():
    time = VirtualTime()
    pace = Pace(1, now_seconds=lambda: time.now_seconds)
    assert pace.wait_seconds(heartbeat(0, 0)) == 0
    time.now_seconds += 5  # the time the stream took
    assert pace.wait_seconds(heartbeat(1, 2_000)) == 0
    assert pace.wait_seconds(heartbeat(2, 6_000)) == pytest.approx(1)


def test_records_are_in_the_stream_when_they_are_due(tmp_path):
    moments = [heartbeat(0, 0), heartbeat(1, 0), heartbeat(2, 1_000), heartbeat(3, 4_000)]
    seen: list[tuple[float, int]] = []

    class Watched(VirtualTime):
        def wait(self, timeout: float | None = None) -> bool:
            seen.append((self.now_seconds - 100, len(journal_of(tmp_path / "past"))))
            return super().wait(timeout)

    time = Watched()
    publish(moments, JournalAddress(tmp_path / "past"), Pace(2, now_seconds=lambda: time.now_seconds), time)
    assert seen == [(0, 2), (pytest.approx(0.5), 3)]
    assert journal_of(tmp_path / "past") == moments


def test_what_was_published_stays_when_it_is_stopped(tmp_path):
    stop = threading.Event()
    moments = [heartbeat(0, 0), heartbeat(1, 0), heartbeat(2, 3_600_000)]
    journal = tmp_path / "past"
    thread = threading.Thread(target=publish, args=(moments, JournalAddress(journal), Pace(1), stop))
    thread.start()
    eventually(lambda: journal.exists() and journal_of(journal))
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert journal_of(journal) == moments[:2]
    JournalWriter(journal).close()  # free for another writer


def test_a_stream_with_records_is_refused_and_left_as_it_is(records, tmp_path):
    with JournalWriter(tmp_path / "present") as writer:
        writer.append([encode_record(heartbeat(0, 1))])
    with pytest.raises(IngestError, match=r"present has records already. Name a new or empty stream"):
        publish(records, JournalAddress(tmp_path / "present"))
    assert journal_of(tmp_path / "present") == [heartbeat(0, 1)]


def test_a_journal_that_another_process_writes_is_refused_while_it_is_empty(records, tmp_path):
    with (
        JournalWriter(tmp_path / "present"),
        pytest.raises(IngestError, match="present is being written by another process. End that one first"),
    ):
        publish(records, JournalAddress(tmp_path / "present"))


def test_a_topic_with_records_is_refused_whatever_cluster_they_are_of(records, shared_broker, own_name):
    to = KafkaAddress(shared_broker, own_name)
    with closing(KafkaSink(to, "blue", threading.Event(), lambda _: None)) as sink:
        assert not sink.has_records()
        sink.append([msgspec.structs.replace(heartbeat(0, 1), cluster="blue")])
    with pytest.raises(IngestError, match=f"{own_name} has records already"):
        publish(records, to)
    (messages,) = consume(to).values()
    assert len(messages) == 1


def test_the_very_cluster_whose_past_it_is_gets_nothing(records, shared_broker, own_name):
    with closing(KafkaAdminClient(bootstrap_servers=shared_broker)) as admin:
        cluster_id = identity_of(admin).cluster_id
        own = [
            msgspec.structs.replace(record, data=f'{{"version":"1","id":"{cluster_id}"}}')
            if record.path == "/cluster/id"
            else record
            for record in records
        ]
        with pytest.raises(IngestError, match=f"is in the recorded cluster itself .cluster id {cluster_id}"):
            publish(own, KafkaAddress(shared_broker, own_name))
        assert own_name not in admin.list_topics()


def test_a_cluster_that_is_recognised_later_gets_no_more(shared_broker, own_name):
    with closing(KafkaAdminClient(bootstrap_servers=shared_broker)) as admin:
        ((broker, address),) = identity_of(admin).addresses.items()
    registered = f'{{"version":2,"jmx_port":-1,"host":"x","port":1,"endpoints":["PLAINTEXT://{address}"]}}'
    before = [heartbeat(0, 0), heartbeat(1, 0)]
    its_own = msgspec.structs.replace(heartbeat(0, 0), seq=2, path=f"/brokers/ids/{broker}", data=registered)
    to = KafkaAddress(shared_broker, own_name)
    with pytest.raises(IngestError, match=f"recorded cluster itself .broker at {address}"):
        publish([*before, its_own], to)


def test_files_without_a_cluster_make_no_stream(recorded_files, tmp_path):
    nothing = History((recorded_files,), CLUSTER, chroot="/elsewhere")
    assert not publish(nothing.records(), JournalAddress(tmp_path / "past"))
    assert not (tmp_path / "past").exists()
    assert nothing.other_chroots == {"/"}


def test_a_stream_that_takes_none_for_a_while_gets_all_of_them_later(records, tmp_path, monkeypatch, caplog):
    append, failures = JournalWriter.append, iter([True, True])

    def full_at_first(writer: JournalWriter, lines: list[bytes]) -> int:
        if next(failures, False):
            raise JournalFullError("no room is left")
        return append(writer, lines)

    monkeypatch.setattr(JournalWriter, "append", full_at_first)
    monkeypatch.setattr("ingest.replay.publication._RETRY_SECONDS", 0.01)
    assert publish(records, JournalAddress(tmp_path / "past"))
    assert journal_of(tmp_path / "past") == records
    assert [line.getMessage() for line in caplog.records] == [
        f"journal:{tmp_path / 'past'} takes no records, trying again until it does: no room is left"
    ]


def test_a_stream_that_is_not_there_is_one_sentence(records, monkeypatch):
    def unreachable(*_: object) -> None:
        raise SinkUnavailableError("kafka://nowhere:1/t: no broker answers")

    monkeypatch.setattr("ingest.sinks.kafka_sink.KafkaSink.__init__", unreachable)
    with pytest.raises(IngestError, match="kafka://nowhere:1/t cannot be used: .*no broker answers"):
        publish(records, KafkaAddress("nowhere:1", "t"))
