"""The znodes of `ZooKeeperInMemory`, with ZooKeeper's rules for reads, changes and transactions."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    ZookeeperError,
)
from kazoo.protocol import serialization as kazoo
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions

from ingest.files.jute import Jute

_EPHEMERAL, _SEQUENTIAL = 1, 2
_ANY_VERSION = -1
_FROM_THE_BEGINNING = ("/zookeeper", "/zookeeper/config", "/zookeeper/quota")


class EventKind(IntEnum):
    """Kinds of events, by their numbers on the wire."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILD = 4


class Event(NamedTuple):
    """What happened to a znode. If its ACL hides it, nobody is told, but one-shot watches end."""

    kind: EventKind
    path: str
    zxid: int
    is_hidden: bool


@dataclass
class _Znode:
    """One znode, and what its Stat does not take from other fields."""

    data: bytes | None
    acls: list[ACL]
    created_zxid: int = 0
    changed_zxid: int = 0
    children_zxid: int = 0
    created_ms: int = 0
    changed_ms: int = 0
    owner: int = 0
    version: int = 0
    acl_version: int = 0
    children_created: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> bytes:
        """Return the Stat. ZooKeeper, too, derives its cversion from the number of created children."""
        packed: bytes = kazoo.stat_struct.pack(
            self.created_zxid,
            self.changed_zxid,
            self.created_ms,
            self.changed_ms,
            self.version,
            self.children_created * 2 - len(self.children),
            self.acl_version,
            self.owner,
            len(self.data or b""),
            len(self.children),
            self.children_zxid,
        )
        return packed

    def allows(self, permission: int) -> bool:
        """Return whether the ACL gives this permission to everybody."""
        return any(acl.perms & permission for acl in self.acls if acl.id.scheme == "world")

    def require(self, permission: int) -> None:
        """Raise NoAuthError if the ACL does not give this permission to everybody."""
        if not self.allows(permission):
            raise NoAuthError


class Znodes:
    """The tree, the number of its newest change, and the events of the change that goes on."""

    def __init__(self) -> None:
        self.zxid = 0
        self.failed_at = 0  # the place in its transaction of the newest failed change
        self._znodes = {"/": _Znode(b"", OPEN_ACL_UNSAFE, children_created=-1)}  # /zookeeper does not count
        self._events: list[Event] = []
        for path in _FROM_THE_BEGINNING:
            self.create(path, b"", OPEN_ACL_UNSAFE, flags=0, owner=0)

    def stat(self, path: str) -> bytes:
        """Return the Stat."""
        znode = self._existing(path)
        znode.require(Permissions.READ)
        return znode.stat()

    def value(self, path: str) -> bytes:
        """Return data and Stat."""
        znode = self._existing(path)
        znode.require(Permissions.READ)
        return bytes(kazoo.write_buffer(znode.data)) + znode.stat()

    def children(self, path: str) -> bytes:
        """Return the names of the children."""
        znode = self._existing(path)
        znode.require(Permissions.READ)
        return struct.pack("!i", len(znode.children)) + b"".join(map(kazoo.write_string, znode.children))

    def children_and_stat(self, path: str) -> bytes:
        """Return the names of the children, and the Stat."""
        return self.children(path) + self.stat(path)

    def acl_and_stat(self, path: str) -> bytes:
        """Return the ACL and the Stat."""
        znode = self._existing(path)
        znode.require(Permissions.READ | Permissions.ADMIN)
        acls = [
            struct.pack("!i", perms) + kazoo.write_string(scheme) + kazoo.write_string(name)
            for perms, (scheme, name) in znode.acls
        ]
        return struct.pack("!i", len(acls)) + b"".join(acls) + znode.stat()

    def change(self, changes: Sequence[Change]) -> tuple[list[bytes], list[Event]]:
        """Make all changes under one zxid, or none. Return their results and events. Raise ZookeeperError."""
        self.zxid += 1  # a failed change has a number, too
        self._events = []
        # A single change raises before it begins.
        before = self._copy() if len(changes) > 1 else self._znodes
        results: list[bytes] = []
        try:
            for change in changes:
                results.append(change(self))
        except ZookeeperError:
            self._znodes, self.failed_at = before, len(results)
            raise
        return results, self._events

    def without_ephemerals(self, owner: int) -> list[Event]:
        """Delete the ephemeral znodes of a session that ends. Return the events."""
        owned = [path for path, znode in self._znodes.items() if znode.owner == owner]
        return self.change([partial(Znodes.delete, path=path, version=_ANY_VERSION) for path in owned])[1]

    def create(  # noqa: PLR0913 (the fields of the request)
        self, path: str, data: bytes | None, acls: list[ACL], flags: int, owner: int, *, with_stat: bool = False
    ) -> bytes:
        """Create a znode. Return its path."""
        parent_path, _, name = path.rpartition("/")
        parent = self._existing(parent_path or "/")
        parent.require(Permissions.CREATE)
        if flags & _SEQUENTIAL:
            name = f"{name}{parent.children_created:010d}"
        path = f"{parent_path}/{name}"
        if path in self._znodes:
            raise NodeExistsError
        if parent.owner:
            raise NoChildrenForEphemeralsError
        now_ms = time.time_ns() // 1_000_000
        owner = owner if flags & _EPHEMERAL else 0
        znode = self._znodes[path] = _Znode(data, acls, self.zxid, self.zxid, self.zxid, now_ms, now_ms, owner)
        parent.children[name] = None
        parent.children_created += 1
        parent.children_zxid = self.zxid
        self._tell(EventKind.CREATED, path, znode)
        self._tell(EventKind.CHILD, parent_path or "/", parent)
        return bytes(kazoo.write_string(path)) + (znode.stat() if with_stat else b"")

    def delete(self, path: str, version: int) -> bytes:
        """Delete a znode without children."""
        parent_path, _, name = path.rpartition("/")
        self._existing(parent_path or "/").require(Permissions.DELETE)
        parent, znode = self._znodes[parent_path or "/"], self._of_version(path, version)
        if znode.children:
            raise NotEmptyError
        del self._znodes[path], parent.children[name]
        parent.children_zxid = self.zxid
        self._tell(EventKind.DELETED, path, znode)
        self._tell(EventKind.CHILD, parent_path or "/", parent)
        return b""

    def set_data(self, path: str, data: bytes | None, version: int) -> bytes:
        """Write a znode. Return its Stat."""
        self._existing(path).require(Permissions.WRITE)
        znode = self._of_version(path, version)
        znode.data = data
        znode.version += 1
        znode.changed_zxid, znode.changed_ms = self.zxid, time.time_ns() // 1_000_000
        self._tell(EventKind.CHANGED, path, znode)
        return znode.stat()

    def set_acl(self, path: str, acls: list[ACL], version: int) -> bytes:
        """Replace the ACL, of which no watch tells. Return the Stat."""
        znode = self._existing(path)
        znode.require(Permissions.ADMIN)
        if version not in (_ANY_VERSION, znode.acl_version):
            raise BadVersionError
        znode.acls = acls
        znode.acl_version += 1
        return znode.stat()

    def check(self, path: str, version: int) -> bytes:
        """Raise BadVersionError if the znode has another version."""
        self._existing(path).require(Permissions.READ)
        self._of_version(path, version)
        return b""

    def _copy(self) -> dict[str, _Znode]:
        return {path: replace(znode, children=dict(znode.children)) for path, znode in self._znodes.items()}

    def _existing(self, path: str) -> _Znode:
        if path not in self._znodes:
            raise NoNodeError
        return self._znodes[path]

    def _of_version(self, path: str, version: int) -> _Znode:
        znode = self._existing(path)
        if version not in (_ANY_VERSION, znode.version):
            raise BadVersionError
        return znode

    def _tell(self, kind: EventKind, path: str, znode: _Znode) -> None:
        self._events.append(Event(kind, path, self.zxid, not znode.allows(Permissions.READ)))


Change = Callable[[Znodes], bytes]


def _acls(packet: Jute) -> list[ACL]:
    return [ACL(packet.integer(), Id(packet.text(), packet.text())) for _ in range(packet.count())]


def _create(packet: Jute, owner: int, *, with_stat: bool = False) -> Change:
    path, data, acls, flags = packet.text(), packet.buffer(), _acls(packet), packet.integer()
    return partial(Znodes.create, path=path, data=data, acls=acls, flags=flags, owner=owner, with_stat=with_stat)


# By operation, the function that reads a change from a request of this session.
CHANGES: Mapping[int, Callable[[Jute, int], Change]] = {
    kazoo.Create.type: _create,
    kazoo.Create2.type: partial(_create, with_stat=True),
    kazoo.Delete.type: lambda packet, _: partial(Znodes.delete, path=packet.text(), version=packet.integer()),
    kazoo.SetData.type: lambda packet, _: partial(
        Znodes.set_data, path=packet.text(), data=packet.buffer(), version=packet.integer()
    ),
    kazoo.SetACL.type: lambda packet, _: partial(
        Znodes.set_acl, path=packet.text(), acls=_acls(packet), version=packet.integer()
    ),
    kazoo.CheckVersion.type: lambda packet, _: partial(Znodes.check, path=packet.text(), version=packet.integer()),
}
