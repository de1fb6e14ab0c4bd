"""Whereabouts of brokers, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable

from controller.contract.ids import BrokerId
from controller.model.context import Header


def whereabouts(brokers: Iterable[BrokerId], header: Header) -> tuple[str, ...]:
    """Return a sentence for each broker on whether it is live or how it left."""
    return tuple(_whereabout(broker, header) for broker in sorted(brokers))


def _whereabout(broker: BrokerId, header: Header) -> str:
    if broker in header.brokers:
        leaving = ", and shutting down" if broker in header.shutdowns.under_way else ""
        return f"broker {broker} is live{leaving}"
    departure = header.departures.last.get(broker)
    if departure is None:
        return f"broker {broker} was never seen"
    how = "shut down in order" if departure.in_order else "left without shutting down"
    return f"broker {broker} {how}" + (f" at zxid {departure.zxid:#x}" if departure.zxid >= 0 else ", unseen")
