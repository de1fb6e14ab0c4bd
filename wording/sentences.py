"""Counts with their nouns, brokers as a subject, a list or a choice, and figures of a report."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Final

_BROKERS_IN_A_SENTENCE: Final = 10


def plural(count: int, one: str, many: str) -> str:
    """Return the singular or plural, by the count."""
    return one if count == 1 else many


def counted(count: int, noun: str) -> str:
    """Count with its noun: 1 partition, 2 partitions."""
    return f"{count} {plural(count, noun, noun + 's')}"


def named(brokers: Collection[int]) -> str:
    """Return brokers as a subject, such as "broker 3" or "brokers 2,3"."""
    return f"{plural(len(brokers), 'broker', 'brokers')} {','.join(map(str, sorted(brokers)))}"


def listed(brokers: Collection[int]) -> str:
    """Return brokers in a sentence: no broker, broker 3, brokers 1 and 3, 12 brokers (1, 2, 3, …)."""
    shown = [str(broker) for broker in sorted(brokers)]
    if not shown:
        return "no broker"
    if len(shown) == 1:
        return f"broker {shown[0]}"
    if len(shown) <= _BROKERS_IN_A_SENTENCE:
        return f"brokers {', '.join(shown[:-1])} and {shown[-1]}"
    return f"{len(shown)} brokers ({', '.join(shown[:_BROKERS_IN_A_SENTENCE])}, …)"


def either(brokers: Iterable[int]) -> str:
    """Return brokers as a choice, such as "2 or 3" or "1, 2 or 3"."""
    shown = [str(broker) for broker in sorted(brokers)]
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def bracketed(brokers: Iterable[int]) -> str:
    """Return brokers as ZooKeeper lists them, in their order, such as [1,2]."""
    return "[" + ",".join(map(str, brokers)) + "]"


def first_sentence(text: str) -> str:
    """Return the first sentence of an alert or an advice, without a full stop."""
    return text.partition(". ")[0].removesuffix(".")


def event_of(cause: str) -> str:
    """Return the event in an alert's sentences, which a colon separates from its effect."""
    return first_sentence(cause).partition(": ")[0]


def share(availability: float) -> str:
    """Round an availability down to per cent, so that 100 % means never away."""
    return f"{math.floor(round(availability * 100_000, 6)) / 1_000:.3f} %"


def minutes_of(minutes: float) -> str:
    """Return minutes with enough digits to show a short outage."""
    return f"{minutes:,.1f}" if minutes >= 100 or not minutes else f"{minutes:.4g}"
