"""Questions of the page about clusters and their parts. Each takes only the rows that its subject needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from questions.check.damage import PartitionLine, partition_line, place_of
from questions.clients.groups import NO_CLIENTS
from questions.clients.known_groups import KnownGroups
from questions.cluster_rows import ClusterSnapshot, TopicRows
from questions.doubts import BLINDING
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.explanation import Explanation
from questions.explain.partition import explain_partition
from questions.explain.subject import NUMBER
from questions.explain.topic import explain_topic
from questions.page.impact_map import ImpactMap, Moment, hosted_map
from questions.page.known_clusters import KnownCluster
from questions.page.overview import Overview, worst_first
from questions.page.topics import similar_partitions, similar_topics
from questions.picture import CONTROLLER_GROUP, oldest
from questions.question import NotFoundError, Question, UnknownClusterError, meaning
from questions.whatif.question import Losses, play_losses
from questions.whatif.scenario import StepKind, brokers_in
from wording.sentences import did_you_mean

_MOMENTS = {"type": "string", "enum": [moment.value for moment in Moment]}  # in their order


class ShowFleet(Question, frozen=True):
    """Every cluster on one screen, the worst first."""

    answer = tuple[Overview, ...]
    path = "/clusters"
    refuses = ()

    words: Annotated[
        str, meaning("Only clusters with this text in name, state, event, reason or effect, in any case.")
    ] = ""

    def on_page(self, cluster: KnownCluster) -> tuple[Overview, ...]:
        """Return every cluster that the words are about, the worst first."""
        words = self.words.strip().lower()
        every = map(cluster.clusters.now, cluster.memory.clusters())
        return worst_first(each for each in every if words in _about(each))


class ShowCluster(Question, frozen=True):
    """A cluster on one screen."""

    answer = Overview
    path = "/clusters/{cluster}"
    has_past = True

    map: Annotated[
        Moment,
        meaning(
            "Moment of `map`: before the incident, now, first or second (after these brokers have started), or loss "
            "(of one more broker). Default: now."
        ),
        msgspec.Meta(extra_json_schema=_MOMENTS),
    ] = Moment.NOW

    def on_page(self, cluster: KnownCluster) -> Overview:
        """Return the cluster with its map."""
        whole = cluster.memory.cluster(cluster.name, cluster.at_ms, None) or _existing(cluster)
        is_now = cluster.at_ms is None
        return cluster.mapped(
            cluster.clusters.now(replace(whole, topics={})) if is_now else cluster.judged(), whole, self.map
        )


class ShowBrokers(Question, frozen=True):
    """The brokers by rack."""

    answer = Overview
    path = "/clusters/{cluster}/brokers"
    has_past = True

    words: Annotated[
        str, meaning("Only brokers with this text in their id, host, rack, release or state, in any case.")
    ] = ""

    def on_page(self, cluster: KnownCluster) -> Overview:
        """Return the cluster with its brokers by rack, without a map."""
        _existing(cluster)
        made, words = cluster.judged(), self.words.strip().lower()
        narrowed = (rack.narrowed(words) for rack in made.racks)
        return msgspec.structs.replace(made, racks=tuple(rack for rack in narrowed if rack.brokers))


class ChooseLosses(ShowBrokers, frozen=True):
    """The brokers by rack on the page that asks what their loss would do, which is no answer of the interface."""

    path = ""
    has_past = False


class ShowGroups(Question, frozen=True):
    """Consumer groups and transactional ids as the brokers last described them."""

    answer = KnownGroups
    path = "/clusters/{cluster}/groups"

    def on_page(self, cluster: KnownCluster) -> KnownGroups:
        """Return the groups of a cluster whose state is known."""
        cluster.snapshot()
        return cluster.clients.known


class LoseBrokers(Question, frozen=True):
    """Consequences of losing the named brokers or racks."""

    answer = Losses
    path = "/clusters/{cluster}/consequences"
    refuses = ()

    brokers: Annotated[tuple[int, ...], meaning("A lost broker. Name at least one broker or rack.")] = ()
    racks: Annotated[tuple[str, ...], meaning("A lost rack.")] = ()
    controlled: Annotated[
        str, meaning("1 shuts them down cleanly, one after the other. Otherwise they crash at once.")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError without a loss."""
        if not self.brokers and not self.racks:
            raise ValueError("Name brokers or racks, like ?broker=3&rack=eu-1. &controlled=1 shuts them down cleanly")

    def on_page(self, cluster: KnownCluster) -> Losses:
        """Play the losses, or return why the cluster is not known. Raise UnknownBrokersError for an empty rack."""
        doubts, change = cluster.doubts(), StepKind.SHUT_DOWN if self.controlled == "1" else StepKind.CRASH
        try:
            context = cluster.snapshot().picture(()).context  # racks are known without the partitions
            of_racks = [broker for rack in self.racks for broker in brokers_in(context, rack)]
            return play_losses(cluster.whole(), {*map(BrokerId, self.brokers), *of_racks}, change, doubts)
        except UnknownClusterError as error:
            return Losses(doubts, None, str(error))


def _existing(cluster: KnownCluster) -> ClusterSnapshot:
    """Return the present cluster, even if its state is not known. Raise NotFoundError."""
    now = cluster.memory.cluster(cluster.name)
    if now is None:
        raise NotFoundError(f"There is no cluster {cluster.name}{cluster.clusters.similar(cluster.name)}")
    return now


def _about(each: Overview) -> str:
    state = each.state
    return " ".join((each.cluster, state.words, state.event, state.reason, state.effect)).lower()


PARTITIONS_OF_A_PAGE: Final = 100
_Topic = Annotated[str, meaning("The topic's name, percent-encoded.")]


class TopicAnswer(msgspec.Struct, frozen=True):
    """A topic explained, with some of its partitions; `next` is the number to go on with, None at the end."""

    explanation: Explanation
    partitions: tuple[PartitionLine, ...]
    next: int | None


class BrokerAnswer(msgspec.Struct, frozen=True):
    """A broker explained, with a map of the partitions that it hosts."""

    explanation: Explanation
    map: ImpactMap


class ExplainPartition(Question, frozen=True):
    """A partition explained."""

    answer = Explanation
    path = "/clusters/{cluster}/topics/{topic}/{partition}"
    has_past = True

    topic: _Topic
    partition: Annotated[str, meaning("The partition's number.")]

    def on_page(self, cluster: KnownCluster) -> Explanation:
        """Explain the partition. Raise NotFoundError."""
        found, tp = cluster.snapshot({self.topic}), TopicPartition(self.topic, PartitionId(_number(self.partition)))
        topic = found.topics.get(tp.topic)
        row = None if topic is None else topic.partitions.get(tp.partition)
        if topic is None or row is None:
            similar = did_you_mean(similar_partitions(cluster.memory, cluster.name, tp))
            raise NotFoundError(f"{cluster.there_is} no partition {self.topic}-{self.partition}{similar}")
        # A broker without a row is known only by its replicas, so the picture needs its other replicas, too.
        strangers = set(row.replicas).difference([broker.broker for broker in found.brokers])
        needed = {tp.partition: row} if not strangers else _hosted(topic.partitions, strangers)
        name = str(tp)
        about = [alert for alert in found.open_alerts if name in alert.examples]
        part = replace(found, topics={tp.topic: TopicRows(topic.row, needed)})
        picture = part.picture(_shown(found, about), cluster.present(found), counted=bool(strangers))
        return explain_partition(picture, tp)


class ShowTopic(Question, frozen=True):
    """A topic explained, with a hundred of its partitions."""

    answer = TopicAnswer
    path = "/clusters/{cluster}/topics/{topic}"
    has_past = True

    topic: _Topic
    first: Annotated[int, meaning("Partitions from this number on. Use `next` of the former answer.")] = 0

    def on_page(self, cluster: KnownCluster) -> TopicAnswer:
        """Explain the topic, and list its partitions from `first` on. Raise NotFoundError."""
        found, name, begins = cluster.snapshot({self.topic}), self.topic, f"{self.topic}-"
        about = [
            alert
            for alert in found.open_alerts
            if name in (alert.topic, *alert.examples) or any(example.startswith(begins) for example in alert.examples)
        ]
        picture = found.picture(_shown(found, about), cluster.present(found))
        topic = found.topics.get(name)
        if topic is None or not topic.partitions or picture.topic(name) is None:
            similar = did_you_mean(similar_topics(cluster.memory, cluster.name, name))
            raise NotFoundError(f"{cluster.there_is} no topic {name}{similar}")
        rows = [row for number, row in sorted(topic.partitions.items()) if number >= self.first]
        more = rows[PARTITIONS_OF_A_PAGE].partition if len(rows) > PARTITIONS_OF_A_PAGE else None
        lines = tuple(map(partition_line, rows[:PARTITIONS_OF_A_PAGE]))
        clients = cluster.clients if cluster.at_ms is None else NO_CLIENTS
        return TopicAnswer(explain_topic(msgspec.structs.replace(picture, clients=clients), name), lines, more)


class ShowBroker(Question, frozen=True):
    """A broker explained, with the partitions it hosts that clients cannot use."""

    answer = BrokerAnswer
    path = "/clusters/{cluster}/brokers/{broker}"
    has_past = True

    broker: Annotated[str, meaning("The broker's id.")]

    def on_page(self, cluster: KnownCluster) -> BrokerAnswer:
        """Explain the broker. Raise NotFoundError."""
        found, broker = cluster.snapshot(None), BrokerId(_number(self.broker))
        assert found.gauges is not None, "a cluster that was not read"
        if broker not in found.gauges.replicas_by_broker and all(row.broker != broker for row in found.brokers):
            raise NotFoundError(f"{cluster.there_is} no broker {self.broker} that is registered or hosts replicas")
        # Of 200,000 partitions, a broker hosts some thousands.
        hosted = {name: _hosted(topic.partitions, {broker}) for name, topic in found.topics.items()}
        topics = {name: TopicRows(None, rows) for name, rows in hosted.items() if rows}
        about = [alert for alert in found.open_alerts if broker in (alert.broker, *alert.brokers)]
        picture = replace(found, topics=topics).picture(_shown(found, about), cluster.present(found))
        impact = hosted_map(found, partial(place_of, ranks=cluster.clusters.ranks), broker)
        return BrokerAnswer(explain_broker(picture, broker), impact)


class ExplainController(Question, frozen=True):
    """The controller or its absence explained."""

    answer = Explanation
    path = "/clusters/{cluster}/controller"
    has_past = True

    def on_page(self, cluster: KnownCluster) -> Explanation:
        """Explain the controller. Of all topics, only those in deletion matter."""
        found = cluster.snapshot(None)
        rows = {name: topic.row for name, topic in found.topics.items()}
        deleting = {name: TopicRows(row, {}) for name, row in rows.items() if row and row.deletion is not None}
        about = [alert for alert in found.open_alerts if alert.group == CONTROLLER_GROUP]
        return explain_controller(replace(found, topics=deleting).picture(_shown(found, about), cluster.present(found)))


def _number(word: str) -> int:
    """Return the number of a partition or broker, or one that none has."""
    return int(word) if NUMBER.fullmatch(word) else -1


def _hosted(rows: Mapping[PartitionId, PartitionRow], brokers: set[BrokerId]) -> dict[PartitionId, PartitionRow]:
    return {number: row for number, row in rows.items() if not brokers.isdisjoint(row.replicas)}


def _shown(found: ClusterSnapshot, about: Iterable[AlertRow]) -> list[AlertRow]:
    """Return the alerts about a subject that a page has room for, and those that hide the cluster."""
    return [*[row for row in found.open_alerts if row.alert in BLINDING], *oldest(about)]
