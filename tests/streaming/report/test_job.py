"""Reports of two recorded clusters, equal from ZooKeeper's files, from changes, from outputs, and in replay."""

from __future__ import annotations

import threading
from functools import partial

import msgspec
import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from controller.contract.outputs import encode_row
from controller.contract.records import encode_record
from questions.report.report import reasons_to_doubt
from streaming.errors import StreamError
from streaming.report.config import ReportConfig, ZooKeeperFiles
from streaming.report.job import reports_of
from streaming.sinks.standing_rows import StandingRows
from transport.address import JournalAddress, KafkaAddress
from transport.journal import JournalWriter


@pytest.fixture
def found(spark):
    """Return a function that reports on a source."""

    def found(source, **settings):
        return reports_of(spark, ReportConfig(source=source, **settings), threading.Event())

    return found


@pytest.fixture
def reported(found):
    """Return a function that returns the reports of a source as JSON, by cluster."""

    def reported(source, **settings) -> dict[str, dict]:
        reports = found(source, **settings)
        return {report.cluster: msgspec.json.decode(msgspec.json.encode(report)) for report in reports}

    return reported


@pytest.fixture(scope="session")
def expected(recorded) -> dict[str, dict]:
    """Return the summaries of `kontrast replay`."""
    return {name: cluster.summary for name, cluster in recorded.items()}


def files_of(recorded) -> ZooKeeperFiles:
    return ZooKeeperFiles({name: (cluster.files,) for name, cluster in recorded.items()}, "/")


def test_files_changes_and_outputs_of_two_clusters_say_what_replay_says(
    recorded, changes, write_outputs, reported, expected
):
    assert {report["offline_partition_minutes"] > 0 for report in expected.values()} == {True}
    assert reported(files_of(recorded)) == expected
    assert reported(JournalAddress(changes)) == expected
    assert reported(JournalAddress(write_outputs())) == expected


def test_what_is_written_twice_or_said_again_by_a_rebuilt_job_counts_once(write_outputs, reported, expected):
    def in_part_twice_then_all_again(lines: list[bytes]) -> list[list[bytes]]:
        half = len(lines) // 2
        return [lines[:half], lines[half // 2 : half], lines[half:], lines] if half else [lines]

    assert reported(JournalAddress(write_outputs(in_part_twice_then_all_again))) == expected


def test_a_window_is_the_same_from_everywhere_and_of_one_cluster_alone(recorded, changes, write_outputs, reported):
    began_ms = recorded["shop"].records[0].observed_ms
    window = {"since_ms": began_ms + 40_000, "until_ms": began_ms + 80_000, "clusters": frozenset({"shop"})}
    of_rows = reported(JournalAddress(write_outputs()), **window)
    assert of_rows == reported(JournalAddress(changes), **window)
    (shop,) = of_rows.values()
    assert shop["window"]["seen_seconds"] == 40
    assert 0 < len(shop["failovers"]) < 3
    assert all(began_ms + 40_000 <= failover["began_ms"] <= began_ms + 80_000 for failover in shop["failovers"])


def test_time_before_anything_was_written_is_not_seen(recorded, changes, found):
    began_ms = recorded["shop"].records[0].observed_ms
    reports = found(JournalAddress(changes), since_ms=began_ms - 3_600_000, clusters=frozenset({"shop"}))
    (doubt,) = reasons_to_doubt(reports[0])
    assert (
        doubt == "cluster shop: 96.9% of the window is missing from the data (1.0 of 1.0 h). The figures cover the rest"
    )


def test_what_compaction_dropped_is_not_seen(write_outputs, reported, expected):
    """Compacted rows keep the state that held after them, without its history."""
    derived = write_outputs(
        lambda lines: [lines[at : at + 20] for at in range(0, len(lines), 20)],
        clusters=("shop",),
        segment_bytes=70_000,
        retain_bytes=350_000,
        standing=StandingRows,
    )
    assert "metadata" in {path.parent.name for path in derived.glob("*/*.compacted.log")}
    (report,) = reported(JournalAddress(derived)).values()
    seen_from_ms = report["window"]["seen_from_ms"]
    assert seen_from_ms > expected["shop"]["window"]["seen_from_ms"] + 10_000
    assert report["window"]["until_ms"] == expected["shop"]["window"]["until_ms"]
    (whole,) = reported(JournalAddress(write_outputs(clusters=("shop",))), since_ms=seen_from_ms).values()
    for figure in ("topics", "brokers", "failovers"):
        assert report[figure] == whole[figure], figure
    (longer,) = reported(JournalAddress(derived), since_ms=seen_from_ms - 60_000).values()
    assert longer["window"]["unseen_seconds"] == 60
    assert longer["topics"] == report["topics"]


def test_what_is_damaged_or_unreadable_is_named(recorded, tmp_path, found):
    journal = tmp_path / "changes"
    records = recorded["bank"].records
    with JournalWriter(journal, segment_bytes=50_000) as writer:
        for record in records:
            writer.append([encode_record(record)])
        writer.append([b"no record", b'{"kind":"node"}', b'{"cluster":"bank","kind":"no kind"}'])
    victim = sorted(journal.glob("*.log"))[1]
    content = bytearray(victim.read_bytes())
    content[1_000:1_100] = bytes(100)
    victim.write_bytes(content)
    unrouted, bank = found(JournalAddress(journal))
    (hole, unreadable) = reasons_to_doubt(unrouted)
    assert hole.startswith(f"lines that name no cluster: {victim}: ")
    assert hole.endswith("are damaged or missing")
    assert unreadable == "lines that name no cluster: 2 lines could not be read and left out"
    assert bank.unreadable_lines == 1
    assert bank.window.unseen_seconds > 10  # everything is unknown, because no complete read comes
    assert bank.window.until_ms == records[-1].observed_ms


def test_files_that_cannot_be_read_keep_no_other_cluster_from_its_report(recorded, tmp_path, reported, expected):
    directories = {"bank": (recorded["bank"].files,), "none": (tmp_path / "absent",)}
    bank, none = reported(ZooKeeperFiles(directories, "/")).values()
    assert bank == expected["bank"]
    assert (none["cluster"], none["failed"]) == ("none", True)
    assert none["notes"] == [f"{tmp_path / 'absent'} is no directory. Name a ZooKeeper server's dataDir"]


def test_a_chroot_without_a_cluster_is_named_with_the_right_one(recorded, reported):
    (bank,) = reported(ZooKeeperFiles({"bank": (recorded["bank"].files,)}, "/kafka")).values()
    assert bank["failed"]
    assert bank["notes"] == [
        f"{recorded['bank'].files}: no Kafka cluster below /kafka. They have one below /. Give --chroot"
    ]


def test_an_address_with_nothing_of_kontrast_is_one_sentence(tmp_path, found):
    with pytest.raises(StreamError, match=r"holds no rows of Kontrast. Check the address$"):
        found(JournalAddress(tmp_path / "absent"))


@pytest.mark.nightly
def test_topics_say_the_same(recorded, shared_broker, own_name, reported, expected):
    bank = recorded["bank"]
    topics = ("changes", *(f"derived.{output}" for output in ("metadata", "alerts", "gauges")))
    admin = KafkaAdminClient(bootstrap_servers=shared_broker)
    admin.create_topics([NewTopic(f"{own_name}-{topic}", 1, 1) for topic in topics])
    producer = KafkaProducer(bootstrap_servers=shared_broker, acks="all", linger_ms=20)
    send = partial(producer.send, key=b"bank")
    for record in bank.records:
        send(f"{own_name}-changes", value=encode_record(record))
    for output, row in bank.rows:
        if f"derived.{output}" in topics:
            send(f"{own_name}-derived.{output}", value=encode_row(row))
    producer.flush()
    producer.close()
    assert reported(KafkaAddress(shared_broker, f"{own_name}-changes")) == {"bank": expected["bank"]}
    derived = KafkaAddress(shared_broker, f"{own_name}-derived")
    assert reported(derived) == {"bank": expected["bank"]}
    with pytest.raises(StreamError, match="holds no rows of Kontrast. Check the address"):
        reported(KafkaAddress(shared_broker, f"{own_name}-absent"))
    admin.close()


def test_with_holes_in_its_offsets_a_topic_is_complete_behind_the_last(recorded, spark, expected):
    from streaming.report.job import _behind_compaction
    from streaming.report.routed import SCHEMA

    def line(output: str, piece: int, time_ms: int) -> tuple:
        return ("bank", "", 1, 1, 0, 0, output, piece, time_ms, b"")

    lines = [line("metadata", 0, 5), line("metadata", 1, 7), line("metadata", 1, 9), line("alerts", 0, 8)]
    assert _behind_compaction(spark.createDataFrame(lines, SCHEMA)) == 7
    assert _behind_compaction(spark.createDataFrame(lines[3:], SCHEMA)) == 0
