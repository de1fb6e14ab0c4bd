"""The follower over real journals and real Kafka topics, without lost rows and without void ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import time

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, TopicPartition

from cli.main import main
from controller.contract.job_row import JobRow, OutputEnd
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, encode_row
from dashboards.exporter.config import ServeConfig
from outputs import open_outputs
from outputs.follower import Follower
from outputs.reading import FOLLOWED_OUTPUTS, ReadingCounts
from questions.memory import Memory
from streaming.sinks.sink import StandingRows
from tests.outputs.topics import Topics
from tests.rows import NEVER_STALE_MS, TIME_MS
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.journal import JournalWriter


def write(directory, *written, **settings):
    with JournalWriter(directory / written[0].output, batches=True, **settings) as journal:
        journal.append_batch(journal.last_batch_id + 1, [encode_row(row) for row in written])


def test_the_followed_outputs_exist_and_gauges_come_last():
    assert set(FOLLOWED_OUTPUTS) <= {*OUTPUTS, JobRow.output}
    assert FOLLOWED_OUTPUTS[-1] == "gauges"


def test_a_source_that_fails_for_a_while_is_down_for_that_while(exporter, rows):
    exporter.write(*rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    directory = exporter.directory / "metadata"
    directory.rename(exporter.directory / "aside")
    directory.write_text("in the way")
    exporter.metrics_with(r"^kontrast_source_up\{.*\} 0")
    assert exporter.get("/readyz")[0] == 503
    assert exporter.get("/healthz")[0] == 200
    directory.unlink()
    (exporter.directory / "aside").rename(directory)
    exporter.metrics_with(r"^kontrast_source_up\{.*\} 1")
    assert exporter.get("/readyz")[0] == 200


def lose(exporter, output, row):
    with JournalWriter(exporter.directory / output, batches=True, segment_bytes=1, retain_bytes=1) as journal:
        deadline = time.monotonic() + 60
        while f'kontrast_gaps_total{{output="{output}"}} 0.0' in exporter.metrics():
            assert time.monotonic() < deadline
            for _ in range(50):  # far more than one poll's worth between two polls
                journal.append_batch(journal.last_batch_id + 1, [encode_row(row)])


def test_gaps_are_counted(exporter, rows):
    exporter.write(*rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    lose(exporter, "gauges", rows.gauges())
    exporter.write(rows.gauges(topics=55))
    exporter.metrics_with(r"^kontrast_topics\{.*\} 55")


def test_while_rows_are_lost_nothing_is_said_of_their_cluster(exporter, rows):
    exporter.write(*rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    lose(exporter, "metadata", rows.partition("t"))
    exporter.metrics_with(r"^kontrast_ready\{.*\} 0")
    status, _, body = eventually(lambda: exporter.get("/readyz"), lambda answer: b"--rebuild" in answer[2])
    assert (status, b"rows of north were dropped or damaged" in body) == (503, True)
    beginning = BeginningRow(cluster="north", generation=2, seq=0, ordinal=-1, zxid=1, time_ms=1)
    exporter.write(beginning, *rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    assert exporter.get("/readyz")[0] == 200


def test_a_forgotten_cluster_is_on_no_page_until_it_is_watched_again(exporter, rows):
    south = {"cluster": "south", "generation": 2}
    exporter.write(*rows.of_everything(), rows.alert("a"), rows.partition("t", **south), rows.gauges(**south))
    pages = ("/metrics", "/clusters")
    for page in pages:
        exporter.page_with(page, "south")
        exporter.page_with(page, "north")
    end = {"cluster": "north", "generation": 2, "seq": 0, "zxid": 1, "time_ms": 1}
    exporter.write(rows.alert("a", "resolved", **end, ordinal=0))
    for output in STANDING_OUTPUTS:
        exporter.write_lines(output, encode_row(BeginningRow(**end, ordinal=1, forgotten=True)))
    for page in pages:
        eventually(lambda page=page: "north" not in exporter.page(page))
    assert "south" in exporter.metrics()
    assert exporter.get("/clusters/north")[0] == 404
    exporter.write(rows.partition("t", generation=3), rows.gauges(generation=3))
    exporter.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 1')
    assert exporter.get("/clusters/north")[0] == 200


def much_of(rows, tmp_path, **settings):
    """Write a hundred partitions and three brokers, with many later changes of one partition."""
    beginning = BeginningRow(cluster="north", generation=1, seq=0, ordinal=-1, zxid=1, time_ms=1)
    write(tmp_path, rows.gauges())
    write(tmp_path, beginning, *(rows.partition("t", number) for number in range(100)), **settings)
    write(tmp_path, *(rows.broker(number) for number in (1, 2, 3)), **settings)
    with JournalWriter(tmp_path / "metadata", batches=True, **settings) as journal:
        for _ in range(300):
            journal.append_batch(journal.last_batch_id + 1, [encode_row(rows.partition("t", 0))])


def followed(tmp_path):
    memory, reading = Memory(), ReadingCounts()
    with Follower(open_outputs(JournalAddress(tmp_path), FOLLOWED_OUTPUTS), memory, reading, 60) as follower:
        wait_until(lambda: reading.snapshot().caught_up, follower, reading)
    return memory, reading.snapshot()


def test_an_exporter_that_starts_late_knows_every_partition_and_broker(tmp_path, rows):
    bound = {"segment_bytes": 10_000, "retain_bytes": 30_000}
    much_of(rows, tmp_path, **bound, standing=StandingRows)
    assert sum(path.stat().st_size for path in (tmp_path / "metadata").glob("*.log")) < 150_000
    memory, reading = followed(tmp_path)
    assert len(memory.partitions("north")) == 100
    # Rows from before the partitions' last rows are gone, except those that compaction has not reached yet.
    kept = memory.kept("north")
    assert kept is not None
    assert kept.since_ms > TIME_MS + 104
    assert [row.broker for row in memory.clusters()[0].brokers] == [1, 2, 3]
    assert reading.vouches_for("north")
    assert sum(reading.gaps.values()) == 0


def test_what_an_older_kontrast_dropped_is_counted_and_nothing_is_vouched_for(tmp_path, rows):
    much_of(rows, tmp_path, segment_bytes=10_000, retain_bytes=30_000)
    memory, reading = followed(tmp_path)
    assert len(memory.partitions("north")) < 100
    assert reading.gaps["metadata"] == 1
    assert not reading.vouches_for("north")


def remove(journal):
    shutil.rmtree(journal)


def cut(journal):
    (segment,) = journal.glob("*.log")
    os.truncate(segment, segment.stat().st_size // 2)


def replace(journal):
    shutil.rmtree(journal)
    JournalWriter(journal, batches=True).close()


def written_with_ends(directory, rows):
    """Write rows as the job does, whose own row has the ends of the others."""
    write(directory, BeginningRow(cluster="north", generation=1, seq=0, ordinal=-1, zxid=1, time_ms=1))
    for row in [*rows.of_everything(), *(rows.alert(str(number)) for number in range(9))]:
        write(directory, row)
    ends = {}
    for output in ("alerts", "metadata", "gauges"):
        with JournalWriter(directory / output, batches=True) as journal:
            ends[output] = OutputEnd(identity=journal.identity, offset=journal.end_offset)
    write(directory, rows.job(ends=ends))


@pytest.mark.parametrize("lose", [remove, cut, replace])
def test_a_reader_that_lacks_rows_of_one_output_says_so_and_is_not_ready(tmp_path, rows, lose):
    written_with_ends(tmp_path, rows)
    _, reading = followed(tmp_path)
    assert (reading.vouches_for("north"), reading.outputs_lacking_rows_of("north")) == (True, ())
    lose(tmp_path / "alerts")
    _, reading = followed(tmp_path)
    assert (reading.vouches_for("north"), reading.outputs_lacking_rows_of("north")) == (False, ("alerts",))
    settings = tmp_path / "kontrast.toml"
    settings.write_text(f"[serve.alertmanager]\nstale_after_seconds = {NEVER_STALE_MS // 1_000}\n")
    checked = CliRunner().invoke(main, ["check", "--config", str(settings), "--from", f"journal:{tmp_path}", "--json"])
    doubts = json.loads(checked.stdout)["doubts"]
    assert checked.exit_code == 3
    assert any("rows of alerts were lost" in doubt and "--rebuild" in doubt for doubt in doubts)


def test_a_server_whose_output_is_removed_is_not_ready_until_it_is_written_again(exporter, rows):
    written_with_ends(exporter.directory, rows)
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    shutil.rmtree(exporter.directory / "alerts")
    exporter.metrics_with(r"^kontrast_ready\{.*\} 0")
    assert b"--rebuild" in exporter.get("/readyz")[2]
    written_with_ends(exporter.directory, rows)
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    assert exporter.get("/readyz")[0] == 200


def wait_until(holds, follower, reading):
    def still_follows():
        assert follower.failure is None, reading.snapshot()

    eventually(holds, meanwhile=still_follows)


def test_kafka_topics_are_followed_from_their_beginning_and_as_they_grow(shared_broker, own_name, rows):
    topics = Topics(shared_broker, own_name, "metadata", "gauges")
    memory, reading = Memory(), ReadingCounts()
    topics.produce(rows.offline("orders"), rows.gauges(topics=1))
    topics.delete_key("metadata", b"north/partition/gone/0")
    with Follower(open_outputs(topics.address, FOLLOWED_OUTPUTS), memory, reading, 60) as follower:
        wait_until(lambda: reading.snapshot().caught_up, follower, reading)
        (cluster,) = memory.clusters()
        assert [row.topic for row in cluster.unusable] == ["orders"]
        assert reading.snapshot().lag == {}
        topics.create("alerts")
        topics.produce(rows.partition("orders"), rows.alert("a"), rows.gauges(topics=2))
        wait_until(lambda: sum(reading.snapshot().rows.values()) == 5, follower, reading)
        (cluster,) = memory.clusters()
        assert (cluster.unusable, len(cluster.open_alerts), cluster.gauges.topics) == ((), 1, 2)
        assert sum(reading.snapshot().lag["north"].counts) == 3
        assert sum(reading.snapshot().bad_rows.values()) == 0
    topics.close()
    assert not follower.alive


@pytest.mark.nightly
def test_a_kafka_that_dies_is_down_until_it_is_back(start_kafka_cluster, rows):
    cluster = start_kafka_cluster(properties={"zookeeper.session.timeout.ms": "2000"})
    (server,) = cluster.bootstrap_servers
    topics = Topics(server, "out", "metadata", "gauges")  # the search for a missing topic must not hang
    memory, reading = Memory(), ReadingCounts()
    topics.produce(rows.gauges())
    with Follower(open_outputs(topics.address, FOLLOWED_OUTPUTS), memory, reading, 60) as follower:
        wait_until(lambda: reading.snapshot().rows, follower, reading)
        cluster.brokers[1].kill()
        wait_until(lambda: not reading.snapshot().source_up, follower, reading)
        cluster.brokers[1].start()
        wait_until(lambda: reading.snapshot().source_up, follower, reading)
        topics.produce(rows.gauges(topics=2))
        wait_until(lambda: memory.clusters()[0].gauges.topics == 2, follower, reading)
        cluster.brokers[1].kill()
    topics.close()
    assert not follower.alive


def test_what_was_said_of_a_cluster_before_its_beginning_is_void(tmp_path, rows):
    """A rebuilt job begins at an older position, and does not know the rows that are gone."""
    place = {"cluster": "north", "generation": 1, "zxid": 1, "time_ms": 1}
    write(tmp_path, rows.offline("gone"), rows.offline("still", 3))
    write(tmp_path, rows.alert("gone"))
    write(tmp_path, rows.gauges(topics=2))
    write(tmp_path, rows.gauges(cluster="south", topics=9))
    beginning = BeginningRow(**place, seq=0, ordinal=-1)
    for output, row in (
        ("metadata", rows.offline("still", 3, seq=1)),
        ("alerts", rows.alert("new", seq=1)),
        ("gauges", rows.gauges(topics=1, seq=1)),
    ):
        with JournalWriter(tmp_path / output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [encode_row(beginning), encode_row(row)])
    memory, reading = Memory(), ReadingCounts()
    with Follower(open_outputs(JournalAddress(tmp_path), FOLLOWED_OUTPUTS), memory, reading, 60) as follower:
        wait_until(lambda: reading.snapshot().caught_up, follower, reading)
    north, south = memory.clusters()
    assert [row.topic for row in north.unusable] == ["still"]
    assert [alert.id for alert in north.open_alerts] == ["new"]
    assert (north.gauges.topics, south.gauges.topics) == (1, 9)


def test_the_job_s_own_row_is_kept_apart_from_the_clusters(tmp_path, rows):
    write(tmp_path, rows.job(batches=5))
    memory, reading = Memory(), ReadingCounts()
    with Follower(open_outputs(JournalAddress(tmp_path), FOLLOWED_OUTPUTS), memory, reading, 60) as follower:
        wait_until(lambda: reading.snapshot().caught_up, follower, reading)
    assert memory.jobs()[""].batches == 5
    assert memory.clusters() == ()


NEWER = b'{"kind":"of-tomorrow","v":99,"cluster":"north"}'


@pytest.mark.parametrize("output", ["metadata", "alerts", "gauges"])
def test_rows_of_a_newer_kontrast_are_left_out_and_silence_their_cluster_until_void(exporter, rows, caplog, output):
    exporter.write(*rows.of_everything(), rows.gauges(cluster="south", topics=3))
    exporter.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 1')
    exporter.write_lines(output, NEWER, NEWER)
    text = exporter.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 0')
    assert 'kontrast_topics{kafka_cluster="north"}' not in text
    assert 'kontrast_topics{kafka_cluster="south"} 3.0' in text
    assert f'kontrast_bad_rows_total{{output="{output}"}} 2.0' in text
    assert exporter.get("/readyz")[0] == 503
    assert caplog.text.count("a newer Kontrast wrote") == 1
    beginning = {"cluster": "north", "generation": 1, "seq": 0, "ordinal": -1, "zxid": 1, "time_ms": 1}
    if output != "gauges":  # each of these rows is complete by itself
        exporter.write_lines(output, encode_row(BeginningRow(**beginning)))
    exporter.write(rows.gauges(topics=8))
    exporter.metrics_with(r'^kontrast_topics\{kafka_cluster="north"\} 8')
    assert exporter.get("/readyz")[0] == 200


def test_a_cluster_written_only_by_a_newer_kontrast_is_named_and_not_ready(exporter):
    exporter.write_lines("gauges", NEWER)
    exporter.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 0')


def test_a_replaced_output_is_no_longer_one_of_a_newer_kontrast(exporter, rows):
    exporter.write_lines("metadata", NEWER)
    exporter.write(rows.gauges())
    exporter.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 0')
    shutil.rmtree(exporter.directory / "metadata")
    exporter.write(rows.partition("orders"))
    exporter.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 1')


def say_the_same(first: str, second: str) -> bool:
    """Return whether both pages show the same for the watched clusters."""

    def about_clusters(text: str) -> list[str]:
        said = [line for line in text.splitlines() if 'kafka_cluster="' in line]
        return [line for line in said if "kontrast_rows_total" not in line and "end_to_end_lag" not in line]

    return about_clusters(first) == about_clusters(second)


def test_an_exporter_that_starts_again_says_the_same_from_the_journals(exporter, rows, start_exporter):
    exporter.write(*rows.of_everything(), *(rows.offline("orders", number) for number in range(5)))
    exporter.write(
        rows.partition("orders", 2), rows.alert("a", state="resolved"), rows.alert("b"), rows.gauges(topics=7)
    )
    before = exporter.metrics_with(r"^kontrast_topics\{.*\} 7")
    again = ServeConfig(source=JournalAddress(exporter.directory), listen="127.0.0.1:0", partition_detail_limit=2)
    with start_exporter(again) as restarted:
        assert say_the_same(restarted.metrics_with(r"^kontrast_topics\{.*\} 7"), before)


COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}


@pytest.mark.nightly
def test_an_exporter_starts_from_compacted_topics(start_kafka_cluster, rows, start_exporter):
    cleaner = {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "100", "log.cleaner.min.compaction.lag.ms": "0"}
    (server,) = start_kafka_cluster(properties=cleaner).bootstrap_servers
    topics = Topics(server, "out")
    topics.create("metadata", "alerts", "gauges", partitions=1, configs=COMPACTED)
    for round_ in range(20):
        topics.produce(*(rows.offline("orders", number, leader_epoch=round_) for number in range(6)))
        topics.produce(rows.alert("a"), rows.alert("b", subject="partition orders-5"), rows.gauges(topics=round_))
    topics.produce(rows.controller(1), *(rows.partition("orders", number, leader_epoch=77) for number in range(3)))
    topics.produce(
        rows.offline("orders", 4, state="NonExistentPartition", removed=True), rows.alert("a", state="resolved")
    )
    topics.delete_key("metadata", b"north/partition/elsewhere/4")  # a tombstone, which Kontrast never writes
    topics.produce(rows.gauges(topics=500))

    def messages() -> int:
        topics.produce(rows.partition("orders", 0, leader_epoch=77))  # a segment that is written to is not compacted
        ends = KafkaConsumer(bootstrap_servers=server, group_id=None, auto_offset_reset="earliest")
        ends.assign([TopicPartition("out.metadata", 0)])
        found = sum(len(batch) for batch in ends.poll(timeout_ms=2000, max_records=1000).values())
        ends.close()
        return found

    eventually(messages, lambda found: 0 < found < 60)
    source = open_outputs(topics.address, ("metadata",))
    assert any(chunk.thinned for chunk in eventually(source.poll))
    source.close()
    config = ServeConfig(source=topics.address, listen="127.0.0.1:0")
    with start_exporter(config) as first, start_exporter(config) as second:
        text = first.metrics_with(r"^kontrast_topics\{.*\} 500")
        offline = re.findall(r'^kontrast_partition_offline_since.*partition="(\d+)"', text, re.MULTILINE)
        assert sorted(offline) == ["3", "5"]
        assert (
            'kontrast_alerts_open{alert="PartitionsOffline",kafka_cluster="north",severity="page",state="open"} 1.0'
            in text
        )
        assert say_the_same(second.metrics_with(r"^kontrast_topics\{.*\} 500"), text)
        topic = json.loads(first.page_with("/api/v1/clusters/north/topics/orders", '"partitions"'))
        assert len(topic["partitions"]) == 5
    topics.close()
