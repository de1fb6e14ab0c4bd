"""Published states of a cluster's znodes, so that a complete read publishes only differences, without IO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from controller.contract.forwarder_status import LargeZnode
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import RecordKind
from ingest.observed.observations import Known, Observation, Value, Values
from ingest.observed.paths import Rank, is_partition_state, is_request, rank

_LARGE_BYTES: Final = 64 * 1024  # a sixteenth of jute.maxbuffer's default
_LARGEST_NAMED: Final = 5
_LENGTH_BYTES: Final = 4  # before each name in an answer

_Place = tuple[int, int, int]  # zxid, rank, and depth of a deletion
_LAST: Final = 1 << 63  # after every zxid


class PublishedTree:
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
        """Return the history that a complete read adds, as `differences_at` orders it."""
        return self.differences_at({**dict.fromkeys(self._known), **values})

    def differences_at(self, values: Values) -> list[Observation]:
        """Return the history that these reads add.

        Another czxid shows that a znode was deleted and created again. Creations come in the order of their czxids,
        changes of their mzxids. A topic comes before its partitions' states, because a merged value may have caused
        them. No zxid tells when a znode vanished, so facts vanish before all changes, and requests after all of them or
        before the next request, because a request is removed once its effects are written.
        """
        found: list[tuple[_Place, Observation]] = []
        below: dict[str, Zxid] = {}  # the first change of a state, by topic
        for path, value in values.items():
            known = self._known.get(path)
            is_new = known is None or (value is not None and UNKNOWN_ZXID != known.czxid != value.czxid)
            if known is not None and (value is None or is_new):
                vanished = Observation(kind=RecordKind.DELETED, path=path, resync=True)
                found.append((_place_of_deletion(path, value), vanished))
            if value is not None and known != (value.czxid, value.mzxid, value.version):
                state = is_partition_state(path)
                zxid = value.czxid if is_new and not state else value.mzxid
                found.append(((zxid, rank(path), 0), node(path, value, resync=True)))
                if state:
                    topic = path.split("/partitions/")[0]
                    below[topic] = min(zxid, below.get(topic, zxid))
        first = ((_before_states(place, below.get(each.path)), each) for place, each in found)
        return [observation for _, observation in sorted(first, key=lambda item: item[0])]


def _place_of_deletion(path: str, value: Value | None) -> _Place:
    """Return the place of a deletion. ZooKeeper deletes children before their parents."""
    if is_request(path):
        return (_LAST if value is None else value.czxid), -1, 0
    return UNKNOWN_ZXID, min(rank(path), Rank.CAUSE), -path.count("/")


def _before_states(place: _Place, first_state: Zxid | None) -> _Place:
    return place if first_state is None or place[0] < 0 else (min(place[0], first_state), *place[1:])


def complete(values: Mapping[str, Value]) -> list[Observation]:
    """Return an observation of each value that a complete read found, causes first."""
    return sorted(
        (node(path, value) for path, value in values.items()),
        key=lambda observation: (rank(observation.path), observation.zxid),
    )


def node(path: str, value: Value, *, resync: bool = False) -> Observation:
    """Return a znode with its value, as a complete read found it."""
    return Observation(kind=RecordKind.NODE, path=path, value=value, zxid=value.mzxid, resync=resync)
