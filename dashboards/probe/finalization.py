"""Alert on a migration that is finalized while brokers are still registered in ZooKeeper (KAFKA-20960)."""

from __future__ import annotations

from collections.abc import Sequence

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import MigrationRow
from dashboards.alerting.active_alerts import FINALIZED_TOO_EARLY, alert_at
from migration.nodes.nodes import Node
from wording.sentences import listed, plural


def is_too_early(unflagged: Sequence[Node], row: MigrationRow) -> bool:
    """Return whether KRaft leads, a controller lacks the migration flag, and a broker is registered in ZooKeeper."""
    return bool(unflagged) and row.leader >= 0 and row.offset > 0 and bool(row.zookeeper_brokers)


def open_alert(unflagged: Sequence[Node], row: MigrationRow, gauges: GaugesRow, since_ms: int) -> AlertRow:
    """Return the alert that names the controllers without the migration flag and the registered brokers."""
    controllers = " and ".join(sorted(node.name for node in unflagged))
    brokers, count = listed(row.zookeeper_brokers), len(row.zookeeper_brokers)
    return _alert(
        gauges,
        state="open",
        since_ms=since_ms,
        cause=f"{controllers} {plural(len(unflagged), 'runs', 'run')} without the migration flag while {brokers} "
        f"{plural(count, 'is', 'are')} still registered in ZooKeeper: {brokers} {plural(count, 'gets', 'get')} no "
        "metadata from a leader without the flag. Restart no other controller",
        action=f"restart {controllers} with the migration flag, restart {brokers} in KRaft mode, and finalize when "
        "/brokers/ids is empty. If no controller has the flag any more, restart the brokers in KRaft mode at once",
        evidence=(f"{brokers} at zxid {gauges.zxid:#x}, by /brokers/ids",),
    )


def resolved_alert(gauges: GaugesRow) -> AlertRow:
    """Return the row that resolves the alert."""
    cause = "every controller has the migration flag again, or no broker is registered in ZooKeeper"
    return _alert(gauges, state="resolved", since_ms=gauges.time_ms, cause=cause)


def _alert(gauges: GaugesRow, **fields: object) -> AlertRow:
    return alert_at(
        gauges,
        id=FINALIZED_TOO_EARLY,
        alert=FINALIZED_TOO_EARLY,
        severity=Severity.PAGE,
        subject="migration",
        group="migration",
        **fields,
    )
