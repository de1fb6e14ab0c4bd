"""Find in a cluster what will hurt, one kind each: by the names of what it is found in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Final

from controller.contract.records import Record
from controller.contract.znodes import TopicZnode, ZnodeError, decode, decode_config, locate
from controller.derived.gauges import replicas_by_broker
from controller.model.leadership import NO_LEADER
from controller.model.topics import Partition, Topic
from questions.picture import NOT_KNOWN_MS, Picture

_JUTE_MAXBUFFER_BYTES: Final = 0xFFFFF
"""What a reply of ZooKeeper may hold, unless jute.maxbuffer is raised: a longer list cannot be read."""
_NEARLY: Final = 0.8
_LEFT_AFTER_MS: Final = 10 * 60_000  # a controller that acts removes what it was asked by within seconds
_TOPICS: Final = "/brokers/topics"
_NOTIFICATIONS: Final = ("/isr_change_notification", "/log_dir_event_notification")
_LISTED: Final = (_TOPICS, "/config/topics", "/admin/delete_topics", *_NOTIFICATIONS)
_REQUESTS: Final = ("/admin/reassign_partitions", "/admin/preferred_replica_election")


# --- what is looked through


def _topics(picture: Picture) -> Iterator[tuple[str, Topic]]:
    """The topics that nobody asked to delete."""
    for name, topic in sorted(picture.context.topics, key=lambda item: item[0]):
        if topic.exists and not topic.queued_for_deletion:
            yield name, topic


def _partitions(picture: Picture, wanted: Callable[[Partition], object]) -> Iterator[tuple[str, Partition]]:
    """The partitions that are wanted, by name."""
    for name, topic in _topics(picture):
        found = [(number, partition) for number, partition in topic.partitions.items() if wanted(partition)]
        for number, partition in sorted(found, key=itemgetter(0)):
            yield f"{name}-{number}", partition


def _children(picture: Picture, parent: str) -> Iterator[tuple[str, Record]]:
    """The znodes right below a parent, by name."""
    prefix = f"{parent}/"
    for path, record in picture.records.items():
        if path.startswith(prefix) and path.find("/", len(prefix)) < 0:
            yield path[len(prefix) :], record


def _topic_znodes(picture: Picture) -> Iterator[tuple[str, TopicZnode]]:
    for name, record in _children(picture, _TOPICS):
        try:
            yield name, decode(record.content, TopicZnode)
        except ZnodeError:
            continue  # `check` names it


# --- topics' ids


def duplicate_ids(picture: Picture) -> Iterator[str]:
    """Ids that more than one topic has."""
    by_id: dict[str, list[str]] = {}
    for name, topic in _topics(picture):
        if topic.topic_id:
            by_id.setdefault(topic.topic_id, []).append(name)
    return (f"{' and '.join(names)} ({topic_id})" for topic_id, names in by_id.items() if len(names) > 1)


def missing_ids(picture: Picture) -> Iterable[str]:
    """Topics without an id, where others have one."""
    lacking = [name for name, topic in _topics(picture) if not topic.topic_id]
    return lacking if any(topic.topic_id for _, topic in _topics(picture)) else ()


# --- assignments and states


def leftover_fields(picture: Picture) -> Iterator[str]:
    """Partitions with adding or removing replicas that are none of its replicas."""
    for name, znode in _topic_znodes(picture):
        for field, by_partition in (("adding", znode.adding_replicas), ("removing", znode.removing_replicas)):
            for number, replicas in by_partition.items():
                stray = set(replicas) - set(znode.partitions.get(number, ()))
                if stray:
                    yield f"{name}-{number} ({field} {sorted(stray)})"


def orphan_states(picture: Picture) -> Iterator[str]:
    """States of partitions that no topic has."""
    states = [path for path in picture.records if path.endswith("/state")]
    if len(states) == sum(1 for _ in _partitions(picture, lambda partition: partition.zk_state is not None)):
        return  # each is a partition's: to look 200,000 of them up takes longer than to count them
    for where in map(locate, states):
        topic = picture.context.topics.get(where.name)
        if topic is None or not topic.exists or where.number not in topic.partitions:
            yield f"{where.name}-{where.number}"


def stray_states(picture: Picture) -> Iterator[str]:
    """Partitions whose state names brokers that are no replicas of them."""
    for name, partition in _partitions(picture, _strays):
        yield f"{name} {sorted(_strays(partition))}"


def _strays(partition: Partition) -> set[int]:
    value = partition.zk_state
    return set() if value is None else {value.leader, *value.isr}.difference(partition.replicas, (NO_LEADER,))


def newer_than_the_controller(picture: Picture) -> Iterator[str]:
    """Partitions whose state has a later controller epoch than /controller_epoch."""
    epoch = picture.header.controller_epoch

    def is_newer(partition: Partition) -> bool:
        return partition.zk_state is not None and partition.zk_state.controller_epoch > epoch >= 0

    for name, partition in _partitions(picture, is_newer):
        assert partition.zk_state is not None, "a partition without a state has no epoch"
        yield f"{name} (controller epoch {partition.zk_state.controller_epoch}, /controller_epoch {epoch})"


def one_replica(picture: Picture) -> Iterator[str]:
    """Partitions of one replica."""
    return (name for name, _ in _partitions(picture, lambda partition: len(partition.replicas) == 1))


def dead_brokers(picture: Picture) -> Iterator[str]:
    """Brokers that host replicas and are not registered."""
    for broker, count in sorted(replicas_by_broker(picture.header).items()):
        if count and broker not in picture.header.brokers:
            yield f"broker {broker} ({count} replicas)"


# --- settings


def needs_more_than_it_has(picture: Picture) -> Iterator[str]:
    """Topics whose min.insync.replicas no ISR can reach."""
    if picture.header.counting_rules.least_is_capped:
        return
    for name, topic in _topics(picture):
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=None)
        needed = topic.min_insync_replicas
        if fewest is not None and needed is not None and needed > fewest:
            yield f"{name} (min.insync.replicas {needed}, {fewest} replicas)"


def needs_all_it_has(picture: Picture) -> Iterator[str]:
    """Topics whose min.insync.replicas needs every replica."""
    for name, topic in _topics(picture):
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        needed = topic.min_insync_replicas
        if needed is not None and needed == fewest > 1:
            yield f"{name} (min.insync.replicas {needed})"


def unclean(picture: Picture) -> Iterator[str]:
    """Topics that allow unclean elections themselves."""
    return (name for name, topic in _topics(picture) if topic.unclean_election)


def orphan_settings(picture: Picture) -> Iterator[str]:
    """Topics that have settings and do not exist."""
    for name, record in sorted(_children(picture, "/config/topics"), key=itemgetter(0)):
        if picture.topic(name) is None and _has_settings(record):
            yield name


def _has_settings(record: Record) -> bool:
    try:
        return bool(decode_config(record.raw).config)
    except ZnodeError:
        return False  # `check` names it


# --- racks


def without_rack(picture: Picture) -> Iterable[str]:
    """Brokers without a rack, where others have one."""
    brokers = picture.header.brokers
    lacking = [f"broker {number}" for number, broker in sorted(brokers.items()) if not broker.rack]
    return lacking if len(lacking) < len(brokers) else ()


def _racks(picture: Picture) -> dict[int, str]:
    return {number: broker.rack for number, broker in picture.header.brokers.items() if broker.rack}


def more_replicas_than_racks(picture: Picture) -> Iterator[str]:
    """Topics with more replicas than there are racks."""
    racks = set(_racks(picture).values())
    for name, topic in _topics(picture) if len(racks) > 1 else ():
        most = max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        if most > len(racks):
            yield f"{name} ({most} replicas, {len(racks)} racks)"


def in_one_rack(picture: Picture) -> Iterator[str]:
    """Partitions whose replicas are all in one of several racks."""
    racks = _racks(picture)
    if len(set(racks.values())) < 2:
        return

    def is_in_one(partition: Partition) -> bool:
        used = set(map(racks.get, partition.replicas))
        return len(partition.replicas) > 1 and len(used) == 1 and None not in used

    for name, partition in _partitions(picture, is_in_one):
        yield f"{name} (rack {racks[partition.replicas[0]]})"


# --- what was asked for


def left_requests(picture: Picture) -> Iterator[str]:
    """Requests by znode that nobody has carried out."""
    for path in _REQUESTS:
        if path in picture.records and _is_old(picture, path):
            yield path


def deletions_of_nothing(picture: Picture) -> Iterator[str]:
    """Deletions of topics that do not exist."""
    for name, record in _children(picture, "/admin/delete_topics"):
        if picture.topic(name) is None and _is_old(picture, record.path):
            yield record.path


def unread_notifications(picture: Picture) -> Iterator[str]:
    """Notifications that no controller has read."""
    for parent in _NOTIFICATIONS:
        for _, record in _children(picture, parent):
            if _is_old(picture, record.path):
                yield record.path


def _is_old(picture: Picture, path: str) -> bool:
    """Whether a znode was there longer than a controller takes, by all that is known of its time."""
    written_ms = picture.written_ms.get(path, picture.records[path].observed_ms)
    return written_ms == NOT_KNOWN_MS or picture.as_of_ms - written_ms > _LEFT_AFTER_MS


def long_lists(picture: Picture) -> Iterator[str]:
    """Lists of children that hardly fit into a reply."""
    for parent in _LISTED:
        size_bytes = sum(4 + len(name.encode()) for name, _ in _children(picture, parent))
        if size_bytes > _NEARLY * _JUTE_MAXBUFFER_BYTES:
            yield f"{parent} ({size_bytes} of {_JUTE_MAXBUFFER_BYTES} bytes)"
