"""A cluster now, or at an earlier moment that is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow, TopicRow
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.contract.row import Row
from dashboards.kept_rows.view import AsOf, ClusterSnapshot, View, problem_since_ms

_Kind = TypeVar("_Kind", bound=Row)


class Kept(NamedTuple):
    """From which moment to which one a cluster is known."""

    since_ms: int
    newest_ms: int

    def nearest(self, at_ms: int) -> int:
        """Return the moment, or the nearest that is kept."""
        return min(max(at_ms, self.since_ms), self.newest_ms)


def kept(view: View, cluster: str) -> Kept | None:
    """Return the kept range of the cluster's past, if any."""
    found, since_ms = view.cluster(cluster), view.kept_since_ms(cluster)
    if found is None or found.gauges is None or since_ms is None:
        return None
    return Kept(since_ms, max(found.gauges.time_ms, since_ms))


@dataclass(frozen=True, slots=True)
class ClusterAt:
    """A cluster at one moment, with some of its partitions and topics."""

    snapshot: ClusterSnapshot
    partitions: tuple[PartitionRow, ...]
    topics: tuple[TopicRow, ...] = ()


def cluster_at(
    view: View,
    cluster: str,
    at_ms: int | None,
    partitions: Iterable[PartitionRow] = (),
    topics: Iterable[TopicRow] = (),
) -> ClusterAt | None:
    """Return the existing cluster at a kept moment, by default now.

    `partitions` and `topics` are the wanted rows of the present. For a past moment, the result adds others that changed
    since then. The caller reads both first, so later changes are undone with the rest.
    """
    if at_ms is None:
        now = view.cluster(cluster)
        return None if now is None else ClusterAt(now, tuple(partitions), tuple(topics))
    state = view.as_of(cluster, at_ms)
    if state is None:
        return None
    partitions_then = tuple(_then(partitions, state.metadata, PartitionRow))
    return ClusterAt(snapshot_as_of(state, at_ms), partitions_then, tuple(_then(topics, state.metadata, TopicRow)))


def snapshot_as_of(state: AsOf, at_ms: int) -> ClusterSnapshot:
    """Return the cluster as it was at the moment, with gauges if some of that time are kept."""
    now = state.now
    brokers = sorted(_then(now.brokers, state.metadata, BrokerRow), key=lambda row: row.broker)
    controllers = _then(() if now.controller is None else (now.controller,), state.metadata, ControllerRow)
    migrations = _then(() if now.migration is None else (now.migration,), state.metadata, MigrationRow)
    partitions = _then((*now.unusable, *now.under_min_isr), state.metadata, PartitionRow)
    troubled = [row for row in partitions if row.problem is not None]
    troubled.sort(key=lambda row: (problem_since_ms(row), row.topic, row.partition))
    alerts = _then(now.open_alerts, state.alerts, AlertRow)
    return replace(
        now,
        gauges=None if state.gauges is None else msgspec.structs.replace(state.gauges, time_ms=at_ms),
        controller=controllers[0] if controllers else None,
        migration=migrations[0] if migrations else None,
        brokers=tuple(brokers),
        unusable=tuple(row for row in troubled if row.problem in UNUSABLE_WORDS),
        under_min_isr=tuple(row for row in troubled if row.problem == Problem.UNDER_MIN_ISR.value),
        open_alerts=tuple(sorted(alerts, key=lambda row: (row.since_ms, row.id))),
        clock_behind_ms=0,
    )


def _then(now: Iterable[_Kind], replaced: Mapping[str, Row | None], kind: type[_Kind]) -> list[_Kind]:
    """Return the rows that still hold, and those that held then."""
    unchanged = [row for row in now if row.subject_key() not in replaced]
    return [*unchanged, *(row for row in replaced.values() if isinstance(row, kind))]
