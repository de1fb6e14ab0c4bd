"""Sink that appends records to a journal. The clusters of a process share one writer per directory."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from controller.contract.records import BadRecordError, Record, RecordKind, decode_record, encode_record
from ingest.config import IngestConfig
from ingest.errors import IngestError
from ingest.separation import refuse_watched_cluster
from ingest.sinks.sink import Sink, SinkFullError, SinkUnavailableError
from transport.address import JournalAddress
from transport.journal import JournalWriter
from transport.segments import JournalError, JournalFullError, JournalRemovedError, newest_lines
from transport.topics import complete_read_requested_ns

_LOG = logging.getLogger("kontrast.ingest.sinks")


@dataclass(slots=True)
class _OpenJournal:
    """The only writer of a journal in this process, and the clusters that use it."""

    writer: JournalWriter
    open_writer: Callable[[int, str], JournalWriter]  # at an offset, of a journal with this identity
    lock: threading.Lock = field(default_factory=threading.Lock)
    clusters: list[str] = field(default_factory=list)
    removals: int = 0

    def begin_again_if_removed(self) -> None:
        """Continue at the same offset in a new journal if the old one's files are gone. Raise JournalError."""
        try:
            self.writer.check()
        except JournalRemovedError as error:
            end, identity = self.writer.end_offset, self.writer.identity
            self.writer.close()
            self.writer = self.open_writer(end, identity)
            self.removals += 1
            _LOG.error("%s. The journal begins again after a gap, with a complete read of every cluster", error)

    def take_requests(self, directory: Path) -> None:
        """Append the requested records of clusters that this process does not forward. Raise JournalError."""
        for request in directory.glob(f"{_REQUEST}*"):
            with suppress(OSError, BadRecordError):  # given up, or of somebody else
                line = request.read_bytes()
                if decode_record(line).cluster not in self.clusters:
                    self.writer.append([line])
                    request.unlink()


_REQUEST = "record-wanted-"  # begin of a file's name
_REQUESTED_WITHIN_SECONDS = 5.0  # a writer looks for requests each second
_ANY_RECORD = Record(cluster="", generation=0, seq=0, kind=RecordKind.HEARTBEAT, observed_ms=0)

_open_journals: dict[Path, _OpenJournal] = {}
_opening = threading.Lock()


class JournalSink:
    """A journal that several clusters of one process may share."""

    def __init__(self, config: IngestConfig) -> None:
        assert isinstance(config.to, JournalAddress)
        self._cluster = config.cluster
        self._directory = config.to.directory.absolute()
        with _opening:
            if self._directory not in _open_journals:
                open_writer = partial(_open_writer, self._directory, config)
                _open_journals[self._directory] = _OpenJournal(_first_writer(open_writer), open_writer)
            self._journal = _open_journals[self._directory]
            self._journal.clusters.append(self._cluster)
        self._requested_ns = complete_read_requested_ns(self._directory)
        self._removals = self._journal.removals

    def append(self, records: Sequence[Record]) -> None:
        """Append all records to the journal, or no record."""
        lines = [encode_record(record) for record in records]
        with self._journal.lock:
            try:
                self._journal.begin_again_if_removed()
                self._journal.writer.append(lines)
            except JournalError as error:
                raise SinkUnavailableError(str(error)) from error

    def complete_read_requested(self) -> bool:
        """Return whether a complete read is due, because a reader asked for one, or the journal was replaced."""
        with self._journal.lock:
            try:
                self._journal.begin_again_if_removed()
                self._journal.take_requests(self._directory)
            except JournalError as error:
                _LOG.warning("%s", error)  # the next append fails too, and is retried until the journal is mended
            removals, self._removals = self._removals, self._journal.removals
        before, self._requested_ns = self._requested_ns, complete_read_requested_ns(self._directory)
        return self._requested_ns > before or self._journal.removals > removals

    def newest_generation(self) -> int:
        """Return the generation of the cluster's newest record, or -1. Raise SinkUnavailableError."""
        newest = newest_record(self._directory, self._cluster)
        return -1 if newest is None else newest.generation

    def close(self) -> None:
        """Close the journal with its last user."""
        with _opening:
            self._journal.clusters.remove(self._cluster)
            if not self._journal.clusters:
                del _open_journals[self._directory]
                self._journal.writer.close()


def open_sink(config: IngestConfig, stop: threading.Event) -> Sink:
    """Open the configured sink. Raise IngestError or SinkUnavailableError."""
    if isinstance(config.to, JournalAddress):
        return JournalSink(config)
    from ingest.sinks.kafka_sink import KafkaSink  # here, because a journal needs no Kafka client

    return KafkaSink(config.to, config.cluster, stop, lambda kafka: refuse_watched_cluster(config, kafka, stop))


def newest_record(directory: Path, cluster: str) -> Record | None:
    """Return the cluster's newest record in a journal, if any. Raise SinkUnavailableError."""
    start = encode_record(msgspec.structs.replace(_ANY_RECORD, cluster=cluster)).partition(b',"generation"')[0]
    try:
        for line in newest_lines(directory, start):
            with suppress(BadRecordError):
                return decode_record(line)
    except (JournalError, OSError) as error:
        raise SinkUnavailableError(f"journal {directory} cannot be read: {error}") from error
    return None


def requested(directory: Path, record: Record, stop: threading.Event) -> bool:
    """Let the process that writes the journal append a record. Return False if it does not, or forwards the cluster.

    Raise JournalError.
    """
    try:
        written = directory / "record-written"
        written.write_bytes(encode_record(record))
        request = written.replace(directory / f"{_REQUEST}{os.getpid()}")
    except OSError as error:
        raise JournalError(f"journal {directory}: a record cannot be requested: {error.strerror}") from error
    ends = time.monotonic() + _REQUESTED_WITHIN_SECONDS
    while request.exists() and time.monotonic() < ends and not stop.wait(0.1):
        pass
    try:
        request.unlink()
    except FileNotFoundError:
        return True
    return False


def _open_writer(directory: Path, config: IngestConfig, begin: int, identity: str) -> JournalWriter:
    return JournalWriter(
        directory,
        fsync=config.journal_fsync,
        retain_bytes=config.journal_retain_bytes,
        retain_seconds=config.journal_retain_seconds,
        begin=begin,
        identity=identity,
    )


def _first_writer(open_writer: Callable[[int, str], JournalWriter]) -> JournalWriter:
    try:
        return open_writer(0, "")
    except JournalFullError as error:
        raise SinkFullError(str(error)) from error
    except JournalError as error:
        raise IngestError(str(error)) from error
