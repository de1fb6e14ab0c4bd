"""Checks of topics, their partitions and states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.contract.ids import BrokerId
from migration.preflight.check import Finding
from migration.preflight.tree import BROKERS, DELETIONS, TOPIC_CONFIGS, TOPICS, Tree
from wording.sentences import listed

_NAMED = 3


def new_broker_ids(tree: Tree) -> Iterator[Finding]:
    """Yield a finding if no registered broker has a replica, with the registered brokers and those with replicas."""
    assigned = {broker for partition in tree.partitions for broker in partition.replicas}
    if tree.brokers and assigned and not assigned & tree.brokers.keys():
        old, new = listed(assigned), listed(tree.brokers)
        yield Finding(BROKERS, f"{new} registered with new ids, and none of {old}, which have all replicas")


def on_absent_brokers(tree: Tree) -> Iterator[Finding]:
    """Yield the unregistered brokers in assignments, each once, unless all registered brokers have new ids."""
    if any(new_broker_ids(tree)):
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
        yield Finding(f"{TOPICS}/{sorted(topics[broker])[0]}", f"{detail}{more}: {_some(of)}")


def registered_elsewhere(tree: Tree) -> str:
    """Return the reason if /brokers/ids does not list the live brokers, otherwise an empty text."""
    return "KRaft leads, and brokers in KRaft mode are not in /brokers/ids" if tree.is_ruled_by_kraft else ""


def without_id(tree: Tree) -> Iterator[Finding]:
    """Yield the topics whose znode has no topic_id."""
    for name, topic in tree.topics.items():
        if topic is not None and not topic.topic_id:
            yield Finding(f"{TOPICS}/{name}", "has no topic_id")


def unreadable_topics(tree: Tree) -> Iterator[Finding]:
    """Yield the topics whose znode is no assignment."""
    for name, topic in tree.topics.items():
        path = f"{TOPICS}/{name}"
        if topic is None and tree.may_be_read(path):
            yield Finding(path, "is not JSON as Kafka writes it" if tree.data(path) else "is empty")


def without_replicas(tree: Tree) -> Iterator[Finding]:
    """Yield the partitions with an empty assignment."""
    for partition in tree.partitions:
        if not partition.replicas:
            yield Finding(f"{TOPICS}/{partition.topic}", f"partition {partition.number} has no replicas")


def under_deletion(tree: Tree) -> Iterator[Finding]:
    """Yield the entries of requested deletions, whether the topic still exists or not."""
    for name in tree.children(DELETIONS):
        left = "is still there" if name in tree.topics else "is gone, its entry is not"
        yield Finding(f"{DELETIONS}/{name}", f"topic {name} {left}")


def orphan_configurations(tree: Tree) -> Iterator[Finding]:
    """Yield the configurations of topics that do not exist."""
    for name in tree.children(TOPIC_CONFIGS):
        if name not in tree.topics and name != "<default>":
            yield Finding(f"{TOPIC_CONFIGS}/{name}", f"there is no topic {name}")


def without_state(tree: Tree) -> Iterator[Finding]:
    """Yield the assigned partitions that have no state."""
    for partition in tree.partitions:
        if partition.state is None and partition.replicas and tree.may_be_read(partition.state_path):
            wrong = "cannot be read" if partition.state_path in tree.znodes else "is not there"
            yield Finding(partition.state_path, f"the state of {partition.name} {wrong}")


def without_leader(tree: Tree) -> Iterator[Finding]:
    """Yield partitions without a leader."""
    for partition in tree.partitions:
        if partition.state is not None and partition.state.leader < 0:
            in_sync = list(partition.state.isr)
            yield Finding(partition.state_path, f"nobody leads {partition.name}; in sync: {in_sync}")


def stray_states(tree: Tree) -> Iterator[Finding]:
    """Yield the states of partitions that the topic's assignment does not have."""
    assigned = {partition.state_path for partition in tree.partitions}
    for path in tree.znodes:
        if path.endswith("/state") and path.startswith(f"{TOPICS}/") and path not in assigned:
            topic, _, number = path[len(TOPICS) + 1 : -len("/state")].partition("/partitions/")
            if topic in tree.kept_topics:
                yield Finding(path, f"topic {topic} has no partition {number}")


def shared_ids(tree: Tree) -> Iterator[Finding]:
    """Yield the topics with another topic's id."""
    first: dict[str, str] = {}
    for name, topic in tree.topics.items():
        if topic is not None and topic.topic_id:
            other = first.setdefault(topic.topic_id, name)
            if other != name:
                yield Finding(f"{TOPICS}/{name}", f"has the topic_id of {other}, {topic.topic_id}")


def reassignments(tree: Tree) -> Iterator[Finding]:
    """Yield the topics with a reassignment under way."""
    for name, topic in tree.kept_topics.items():
        moving = {number for number, brokers in topic.adding_replicas.items() if brokers}
        moving |= {number for number, brokers in topic.removing_replicas.items() if brokers}
        if moving:
            named = _some([f"{name}-{number}" for number in sorted(moving)])
            yield Finding(f"{TOPICS}/{name}", f"is being reassigned: {named}")


def log_directories(tree: Tree) -> Iterator[Finding]:
    """Yield leftovers of a failed log directory, its notification and live brokers' replicas outside the ISR."""
    parent = "/log_dir_event_notification"
    for name in tree.children(parent):
        yield Finding(f"{parent}/{name}", "a broker reports a failed log directory, and no controller has taken it up")
    lagging: dict[BrokerId, list[str]] = defaultdict(list)
    for partition in tree.partitions:
        state = partition.state
        if state is not None and state.leader >= 0 and len(state.isr) < len(partition.replicas):
            adding = tree.kept_topics[partition.topic].adding_replicas.get(partition.number, ())
            for broker in set(partition.replicas) - set(state.isr) - set(adding):
                lagging[broker].append(partition.name)
    for broker in sorted(lagging.keys() & tree.brokers.keys()):
        count = len(lagging[broker])
        detail = f"broker {broker} is registered and not in sync for {count} partition{'s' * (count > 1)}"
        why = "perhaps for a failed log directory, a throttle or listeners"
        yield Finding(f"{BROKERS}/{broker}", f"{detail}, {why}: {_some(lagging[broker])}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
