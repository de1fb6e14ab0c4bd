"""Whereabouts of brokers, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable

from controller.contract.ids import BrokerId
from controller.model.context import Header
from wording.facts import Departure


def whereabouts(brokers: Iterable[BrokerId], header: Header) -> tuple[str, ...]:
    """Return a sentence for each broker on whether it is live or how it left."""
    return tuple(whereabout(broker, header) for broker in sorted(brokers))


def whereabout(broker: BrokerId, header: Header, *, knows_past: bool = True) -> str:
    """Return whether a broker is live or how it left. Without the past, an absent one is not registered."""
    if broker in header.brokers:
        leaving = ", and shutting down" if broker in header.shutdowns.under_way else ""
        return f"broker {broker} is live{leaving}"
    departure = header.departures.last.get(broker)
    if departure is None:
        return f"broker {broker} {Departure.NEVER_REGISTERED.value if knows_past else 'is not registered'}"
    is_known = not header.led_by_kraft  # which shuts brokers down without a trace in ZooKeeper
    how = Departure.SHUT_DOWN if departure.in_order else Departure.CRASHED if is_known else Departure.LEFT
    return f"broker {broker} {how.value}" + (f" at zxid {departure.zxid:#x}" if departure.zxid >= 0 else ", unseen")
