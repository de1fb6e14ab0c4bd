"""Requests as questions. Pages and the JSON interface share these answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from dashboards.kept_rows.transitions import Transitions
from dashboards.page.config import PageConfig
from dashboards.page.known_clusters import KnownClusters, UnknownClusterError, now_ms
from dashboards.page.leases import Leases
from dashboards.page.request_parts import NUMBER, found, map_moment, named, number
from questions.clients.groups import NO_CLIENTS, Clients
from questions.clients.known_groups import KnownGroups
from questions.cluster_rows import ClusterSnapshot
from questions.explain.explanation import Explanation
from questions.explain.from_rows import (
    BrokerAnswer,
    TopicAnswer,
    broker_answer,
    controller_answer,
    partition_answer,
    topic_answer,
)
from questions.history import OLDEST, WINDOWS_SECONDS, AskedMoment, Histories, History
from questions.known_brokers import UnknownBrokersError
from questions.memory import Memory
from questions.moments import TIMES, read_moment
from questions.overview.impact_map import Moment as MapMoment
from questions.overview.overview import Overview, Overviews, Shown, unread, worst_first
from questions.search import Found, search
from questions.subjects import subject_of
from questions.topics import TopicList, TopicsAsked, list_topics, similar_partitions, similar_subjects, similar_topics
from questions.whatif.losses import Losses, WhatIf, play_losses
from questions.whatif.scenario import brokers_in
from wording.suggestions import did_you_mean, near
from wording.times import moment

_NO_LOSS: Final = "Name brokers or racks, like ?broker=3&rack=eu-1. &controlled=1 shuts them down cleanly."

Answer = msgspec.Struct | tuple[msgspec.Struct, ...]


class Moment(NamedTuple):
    """The shown moment, by default the present, with a note if the request named a moment that is no longer kept."""

    at_ms: int | None = None
    note: str = ""


class Resources:
    """The question of each path, asked of the followed clusters, with `quorum` of `Overviews`."""

    def __init__(  # noqa: PLR0913 (one source an argument)
        self,
        memory: Memory,
        clusters: KnownClusters,
        transitions: Transitions,
        leases: Leases,
        config: PageConfig,
        quorum: Callable[[str], str],
    ) -> None:
        self._memory = memory
        self._clusters = clusters
        self._leases = leases
        self._ranks = config.teams.ranks
        self._overviews = Overviews(memory, config, self._ranks, quorum)
        self._histories = Histories(memory, self._overview_at, transitions.follow)

    def answer(self, request: Request, ask: Callable[[Request], Answer]) -> Answer:
        """Ask the question. Refuse the request if the state of its cluster is not known."""
        try:
            return ask(request)
        except UnknownClusterError as error:
            cluster = named(request, "cluster")
            refusal = f"Cluster {cluster}: {error}."
            if self._memory.knows(cluster):
                raise HTTPException(503, refusal) from error
            return found(None, refusal, lambda: self._similar_clusters(cluster))

    def _similar_clusters(self, name: str) -> list[str]:
        return near(name, (each.cluster for each in self._memory.clusters()))

    def fleet(self, _: Request) -> tuple[Overview, ...]:
        """Return every cluster, the worst first."""
        return worst_first(map(self._overview_now, self._memory.clusters()))

    def _overview_now(self, now: ClusterSnapshot) -> Overview:
        unknown = self._clusters.why_unknown(now)
        if unknown is not None:
            return unread(now.cluster, unknown)
        overview = self._overviews.now(now, self._clusters.present(now), now_ms(), self._clusters.clients(now.cluster))
        return msgspec.structs.replace(overview, lease=self._leases.held(now.cluster, now_ms()))

    def _overview_at(self, then: ClusterSnapshot, at_ms: int | None, shown: MapMoment = MapMoment.NOW) -> Overview:
        made = self._overviews.overview(then, self._clusters.present(then, at_ms), at_ms)
        return self._mapped(made, then, at_ms, shown)

    def _mapped(self, made: Overview, found: ClusterSnapshot, at_ms: int | None, shown: MapMoment) -> Overview:
        clients = self._clusters.clients(found.cluster)
        clients = clients if at_ms is None else Clients(teams=clients.teams)  # the groups are those of now
        return self._overviews.mapped(made, found, Shown(at_ms, now_ms(), shown, clients))

    def overview(self, request: Request) -> Overview:
        """Return the cluster on one screen, with its map."""
        cluster, asked_ms = named(request, "cluster"), _asked_ms(request)
        at_ms = self._nearest(cluster, asked_ms).at_ms
        similar = lambda: self._similar_clusters(cluster)  # noqa: E731
        now = found(self._memory.cluster(cluster), f"There is no cluster {cluster}.", similar)
        if at_ms is None and asked_ms is not None:
            raise HTTPException(404, _nothing_kept(cluster))
        if at_ms is None:
            return self._mapped(self._overview_now(now), now, None, map_moment(request))
        try:
            then = self._clusters.snapshot(cluster, at_ms)
        except UnknownClusterError as error:
            return unread(cluster, str(error))
        return self._overview_at(then, at_ms, map_moment(request))

    def topics(self, request: Request) -> TopicList:
        """Return a page of the cluster's topics."""
        cluster, asked = self._clusters.snapshot(named(request, "cluster")).cluster, request.query_params
        wanted = TopicsAsked(asked.get("words", "").strip(), asked.get("after", ""), asked.get("lacking") == "1")
        return list_topics(self._memory, cluster, wanted, self._ranks, self._clusters.doubts(cluster))

    def search(self, request: Request) -> Found:
        """Search all clusters, or the cluster of the path."""
        words = request.query_params.get("of", "")
        if "cluster" not in request.path_params:
            return search(self._memory, words)
        return search(self._memory, words, self._clusters.snapshot(named(request, "cluster")).cluster)

    def topic(self, request: Request) -> TopicAnswer:
        """Return the topic with some of its partitions."""
        topic, first = named(request, "topic"), number(request.query_params.get("first", "0"), "first")
        then, at_ms = self._then(request, {topic})
        clients = self._clusters.clients(then.cluster) if at_ms is None else NO_CLIENTS
        answer = topic_answer(then, topic, first, self._clusters.present(then, at_ms), clients)
        similar = lambda: similar_topics(self._memory, then.cluster, topic)  # noqa: E731
        return found(answer, f"{_there_is(at_ms)} no topic {topic}.", similar)

    def partition(self, request: Request) -> Explanation:
        """Explain the partition."""
        topic, number = named(request, "topic"), named(request, "partition")
        tp = TopicPartition(topic, PartitionId(int(number))) if NUMBER.fullmatch(number) else None
        then, at_ms = self._then(request, {topic})
        answer = None if tp is None else partition_answer(then, tp, self._clusters.present(then, at_ms))
        similar = lambda: [] if tp is None else similar_partitions(self._memory, then.cluster, tp)  # noqa: E731
        return found(answer, f"{_there_is(at_ms)} no partition {topic}-{number}.", similar)

    def broker(self, request: Request) -> BrokerAnswer:
        """Explain the broker."""
        number, (then, at_ms) = named(request, "broker"), self._then(request, None)
        broker = BrokerId(int(number)) if NUMBER.fullmatch(number) else None
        present = self._clusters.present(then, at_ms)
        answer = None if broker is None else broker_answer(then, broker, self._ranks, present)
        return found(answer, f"{_there_is(at_ms)} no broker {number} that is registered or hosts replicas.")

    def controller(self, request: Request) -> Explanation:
        """Explain the controller."""
        then, at_ms = self._then(request, None)
        return controller_answer(then, self._clusters.present(then, at_ms))

    def groups(self, request: Request) -> KnownGroups:
        """Return the consumer groups as the brokers last described them."""
        return self._clusters.clients(self._clusters.snapshot(named(request, "cluster")).cluster).known

    def timeline(self, request: Request) -> History:
        """Return the past around a moment."""
        asked, cluster = request.query_params, self._clusters.snapshot(named(request, "cluster")).cluster
        words = asked.get("of", "").strip()
        window = asked.get("window", str(AskedMoment().window_seconds))
        if window not in map(str, WINDOWS_SECONDS):
            raise HTTPException(400, f"window is one of {', '.join(map(str, WINDOWS_SECONDS))} seconds.")
        subject = subject_of(words)
        if words and subject is None:
            raise HTTPException(400, "of has no subject. Write orders-7, orders, broker 3 or controller.")
        moment = AskedMoment(_asked_ms(request), int(window), subject)
        history = found(self._histories.history(cluster, moment), _nothing_kept(cluster))
        if history.timeline is not None or subject is None:
            return history
        similar = similar_subjects(self._memory, cluster, subject)
        note = (f"There is no {words}{did_you_mean(similar)}",) if similar else ()
        return msgspec.structs.replace(history, notes=(*history.notes, *note))

    def consequences(self, request: Request) -> WhatIf:
        """Play losses of brokers."""
        cluster = named(request, "cluster")
        if not request.query_params.keys() & {"broker", "rack"}:
            raise HTTPException(400, _NO_LOSS)
        doubts = self._clusters.doubts(cluster)
        try:
            now = self._clusters.snapshot(cluster)
            losses = _losses(request, now)
            return play_losses(self._clusters.whole(now), losses, doubts)
        except UnknownClusterError as error:
            return WhatIf(doubts, None, str(error))

    def moment(self, request: Request) -> Moment:
        """Return the nearest kept moment to the requested one, if the cluster has any."""
        return self._nearest(named(request, "cluster"), _asked_ms(request))

    def _nearest(self, cluster: str, asked_ms: int | None) -> Moment:
        past = None if asked_ms is None else self._memory.kept(cluster)
        if asked_ms is None or past is None:
            return Moment()
        return Moment(past.nearest(asked_ms), OLDEST if asked_ms < past.since_ms else "")

    def _then(self, request: Request, topics: Collection[str] | None) -> tuple[ClusterSnapshot, int | None]:
        """Return the cluster at the requested moment, with the named topics, all for None. Refuse an unknown state."""
        cluster, asked_ms = named(request, "cluster"), _asked_ms(request)
        at_ms = self._nearest(cluster, asked_ms).at_ms
        then = self._clusters.snapshot(cluster, at_ms, topics)
        if at_ms is None and asked_ms is not None:
            raise HTTPException(404, _nothing_kept(cluster))
        return then, at_ms


def _losses(request: Request, now: ClusterSnapshot) -> Losses:
    asked = request.query_params
    brokers = {BrokerId(number(said, "broker")) for said in asked.getlist("broker")}
    try:
        for rack in asked.getlist("rack"):
            brokers |= set(brokers_in(now.picture(()).context, rack))
    except UnknownBrokersError as error:
        raise HTTPException(400, str(error)) from error
    return Losses(tuple(sorted(brokers)), asked.get("controlled") == "1")


def _there_is(at_ms: int | None) -> str:
    return "There is" if at_ms is None else f"As of {moment(at_ms)} there was"


def _nothing_kept(cluster: str) -> str:
    return f"Kontrast keeps no past of cluster {cluster} yet."


def _asked_ms(request: Request) -> int | None:
    """Return the requested time in milliseconds since 1970, if any."""
    said = request.query_params.get("at", "").strip()
    if not said:
        return None
    try:
        at_ms = read_moment(said).time_ms
    except ValueError:
        at_ms = None
    if at_ms is None:
        raise HTTPException(400, f"at is no moment. Write {TIMES}.")
    return at_ms
