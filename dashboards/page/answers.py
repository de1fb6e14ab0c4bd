"""Answers of the live page, made from the newest rows. Templates and the JSON interface use the same structs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import INTERNAL_TOPICS, BrokerId, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.rules.migration_phases import MigrationPhase
from controller.view.migration import DONE
from controller.view.types import Context
from dashboards.kept_rows.reading import ReadingCounts
from dashboards.page.asked import now_ms
from dashboards.page.config import PageConfig
from dashboards.page.leases import Leases
from questions.cluster_rows import ClusterSnapshot, TopicRows
from questions.doubts import BLINDING, doubts, silent_process
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.explanation import Explanation
from questions.explain.partition import explain_partition
from questions.explain.subject import Subject
from questions.explain.topic import explain_topic
from questions.groups import NO_CLIENTS, Clients
from questions.known_groups import NO_GROUPS, KnownGroups
from questions.memory import Memory
from questions.overview.overview import Overview, OverviewMaker, WayToKRaft, oldest, unread, why_unread
from questions.overview.partition_groups import PartitionGroup, PartitionLine, partition_line
from questions.overview.recent import day_begin_ms, hours_of, news_of
from questions.picture import CONTROLLER_GROUP, Picture, Present
from questions.state import State
from questions.whatif.scenario import brokers_in
from wording.suggestions import near

TOPICS_OF_A_PAGE: Final = 50
_MOST_NAMES: Final = 5_000  # compared with a mistyped one, which takes up to 0.3 s
PARTITIONS_OF_A_PAGE: Final = 100

Quorums = Callable[[str], str]  # a sentence with the last answer of a cluster's KRaft quorum
Groups = Callable[[str], KnownGroups]


def no_groups(_: str) -> KnownGroups:
    """Return that no group is known."""
    return NO_GROUPS


class TopicLine(msgspec.Struct, frozen=True):
    """A topic in a list."""

    topic: str
    partitions: int
    unusable: int
    under_min_isr: int
    under_replicated: int


class TopicList(msgspec.Struct, frozen=True):
    """Topics by name, or those with problems by importance. `next` is the name to go on after, None at the end."""

    doubts: tuple[str, ...]
    topics: tuple[TopicLine, ...]
    next: str | None


class TopicAnswer(msgspec.Struct, frozen=True):
    """A topic explained, with some of its partitions; `next` is the number to go on with, None at the end."""

    explanation: Explanation
    partitions: tuple[PartitionLine, ...]
    next: int | None


class BrokerAnswer(msgspec.Struct, frozen=True):
    """A broker explained, with the partitions it hosts that clients cannot use."""

    explanation: Explanation
    groups: tuple[PartitionGroup, ...]


class Answers:
    """Answers from followed rows. Each reads only the part of the cluster that it shows.

    `at_ms` is a kept moment, by default the present.
    """

    def __init__(  # noqa: PLR0913 (one source an argument)
        self,
        memory: Memory,
        reading: ReadingCounts,
        quorum: Quorums,
        config: PageConfig,
        leases: Leases,
        groups: Groups = no_groups,
    ) -> None:
        self._memory = memory
        self._maker = OverviewMaker(config)
        self._reading = reading
        self._quorum = quorum
        self.groups = groups
        self._teams = config.teams
        self._leases = leases
        self._stale_after_ms = config.stale_after_ms

    def fleet(self) -> tuple[Overview, ...]:
        """Return every cluster, the worst first."""
        found = [self._overview(each) for each in self._memory.clusters()]
        return tuple(sorted(found, key=_worst_first))

    def overview(self, cluster: str, at_ms: int | None = None) -> Overview | None:
        """Return the cluster on one screen, if it exists."""
        found = self._memory.cluster(cluster)
        if found is None or at_ms is None:
            return None if found is None else self._overview(found)
        unknown, then = self.why_unknown(cluster, at_ms), self._memory.cluster(cluster, at_ms)
        if unknown is not None or then is None:
            return unread(cluster, unknown or "no counts are kept")
        return self.overview_at(then, at_ms)

    def present(self, found: ClusterSnapshot, at_ms: int | None = None) -> Present | None:
        """Return the present of a cluster that is shown as current, None for a moment of the past."""
        if at_ms is not None or found.heartbeat_ms is None:
            return None
        now = Present(now_ms(), self._stale_after_ms)
        if not now.is_stale(found.heartbeat_ms):
            return now
        silent = silent_process(self._memory.job_of(found.cluster), found.heartbeat_ms, now.now_ms, now.stale_after_ms)
        return now._replace(silent=silent)

    def clients(self, cluster: str) -> Clients:
        """Return the groups with the teams of every name."""
        return Clients(self.groups(cluster), self._teams)

    def doubts(self, cluster: str) -> tuple[str, ...]:
        """Return why the present cluster may be unknown, a sentence each."""
        found = self._memory.cluster(cluster)
        if found is None or found.gauges is None:
            return ()
        own = [row for row in found.open_alerts if row.alert in BLINDING]
        return doubts(found.picture(own, self.present(found)))

    def why_unknown(self, cluster: str, at_ms: int | None = None) -> str | None:
        """Return the reason why the cluster's state is unknown, if it is."""
        found = self._memory.cluster(cluster)
        if found is None:
            return "no cluster has this name"
        unknown = self._why_unknown(found)
        then = None if unknown is not None or at_ms is None else self._memory.cluster(cluster, at_ms)
        if then is not None and not then.ready:
            return "Kontrast had not read the cluster completely at that moment"
        return unknown

    def topics(self, cluster: str, contains: str = "", after: str = "", *, lacking: bool = False) -> TopicList:
        """Return a page of topics whose names contain the text in any case. `lacking` lists those with problems."""
        if lacking:
            return self._lacking_topics(cluster, contains, after)
        names = self._memory.topic_names(cluster, contains, after, TOPICS_OF_A_PAGE + 1)
        shown = names[:TOPICS_OF_A_PAGE]
        return self._topic_list(cluster, shown, has_more=len(names) > len(shown))

    def clusters_like(self, name: str) -> list[str]:
        """Return the clusters with a similar name, the nearest first."""
        return near(name, (found.cluster for found in self._memory.clusters()))

    def topics_like(self, cluster: str, name: str) -> list[str]:
        """Return the topics with a similar name, the nearest first. Of many, only those from its first letter on."""
        names = self._memory.topic_names(cluster, "", "", _MOST_NAMES)
        if len(names) == _MOST_NAMES:
            names = self._memory.topic_names(cluster, "", name[:1], _MOST_NAMES)
        return near(name, names)

    def partitions_like(self, cluster: str, tp: TopicPartition) -> list[str]:
        """Return the partitions of this number in topics with a similar name, the nearest first."""
        topics = self.topics_like(cluster, tp.topic)
        found = self._topics(cluster, topics)
        return [f"{name}-{tp.partition}" for name in topics if name in found and tp.partition in found[name].partitions]

    def subjects_like(self, cluster: str, subject: Subject) -> list[str]:
        """Return existing partitions or topics with a similar name, none for a subject that exists."""
        topic, tp = subject.topic, subject.partition
        if topic is None or self._memory.partitions_of(cluster, topic):
            return []
        if tp is not None and tp.partition in self._memory.partitions_of(cluster, tp.topic):
            return []
        return (self.partitions_like(cluster, tp) if tp is not None else []) or self.topics_like(cluster, topic)

    def _lacking_topics(self, cluster: str, contains: str, after: str) -> TopicList:
        found = {
            name: topic.row
            for name, topic in self._topics(cluster, None).items()
            if contains.lower() in name.lower() and any(row.problem is not None for row in topic.partitions.values())
        }
        ranked = sorted(found, key=lambda name: self._maker.rank(name, found[name]))
        first = ranked.index(after) + 1 if after in found else 0
        shown = ranked[first : first + TOPICS_OF_A_PAGE]
        return self._topic_list(cluster, shown, has_more=len(ranked) > first + len(shown))

    def _topic_list(self, cluster: str, shown: list[str], *, has_more: bool) -> TopicList:
        topics = self._topics(cluster, shown)
        lines = tuple(_topic_line(name, topics[name].partitions.values()) for name in shown if name in topics)
        return TopicList(self.doubts(cluster), lines, shown[-1] if has_more else None)

    def topic(self, cluster: str, topic: str, first: int = 0, at_ms: int | None = None) -> TopicAnswer | None:
        """Return the topic, if it exists, with its partitions from `first` on."""
        found = self._with_topic(cluster, topic, at_ms)
        picture = None if found is None else self._picture_of_topic(found, topic, at_ms)
        if found is None or picture is None or picture.topic(topic) is None:
            return None
        rows = [row for number, row in sorted(found.topics[topic].partitions.items()) if number >= first]
        more = rows[PARTITIONS_OF_A_PAGE].partition if len(rows) > PARTITIONS_OF_A_PAGE else None
        lines = tuple(map(partition_line, rows[:PARTITIONS_OF_A_PAGE]))
        return TopicAnswer(explain_topic(picture, topic), lines, more)

    def partition(self, cluster: str, tp: TopicPartition, at_ms: int | None = None) -> Explanation | None:
        """Return the partition's explanation, if it exists."""
        found = self._with_topic(cluster, tp.topic, at_ms)
        picture = None if found is None else self._picture_of_topic(found, tp.topic, at_ms)
        return None if picture is None or picture.partition(tp) is None else explain_partition(picture, tp)

    def broker(self, cluster: str, broker: BrokerId, at_ms: int | None = None) -> BrokerAnswer | None:
        """Return the broker's explanation, if the cluster mentions it."""
        found = self._memory.cluster(cluster, at_ms, None)
        if found is None or found.gauges is None:
            return None
        known = {row.broker: row.registered for row in found.brokers}
        if broker not in known and broker not in found.gauges.replicas_by_broker:
            return None
        lost = [row for row in (*found.unusable, *found.under_min_isr) if broker in row.replicas]
        groups = self._maker.groups(lost, found.topics)
        about = [row for row in found.open_alerts if broker in (row.broker, *row.brokers)]
        explanation = explain_broker(self._picture(_with_replicas_on(found, broker), about, at_ms), broker)
        return BrokerAnswer(explanation, groups)

    def controller(self, cluster: str, at_ms: int | None = None) -> Explanation | None:
        """Return the controller's explanation, if the cluster exists."""
        found = self._memory.cluster(cluster, at_ms, None)
        if found is None or found.gauges is None:
            return None
        about = [row for row in found.open_alerts if row.group == CONTROLLER_GROUP]
        rows = {name: topic.row for name, topic in found.topics.items()}
        deleting = {name: TopicRows(row, {}) for name, row in rows.items() if row and row.deletion is not None}
        return explain_controller(self._picture(replace(found, topics=deleting), about, at_ms))

    def brokers_in(self, cluster: str, rack: str) -> tuple[BrokerId, ...]:
        """Return the rack's registered brokers. Raise UnknownBrokersError if it has no brokers."""
        found = self._memory.cluster(cluster)
        return () if found is None or found.gauges is None else brokers_in(found.picture(()).context, rack)

    def whole_context(self, cluster: str) -> Context | None:
        """Return the cluster with every partition, for simulations. This takes seconds for 200,000 partitions."""
        found = self._memory.cluster(cluster, topics=None)
        return None if found is None or found.gauges is None else found.picture().context

    def _with_topic(self, cluster: str, topic: str, at_ms: int | None) -> ClusterSnapshot | None:
        """Return the cluster with the topic, if that has partitions."""
        found = self._memory.cluster(cluster, at_ms, (topic,))
        if found is None or found.gauges is None or topic not in found.topics:
            return None
        return found if found.topics[topic].partitions else None

    def _picture_of_topic(self, found: ClusterSnapshot, topic: str, at_ms: int | None) -> Picture:
        return self._picture(found, _naming(topic, found.open_alerts), at_ms)

    def _picture(self, found: ClusterSnapshot, about: Iterable[AlertRow], at_ms: int | None) -> Picture:
        """Return a picture with the alerts about its subject, and those that hide the cluster."""
        alerts = [row for row in found.open_alerts if row.alert in BLINDING]
        picture = found.picture([*alerts, *oldest(about)], self.present(found, at_ms))
        return picture if at_ms is not None else msgspec.structs.replace(picture, clients=self.clients(found.cluster))

    def _why_unknown(self, found: ClusterSnapshot) -> str | None:
        state = self._reading.snapshot().of(found.cluster)
        if not state.source_up:
            return "Kontrast cannot read its outputs (see the log of kontrast serve)"
        if not state.caught_up:
            return "Kontrast is still reading its outputs"
        if not state.vouches_for(found.cluster):
            return "rows are missing or of a newer Kontrast (see /readyz and `kontrast status`)"
        return why_unread(found)

    def overview_at(self, found: ClusterSnapshot, at_ms: int | None = None) -> Overview:
        """Return the overview of this snapshot, of now or of the moment."""
        names = {row.topic for row in (*found.unusable, *found.under_min_isr)}
        topics = self._topics(found.cluster, names and {*names, *INTERNAL_TOPICS}, at_ms)
        clients = self.clients(found.cluster) if at_ms is None else NO_CLIENTS
        return self._maker.overview(found, topics, self.present(found, at_ms), clients)

    def _topics(self, cluster: str, names: Collection[str] | None, at_ms: int | None = None) -> Mapping[str, TopicRows]:
        """Return those of these topics that exist, None for all."""
        found = None if names == set() else self._memory.cluster(cluster, at_ms, names)
        return {} if found is None else found.topics

    def _overview(self, found: ClusterSnapshot) -> Overview:
        unknown = self._why_unknown(found)
        if unknown is not None:
            return unread(found.cluster, unknown)
        made = self.overview_at(found)
        shown_ms = found.heartbeat_ms if found.is_replayed else now_ms()
        assert shown_ms is not None, "a cluster that was read has a heartbeat"
        since = made.state.since if made.state.state is State.UNKNOWN else None
        unknown_since_ms = None if since is None else since.ms
        kept = self._memory.kept(found.cluster)
        kept_since_ms = shown_ms if kept is None else kept.since_ms
        alerts = self._memory.alert_changes(found.cluster, day_begin_ms(shown_ms), shown_ms)
        return msgspec.structs.replace(
            made,
            hours=hours_of(alerts, found.open_alerts, kept_since_ms, unknown_since_ms, shown_ms),
            news=news_of(self._memory.newest_events(found.cluster)),
            migration=self._way_to_kraft(found),
            lease=self._leases.held(found.cluster, now_ms()),
        )

    def _way_to_kraft(self, found: ClusterSnapshot) -> WayToKRaft | None:
        row = found.migration
        if row is None or (row.phase == MigrationPhase.ZOOKEEPER.value and row.rollback == DONE):
            return None
        phase, quorum = row.phase.replace("_", " "), self._quorum(found.cluster)
        return WayToKRaft(phase, row.since_ms, row.next_step, row.rollback_sentence, row.missing_brokers, quorum)


def _worst_first(overview: Overview) -> tuple[object, ...]:
    """Return the rank of a cluster, by state, then by partitions that clients cannot use, then by name.

    A replayed past comes last, because it is no present trouble.
    """
    unusable = sum(card.unusable for card in overview.incidents)
    return overview.is_past, list(State).index(overview.state.state), -unusable, overview.cluster


def _naming(topic: str, alerts: Iterable[AlertRow]) -> list[AlertRow]:
    """Return the alerts that name the topic or one of its partitions."""
    begins = f"{topic}-"

    def names(row: AlertRow) -> bool:
        return topic in (row.topic, *row.examples) or any(example.startswith(begins) for example in row.examples)

    return list(filter(names, alerts))


def _with_replicas_on(found: ClusterSnapshot, broker: BrokerId) -> ClusterSnapshot:
    """Return the cluster with the broker's partitions, which are some thousands of 200,000."""
    hosted: dict[str, TopicRows] = {}
    for name, topic in found.topics.items():
        rows = {number: row for number, row in topic.partitions.items() if broker in row.replicas}
        if rows:
            hosted[name] = TopicRows(None, rows)
    return replace(found, topics=hosted)


def _topic_line(name: str, rows: Collection[PartitionRow]) -> TopicLine:
    problems = [row.problem for row in rows]
    refusing = [row for row in rows if row.problem == Problem.UNDER_MIN_ISR.value]
    return TopicLine(
        name,
        len(problems),
        sum(problem in UNUSABLE_WORDS for problem in problems),
        len(refusing),
        # Kafka's gauge counts the refusing ones too, if a replica is out of sync.
        problems.count(Problem.UNDER_REPLICATED.value) + sum(len(row.isr) < len(row.replicas) for row in refusing),
    )
