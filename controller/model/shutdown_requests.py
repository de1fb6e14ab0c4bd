"""Questions about controlled shutdowns, such as whether a broker has asked, and whether for the last time."""

from __future__ import annotations

from controller.contract.ids import BrokerId
from controller.model.context import Header


def has_asked(header: Header, broker: BrokerId) -> bool:
    """Return whether the broker sent ControlledShutdown since it registered."""
    registered = header.brokers.get(broker)
    return registered is not None and header.shutdowns.asked.get(broker) == registered.epoch


def closes(header: Header, broker: BrokerId) -> bool:
    """Return whether a broker has sent its last ControlledShutdown, after which it first closes its sockets."""
    return has_asked(header, broker) and broker not in header.shutdowns.attempts


def has_closed(header: Header, broker: BrokerId, by_ms: int) -> bool:
    """Return whether a broker that is still registered had sent its last ControlledShutdown by this time."""
    return closes(header, broker) and header.shutdowns.last_asked_ms.get(broker, 0) <= by_ms


def keep_attempts(header: Header) -> None:
    """Keep the attempts of brokers that the last controller could not shut down. They will ask the new controller."""
    header.shutdowns.expect_no_more([broker for broker in header.shutdowns.attempts if not has_asked(header, broker)])
