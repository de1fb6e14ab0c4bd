"""Publish a past into an empty stream, in the form in which `kontrast watch` writes the present.

The records keep their times, and each complete read marks them as replayed, so that no reader takes them for the
present. A stream with records is rejected, because past and present must not mix.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

from controller.contract.ids import BrokerId
from controller.contract.records import Record, RecordKind, encode_record
from controller.contract.znode_table import Place, locate
from controller.contract.znodes import ClusterIdZnode, ZnodeError, decode
from ingest.errors import IngestError
from ingest.replay.pace import Pace
from ingest.separation import KafkaIdentity, evidence_of_one, registered_addresses
from ingest.sinks.sink import SinkUnavailableError
from transport.address import Address, JournalAddress
from transport.journal import JournalError, JournalRemovedError, JournalWriter, end_offset

_LOG: Final = logging.getLogger("kontrast.ingest.replay")

_RECORDS_AN_APPEND: Final = 5_000
_RETRY_SECONDS: Final = 1.0


class _Stream(Protocol):
    """A stream that had no records."""

    def append(self, records: Sequence[Record]) -> None:
        """Append the records and wait for all acknowledgements. Raise SinkUnavailableError or IngestError."""

    def close(self) -> None:
        """Release the sink."""


class Publication:
    """Publication of one cluster's records. `records` counts the published ones, the newest as of `as_of_ms`."""

    def __init__(self, to: Address, cluster: str, pace: Pace, stop: threading.Event) -> None:
        self.to = to
        self.records = 0
        self.as_of_ms = 0
        self._cluster = cluster
        self._pace = pace
        self._stop = stop
        self._recorded = RecordedCluster(to)

    def run(self, records: Iterator[Record], show: Callable[[], None]) -> bool:
        """Publish until the end or asked to stop. Return False, without a stream, if no record has a znode.

        `show` is called after each part. Raise IngestError.
        """
        first = self._up_to_a_cluster(records)
        if not first:
            return False
        with closing(self._open()) as stream:
            for block in self._when_due(chain(first, records)):
                self._append(stream, block)
                show()
        return True

    def _up_to_a_cluster(self, records: Iterable[Record]) -> list[Record]:
        """Return the records up to the first znodes, with all that were read or written together with these znodes."""
        held: list[Record] = []
        has_znodes = False
        for record in records:
            held.append(record)
            self._recorded.note(record)
            if self._stop.is_set() or (has_znodes and record.kind is not RecordKind.NODE):
                break
            has_znodes = has_znodes or record.kind is RecordKind.NODE
        return held if has_znodes else []

    def _when_due(self, records: Iterable[Record]) -> Iterator[list[Record]]:
        """Yield blocks of records that are due together, until asked to stop."""
        block: list[Record] = []
        for record in records:
            wait_seconds = self._pace.wait_seconds(record)
            if block and (wait_seconds or len(block) >= _RECORDS_AN_APPEND):
                yield block
                block = []
            if self._stop.is_set() or (wait_seconds and self._stop.wait(wait_seconds)):
                return
            self._recorded.note(record)
            block.append(record)
        if block:
            yield block

    def _append(self, stream: _Stream, block: Sequence[Record]) -> None:
        """Append the records, and retry until the stream accepts them or asked to stop."""
        is_said = False
        while True:
            try:
                stream.append(block)
                break
            except SinkUnavailableError as error:
                level = logging.DEBUG if is_said else logging.WARNING
                _LOG.log(level, "%s takes no records, trying again until it does: %s", self.to, error)
                is_said = True
            if self._stop.wait(_RETRY_SECONDS):
                return
        self.records += len(block)
        self.as_of_ms = block[-1].observed_ms

    def _open(self) -> _Stream:
        try:
            return self._open_empty()
        except SinkUnavailableError as error:
            raise IngestError(f"{self.to} cannot be used: {error}") from error

    def _open_empty(self) -> _Stream:
        if isinstance(self.to, JournalAddress):
            return _Journal(self.to.directory)
        from ingest.sinks.kafka_sink import KafkaSink  # here, because a journal needs no Kafka client

        sink = KafkaSink(self.to, self._cluster, self._stop, self._recorded.refuse)
        if sink.has_records():
            sink.close()
            raise _not_empty(self.to)
        return sink


class _Journal:
    """A new journal that keeps a past of any length."""

    def __init__(self, directory: Path) -> None:
        try:
            if end_offset(directory):  # checked first, because opening cuts off another writer's incomplete end
                raise _not_empty(JournalAddress(directory))
            self._writer = JournalWriter(directory, retain_bytes=None)
        except (JournalError, OSError) as error:
            raise IngestError(str(error)) from error
        if self._writer.end_offset:
            self.close()
            raise _not_empty(JournalAddress(directory))

    def append(self, records: Sequence[Record]) -> None:
        """Append all records to the journal, or no record."""
        try:
            self._writer.append([encode_record(record) for record in records])
        except JournalRemovedError as error:
            raise IngestError(
                f"{error}. Its readers lack the removed records. Begin again with an empty stream"
            ) from error
        except JournalError as error:
            raise SinkUnavailableError(str(error)) from error

    def close(self) -> None:
        """Let another process write."""
        self._writer.close()


def _not_empty(to: Address) -> IngestError:
    return IngestError(f"{to} has records already. Name a new or empty stream for the recorded cluster. or empty")


class RecordedCluster:
    """Identity of the recorded cluster, which is compared with the Kafka that its past is written to."""

    def __init__(self, to: Address) -> None:
        self._to = to
        self._kafka: KafkaIdentity | None = None
        self._cluster_id: str | None = None
        self._addresses: dict[BrokerId, set[str]] = {}

    def refuse(self, kafka: KafkaIdentity) -> None:
        """Raise IngestError if this Kafka is the recorded cluster, now or once a later record shows it."""
        self._kafka = kafka
        shown = evidence_of_one(kafka, self._cluster_id, lambda broker: self._addresses.get(broker, ()))
        if shown:
            raise IngestError(
                f"{self._to} is in the recorded cluster itself ({shown}), to which Kontrast never writes. "
                "Use another Kafka, or a journal"
            )

    def note(self, record: Record) -> None:
        """Note the record's facts about the cluster. Raise IngestError."""
        if record.kind is not RecordKind.NODE:
            return
        where = locate(record.path)
        if where.place is Place.CLUSTER_ID:
            with suppress(ZnodeError):
                self._cluster_id = decode(record.content, ClusterIdZnode).id
        elif where.place is Place.BROKER:
            self._addresses[where.broker] = registered_addresses(record.raw)
        else:
            return
        if self._kafka is not None:
            self.refuse(self._kafka)
