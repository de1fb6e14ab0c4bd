"""What is the case with brokers: those that are away, how they left, and those that come and go.

Here belongs what is said of a broker as a whole. What partitions suffer from it is in `conditions_of_partitions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from controller import alert_kinds as kinds
from controller.conditions import Condition, counted, maintained, named, whereabouts
from controller.context import EXAMPLES_NAMED, Departure, Header
from controller.gauges import replicas_by_broker
from controller.outputs import Severity
from controller.troubles import Trouble, parse_group

# A broker that hosts nothing is missed for so long only.
_MISSED_MS: Final = 10 * 60_000

_FLAPPING_DEPARTURES: Final = 3
_FLAPPING_WITHIN_MS: Final = 10 * 60_000


def conditions_of_brokers(header: Header) -> Iterator[Condition]:
    """The brokers that are away, and those that keep leaving."""
    hosted = replicas_by_broker(header)
    suffering = _suffering_by_broker(header)
    for broker, departure in header.departed.items():
        if broker in hosted or header.time_ms - departure.time_ms <= _MISSED_MS:
            yield _away(header, broker, departure, hosted.get(broker, 0), suffering.get(broker, Suffering()))
    for broker, replicas in hosted.items():
        if broker not in header.brokers and broker not in header.departed:
            yield _absent(header, broker, replicas)
    for broker, departures_ms in header.unordered_departures.items():
        recent = [at_ms for at_ms in departures_ms if header.time_ms - at_ms <= _FLAPPING_WITHIN_MS]
        if len(recent) >= _FLAPPING_DEPARTURES:
            yield _flapping(header, broker, recent)


class Suffering(msgspec.Struct):
    """What the partitions on a broker that is away suffer from it, some of them by name: the worst first."""

    offline: int = 0  # until it, or another that was in sync, is back
    waiting: int = 0  # for the controller to elect another leader
    examples: tuple[str, ...] = ()


_WAITING: Final = (Trouble.ELECTION_OWED, Trouble.ELECTION_DUE)
_WORST_FIRST: Final = (Trouble.OFFLINE, *_WAITING, Trouble.UNDER_REPLICATED)


def _suffering_by_broker(header: Header) -> dict[int, Suffering]:
    suffering: dict[int, Suffering] = {}
    groups = [(*parse_group(key)[:2], group) for key, group in header.troubles.items()]
    for wanted in _WORST_FIRST:
        for trouble, brokers, group in groups:
            for broker in brokers if trouble is wanted else ():
                known = suffering.setdefault(broker, Suffering())
                known.examples = (*known.examples, *group.examples)[:EXAMPLES_NAMED]
                if trouble is Trouble.OFFLINE:
                    known.offline += group.count
                elif trouble in _WAITING:
                    known.waiting += group.count
    return suffering


def _away(header: Header, broker: int, departure: Departure, replicas: int, suffering: Suffering) -> Condition:
    (how,) = whereabouts((broker,), header)
    excuse = maintained(broker, header)
    hosts = _hosts(replicas, suffering) if replicas else "it hosts nothing, and may have shut down without a trace"
    return Condition(
        kind=kinds.BROKER_SHUT_DOWN if departure.in_order else kinds.BROKER_CRASHED,
        subject=named((broker,)),
        group=named((broker,)),
        cause=f"{how}: {hosts}" + (f" ({excuse})" if excuse else ""),
        ending="it is registered again, or hosts nothing any more",
        since_ms=departure.time_ms,
        severity=None if replicas else Severity.INFO,
        evidence=(how,),
        partitions=replicas,
        examples=suffering.examples,
        broker=broker,
    )


def _hosts(replicas: int, suffering: Suffering) -> str:
    """How many partitions have a replica there, and what its absence means for their clients."""
    found = (
        (suffering.offline, "offline"),
        (suffering.waiting, "waiting for the controller to elect a leader"),
        (replicas - suffering.offline - suffering.waiting, "with one replica less"),
    )
    shown = ", ".join(f"{count} {what}" for count, what in found if count > 0)
    return f"it hosts {counted(replicas, 'replica')}; partitions: {shown}"


def _absent(header: Header, broker: int, replicas: int) -> Condition:
    return Condition(
        kind=kinds.BROKER_ABSENT,
        subject=named((broker,)),
        group=named((broker,)),
        cause=f"broker {broker} hosts {counted(replicas, 'replica')} and was never seen",
        ending="it is registered, or hosts nothing any more",
        partitions=replicas,
        broker=broker,
    )


def _flapping(header: Header, broker: int, recent: list[int]) -> Condition:
    return Condition(
        kind=kinds.BROKER_FLAPPING,
        subject=named((broker,)),
        group=named((broker,)),
        cause=f"broker {broker} left {len(recent)} times within ten minutes without shutting down",
        ending="it stays",
        since_ms=recent[0],
        evidence=whereabouts((broker,), header),
        broker=broker,
    )
