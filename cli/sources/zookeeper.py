"""A cluster from one complete read of its ZooKeeper, over a session without watches."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final

from cli.running import StoppedError
from cli.sources.source import Source
from controller.contract.records import Record
from controller.restore.stored_context import new_context
from ingest.config import ZooKeeperConfig
from questions.gathering import Gathering
from questions.picture import Picture
from questions.question import NotFoundError, Scope
from streaming.config import BrokersConfig

_NAMED_CHROOTS: Final = 10


@dataclass(frozen=True, slots=True)
class ZooKeeperSource(Source):
    """The ZooKeeper of a cluster."""

    is_live: ClassVar[bool] = True
    has_past: ClassVar[bool] = False
    config: ZooKeeperConfig
    cluster: str
    brokers: BrokersConfig

    def picture(self, scope: Scope, stop: threading.Event) -> Picture:
        """Return the present cluster without a past."""
        gathering = Gathering(
            new_context(self.cluster, *self.brokers.read(), topic_ranks=self.brokers.topic_ranks)
        )  # no past, so no story
        with without_garbage_collection():
            return gathering.look(*self._read(scope, stop), has_all_topics=scope.topics is None)

    def _read(self, scope: Scope, stop: threading.Event) -> tuple[list[Record], dict[str, int], frozenset[str]]:
        """Return records of a complete read, the write times of its znodes, and the hidden paths."""
        from ingest.complete_read import read_once  # not for --help

        with shown_progress() as show:
            read = read_once(self.config, stop, show, scope.topics)
        if stop.is_set():
            raise StoppedError
        if not read.values and not read.forbidden:
            raise NotFoundError(where_clusters_are(self.config, stop))
        return read.records(self.cluster), read.written_ms, read.forbidden


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Turn Python's garbage collector off, because it takes a tenth of the time of a read of 200,000 partitions.

    It would find nothing, because all objects are in use. The objects of an earlier read are collected before.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def where_clusters_are(config: ZooKeeperConfig, stop: threading.Event) -> str:
    """Return a sentence that the address has no cluster, with the ensemble's other clusters."""
    from ingest.complete_read import find_chroots

    found = find_chroots(config, stop)
    addresses = [f"{config.servers}{chroot.rstrip('/')}" for chroot in found[:_NAMED_CHROOTS]]
    more = f" and {len(found) - _NAMED_CHROOTS} more" if len(found) > _NAMED_CHROOTS else ""
    others = f"there is one at {' and at '.join(addresses)}{more}" if found else "check the address"
    return f"there is no Kafka cluster at ZooKeeper {config.servers}{config.chroot}: {others}"


@contextmanager
def shown_progress() -> Iterator[Callable[[int, int], None]]:
    """Yield the update of a bar on standard error, which is drawn only if a person sees standard error."""
    if not sys.stderr.isatty():
        yield lambda _count, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("read", BarColumn(), MofNCompleteColumn(), "znodes", TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("read", total=None)
        yield lambda count, total: progress.update(task, completed=count, total=total)
