"""Live questions about whole clusters: all of them, one with its map, its brokers, and its consumer groups."""

from __future__ import annotations

from typing import Annotated

import msgspec

from questions.clients.known_groups import KnownGroups
from questions.cluster_rows import ClusterSnapshot
from questions.known_clusters import KnownCluster, LiveQuestion
from questions.overview.impact_map import Moment
from questions.overview.overview import Overview, worst_first
from questions.question import NotFoundError, meaning

_MOMENTS = {"type": "string", "enum": [moment.value for moment in Moment]}  # in their order


class ShowFleet(LiveQuestion, frozen=True):
    """Every cluster on one screen, the worst first."""

    answer = tuple[Overview, ...]

    words: Annotated[
        str, meaning("Only clusters with this text in name, state, event, reason or effect, in any case.")
    ] = ""

    def ask(self, cluster: KnownCluster) -> tuple[Overview, ...]:
        """Return every cluster that the words are about, the worst first."""
        words = self.words.strip().lower()
        every = map(cluster.clusters.now, cluster.memory.clusters())
        return worst_first(each for each in every if words in _about(each))


class ShowCluster(LiveQuestion, frozen=True):
    """A cluster on one screen."""

    answer = Overview

    map: Annotated[
        Moment,
        meaning(
            "Moment of `map`: before the incident, now, first or second (after these brokers have started), or loss "
            "(of one more broker). Default: now."
        ),
        msgspec.Meta(extra_json_schema=_MOMENTS),
    ] = Moment.NOW

    def ask(self, cluster: KnownCluster) -> Overview:
        """Return the cluster with its map."""
        now = _existing(cluster)
        if cluster.at_ms is None:
            return cluster.mapped(cluster.clusters.now(now), now, self.map)
        return cluster.mapped(cluster.judged(), cluster.memory.cluster(cluster.name, cluster.at_ms) or now, self.map)


class ShowBrokers(LiveQuestion, frozen=True):
    """The brokers by rack."""

    answer = Overview

    def ask(self, cluster: KnownCluster) -> Overview:
        """Return the cluster with its brokers by rack, without a map."""
        _existing(cluster)
        return cluster.judged()


class ShowGroups(LiveQuestion, frozen=True):
    """Consumer groups and transactional ids as the brokers last described them."""

    answer = KnownGroups

    def ask(self, cluster: KnownCluster) -> KnownGroups:
        """Return the groups of a cluster whose state is known."""
        cluster.snapshot()
        return cluster.clients.known


def _existing(cluster: KnownCluster) -> ClusterSnapshot:
    """Return the present cluster, even if its state is not known. Raise NotFoundError."""
    now = cluster.memory.cluster(cluster.name)
    if now is None:
        raise NotFoundError(f"There is no cluster {cluster.name}{cluster.clusters.similar(cluster.name)}")
    return now


def _about(each: Overview) -> str:
    state = each.state
    return " ".join((each.cluster, state.words, state.event, state.reason, each.effect)).lower()
