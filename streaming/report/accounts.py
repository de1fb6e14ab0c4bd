"""Accounts of clusters in Spark's executors, from rows, changes, or ZooKeeper's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from controller.contract.outputs import BadRowError, decode_row
from controller.contract.records import LATEST_MS, BadRecordError, Record, decode_record
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.errors import IngestError
from ingest.files.data_directory import Until
from ingest.files.history import History
from questions.report.account import EVER_MS, Account, Part, added_up
from questions.report.cluster_report import report_of
from streaming.report.config import ReportConfig, ZooKeeperFiles
from streaming.report.routed import UNROUTED, Batches, in_batches

PARTS_SCHEMA: Final = "cluster string, content binary"
_ARROW: Final = pa.schema([("cluster", pa.string()), ("content", pa.binary())])
_RECORDS_AT_ONCE: Final = 1_000


class _Line(NamedTuple):
    """The parts of a routed line that its account needs."""

    cluster: str
    subject: str
    output: str
    order: tuple[int, int, int]
    value: bytes


@dataclass(frozen=True, slots=True)
class PartsOfLines:
    """Function that returns the parts of clusters from their lines, which come by cluster and subject, in order."""

    config: ReportConfig
    complete_from_ms: int  # before this time the outputs have only rows that compaction kept

    def __call__(self, batches: Batches) -> Batches:
        """Return the parts, in Spark's form."""
        groups = groupby(_lines(batches), key=lambda line: (line.cluster, line.subject))
        return _encoded((cluster, self._part(cluster, lines)) for (cluster, _), lines in groups)

    def _part(self, cluster: str, lines: Iterator[_Line]) -> Part:
        if cluster == UNROUTED:
            said = [line.value.decode() for line in lines]
            return Part(unreadable=said.count(""), notes=[words for words in said if words])
        first = next(lines)
        whole = _chained(first, lines)
        return self._of_rows(whole) if first.output else self._of_changes(cluster, whole)

    def _of_rows(self, lines: Iterator[_Line]) -> Part:
        account = Account(max(self.complete_from_ms, self.config.since_ms or EVER_MS), _end(self.config))
        unreadable = 0
        for line in _newest_of_each_place(lines):
            try:
                row = decode_row(line.value)
            except BadRowError:
                unreadable += 1
                continue
            if isinstance(row, Row):
                account.take(row)
        part = account.part()
        part.unreadable, part.complete_from_ms = unreadable, self.complete_from_ms
        return part

    def _of_changes(self, cluster: str, lines: Iterator[_Line]) -> Part:
        unreadable = 0

        def records() -> Iterator[Record]:
            nonlocal unreadable
            for line in lines:
                try:
                    yield decode_record(line.value)
                except BadRecordError:  # `step` sees the gap in the numbers
                    unreadable += 1

        part = part_of_records(cluster, records(), self.config)
        part.unreadable = unreadable
        return part


@dataclass(frozen=True, slots=True)
class PartsOfFiles:
    """Parts of the clusters with these numbers, from their ZooKeeper's files. A note names unreadable files."""

    config: ReportConfig

    def __call__(self, batches: Batches) -> Batches:
        """Return the parts, in Spark's form."""
        assert isinstance(self.config.source, ZooKeeperFiles)
        clusters = sorted(self.config.source.directories)
        numbers = (number for batch in batches for number in batch.column("id").to_pylist())
        return _encoded((clusters[number], self._part(clusters[number], self.config.source)) for number in numbers)

    def _part(self, cluster: str, files: ZooKeeperFiles) -> Part:
        until = None if self.config.until_ms is None else Until(time_ms=self.config.until_ms)
        try:
            history = History(files.directories[cluster], cluster, chroot=files.chroot, until=until)
            part = part_of_records(cluster, history.records(), self.config)
        except IngestError as error:
            return Part(notes=[str(error)], failed=True)
        part.notes = list(history.files.notes)
        if not part.topics and not part.brokers:
            others = " and ".join(sorted(history.other_chroots))
            hint = f"They have one below {others}. Give --chroot" if others else "Check --zk-data"
            named = " and ".join(map(str, files.directories[cluster]))
            part.notes.append(f"{named}: no Kafka cluster below {files.chroot}. {hint}")
            part.failed = True
        return part


def part_of_records(cluster: str, records: Iterable[Record], config: ReportConfig) -> Part:
    """Return the part of a cluster, from the steps of its records."""
    account = Account(config.since_ms or EVER_MS, _end(config))
    account.begin(EVER_MS)
    brokers = config.brokers_of(cluster)
    context = new_context(cluster, *brokers.read(), topic_ranks=brokers.topic_ranks)
    waiting, last = iter(records), None
    while block := list(islice(waiting, _RECORDS_AT_ONCE)):
        outcome = steps(context, block)
        context, last = outcome.context, block[-1]
        for row in outcome.effects:
            account.take(row)
    if last is not None:
        account.take_counts(context, last)
    return account.part()


@dataclass(frozen=True, slots=True)
class ReportsOfParts:
    """Function that returns the reports of clusters from their parts, which come by cluster."""

    config: ReportConfig

    def __call__(self, batches: Batches) -> Batches:
        """Return the reports, in Spark's form."""
        decoder = msgspec.msgpack.Decoder(Part)
        contents = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        wholes = (
            (cluster, added_up(decoder.decode(part) for _, part in parts))
            for cluster, parts in groupby(contents, key=lambda row: row[0])
        )
        since_ms, until_ms = self.config.since_ms, self.config.until_ms
        return in_batches(
            ((name, msgspec.msgpack.encode(report_of(name, whole, since_ms, until_ms))) for name, whole in wholes),
            _ARROW,
        )


def _lines(batches: Batches) -> Iterator[_Line]:
    names = ("cluster", "subject", "output", "generation", "seq", "ordinal", "value")
    for batch in batches:
        for cluster, subject, output, *order, value in zip(*(batch.column(n).to_pylist() for n in names), strict=True):
            yield _Line(cluster, subject, output, tuple(order), value)


def _newest_of_each_place(lines: Iterator[_Line]) -> Iterator[_Line]:
    """Return the last written line of each place. A repeated batch can contain a line twice."""
    held: _Line | None = None
    for line in lines:
        if held is not None and held.order != line.order:
            yield held
        held = line
    if held is not None:
        yield held


def _chained(first: _Line, others: Iterator[_Line]) -> Iterator[_Line]:
    yield first
    yield from others


def _end(config: ReportConfig) -> int:
    return LATEST_MS if config.until_ms is None else config.until_ms


def _encoded(parts: Iterable[tuple[str, Part]]) -> Batches:
    return in_batches(((cluster, msgspec.msgpack.encode(part)) for cluster, part in parts), _ARROW)
