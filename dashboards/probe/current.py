"""Rounds of questions about a cluster, and rows that are at least as new as a broker's answer, to compare both."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS
from outputs.reading import ReadingCounts
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory
from wording.sentences import counted

_LOOK_SECONDS = 0.2
_HEARTBEAT_PATIENCE_SECONDS = 15.0
_TRY_AGAIN_SECONDS = 2.0

_logger = logging.getLogger("kontrast.dashboards.probe")


class NothingNewError(Exception):
    """No newer row of the cluster arrived, so a comparison is impossible now."""


class Rounds:
    """Rounds of questions about one cluster, which outlive every answer, because brokers answer what any client wrote.

    An unexpected exception ends only its round. `gaps` has a sentence about such rounds until one succeeds.
    """

    def __init__(self, cluster: str, subject: str) -> None:
        self.gaps: tuple[str, ...] = ()
        self._about = f"{cluster}: a round of questions about {subject}"
        self._defects: Counter[str] = Counter()

    def run(
        self,
        ask: Callable[[], None],
        interval_seconds: float,
        stop: threading.Event,
        missed: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask in rounds until `stop`. Call `missed` after a round that found nothing."""
        while not stop.is_set():
            began, pause_seconds = time.monotonic(), interval_seconds
            try:
                ask()
                self.gaps = ()
            except NothingNewError:
                missed()
                pause_seconds = _TRY_AGAIN_SECONDS
            except Exception as error:
                self._note(error)
                missed()
            stop.wait(max(_LOOK_SECONDS, began + pause_seconds - time.monotonic()))

    def _note(self, error: Exception) -> None:
        self._defects[repr(error)] += 1
        if self._defects[repr(error)] == 1:
            _logger.exception("%s ended unexpectedly, please report it. The next round asks again", self._about)
        rounds = counted(self._defects.total(), "round")
        self.gaps = (f"{rounds} ended unexpectedly, the newest with {type(error).__name__} (see the log)",)


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
