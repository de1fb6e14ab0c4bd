"""Clusters as the page knows them: their rows, the present, and why a state is not known."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from msgspec.structs import replace

from controller.contract.metadata_rows import PartitionRow
from controller.view.types import Context
from dashboards.kept_rows.reading import ReadingCounts
from questions.clients.groups import NO_CLIENTS, Clients
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import BLINDING, doubts, silent_process
from questions.memory import Memory
from questions.overview.overview import why_unread
from questions.picture import Picture, Present


class UnknownClusterError(Exception):
    """No cluster has this name, or its state is not known, for the reason in the message."""


def now_ms() -> int:
    """Return the wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


ClientsOf = Callable[[str], Clients]


class KnownClusters:
    """The followed clusters. Of the whole ones, which simulations need, only the newest is kept, for one thread.

    `clients` returns the consumer groups and the teams of a cluster by its name.
    """

    def __init__(
        self, memory: Memory, reading: ReadingCounts, stale_after_ms: int, clients: ClientsOf = lambda _: NO_CLIENTS
    ) -> None:
        self.clients = clients
        self._memory = memory
        self._reading = reading
        self._stale_after_ms = stale_after_ms
        self._whole: tuple[tuple[str, int], Context] | None = None  # 200,000 partitions take some hundred MB

    def snapshot(self, cluster: str, at_ms: int | None = None, topics: Collection[str] | None = ()) -> ClusterSnapshot:
        """Return the cluster now or at a kept moment, with named topics, all for None. Raise UnknownClusterError."""
        found = self._memory.cluster(cluster, at_ms, topics)
        now = found if at_ms is None else self._memory.cluster(cluster)
        if found is None or now is None:
            raise UnknownClusterError("no cluster has this name")
        unknown = self.why_unknown(now)
        if unknown is None and not found.ready:
            unknown = "Kontrast had not read the cluster completely at that moment"
        if unknown is not None:
            raise UnknownClusterError(unknown)
        return found

    def why_unknown(self, found: ClusterSnapshot) -> str | None:
        """Return why the present state of the cluster is not known, or None if it is known."""
        state = self._reading.snapshot().of(found.cluster)
        if not state.source_up:
            return "Kontrast cannot read its outputs (see the log of kontrast serve)"
        if not state.caught_up:
            return "Kontrast is still reading its outputs"
        if not state.vouches_for(found.cluster):
            return "rows are missing or of a newer Kontrast (see /readyz and `kontrast status`)"
        return why_unread(found)

    def present(self, found: ClusterSnapshot, at_ms: int | None = None) -> Present | None:
        """Return the present of a cluster that is shown as current, None for a moment of the past."""
        if at_ms is not None or found.heartbeat_ms is None:
            return None
        now = Present(now_ms(), self._stale_after_ms)
        if not now.is_stale(found.heartbeat_ms):
            return now
        silent = silent_process(self._memory.job_of(found.cluster), found.heartbeat_ms, now.now_ms, now.stale_after_ms)
        return now._replace(silent=silent)

    def doubts(self, cluster: str) -> tuple[str, ...]:
        """Return why the present cluster may be unknown, a sentence each."""
        found = self._memory.cluster(cluster)
        if found is None or found.gauges is None:
            return ()
        own = [row for row in found.open_alerts if row.alert in BLINDING]
        return doubts(found.picture(own, self.present(found)))

    def whole(self, found: ClusterSnapshot) -> Picture:
        """Return the present cluster with every partition. This takes seconds for 200,000 partitions."""
        clients = self.clients(found.cluster)
        version = (found.cluster, self._memory.version(found.cluster, PartitionRow.output))
        if self._whole is None or self._whole[0] != version:
            self._whole = None  # never two at once
            everything = self.snapshot(found.cluster, topics=None)
            self._whole = (version, everything.picture(ranks=clients.teams.ranks).context)
        return replace(found.picture(present=self.present(found), context=self._whole[1]), clients=clients)
