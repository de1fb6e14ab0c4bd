"""Published states of a cluster's znodes, so that a complete read publishes only differences, without IO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from controller.contract.forwarder_status import LargeZnode
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import RecordKind
from ingest.observed.observations import Known, Observation, Value, Values
from ingest.observed.paths import rank

_LARGE_BYTES: Final = 64 * 1024  # a sixteenth of jute.maxbuffer's default
_LARGEST_NAMED: Final = 5
_LENGTH_BYTES: Final = 4  # before each name in an answer


class Tree:
    """State of each znode as readers of the stream know it, because it was published and acknowledged."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._list_bytes: Counter[str] = Counter()
        self._large: dict[str, int] = {}

    @property
    def known(self) -> Mapping[str, Known]:
        """Return the published state by path."""
        return self._known

    def apply(self, observations: Iterable[Observation]) -> None:
        """Remember these observations, which are published now."""
        for observation in observations:
            path = observation.path
            if observation.kind is RecordKind.DELETED:
                if self._known.pop(path, None) is not None:
                    self._count_in_list(path, -1)
                self._large.pop(path, None)
            elif observation.kind is RecordKind.CREATED:
                self._put(path, Known(observation.zxid, UNKNOWN_ZXID, -1))
            elif observation.value is not None:
                value = observation.value
                self._put(path, Known(value.czxid, value.mzxid, value.version))
                size_bytes = len(value.data or b"")
                if size_bytes >= _LARGE_BYTES:
                    self._large[path] = size_bytes
                elif self._large:
                    self._large.pop(path, None)

    def _put(self, path: str, known: Known) -> None:
        if path not in self._known:
            self._count_in_list(path, 1)
        self._known[path] = known

    def _count_in_list(self, path: str, times: int) -> None:
        if not path.endswith("/state"):  # partitions have short lists
            parent, _, name = path.rpartition("/")
            self._list_bytes[parent] += times * (_LENGTH_BYTES + len(name.encode()))

    def largest(self) -> tuple[LargeZnode, ...]:
        """Return the largest znodes and lists of children, with the bytes that an answer carries."""
        lists = ((path, size_bytes) for path, size_bytes in self._list_bytes.items() if size_bytes >= _LARGE_BYTES)
        by_size = sorted([*self._large.items(), *lists], key=lambda item: (-item[1], item[0]))
        return tuple(LargeZnode(path, size_bytes) for path, size_bytes in by_size[:_LARGEST_NAMED])

    def newest_lost_zxid(self, values: Mapping[str, Value]) -> Zxid:
        """Return the newest published change of a znode that now shows an older change, -1 without such a znode."""
        known = self._known
        lost = (
            known[path].mzxid for path, value in values.items() if path in known and value.mzxid < known[path].mzxid
        )
        return max(lost, default=UNKNOWN_ZXID)

    def differences(self, values: Mapping[str, Value]) -> list[Observation]:
        """Return the observations that a complete read adds, causes first. The order inside the gap is lost."""
        return self.differences_at({**dict.fromkeys(self._known), **values})

    def differences_at(self, values: Values) -> list[Observation]:
        """Return the observations that these reads add, causes first."""
        known = self._known
        vanished = [
            Observation(kind=RecordKind.DELETED, path=path, resync=True)
            for path, value in values.items()
            if value is None and path in known
        ]
        changed = [
            node(path, value, resync=True)
            for path, value in values.items()
            if value is not None and known.get(path) != (value.czxid, value.mzxid, value.version)
        ]
        return sorted([*vanished, *changed], key=lambda observation: (rank(observation.path), observation.zxid))


def complete(values: Mapping[str, Value]) -> list[Observation]:
    """Return an observation of each value that a complete read found, causes first."""
    return sorted(
        (node(path, value) for path, value in values.items()),
        key=lambda observation: (rank(observation.path), observation.zxid),
    )


def node(path: str, value: Value, *, resync: bool = False) -> Observation:
    """Return a znode with its value, as a complete read found it."""
    return Observation(kind=RecordKind.NODE, path=path, value=value, zxid=value.mzxid, resync=resync)
