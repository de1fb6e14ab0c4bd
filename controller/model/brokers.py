"""Registrations, departures and controlled shutdowns of brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeVar

import msgspec

from controller.contract.ids import BrokerEpoch, BrokerId, Zxid
from controller.rules.releases import Release

_Value = TypeVar("_Value")
_DEPARTURES_KEPT: Final = 10


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """Live broker. `epoch` is its znode's czxid, Kafka's broker epoch."""

    epoch: BrokerEpoch
    session: int
    since_ms: int
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    inferred: bool = False  # lives in KRaft mode without a registration in ZooKeeper, as ISRs and leaders show
    least_release: Release | None = None  # oldest release that writes such a registration
    at_work: bool = False  # since it registered, it was controller, changed or joined an ISR, or deleted a topic


class Departure(msgspec.Struct, frozen=True, array_like=True):
    """Departure of a broker, whose znode vanished. The zxid is -1 if only a later read showed the departure."""

    zxid: Zxid
    time_ms: int
    in_order: bool = False  # after a controlled shutdown
    was: Broker | None = None  # its last registration
    shares_with: tuple[BrokerId, ...] = ()  # brokers that were away already and have replicas of the same partitions
    hangs: bool = False  # its session expired though its connection lasted

    @property
    def rack(self) -> str | None:
        """Return the rack that the broker had."""
        return None if self.was is None else self.was.rack


class Departures(msgspec.Struct, array_like=True):
    """Departed brokers, and the times of departures without a controlled shutdown."""

    last: dict[BrokerId, Departure] = {}
    unordered: dict[BrokerId, tuple[int, ...]] = {}
    unplanned: dict[BrokerId, Broker] = {}  # their failures wait to be planned together (`broker_change`)

    def note(self, broker: BrokerId, departure: Departure) -> None:
        """Note that a broker left."""
        self.last = {**self.last, broker: departure}

    def note_unordered(self, broker: BrokerId, time_ms: int) -> None:
        """Note when a broker left without a controlled shutdown."""
        self.unordered = {**self.unordered, broker: (*self.unordered.get(broker, ()), time_ms)[-_DEPARTURES_KEPT:]}

    def plan_later(self, broker: BrokerId, was: Broker) -> None:
        """Let the failure of a broker wait for those that leave with it."""
        self.unplanned = {**self.unplanned, broker: was}

    def end_waiting(self) -> dict[BrokerId, Broker]:
        """Return the brokers whose failures waited, which wait no longer."""
        waited, self.unplanned = self.unplanned, {}
        return waited

    def end(self, broker: BrokerId) -> None:
        """Note that a broker is back. The times of its departures remain."""
        self.last = _without(self.last, (broker,))

    def forget(self, brokers: Collection[BrokerId]) -> None:
        """Forget brokers that do not come back."""
        self.last, self.unordered = _without(self.last, brokers), _without(self.unordered, brokers)


class ShutdownAttempt(msgspec.Struct, frozen=True, array_like=True):
    """Next ControlledShutdown request of a broker."""

    due_ms: int  # when it is expected
    earliest_ms: int  # the request cannot come before this time
    left: int
    doubtful: bool = False  # attempts before the first visible one may have found no controller, yet they count


class Shutdowns(msgspec.Struct, array_like=True):
    """Controlled shutdowns, as far as writes show them."""

    under_way: tuple[BrokerId, ...] = ()  # Kafka's `shuttingDownBrokerIds`: brokers that are not elected
    asked: dict[BrokerId, BrokerEpoch] = {}  # brokers that asked in any term, with the epochs of their registrations
    attempts: dict[BrokerId, ShutdownAttempt] = {}  # of brokers that still lead partitions, so they will ask again
    last_asked_ms: dict[BrokerId, int] = {}

    def begin(self, broker: BrokerId, registration: BrokerEpoch, asked_ms: int) -> None:
        """Note that a broker asked for its shutdown."""
        self.under_way = tuple(sorted({*self.under_way, broker}))
        self.asked = {**self.asked, broker: registration}
        self.last_asked_ms = {**self.last_asked_ms, broker: asked_ms}

    def end(self, brokers: Collection[BrokerId]) -> None:
        """Let these brokers be elected again."""
        self.under_way = tuple([broker for broker in self.under_way if broker not in brokers])

    def end_all(self) -> None:
        """Let every broker be elected again, because a new controller knows of no shutdown."""
        self.under_way = ()

    def expect(self, broker: BrokerId, attempt: ShutdownAttempt) -> None:
        """Expect the next request of a broker."""
        self.attempts = {**self.attempts, broker: attempt}

    def expect_no_more(self, brokers: Collection[BrokerId]) -> None:
        """Expect no request of these brokers any more."""
        self.attempts = _without(self.attempts, brokers)

    def forget_request(self, broker: BrokerId) -> None:
        """Forget that a broker asked for its shutdown, because it left in another way."""
        self.asked = _without(self.asked, (broker,))

    def forget(self, brokers: Collection[BrokerId]) -> None:
        """Forget the requests of brokers that do not come back."""
        self.asked, self.last_asked_ms = _without(self.asked, brokers), _without(self.last_asked_ms, brokers)


def _without(by_broker: Mapping[BrokerId, _Value], brokers: Collection[BrokerId]) -> dict[BrokerId, _Value]:
    return {broker: value for broker, value in by_broker.items() if broker not in brokers}
