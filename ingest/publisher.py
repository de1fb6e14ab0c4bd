"""Turn observations into acknowledged records, with their place in the order and their times, however a sink fails."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from controller.contract.flaw import FoundFlaw
from controller.contract.forwarder_status import Ensemble, ForwarderStatus
from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import Record, RecordKind, data_fields
from ingest.election import ForwardingTerm
from ingest.errors import StoppedError
from ingest.maintenance import MaintenanceFile
from ingest.observed.inbox import SessionState
from ingest.observed.observations import Observation
from ingest.observed.tree import PublishedTree
from ingest.sinks.sink import Sink, SinkUnavailableError
from ingest.zookeeper.reading import WatchMode
from transport.forwarding import Forwarding
from transport.printable import Reasons

_LOG = logging.getLogger("kontrast.ingest.publisher")

_RECORDS_AN_APPEND = 5_000
_FIRST_RETRY_SECONDS = 0.1
_LONGEST_RETRY_SECONDS = 5.0


class DeposedError(Exception):
    """Another forwarder leads, or this forwarder cannot be sure that it still leads."""


@dataclass(slots=True)
class Publisher:
    """Number observations and hand them to the sink, again until it accepts them. `tree` is the readers' knowledge.

    After the term has ended, the publisher hands over no record. Repeated records keep their numbers. Readers drop
    known numbers, and a missing number is a lost record.
    """

    _sink: Sink
    _term: ForwardingTerm
    _stop: threading.Event
    _forwarding: Forwarding
    _maintenance: MaintenanceFile
    _clocks: MachineClocks
    tree: PublishedTree = field(default_factory=PublishedTree, init=False)
    _next_seq: int = field(default=0, init=False)

    def publish(self, observations: Sequence[Observation]) -> None:
        """Publish the observations, and return when sink and tree have them. Raise StoppedError or DeposedError."""
        for start in range(0, len(observations), _RECORDS_AN_APPEND):
            chunk = observations[start : start + _RECORDS_AN_APPEND]
            self._deliver(chunk)
            self.tree.apply(chunk)
            self._forwarding.znodes = len(self.tree.known)

    def publish_complete_read(self, observations: Sequence[Observation], zxid: Zxid) -> None:
        """Publish a complete read between its marks. Raise StoppedError or DeposedError."""
        begin = Observation(kind=RecordKind.SNAPSHOT_BEGIN, path="", zxid=zxid)
        self._deliver([begin], _encoded(ForwarderStatus(clock_of=f"host {socket.gethostname()}")))
        self.publish(observations)
        self._deliver([Observation(kind=RecordKind.SNAPSHOT_END, path="", zxid=zxid)])

    def publish_state(  # noqa: PLR0913 (the parts of a status)
        self,
        kind: RecordKind,
        state: SessionState,
        mode: WatchMode,
        zxid: Zxid,
        *,
        lost_zxid: Zxid = UNKNOWN_ZXID,
        ensemble: Ensemble | None = None,
        flaws: dict[str, FoundFlaw] | None = None,
    ) -> None:
        """Publish a heartbeat or session record. Raise StoppedError or DeposedError."""
        now_ms, _ = self._clocks.read()
        maintenance = self._maintenance.in_force(now_ms) if kind is RecordKind.HEARTBEAT else ()
        status = ForwarderStatus(
            session=state.value,
            watch_mode=mode.value,
            maintenance=maintenance,
            lost_zxid=lost_zxid,
            ensemble=ensemble,
            flaws=flaws,
        )
        self._deliver([Observation(kind=kind, path="", zxid=zxid)], _encoded(status))
        if kind is RecordKind.HEARTBEAT:
            self._forwarding.heartbeat_ms = now_ms

    def _deliver(self, observations: Sequence[Observation], data: str | None = None) -> None:
        retry_seconds = _FIRST_RETRY_SECONDS
        failed_at: float | None = None
        reasons = Reasons()
        times = self._clocks.read()  # of both clocks, because the wall clock may be set back
        records = [self._record(each, self._next_seq + at, times, data) for at, each in enumerate(observations)]
        self._next_seq += len(records)
        while True:
            if not self._term.holds():
                raise DeposedError
            try:
                self._sink.append(records)
                break
            except SinkUnavailableError as error:
                failed_at = failed_at or time.monotonic()
                self._forwarding.sink_is_up = False
                if reasons.is_new(str(error)):
                    _LOG.warning("records cannot be delivered, trying again until they are: %s", error)
            if self._stop.wait(retry_seconds):
                raise StoppedError
            retry_seconds = min(2 * retry_seconds, _LONGEST_RETRY_SECONDS)
        self._forwarding.records += len(observations)
        if failed_at is not None:
            self._forwarding.sink_is_up = True
            _LOG.warning("records are delivered again after %.1f s, without a loss", time.monotonic() - failed_at)

    def _record(self, observation: Observation, seq: int, times: tuple[int, int], data: str | None) -> Record:
        value, (wall_ms, steady_ms) = observation.value, times
        return Record(
            cluster=self._forwarding.cluster,
            generation=self._term.generation,
            seq=seq,
            kind=observation.kind,
            observed_ms=wall_ms,
            steady_ms=steady_ms,
            path=observation.path,
            zxid=observation.zxid,
            resync=observation.resync,
            **({"data": data} if value is None else data_fields(value.data)),
            czxid=UNKNOWN_ZXID if value is None else value.czxid,
            mzxid=UNKNOWN_ZXID if value is None else value.mzxid,
            version=-1 if value is None else value.version,
            ephemeral_owner=0 if value is None else value.ephemeral_owner,
            ctime_ms=0 if value is None else value.registered_ms,
        )


def _encoded(status: ForwarderStatus) -> str:
    return msgspec.json.encode(status).decode()


# A reading that takes longer than this is repeated, because the thread may have paused between the two clocks.
_READ_WITHIN_MS: Final = 10

_MS_IN_NS: Final = 1_000_000


def boot_time_ns() -> int:
    """Return the time since the machine was started. It includes suspension, if the system has such a clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)


class MachineClocks:
    """Both clocks in ms. `wall_ns` and `steady_ns` read them."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = boot_time_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._ahead_ms: int | None = None  # the wall clock's lead over the steady clock

    def read(self) -> tuple[int, int]:
        """Return the wall clock since 1970, and the steady clock since an unknown moment.

        The returned difference of both clocks stays the same until the real one differs by more than the error of the
        readings, after NTP's slewing or a step.
        """
        while True:
            before_ns = self._steady_ns()
            wall_ns = self._wall_ns()
            if self._steady_ns() - before_ns <= _READ_WITHIN_MS * _MS_IN_NS:
                break
        steady_ms, ahead_ms = before_ns // _MS_IN_NS, (wall_ns - before_ns) // _MS_IN_NS
        if self._ahead_ms is None or abs(ahead_ms - self._ahead_ms) > _READ_WITHIN_MS:
            self._ahead_ms = ahead_ms
        return max(0, steady_ms + self._ahead_ms), steady_ms
