"""The form of an explanation: statements, each with how sure it is, and the causes in their order."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from controller.contract.alert_row import AlertRow
from controller.view.whereabouts import whereabouts
from questions.check import Finding, finding_of
from questions.picture import Beginning, Picture


class Certainty(Enum):
    """How sure a statement is."""

    SEEN = "seen"  # ZooKeeper has it
    EXPECTED = "expected"  # it follows, by the controller's own rules, from what ZooKeeper has
    INFERRED = "inferred"  # no znode announced it; it explains what was written
    ASSUMED = "assumed"  # it rests on brokers' files, which are not in ZooKeeper: their release's defaults


class Statement(msgspec.Struct, frozen=True):
    """Something that is, or will be, about an aspect of the subject."""

    about: str
    says: str
    certainty: Certainty = Certainty.SEEN


class Cause(msgspec.Struct, frozen=True):
    """A step of what happened, in Kafka's words; `event` is what it was done for."""

    time_ms: int
    zxid: int
    says: str
    event: str
    certainty: Certainty
    rule: str = ""  # of inference, that it rests on


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of a subject, and how it came about."""

    subject: str
    headline: str
    is_well: bool
    since: Beginning | None  # of what is wrong; None where nothing is
    statements: tuple[Statement, ...]
    causes: tuple[Cause, ...] | None  # the oldest first; None: not known
    findings: tuple[Finding, ...]  # the open alerts that are about it
    as_of_ms: int


def findings_about(
    picture: Picture, names: Iterable[str] = (), brokers: Iterable[int] = (), group: str = ""
) -> tuple[Finding, ...]:
    """The open alerts that name one of these partitions or topics, are of one of these brokers, or of this group."""
    wanted, of_brokers = set(names), set(brokers)

    def is_about(row: AlertRow) -> bool:
        named = not wanted.isdisjoint((*row.examples, row.topic))
        of_broker = not of_brokers.isdisjoint((*row.brokers, row.broker))
        return named or of_broker or (bool(group) and row.group == group)

    return tuple(finding_of(row, picture) for row in picture.alerts if is_about(row))


def whereabout(broker: int, picture: Picture) -> str:
    """Whether the broker is live, or how it left; who has no past has only seen that it is not there."""
    (where,) = whereabouts((broker,), picture.header)
    return where.replace("was never seen", "is not registered")


def since_zxid(zxid: int) -> str:
    """Since which change of ZooKeeper something is due, where that was seen."""
    return f", since zxid {zxid:#x}" if zxid >= 0 else ""
