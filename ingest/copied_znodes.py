"""Single read, without watches, of every znode that a migration to KRaft copies, with the znodes' owners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kazoo.protocol.serialization import GetACL

from ingest.besides import answers, identity_of
from ingest.complete_read import ask_once, read_everything
from ingest.config import ZooKeeperConfig
from ingest.observed.observations import Value
from ingest.observed.paths import COPIED_BESIDES, COPIED_SINGLE_BESIDES, PARENTS, SINGLE_ZNODES
from ingest.zookeeper.client import WatchedZooKeeper

_PARENTS: Final = (*PARENTS, *SINGLE_ZNODES, *COPIED_BESIDES, *COPIED_SINGLE_BESIDES)
_SECRET: Final = ("/config/users/", "/config/brokers/", "/delegation_token/tokens/")


@dataclass(frozen=True, slots=True)
class CopiedZnodes:
    """The values by path, the paths that an ACL hides, and the owners of a znode as (scheme, id) pairs."""

    values: Mapping[str, Value]
    forbidden: frozenset[str] = frozenset()
    owners: Mapping[str, frozenset[tuple[str, str]]] | None = None


def read_copied_znodes(
    config: ZooKeeperConfig, stop: threading.Event, show: Callable[[int, int], None] = lambda _count, _total: None
) -> CopiedZnodes:
    """Return all copied znodes of a cluster, or an empty result if asked to stop. Raise IngestError."""

    def ask(zookeeper: WatchedZooKeeper) -> CopiedZnodes:
        values = read_everything(zookeeper, show)
        values |= _read_besides(zookeeper)
        hidden = set(zookeeper.forbidden)
        # The ACL matters of parents and of znodes that Kafka hides. A topic has its parent's owner.
        guarded = sorted({*_PARENTS, *(path for path in values if path.startswith(_SECRET))})
        acls = answers(zookeeper, GetACL, guarded, hidden)
        owners = {path: frozenset(map(identity_of, found[0])) for path, found in acls if found is not None}
        return CopiedZnodes(values, frozenset(hidden), owners)

    return ask_once(config, stop, ask, CopiedZnodes({}))


def _read_besides(zookeeper: WatchedZooKeeper) -> dict[str, Value]:
    paths = list(COPIED_SINGLE_BESIDES)
    level = list(COPIED_BESIDES)
    while level:
        children = zookeeper.read_children(level)
        level = [f"{parent}/{name}" for parent, names in children.items() for name in names]
        paths += level
    return {path: value for path, value in zookeeper.read_values(paths).values.items() if value is not None}
