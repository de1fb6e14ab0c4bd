"""Whereabouts of brokers, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable

from controller.contract.ids import BrokerId
from controller.model.context import Header
from controller.view.gauges import is_without_trace
from wording.facts import Departure, down, without_trace


def is_without_session(broker: BrokerId, header: Header) -> bool:
    """Return whether the broker's znode is persistent, so that a person or tool wrote it and no process owns it."""
    registered = header.brokers.get(broker)
    return registered is not None and not registered.session and not registered.inferred


def absence(brokers: Iterable[BrokerId], header: Header) -> str:
    """Return that unregistered brokers are down, or have never registered, as a clause."""
    absent = sorted(brokers)
    strangers = [broker for broker in absent if is_without_trace(header, broker)]
    lost = [broker for broker in absent if broker not in strangers]
    said = [down(lost)] if lost else []
    said += [without_trace(strangers, _searched(header))] if strangers else []
    return ", and ".join(said)


def _searched(header: Header) -> str:
    return "ZooKeeper" if header.knows_all_topics else "this topic"


def whereabouts(brokers: Iterable[BrokerId], header: Header) -> tuple[str, ...]:
    """Return a sentence for each broker on whether it is live or how it left."""
    return tuple(whereabout(broker, header) for broker in sorted(brokers))


def whereabout(broker: BrokerId, header: Header, *, knows_past: bool = True) -> str:
    """Return whether a broker is live or how it left. Without the past, an absent one is not registered."""
    knows_past = knows_past and header.knows_past
    if is_without_session(broker, header):
        return f"broker {broker} is registered by a znode of no session, so no process is this broker"
    if broker in header.brokers:
        leaving = ", and shutting down" if broker in header.shutdowns.under_way else ""
        return f"broker {broker} is live{leaving}"
    if is_without_trace(header, broker):
        return without_trace((broker,), _searched(header))
    departure = header.departures.last.get(broker)
    if departure is None:
        return f"broker {broker} {Departure.NEVER_REGISTERED.value if knows_past else 'is not registered'}"
    is_known = not header.led_by_kraft  # which shuts brokers down without a trace in ZooKeeper
    how = Departure.SHUT_DOWN if departure.in_order else Departure.CRASHED if is_known else Departure.LEFT
    return f"broker {broker} {how.value}" + (f" at zxid {departure.zxid:#x}" if departure.zxid >= 0 else ", unseen")
