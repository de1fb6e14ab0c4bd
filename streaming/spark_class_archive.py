"""Make the archive of Spark's classes by running a small job once: `python -m streaming.spark_class_archive`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from controller.contract.records import Record, RecordKind, encode_record
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.java.class_archive import find_archive, spark_jars, written
from streaming.job import prepare
from streaming.scratch import scratch_directory
from streaming.spark.needs import jars_before
from streaming.spark.session import spark_session
from transport.address import JournalAddress
from transport.journal import JournalWriter


def make() -> Path:
    """Make the archive for a job with the default settings by a small job. Raise StreamError."""
    with scratch_directory() as scratch:
        directory = scratch.directory
        source, sink = directory / "records", directory / "outputs"
        config = StreamConfig(
            source=JournalAddress(source), sink=JournalAddress(sink), checkpoint=str(directory / "checkpoint")
        )
        fast = jars_before(config)
        class_path = (*fast, *spark_jars())
        if find_archive(class_path) is None:
            with JournalWriter(source) as writer:
                writer.append([encode_record(record) for record in _records()])
            with (
                written(class_path) as draft,
                prepare(config, threading.Event()) as job,
                spark_session(job.config, threading.Event(), class_path=fast, archive_to=draft) as session,
            ):
                job.stream(session, threading.Event(), available_now=True)
        archive = find_archive(class_path)
        assert archive is not None, "Java ended in order and wrote no archive"
        return archive


def _records() -> list[Record]:
    kinds = (RecordKind.SNAPSHOT_BEGIN, RecordKind.SNAPSHOT_END, RecordKind.HEARTBEAT)
    return [Record(cluster="none", generation=1, seq=seq, kind=kind, observed_ms=0) for seq, kind in enumerate(kinds)]


if __name__ == "__main__":
    try:
        make()
    except StreamError as error:
        sys.stderr.write(f"{error}\n")
