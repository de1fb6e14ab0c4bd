"""The state of a cluster in one sentence: healthy, degraded, clients affected, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from controller.contract.alert_kinds import kinds
from controller.contract.alert_row import AlertRow, Severity
from dashboards.alerting.active_alerts import stale_row
from dashboards.kept_rows.view import ClusterSnapshot
from dashboards.page.incidents import Incident
from questions.check import Counts, Finding, Health
from questions.doubts import OLD_AFTER_MS
from wording.facts import Fact
from wording.sentences import all_of, counted, event_of, first_sentence


class State(Enum):
    """State of a cluster, the worst first: its meaning for clients, or that Kontrast does not know it."""

    AFFECTED = "affected"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    HEALTHY = "healthy"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The state, its event, its effect on clients, and the next step."""

    state: State
    event: str
    since_ms: int | None = None
    reason: str = ""  # why the state is unknown
    effect: str = ""
    next_step: str = ""
    next_restores: str = ""
    more: int = 0  # other incidents
    unusable: int = 0  # partitions that clients cannot use, or not write to with acks=all


BLINDING: Final = {
    kinds.ZOOKEEPER_NO_QUORUM.name: "no ZooKeeper server serves",
    kinds.REPLICA_DISCONNECTED.name: "Kontrast has lost ZooKeeper",
    kinds.REPLICA_LACKS_RECORDS.name: "records were lost between `kontrast watch` and `kontrast stream`",
    kinds.CLUSTER_QUARANTINED.name: "Kontrast failed over records of this cluster",
}
"""Alerts that hide the state of the cluster, and the reason in words. A cause comes before its consequence."""

_CAUSES_FIRST: Final = {name: place for place, name in enumerate(BLINDING)}

_HITS_CLIENTS: Final = frozenset({kinds.ZOOKEEPER_ROLLED_BACK.name, kinds.ZOOKEEPER_NO_QUORUM.name})
_NOT_KNOWN: Final = "Not known"


def own_alerts(found: ClusterSnapshot, now_ms: int | None, silent: str) -> tuple[AlertRow, ...]:
    """Return open alerts on ZooKeeper and Kontrast itself.

    `now_ms` is None for the past. `silent` is the process that stopped.
    """
    own = [
        row for row in found.open_alerts if row.alert in kinds.ALERT_KINDS and kinds.ALERT_KINDS[row.alert].of_replica
    ]
    heard_ms = found.heartbeat_ms
    if now_ms is not None and heard_ms is not None and not found.is_replayed and now_ms - heard_ms > OLD_AFTER_MS:
        own.insert(0, stale_row(found, heard_ms, heard_ms, silent))
    return tuple(own)


def blindness(own: Sequence[AlertRow], silent: str) -> Verdict | None:
    """Return the verdict of a cluster that Kontrast cannot see. It precedes all others."""
    for row in sorted(own, key=lambda row: _CAUSES_FIRST.get(row.alert, -1)):
        reason = BLINDING.get(row.alert)
        if row.alert not in kinds.ALERT_KINDS:  # ReplicaStale, which the exporter judges
            reason = f"`{silent}` is silent" if silent else "`kontrast watch` or `kontrast stream` has stopped"
        if reason is not None and row.state == "open":
            action = row.action[:1].upper() + row.action[1:]
            return Verdict(
                state=State.UNKNOWN,
                event=_NOT_KNOWN,
                since_ms=row.since_ms,
                reason=reason,
                next_step=first_sentence(action),
            )
    return None


def unread(reason: str) -> Verdict:
    """Return the verdict of an unread cluster."""
    return Verdict(state=State.UNKNOWN, event=_NOT_KNOWN, reason=reason)


def verdict_of(health: Health, incidents: Sequence[Incident], own: Sequence[Finding], doubts: Sequence[str]) -> Verdict:
    """Return the verdict of a cluster that Kontrast sees."""
    if incidents:
        first = incidents[0]
        state = State.AFFECTED if first.severity is Severity.PAGE else State.DEGRADED
        return Verdict(
            state=state,
            event=first.event,
            since_ms=first.since_ms,
            effect=first.effect or _led(health.counts),
            next_step=first.next_step,
            next_restores=first.next_restores,
            more=len(incidents) - 1,
            unusable=first.unusable,
        )
    if doubts:
        return Verdict(state=State.UNKNOWN, event=_NOT_KNOWN, reason=doubts[0])
    urgent = [finding for finding in own if finding.severity is not Severity.INFO]
    if urgent:
        event = event_of(urgent[0].cause)
        return Verdict(
            state=State.AFFECTED if urgent[0].alert in _HITS_CLIENTS else State.DEGRADED,
            event=event[:1].upper() + event[1:],
            since_ms=urgent[0].since.ms,
            effect=_led(health.counts),
            next_step=first_sentence(urgent[0].action),
        )
    counts = health.counts
    is_whole = not (counts.leaderless or counts.under_min_isr)
    return Verdict(state=State.HEALTHY if is_whole else State.DEGRADED, event=_led(counts).rstrip("."))


def _led(counts: Counts) -> str:
    """Return how many partitions clients can use, in a sentence."""
    for count, fact in (
        (counts.leaderless, Fact.WITHOUT_LEADER),
        (counts.under_min_isr, Fact.REJECTS_ACKS_ALL),
    ):
        if count:
            return f"{counted(count, 'partition')} of {counts.partitions:,} {fact.predicate(count)}."
    if not counts.partitions:
        return "The cluster has no partitions."
    lacking = counts.under_replicated
    all_are = all_of(counts.partitions, "partition", "is")
    also = f". {lacking:,} {Fact.UNDER_REPLICATED.predicate(lacking)}." if lacking else " and in sync."
    return f"{all_are.capitalize()} online{also}"
