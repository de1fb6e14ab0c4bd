"""Brokers: those that are registered, those that left and how, and those that shut down."""

from __future__ import annotations

from typing import Final

import msgspec

NO_BROKER: Final = -1


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """A registered broker; `epoch` is its znode's czxid, Kafka's broker epoch."""

    epoch: int
    session: int
    since_ms: int
    endpoints: tuple[str, ...] = ()
    rack: str | None = None


class Departure(msgspec.Struct, frozen=True, array_like=True):
    """When a broker's znode vanished; zxid -1 where only a later read showed it."""

    zxid: int
    time_ms: int
    in_order: bool = False  # it had asked to be shut down
    rack: str | None = None  # as it was registered
    shares_with: tuple[int, ...] = ()  # brokers that were away already and have replicas of the same partitions


class Departures(msgspec.Struct, array_like=True):
    """Brokers that are away, and when brokers left without having shut down."""

    last: dict[int, Departure] = {}
    unordered: dict[int, tuple[int, ...]] = {}


class ShutdownAttempt(msgspec.Struct, frozen=True, array_like=True):
    """A broker's next request to be shut down."""

    due_ms: int  # when it is expected
    earliest_ms: int  # before which it cannot come
    left: int
    doubtful: bool = False  # attempts before the first that shows may have found no controller, and count all the same


class Shutdowns(msgspec.Struct, array_like=True):
    """Controlled shutdowns, as far as they show in what was written."""

    under_way: tuple[int, ...] = ()  # brokers that the controller leaves out as leaders
    asked: dict[int, int] = {}  # brokers that asked in any term: broker -> epoch of its registration
    attempts: dict[int, ShutdownAttempt] = {}  # brokers that will ask again, because they still lead something
    last_asked_ms: dict[int, int] = {}
