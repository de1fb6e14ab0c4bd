"""A look at znodes without records, for the flaws at which brokers or controllers end. Only the flaws are kept.

The look sets no watch and reports no hidden znode, because users' znodes are hidden in secured clusters.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.serialization import GetACL, GetChildren, GetData
from kazoo.security import ACL

from controller.contract.flaw import Flaw, FoundFlaw
from controller.rules.flaws_besides import GUARDED, LEAST_OF_NAMES, PRODUCER_IDS, Grant, flaw_beside, flaws_besides
from ingest.observed.paths import BROKERS, TOPICS
from ingest.zookeeper.client import WatchedZooKeeper
from wording.sentences import joined

_SINGLES: Final = (PRODUCER_IDS, "/feature", "/cluster/id", "/controller", "/controller_epoch")
_SUBTREES: Final = (
    "/config/brokers",
    "/config/users",
    "/config/clients",
    "/config/ips",
    "/kafka-acl",
    "/kafka-acl-extended",
)
_IN_FLIGHT: Final = 200
_INTERVAL_SECONDS: Final = 60.0


class Besides:
    """Looks of a forwarder, one a minute."""

    def __init__(self, zookeeper: WatchedZooKeeper) -> None:
        self._zookeeper = zookeeper
        self._due_at = time.monotonic()

    def look_if_due(self) -> dict[str, FoundFlaw] | None:
        """Return the flaws by path, None if the next look is not due. Raise ConnectionLostError."""
        if time.monotonic() < self._due_at:
            return None
        self._due_at = time.monotonic() + _INTERVAL_SECONDS
        return look_besides(self._zookeeper)


def look_besides(zookeeper: WatchedZooKeeper) -> dict[str, FoundFlaw]:
    """Return the flaws by path. Raise ConnectionLostError."""
    paths, level, hidden = list(_SINGLES), [BROKERS, *_SUBTREES], set[str]()
    while level:
        below = {path: names for path, names in answers(zookeeper, GetChildren, level) if names is not None}
        level = [f"{parent}/{name}" for parent, names in below.items() for name in names]
        paths += level
        level = [path for path in level if not path.startswith(f"{BROKERS}/")]
    values: dict[str, bytes | None] = {}
    for path, found in answers(zookeeper, GetData, paths, hidden):
        if found is not None:
            values[path] = found[0]
    guarded = (*GUARDED, *(path for path in values if path.startswith(f"{BROKERS}/")))
    grants = {
        path: [Grant(*identity_of(acl), acl.perms) for acl in found[0]]
        for path, found in answers(zookeeper, GetACL, guarded)
        if found is not None
    }
    for parent, names in answers(zookeeper, GetChildren, list(LEAST_OF_NAMES)):
        values |= {path: None for name in names or () if flaw_beside(path := f"{parent}/{name}", None) is not None}
    flaws = flaws_besides(values, grants, hides=hidden)
    registered = {path.removeprefix(f"{BROKERS}/") for path in values if path.startswith(f"{BROKERS}/")}
    if registered and (strays := "; ".join(_elsewhere(zookeeper, registered))):
        flaws.setdefault(BROKERS, FoundFlaw(Flaw.ELSEWHERE, f"lacks {strays}"))
    return flaws


def _elsewhere(zookeeper: WatchedZooKeeper, registered: Collection[str]) -> Iterator[str]:
    """Yield brokers that registered in another chroot by mistake, as they seem, and not as a cluster of their own."""

    def children(paths: Sequence[str]) -> dict[str, Collection[str]]:
        found = answers(zookeeper, GetChildren, paths, absolute=str)
        return {path: names or () for path, names in found}

    own, known = zookeeper.absolute("").rstrip("/"), {int(name) for name in registered if name.isdecimal()}
    roots = ["", *(f"/{name}" for name in children(["/"])["/"])][:_IN_FLIGHT]
    brokers, topics = (children([root + parent for root in roots]) for parent in (BROKERS, TOPICS))
    for root in roots:
        ids = sorted(int(name) for name in brokers[root + BROKERS] if name.isdecimal())
        is_next = len(ids) == 1 and known and min(known) < ids[0] <= max(known) + 1
        if ids and not topics[root + TOPICS] and not known & {*ids} and (not root or is_next or _is_typo(root, own)):
            named = joined(list(map(str, ids)))
            yield f"broker {named}, registered in {root or '/'} of the ensemble, where there is no topic"


def _is_typo(root: str, own: str) -> bool:
    """Return whether the chroots have the same letters, or differ by one. A digit more is meant, as in kafka2."""
    one, other = Counter(root.lower()), Counter(own.lower())
    differ = [*(one - other).elements(), *(other - one).elements()]
    return len(differ) < 2 and all(each.isalpha() for each in differ)


def identity_of(acl: ACL) -> tuple[str, str]:
    """Return the scheme and the id of an entry. A digest's id is the user's name, without the hash of the password."""
    scheme, name = acl.id.scheme, acl.id.id
    return scheme, name.partition(":")[0] if scheme == "digest" else name


def answers(
    zookeeper: WatchedZooKeeper,
    request: Callable[..., object],
    paths: Sequence[str],
    hidden: set[str] | None = None,
    absolute: Callable[[str], str] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield each path with its answer, None for a znode that is absent or hidden."""
    for first in range(0, len(paths), _IN_FLIGHT):
        some = paths[first : first + _IN_FLIGHT]
        zookeeper.pace(len(some))
        arguments = () if request is GetACL else (None,)
        promises = [
            zookeeper.call(request((absolute or zookeeper.absolute)(path).rstrip("/") or "/", *arguments))
            for path in some
        ]
        for path, promise in zip(some, promises, strict=True):
            try:
                yield path, zookeeper.wait(promise)
            except NoNodeError:
                yield path, None
            except NoAuthError:
                if hidden is not None:
                    hidden.add(path)
                yield path, None
