"""Checks of topics, their partitions and states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.contract.ids import BrokerId
from controller.says.alert_kinds.kinds import DUPLICATE_TOPIC_ID, MISSING_TOPIC_ID, TOPIC_UNLOADABLE
from controller.says.remedies.topics import DELETE_ORPHAN_STATE, DELETE_SETTINGS
from migration.preflight.check import Check, Fault, Hazard
from migration.preflight.tree import BROKERS, DELETIONS, STATES, TOPIC_CONFIGS, TOPICS, Tree
from wording.sentences import listed

_NAMED = 3


def registered_elsewhere(tree: Tree) -> str:
    """Return the reason if /brokers/ids does not list the live brokers, otherwise an empty text."""
    return "KRaft leads, and brokers in KRaft mode are not in /brokers/ids" if tree.is_ruled_by_kraft else ""


@Check(
    Hazard.BLOCKS,
    shown_by="/brokers/ids and assignments without a common id, except for topics in deletion",
    means="The quorum waits for the old ids without limit of time. All partitions are offline, and the data is on "
    "the disks of the old ids.",
    mend="Stop the new brokers. Start the brokers with their old ids (broker.id, then node.id) on their old disks. "
    "On Strimzi the node pool must be called kafka to keep ids and volumes.",
    source="https://github.com/cozystack/cozystack/pull/2352 (August 2026)",
    reads=(BROKERS, *STATES),
    hindered=registered_elsewhere,
)
def new_broker_ids(tree: Tree) -> Iterator[Fault]:
    """Find brokers with new ids, and none of the old ones."""
    assigned = {broker for partition in tree.partitions for broker in partition.replicas}
    if tree.brokers and assigned and not assigned & tree.brokers.keys():
        old, new = listed(assigned), listed(tree.brokers)
        yield Fault(BROKERS, f"{new} registered with new ids, and none of {old}, which have all replicas")


@Check(
    Hazard.BLOCKS,
    shown_by="an assignment, or an added replica, with an id that /brokers/ids lacks, except for topics in deletion",
    means="The quorum waits for that broker without limit of time.",
    mend="Start the broker, reassign its partitions, or delete the topic.",
    source="KRaftMigrationDriver, ZkMigrationClient.readBrokerIdsFromTopicAssignments (3.9)",
    reads=(BROKERS, *STATES),
    hindered=registered_elsewhere,
)
def absent_broker(tree: Tree) -> Iterator[Fault]:
    """Find replicas on a broker that is not registered."""
    if any(new_broker_ids.find(tree)):
        return
    partitions: dict[BrokerId, list[str]] = defaultdict(list)
    topics: dict[BrokerId, set[str]] = defaultdict(set)
    registered = frozenset(tree.brokers)
    for partition in tree.partitions:
        if registered.issuperset(partition.replicas):
            continue
        for broker in set(partition.replicas) - registered:
            partitions[broker].append(partition.name)
            topics[broker].add(partition.topic)
    for broker in sorted(partitions):
        of = partitions[broker]
        count = f"{len(of)} partition{'s' * (len(of) > 1)}"
        detail = f"broker {broker} is not registered and is assigned {count} of {sorted(topics[broker])[0]}"
        others = len(topics[broker]) - 1
        more = f" and {others} other topic{'s' * (others > 1)}" if others else ""
        yield Fault(f"{TOPICS}/{sorted(topics[broker])[0]}", f"{detail}{more}: {_some(of)}")


@Check(
    Hazard.BLOCKS,
    shown_by="/brokers/topics/T, of a protocol before 2.8 or rewritten by an old tool",
    means="The driver fails with NoSuchElementException at each try.",
    mend=MISSING_TOPIC_ID.action,
    source="ZkTopicMigrationClient (3.9)",
    reads=(TOPICS,),
)
def topic_without_id(tree: Tree) -> Iterator[Fault]:
    """Find a topic without topic_id."""
    for name, topic in tree.topics.items():
        if topic is not None and not topic.topic_id:
            yield Fault(f"{TOPICS}/{name}", "has no topic_id")


@Check(
    Hazard.BLOCKS,
    shown_by="/brokers/topics/T",
    means="The driver fails with NoSuchElementException at each try.",
    mend=TOPIC_UNLOADABLE.action,
    source="ZkTopicMigrationClient (3.9)",
    reads=(TOPICS,),
)
def topic_no_json(tree: Tree) -> Iterator[Fault]:
    """Find a topic's znode that is not JSON."""
    for name, topic in tree.topics.items():
        path = f"{TOPICS}/{name}"
        if topic is None and tree.may_be_read(path):
            yield Fault(path, "is not JSON as Kafka writes it" if tree.data(path) else "is empty")


@Check(
    Hazard.KILLS,
    shown_by="[] in the partitions of /brokers/topics/T",
    means="The copy ends with an exception at this topic.",
    mend="Take the partition out of the topic's znode, or delete the topic.",
    source="ZkTopicMigrationClient (3.9)",
    reads=STATES,
)
def no_replicas(tree: Tree) -> Iterator[Fault]:
    """Find a partition without replicas."""
    for partition in tree.partitions:
        if not partition.replicas:
            yield Fault(f"{TOPICS}/{partition.topic}", f"partition {partition.number} has no replicas")


@Check(
    Hazard.LOSES,
    shown_by="/admin/delete_topics/T",
    means="KRaft does not copy the topic, and deletes it from ZooKeeper after the copy. Folders stay on the "
    "brokers. Before 3.6.1 the topic returns in KRaft (KAFKA-15605).",
    mend="Let the deletion finish. Start the brokers with its replicas.",
    source="KAFKA-15605, KAFKA-15799",
    reads=(DELETIONS,),
)
def pending_deletion(tree: Tree) -> Iterator[Fault]:
    """Find a deletion that is not done."""
    for name in tree.children(DELETIONS):
        left = "is still there" if name in tree.topics else "is gone, its entry is not"
        yield Fault(f"{DELETIONS}/{name}", f"topic {name} {left}")


@Check(
    Hazard.LOSES,
    shown_by="/config/topics/T without /brokers/topics/T",
    means="The sync deletes it.",
    mend=DELETE_SETTINGS.says(),
    source="KRaftMigrationZkWriter (3.9)",
    reads=(TOPIC_CONFIGS, TOPICS),
)
def orphan_config(tree: Tree) -> Iterator[Fault]:
    """Find a configuration of a topic that is not there."""
    for name in tree.children(TOPIC_CONFIGS):
        if name not in tree.topics and name != "<default>":
            yield Fault(f"{TOPIC_CONFIGS}/{name}", f"there is no topic {name}")


@Check(
    Hazard.LOSES,
    shown_by="no /brokers/topics/T/partitions/P/state",
    means="KRaft takes the first replica for its leader, all replicas for in sync, and begins with leader epoch 0, "
    "below that of the brokers.",
    mend="If brokers have the partition, write its state back with a leader_epoch above theirs, before any "
    "failover. If it is new, start one of its brokers.",
    source="ZkTopicMigrationClient (3.9)",
    reads=STATES,
)
def no_state(tree: Tree) -> Iterator[Fault]:
    """Find a partition without a state."""
    for partition in tree.partitions:
        if partition.state is None and partition.replicas and tree.may_be_read(partition.state_path):
            wrong = "cannot be read" if partition.state_path in tree.znodes else "is not there"
            yield Fault(partition.state_path, f"the state of {partition.name} {wrong}")


@Check(
    Hazard.LOSES,
    shown_by='"leader":-1 in /brokers/topics/T/partitions/P/state',
    means="It is copied without a leader, and gets one only when KRaft checks the balance (every 5 minutes by "
    "default) or a broker registers.",
    mend="Bring its in-sync replicas back, or have a leader elected, before the migration.",
    source="ZkTopicMigrationClient, ReplicationControlManager (3.9)",
    reads=STATES,
)
def no_leader(tree: Tree) -> Iterator[Fault]:
    """Find a partition that nobody leads."""
    for partition in tree.partitions:
        if partition.state is not None and partition.state.leader < 0:
            in_sync = list(partition.state.isr)
            yield Fault(partition.state_path, f"nobody leads {partition.name}; in sync: {in_sync}")


@Check(
    Hazard.ROLLBACK,
    shown_by="/brokers/topics/T/partitions/P/state without P in /brokers/topics/T",
    means="When KRaft creates this partition, ZooKeeper keeps the old leader and ISR until the next change. "
    "A rollback would use them.",
    mend=DELETE_ORPHAN_STATE.says(),
    source="ZkTopicMigrationClient.createTopicPartitions (3.9)",
    reads=STATES,
)
def stray_state(tree: Tree) -> Iterator[Fault]:
    """Find a state of a partition that its topic lacks."""
    assigned = {partition.state_path for partition in tree.partitions}
    for path in tree.znodes:
        if path.endswith("/state") and path.startswith(f"{TOPICS}/") and path not in assigned:
            topic, _, number = path[len(TOPICS) + 1 : -len("/state")].partition("/partitions/")
            if topic in tree.kept_topics:
                yield Fault(path, f"topic {topic} has no partition {number}")


@Check(
    Hazard.LOSES,
    shown_by="/brokers/topics/T",
    means="KRaft keeps one topic of that id. A starting ZooKeeper controller cannot load them either.",
    mend=DUPLICATE_TOPIC_ID.action,
    source="ZkTopicMigrationClient, ReplicationControlManager (3.9)",
    reads=(TOPICS,),
)
def shared_topic_id(tree: Tree) -> Iterator[Fault]:
    """Find two topics with one topic_id."""
    first: dict[str, str] = {}
    for name, topic in tree.topics.items():
        if topic is not None and topic.topic_id:
            other = first.setdefault(topic.topic_id, name)
            if other != name:
                yield Fault(f"{TOPICS}/{name}", f"has the topic_id of {other}, {topic.topic_id}")


@Check(
    Hazard.LOSES,
    shown_by="adding_replicas or removing_replicas in /brokers/topics/T",
    means="KRaft copies and continues it. Replicas stay on disks, and epochs get stuck.",
    mend="Let it finish before the migration, or go to 3.9 first.",
    source="KAFKA-16120, KAFKA-16121",
    reads=STATES,
    fixed_in=(3, 6, 2),
)
def reassignment(tree: Tree) -> Iterator[Fault]:
    """Find a reassignment under way."""
    for name, topic in tree.kept_topics.items():
        moving = {number for number, brokers in topic.adding_replicas.items() if brokers}
        moving |= {number for number, brokers in topic.removing_replicas.items() if brokers}
        if moving:
            named = _some([f"{name}-{number}" for number in sorted(moving)])
            yield Fault(f"{TOPICS}/{name}", f"is being reassigned: {named}")


@Check(
    Hazard.BLOCKS,
    shown_by="/log_dir_event_notification; a live broker that is not in sync",
    means="A broker with several log directories, one of which fails, ends when it is started with the flag.",
    mend="Repair the directory, or take it out of log.dirs, and wait until the replicas are in sync.",
    source="KAFKA-16431",
    reads=("/log_dir_event_notification", BROKERS, *STATES),
)
def offline_log_directory(tree: Tree) -> Iterator[Fault]:
    """Find a failed log directory."""
    parent = "/log_dir_event_notification"
    for name in tree.children(parent):
        yield Fault(f"{parent}/{name}", "a broker reports a failed log directory, and no controller has taken it up")
    lagging: dict[BrokerId, list[str]] = defaultdict(list)
    for partition in tree.partitions:
        state = partition.state
        if state is not None and state.leader >= 0 and len(state.isr) < len(partition.replicas):
            adding = tree.kept_topics[partition.topic].adding_replicas.get(partition.number, ())
            for broker in set(partition.replicas).difference(state.isr, adding, (state.leader,)):
                lagging[broker].append(partition.name)
    for broker in sorted(lagging.keys() & tree.brokers.keys()):
        count = len(lagging[broker])
        detail = f"broker {broker} is registered and not in sync for {count} partition{'s' * (count > 1)}"
        why = "perhaps for a failed log directory, a throttle or listeners"
        yield Fault(f"{BROKERS}/{broker}", f"{detail}, {why}: {_some(lagging[broker])}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
