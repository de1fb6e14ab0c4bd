"""Search by part of a name for topics, partitions, brokers, the controller, clusters, and a key's partition.

Each hit has its state in the words of the map, and its page by the words that `kontrast explain` and alerts use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Annotated, Final

import msgspec

from controller.contract.metadata_rows import PartitionRow
from controller.rules.partitioner import partition_for_key
from questions.check.state import State
from questions.explain.key import KeyFormat, key_bytes
from questions.explain.subject import Subject, read_subject
from questions.memory import Memory
from questions.page.impact_map import state_of_partition, states_in_words
from questions.page.known_clusters import KnownCluster
from questions.page.overview import Overview
from questions.question import Question, meaning
from wording.sentences import counted


def page_of(memory: Memory, cluster: str, words: str, at_ms: int | None = None) -> tuple[str, ...] | None:
    """Return the path of a subject's page: orders-7, partition orders-7, topic orders, broker 3, controller 1.

    Return None if the name is unknown at the kept moment, by default now. An alert's other subjects have the cluster's
    own page.
    """
    page, subject = ("clusters", cluster), subject_of(words)
    if subject is None:
        return None if words.strip() else page
    if subject.is_controller:
        return (*page, "controller")
    if subject.broker is not None:
        return (*page, "brokers", str(subject.broker))
    assert subject.topic is not None, "a subject that is nothing"
    tp = subject.partition
    found = memory.cluster(cluster, at_ms, {subject.topic, *([tp.topic] if tp is not None else [])})
    topics = {} if found is None else found.topics
    if tp is not None and tp.topic in topics and tp.partition in topics[tp.topic].partitions:
        return (*page, "topics", tp.topic, str(tp.partition))
    if subject.topic in topics and topics[subject.topic].partitions:
        return (*page, "topics", subject.topic)
    alerts = () if found is None else found.open_alerts
    return page if any(row.subject == subject.words for row in alerts) else None


def subject_of(words: str) -> Subject | None:
    """Return the subject that the words name, if they name one."""
    words = words.strip()
    kind, _, name = words.partition(" ")
    try:
        if kind == "controller":
            return read_subject([kind])
        if kind == "broker":
            return read_subject([kind, name])
        if kind in ("partition", "topic") and name:
            return read_subject([name], is_topic=kind == "topic")
        return read_subject([words]) if words else None
    except ValueError:
        return None


_MOST_HITS: Final = 12
_MOST_OF_A_CLUSTER: Final = 200  # topics that are ranked, so that the best come first
_KEY: Final = re.compile(r"key\s+(?P<key>.+?)\s+(?:of|in)\s+(?P<topic>\S+)", re.IGNORECASE)
_BROKER: Final = re.compile(r"(?:broker\s*)?(?P<digits>[0-9]{1,9})", re.IGNORECASE)


class SearchHit(msgspec.Struct, frozen=True):
    """A thing that was found, and the parts of its page's path."""

    kind: str  # cluster | controller | broker | topic | partition
    name: str
    says: str
    path: tuple[str, ...]


class Found(msgspec.Struct, frozen=True):
    """The things that contain the words, the best first. `more` is set if further ones contain the words."""

    words: str
    hits: tuple[SearchHit, ...]
    more: bool


class Search(Question, frozen=True):
    """Topics, partitions and brokers by a part of their name."""

    answer = Found
    path = "/clusters/{cluster}/search"

    of: Annotated[str, meaning("A part of a name in any case, orders-7, broker 3, or key 4711 of orders.")] = ""

    def on_page(self, cluster: KnownCluster) -> Found:
        """Search one cluster, or all by names of clusters and topics, if the question names none."""
        words, one = self.of.strip(), cluster.snapshot().cluster if cluster.name else None
        judged = cache(lambda name: KnownCluster(cluster.clusters, name).judged())
        hits = islice(_hits(cluster.memory, words, judged, one), _MOST_HITS + 1) if words else iter(())
        found = list(hits)
        return Found(words, tuple(found[:_MOST_HITS]), len(found) > _MOST_HITS)


class SearchAll(Search, frozen=True):
    """Clusters and topics by a part of their name."""

    path = "/search"
    refuses = ()
    operation = "searchAll"


def _hits(memory: Memory, words: str, judged: Callable[[str], Overview], cluster: str | None) -> Iterator[SearchHit]:
    names = memory.names() if cluster is None else [cluster]
    for name in names if cluster is None else ():
        if words.lower() in name.lower():
            yield SearchHit("cluster", name, judged(name).state.words, ("clusters", name))
    for name in names:
        for hit in _in_cluster(memory, name, words, judged, is_only=cluster is not None):
            is_known = judged(name).state.state is not State.UNKNOWN
            yield hit if is_known or not hit.says else msgspec.structs.replace(hit, says=f"last known: {hit.says}")


def _in_cluster(
    memory: Memory, cluster: str, words: str, judged: Callable[[str], Overview], *, is_only: bool
) -> Iterator[SearchHit]:
    page = ("clusters", cluster)
    where = "" if is_only else f" of {cluster}"
    key = _KEY.fullmatch(words)
    if key is not None:
        yield from _of_key(memory, cluster, key["topic"], key["key"])
        return
    if is_only and len(words) > 2 and words.lower() in "controller":
        yield SearchHit("controller", "controller", "its state and its writes", (*page, "controller"))
    broker = _BROKER.fullmatch(words)
    if is_only and broker is not None:
        yield from _brokers(judged(cluster), broker["digits"])
    subject = subject_of(words)
    if subject is not None and subject.partition is not None:
        tp = subject.partition
        row = memory.partitions_of(cluster, tp.topic).get(tp.partition)
        if row is not None:
            yield SearchHit("partition", str(tp) + where, _state(row), (*page, "topics", tp.topic, str(tp.partition)))
    names = memory.topic_names(cluster, words, "", _MOST_OF_A_CLUSTER)
    with_topics = memory.cluster(cluster, topics=names)
    topics = {} if with_topics is None else with_topics.topics
    wanted = words.lower()
    for name in sorted(topics, key=lambda name: (name.lower() != wanted, not name.lower().startswith(wanted), name)):
        rows = topics[name].partitions.values()
        says = ", ".join(filter(None, (counted(len(rows), "partition"), states_in_words(rows))))
        yield SearchHit("topic", name + where, says, (*page, "topics", name))


def _of_key(memory: Memory, cluster: str, topic: str, key: str) -> Iterator[SearchHit]:
    partitions = memory.partitions_of(cluster, topic)
    if not partitions:
        return
    number = partition_for_key(key_bytes(key, KeyFormat.UTF8), len(partitions))
    row = partitions.get(number)
    led = "" if row is None else f", {_state(row)}"
    says = f"has the key {key}, written as text{led}"
    yield SearchHit("partition", f"{topic}-{number}", says, ("clusters", cluster, "topics", topic, str(number)))


def _brokers(found: Overview, digits: str) -> Iterator[SearchHit]:
    as_of_ms = 0 if found.health is None else found.health.as_of_ms
    cells = [cell for rack in found.racks for cell in rack.brokers if digits in str(cell.broker)]
    for cell in sorted(cells, key=lambda each: (len(str(each.broker)), each.broker)):
        page = ("clusters", found.cluster, "brokers", str(cell.broker))
        yield SearchHit("broker", f"broker {cell.broker}", cell.lasting(as_of_ms), page)


def _state(row: PartitionRow) -> str:
    led = f", led by broker {row.leader}" if row.leader >= 0 else ""
    return state_of_partition(row).value + led
