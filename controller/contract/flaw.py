"""Flaws of znodes, in content, ACL, owner or absence."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Flaw(Enum):
    """Reason why Kafka does not read a znode as its writer meant."""

    ABSENT = "absent"
    NULL = "null"
    EMPTY = "empty"
    UNPARSABLE = "not JSON"
    WRONG_TYPE = "a field that is missing or of a wrong type"
    WRONG_VERSION = "a version that Kafka does not read"
    NO_DIGITS = "no number"
    NO_EPOCH = "below 0 or the highest number"
    PERSISTENT = "persistent"
    REPLACED = "another one than before"
    INCOMPATIBLE = "of a level that a broker lacks"
    LOCKED = "open to one login only"
    NO_NUMBER = "no quota, because a value is no number"
    NEAR_ZERO = "near zero"
    ELSEWHERE = "without a broker of another chroot"
    WRONG_NAME = "a name that Kafka cannot read"
    NO_ADDRESS = "a name that is no IP address"
    NO_CREDENTIAL = "no credential that Kafka can read"
    SAME_ID = "the topic_id of another topic"
    NO_NEXT = "no block of producer ids"
    WEAK_CREDENTIAL = "a credential with too few iterations"
    SAME_ENDPOINT = "an endpoint of another broker"
    NO_COMMON_PROTOCOL = "without a protocol that all brokers have on a listener"
    NO_COMMON_LISTENER = "without a listener that all brokers have"

    @property
    def predicate(self) -> str:
        """Return what is wrong with the znode."""
        verb = "has" if self in (Flaw.WRONG_TYPE, Flaw.WRONG_VERSION, Flaw.WRONG_NAME) else "is"
        return f"{verb} {self.value}"

    __hash__ = object.__hash__


class FoundFlaw(NamedTuple):
    """A flaw with its details as a predicate of the znode, which may name values but no secret."""

    flaw: Flaw
    details: str = ""
