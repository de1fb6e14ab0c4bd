"""Comparison of a broker's metadata with the rows of its cluster that are at least as new, in rounds of questions."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS
from controller.contract.metadata_rows import PartitionRow
from controller.contract.znode_table import Place
from controller.rules.states import PartitionState
from controller.says.alert_kinds import kinds
from dashboards.probe.broker import BrokerView, Leader
from outputs.reading import ReadingCounts
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import hidden_by
from questions.memory import Memory
from wording.sentences import counted

_NOBODY = -1

PartitionName = tuple[str, PartitionId]  # topic and partition


class DifferenceKind(Enum):
    """Kind of a partition's difference in a broker's metadata."""

    STALE = "stale"  # an older leader epoch, or another leader in the same epoch
    MISSING = "missing"  # the broker does not know the partition
    UNEXPECTED = "unexpected"  # the broker knows it, though its topic is gone or being deleted


@dataclass(frozen=True, slots=True)
class PartitionDifference:
    """A difference, with the leader on both sides, None where a side has no leader."""

    difference: DifferenceKind
    expected: Leader | None
    seen: Leader | None


def differences(
    rows: Mapping[PartitionName, PartitionRow], view: BrokerView, live: Collection[BrokerId]
) -> dict[PartitionName, PartitionDifference]:
    """Return every partition whose view by the broker differs from these rows. `live` are the registered brokers.

    A broker ahead of the rows is right, because the rows come later.
    """
    found = {}
    for name, row in rows.items():
        if row.deleting or row.state == PartitionState.NEW.word or row.leader_epoch < 0:
            continue  # brokers get no UpdateMetadata before the first leader, and hear of a deletion replica by replica
        expected, seen = Leader(row.leader, row.leader_epoch), view.get(name)
        if seen is None:
            found[name] = PartitionDifference(DifferenceKind.MISSING, expected, None)
        elif _is_stale(expected, seen, live):
            found[name] = PartitionDifference(DifferenceKind.STALE, expected, seen)
    for name in view.keys() - rows.keys():
        found[name] = PartitionDifference(DifferenceKind.UNEXPECTED, None, view[name])
    return found


def lasting(
    earlier: Mapping[PartitionName, PartitionDifference], later: Mapping[PartitionName, PartitionDifference]
) -> dict[PartitionName, PartitionDifference]:
    """Return the later differences that existed earlier, too, with the same expected leader."""
    return {
        name: found
        for name, found in later.items()
        if name in earlier and (earlier[name].difference, earlier[name].expected) == (found.difference, found.expected)
    }


def _is_stale(expected: Leader, seen: Leader, live: Collection[BrokerId]) -> bool:
    if seen.epoch >= 0 and seen.epoch != expected.epoch:
        return seen.epoch < expected.epoch
    if seen.broker == _NOBODY:  # a broker also answers so for a leader that is not live, because it has no address then
        return expected.broker in live
    return seen.broker != expected.broker


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
            is_ready = may_be_compared(snapshot) and self._reading.snapshot().vouches_for(self.cluster)
            if snapshot.cluster == self.cluster and is_ready and gauges_of(snapshot).session == "connected":
                return snapshot
        raise NothingNewError


def may_be_compared(snapshot: ClusterSnapshot) -> bool:
    """Return whether the rows are of the brokers' cluster: all znodes are known, and /cluster/id is sound."""
    flawed = (row for row in snapshot.open_alerts if row.alert == kinds.START_WILL_FAIL.name)
    has_identity = all(Place.CLUSTER_ID.value not in row.examples for row in flawed)
    return snapshot.ready and has_identity and hidden_by(snapshot.open_alerts) is None


def gauges_of(snapshot: ClusterSnapshot) -> GaugesRow:
    """Return the gauges of a cluster that is ready."""
    assert snapshot.gauges is not None, "a cluster that is ready without gauges"
    return snapshot.gauges


def _heartbeat_ms(snapshot: ClusterSnapshot) -> int:
    """Return the earliest time of the newest heartbeat. Kontrast knows a wrong clock only to within some seconds."""
    unsure_ms = CLOCKS_AGREE_WITHIN_MS if snapshot.clock_behind_ms else 0
    return gauges_of(snapshot).time_ms + snapshot.clock_behind_ms - unsure_ms
