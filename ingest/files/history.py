"""Turn ZooKeeper's transactions into the records of a forwarder that missed no change.

- A snapshot file is a complete read in a generation of its own. The first generation is 1, and each bridge over a gap
  adds one. The read has the time of its newest znode.
- A transaction's records stay together, causes before effects. Each has the transaction's time by the clock of
  ZooKeeper's leader. If this time is less than a second before the newest time, the newest time replaces it. A larger
  step back is taken as it is. A znode that changed several times has one record with its final value. A recreated znode
  has its new czxid.
- A transaction without a change has no record, unless the controller requested it. A heartbeat then shows that the
  controller lives. Up to 2.3 each failover deletes requests that do not exist.
- The log has no heartbeats, but deadlines need heartbeats. Each second of the transactions' time gets one, and each
  three-hundredth of a silence over five minutes. After the last transaction heartbeats continue for ten seconds, or up
  to the part that `until` omits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from controller.contract.forwarder_status import FROM_FILES, ForwarderStatus
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import LATEST_MS, Record, RecordKind, data_fields
from controller.rules.timing import CLOCK_STEP_MS
from ingest.files.data_directory import Chroot, Snapshot, Until, ZooKeeperFiles
from ingest.files.snapshot_file import SnapshotNode
from ingest.files.transaction_log import ChangeKind, LoggedTransaction, ZnodeChange
from ingest.observed.observations import Value
from ingest.observed.paths import is_recorded, rank
from ingest.observed.tree import complete

HEARTBEAT_MS: Final = 1_000
SILENT_HEARTBEATS: Final = 300  # after so many heartbeats, the interval is this part of the silence so far
TRAILING_MS: Final = 10_000
_STATUS: Final = ForwarderStatus(session=FROM_FILES, watch_mode="transaction-log")
_HEARTBEAT: Final = msgspec.json.encode(_STATUS).decode()
_BEGINNING: Final = msgspec.json.encode(replace(_STATUS, clock_of="ZooKeeper's leader")).decode()


class _Znode(NamedTuple):
    """A watched znode's stat, as far as ZooKeeper's next change needs it."""

    czxid: Zxid
    mzxid: Zxid
    version: int
    ephemeral_owner: int


class _WatchedZnodes:
    """The stat of each watched znode, with paths below the chroot."""

    def __init__(self) -> None:
        self._znodes: dict[str, _Znode] = {}
        self._by_session: dict[int, set[str]] = {}

    @property
    def znodes(self) -> Mapping[str, _Znode]:
        """Return the stats by path."""
        return self._znodes

    def put(self, path: str, znode: _Znode) -> None:
        """Remember a znode as it is now."""
        self.remove(path)
        self._znodes[path] = znode
        if znode.ephemeral_owner:
            self._by_session.setdefault(znode.ephemeral_owner, set()).add(path)

    def remove(self, path: str) -> None:
        """Forget a znode."""
        znode = self._znodes.pop(path, None)
        if znode is not None and znode.ephemeral_owner:
            owned = self._by_session[znode.ephemeral_owner]
            owned.discard(path)
            if not owned:
                del self._by_session[znode.ephemeral_owner]

    def owned_by(self, session: int) -> frozenset[str]:
        """Return the session's ephemeral znodes."""
        return frozenset(self._by_session.get(session, ()))


class FileHistory:
    """Records of one cluster's history, from its ZooKeeper's files. Raise IngestError.

    The history begins with the newest good snapshot before `start_zxid`, or before the oldest log. `files` knows the
    progress and the damage, `below` the chroot.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        cluster: str,
        *,
        chroot: str = "",
        start_zxid: Zxid | None = None,
        until: Until | None = None,
        matters: Callable[[str], bool] = is_recorded,
    ) -> None:
        self.below = Chroot(chroot, matters)
        self.files = ZooKeeperFiles(directories, wanted=self.below.wants, start_zxid=start_zxid, until=until)
        self._cluster = cluster
        self._watched = _WatchedZnodes()
        self._generation = 0
        self._next_seq = 0
        self._zxid = UNKNOWN_ZXID
        self._now_ms = 0
        self._heartbeat_ms = 0
        self._silent_since_ms = 0

    def records(self) -> Iterator[Record]:
        """Return every record in order. Raise IngestError."""
        for item in self.files.read():
            if isinstance(item, Snapshot):
                yield from self._read_snapshot(item)
            else:
                if item.time_ms < self._now_ms - CLOCK_STEP_MS:
                    # The duration of the preceding silence is unknown.
                    self._now_ms = self._silent_since_ms = self._heartbeat_ms = item.time_ms
                yield from self._heartbeats(item.time_ms)
                self._zxid = item.zxid
                self._heartbeat_ms = max(self._heartbeat_ms, item.time_ms - HEARTBEAT_MS)  # the silence is over
                self._now_ms = self._silent_since_ms = max(self._now_ms, item.time_ms)
                yield from self._transaction(item)
        yield from self._heartbeats(self._end_ms())

    def last_znodes(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> dict[str, Value]:
        """Return the znodes at the end, by path below the chroot."""
        values: dict[str, Value] = {}
        for record in self.records():
            if is_asked_to_stop():
                break
            if record.kind is RecordKind.SNAPSHOT_BEGIN:
                values = {}
            elif record.kind is RecordKind.DELETED:
                values.pop(record.path, None)
            elif record.kind is RecordKind.NODE:
                stat = record.czxid, record.mzxid, record.version, record.ephemeral_owner
                values[record.path] = Value(record.raw, *stat)
        return values

    def _record(self, kind: RecordKind, zxid: Zxid, **fields: Any) -> Record:  # noqa: ANN401 (a record's fields)
        record = Record(
            cluster=self._cluster,
            generation=self._generation,
            seq=self._next_seq,
            kind=kind,
            observed_ms=min(max(0, self._now_ms), LATEST_MS),  # a server's clock may have been set to anything
            zxid=zxid,
            **fields,
        )
        self._next_seq += 1
        return record

    def _value_record(self, path: str, value: Value, zxid: Zxid, **evidence: int) -> Record:
        return self._record(
            RecordKind.NODE,
            zxid,
            path=path,
            czxid=value.czxid,
            mzxid=value.mzxid,
            version=value.version,
            ephemeral_owner=value.ephemeral_owner,
            ctime_ms=value.registered_ms,
            **data_fields(value.data),
            **evidence,
        )

    # --- snapshots

    def _read_snapshot(self, snapshot: Snapshot) -> Iterator[Record]:
        values = {self.below.path(node.path): _value(node) for node in snapshot.nodes}
        znodes = {path: _znode(value) for path, value in values.items()}
        if snapshot.continues and znodes == self._watched.znodes:
            return  # no transaction is missing before the snapshot
        if self._generation:
            self.files.notes.append(
                f"the logs lack the transactions between zxid {self._zxid:#x} and {snapshot.zxid:#x}"
            )
        self._watched = _WatchedZnodes()
        for path, znode in znodes.items():
            self._watched.put(path, znode)
        self._generation += 1
        self._zxid = snapshot.zxid
        self._now_ms = self._silent_since_ms = self._heartbeat_ms = max(self._now_ms, snapshot.time_ms)
        yield self._record(RecordKind.SNAPSHOT_BEGIN, snapshot.zxid, data=_BEGINNING)
        for observation in complete(values):
            yield self._value_record(observation.path, values[observation.path], observation.zxid)
        yield self._record(RecordKind.SNAPSHOT_END, snapshot.zxid)

    # --- transactions

    def _transaction(self, transaction: LoggedTransaction) -> Iterator[Record]:
        ended = self._apply(transaction)
        evidence = {"author": transaction.session, "cxid": transaction.cxid}
        if not transaction.changes and transaction.closed is None and self._is_controllers(transaction.session):
            yield self._record(RecordKind.HEARTBEAT, transaction.zxid, data=_HEARTBEAT, **evidence)
        for path in sorted(ended, key=rank):
            value = ended[path]
            if value is None:
                yield self._record(RecordKind.DELETED, transaction.zxid, path=path, **evidence)
            else:
                yield self._value_record(path, value, transaction.zxid, **evidence)

    def _is_controllers(self, session: int) -> bool:
        controller = self._watched.znodes.get("/controller")
        return controller is not None and controller.ephemeral_owner == session

    def _apply(self, transaction: LoggedTransaction) -> dict[str, Value | None]:
        """Return the watched znodes that the transaction touched, as they are at its end, None for a deleted znode."""
        ended: dict[str, Value | None] = {}
        for change in transaction.changes:
            if self.below.wants(change.path):
                self._change(self.below.path(change.path), change, transaction.zxid, ended)
        if transaction.closed is not None:
            named = {self.below.path(path) for path in transaction.closed if self.below.wants(path)}
            gone = self._watched.owned_by(transaction.session) | (named & self._watched.znodes.keys())
            for path in sorted(gone):
                self._watched.remove(path)
                ended[path] = None
        return ended

    def _change(self, path: str, change: ZnodeChange, zxid: Zxid, ended: dict[str, Value | None]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._watched.remove(path)
            ended[path] = None
            return
        known = self._watched.znodes.get(path)
        if change.kind is ChangeKind.CREATED:
            znode = _Znode(zxid, zxid, change.version, change.ephemeral_owner)
        elif known is None:
            znode = _Znode(UNKNOWN_ZXID, zxid, change.version, 0)  # deleted while the snapshot was written
        elif known.mzxid >= zxid and path not in ended:
            return  # the snapshot has the change already
        else:
            znode = known._replace(mzxid=zxid, version=change.version)
        self._watched.put(path, znode)
        ended[path] = Value(change.data, *znode)

    # --- time

    def _heartbeats(self, until_ms: int) -> Iterator[Record]:
        if not self._generation:
            return
        while True:
            silence_ms = self._heartbeat_ms - self._silent_since_ms
            due_ms = self._heartbeat_ms + max(HEARTBEAT_MS, silence_ms // SILENT_HEARTBEATS)
            if due_ms > until_ms:
                return
            self._heartbeat_ms = due_ms
            self._now_ms = max(self._now_ms, due_ms)
            yield self._record(RecordKind.HEARTBEAT, self._zxid, data=_HEARTBEAT)

    def _end_ms(self) -> int:
        trailing_ms = self._silent_since_ms + TRAILING_MS
        until_ms, stopped_before_ms = self.files.until.time_ms, self.files.stopped_before_ms
        if stopped_before_ms is None:
            return trailing_ms if until_ms is None else min(trailing_ms, until_ms)
        return min(stopped_before_ms - 1, trailing_ms if until_ms is None else until_ms)


def _value(node: SnapshotNode) -> Value:
    return Value(node.data, node.czxid, node.mzxid, node.version, node.ephemeral_owner, ctime_ms=node.ctime_ms)


def _znode(value: Value) -> _Znode:
    return _Znode(value.czxid, value.mzxid, value.version, value.ephemeral_owner)
