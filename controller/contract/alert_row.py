"""Row of an alert, and the severities of alerts."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from controller.contract.records import Int64
from controller.contract.row import MomentMs, Row, RowBrokerId, RowPartitionId


class Severity(Enum):
    """Urgency of an alert, which pages a person, warns, or informs."""

    PAGE = "page"
    WARN = "warn"
    INFO = "info"


class AlertRow(Row, frozen=True, kw_only=True, gc=False, tag="alert"):
    """Alert that was opened, changed or resolved. Its state is unknown while the cluster cannot be seen."""

    output: ClassVar[str] = "alerts"

    id: str  # the same problem of the same subject has the same id
    alert: str  # the kind, e.g. BrokerCrashed (see docs/reference/alerts.md)
    state: str  # open | unknown | resolved
    severity: Severity
    subject: str  # e.g. broker 3. For an incident with several brokers, the first
    group: str  # e.g. broker 3 is away. Alerts with the same cause have the same group
    since_ms: MomentMs
    cause: str  # one sentence
    topic: str | None = None
    partition: RowPartitionId | None = None
    broker: RowBrokerId | None = None  # the first of the incident
    expected: str | None = None  # what should happen next, a sentence
    action: str = ""  # what a person can do
    evidence: tuple[str, ...] = ()  # sentences with zxids and positions
    partitions: Int64 = 0  # how many partitions are affected
    examples: tuple[str, ...] = ()  # some affected partitions, e.g. orders-7
    brokers: tuple[RowBrokerId, ...] = ()  # all brokers concerned since it opened. The cause names the present ones
    news: tuple[str, ...] = ()  # a sentence for each further damage and other next step since it was first sent

    def subject_key(self) -> str:
        """Return the key of this alert, under which compaction keeps one row."""
        return f"{self.cluster}/{self.id}"

    @property
    def ends_subject(self) -> bool:
        """Return whether the alert is resolved."""
        return self.state == "resolved"
