"""Form of an explanation: statements with their certainty, and the causes in order."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import BrokerId, Zxid
from questions.check.check import Finding, finding_of
from questions.doubts import blindness, doubts_beside
from questions.picture import Beginning, Picture
from wording.facts import without_zxid
from wording.said import Said, Table, line, marked
from wording.times import exact_moment


class Certainty(Enum):
    """How sure a statement is."""

    SEEN = "seen"  # ZooKeeper has it
    EXPECTED = "expected"  # follows from ZooKeeper by the controller's own rules
    INFERRED = "inferred"  # explains a write, without a znode that announced it
    ASSUMED = "assumed"  # rests on brokers' files, which are not in ZooKeeper, so the release's defaults apply

    @property
    def mark(self) -> str:
        """Return the mark behind a statement that is not seen."""
        return "" if self is Certainty.SEEN else f"  [{self.value}]"


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

    def said(self) -> Said:
        """Yield the verdict, the facts, how they came about, and the open alerts."""
        yield line(f"{self.subject}: ", (self.headline, "ok" if self.is_well else "page"))
        if self.since is not None:
            yield line(self.since.lasting(self.as_of_ms), indent=2)
        yield line("")
        rows = [(fact.about, f"{fact.says}{fact.certainty.mark}") for fact in self.statements]
        yield Table(("what", f"is known, as of {exact_moment(self.as_of_ms)}"), rows)
        if self.causes:
            yield line("")
            yield line("how it came about:")
            for cause in self.causes:
                sure = f"  [inferred: {cause.rule}]" if cause.rule else cause.certainty.mark
                yield line(f"{exact_moment(cause.time_ms)}  {cause.zxid:#x}  {cause.says}{sure}", indent=2)
                yield line(cause.event, indent=6)
        if self.findings:
            yield line("")
            for finding in self.findings:
                yield line(marked(finding.severity.value), f"  {finding.alert}: {finding.cause}")
                if finding.action:
                    yield line(f"do: {finding.action}", indent=6)


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


def since_zxid(zxid: Zxid) -> str:
    """Return a clause with the zxid since which something is due, empty if Kontrast did not see the change."""
    return f", since zxid {zxid:#x}" if zxid >= 0 else ""
