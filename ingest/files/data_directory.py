"""Content of a ZooKeeper server's data directories: their history, and their znodes at the end.

A history is one snapshot file and every later transaction. It begins with the newest good snapshot file before its
start, or before the first log. Without such a file it begins with the oldest later snapshot file. A server that lags
far behind gets a snapshot instead of transactions. The history then continues from that snapshot file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from ingest.errors import IngestError
from ingest.files.jute import DamagedFileError
from ingest.files.snapshot_file import SnapshotNode, read_snapshot
from ingest.files.transaction_log import LoggedTransaction, read_log

_LOG: Final = re.compile(r"log\.([0-9a-f]{1,16})")
_SNAPSHOT: Final = re.compile(r"snapshot\.([0-9a-f]{1,16})(\.gz|\.snappy)?")
_DATA_FOLDER: Final = "version-2"
# The first transaction of a server without data, alone and in an ensemble's first epoch.
_FIRST_ZXIDS: Final = (1, (1 << 32) + 1)
_NEVER: Final = Zxid(1 << 64)
_COUNTER: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Until:
    """The inclusive end of a history, as a zxid or a time in milliseconds since 1970."""

    zxid: Zxid | None = None
    time_ms: int | None = None

    @property
    def text(self) -> str:
        """Return the end as options name it."""
        return str(self.time_ms) if self.zxid is None else f"{self.zxid:#x}"

    def is_passed(self, zxid: Zxid, time_ms: int) -> bool:
        """Return whether this zxid and time are after the end."""
        return (self.zxid is not None and zxid > self.zxid) or (self.time_ms is not None and time_ms > self.time_ms)


class Snapshot(NamedTuple):
    """Every wanted znode at a zxid.

    `continues` means that no transaction is missing before the snapshot. A reader may then know all znodes already.
    """

    zxid: Zxid
    time_ms: int
    nodes: tuple[SnapshotNode, ...]
    continues: bool = False


class _File(NamedTuple):
    """A file with a zxid in its name, which is a log's first transaction, or a snapshot's last."""

    zxid: Zxid
    path: Path


class ZooKeeperFiles:
    """Logs and snapshots of one server, from its dataDir and its separate dataLogDir.

    `wanted` returns whether a path matters. During `read`, `notes` collects a sentence for each fault, and `read_bytes`
    grows up to `total_bytes`. Raise IngestError.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        wanted: Callable[[str], bool] = lambda _: True,
        start_zxid: Zxid | None = None,
        until: Until | None = None,
    ) -> None:
        folders = [_data_folder(directory) for directory in directories]
        self._named = " and ".join(map(str, folders))
        self._logs = _numbered(folders, _LOG)
        self._snapshots = [file for file in _numbered(folders, _SNAPSHOT) if file.path.suffix != ".snappy"]
        self._compressed = [file for file in _numbered(folders, _SNAPSHOT) if file.path.suffix == ".snappy"]
        if not (self._logs or self._snapshots or self._compressed):
            raise IngestError(f"{self._named} has no log.* or snapshot.* file. Name a ZooKeeper server's dataDir")
        self._wanted = wanted
        self._start_zxid = start_zxid
        self._damage: DamagedFileError | None = None
        self._zxid = UNKNOWN_ZXID
        self.until = until or Until()
        self.notes: list[str] = []
        self.stopped_before_ms: int | None = (
            None  # the time of the first omitted transaction, if `until` ended the history
        )
        self.read_bytes = self._finished_bytes = 0
        self.total_bytes = sum(file.path.stat().st_size for file in self._logs)

    def read(self) -> Iterator[Snapshot | LoggedTransaction]:
        """Return the history in order. Raise IngestError if it cannot continue."""
        first = self._first_snapshot_file()
        if self.until.is_passed(first.zxid, first.time_ms):
            raise IngestError(f"the history in {self._named} begins after the wanted end, with zxid {first.zxid:#x}")
        self._zxid = first.zxid
        yield first
        following = [log.zxid for log in self._logs[1:]] + [_NEVER]
        for log, next_zxid in zip(self._logs, following, strict=False):
            if next_zxid > self._zxid + 1:
                yield from self._read_log(log, is_newest=next_zxid == _NEVER)
                if self.stopped_before_ms is not None:
                    return
            self._finished_bytes += log.path.stat().st_size
            self.read_bytes = self._finished_bytes

    def _read_log(self, log: _File, *, is_newest: bool) -> Iterator[Snapshot | LoggedTransaction]:
        def at(offset: int) -> None:
            self.read_bytes = self._finished_bytes + offset

        try:
            for transaction in read_log(log.path, at):
                if transaction.zxid <= self._zxid:
                    continue
                if self.until.is_passed(transaction.zxid, transaction.time_ms):
                    self.stopped_before_ms = transaction.time_ms
                    return
                yield from self._snapshots_before(transaction.zxid)
                if transaction.zxid > self._zxid:
                    self._zxid = transaction.zxid
                    yield transaction
        except DamagedFileError as damage:
            self.notes.append(str(damage))
            if not is_newest:
                self._damage = damage

    # --- the beginning

    def _first_snapshot_file(self) -> Snapshot:
        first_log = self._logs[0].zxid if self._logs else _NEVER
        start = first_log if self._start_zxid is None else self._start_zxid
        usable = [file for file in self._snapshots if file.zxid >= first_log or _follows(file.zxid, first_log)]
        for file in reversed([file for file in usable if file.zxid < start]):
            if snapshot := self._load(file):
                return self._with_time(snapshot)
        if first_log in _FIRST_ZXIDS:
            return self._with_time(Snapshot(Zxid(first_log - 1), 0, ()))
        # If a snapshot is too old for the logs, a newer snapshot may bridge the gap.
        too_old = [file for file in self._snapshots if file not in usable]
        for file in [*(file for file in usable if file.zxid >= start), *reversed(too_old)]:
            if snapshot := self._load(file):
                if self._start_zxid is not None:
                    self.notes.append(f"the history begins with zxid {file.zxid:#x}, not with the wanted start")
                return self._with_time(snapshot)
        raise IngestError(self._why_no_snapshot())

    def _why_no_snapshot(self) -> str:
        if self._compressed:
            return (
                f"{self._compressed[0].path} is compressed with snappy, which Kontrast does not read, and "
                f"{self._named} has no other good snapshot. Let ZooKeeper write them plain or gzipped "
                "(zookeeper.snapshot.compression.method=gz)"
            )
        return (
            f"{self._named} has no good snapshot that its logs could continue. If the server keeps them apart, name "
            "both its dataDir and its dataLogDir" + "".join(f"; {note}" for note in self.notes)
        )

    def _load(self, file: _File) -> Snapshot | None:
        newest_ms = 0
        nodes = []
        try:
            for node in read_snapshot(file.path):
                newest_ms = max(newest_ms, node.mtime_ms)
                # A znode that is newer than the snapshot's name was created while the snapshot was written.
                if node.czxid <= file.zxid and self._wanted(node.path):
                    nodes.append(node)
        except DamagedFileError as damage:
            self.notes.append(str(damage))
            return None
        return Snapshot(file.zxid, newest_ms, tuple(nodes))

    def _with_time(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with a time, even if its znodes lack a time."""
        if snapshot.time_ms or not self._logs:
            return snapshot
        try:
            return snapshot._replace(time_ms=next((entry.time_ms for entry in read_log(self._logs[0].path)), 0))
        except DamagedFileError:
            return snapshot

    # --- gaps

    def _snapshots_before(self, zxid: Zxid) -> Iterator[Snapshot]:
        """Return snapshots that may bridge the gap before the transaction."""
        follows, damage = _follows(self._zxid, zxid), self._damage
        self._damage = None
        new_epoch = zxid != self._zxid + 1
        if damage and (not follows or (new_epoch and not damage.torn)):
            raise IngestError(f"{damage}, and its content before {zxid:#x} is needed. Restore the file from a backup")
        if follows and not new_epoch:
            return
        snapshot = self._bridge(zxid)
        if snapshot is not None:
            yield snapshot._replace(continues=follows)
            self._zxid = snapshot.zxid
        elif not follows:
            raise IngestError(
                f"{self._named} lacks the transactions between {self._zxid:#x} and {zxid:#x}. Put the missing log file "
                f"back, or begin after them with --from {zxid:#x} if there is a snapshot"
            )

    def _bridge(self, zxid: Zxid) -> Snapshot | None:
        """Return the newest good snapshot right before the transaction, else the oldest snapshot after it."""
        later = [file for file in self._snapshots if file.zxid > self._zxid]
        right_before = [file for file in later if file.zxid < zxid and _follows(file.zxid, zxid)]
        after = [] if _follows(self._zxid, zxid) else [file for file in later if file.zxid >= zxid]
        candidates = (self._load(file) for file in (*reversed(right_before), *after))
        return next((snapshot for snapshot in candidates if snapshot is not None), None)


def _follows(before: int, zxid: Zxid) -> bool:
    """Return whether two zxids are adjacent. In a new epoch the count restarts."""
    return zxid == before + 1 or (zxid >> 32 > before >> 32 and zxid & _COUNTER <= 1)


def _data_folder(directory: Path) -> Path:
    folder = directory / _DATA_FOLDER
    if folder.is_dir():
        return folder
    if not directory.is_dir():
        raise IngestError(f"{directory} is no directory. Name a ZooKeeper server's dataDir")
    return directory


def _numbered(folders: Sequence[Path], name: re.Pattern[str]) -> list[_File]:
    try:
        found = [(name.fullmatch(path.name), path) for folder in folders for path in folder.iterdir()]
    except OSError as error:
        raise IngestError(f"{error.filename} cannot be read: {error.strerror}") from error
    return sorted(_File(Zxid(int(match[1], 16)), path) for match, path in found if match)


_ANY_KAFKA: Final = "/controller_epoch"


class Chroot:
    """Kafka's paths below ZooKeeper's chroot, if there is one, and the chroots of other clusters in the files."""

    def __init__(self, chroot: str, matters: Callable[[str], bool]) -> None:
        self._prefix = chroot.rstrip("/")
        self._matters = matters
        self.others: set[str] = set()

    def wants(self, path: str) -> bool:
        """Return whether the znode is below the chroot and matters."""
        prefix = self._prefix
        if (not prefix or path.startswith(f"{prefix}/")) and self._matters(path[len(prefix) :]):
            return True
        if path.endswith(_ANY_KAFKA):
            self.others.add(path[: -len(_ANY_KAFKA)] or "/")
        return False

    def path(self, path: str) -> str:
        """Return Kafka's name of a znode below the chroot."""
        return path[len(self._prefix) :]

    def without_cluster(self) -> str:
        """Return a sentence that there is no cluster below the chroot, with the other clusters."""
        others = " and ".join(sorted(self.others))
        hint = f"they have one below {others}. Give --chroot" if others else "check --zk-data"
        return f"the files have no Kafka cluster below {self._prefix or '/'}, {hint}"
