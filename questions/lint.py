"""What lies in ZooKeeper and will hurt: a table of checks, each with what it finds, what that does, and the mend.

What hurts already is an alert, and `check` says it. Here is what waits for a failover, a restart, or the next change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from controller.alerts import kinds
from controller.contract.alert_row import Severity
from controller.contract.records import Record
from controller.contract.znodes import Place, TopicZnode, ZnodeError, decode, decode_config, locate
from controller.derived.gauges import replicas_by_broker
from controller.model.topics import Partition, Topic
from questions.picture import NOT_KNOWN_MS, WORST_FIRST, Picture

_JUTE_MAXBUFFER_BYTES: Final = 0xFFFFF
"""What a reply of ZooKeeper may hold, unless jute.maxbuffer is raised: a longer list cannot be read."""
_NEARLY: Final = 0.8
_LEFT_AFTER_MS: Final = 10 * 60_000  # a controller that acts removes what it was asked by within seconds
_EXAMPLES: Final = 10
_LISTED: Final = ("/brokers/topics", "/config/topics", "/admin/delete_topics", "/isr_change_notification")
_REQUESTS: Final = ("/admin/reassign_partitions", "/admin/preferred_replica_election")


class LintFinding(msgspec.Struct, frozen=True):
    """A check that found something: to how many it happened, what it will do, and the mend."""

    check: str
    severity: Severity  # pages: no controller can load it, or clients lose; warns: it hurts at the next change
    count: int
    examples: tuple[str, ...]
    will: str
    mend: str


class LintCheck(msgspec.Struct, frozen=True):
    """A check: how it finds what will hurt, by the names of what it is found in."""

    name: str
    severity: Severity
    find: Callable[[Picture], Iterable[str]]
    will: str
    mend: str


def lint(picture: Picture) -> tuple[LintFinding, ...]:
    """All findings, the worst first."""
    found = []
    for check in CHECKS:
        subjects = list(check.find(picture))
        if subjects:
            examples = tuple(subjects[:_EXAMPLES])
            found.append(LintFinding(check.name, check.severity, len(subjects), examples, check.will, check.mend))
    return tuple(sorted(found, key=lambda finding: WORST_FIRST[finding.severity]))


# --- what is looked through


def _topics(picture: Picture) -> Iterator[tuple[str, Topic]]:
    """The topics that nobody asked to delete."""
    for name, topic in sorted(picture.context.topics, key=lambda item: item[0]):
        if topic.exists and not topic.queued_for_deletion:
            yield name, topic


def _partitions(picture: Picture) -> Iterator[tuple[str, Topic, Partition]]:
    for name, topic in _topics(picture):
        for number, partition in sorted(topic.partitions.items()):
            yield f"{name}-{number}", topic, partition


def _topic_znodes(picture: Picture) -> Iterator[tuple[str, TopicZnode]]:
    for path, record in picture.records.items():
        where = locate(path)
        if where.place is Place.TOPIC:
            try:
                yield where.name, decode(record.content, TopicZnode)
            except ZnodeError:
                continue  # `check` names it


# --- topics' ids


def _duplicate_ids(picture: Picture) -> Iterator[str]:
    by_id: dict[str, list[str]] = {}
    for name, topic in _topics(picture):
        if topic.topic_id:
            by_id.setdefault(topic.topic_id, []).append(name)
    return (f"{' and '.join(names)} ({topic_id})" for topic_id, names in by_id.items() if len(names) > 1)


def _missing_ids(picture: Picture) -> Iterable[str]:
    lacking = [name for name, topic in _topics(picture) if not topic.topic_id]
    return lacking if any(topic.topic_id for _, topic in _topics(picture)) else ()


# --- assignments and states


def _leftover_fields(picture: Picture) -> Iterator[str]:
    for name, znode in _topic_znodes(picture):
        for field, by_partition in (("adding", znode.adding_replicas), ("removing", znode.removing_replicas)):
            for number, replicas in by_partition.items():
                stray = set(replicas) - set(znode.partitions.get(number, ()))
                if stray:
                    yield f"{name}-{number} ({field} {sorted(stray)})"


def _orphan_states(picture: Picture) -> Iterator[str]:
    for path in picture.records:
        where = locate(path)
        if where.place is not Place.PARTITION_STATE:
            continue
        topic = picture.context.topics.get(where.name)
        if topic is None or not topic.exists or where.number not in topic.partitions:
            yield f"{where.name}-{where.number}"


def _stray_states(picture: Picture) -> Iterator[str]:
    for name, _, partition in _partitions(picture):
        value = partition.zk_state
        if value is not None:
            stray = ({value.leader, *value.isr} - set(partition.replicas)) - {-1}
            if stray:
                yield f"{name} {sorted(stray)}"


def _newer_than_the_controller(picture: Picture) -> Iterator[str]:
    epoch = picture.header.controller_epoch
    for name, _, partition in _partitions(picture):
        value = partition.zk_state
        if value is not None and value.controller_epoch > epoch >= 0:
            yield f"{name} (controller epoch {value.controller_epoch}, /controller_epoch {epoch})"


def _one_replica(picture: Picture) -> Iterator[str]:
    return (name for name, _, partition in _partitions(picture) if len(partition.replicas) == 1)


def _dead_brokers(picture: Picture) -> Iterator[str]:
    for broker, count in sorted(replicas_by_broker(picture.header).items()):
        if count and broker not in picture.header.brokers:
            yield f"broker {broker} ({count} replicas)"


# --- settings


def _needs_more_than_it_has(picture: Picture) -> Iterator[str]:
    if picture.header.counting_rules.least_is_capped:
        return
    for name, topic in _topics(picture):
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=None)
        needed = topic.min_insync_replicas
        if fewest is not None and needed is not None and needed > fewest:
            yield f"{name} (min.insync.replicas {needed}, {fewest} replicas)"


def _needs_all_it_has(picture: Picture) -> Iterator[str]:
    for name, topic in _topics(picture):
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        needed = topic.min_insync_replicas
        if needed is not None and needed == fewest > 1:
            yield f"{name} (min.insync.replicas {needed})"


def _unclean(picture: Picture) -> Iterator[str]:
    return (name for name, topic in _topics(picture) if topic.unclean_election)


def _orphan_settings(picture: Picture) -> Iterator[str]:
    for path, record in sorted(picture.records.items()):
        where = locate(path)
        if where.place is Place.TOPIC_CONFIG and picture.topic(where.name) is None and _has_settings(record):
            yield where.name


def _has_settings(record: Record) -> bool:
    try:
        return bool(decode_config(record.raw).config)
    except ZnodeError:
        return False  # `check` names it


# --- racks


def _without_rack(picture: Picture) -> Iterable[str]:
    brokers = picture.header.brokers
    lacking = [f"broker {number}" for number, broker in sorted(brokers.items()) if not broker.rack]
    return lacking if len(lacking) < len(brokers) else ()


def _racks(picture: Picture) -> dict[int, str]:
    return {number: broker.rack for number, broker in picture.header.brokers.items() if broker.rack}


def _more_replicas_than_racks(picture: Picture) -> Iterator[str]:
    racks = set(_racks(picture).values())
    for name, topic in _topics(picture) if len(racks) > 1 else ():
        most = max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        if most > len(racks):
            yield f"{name} ({most} replicas, {len(racks)} racks)"


def _in_one_rack(picture: Picture) -> Iterator[str]:
    racks = _racks(picture)
    if len(set(racks.values())) < 2:
        return
    for name, _, partition in _partitions(picture):
        used = {racks.get(replica) for replica in partition.replicas}
        if len(partition.replicas) > 1 and len(used) == 1 and None not in used:
            yield f"{name} (rack {used.pop()})"


# --- what was asked for


def _left_requests(picture: Picture) -> Iterator[str]:
    for path in _REQUESTS:
        if path in picture.records and _is_old(picture, path):
            yield path


def _deletions_of_nothing(picture: Picture) -> Iterator[str]:
    for path in sorted(picture.records):
        where = locate(path)
        if where.place is Place.DELETE_TOPIC and picture.topic(where.name) is None and _is_old(picture, path):
            yield path


def _unread_notifications(picture: Picture) -> Iterator[str]:
    for path in sorted(picture.records):
        if locate(path).place in (Place.ISR_CHANGE, Place.LOG_DIR_EVENT) and _is_old(picture, path):
            yield path


def _is_old(picture: Picture, path: str) -> bool:
    """Whether a znode was there longer than a controller takes, by all that is known of its time."""
    written_ms = picture.written_ms.get(path, picture.records[path].observed_ms)
    return written_ms == NOT_KNOWN_MS or picture.as_of_ms - written_ms > _LEFT_AFTER_MS


def _long_lists(picture: Picture) -> Iterator[str]:
    sizes: Counter[str] = Counter()
    for path in picture.records:
        parent, _, name = path.rpartition("/")
        if parent in _LISTED:
            sizes[parent] += 4 + len(name.encode())
    for parent, size_bytes in sorted(sizes.items()):
        if size_bytes > _NEARLY * _JUTE_MAXBUFFER_BYTES:
            yield f"{parent} ({size_bytes} of {_JUTE_MAXBUFFER_BYTES} bytes)"


CHECKS: Final = (
    LintCheck(
        "duplicate-topic-id",
        Severity.PAGE,
        _duplicate_ids,
        "The next broker that is elected controller fails while it loads them, and so does every other.",
        kinds.DUPLICATE_TOPIC_ID.action,
    ),
    LintCheck(
        "state-of-a-later-controller",
        Severity.PAGE,
        _newer_than_the_controller,
        "/controller_epoch was set back: brokers refuse the controller's requests as a deposed one's.",
        "Set /controller_epoch to the highest epoch that is named here, then delete /controller.",
    ),
    LintCheck(
        "min-isr-above-replication-factor",
        Severity.PAGE,
        _needs_more_than_it_has,
        "Writes with acks=all are refused for ever, whichever brokers are live.",
        "Lower min.insync.replicas of the topic, or reassign it to more replicas.",
    ),
    LintCheck(
        "child-list-too-long",
        Severity.PAGE,
        _long_lists,
        "A controller that starts cannot read a list beyond jute.maxbuffer, and none is elected for long.",
        "Delete topics that nobody uses, or raise jute.maxbuffer on every ZooKeeper server, then on every broker.",
    ),
    LintCheck(
        "leader-or-isr-not-assigned",
        Severity.WARN,
        _stray_states,
        "The state names brokers that are no replicas: the controller elects none of them, and an ISR of them is lost.",
        "Find out who edited the topic's znode, set its assignment back, and ask for a reassignment instead.",
    ),
    LintCheck(
        "orphan-state",
        Severity.WARN,
        _orphan_states,
        "Where a partition of this name is made, the controller cannot write its first state: it has no leader until the "
        "next failover, and the old one then.",
        "Delete the znode /brokers/topics/TOPIC/partitions/N, after a look whether the topic was removed by hand.",
    ),
    LintCheck(
        "leftover-reassignment-fields",
        Severity.WARN,
        _leftover_fields,
        "The next controller takes the partition as being reassigned, to or from brokers that are none of its replicas.",
        "Cancel the reassignment (kafka-reassign-partitions.sh --cancel); else remove the fields from the topic's znode "
        "and delete /controller.",
    ),
    LintCheck(
        "leftover-request",
        Severity.WARN,
        _left_requests,
        "It blocks the next request of its kind, and is carried out at the next failover.",
        "See that nobody waits for it, delete it, then /controller.",
    ),
    LintCheck(
        "deletion-of-no-topic",
        Severity.WARN,
        _deletions_of_nothing,
        "No controller has taken it up: a topic that is made by this name before one does is deleted by it.",
        "Delete the entry, and look at the controller (`kontrast explain controller`).",
    ),
    LintCheck(
        "notifications-not-read",
        Severity.WARN,
        _unread_notifications,
        "The controller does not read what leaders report: it tells brokers of old ISRs, and each one slows its successor.",
        "Look at the controller (`kontrast explain controller`); a failover reads and removes them.",
    ),
    LintCheck(
        "dead-replicas",
        Severity.WARN,
        _dead_brokers,
        "Each partition there has a replica less than it should; a deletion of such a topic waits for the broker.",
        "Bring the broker back with its data, or reassign what it hosts.",
    ),
    LintCheck(
        "brokers-without-rack",
        Severity.WARN,
        _without_rack,
        "With racks on some brokers only, topics cannot be created by rack: Kafka refuses it, or leaves racks out.",
        "Set broker.rack on the brokers that are named, and restart them.",
    ),
    LintCheck(
        "all-replicas-in-one-rack",
        Severity.WARN,
        _in_one_rack,
        "The loss of that rack takes the partition offline.",
        "Reassign it to brokers of several racks.",
    ),
    LintCheck(
        "min-isr-of-all-replicas",
        Severity.WARN,
        _needs_all_it_has,
        "Each restart of a broker stops writes with acks=all.",
        "Lower min.insync.replicas by one, or reassign the topic to one replica more.",
    ),
    LintCheck(
        "settings-of-no-topic",
        Severity.INFO,
        _orphan_settings,
        "A topic that is made by this name begins with these settings.",
        "Delete /config/topics/TOPIC.",
    ),
    LintCheck(
        "missing-topic-id",
        Severity.INFO,
        _missing_ids,
        "The next controller gives them ids; KRaft migration and clients that ask by id do not find them before.",
        kinds.MISSING_TOPIC_ID.action,
    ),
    LintCheck(
        "more-replicas-than-racks",
        Severity.INFO,
        _more_replicas_than_racks,
        "No spread can give each replica a rack of its own: one rack has two of them.",
        "Add a rack, or count on its loss taking two replicas.",
    ),
    LintCheck(
        "one-replica",
        Severity.INFO,
        _one_replica,
        "It goes offline with its broker, at each restart too, and is lost with its disk.",
        kinds.TOPIC_WITH_ONE_REPLICA.action,
    ),
    LintCheck(
        "unclean-election-enabled",
        Severity.INFO,
        _unclean,
        "Records are lost when all in-sync replicas fail: a replica that lags is elected then.",
        "Set unclean.leader.election.enable=false, where data matters more than being up.",
    ),
)
