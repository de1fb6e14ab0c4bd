"""The facts about partitions and lost brokers, each in one wording for all pages, commands and messages."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from typing import Final

from wording.sentences import counted, joined, listed, verb

_ZXID: Final = re.compile(r" at zxid 0x[0-9a-f]+")
_KEEP_UP: Final = re.compile(r"\. Keep [^.]+ up\. (?:It has|They have) the only in-sync replica of [0-9,]+ partitions?")


class Fact(Enum):
    """A partition's damage as a predicate, and as the word of a list or a title. The worst comes first."""

    OFFLINE = ("is offline", "be offline", "offline")
    WITHOUT_LEADER = ("has no leader", "have no leader", "without a leader")
    REJECTS_ACKS_ALL = ("rejects acks=all", "reject acks=all", "rejecting acks=all")
    ONE_LOSS_FROM_OFFLINE = (
        "is one loss away from being offline",
        "be one loss away from being offline",
        "one loss away from being offline",
    )
    ONE_LOSS_FROM_REJECTING = (
        "is one loss away from rejecting acks=all",
        "be one loss away from rejecting acks=all",
        "one loss away from rejecting acks=all",
    )
    UNDER_REPLICATED = ("is under-replicated", "be under-replicated", "under-replicated")

    def __init__(self, singular: str, infinitive: str, word: str) -> None:
        """Keep the fact's three forms: "rejects acks=all", "reject acks=all" and "rejecting acks=all"."""
        self.singular, self.infinitive, self.word = singular, infinitive, word

    def predicate(self, count: int) -> str:
        """Return the predicate of so many partitions: rejects acks=all, reject acks=all."""
        return verb(count, self.singular)

    def of(self, count: int) -> str:
        """Return the fact about so many partitions: 1 partition rejects acks=all, 2 partitions reject acks=all."""
        return counted(count, "partition", self.singular)

    def counted(self, count: int) -> str:
        """Return the partitions with their attribute, without a verb: 2 partitions offline."""
        return f"{counted(count, 'partition')} {self.word}"


class Left(Enum):
    """How a broker left. The past tense agrees with one broker and with several."""

    CRASHED = "crashed"  # its session ended without a shutdown, because the process died, hangs or is cut off
    SHUT_DOWN = "shut down cleanly"
    LEFT = "left"  # ZooKeeper does not show in which way
    NEVER_REGISTERED = "never registered"  # not since Kontrast follows the cluster


def keep_up(brokers: Collection[int], count: int) -> str:
    """Return a sentence to keep brokers up, because `count` partitions are in sync only there."""
    they_have = "It has" if len(brokers) == 1 else "They have"
    return f"Keep {listed(brokers)} up. {they_have} the only in-sync replica of {counted(count, 'partition')}"


def with_keep_up(cause: str, sentence: str) -> str:
    """Return an alert's cause with this sentence of `keep_up` in place of its own, which has the counts of its time."""
    return _KEEP_UP.sub(f". {sentence}" if sentence else "", cause)


def replicas_in_words(isr: Collection[int], replicas: Collection[int] = ()) -> str:
    """Return which replicas are in sync, and which others of a partition's replicas are not.

    As in "in sync: 2 and 3, out of sync: 1".
    """
    said = f"in sync: {joined(list(map(str, sorted(isr)))) or 'none'}"
    behind = set(replicas).difference(isr)
    return f"{said}, out of sync: {joined(list(map(str, sorted(behind))))}" if behind else said


def without_zxid(event: str) -> str:
    """Return the event without the transaction that shows it, because a headline needs no evidence."""
    return _ZXID.sub("", event)


def down(brokers: Collection[int]) -> str:
    """Return a clause that brokers are not registered: broker 3 is down, brokers 3 and 5 are down."""
    return listed(brokers, "is down")


def without_trace(brokers: Collection[int], searched: str = "ZooKeeper") -> str:
    """Return a clause that brokers left no trace: broker 9 has never registered here as far as ZooKeeper shows."""
    return f"{listed(brokers, 'has never registered here')} as far as {searched} shows"


def unknown(brokers: Collection[int], where: str = "assignment") -> str:
    """Return a clause that brokers left no trace, with the likely reason, a typing error in an assignment."""
    return f"{without_trace(brokers)}: a typing error in the {where}?"


def event_since(event: str, lasting: str) -> str:
    """Return an event with its duration: broker 3 has been down for 17 min, since …; no controller, for 17 min, …."""
    for now, been in ((" is down", " has been down"), (" are down", " have been down")):
        if event.endswith(now):
            return f"{event.removesuffix(now)}{been} {lasting}"
    return f"{event}, {lasting}"
