"""Registrations, departures and controlled shutdowns of brokers."""

from __future__ import annotations

import msgspec

from controller.contract.ids import BrokerEpoch
from controller.rules.releases import Release


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """Live broker. `epoch` is its znode's czxid, Kafka's broker epoch."""

    epoch: BrokerEpoch
    session: int
    since_ms: int
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    inferred: bool = False  # lives in KRaft mode without a registration in ZooKeeper, as ISRs and leaders show
    least_release: Release | None = None  # oldest release that registers as it does
    at_work: bool = False  # since then it was controller, changed an ISR as leader, got into one, or deleted a topic


class Departure(msgspec.Struct, frozen=True, array_like=True):
    """Departure of a broker, whose znode vanished. The zxid is -1 if only a later read showed it."""

    zxid: int
    time_ms: int
    in_order: bool = False  # after a controlled shutdown
    was: Broker | None = None  # as it was registered
    shares_with: tuple[int, ...] = ()  # brokers that were away already and have replicas of the same partitions

    @property
    def rack(self) -> str | None:
        """Return the rack that the broker had."""
        return None if self.was is None else self.was.rack


class Departures(msgspec.Struct, array_like=True):
    """Departed brokers, and the times of departures without a controlled shutdown."""

    last: dict[int, Departure] = {}
    unordered: dict[int, tuple[int, ...]] = {}


class ShutdownAttempt(msgspec.Struct, frozen=True, array_like=True):
    """Next ControlledShutdown request of a broker."""

    due_ms: int  # when it is expected
    earliest_ms: int  # before which it cannot come
    left: int
    doubtful: bool = False  # attempts before the first visible one may have found no controller, yet they count


class Shutdowns(msgspec.Struct, array_like=True):
    """Controlled shutdowns, as far as writes show them."""

    under_way: tuple[int, ...] = ()  # Kafka's `shuttingDownBrokerIds`: brokers that are not elected
    asked: dict[int, BrokerEpoch] = {}  # brokers that asked in any term, with the epochs of their registrations
    attempts: dict[int, ShutdownAttempt] = {}  # of brokers that will ask again, because they still lead partitions
    last_asked_ms: dict[int, int] = {}
