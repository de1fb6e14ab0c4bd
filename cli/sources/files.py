"""A cluster at some moment by the files of a ZooKeeper server, with its whole past in the files."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Final

from cli.printing import standard_error
from cli.running import StoppedError
from cli.sources.source import Source
from controller.contract.records import Record
from controller.restore.stored_context import new_context
from ingest.files.data_directory import Until
from ingest.files.history import History
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
        history = History(self.directories, self.cluster, chroot=self.chroot, until=self.until)
        gathering = Gathering(
            new_context(self.cluster, *self.brokers.read(), topic_ranks=self.brokers.topic_ranks), scope.keeps
        )
        take_all({self.cluster: gathering}, history.records(), stop)
        for note in history.files.notes:
            standard_error.say(note)
        if not gathering.has_znodes:
            others = " and ".join(sorted(history.other_chroots))
            hint = f"they have one below {others}: give --chroot" if others else "check --zk-data"
            raise NotFoundError(f"the files have no Kafka cluster below {self.chroot}; {hint}")
        return gathering.picture()


def take_all(gatherings: Mapping[str, Gathering], records: Iterable[Record], stop: threading.Event) -> None:
    """Apply the records of these clusters, some at a time. Raise StoppedError."""
    iterator: Iterator[Record] = iter(records)
    while block := list(islice(iterator, _RECORDS_AT_ONCE)):
        if stop.is_set():
            raise StoppedError
        for cluster, of_cluster in groupby(block, attrgetter("cluster")):
            gatherings[cluster].take(list(of_cluster))
