"""Active alerts of a cluster by source, and the source's certainty. Alerts end if a certain source lacks them.

A source without recent news is not certain, because silence is not health.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from controller.contract.alert_kinds.kind import NAME_PREFIX
from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import STALE
from questions.incidents import Incident

BROKER_VIEW = "BrokerViewStale"
FINALIZED_TOO_EARLY = "FinalizedTooEarly"

_PARTITION_NUMBER = re.compile(r"-\d+$")


class Source(Enum):
    """Origin of an active alert."""

    OUTPUTS = "outputs"  # the streaming job
    STALENESS = "staleness"  # this exporter, of the outputs
    PROBE = "probe"  # this exporter, from brokers' answers
    QUORUM = "quorum"  # this exporter, from KRaft controllers' answers


_SOURCES = {
    f"{NAME_PREFIX}{STALE}": Source.STALENESS,
    f"{NAME_PREFIX}{BROKER_VIEW}": Source.PROBE,
    f"{NAME_PREFIX}{FINALIZED_TOO_EARLY}": Source.QUORUM,
}


def source_of(alert_name: str) -> Source:
    """Return the source of the alerts of this name."""
    return _SOURCES.get(alert_name, Source.OUTPUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveAlerts:
    """Active alerts of one cluster by one source, and those that it resolved recently.

    While the source is not `certain`, its alerts stay as they were, because a missing alert may still be active.
    """

    cluster: str
    source: Source
    certain: bool
    alerts: Mapping[str, AlertRow]  # by id
    resolved: Mapping[str, AlertRow]  # by id
    incidents: Mapping[str, Incident] = field(default_factory=dict)  # by the group of their alerts

    def topics_of(self, row: AlertRow) -> tuple[str, ...]:
        """Return the topics that an alert affects, which are those of its incident's damage, and the named ones."""
        named = [_PARTITION_NUMBER.sub("", each) if row.partitions else each for each in row.examples]
        incident = self.incidents.get(row.group)
        lost = [] if incident is None else [each.topic for each in incident.damage.topics]
        return tuple(dict.fromkeys(filter(None, (*lost, *named, row.topic))))


def of_outputs(snapshot: ClusterSnapshot, incidents: Iterable[Incident] = (), *, certain: bool) -> ActiveAlerts:
    """Return the alerts of the streaming job's outputs, with the incidents that `known_incidents` returns."""
    return ActiveAlerts(
        cluster=snapshot.cluster,
        source=Source.OUTPUTS,
        certain=certain,
        alerts={row.id: row for row in snapshot.open_alerts},
        resolved={row.id: row for row in snapshot.resolved_alerts},
        incidents={incident.group: incident for incident in incidents},
    )


def of_staleness(
    snapshot: ClusterSnapshot, heard_ms: int, *, stale_since_ms: int | None, silent: str, certain: bool
) -> ActiveAlerts:
    """Return the alert ReplicaStale of a cluster with its newest heartbeat at `heard_ms`, if the cluster is stale.

    The alert begins when the silence was noticed, not at `heard_ms`, because Alertmanager sends an alert at once that
    began longer ago than its `group_wait`, so one dead process would page in several messages. `silent` is the answer
    of `silent_process`.
    """
    alerts = {} if stale_since_ms is None else {STALE: snapshot.stale_alert(heard_ms, stale_since_ms, silent)}
    return ActiveAlerts(cluster=snapshot.cluster, source=Source.STALENESS, certain=certain, alerts=alerts, resolved={})


def of_forgotten(cluster: str, endings: Mapping[str, AlertRow]) -> Iterator[ActiveAlerts]:
    """Return the sources of a forgotten cluster without active alerts. They are certain, so its sent alerts end."""
    for source in Source:
        resolved = endings if source is Source.OUTPUTS else {}
        yield ActiveAlerts(cluster=cluster, source=source, certain=True, alerts={}, resolved=resolved)


def alert_at(gauges: GaugesRow, **fields: object) -> AlertRow:
    """Return an alert that the exporter itself finds, with the place and the time of these gauges."""
    return AlertRow(
        cluster=gauges.cluster,
        generation=gauges.generation,
        seq=gauges.seq,
        ordinal=0,
        zxid=gauges.zxid,
        time_ms=gauges.time_ms,
        **fields,  # type: ignore[arg-type]
    )
