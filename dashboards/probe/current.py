"""Rows of a cluster that are at least as new as a broker's answer, so that both can be compared."""

from __future__ import annotations

import threading
import time

from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS
from outputs.reading import ReadingCounts
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory

_LOOK_SECONDS = 0.2
_HEARTBEAT_PATIENCE_SECONDS = 15.0


class NothingNewError(Exception):
    """No newer row of the cluster arrived, so a comparison is impossible now."""


class CurrentRows:
    """The newest rows of one cluster, as long as all of them were read and the forwarder is connected."""

    def __init__(self, cluster: str, memory: Memory, reading: ReadingCounts) -> None:
        self.cluster = cluster
        self.memory = memory
        self._reading = reading

    def after(self, time_ms: int, stop: threading.Event) -> ClusterSnapshot:
        """Return the cluster once a heartbeat of this time or later arrived. Raise NothingNewError if none arrives."""
        give_up_at = time.monotonic() + _HEARTBEAT_PATIENCE_SECONDS
        while True:
            snapshot = self.now()
            if _heartbeat_ms(snapshot) >= time_ms:
                return snapshot
            if time.monotonic() >= give_up_at or stop.wait(_LOOK_SECONDS):
                raise NothingNewError

    def now(self) -> ClusterSnapshot:
        """Return the present cluster. Raise NothingNewError while it is not ready."""
        for snapshot in self.memory.clusters():
            is_ready = snapshot.ready and self._reading.snapshot().vouches_for(self.cluster)
            if snapshot.cluster == self.cluster and is_ready and gauges_of(snapshot).session == "connected":
                return snapshot
        raise NothingNewError


def now_ms() -> int:
    """Return the wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def gauges_of(snapshot: ClusterSnapshot) -> GaugesRow:
    """Return the gauges of a cluster that is ready."""
    assert snapshot.gauges is not None, "a cluster that is ready without gauges"
    return snapshot.gauges


def _heartbeat_ms(snapshot: ClusterSnapshot) -> int:
    """Return the earliest time of the newest heartbeat. Kontrast knows a wrong clock only to within some seconds."""
    unsure_ms = CLOCKS_AGREE_WITHIN_MS if snapshot.clock_behind_ms else 0
    return gauges_of(snapshot).time_ms + snapshot.clock_behind_ms - unsure_ms
