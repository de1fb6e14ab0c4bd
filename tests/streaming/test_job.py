"""The job with journals at both ends. It writes the replica's rows once, through any interruption."""

from __future__ import annotations

import errno
import logging
import re
import sys
import threading

import pytest

from controller.contract.job_row import JobRow
from controller.contract.outputs import decode_row
from controller.contract.records import RecordKind
from streaming import job
from streaming.errors import StreamError
from streaming.job import prepare
from streaming.spark import failure
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually
from transport.journal import JournalWriter
from transport.journal_reading import end_offset


def test_every_output_holds_what_the_replica_says_row_for_row(streams, work_off):
    life = life_of("east")
    streams.append(life.lines)
    work_off(streams.config())
    expected = life.rows()
    assert expected["metadata"]
    assert expected["transitions"]
    assert streams.read_all() == expected
    (streams.checkpoint / "spark" / "commits" / "0").unlink()  # as if the job had died while it wrote the batch
    for segment in (streams.outputs / "gauges").glob("*.log"):
        segment.unlink()
    assert streams.read("gauges") == []
    streams.append(life.lines)  # repeated records change nothing
    work_off(streams.config())
    assert streams.read_all() == expected


def test_restarts_in_the_middle_lose_and_double_nothing(streams, work_off):
    """The second one repeats a batch that was written but not committed."""
    life = life_of("east")
    third = len(life.lines) // 3
    commits = streams.checkpoint / "spark" / "commits"
    for part in (life.lines[:third], life.lines[third : 2 * third], life.lines[2 * third :]):
        if part[0] == life.lines[2 * third]:
            (commits / max((path.name for path in commits.iterdir() if path.name.isdigit()), key=int)).unlink()
        streams.append(part)
        work_off(streams.config(max_batch_bytes=8192))  # several batches a run
    assert streams.read_all() == life.rows()


def test_a_job_waits_for_its_journal_and_finishes_its_batch_when_it_is_stopped(spark, streams, work_off):
    life = life_of("east")
    with running(spark, streams.config(max_batch_bytes=4096)):
        eventually((streams.checkpoint / "spark" / "offsets").exists)
        streams.append(life.lines)
        eventually(lambda: end_offset(streams.outputs / "metadata"))
    written = streams.read_all()
    assert written["metadata"]
    assert len(written["metadata"]) < len(life.rows()["metadata"])  # stopped in the middle
    spark_directory = streams.checkpoint / "spark"
    committed = {path.name for path in (spark_directory / "commits").iterdir() if path.name.isdigit()}
    batches = end_offset(streams.outputs / "metadata") and _last_batch(streams)
    assert str(batches) in committed
    work_off(streams.config())
    assert streams.read_all() == life.rows()


class _AskedInABatch(threading.Event):
    """A request to stop that comes just before a batch is written."""

    def is_set(self) -> bool:
        if sys._getframe(1).f_code.co_name == "write":
            self.set()
        return super().is_set()


def test_a_batch_that_is_left_out_at_a_stop_is_no_error_in_sparks_log(spark, streams, caplog):
    caplog.set_level(logging.DEBUG, "kontrast.streaming.spark")
    streams.append(life_of("east").lines)
    stop = _AskedInABatch()
    with prepare(streams.config(), stop) as prepared:
        prepared.stream(spark, stop, available_now=True)
    assert super(_AskedInABatch, stop).is_set()
    assert streams.read("metadata") == []
    assert [record.message for record in caplog.records if re.match(r"ERROR\b", record.message)] == []


def test_a_disk_that_is_full_at_the_start_is_told_once_in_ten_minutes(streams, caplog, monkeypatch):
    stop, tried = threading.Event(), []

    def full(*_, **__):
        tried.append(1)
        stop.set() if len(tried) == 9 else None
        raise StreamError("no room") from OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(job, "_run", full)
    monkeypatch.setattr(failure, "_LONGEST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(failure, "_FIRST_PAUSE_SECONDS", 0.001)
    with pytest.raises(StreamError):
        job.run(streams.config(), stop)
    assert len(tried) == 9
    assert caplog.text.count("The job waits for room") == 1


def test_the_job_tells_of_its_batches_with_the_next_one(streams, work_off):
    life = life_of("east")
    streams.append(life.lines)
    work_off(streams.config(max_batch_bytes=4096))
    rows = [decode_row(line) for line in streams.read("job")]
    assert len(rows) == _last_batch(streams) + 1, "each batch has one, to prove where the outputs end"
    last = [row for row in rows if row.clusters][-1]  # a row that was taken before comes again without clusters
    assert last.phase_ms["addBatch"] <= last.phase_ms["triggerExecution"] <= last.total_phase_ms["triggerExecution"]
    assert 0 < last.records < len(life.lines)
    assert 0 < last.rows < sum(map(len, life.rows().values()))
    assert last.state_values > 1
    assert last.clusters.keys() == {"east"}
    assert last.processes.keys() == {"driver", "java", "worker"}
    assert all(0 < use.open_files < use.open_files_limit for use in last.processes.values())
    assert last.clusters["east"].lag_ms == pytest.approx(last.time_ms - last.clusters["east"].observed_ms, abs=5000)


def _last_batch(streams: Streams) -> int:
    with JournalWriter(streams.outputs / "metadata", batches=True) as writer:
        return writer.last_batch_id


def test_the_first_picture_of_a_cluster_is_logged_once(streams, spark, caplog):
    caplog.set_level("INFO")
    life = life_of("east", topics=5)
    half = len(life.lines) // 2
    streams.append(life.lines[:half])

    def pictures() -> list[str]:
        return [record.getMessage() for record in caplog.records if "is controller" in record.getMessage()]

    with running(spark, streams.config()):
        (picture,) = eventually(pictures)
        streams.append(life.lines[half:])
        eventually(lambda: streams.read_all() == life.rows())
    assert re.fullmatch(
        r"east: \d+ partitions of 5 topics on \d brokers, broker \d is controller, \d+ partitions? cannot be used",
        picture,
    )
    assert pictures() == [picture]


def test_a_job_without_records_goes_on_writing_its_row(spark, streams, work_off):
    life = life_of("east", topics=2)
    streams.append(life.lines)
    work_off(streams.config())

    def job_rows() -> list[JobRow]:
        return [decode_row(line) for line in streams.read("job")]

    with running(spark, streams.config()):  # whose watcher was dead before it began
        first = eventually(job_rows)[-1]
        assert (first.batch, first.batches, first.clusters) == (0, 0, {})
        life.send(RecordKind.HEARTBEAT, value={"session": "connected", "watch_mode": "persistent"})
        streams.append(life.lines[-1:])
        idle = eventually(job_rows, lambda rows: rows[-1].batches == 1)[-1]
    assert idle.time_ms > first.time_ms
    assert set(idle.clusters) == {"east"}, "no batch wrote the progress of the last one"
    work_off(streams.config())
    assert streams.read_all() == life.rows()
