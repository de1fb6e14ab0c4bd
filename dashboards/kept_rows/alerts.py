"""Alerts of one cluster: the open ones, their counts, and the newest endings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from controller.contract.alert_row import AlertRow
from dashboards.kept_rows.newest import Newest, OldestFirst

_REMEMBERED_ENDINGS = 1_000  # resolved alerts kept per cluster, because the sender of an alert must also send its end


def _by_age_of_alert(row: AlertRow) -> tuple[object, ...]:
    return (row.since_ms, row.id)


class Alerts:
    """The newest row of each alert that is not resolved, how many there are of each kind, and those just resolved."""

    def __init__(self, resolved: Mapping[str, AlertRow] = MappingProxyType({})) -> None:
        self.newest: Newest[str, AlertRow] = Newest()
        self._oldest_first: OldestFirst[str, AlertRow] = OldestFirst(_by_age_of_alert)
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self.resolved = dict(resolved)

    def file(self, before: AlertRow | None, row: AlertRow) -> None:
        """Count a row of `newest` that replaced another one, and put it in order or among the endings."""
        self.resolved.pop(row.id, None)
        if before is not None:
            self._count(before, -1)
        if row.ends_subject:
            self._oldest_first.drop(row.id)
            self._remember_ending(row)
        else:
            self._count(row, 1)
            self._oldest_first.put(row.id, row)

    def _remember_ending(self, row: AlertRow) -> None:
        self.resolved[row.id] = row
        if len(self.resolved) > _REMEMBERED_ENDINGS:
            del self.resolved[next(iter(self.resolved))]

    def _count(self, row: AlertRow, more: int) -> None:
        kind = (row.alert, row.severity.value, row.state)
        self._counts[kind] += more
        if not self._counts[kind]:
            del self._counts[kind]

    def oldest_first(self) -> tuple[AlertRow, ...]:
        """Return open alerts, the oldest first."""
        return self._oldest_first.in_order()

    def counts(self) -> dict[tuple[str, str, str], int]:
        """Return the number of open alerts by name, severity and state."""
        return dict(self._counts)
