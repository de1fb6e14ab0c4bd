"""Form of an explanation: statements with their certainty, and the causes in order."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import BrokerId, Zxid
from controller.view.health import whereabout as where
from questions.check import Finding, finding_of
from questions.doubts import blindness, doubts_beside
from questions.picture import Beginning, Picture
from wording.facts import without_zxid


class Certainty(Enum):
    """How sure a statement is."""

    SEEN = "seen"  # ZooKeeper has it
    EXPECTED = "expected"  # follows from ZooKeeper by the controller's own rules
    INFERRED = "inferred"  # explains a write, without a znode that announced it
    ASSUMED = "assumed"  # rests on brokers' files, which are not in ZooKeeper, so the release's defaults apply


class Statement(msgspec.Struct, frozen=True):
    """Present or coming fact about one aspect of the subject."""

    about: str
    says: str
    certainty: Certainty = Certainty.SEEN


class Cause(msgspec.Struct, frozen=True):
    """A step in Kafka's words. `event` is its reason."""

    time_ms: int
    zxid: Zxid
    says: str
    event: str
    certainty: Certainty
    rule: str = ""  # the rule of inference behind the step, empty if it was seen


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a subject, and their history."""

    doubts: tuple[str, ...]  # reasons why the facts may be old or incomplete, a sentence each
    is_known: bool  # the facts are current. Otherwise they were true at Kontrast's last sign of the cluster
    subject: str
    headline: str
    is_well: bool
    since: Beginning | None  # start of the trouble, if any
    statements: tuple[Statement, ...]
    causes: tuple[Cause, ...] | None  # oldest first, or None if unknown
    findings: tuple[Finding, ...]  # the open alerts about the subject
    as_of_ms: int


def explanation_of(  # noqa: PLR0913 (the fields that differ)
    picture: Picture,
    subject: str,
    headline: str,
    *,
    statements: Iterable[Statement],
    causes: tuple[Cause, ...] | None,
    findings: tuple[Finding, ...],
    is_well: bool = False,
    since: Beginning | None = None,
) -> Explanation:
    """Return the explanation with the picture's doubts. A subject is only well if the picture is current."""
    blind = blindness(picture)
    return Explanation(
        doubts=doubts_beside(picture, blind),
        is_known=blind is None,
        subject=subject,
        headline=without_zxid(headline),
        is_well=is_well and blind is None,
        since=since,
        statements=tuple(statements),
        causes=causes,
        findings=findings,
        as_of_ms=picture.as_of_ms,
    )


def findings_about(
    picture: Picture, names: Iterable[str] = (), brokers: Iterable[BrokerId] = (), group: str = ""
) -> tuple[Finding, ...]:
    """Return the open alerts about one of these partitions, topics or brokers, or in this group of alerts."""
    wanted, of_brokers = set(names), set(brokers)

    def is_about(row: AlertRow) -> bool:
        named = not wanted.isdisjoint((*row.examples, row.topic))
        of_broker = not of_brokers.isdisjoint((*row.brokers, row.broker))
        return named or of_broker or (bool(group) and row.group == group)

    return tuple([finding_of(row, picture) for row in picture.alerts if is_about(row)])


def whereabout(broker: BrokerId, picture: Picture) -> str:
    """Return whether the broker is live, or how it left. Without a past, only its absence is known."""
    return where(broker, picture.header, knows_past=False)


def since_zxid(zxid: Zxid) -> str:
    """Return a clause with the zxid since which something is due, empty if Kontrast did not see the change."""
    return f", since zxid {zxid:#x}" if zxid >= 0 else ""
