"""Published states of a cluster's znodes, so that a complete read publishes only differences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.contract.records import RecordKind
from ingest.observed.observations import Known, Observation, Value
from ingest.observed.paths import rank


class Tree:
    """State of each znode as its readers know it: published and acknowledged."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    @property
    def known(self) -> Mapping[str, Known]:
        """Return the published state by path."""
        return self._known

    def apply(self, observations: Iterable[Observation]) -> None:
        """Remember these observations, which are published now."""
        for observation in observations:
            if observation.kind is RecordKind.DELETED:
                self._known.pop(observation.path, None)
            elif observation.kind is RecordKind.CREATED:
                self._known[observation.path] = Known(observation.zxid, -1, -1)
            elif observation.value is not None:
                value = observation.value
                self._known[observation.path] = Known(value.czxid, value.mzxid, value.version)

    def newest_lost_zxid(self, values: Mapping[str, Value]) -> int:
        """Return the newest published change of a znode that now shows an older one, -1 without such a znode."""
        known = self._known
        lost = (
            known[path].mzxid for path, value in values.items() if path in known and value.mzxid < known[path].mzxid
        )
        return max(lost, default=-1)

    def differences(self, values: Mapping[str, Value]) -> list[Observation]:
        """Return the observations that a complete read adds, causes first. The order inside the gap is lost."""
        vanished = [
            Observation(kind=RecordKind.DELETED, path=path, resync=True) for path in self._known if path not in values
        ]
        changed = [
            node(path, value, resync=True)
            for path, value in values.items()
            if self._known.get(path) != (value.czxid, value.mzxid, value.version)
        ]
        return sorted([*vanished, *changed], key=lambda observation: (rank(observation.path), observation.zxid))


def complete(values: Mapping[str, Value]) -> list[Observation]:
    """Everything that a complete read found, causes first."""
    return sorted(
        (node(path, value) for path, value in values.items()),
        key=lambda observation: (rank(observation.path), observation.zxid),
    )


def node(path: str, value: Value, *, resync: bool = False) -> Observation:
    """Return a znode with its value, as a complete read found it."""
    return Observation(kind=RecordKind.NODE, path=path, value=value, zxid=value.mzxid, resync=resync)
