"""Leases for restarts, at most one in a cluster, in the memory of this process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from controller.contract.ids import BrokerId

SHORTEST_LEASE_SECONDS: Final = 10
LONGEST_LEASE_SECONDS: Final = 3600  # the holder extends it, so that a lost holder blocks restarts for an hour at most


class Lease(msgspec.Struct, frozen=True):
    """Permission of one holder to restart one broker, until it expires at `until_ms` of the server's clock."""

    broker: BrokerId
    holder: str
    until_ms: int
    seconds_left: int


class _Held(NamedTuple):
    broker: BrokerId
    holder: str
    ends_at: float  # in seconds of the steady clock, which a changed wall clock does not move


class Leases:
    """Leases by cluster. Any thread may call each method."""

    def __init__(self, steady_seconds: Callable[[], float] = time.monotonic) -> None:
        self._steady_seconds: Final = steady_seconds
        self._one_at_a_time = threading.Lock()
        self._held: dict[str, _Held] = {}

    def held(self, cluster: str, now_ms: int) -> Lease | None:
        """Return the cluster's lease, unless it has expired."""
        with self._one_at_a_time:
            held = self._unexpired(cluster)
        return None if held is None else self._shown(held, now_ms)

    def take(self, cluster: str, broker: BrokerId, holder: str, seconds: int, now_ms: int) -> Lease:
        """Take the lease if it is free, or extend the holder's own for this broker. Return the lease in force then."""
        with self._one_at_a_time:
            held = self._unexpired(cluster)
            if held is None or held[:2] == (broker, holder):
                held = self._held[cluster] = _Held(broker, holder, self._steady_seconds() + seconds)
        return self._shown(held, now_ms)

    def release(self, cluster: str, broker: BrokerId, holder: str, now_ms: int) -> Lease | None:
        """End the holder's lease for this broker and return it, if it is held."""
        with self._one_at_a_time:
            held = self._unexpired(cluster)
            if held is None or held[:2] != (broker, holder):
                return None
            del self._held[cluster]
        return self._shown(held, now_ms)

    def _unexpired(self, cluster: str) -> _Held | None:
        held = self._held.get(cluster)
        if held is not None and held.ends_at <= self._steady_seconds():
            del self._held[cluster]
            return None
        return held

    def _shown(self, held: _Held, now_ms: int) -> Lease:
        left = max(0.0, held.ends_at - self._steady_seconds())
        return Lease(held.broker, held.holder, now_ms + round(left * 1000), math.ceil(left))
