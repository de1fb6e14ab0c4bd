"""Partitions of one incident, from which conditions are made."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.alerts.affected import Affected
from controller.alerts.conditions import Condition
from controller.contract.alert_row import Severity
from controller.model.alert_state import EXAMPLES_NAMED, Outage
from controller.model.context import Header
from controller.says.alert_kinds.kinds import AlertKind
from controller.view.health import whereabouts

_NO_INCIDENT: Final = "partitions"


class IncidentPartitions(msgspec.Struct, frozen=True):
    """Partitions of an incident. Without an incident they are partitions that no broker's absence explains."""

    header: Header
    incident: Outage | None
    affected: Affected

    def condition(self, kind: AlertKind, found: Affected, cause: str, ending: str, **more: object) -> Condition:
        """Return a condition of this kind, of severity info if all its partitions have an excuse."""
        excuse, incident = found.excuse, self.incident
        subject = _NO_INCIDENT if incident is None else incident.name
        condition = Condition(
            kind=kind,
            subject=subject,
            group=subject,
            cause=cause if not excuse else f"{cause} ({excuse})",
            ending=ending,
            since_ms=self.since_ms(found),
            evidence=whereabouts(found.brokers[:EXAMPLES_NAMED], self.header),
            partitions=found.count,
            examples=found.examples,
            broker=None if incident is None else incident.broker,
            brokers=() if incident is None else tuple(sorted({*found.brokers, *found.others} & {*incident.brokers})),
            named=found.brokers,
            severity=Severity.INFO if excuse else None,
        )
        return msgspec.structs.replace(condition, **more)

    def since_ms(self, found: Affected) -> int:
        """Return when the first of these partitions got the issue, or when the brokers left if that was later."""
        departures = self.header.departures.last
        lost = () if self.incident is None else self.incident.brokers
        left_ms = min((departures[broker].time_ms for broker in lost if broker in departures), default=0)
        return max(found.since_ms, left_ms)
