"""The rows of alerts."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from controller.contract.records import Int64
from controller.contract.row import MomentMs, Row, RowBrokerId, RowPartitionId


class Severity(Enum):
    """Urgency of an alert: it pages a person, warns, or informs."""

    PAGE = "page"
    WARN = "warn"
    INFO = "info"


class AlertRow(Row, frozen=True, kw_only=True, gc=False, tag="alert"):
    """Alert that was opened, changed or resolved; while the cluster cannot be seen it is unknown."""

    output: ClassVar[str] = "alerts"

    id: str  # stable while the alert is open: the same problem of the same subject has the same id
    alert: str  # the kind, e.g. BrokerCrashed; see docs/reference/alerts.md
    state: str  # open | unknown | resolved
    severity: Severity
    subject: str  # e.g. broker 3; of an incident with several brokers the first
    group: str  # alerts with one cause share it, e.g. broker 3 is away
    since_ms: MomentMs
    cause: str  # one sentence
    topic: str | None = None
    partition: RowPartitionId | None = None
    broker: RowBrokerId | None = None  # the first of the incident
    expected: str | None = None  # what should happen next, a sentence
    action: str = ""  # what a person can do
    evidence: tuple[str, ...] = ()  # sentences with zxids and positions
    partitions: Int64 = 0  # how many are affected
    examples: tuple[str, ...] = ()  # some of them, e.g. orders-7
    brokers: tuple[RowBrokerId, ...] = ()  # all that were part of it since it opened; the cause names the present ones
    news: tuple[str, ...] = ()  # further damage and other next steps since it was first sent, a sentence each

    def subject_key(self) -> str:
        """Key with one row an alert."""
        return f"{self.cluster}/{self.id}"

    @property
    def ends_subject(self) -> bool:
        """Whether the alert is resolved."""
        return self.state == "resolved"
