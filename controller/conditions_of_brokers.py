"""What is the case with brokers: those that are away, how they left, and those that come and go.

Here belongs what is said of a broker as a whole. What partitions suffer from it is in `conditions_of_partitions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
    lacking = _lacking_by_broker(header)
    for broker, departure in header.departed.items():
        if broker in hosted or header.time_ms - departure.time_ms <= _MISSED_MS:
            yield _away(header, broker, departure, hosted.get(broker, 0), lacking.get(broker, (0, ())))
    for broker, replicas in hosted.items():
        if broker not in header.brokers and broker not in header.departed:
            yield _absent(header, broker, replicas)
    for broker, departures_ms in header.unordered_departures.items():
        recent = [at_ms for at_ms in departures_ms if header.time_ms - at_ms <= _FLAPPING_WITHIN_MS]
        if len(recent) >= _FLAPPING_DEPARTURES:
            yield _flapping(header, broker, recent)


def _lacking_by_broker(header: Header) -> dict[int, tuple[int, tuple[str, ...]]]:
    """By broker the partitions that lack it, some of them by name: those offline, and those that do without it."""
    lacking: dict[int, tuple[int, tuple[str, ...]]] = {}
    for key, group in header.troubles.items():
        trouble, brokers, _ = parse_group(key)
        if trouble in (Trouble.UNDER_REPLICATED, Trouble.OFFLINE):
            for broker in brokers:
                count, examples = lacking.get(broker, (0, ()))
                lacking[broker] = count + group.count, (*examples, *group.examples)[:EXAMPLES_NAMED]
    return lacking


def _away(
    header: Header, broker: int, departure: Departure, replicas: int, lacking: tuple[int, tuple[str, ...]]
) -> Condition:
    count, examples = lacking
    (how,) = whereabouts((broker,), header)
    excuse = maintained(broker, header)
    missed = f"it hosts {counted(replicas, 'replica')}, of which {count} {'is' if count == 1 else 'are'} missed"
    unmissed = "it hosts nothing, and may have shut down without a trace"
    return Condition(
        kind=kinds.BROKER_SHUT_DOWN if departure.in_order else kinds.BROKER_CRASHED,
        subject=named((broker,)),
        group=named((broker,)),
        cause=f"{how}: {missed if replicas else unmissed}" + (f" ({excuse})" if excuse else ""),
        ending="it is registered again, or hosts nothing any more",
        since_ms=departure.time_ms,
        severity=None if replicas else Severity.INFO,
        evidence=(how,),
        partitions=replicas,
        examples=examples,
        broker=broker,
    )


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
