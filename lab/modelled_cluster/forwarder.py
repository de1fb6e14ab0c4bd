"""Records of the modelled ZooKeeper, from complete reads, single changes, windows, and heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.records import Record, RecordKind, data_fields
from lab.modelled_cluster.zookeeper import Change, Znode, ZooKeeper

_FIRST = (
    "/controller",
    "/admin/reassign_partitions",
    "/admin/preferred_replica_election",
    "/brokers/ids/",
    "/brokers/topics/",
    "/config/topics/",
    "/config/brokers/",
    "/admin/delete_topics/",
)
_RANKS = ("/controller", "/brokers/ids/")


class Forwarder:
    """Forwarder that publishes the modelled ZooKeeper like `kontrast watch`."""

    def __init__(self, zookeeper: ZooKeeper, apply: Callable[[Record], None], *, reads_log: bool) -> None:
        self.zookeeper = zookeeper
        self.seen: dict[str, Znode] = {}  # as the records so far show them
        self.gathers = False  # changes wait for the end of a window
        self._reads_log = reads_log
        self._apply = apply
        self._generation, self._seq = 0, -1
        self._window: list[Change] = []
        self._is_started = False
        zookeeper.listeners.append(self._hear)

    def _hear(self, change: Change) -> None:
        if not self._is_started:
            return
        self._window.append(change)
        if not self.gathers:
            self.flush()

    def flush(self) -> None:
        """End the window. Publish each znode's last value in the place that `ingest.observed.observations` gives it."""
        window, self._window = self._window, []
        placed: dict[str, Change] = {}
        for change in window:
            first = placed.get(change.path, change)
            takes_first = first.znode is not None and change.znode is not None and not change.path.endswith("/state")
            placed[change.path] = replace(change, zxid=first.zxid) if takes_first else change
        for change in sorted(placed.values(), key=_place_in_window):
            if self.seen.get(change.path) != change.znode:
                self._publish(change)

    def _publish(self, change: Change) -> None:
        author = {"author": change.author, "cxid": change.cxid} if self._reads_log else {}
        if change.znode is None:
            del self.seen[change.path]
            self._send(RecordKind.DELETED, path=change.path, zxid=change.zxid, **author)
        else:
            self._send_znode(change.path, change.znode, zxid=change.zxid, **author)

    def _send_znode(self, path: str, znode: Znode, **more: Any) -> None:  # noqa: ANN401
        self.seen[path] = znode
        stat = {"czxid": znode.czxid, "mzxid": znode.mzxid, "version": znode.version, "ephemeral_owner": znode.owner}
        created = {"ctime_ms": znode.ctime_ms} if znode.owner else {}
        self._send(RecordKind.NODE, path=path, **stat, **created, **data_fields(znode.data), **more)

    def _send(self, kind: RecordKind, **fields: Any) -> None:  # noqa: ANN401
        self._seq += 1
        self.zookeeper.now_ms += 5
        now_ms = self.zookeeper.now_ms
        self._apply(
            Record(cluster="c", generation=self._generation, seq=self._seq, kind=kind, observed_ms=now_ms, **fields)
        )

    def read_everything(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Read everything as a new generation, while `meanwhile` happens in ZooKeeper between two halves."""
        self.flush()
        self._is_started, gathers, self.gathers = True, self.gathers, True
        self._generation, self._seq = self._generation + 1, -1
        self.seen = {}
        self._send(RecordKind.SNAPSHOT_BEGIN, zxid=self.zookeeper.zxid)
        paths = sorted(self.zookeeper.znodes, key=_place_in_read)
        for path in paths[: len(paths) // 2]:
            self._read(path)
        meanwhile()
        for path in paths[len(paths) // 2 :]:
            self._read(path)
        self._send(RecordKind.SNAPSHOT_END, zxid=self.zookeeper.zxid)
        self._window = [change for change in self._window if change.znode is not None or change.path in self.seen]
        self.gathers = gathers
        self.flush()

    def _read(self, path: str) -> None:
        znode = self.zookeeper.get(path)
        if znode is not None:
            self._send_znode(path, znode)

    def heartbeat(self) -> None:
        """Send a heartbeat."""
        self.flush()
        data = msgspec.json.encode(ForwarderStatus("connected", "persistent")).decode()
        self._send(RecordKind.HEARTBEAT, zxid=self.zookeeper.zxid, data=data)


def _place_in_read(path: str) -> tuple[bool, int, str]:
    rank = next((number for number, first in enumerate(_FIRST) if path.startswith(first)), len(_FIRST))
    return path.endswith("/state"), rank, path


def _place_in_window(change: Change) -> tuple[int, int, str]:
    rank = next((number for number, first in enumerate(_RANKS) if change.path.startswith(first)), 2)
    return change.zxid, rank + change.path.endswith("/state"), change.path
