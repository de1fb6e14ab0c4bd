"""Checks of znodes beyond the controller's context: leftovers, settings and requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Final

from controller.contract.alert_row import Severity
from controller.contract.consequences import consequence_of, flaw_of
from controller.contract.row import NOT_KNOWN_MS
from controller.contract.znode_table import locate
from controller.contract.znodes import Flaw, StateZnode, TopicZnode, ZnodeError, decode, decode_config
from controller.rules.setting_definitions import TOPIC_SETTINGS
from controller.says.alert_kinds import kinds
from controller.says.remedies.controllership import DELETE_PREFERRED_REQUEST
from controller.says.remedies.reassignments import CANCEL_REASSIGNMENT, DELETE_REASSIGNMENT_REQUEST, REASSIGN
from controller.says.remedies.remedy import Advice
from controller.says.remedies.topics import DELETE_ORPHAN_STATE, DELETE_SETTINGS
from controller.view.types import THROTTLES
from controller.view.unparsable import ignored_by_brokers, unparsable_at_start
from questions.lint.cluster import CONFIGS, LISTED, NOTIFICATIONS, TOPICS, LintCheck, Linted
from wording.sentences import bracketed, near

_LONGEST_BYTES: Final = 4 << 20  # as `KafkaZkClient` sets it
_LONGEST_FROM_3_0_BYTES: Final = 0xFFFFF  # up to 3.2, because ZooKeeper 3.6 has lowered its default
"The longest reply that a broker takes, unless jute.maxbuffer is set. A longer list is unreadable."
_NEARLY: Final = 0.8
_LEFT_AFTER_MS: Final = 10 * 60_000  # an active controller removes requests within seconds
_ANSWERED_AFTER_MS: Final = 30_000
_BACKLOG: Final = 1_000  # notifications that no working controller leaves, however new they are
_REASSIGN: Final = "/admin/reassign_partitions"
_ELECT: Final = "/admin/preferred_replica_election"
_THROTTLED: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_COMPACTED: Final = ("__consumer_offsets", "__transaction_state")

page, warn, info = (
    partial(LintCheck, each, reads_znodes=True) for each in (Severity.PAGE, Severity.WARN, Severity.INFO)
)


def _topic_znodes(cluster: Linted) -> Iterator[tuple[str, TopicZnode]]:
    for name, record in cluster.children[TOPICS].items():
        try:
            yield name, decode(record.content, TopicZnode)
        except ZnodeError:
            continue  # `kontrast check` reports such a znode


def _settings(cluster: Linted, parent: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the readable settings below the parent, by name."""
    for name, record in sorted(cluster.children[parent].items(), key=itemgetter(0)):
        try:
            yield name, decode_config(record.raw).config
        except ZnodeError:
            continue  # a check of its own finds it


def _is_led(cluster: Linted, path: str) -> bool:
    try:
        return decode(cluster.records[path].content, StateZnode).leader in cluster.picture.header.brokers
    except ZnodeError:
        return True  # for all that is known


def _is_old(cluster: Linted, path: str, after_ms: int = _LEFT_AFTER_MS) -> bool:
    """Return whether a znode is older than a controller's reaction, as far as its time is known."""
    written_ms = cluster.picture.written_ms.get(path, cluster.records[path].observed_ms)
    return written_ms == NOT_KNOWN_MS or cluster.picture.as_of_ms - written_ms > after_ms


@warn(
    "The settings are no JSON, so Kafka uses the defaults.",
    Advice("Write the settings again with kafka-configs.sh."),
    is_in_check=True,
)
def unparsable_settings(cluster: Linted) -> Iterator[str]:
    """Yield settings that are no JSON, which Kafka takes for none."""
    for path, record in cluster.records.items():
        if path.startswith("/config/") and flaw_of(path, record.content) is Flaw.UNPARSABLE:
            consequence = consequence_of(path, Flaw.UNPARSABLE, cluster.picture.header.profile.release)
            if consequence is not None:
                yield f"{path}: {consequence.effect}"


@page(
    "Brokers parse these settings when they start. Every broker fails at a topic's, even without a replica of it.",
    kinds.START_WILL_FAIL.advice,
)
def setting_stops_start(cluster: Linted) -> Iterator[str]:
    """Return settings that end the start of brokers."""
    found = unparsable_at_start(cluster.picture.header, lambda name: cluster.picture.topic(name) is not None)
    return (each.sentence for each in found)


@page(
    "Brokers and controllers lose their connection at a list beyond jute.maxbuffer, so no controller stays.",
    Advice("Delete unused topics or left notifications, or raise jute.maxbuffer on every broker."),
    is_in_check=True,
)
def child_list_too_long(cluster: Linted) -> Iterator[str]:
    """Yield lists of children that hardly fit into a reply."""
    oldest, newest = cluster.picture.header.configuration.evidence.releases()
    most_bytes = _LONGEST_FROM_3_0_BYTES if oldest < (3, 3) and newest >= (3, 0) else _LONGEST_BYTES
    for parent in LISTED:
        size_bytes = sum(4 + len(name.encode()) for name in cluster.children[parent])
        if size_bytes > _NEARLY * most_bytes:
            yield f"{parent} ({size_bytes} of {most_bytes} bytes)"


@warn(
    "The partition has fewer copies than replicas, and Kafka counts it as under-replicated for ever.",
    Advice("Reassign the partition to different brokers.", (REASSIGN,)),
    is_in_check=True,
)
def replica_listed_twice(cluster: Linted) -> Iterator[str]:
    """Find partitions whose assignment lists a broker twice. Kafka counts it twice, but there is one copy."""
    for name, znode in _topic_znodes(cluster):
        for number, replicas in sorted(znode.partitions.items()):
            if len(set(replicas)) < len(replicas):
                yield f"{name}-{number} {bracketed(replicas)}"


@warn(
    "If a partition of this name is created, the controller cannot write its first state. It has no leader "
    "until the next failover, and the old one after it.",
    Advice(
        "Check whether someone edited the topic's znode. If a broker leads the partition, put it back there.",
        (DELETE_ORPHAN_STATE,),
    ),
)
def orphan_state(cluster: Linted) -> Iterator[str]:
    """Yield the states of partitions that no topic has."""
    named = (each for _, topic in cluster.topics for each in topic.partitions.values() if each.is_named)
    if len(cluster.states) == sum(partition.zk_state is not None for partition in named):
        return  # each state has its partition, and a count is faster than a look-up of 200,000
    for path in cluster.states:
        where, topic = locate(path), cluster.picture.topic(locate(path).name)
        partition = None if topic is None else topic.partitions.get(where.partition)
        is_there = partition is not None and partition.is_named
        # A topic whose znode is hidden or unreadable has its partitions.
        if where.partition >= 0 and not is_there and (topic is not None or not _is_led(cluster, path)):
            yield f"{where.name}-{where.partition}"


@warn(
    "The next controller takes the partition as reassigned, to or from brokers outside its replicas.",
    Advice(remedies=(CANCEL_REASSIGNMENT,)),
)
def leftover_reassignment_fields(cluster: Linted) -> Iterator[str]:
    """Find partitions with adding or removing replicas outside their replicas."""
    for name, znode in _topic_znodes(cluster):
        for field, by_partition in (("adding", znode.adding_replicas), ("removing", znode.removing_replicas)):
            for number, replicas in by_partition.items():
                stray = set(replicas) - set(znode.partitions.get(number, ()))
                if stray:
                    yield f"{name}-{number} ({field} {sorted(stray)})"


@warn(
    "It blocks the next request of its kind, and is carried out at the next failover.",
    Advice(remedies=(DELETE_REASSIGNMENT_REQUEST,)),
)
def leftover_request(cluster: Linted) -> Iterator[str]:
    """Find an unanswered request for reassignments."""
    return (path for path in (_REASSIGN,) if path in cluster.records and _is_old(cluster, path))


@warn(
    "It blocks the next request of its kind, and is carried out at the next failover.",
    Advice(remedies=(DELETE_PREFERRED_REQUEST.met,)),
    is_in_check=True,
)
def leftover_election_request(cluster: Linted) -> Iterator[str]:
    """Find an unanswered request for preferred elections, which an acting controller answers within seconds."""
    after_ms = _ANSWERED_AFTER_MS if cluster.picture.header.acting else _LEFT_AFTER_MS
    return (path for path in (_ELECT,) if path in cluster.records and _is_old(cluster, path, after_ms))


@warn(
    "No controller has handled it. Until then a new topic with this name is deleted.",
    kinds.DELETION_IGNORED.advice,
)
def deletion_of_no_topic(cluster: Linted) -> Iterator[str]:
    """Yield deletions of topics that do not exist."""
    for name, record in cluster.children["/admin/delete_topics"].items():
        if cluster.picture.topic(name) is None and _is_old(cluster, record.path):
            yield record.path


@warn(
    "The controller does not read the leaders' reports. It sends brokers old ISRs, and each report slows its"
    " successor.",
    kinds.NOTIFICATION_BACKLOG.advice,
    is_in_check=True,
)
def notifications_not_read(cluster: Linted) -> Iterator[str]:
    """Yield notifications that no controller has read."""
    for parent in NOTIFICATIONS:
        for record in cluster.children[parent].values():
            if len(cluster.children[parent]) >= _BACKLOG or _is_old(cluster, record.path):
                yield record.path


@warn(
    "Brokers log these settings as invalid and leave them out.",
    Advice("Correct or delete the named settings."),
)
def setting_without_effect(cluster: Linted) -> Iterator[str]:
    """Return settings in /config/brokers that brokers leave out."""
    return (each.sentence for each in ignored_by_brokers(cluster.picture.header))


@warn(
    "Kafka ignores a topic's setting whose name it does not know, so the default applies.",
    Advice("Set the setting of the right name, and delete the named one."),
    is_in_check=True,
)
def unknown_setting(cluster: Linted) -> Iterator[str]:
    """Yield settings of topics whose name no release knows, with the nearest name that Kafka knows."""
    for topic, config in _settings(cluster, CONFIGS[0]):
        for name in sorted(config.keys() - TOPIC_SETTINGS.keys()):
            of_brokers = re.sub("hours$|minutes$", "ms", name.removeprefix("log."))
            known = [of_brokers] if of_brokers in TOPIC_SETTINGS else near(name, TOPIC_SETTINGS)
            nearest = f", perhaps meant as {known[0]}" if known else ""
            yield f"{name}={config[name][:40]} of topic {topic}{nearest}"


@warn(
    "Replicas that fell behind, as after a restart, catch up only at this rate, and ISRs stay small.",
    Advice("Remove the throttle (kafka-configs.sh --delete-config)."),
    is_in_check=True,
)
def throttle_without_reassignment(cluster: Linted) -> Iterator[str]:
    """Yield throttled topics and throttled brokers while nothing is reassigned."""
    header = cluster.picture.header
    if header.triggers.reassign is not None or any(
        partition.reassigning for _, topic in cluster.topics for partition in topic.partitions.values()
    ):
        return
    for parent, names in zip(CONFIGS, (_THROTTLED, THROTTLES), strict=True):
        for name, config in _settings(cluster, parent):
            if found := [f"{key}={config[key][:40]}" for key in names if config.get(key)]:
                yield f"{', '.join(found)} of {parent}/{name}"


@warn(
    "Committed offsets of idle groups, or the states of transactions, are deleted after the retention.",
    Advice("Set cleanup.policy=compact on the topic."),
    is_in_check=True,
)
def internal_topic_not_compacted(cluster: Linted) -> Iterator[str]:
    """Yield internal topics that are not compacted, so that their records are deleted by time."""
    for topic, config in _settings(cluster, CONFIGS[0]):
        policy = config.get("cleanup.policy", "compact")
        if topic in _COMPACTED and "delete" in policy:
            retention = f", retention.ms={config['retention.ms']}" if "retention.ms" in config else ""
            yield f"{topic} (cleanup.policy={policy}{retention})"


@info(
    "A new topic with this name begins with these settings.",
    Advice(remedies=(DELETE_SETTINGS,)),
)
def settings_of_no_topic(cluster: Linted) -> Iterator[str]:
    """Return topics that have settings but do not exist."""
    settings = _settings(cluster, "/config/topics")
    return (name for name, config in settings if config and cluster.picture.topic(name) is None)


@info(
    "A deletion by hand removed the settings. The topic has the brokers' defaults, its retention included.",
    Advice("Set the topic's settings again with kafka-configs.sh, or finish the deletion."),
)
def topic_without_settings(cluster: Linted) -> Iterable[str]:
    """Find topics without a settings znode, which Kafka creates before the topic, if others have one."""
    settings = cluster.children["/config/topics"]
    return [name for name, _ in cluster.topics if name not in settings] if settings else ()
