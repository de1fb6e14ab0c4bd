"""The alert BrokerViewStale, with sentences about the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from dashboards.alerting.active_alerts import BROKER_VIEW, alert_at
from dashboards.probe.broker import Leader
from dashboards.probe.comparison import DifferenceKind, PartitionDifference, PartitionName
from wording.sentences import counted
from wording.times import rfc3339

_EXAMPLES = 10

_WORDS = {
    DifferenceKind.STALE: "with an older leader",
    DifferenceKind.MISSING: "that it does not know",
    DifferenceKind.UNEXPECTED: "of topics that are gone or being deleted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFindings:
    """The lasting differences of one broker in its newest answer. Times are in milliseconds since 1970."""

    broker: BrokerId
    found: Mapping[PartitionName, PartitionDifference]
    since_ms: int
    answered_ms: int

    def counts(self) -> dict[DifferenceKind, int]:
        """Return the number of partitions by difference."""
        counted = Counter(found.difference for found in self.found.values())
        return {difference: counted[difference] for difference in DifferenceKind}


def alert_id(broker: BrokerId) -> str:
    """Return the id of the alert on this broker's metadata."""
    return f"{BROKER_VIEW}/{broker}"


def open_alert(findings: BrokerFindings, gauges: GaugesRow) -> AlertRow:
    """Return the alert of a broker whose metadata differs from the rows of these gauges."""
    broker = findings.broker
    parts = [
        f"{count} {_WORDS[difference]} ({_example(findings.found, difference)})"
        for difference, count in findings.counts().items()
        if count
    ]
    return _alert(
        gauges,
        broker,
        state="open",
        since_ms=findings.since_ms,
        cause=f"broker {broker} gives clients old metadata of {counted(len(findings.found), 'partition')}, "
        f"they may miss leaders: {'; '.join(parts)}",
        expected="After every change the controller sends UpdateMetadata to every live broker, within a second or two.",
        action=f"check in the log of broker {broker} whether the controller's requests reach it. If not, restart "
        f"the broker. Its clients may look for leaders in the wrong place. If the broker has no fault, check that "
        f"Kontrast's user may describe all topics",
        evidence=(
            f"broker {broker} answered at {rfc3339(findings.answered_ms)}",
            f"the rows of ZooKeeper were at {gauges.generation}-{gauges.seq} (zxid {gauges.zxid:#x}, "
            f"{rfc3339(gauges.time_ms)})",
        ),
        partitions=len(findings.found),
        examples=tuple(f"{topic}-{number}" for topic, number in sorted(findings.found)[:_EXAMPLES]),
    )


def resolved_alert(broker: BrokerId, gauges: GaugesRow, cause: str) -> AlertRow:
    """Return the row that resolves the alert of a broker."""
    return _alert(gauges, broker, state="resolved", since_ms=gauges.time_ms, cause=cause)


def _alert(gauges: GaugesRow, broker: BrokerId, **fields: object) -> AlertRow:
    return alert_at(
        gauges,
        id=alert_id(broker),
        alert=BROKER_VIEW,
        severity=Severity.WARN,
        subject=f"broker {broker}",
        group=BROKER_VIEW,
        broker=broker,
        **fields,
    )


def _example(found: Mapping[PartitionName, PartitionDifference], difference: DifferenceKind) -> str:
    (topic, number), one = min((name, one) for name, one in found.items() if one.difference is difference)
    name = f"{topic}-{number}"
    if one.expected is None:
        return f"{name}: {_leader(one.seen)}"
    if one.seen is None:
        return f"{name}: in ZooKeeper {_leader(one.expected)}"
    return f"{name}: {_leader(one.seen)}, in ZooKeeper {_leader(one.expected)}"


def _leader(leader: Leader | None) -> str:
    if leader is None or leader.broker < 0:
        return "no leader"
    return f"leader {leader.broker}" + (f" in epoch {leader.epoch}" if leader.epoch >= 0 else "")
