"""Which alerts stand, by each of those who may say so, and whether their silence means anything.

Here belongs what is known of a cluster's alerts at one moment. "Silence is not health": who has heard nothing for too
long is not certain of anything, and an alert that is not mentioned is then not over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from controller.alerts.conditions import counted
from controller.contract.alert_row import AlertRow, Severity
from dashboards.alerting.message import NAME_PREFIX, STALE, time_text
from dashboards.following.view import ClusterSnapshot

BROKER_VIEW = "BrokerViewStale"


class Source(Enum):
    """Who says that an alert stands."""

    OUTPUTS = "outputs"  # the streaming job
    STALENESS = "staleness"  # this exporter, of the outputs
    PROBE = "probe"  # this exporter, of what brokers answer


_SOURCES = {f"{NAME_PREFIX}{STALE}": Source.STALENESS, f"{NAME_PREFIX}{BROKER_VIEW}": Source.PROBE}


def source_of(alert_name: str) -> Source:
    """Who tells of the alerts of this name."""
    return _SOURCES.get(alert_name, Source.OUTPUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What one source says of one cluster.

    While it is not `certain`, what it mentions is as it was when it was heard last, and what it does not mention may
    still be. `resolved` are those that it has heard the end of, not so long ago.
    """

    cluster: str
    source: Source
    certain: bool
    alerts: Mapping[str, AlertRow]  # by id
    resolved: Mapping[str, AlertRow]  # by id


def of_outputs(snapshot: ClusterSnapshot, *, certain: bool) -> Standing:
    """What the streaming job says of the cluster."""
    return Standing(
        cluster=snapshot.cluster,
        source=Source.OUTPUTS,
        certain=certain,
        alerts={row.id: row for row in snapshot.open_alerts},
        resolved={row.id: row for row in snapshot.resolved_alerts},
    )


def of_staleness(snapshot: ClusterSnapshot, heard_ms: int, *, stale: bool, certain: bool) -> Standing:
    """What is to be said of the cluster's own heartbeat, the newest of which is of `heard_ms`."""
    alerts = {STALE: _stale_row(snapshot, heard_ms)} if stale else {}
    return Standing(cluster=snapshot.cluster, source=Source.STALENESS, certain=certain, alerts=alerts, resolved={})


def _stale_row(snapshot: ClusterSnapshot, heard_ms: int) -> AlertRow:
    cluster, gauges = snapshot.cluster, snapshot.gauges
    unknown = len(snapshot.open_alerts)
    return AlertRow(
        cluster=cluster,
        generation=gauges.generation if gauges else -1,
        seq=gauges.seq if gauges else -1,
        ordinal=0,
        zxid=gauges.zxid if gauges else -1,
        time_ms=heard_ms,
        id=STALE,
        alert=STALE,
        state="open",
        severity=Severity.PAGE,
        subject=f"cluster {cluster}",
        group="replica",
        since_ms=heard_ms,
        cause=f"Kontrast has heard nothing of {cluster} since {time_text(heard_ms)}: its "
        f"{counted(unknown, 'open alert')} may be over and new ones are not seen",
        action="look whether `kontrast watch`, `kontrast stream` and `kontrast serve` run, in this order; until then "
        "use Kafka's own metrics",
        evidence=() if gauges is None else (f"the newest heartbeat is {gauges.generation}-{gauges.seq}",),
    )
