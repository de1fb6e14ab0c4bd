"""Health of a cluster: its state, and its open alerts as findings, worst first, with counts."""

from __future__ import annotations

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId, ControllerEpoch
from controller.view.ensemble import ensemble_in_words
from controller.view.gauges import gauges_row, replicas_by_broker
from controller.view.health import never_registered
from questions.doubts import doubts
from questions.incidents import incidents_in, troubles_in
from questions.picture import Beginning, Picture
from questions.question import Question
from questions.state import ClusterState, Counts, State, counts_of, state_of


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

    @property
    def worst(self) -> Severity | None:
        """Return the severity of the worst finding."""
        return self.findings[0].severity if self.findings else None

    @property
    def is_well(self) -> bool:
        """Return whether the cluster is well, now."""
        return self.state.state is State.WELL and not self.doubts


class Check(Question, frozen=True):
    """Check a cluster: its problems, worst first, with start, cause and next step."""

    answer = Health

    def ask(self, picture: Picture) -> Health:
        """Return the health of the cluster."""
        return check(picture)


def check(picture: Picture) -> Health:
    """Return the health of the cluster, whose partitions are all in the picture."""
    counts = counts_in(picture)
    incidents = incidents_in(picture, tuple(troubles_in(picture.header)))
    return health_of(picture, counts, state_of(picture, counts, incidents))


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
    absent = replicas_by_broker(header).keys() - header.brokers.keys()
    return counts_of(row, sum(not never_registered(header, broker) for broker in absent))
