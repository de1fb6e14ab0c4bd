"""The complete read: every znode that gets records, in few requests.

Here belongs which znodes there are, and how they are read once without watching; what a reading means for readers is
`tree`'s business.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ingest.config import ZooKeeperConfig
from ingest.errors import IngestError
from ingest.inbox import Inbox
from ingest.observations import Value
from ingest.paths import PARENTS, SINGLE_ZNODES, TOPICS, partitions_path, state_path
from ingest.reading import ConnectionLostError
from ingest.zookeeper import WatchedZooKeeper

_LOG = logging.getLogger("kontrast.ingest.snapshot")

_STOP_CHECK_SECONDS = 0.2
_JUTE_MAXBUFFER_BYTES = 0xFFFFF


def read_everything(
    zookeeper: WatchedZooKeeper, show: Callable[[int, int], None] = lambda _count, _total: None
) -> dict[str, Value]:
    """The value of each recorded znode that exists; raises ConnectionLostError.

    Not of one moment: with the watches set before, what changes meanwhile comes as events. `show` is told how many
    znodes were read, of how many.
    """
    children = zookeeper.read_children(PARENTS)
    for parent, names in children.items():
        _complain_of_a_long_list(parent, names)
    below_parents = [f"{parent}/{child}" for parent in PARENTS for child in children.get(parent, [])]
    topics = children.get(TOPICS, [])
    partitions = zookeeper.read_children([partitions_path(topic) for topic in topics])
    states = [
        state_path(topic, partition) for topic in topics for partition in partitions.get(partitions_path(topic), [])
    ]
    paths = [*SINGLE_ZNODES, *below_parents, *states]
    values = zookeeper.read_values(paths, lambda count: show(count, len(paths))).values
    return {path: value for path, value in values.items() if value is not None}


def _complain_of_a_long_list(parent: str, names: list[str]) -> None:
    """Say what ZooKeeper does not: that Kafka cannot read this list, though this client can."""
    size_bytes = sum(4 + len(name.encode()) for name in names)
    if size_bytes > _JUTE_MAXBUFFER_BYTES:
        _LOG.error(
            "the %d names below %s take %d bytes, more than ZooKeeper's default limit of %d: a Kafka controller that "
            "starts cannot read them unless jute.maxbuffer is raised, on every broker and every ZooKeeper server",
            len(names),
            parent,
            size_bytes,
            _JUTE_MAXBUFFER_BYTES,
        )


def read_once(
    config: ZooKeeperConfig, stop: threading.Event, show: Callable[[int, int], None] = lambda _count, _total: None
) -> dict[str, Value]:
    """All of a cluster as it is now, over a session of its own that watches nothing; nothing if asked to stop.

    A connection that is lost meanwhile is tried again. Raises IngestError where ZooKeeper cannot be reached or read.
    """
    inbox = Inbox()
    zookeeper = WatchedZooKeeper(config, inbox, stop)
    try:
        zookeeper.start()
        wait_for_connection(config, inbox, stop)
        deadline = time.monotonic() + config.connect_timeout_seconds
        while not stop.is_set():
            try:
                zookeeper.begin_reading()
                return read_everything(zookeeper, show)
            except ConnectionLostError:
                zookeeper.check_login()
            if time.monotonic() >= deadline:
                raise IngestError(f"the connection to ZooKeeper at {config.zookeeper} was lost again and again")
            stop.wait(_STOP_CHECK_SECONDS)
        return {}
    finally:
        zookeeper.close()


def wait_for_connection(
    config: ZooKeeperConfig,
    inbox: Inbox,
    stop: threading.Event,
    still_trying: Callable[[], None] = lambda: None,
) -> None:
    """Return when the session has begun, which is its first state, or if asked to stop; raises IngestError."""
    deadline = time.monotonic() + config.connect_timeout_seconds
    while not stop.is_set() and not inbox.wait(_STOP_CHECK_SECONDS):
        if time.monotonic() >= deadline:
            raise IngestError(
                f"ZooKeeper at {config.zookeeper} could not be reached within {config.connect_timeout_seconds:g} s: "
                "check that it runs and that the address is right"
            )
        still_trying()
