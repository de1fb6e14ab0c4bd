"""Record that forgets a cluster, appended if no forwarder of the cluster writes.

A journal has one writer, which appends the record on request if it does not forward the cluster. A topic has any number
of writers, but heartbeats reveal a forwarder.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from controller.contract.ids import UNKNOWN_ZXID
from controller.contract.records import Record, RecordKind, encode_record
from ingest.election import clock_generation
from ingest.errors import IngestError
from ingest.sinks.journal_sink import newest_record, requested
from ingest.sinks.sink import SinkUnavailableError
from transport.address import Address, JournalAddress, KafkaAddress
from transport.disk import Fsync
from transport.journal import JournalWriter
from transport.segments import JournalError, JournalLockedError, read_format

if TYPE_CHECKING:
    from ingest.sinks.kafka_sink import KafkaSink

# Heartbeats come each second by default. The first limit relies on clocks, which may differ, but the second does not.
_RECENT_SECONDS: Final = 30.0
_LISTENS_SECONDS: Final = 3.0


def newest_of(stream: Address, cluster: str, stop: threading.Event) -> Record | None:
    """Return the cluster's newest record in the stream, if any. Raise IngestError."""
    try:
        if isinstance(stream, JournalAddress):
            if read_format(stream.directory) is None:
                raise IngestError(f"{stream} does not exist. Name the stream that `kontrast stream` reads")
            return newest_record(stream.directory, cluster)
        with closing(_kafka_sink(stream, cluster, stop)) as sink:
            return sink.newest_record()
    except (JournalError, SinkUnavailableError) as error:
        raise IngestError(str(error)) from error


def forget(stream: Address, cluster: str, generation: int, stop: threading.Event) -> bool:
    """Append the record in a generation above this number and above all generations of the cluster in the stream.

    Return False if asked to stop before. Raise IngestError, also if `kontrast watch` still forwards the cluster.
    """
    try:
        if isinstance(stream, JournalAddress):
            record = _forgotten(cluster, generation, newest_record(stream.directory, cluster))
            try:
                # The usual writer of the journal decides its retention.
                with JournalWriter(stream.directory, fsync=Fsync.ALWAYS, retain_bytes=None) as journal:
                    journal.append([encode_record(record)])
            except JournalLockedError as error:
                if not requested(stream.directory, record, stop) and not stop.is_set():
                    raise IngestError(
                        f"{stream} is being written by a `kontrast watch` that forwards {cluster}, or that takes no "
                        f"requests. Restart it without {cluster}, and forget {cluster} then"
                    ) from error
            return not stop.is_set()
        with closing(_kafka_sink(stream, cluster, stop)) as sink:
            newest = sink.newest_record()
            if (
                newest
                and newest.kind is not RecordKind.FORGOTTEN
                and abs(time.time() - newest.observed_ms / 1000) < _RECENT_SECONDS
            ):
                raise IngestError(_watched(stream, cluster))
            if stop.wait(_LISTENS_SECONDS):
                return False
            if sink.newest_record() != newest:
                raise IngestError(_watched(stream, cluster))
            sink.append([_forgotten(cluster, max(generation, sink.newest_generation()), newest)])
            return True
    except (JournalError, SinkUnavailableError) as error:
        raise IngestError(str(error)) from error


def _kafka_sink(stream: KafkaAddress, cluster: str, stop: threading.Event) -> KafkaSink:
    from ingest.sinks.kafka_sink import KafkaSink  # here, because a journal needs no Kafka client

    return KafkaSink(stream, cluster, stop, check=lambda _: None, creates_topics=False)


def _watched(stream: Address, cluster: str) -> str:
    return (
        f"a `kontrast watch` wrote of {cluster} to {stream} within the last {_RECENT_SECONDS:.0f} s. End each that "
        "forwards it, then try again"
    )


def _forgotten(cluster: str, generation: int, newest: Record | None) -> Record:
    before = generation if newest is None else max(generation, newest.generation)
    return Record(
        cluster=cluster,
        generation=max(before + 1, clock_generation()),
        seq=0,
        kind=RecordKind.FORGOTTEN,
        observed_ms=time.time_ns() // 1_000_000,
        zxid=UNKNOWN_ZXID if newest is None else newest.zxid,
    )
