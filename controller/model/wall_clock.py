"""Wall time of a cluster's moments in rows, by the forwarder's wall clock, which may have been set since.

Deadlines follow the time in `clock`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from controller.contract.row import MOMENT

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class WallClock(msgspec.Struct, frozen=True, array_like=True):
    """Lead of the wall clock over the cluster's time, for moments from `from_ms` on."""

    from_ms: int
    ahead_ms: int


WallClocks = tuple[WallClock, ...]


def shown(row: _Struct, walls: WallClocks) -> _Struct:
    """Return the row with its moments by the wall clock."""
    changed: dict[str, Any] = {}
    for name in _moments_of(type(row)):
        value = getattr(row, name)
        in_wall_time = _shown_value(value, walls)
        if in_wall_time != value:
            changed[name] = in_wall_time
    return msgspec.structs.replace(row, **changed) if changed else row


def _shown_value(value: Any, walls: WallClocks) -> Any:  # noqa: ANN401 (of any field that has a moment in it)
    if isinstance(value, tuple):
        return tuple(_shown_value(part, walls) for part in value)
    if isinstance(value, msgspec.Struct):
        return shown(value, walls)
    return shown_ms(value, walls) if value else value  # None and 0 are unknown moments


def shown_ms(moment_ms: int, walls: WallClocks) -> int:
    """Return a known moment of the cluster's time by the wall clock, in milliseconds since 1970."""
    ahead_ms = walls[0].ahead_ms
    for wall in walls:
        if wall.from_ms <= moment_ms:
            ahead_ms = wall.ahead_ms
    return max(0, moment_ms + ahead_ms)


@lru_cache(None)
def _moments_of(row_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the fields that are moments or contain moments, by their types."""
    info = msgspec.inspect.type_info(row_type)
    assert isinstance(info, msgspec.inspect.StructType)
    return tuple(field.name for field in info.fields if _has_moment(field.type))


def _has_moment(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, msgspec.inspect.Metadata):
        return kind.extra == MOMENT
    if isinstance(kind, msgspec.inspect.UnionType):
        return any(map(_has_moment, kind.types))
    if isinstance(kind, msgspec.inspect.VarTupleType):
        return _has_moment(kind.item_type)
    return isinstance(kind, msgspec.inspect.StructType) and any(_has_moment(field.type) for field in kind.fields)
