"""Health of a cluster: its open alerts as findings, worst first, with counts."""

from __future__ import annotations

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId, ControllerEpoch
from controller.view.ensemble import ensemble_in_words
from controller.view.gauges import gauges_row, replicas_by_broker
from questions.doubts import doubts
from questions.picture import Beginning, Picture


class Finding(msgspec.Struct, frozen=True):
    """An open alert with its subject, start and next step."""

    severity: Severity
    alert: str
    subject: str
    since: Beginning
    cause: str
    expected: str | None  # of the controller
    action: str  # for a person
    evidence: tuple[str, ...]
    partitions: int
    examples: tuple[str, ...]


class Counts(msgspec.Struct, frozen=True):
    """A cluster's counts, by Kafka's own definitions."""

    brokers: int  # registered
    brokers_away: int  # not registered, though they host replicas
    topics: int
    partitions: int
    leaderless: int  # without a live leader now, an election due or not
    under_min_isr: int
    under_replicated: int
    at_min_isr: int
    reassigning: int
    preferred_imbalance: int
    topics_to_delete: int


class Health(msgspec.Struct, frozen=True):
    """Health of a cluster: the verdict, its reasons, and doubts."""

    cluster: str
    as_of_ms: int
    controller: BrokerId  # broker id, or -1
    controller_epoch: ControllerEpoch
    counts: Counts
    findings: tuple[Finding, ...]  # the worst first
    doubts: tuple[str, ...]  # reasons to doubt silence, a sentence each
    led_by_kraft: bool = False  # `controller` is a KRaft controller, no broker
    zookeeper: str = ""  # the ensemble in a sentence, empty if `kontrast watch` does not ask its servers

    @property
    def worst(self) -> Severity | None:
        """Return the severity of the worst finding."""
        return self.findings[0].severity if self.findings else None

    @property
    def is_well(self) -> bool:
        """Return whether no alert pages or warns, and no part is hidden."""
        return self.worst in (None, Severity.INFO) and not self.doubts


def check(picture: Picture, now_ms: int | None = None, counts: Counts | None = None) -> Health:
    """Return the health of the cluster. `now_ms` is the present, for a picture of now.

    `counts` are given if the picture does not have all partitions.
    """
    header = picture.header
    return Health(
        cluster=header.cluster,
        as_of_ms=picture.as_of_ms,
        controller=header.controller,
        controller_epoch=header.controller_epoch,
        counts=counts_in(picture) if counts is None else counts,
        findings=tuple(finding_of(row, picture) for row in picture.alerts),
        doubts=tuple(doubts(picture, now_ms)),
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
    hosting = replicas_by_broker(header)
    return counts_of(row, sum(1 for broker in hosting if broker not in header.brokers))


def counts_of(row: GaugesRow, brokers_away: int) -> Counts:
    """Return the counts that a row of gauges has, with the number of brokers away, which the row lacks."""
    return Counts(
        brokers=row.active_brokers,
        brokers_away=brokers_away,
        topics=row.topics,
        partitions=row.partitions,
        leaderless=row.leaderless_partitions,
        under_min_isr=row.under_min_isr_partitions,
        under_replicated=row.under_replicated_partitions,
        at_min_isr=row.at_min_isr_partitions,
        reassigning=row.reassigning_partitions,
        preferred_imbalance=row.preferred_replica_imbalance,
        topics_to_delete=row.topics_to_delete,
    )
