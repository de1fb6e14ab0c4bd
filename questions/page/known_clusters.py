"""Followed clusters as live questions see them: their rows, the present, and why a state is not known."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from msgspec.structs import replace

from questions.clients.groups import NO_CLIENTS, Clients
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import BLINDING, doubts, silent_process
from questions.memory import Memory
from questions.page.impact_map import Moment as MapMoment
from questions.page.incident_cards import Presentation
from questions.page.overview import Overview, Overviews, ShownMoment, unread, why_unread
from questions.picture import Picture, Present
from questions.question import NotFoundError, UnknownClusterError
from wording.sentences import did_you_mean, near
from wording.times import moment


def now_ms() -> int:
    """Return the wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def present_of(memory: Memory, found: ClusterSnapshot, stale_after_ms: int) -> Present | None:
    """Return the present of a cluster, with the process that is silent. It is None before the first heartbeat."""
    heard_ms = found.heartbeat_ms
    if heard_ms is None:
        return None
    now = Present(now_ms(), stale_after_ms)
    if not now.is_stale(heard_ms):
        return now
    return now._replace(silent=silent_process(memory.job_of(found.cluster), heard_ms, now.now_ms, stale_after_ms))


ClientsOf = Callable[[str], Clients]


class KnownClusters:
    """The followed clusters, with what is known beside their rows.

    By a cluster's name, `clients` returns the consumer groups and the teams, `quorum` a sentence with the last answer
    of its KRaft quorum, and `why_unread` why its rows may be missing. `why_incomplete` is the same for transitions.
    """

    def __init__(  # noqa: PLR0913 (one source an argument)
        self,
        memory: Memory,
        config: Presentation,
        stale_after_ms: int,
        clients: ClientsOf = lambda _: NO_CLIENTS,
        quorum: Callable[[str], str] = lambda _: "",
        why_unread: Callable[[str], str | None] = lambda _: None,
        why_incomplete: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.memory = memory
        self.ranks = config.teams.ranks
        self.overviews = Overviews(memory, config, config.teams.ranks, quorum)
        self.clients = clients
        self.why_incomplete = why_incomplete
        self._why_unread = why_unread
        self.stale_after_ms = stale_after_ms

    def at(self, name: str, asked_ms: int | None) -> KnownCluster:
        """Return the cluster at the nearest kept moment, None for now. Raise NotFoundError if no moment is kept."""
        cluster = KnownCluster(self, name)
        if asked_ms is None:
            return cluster
        past = self.memory.kept(name)
        if past is None:
            cluster.snapshot()
            raise cluster.nothing_kept()
        note = "this is the oldest kept moment" if asked_ms < past.since_ms else ""
        return KnownCluster(self, name, past.nearest(asked_ms), note)

    def similar(self, name: str) -> str:
        """Return the end of a sentence that suggests clusters with a similar name."""
        return did_you_mean(near(name, self.memory.names()))

    def now(self, found: ClusterSnapshot) -> Overview:
        """Return the present cluster on one screen, without a map."""
        unknown = self.why_unknown(found)
        if unknown is not None:
            return unread(found.cluster, unknown)
        present = KnownCluster(self, found.cluster).present(found)
        return self.overviews.now(found, present, now_ms(), self.clients(found.cluster))

    def why_unknown(self, found: ClusterSnapshot) -> str | None:
        """Return why the present state of the cluster is not known, or None if it is known."""
        return self._why_unread(found.cluster) or why_unread(found)


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster now or at a kept moment, from which a live question takes the part that it needs.

    A question about all clusters leaves out the name. `note` says why the moment is not the requested one.
    """

    clusters: KnownClusters
    name: str = ""
    at_ms: int | None = None
    note: str = ""

    @property
    def memory(self) -> Memory:
        """Return the rows of all clusters."""
        return self.clusters.memory

    @property
    def clients(self) -> Clients:
        """Return the groups and teams. The groups of an earlier moment are unknown."""
        clients = self.clusters.clients(self.name)
        return clients if self.at_ms is None else Clients(teams=clients.teams)

    @property
    def there_is(self) -> str:
        """Return the begin of a sentence about a missing subject."""
        return "There is" if self.at_ms is None else f"As of {moment(self.at_ms)} there was"

    def snapshot(self, topics: Collection[str] | None = ()) -> ClusterSnapshot:
        """Return the cluster with the named topics, all for None. Raise UnknownClusterError."""
        memory = self.clusters.memory
        found = memory.cluster(self.name, self.at_ms, topics)
        now = found if self.at_ms is None else memory.cluster(self.name)
        if found is None or now is None:
            raise UnknownClusterError("no cluster has this name")
        unknown = self.clusters.why_unknown(now)
        if unknown is None and not found.ready:
            unknown = "Kontrast had not read the cluster completely at that moment"
        if unknown is not None:
            raise UnknownClusterError(unknown)
        return found

    def present(self, found: ClusterSnapshot) -> Present | None:
        """Return the present of a cluster that is shown as current, None for a moment of the past."""
        return None if self.at_ms is not None else present_of(self.memory, found, self.clusters.stale_after_ms)

    def doubts(self) -> tuple[str, ...]:
        """Return why the present cluster may be unknown, a sentence each."""
        found = self.memory.cluster(self.name)
        if found is None or found.gauges is None:
            return ()
        own = [row for row in found.open_alerts if row.alert in BLINDING]
        return doubts(found.picture(own, self.present(found)))

    def whole(self) -> Picture:
        """Return the present cluster with every partition. This takes seconds for 200,000 partitions."""
        found = self.snapshot()
        picture = found.picture(present=self.present(found), context=self.memory.whole(found, self.clusters.ranks))
        return replace(picture, clients=self.clients)

    def judged(self) -> Overview:
        """Return the cluster without map and last day."""
        try:
            found = self.snapshot()
        except UnknownClusterError as error:
            return unread(self.name, str(error))
        return self.clusters.overviews.overview(found, self.present(found), self.at_ms)

    def mapped(self, made: Overview, found: ClusterSnapshot, shown: MapMoment = MapMoment.NOW) -> Overview:
        """Return this overview of the snapshot with its map."""
        return self.clusters.overviews.mapped(made, found, ShownMoment(self.at_ms, now_ms(), shown, self.clients))

    def nothing_kept(self) -> NotFoundError:
        """Return the refusal of a moment if none is kept."""
        return NotFoundError(f"Kontrast keeps no past of cluster {self.name} yet")
