"""Records of the modelled ZooKeeper, as the watcher's own code makes them of events, complete reads and differences.

Gaps are of the watcher's kinds. A suspended or lost session hides all changes until the differences are published, an
overflow drops events, and a new process begins a generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import msgspec

from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import Record, RecordKind, data_fields
from ingest.observed.observations import Observation, Value, ZnodeEvent, ZnodeEventKind, observe_window
from ingest.observed.paths import is_partition_state, is_recorded
from ingest.observed.tree import PublishedTree, complete
from lab.modelled_cluster.zookeeper import Change, Znode, ZooKeeper


class Gap(Enum):
    """Reason why the watcher sees no changes."""

    SUSPENDED = "suspended"
    LOST = "lost"
    OVERFLOW = "overflow"  # only creations and deletions are kept
    RESTART = "restart"  # another process begins a generation


class Forwarder:
    """Forwarder that publishes the modelled ZooKeeper like `kontrast watch`."""

    def __init__(
        self, zookeeper: ZooKeeper, apply: Callable[[Record], None], *, reads_log: bool, names_zxids: bool
    ) -> None:
        self.zookeeper = zookeeper
        self.gathers = False  # changes wait for the end of a window
        self.gap: Gap | None = None
        self._reads_log = reads_log
        self._names_zxids = names_zxids or reads_log
        self._apply = apply
        self._tree = PublishedTree()
        self._generation, self._seq = 0, -1
        self._events: list[ZnodeEvent] = []
        self._authors: dict[tuple[str, int], dict[str, int]] = {}
        self._zxid = UNKNOWN_ZXID
        self._is_started = False
        zookeeper.listeners.append(self._hear)

    @property
    def sees_all(self) -> bool:
        """Return whether every change so far is published."""
        return not self.gathers and self.gap is None

    def _hear(self, change: Change) -> None:
        if not self._is_started or not is_recorded(change.path):
            return
        event = ZnodeEvent(_kind(change), change.path, Zxid(change.zxid) if self._names_zxids else UNKNOWN_ZXID)
        is_kept = event.kind is not ZnodeEventKind.CHANGED and not is_partition_state(event.path)
        if self.gap is None or (self.gap is Gap.OVERFLOW and is_kept):
            self._events.append(event)
            if self._reads_log:
                self._authors[change.path, change.zxid] = {"author": change.author, "cxid": change.cxid}
        if self.sees_all:
            self.flush()

    def flush(self) -> None:
        """End the window, with the values that are read after its events."""
        if self.gap is None:
            events, self._events = self._events, []
            values = {event.path: self._value(event.path) for event in events}
            self._publish(observe_window(events, values, self._tree.known))
            self._zxid = Zxid(self.zookeeper.zxid)

    def _publish(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            self._tree.apply([observation])
            fields: dict[str, Any] = self._authors.get((observation.path, observation.zxid), {})
            if observation.value is not None:
                fields = fields | _stat(observation.value)
            self._send(
                observation.kind, path=observation.path, zxid=observation.zxid, resync=observation.resync, **fields
            )

    def _send(self, kind: RecordKind, **fields: Any) -> None:  # noqa: ANN401
        self._seq += 1
        self.zookeeper.now_ms += 5
        now_ms = self.zookeeper.now_ms
        self._apply(
            Record(cluster="c", generation=self._generation, seq=self._seq, kind=kind, observed_ms=now_ms, **fields)
        )

    def _send_status(self, kind: RecordKind, session: str) -> None:
        data = msgspec.json.encode(ForwarderStatus(session, "persistent")).decode()
        self._send(kind, zxid=self._zxid, data=data)

    def _value(self, path: str) -> Value | None:
        znode = self.zookeeper.get(path)
        return None if znode is None else _read(znode)

    def _read_all(self, meanwhile: Callable[[], None]) -> dict[str, Value]:
        """Read every znode that is listed now, while `meanwhile` happens between two halves. Later events wait."""
        self.gap, gathers, self.gathers = None, self.gathers, True
        zxid = Zxid(self.zookeeper.zxid)
        listed = sorted(filter(is_recorded, self.zookeeper.znodes), key=lambda path: (is_partition_state(path), path))
        half = len(listed) // 2
        first = {path: self._value(path) for path in listed[:half]}
        meanwhile()
        values = first | {path: self._value(path) for path in listed[half:]}
        self.gathers, self._zxid = gathers, zxid
        return {path: value for path, value in values.items() if value is not None}

    def read_everything(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Read everything as a new generation, while `meanwhile` happens in ZooKeeper between two halves."""
        if self.gap is None:
            self.flush()
        self._is_started, self._events = True, []
        self._generation, self._seq, self._tree = self._generation + 1, -1, PublishedTree()
        values = self._read_all(meanwhile)
        self._send(RecordKind.SNAPSHOT_BEGIN, zxid=self._zxid)
        self._publish(complete(values))
        self._send(RecordKind.SNAPSHOT_END, zxid=self._zxid)
        self._send_status(RecordKind.SESSION, "connected")
        self.flush()

    def lose(self, gap: Gap) -> None:
        """Begin a gap. Creations and deletions among the waiting events are published, unless the process is gone."""
        if self.gap is not None or self._reads_log:
            return
        self.gap = gap
        if gap in (Gap.SUSPENDED, Gap.LOST):
            self._publish_unread()
            self._send_status(RecordKind.SESSION, gap.value)
        elif gap is Gap.OVERFLOW:
            kept = [event for event in self._events if event.kind is not ZnodeEventKind.CHANGED]
            self._events = [event for event in kept if not is_partition_state(event.path)]

    def _publish_unread(self) -> None:
        unread, self._events = self._events, []
        self._publish(observe_window(unread, {}, self._tree.known))

    def catch_up(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """End a gap, while `meanwhile` happens in ZooKeeper."""
        if self.gap is Gap.RESTART:
            self.read_everything(meanwhile)
        elif self.gap is not None:
            self._publish_unread()
            self._publish(self._tree.differences(self._read_all(meanwhile)))
            self._send_status(RecordKind.SESSION, "connected")
            self.flush()

    def heartbeat(self) -> None:
        """Send a heartbeat, unless the process is gone or busy with too many events."""
        self.flush()
        if self.gap in (None, Gap.SUSPENDED, Gap.LOST):
            self._send_status(RecordKind.HEARTBEAT, "connected" if self.gap is None else self.gap.value)


def _kind(change: Change) -> ZnodeEventKind:
    if change.znode is None:
        return ZnodeEventKind.DELETED
    return ZnodeEventKind.CREATED if change.znode.czxid == change.zxid else ZnodeEventKind.CHANGED


def _read(znode: Znode) -> Value:
    return Value(znode.data, Zxid(znode.czxid), Zxid(znode.mzxid), znode.version, znode.owner, ctime_ms=znode.ctime_ms)


def _stat(value: Value) -> dict[str, Any]:
    created = {"ctime_ms": value.registered_ms} if value.ephemeral_owner else {}
    stat = {"czxid": value.czxid, "mzxid": value.mzxid, "version": value.version}
    return stat | {"ephemeral_owner": value.ephemeral_owner} | created | data_fields(value.data)
