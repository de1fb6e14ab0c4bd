"""Failovers of the controller, and the time without one, from the controller's rows."""

from __future__ import annotations

import msgspec

from controller.contract.ids import NO_BROKER, BrokerId, ControllerEpoch
from controller.contract.metadata_rows import ControllerRow
from questions.report.seen_time import Level, rise
from wording.times import duration, exact_moment


class Failover(msgspec.Struct, frozen=True, kw_only=True):
    """Change of the controller, from a loss until /controller has the next one. The end is None until then."""

    began_ms: int
    from_broker: BrokerId
    to_broker: BrokerId | None = None
    to_epoch: ControllerEpoch | None = None
    without_controller_ms: int | None = None

    @property
    def words(self) -> str:
        """Return the failover as a line."""
        began = f"{exact_moment(self.began_ms)}  broker {self.from_broker} ->"
        if self.without_controller_ms is None:
            return f"{began} none yet"
        took = duration(self.without_controller_ms)
        return f"{began} broker {self.to_broker}, epoch {self.to_epoch}: {took} without a controller"


class ControllerTime(msgspec.Struct, array_like=True):
    """Failovers in their order, and the time without a controller."""

    failovers: list[Failover] = []
    absent: Level = {}


class Controllers:
    """The controller's rows as they come."""

    def __init__(self) -> None:
        self.time = ControllerTime()
        self._newest: ControllerRow | None = None
        self._lost: Failover | None = None

    def take(self, row: ControllerRow) -> None:
        """Note a controller's end or beginning. The first one is no failover."""
        before, self._newest = self._newest, row
        if row.broker == NO_BROKER:
            if before is not None and before.broker != NO_BROKER:
                self._lose(row.time_ms, before.broker)
        elif self._lost is not None:
            self._replace(row)
        elif before is not None and before.broker != NO_BROKER:
            if (before.broker, before.since_ms) != (row.broker, row.since_ms):
                self._lose(row.time_ms, before.broker)  # both were read together
                self._replace(row)
            elif self.time.failovers and row.epoch != before.epoch and before.since_ms == row.since_ms:
                self._raise_epoch(row)

    def _lose(self, at_ms: int, broker: BrokerId) -> None:
        self._lost = Failover(began_ms=at_ms, from_broker=broker)
        self.time.failovers.append(self._lost)
        rise(self.time.absent, at_ms, 1)

    def _replace(self, row: ControllerRow) -> None:
        assert self._lost is not None, "a failover that did not begin"
        took_ms = max(0, row.time_ms - self._lost.began_ms)
        self.time.failovers[-1] = msgspec.structs.replace(
            self._lost, to_broker=row.broker, to_epoch=row.epoch, without_controller_ms=took_ms
        )
        rise(self.time.absent, self._lost.began_ms + took_ms, -1)
        self._lost = None

    def _raise_epoch(self, row: ControllerRow) -> None:
        """Take the epoch of the new controller, because /controller_epoch is written after /controller."""
        if self.time.failovers[-1].to_broker == row.broker:
            self.time.failovers[-1] = msgspec.structs.replace(self.time.failovers[-1], to_epoch=row.epoch)
