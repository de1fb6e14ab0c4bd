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
from dashboards.page.request_parts import NUMBER, choice, found, named, number
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
from questions.timeline.timeline import Timeline
from questions.topics import (
    TopicList,
    TopicOrder,
    TopicsAsked,
    list_topics,
    similar_partitions,
    similar_subjects,
    similar_topics,
)
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
        return near(name, self._memory.names())

    def fleet(self, request: Request) -> tuple[Overview, ...]:
        """Return every cluster that the words are about, the worst first."""
        words = request.query_params.get("words", "").strip().lower()
        every = map(self._overview_now, self._memory.clusters())
        return worst_first(each for each in every if words in _about(each))

    def _overview_now(self, now: ClusterSnapshot) -> Overview:
        unknown = self._clusters.why_unknown(now)
        if unknown is not None:
            return unread(now.cluster, unknown)
        overview = self._overviews.now(now, self._clusters.present(now), now_ms(), self._clusters.clients(now.cluster))
        return msgspec.structs.replace(overview, lease=self._leases.held(now.cluster, now_ms()))

    def _overview_at(self, then: ClusterSnapshot, at_ms: int | None) -> Overview:
        made = self._overviews.overview(then, self._clusters.present(then, at_ms), at_ms)
        return self._mapped(made, then, at_ms, MapMoment.NOW)

    def _mapped(self, made: Overview, found: ClusterSnapshot, at_ms: int | None, shown: MapMoment) -> Overview:
        clients = self._clusters.clients(found.cluster)
        clients = clients if at_ms is None else Clients(teams=clients.teams)  # the groups are those of now
        return self._overviews.mapped(made, found, Shown(at_ms, now_ms(), shown, clients))

    def overview(self, request: Request) -> Overview:
        """Return the cluster on one screen, with its map."""
        (now, at_ms), shown = self._known(request), choice(request, "map", MapMoment) or MapMoment.NOW
        if at_ms is None:
            return self._mapped(self._overview_now(now), now, None, shown)
        then = self._memory.cluster(now.cluster, at_ms) or now
        return self._mapped(self._judged(now.cluster, at_ms), then, at_ms, shown)

    def brokers(self, request: Request) -> Overview:
        """Return the cluster with its brokers by rack, without a map."""
        now, at_ms = self._known(request)
        return self._judged(now.cluster, at_ms)

    def _known(self, request: Request) -> tuple[ClusterSnapshot, int | None]:
        """Return the present cluster and the requested moment. Refuse the request if either is unknown."""
        cluster, asked_ms = named(request, "cluster"), _asked_ms(request)
        at_ms = self._nearest(cluster, asked_ms).at_ms
        similar = lambda: self._similar_clusters(cluster)  # noqa: E731
        now = found(self._memory.cluster(cluster), f"There is no cluster {cluster}.", similar)
        if at_ms is None and asked_ms is not None:
            raise HTTPException(404, _nothing_kept(cluster))
        return now, at_ms

    def shown_cluster(self, request: Request, answer: Answer | str, at_ms: int | None) -> Overview | None:
        """Return the cluster whose state the bar or the icon of the page shows, which is the worst one of all."""
        shown = answer.overview if isinstance(answer, History) else answer
        if isinstance(shown, tuple):
            return next((each for each in shown if isinstance(each, Overview)), None)
        if isinstance(shown, Overview):
            return shown
        cluster = named(request, "cluster") if "cluster" in request.path_params else ""
        return self._judged(cluster, at_ms) if self._memory.knows(cluster) else None

    def recent(self, request: Request, answer: Answer | str, at_ms: int | None) -> Timeline | None:
        """Return the last minutes of the subject that the page explains, if anything was wrong."""
        explained = answer.explanation if isinstance(answer, TopicAnswer | BrokerAnswer) else answer
        subject = subject_of(explained.subject) if isinstance(explained, Explanation) else None
        return None if subject is None else self._histories.recent(named(request, "cluster"), subject, at_ms)

    def _judged(self, cluster: str, at_ms: int | None) -> Overview:
        """Return the cluster at a kept moment, None for now, without map and last day."""
        try:
            then = self._clusters.snapshot(cluster, at_ms)
        except UnknownClusterError as error:
            return unread(cluster, str(error))
        return self._overviews.overview(then, self._clusters.present(then, at_ms), at_ms)

    def topics(self, request: Request) -> TopicList:
        """Return a page of the cluster's topics."""
        (then, at_ms), asked = self._then(request, None), request.query_params
        order = choice(request, "sort", TopicOrder)
        wanted = TopicsAsked(asked.get("words", "").strip(), asked.get("after", ""), asked.get("lacking") == "1", order)
        doubts = self._clusters.doubts(then.cluster) if at_ms is None else ()
        return list_topics(then.topics, wanted, self._ranks, doubts)

    def search(self, request: Request) -> Found:
        """Search all clusters, or the cluster of the path."""
        words = request.query_params.get("of", "")
        is_one = "cluster" in request.path_params
        cluster = self._clusters.snapshot(named(request, "cluster")).cluster if is_one else None
        return search(self._memory, words, lambda name: self._judged(name, None), cluster)

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


def _about(each: Overview) -> str:
    state = each.state
    return " ".join((each.cluster, state.words, state.event, state.reason, each.effect)).lower()


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
