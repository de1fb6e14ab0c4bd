"""Health of a cluster: its state, and its open alerts as findings, worst first, with counts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import starmap
from typing import ClassVar, Final, TypeAlias

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId, ControllerEpoch
from controller.says.alert_kinds.replica import ZNODE_REFUSED
from controller.view.ensemble import ensemble_in_words
from controller.view.gauges import gauges_row
from questions.check.damage import damage_of, groups_in
from questions.check.incidents import incidents_in
from questions.check.state import (
    ClusterState,
    Counts,
    State,
    count_brokers_away,
    counts_of,
    not_known,
    rank,
    state_of,
    states_in_words,
)
from questions.doubts import doubts
from questions.everywhere.lint import told_by_check
from questions.picture import Beginning, Picture
from questions.question import NotFoundError, Question
from wording.facts import Fact
from wording.said import Said, line, marked
from wording.sentences import counted
from wording.times import exact_moment

_EXAMPLES: Final = 5
_WORDS: Final = {Severity.PAGE: ("alert", "pages"), Severity.WARN: ("warning",), Severity.INFO: ("note",)}
_MEANINGS: Final = {State.WELL: "ok", State.DEGRADED: "warn", State.AFFECTED: "page", State.UNKNOWN: "unknown"}


class Finding(msgspec.Struct, frozen=True):
    """An open alert with its subject, start and next step."""

    severity: Severity
    alert: str
    subject: str
    since: Beginning
    cause: str
    expected: str | None  # next step of the controller
    action: str  # next step of a person
    evidence: tuple[str, ...]
    partitions: int
    examples: tuple[str, ...]

    @property
    def in_a_line(self) -> str:
        """Return the alert with its cause."""
        return f"{self.severity.value:<4}  {self.alert} of {self.subject}: {self.cause}"

    def said(self, as_of_ms: int, *, is_long: bool) -> Said:
        """Yield the alert with its cause. `is_long` adds the next steps, examples and evidence."""
        began = self.since.lasting(as_of_ms)
        yield line(marked(self.severity.value), f"  {self.alert} of {self.subject}, {began}")
        yield line(self.cause, indent=6)
        if not is_long:
            return
        for name, step in (("expected", self.expected), ("do", self.action)):
            if step:
                yield line(f"{name}: {step}", indent=6)
        if self.examples:
            more = f" and {self.partitions - _EXAMPLES:,} more" if self.partitions > _EXAMPLES else ""
            yield line(f"partitions: {', '.join(self.examples[:_EXAMPLES])}{more}", indent=6)
        for evidence in self.evidence:
            yield line(f"evidence: {evidence}", indent=6)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Health of a cluster: its state, the reasons to doubt it, counts and findings."""

    doubts: tuple[str, ...]  # reasons why the picture may be old or incomplete, a sentence each
    cluster: str
    as_of_ms: int
    state: ClusterState
    controller: BrokerId  # -1 if there is none
    controller_epoch: ControllerEpoch
    counts: Counts
    findings: tuple[Finding, ...]  # the worst first
    led_by_kraft: bool = False  # `controller` is a KRaft controller, no broker
    zookeeper: str = ""  # the ensemble in a sentence, empty if `kontrast watch` does not ask its servers
    source: str = ""  # see `Picture`
    ahead: tuple[str, ...] = ()  # findings of `kontrast lint` that no alert tells, with their fix

    @property
    def worst(self) -> Severity | None:
        """Return the severity of the worst finding."""
        return self.findings[0].severity if self.findings else None

    @property
    def is_well(self) -> bool:
        """Return whether the cluster is well, now."""
        return self.state.state is State.WELL and not self.doubts

    @property
    def summary(self) -> str:
        """Return the controller, the size and the troubles in a line."""
        counts = self.counts
        kind = "KRaft controller" if self.led_by_kraft else "controller broker"
        who = f"{kind} {self.controller}" if self.controller >= 0 else "no controller"
        away = f" ({counts.brokers_away} down)" if counts.brokers_away else ""
        well = "all led and in sync" if counts.topics else "as in a new cluster, or after the loss of ZooKeeper's data"
        if any(finding.alert == ZNODE_REFUSED.name for finding in self.findings):
            well = "all led and in sync, as far as their states can be read"
        wrong = ", ".join(_wrong(counts)) or well
        size = f"{counted(counts.topics, 'topic')}, {counted(counts.partitions, 'partition')}"
        return f"{who}, epoch {self.controller_epoch}; {counted(counts.brokers, 'broker')}{away}; {size}: {wrong}"

    def said(self, *, is_long: bool = False) -> Said:
        """Yield the state and its reasons, the cluster in a line, then each finding.

        A finding that only informs gets one line. `is_long` adds details.
        """
        state = self.state
        word = (state.words, _MEANINGS[state.state])
        yield line(f"{self.cluster}: ", word, f"{_alerts(self.findings)}  as of {exact_moment(self.as_of_ms)}")
        if self.source:
            yield line(f"from {self.source}")
        for doubt in self.doubts:
            yield line(marked("unknown"), f"  {doubt}")
        yield from state.said(self.as_of_ms)
        yield line(self.summary)
        if self.zookeeper:
            yield line(f"ZooKeeper: {self.zookeeper}")
        for finding in self.findings:
            yield from finding.said(self.as_of_ms, is_long=is_long or finding.severity is not Severity.INFO)
        for found in self.ahead:
            yield line(marked("warn"), f"  {found}")


class Unread(msgspec.Struct, frozen=True):
    """A cluster of a list of which nothing was read, for the reason in its state."""

    doubts: tuple[str, ...]
    cluster: str
    state: ClusterState
    findings: tuple[Finding, ...] = ()
    is_well: ClassVar[bool] = False
    summary: ClassVar[str] = ""

    def said(self, *, is_long: bool = False) -> Said:  # noqa: ARG002 (there is no more)
        """Yield the state and its reason."""
        yield line(f"{self.cluster}: ", (self.state.words, _MEANINGS[self.state.state]))
        yield line(marked("unknown"), f"  {self.state.reason}")


Checked: TypeAlias = "Health | Unread"


def said_together(clusters: Sequence[Checked], *, is_long: bool = False) -> Said:
    """Yield the only cluster, or a count of each state, each cluster that is not well, and the names of the others."""
    if len(clusters) == 1:
        yield from clusters[0].said(is_long=is_long)
        return
    yield line(states_in_words([each.state for each in clusters]))
    brief = [each.cluster for each in clusters if each.is_well and not is_long]
    for each in clusters:
        if each.cluster not in brief:
            yield line("")
            yield from each.said(is_long=is_long)
    if brief:
        yield line("")
        yield line(("well", "ok"), f": {', '.join(brief)}")


def _alerts(findings: Collection[Finding]) -> str:
    """Return how many alerts are open, in brackets."""
    counts = {words: sum(finding.severity is severity for finding in findings) for severity, words in _WORDS.items()}
    told = [counted(count, *words) for words, count in counts.items() if count]
    return f" ({', '.join(told)})" if told else ""


def _wrong(counts: Counts) -> Iterator[str]:
    for count, word in (
        (counts.leaderless, Fact.WITHOUT_LEADER.word),
        (counts.under_min_isr, Fact.REJECTS_ACKS_ALL.word),
        (counts.under_replicated, Fact.UNDER_REPLICATED.word),
        (counts.reassigning, "being reassigned"),
    ):
        if count:
            yield f"{count:,} {word}"


class CheckHealth(Question, frozen=True):
    """Check a cluster: its problems, worst first, with start, cause and next step."""

    answer = Health
    tool = "check"

    def ask(self, picture: Picture) -> Health:
        """Return the health of the cluster."""
        return check(picture)


def check(picture: Picture) -> Health:
    """Return the health of the cluster, whose partitions are all in the picture."""
    counts, groups = counts_in(picture), groups_in(picture.context)
    state = state_of(picture, counts, damage_of(groups), incidents_in(picture, groups))
    return msgspec.structs.replace(health_of(picture, counts, state), ahead=tuple(told_by_check(picture)))


def check_each(clusters: Mapping[str, Picture | NotFoundError]) -> list[Checked]:
    """Check clusters, worst first. One that was not read has the reason."""

    def checked(cluster: str, found: Picture | NotFoundError) -> Checked:
        if isinstance(found, Picture):
            return check(found)
        return Unread((str(found),), cluster, not_known(str(found)))

    every = starmap(checked, clusters.items())
    return sorted(every, key=lambda each: rank(each.state, getattr(each, "counts", None), each.cluster))


def health_of(picture: Picture, counts: Counts, state: ClusterState) -> Health:
    """Return the health with the given counts and state, because the picture may lack partitions."""
    header = picture.header
    return Health(
        cluster=header.cluster,
        as_of_ms=picture.as_of_ms,
        state=state,
        doubts=doubts(picture),
        controller=header.controller,
        controller_epoch=header.controller_epoch,
        counts=counts,
        findings=tuple(finding_of(row, picture) for row in picture.alerts),
        led_by_kraft=header.kraft_owns_controller,
        source=picture.source,
        zookeeper=ensemble_in_words(header),
    )


def finding_of(row: AlertRow, picture: Picture) -> Finding:
    """Return the open alert as a finding."""
    return Finding(
        severity=row.severity,
        alert=row.alert,
        subject=row.subject,
        since=picture.since_wall(row.since_ms),
        cause=row.cause,
        expected=row.expected,
        action=row.action,
        evidence=row.evidence,
        partitions=row.partitions,
        examples=row.examples,
    )


def counts_in(picture: Picture) -> Counts:
    """Return counts of a picture that has all partitions."""
    header = picture.header
    row = gauges_row(header, (header.cluster, 0, 0, 0, header.zxid, picture.as_of_ms))
    return counts_of(row, count_brokers_away(row, header.brokers))
