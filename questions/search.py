"""Search by part of a name for topics, partitions, brokers, the controller, clusters, and a key's partition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from controller.contract.ids import BrokerId
from controller.rules.partitioner import partition_for_key
from questions.cluster_rows import ClusterSnapshot
from questions.key import KeyFormat, key_bytes
from questions.memory import Memory
from questions.subjects import subject_of
from wording.sentences import counted

_MOST_HITS: Final = 12
_MOST_OF_A_CLUSTER: Final = 200  # topics that are ranked, so that the best come first
_KEY: Final = re.compile(r"key\s+(?P<key>.+?)\s+(?:of|in)\s+(?P<topic>\S+)", re.IGNORECASE)
_BROKER: Final = re.compile(r"(?:broker\s*)?(?P<digits>[0-9]{1,9})", re.IGNORECASE)


class Hit(msgspec.Struct, frozen=True):
    """A thing that was found, and the parts of its page's path."""

    kind: str  # cluster | controller | broker | topic | partition
    name: str
    says: str
    path: tuple[str, ...]


class Found(msgspec.Struct, frozen=True):
    """The things that contain the words, the best first. `more` is set if further ones contain the words."""

    words: str
    hits: tuple[Hit, ...]
    more: bool


def search(memory: Memory, words: str, cluster: str | None = None) -> Found:
    """Search one cluster, or all clusters by names of clusters and topics."""
    words = words.strip()
    hits = islice(_hits(memory, words, cluster), _MOST_HITS + 1) if words else iter(())
    found = list(hits)
    return Found(words, tuple(found[:_MOST_HITS]), len(found) > _MOST_HITS)


def _hits(memory: Memory, words: str, cluster: str | None) -> Iterator[Hit]:
    if cluster is not None:
        one = memory.cluster(cluster)
        if one is not None:
            yield from _in_cluster(memory, one, words, is_only=True)
        return
    every = memory.clusters()
    for found in every:
        if words.lower() in found.cluster.lower():
            yield Hit("cluster", found.cluster, counted(len(found.brokers), "broker"), ("clusters", found.cluster))
    for found in every:
        yield from _in_cluster(memory, found, words, is_only=False)


def _in_cluster(memory: Memory, found: ClusterSnapshot, words: str, *, is_only: bool) -> Iterator[Hit]:
    page = ("clusters", found.cluster)
    where = "" if is_only else f" of {found.cluster}"
    key = _KEY.fullmatch(words)
    if key is not None:
        yield from _of_key(memory, found.cluster, key["topic"], key["key"])
        return
    if is_only and len(words) > 2 and words.lower() in "controller":
        yield Hit("controller", "controller", "its state and its writes", (*page, "controller"))
    broker = _BROKER.fullmatch(words)
    if is_only and broker is not None:
        yield from _brokers(found, broker["digits"])
    subject = subject_of(words)
    if subject is not None and subject.partition is not None:
        tp = subject.partition
        row = memory.partitions_of(found.cluster, tp.topic).get(tp.partition)
        if row is not None:
            yield Hit("partition", str(tp) + where, _led(row.leader), (*page, "topics", tp.topic, str(tp.partition)))
    names = memory.topic_names(found.cluster, words, "", _MOST_OF_A_CLUSTER)
    with_topics = memory.cluster(found.cluster, topics=names)
    topics = {} if with_topics is None else with_topics.topics
    for name in _best_first(topics, words):
        yield Hit("topic", name + where, counted(len(topics[name].partitions), "partition"), (*page, "topics", name))


def _of_key(memory: Memory, cluster: str, topic: str, key: str) -> Iterator[Hit]:
    partitions = memory.partitions_of(cluster, topic)
    if not partitions:
        return
    number = partition_for_key(key_bytes(key, KeyFormat.UTF8), len(partitions))
    row = partitions.get(number)
    led = "" if row is None else f", {_led(row.leader)}"
    says = f"has the key {key}, written as text{led}"
    yield Hit("partition", f"{topic}-{number}", says, ("clusters", cluster, "topics", topic, str(number)))


def _brokers(found: ClusterSnapshot, digits: str) -> Iterator[Hit]:
    ids = sorted(
        (row.broker for row in found.brokers if digits in str(row.broker)), key=lambda each: (len(str(each)), each)
    )
    for broker in ids:
        yield Hit("broker", f"broker {broker}", "", ("clusters", found.cluster, "brokers", str(broker)))


def _best_first(names: Iterable[str], words: str) -> list[str]:
    wanted = words.lower()
    return sorted(names, key=lambda name: (name.lower() != wanted, not name.lower().startswith(wanted), name))


def _led(leader: BrokerId) -> str:
    return f"led by broker {leader}" if leader >= 0 else "without a leader"
