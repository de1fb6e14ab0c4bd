"""A cluster from one complete read of its ZooKeeper, over a session without watches."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from cli.printing import standard_error
from cli.sources import Source
from controller.restore.stored_context import new_context
from ingest.config import ZooKeeperConfig
from ingest.errors import StoppedError
from questions.gathering import Gathering
from questions.picture import Picture
from questions.question import NotFoundError, Scope
from streaming.config import BrokersConfig

if TYPE_CHECKING:
    from ingest.complete_read import CompleteRead
    from ingest.copied_znodes import CopiedZnodes

_NAMED_CHROOTS: Final = 10
_Read = TypeVar("_Read", "CompleteRead", "CopiedZnodes")


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
        gathering = Gathering(new_context(self.cluster, *self.brokers.read()))  # no past, so no story
        from ingest.complete_read import read_once  # not for --help

        with without_garbage_collection():
            read = read_cluster(self.config, stop, partial(read_once, only_topics=scope.topics))
            # A topic with a hidden state is hidden, too, because its partitions would seem to have lost their states.
            hidden = {"/".join(path.split("/")[:4]) for path in read.forbidden}
            shown = (
                {path: value for path, value in read.values.items() if path not in hidden} if hidden else read.values
            )
            records = replace(read, values=shown).records(self.cluster)
            return gathering.look(records, read.written_ms, read.forbidden, has_all_topics=scope.topics is None)


def read_cluster(
    config: ZooKeeperConfig,
    stop: threading.Event,
    read: Callable[[ZooKeeperConfig, threading.Event, Callable[[int, int], None]], _Read],
) -> _Read:
    """Read a cluster once with a bar. Raise StoppedError, and NotFoundError if there is no cluster."""
    with standard_error.progress() as show:
        found = read(config, stop, show)
    if stop.is_set():
        raise StoppedError
    if not found.values and not found.forbidden:
        raise NotFoundError(where_clusters_are(config, stop))
    return found


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
