"""A cluster from records, which are applied as the job applies them: of `kontrast watch`, or of ZooKeeper's files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from cli.followed_outputs import Where, lines_until_now
from cli.printing import standard_error
from cli.sources import Source
from controller.contract.records import BadRecordError, Record, RecordKind, decode_record, newest_complete_reads
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from ingest.errors import StoppedError
from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from questions.gathering import Gathering
from questions.picture import Picture
from questions.question import NotFoundError, Scope
from streaming.config import BrokersConfig

_RECORDS_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class FilesSource(Source):
    """The dataDir of a ZooKeeper server, and its dataLogDir if that is another directory, up to a moment."""

    is_live: ClassVar[bool] = False
    has_past: ClassVar[bool] = True
    directories: tuple[Path, ...]
    chroot: str
    until: Until | None
    cluster: str
    brokers: BrokersConfig

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return the cluster at the end of the files, or at the wanted moment."""
        history = FileHistory(self.directories, self.cluster, chroot=self.chroot, until=self.until)
        gathering = Gathering(new_context(self.cluster, *self.brokers.read()), scope.keeps)
        take_all({self.cluster: gathering}, history.records(), stop)
        for note in history.files.notes:
            standard_error.say(note)
        if not gathering.has_znodes:
            raise NotFoundError(history.below.without_cluster())
        return gathering.picture()


def take_all(gatherings: Mapping[str, Gathering], records: Iterable[Record], stop: threading.Event) -> None:
    """Apply the records of these clusters, some at a time. Raise StoppedError."""
    iterator: Iterator[Record] = iter(records)
    while block := list(islice(iterator, _RECORDS_AT_ONCE)):
        if stop.is_set():
            raise StoppedError
        for cluster, of_cluster in groupby(block, attrgetter("cluster")):
            gatherings[cluster].take(list(of_cluster))


class FirstChange(NamedTuple):
    """The line of a cluster's first change to read, and the settings of its brokers."""

    line: int
    brokers: BrokersConfig


def pictures_of_changes(
    where: Where,
    clusters: Mapping[str, FirstChange],
    keeps: Callable[[Row], bool],
    until: Until,
    stop: threading.Event,
) -> dict[str, Picture]:
    """Return these clusters after their changes from a line on, up to the moment. Raise ServeError, StoppedError."""
    of_clusters = (each for each in _placed_records(where, stop) if each[1].cluster in clusters)
    records = (record for at, record in _until(of_clusters, until) if at >= clusters[record.cluster].line)
    gatherings = {name: Gathering(new_context(name, *brokers.read()), keeps) for name, (_, brokers) in clusters.items()}
    take_all(gatherings, records, stop)
    return {name: gathering.picture() for name, gathering in gatherings.items()}


def newest_records(where: Where, stop: threading.Event) -> Iterator[Record]:
    """Yield each cluster's records from its newest complete read on. Raise ServeError, StoppedError."""
    begun = beginnings(where, Until(), stop)
    for at, record in _placed_records(where, stop):
        begin = begun.get(record.cluster)
        if begin is not None and at >= begin:
            yield record


def beginnings(where: Where, until: Until, stop: threading.Event) -> dict[str, int | None]:
    """Return the line of each cluster's newest complete read until the moment, if there is one."""
    known: set[str] = set()

    def noted() -> Iterator[tuple[int, Record]]:
        for at, record in _placed_records(where, stop):
            (known.discard if record.kind is RecordKind.FORGOTTEN else known.add)(record.cluster)
            yield at, record

    complete = newest_complete_reads(_until(noted(), until))
    return {cluster: complete.get(cluster) for cluster in known}


def _placed_records(where: Where, stop: threading.Event) -> Iterator[tuple[int, Record]]:
    for at, line in enumerate(lines_until_now(where, None, stop)):
        try:
            yield at, decode_record(line)
        except BadRecordError:
            continue  # the job rejects such a line, too, and `step` sees the gap in the numbers


def _until(placed: Iterable[tuple[int, Record]], until: Until) -> Iterator[tuple[int, Record]]:
    """Yield the records of each cluster, up to its first record after the moment."""
    ended: set[str] = set()
    for at, record in placed:
        if until.is_passed(record.zxid, record.observed_ms):
            ended.add(record.cluster)
        if record.cluster not in ended:
            yield at, record
