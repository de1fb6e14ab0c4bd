"""Checks for trouble ahead in a cluster. Each function finds one kind and returns the names of its places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Final

import msgspec

from controller.contract.consequences import consequence_of, flaw_of
from controller.contract.ids import NO_LEADER, BrokerId
from controller.contract.records import Record
from controller.contract.row import NOT_KNOWN_MS
from controller.contract.znode_table import locate
from controller.contract.znodes import Flaw, TopicZnode, ZnodeError, decode, decode_config
from controller.view.flawed_znodes import FlawedZnode, flawed_znodes as view_of_flawed
from controller.view.gauges import common_leader, replicas_by_broker
from controller.view.health import is_without_session, never_registered
from controller.view.types import Partition, Topic
from controller.view.unparsable import ignored_by_brokers, unparsable_at_start
from questions.picture import Picture
from wording.facts import replicas_in_words
from wording.sentences import bracketed, counted, listed

_JUTE_MAXBUFFER_BYTES: Final = 0xFFFFF
"ZooKeeper's largest reply, unless jute.maxbuffer is raised. A longer list is unreadable."
_NEARLY: Final = 0.8
_LEFT_AFTER_MS: Final = 10 * 60_000  # an active controller removes requests within seconds
_ANSWERED_AFTER_MS: Final = 30_000
_BACKLOG: Final = 1_000  # notifications that no working controller leaves, however new they are
_TOPICS: Final = "/brokers/topics"
_NOTIFICATIONS: Final = ("/isr_change_notification", "/log_dir_event_notification")
_LISTED: Final = (_TOPICS, "/config/topics", "/config/brokers", "/admin/delete_topics", *_NOTIFICATIONS)
_REQUESTS: Final = ("/admin/reassign_partitions", "/admin/preferred_replica_election")


# --- the searched parts


class Linted(msgspec.Struct, frozen=True):
    """A linted cluster: its picture, prepared for the checks."""

    picture: Picture
    records: Mapping[str, Record]  # of znodes, empty if the picture does not know them
    topics: tuple[tuple[str, Topic], ...]  # without a requested deletion, by name
    children: Mapping[str, Mapping[str, Record]]  # znodes right below each parent, by name
    states: tuple[str, ...]  # paths of partition states


def linted(picture: Picture) -> Linted:
    """Return the cluster, sorted once for all checks."""
    topics = (item for item in picture.context.topics if item[1].exists and not item[1].queued_for_deletion)
    children: dict[str, dict[str, Record]] = {parent: {} for parent in _LISTED}
    states = []
    for path, record in (picture.records or {}).items():
        parent, _, name = path.rpartition("/")
        if parent in children:
            children[parent][name] = record
        elif name == "state":
            states.append(path)
    return Linted(picture, picture.records or {}, tuple(sorted(topics, key=itemgetter(0))), children, tuple(states))


def _partitions(cluster: Linted, wanted: Callable[[Partition], object]) -> Iterator[tuple[str, Partition]]:
    """Yield each wanted partition with its name, in order."""
    for name, topic in cluster.topics:
        found = [(number, partition) for number, partition in topic.partitions.items() if wanted(partition)]
        for number, partition in sorted(found, key=itemgetter(0)):
            yield f"{name}-{number}", partition


def _topic_znodes(cluster: Linted) -> Iterator[tuple[str, TopicZnode]]:
    for name, record in cluster.children[_TOPICS].items():
        try:
            yield name, decode(record.content, TopicZnode)
        except ZnodeError:
            continue  # `kontrast check` reports such a znode


# --- topics' ids


def duplicate_ids(cluster: Linted) -> Iterator[str]:
    """Return ids that more than one topic has."""
    by_id: dict[str, list[str]] = {}
    for name, topic in cluster.topics:
        if topic.topic_id:
            by_id.setdefault(topic.topic_id, []).append(name)
    return (f"{' and '.join(names)} ({topic_id})" for topic_id, names in by_id.items() if len(names) > 1)


def missing_ids(cluster: Linted) -> Iterable[str]:
    """Return topics without an id, if other topics have one."""
    lacking = [name for name, topic in cluster.topics if not topic.topic_id]
    return lacking if any(topic.topic_id for _, topic in cluster.topics) else ()


# --- assignments and states


def leftover_fields(cluster: Linted) -> Iterator[str]:
    """Find partitions with adding or removing replicas outside their replicas."""
    for name, znode in _topic_znodes(cluster):
        for field, by_partition in (("adding", znode.adding_replicas), ("removing", znode.removing_replicas)):
            for number, replicas in by_partition.items():
                stray = set(replicas) - set(znode.partitions.get(number, ()))
                if stray:
                    yield f"{name}-{number} ({field} {sorted(stray)})"


def orphan_states(cluster: Linted) -> Iterator[str]:
    """Yield the states of partitions that no topic has."""
    partitions = chain.from_iterable(topic.partitions.values() for _, topic in cluster.topics)
    if len(cluster.states) == sum(partition.zk_state is not None for partition in partitions):
        return  # each state has its partition, and a count is faster than a look-up of 200,000
    for where in map(locate, cluster.states):
        topic = cluster.picture.context.topics.get(where.name)
        if topic is None or not topic.exists or where.partition not in topic.partitions:
            yield f"{where.name}-{where.partition}"


def unloadable_topics(cluster: Linted) -> Iterable[str]:
    """Return the paths of topics' znodes that end every controller that loads them."""
    return [f"{_TOPICS}/{name}" for name in sorted(cluster.picture.header.damaged.unloadable)]


def listed_twice(cluster: Linted) -> Iterator[str]:
    """Find partitions whose assignment lists a broker twice. Kafka counts it twice, but there is one copy."""
    for name, znode in _topic_znodes(cluster):
        for number, replicas in sorted(znode.partitions.items()):
            if len(set(replicas)) < len(replicas):
                yield f"{name}-{number} {bracketed(replicas)}"


def stray_states(cluster: Linted) -> Iterator[str]:
    """Find partitions whose state names brokers outside their replicas."""
    for name, partition in _partitions(cluster, _strays):
        yield f"{name} {sorted(_strays(partition))}"


def _strays(partition: Partition) -> set[BrokerId]:
    value = partition.zk_state
    return set() if value is None else {value.leader, *value.isr}.difference(partition.replicas, (NO_LEADER,))


def newer_than_the_controller(cluster: Linted) -> Iterator[str]:
    """Yield partitions whose state has a later controller epoch than /controller_epoch."""
    epoch = cluster.picture.header.controller_epoch

    def is_newer(partition: Partition) -> bool:
        return partition.zk_state is not None and partition.zk_state.controller_epoch > epoch >= 0

    for name, partition in _partitions(cluster, is_newer):
        assert partition.zk_state is not None, "a partition without a state has no epoch"
        yield f"{name} (controller epoch {partition.zk_state.controller_epoch}, /controller_epoch {epoch})"


def one_replica(cluster: Linted) -> Iterator[str]:
    """Return partitions of one replica."""
    return (name for name, _ in _partitions(cluster, lambda partition: len(partition.replicas) == 1))


def unknown_brokers(cluster: Linted) -> Iterator[str]:
    """Yield brokers that have replicas and no trace of ever having run."""
    header = cluster.picture.header
    for broker, count in sorted(replicas_by_broker(header).items()):
        if never_registered(header, broker):
            yield f"broker {broker} ({counted(count, 'replica')})"


def persistent_brokers(cluster: Linted) -> Iterator[str]:
    """Return registrations that belong to no session."""
    header = cluster.picture.header
    return (f"/brokers/ids/{broker}" for broker in sorted(header.brokers) if is_without_session(broker, header))


def same_endpoint(cluster: Linted) -> Iterator[str]:
    """Yield endpoints that more than one broker registered."""
    found: dict[str, list[BrokerId]] = {}
    for broker, registered in sorted(cluster.picture.header.brokers.items()):
        for endpoint in registered.endpoints:
            found.setdefault(endpoint.rpartition("://")[2], []).append(broker)
    for address, brokers in sorted(found.items()):
        if len(set(brokers)) > 1:
            yield f"{address} ({listed(set(brokers))})"


def leaders_out_of_sync(cluster: Linted) -> Iterator[str]:
    """Yield partitions whose leader is not in their ISR."""

    def is_outside(partition: Partition) -> bool:
        value = partition.zk_state
        return value is not None and value.leader != NO_LEADER and value.leader not in value.isr

    for name, partition in _partitions(cluster, is_outside):
        assert partition.zk_state is not None, "a partition without a state has no leader"
        yield f"{name} (leader {partition.zk_state.leader}, {replicas_in_words(partition.zk_state.isr)})"


def lonely_leaders(cluster: Linted) -> Iterator[str]:
    """Find the one leader of all partitions whose ISR lacks followers that are in sync with other leaders."""
    header = cluster.picture.header
    lagging = {
        broker
        for _, partition in _partitions(cluster, lambda each: each.zk_state is not None)
        for broker in partition.replicas
        if partition.zk_state is not None and broker not in {*partition.zk_state.isr, *partition.adding}
    }
    leader = common_leader(header, lagging & header.brokers.keys())
    if leader is not None:
        count = header.tally.gauges.under_replicated[leader]
        yield f"broker {leader} ({counted(count, 'partition')}, {listed(lagging)} out of sync)"


def dead_brokers(cluster: Linted) -> Iterator[str]:
    """Yield brokers that host replicas and are not registered."""
    for broker, count in sorted(replicas_by_broker(cluster.picture.header).items()):
        header = cluster.picture.header
        if count and broker not in header.brokers and not never_registered(header, broker):
            yield f"broker {broker} ({counted(count, 'replica')})"


# --- content that Kafka cannot read


def deadly_znodes(cluster: Linted) -> Iterator[str]:
    """Yield znodes that end brokers or controllers, each with the effect and the step that mends it."""
    return (f"{each.with_mend}." for each in _flawed(cluster) if each.is_deadly)


def weakening_znodes(cluster: Linted) -> Iterator[str]:
    """Yield znodes that cost Kafka only a function, each with the effect and the step that mends it."""
    return (f"{each.with_mend}." for each in _flawed(cluster) if not each.is_deadly)


def _flawed(cluster: Linted) -> Iterator[FlawedZnode]:
    told = {f"{_TOPICS}/{name}" for name in cluster.picture.header.damaged.unloadable}  # by a check of its own
    return (each for each in view_of_flawed(cluster.picture.header) if each.path not in told)


def unparsable_settings(cluster: Linted) -> Iterator[str]:
    """Yield settings that are no JSON, which Kafka takes for none."""
    for path, record in cluster.records.items():
        if path.startswith("/config/") and flaw_of(path, record.content) is Flaw.UNPARSABLE:
            consequence = consequence_of(path, Flaw.UNPARSABLE, cluster.picture.header.profile.release)
            if consequence is not None:
                yield f"{path}: {consequence.effect}"


# --- settings


def needs_more_than_it_has(cluster: Linted) -> Iterator[str]:
    """Yield topics whose min.insync.replicas no ISR can reach."""
    if cluster.picture.header.counting_rules.least_is_capped:
        return
    for name, topic in cluster.topics:
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=None)
        needed = topic.min_insync_replicas
        if fewest is not None and needed is not None and needed > fewest:
            yield f"{name} (min.insync.replicas {needed}, {fewest} replicas)"


def needs_all_it_has(cluster: Linted) -> Iterator[str]:
    """Yield topics whose min.insync.replicas needs every replica."""
    for name, topic in cluster.topics:
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        needed = topic.min_insync_replicas
        if needed is not None and needed == fewest > 1:
            yield f"{name} (min.insync.replicas {needed})"


def unclean(cluster: Linted) -> Iterator[str]:
    """Yield topics that allow unclean elections themselves, or all that follow the brokers' setting if that does."""
    by_default = cluster.picture.header.allows_unclean_election
    allowing = [
        name
        for name, topic in cluster.topics
        if topic.unclean_election or (topic.unclean_election is None and by_default)
    ]
    if by_default and allowing:
        yield f"all {len(allowing)} topics that do not forbid it, because the brokers allow it"
    else:
        yield from allowing


def orphan_settings(cluster: Linted) -> Iterator[str]:
    """Yield topics that have settings but do not exist."""
    for name, record in sorted(cluster.children["/config/topics"].items(), key=itemgetter(0)):
        if cluster.picture.topic(name) is None and _has_settings(record):
            yield name


def without_settings(cluster: Linted) -> Iterable[str]:
    """Find topics without a settings znode, which Kafka creates before the topic, if others have one."""
    settings = cluster.children["/config/topics"]
    return [name for name, _ in cluster.topics if name not in settings] if settings else ()


def settings_that_end_a_start(cluster: Linted) -> Iterator[str]:
    """Return settings that end the start of brokers."""
    found = unparsable_at_start(cluster.picture.header, lambda name: cluster.picture.topic(name) is not None)
    return (each.sentence for each in found)


def ignored_settings(cluster: Linted) -> Iterator[str]:
    """Return settings in /config/brokers that brokers leave out."""
    return (each.sentence for each in ignored_by_brokers(cluster.picture.header))


def _has_settings(record: Record) -> bool:
    try:
        return bool(decode_config(record.raw).config)
    except ZnodeError:
        return False  # `kontrast check` reports such a znode


# --- racks


def without_rack(cluster: Linted) -> Iterable[str]:
    """Return brokers without a rack, if other brokers have one."""
    brokers = cluster.picture.header.brokers
    lacking = [f"broker {number}" for number, broker in sorted(brokers.items()) if not broker.rack]
    return lacking if len(lacking) < len(brokers) else ()


def _racks(cluster: Linted) -> dict[BrokerId, str]:
    return {number: broker.rack for number, broker in cluster.picture.header.brokers.items() if broker.rack}


def more_replicas_than_racks(cluster: Linted) -> Iterator[str]:
    """Yield topics with more replicas than there are racks."""
    racks = set(_racks(cluster).values())
    for name, topic in cluster.topics if len(racks) > 1 else ():
        most = max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        if most > len(racks):
            yield f"{name} ({most} replicas, {len(racks)} racks)"


def in_one_rack(cluster: Linted) -> Iterator[str]:
    """Yield partitions whose replicas are all in one of several racks."""
    racks = _racks(cluster)
    if len(set(racks.values())) < 2:
        return

    @cache  # most partitions share their replicas with others
    def are_in_one(replicas: tuple[BrokerId, ...]) -> bool:
        used = set(map(racks.get, replicas))
        return len(replicas) > 1 and len(used) == 1 and None not in used

    for name, partition in _partitions(cluster, lambda partition: are_in_one(partition.replicas)):
        yield f"{name} (rack {racks[partition.replicas[0]]})"


# --- requests


def left_requests(cluster: Linted) -> Iterator[str]:
    """Find unanswered requests by znode."""
    for path in _REQUESTS:
        acts = cluster.picture.header.acting and path == _REQUESTS[1]
        if path in cluster.records and _is_old(cluster, path, _ANSWERED_AFTER_MS if acts else _LEFT_AFTER_MS):
            yield path


def deletions_of_nothing(cluster: Linted) -> Iterator[str]:
    """Yield deletions of topics that do not exist."""
    for name, record in cluster.children["/admin/delete_topics"].items():
        if cluster.picture.topic(name) is None and _is_old(cluster, record.path):
            yield record.path


def unread_notifications(cluster: Linted) -> Iterator[str]:
    """Yield notifications that no controller has read."""
    for parent in _NOTIFICATIONS:
        for record in cluster.children[parent].values():
            if len(cluster.children[parent]) >= _BACKLOG or _is_old(cluster, record.path):
                yield record.path


def _is_old(cluster: Linted, path: str, after_ms: int = _LEFT_AFTER_MS) -> bool:
    """Return whether a znode is older than a controller's reaction, as far as its time is known."""
    written_ms = cluster.picture.written_ms.get(path, cluster.records[path].observed_ms)
    return written_ms == NOT_KNOWN_MS or cluster.picture.as_of_ms - written_ms > after_ms


def long_lists(cluster: Linted) -> Iterator[str]:
    """Yield lists of children that hardly fit into a reply."""
    for parent in _LISTED:
        size_bytes = sum(4 + len(name.encode()) for name in cluster.children[parent])
        if size_bytes > _NEARLY * _JUTE_MAXBUFFER_BYTES:
            yield f"{parent} ({size_bytes} of {_JUTE_MAXBUFFER_BYTES} bytes)"
