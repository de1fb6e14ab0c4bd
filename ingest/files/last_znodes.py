"""Znodes at the end of a ZooKeeper server's files, from the newest snapshot and every later transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ingest.files.data_directory import Snapshot, Until, ZooKeeperFiles
from ingest.files.transaction_log import ChangeKind, LoggedTransaction
from ingest.observed.observations import Value
from ingest.observed.paths import is_copied

_ANY_KAFKA: Final = "/controller_epoch"


class LastZnodes:
    """Znodes of one cluster that a migration copies, from copied files. Raise IngestError.

    `notes` has a sentence for each fault, `other_chroots` the other Kafka clusters.
    """

    def __init__(self, directories: Sequence[Path], *, chroot: str = "", until: Until | None = None) -> None:
        self._prefix = chroot.rstrip("/")
        self.other_chroots: set[str] = set()
        self._znodes: dict[str, Value] = {}
        self._files = ZooKeeperFiles(directories, wanted=self._wants, until=until)
        self.notes = self._files.notes

    def read(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> dict[str, Value]:
        """Return the values by path below the chroot."""
        for item in self._files.read():
            if is_asked_to_stop():
                break
            if isinstance(item, Snapshot):
                self._znodes = {
                    node.path[len(self._prefix) :]: Value(
                        node.data, node.czxid, node.mzxid, node.version, node.ephemeral_owner
                    )
                    for node in item.nodes
                }
            else:
                self._apply(item)
        return self._znodes

    def _wants(self, path: str) -> bool:
        prefix = self._prefix
        if (not prefix or path.startswith(f"{prefix}/")) and is_copied(path[len(prefix) :]):
            return True
        if path.endswith(_ANY_KAFKA):
            self.other_chroots.add(path[: -len(_ANY_KAFKA)] or "/")
        return False

    def _apply(self, transaction: LoggedTransaction) -> None:
        for change in transaction.changes:
            if not self._wants(change.path):
                continue
            path = change.path[len(self._prefix) :]
            known = self._znodes.get(path)
            if change.kind is ChangeKind.DELETED:
                self._znodes.pop(path, None)
            elif known is None or change.kind is ChangeKind.CREATED:
                zxid, owner = transaction.zxid, change.ephemeral_owner
                self._znodes[path] = Value(change.data, zxid, zxid, change.version, owner)
            elif known.mzxid <= transaction.zxid:  # otherwise the snapshot has the change already
                made, owner = known.czxid, known.ephemeral_owner
                self._znodes[path] = Value(change.data, made, transaction.zxid, change.version, owner)
        if transaction.closed is not None:
            session = transaction.session
            for path in [path for path, value in self._znodes.items() if value.ephemeral_owner == session]:
                del self._znodes[path]
