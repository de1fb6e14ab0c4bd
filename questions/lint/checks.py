"""Checks of topics, partitions, brokers and racks for trouble ahead. Each yields the names of its places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Final

from controller.contract.alert_row import Severity
from controller.contract.flaw import Flaw
from controller.contract.ids import NO_LEADER, BrokerId
from controller.says.alert_kinds import kinds
from controller.says.remedies.controllership import MOVE_CONTROLLER, RAISE_EPOCH
from controller.says.remedies.partitions import FORBID_UNCLEAN, LOWER_MIN_ISR
from controller.says.remedies.reassignments import REASSIGN
from controller.says.remedies.remedy import Advice
from controller.view.flawed_znodes import FlawedZnode, flawed_znodes as view_of_flawed
from controller.view.gauges import common_leader, replicas_by_broker
from controller.view.health import is_without_session, needed_in_sync, never_registered
from controller.view.types import Partition
from questions.lint.cluster import STEP_FOLLOWS, TOPICS, LintCheck, Linted
from wording.facts import replicas_in_words
from wording.sentences import bracketed, counted, listed

_COMPACTED: Final = ("__consumer_offsets", "__transaction_state")
_DEFAULT_PARTITIONS: Final = 50

page, warn, info = (partial(LintCheck, each) for each in (Severity.PAGE, Severity.WARN, Severity.INFO))


def _strays(partition: Partition) -> set[BrokerId]:
    value = partition.zk_state
    return set() if value is None else {value.leader, *value.isr}.difference(partition.replicas, (NO_LEADER,))


def _flawed(cluster: Linted) -> Iterator[FlawedZnode]:
    told = {f"{TOPICS}/{name}" for name in cluster.picture.header.damaged.unloadable}  # by a check of its own
    flawed = view_of_flawed(cluster.picture.header)
    return (each for each in flawed if each.path not in told and each.flaw is not Flaw.SAME_ID)


def _least(cluster: Linted) -> Iterator[tuple[str, int, int]]:
    """Yield topics with the in-sync replicas that acks=all needs, and the replicas of the smallest partition."""
    rules = cluster.picture.header.counting_rules
    for name, topic in cluster.topics:
        fewest = min((len(each.replicas) for each in topic.partitions.values()), default=0)
        leaders = {each.zk_state.leader for each in topic.partitions.values() if each.zk_state is not None}
        needs = [needed_in_sync(topic.min_insync_replicas, leader, fewest, rules) for leader in leaders]
        yield name, max(needs, default=0), fewest


def _racks(cluster: Linted) -> dict[BrokerId, str]:
    return {number: broker.rack for number, broker in cluster.picture.header.brokers.items() if broker.rack}


@page(
    "Every broker that is elected controller fails while it loads them.",
    kinds.DUPLICATE_TOPIC_ID.advice,
)
def duplicate_topic_id(cluster: Linted) -> Iterator[str]:
    """Return ids that more than one topic has."""
    by_id: dict[str, list[str]] = {}
    for name, topic in cluster.topics:
        if topic.topic_id:
            by_id.setdefault(topic.topic_id, []).append(name)
    return (f"{' and '.join(names)} ({topic_id})" for topic_id, names in by_id.items() if len(names) > 1)


@page(
    "Every broker that is elected controller fails while it loads the topic.",
    kinds.TOPIC_UNLOADABLE.advice,
)
def unloadable_topic(cluster: Linted) -> Iterable[str]:
    """Return the paths of topics' znodes that end every controller that loads them."""
    return [f"{TOPICS}/{name}" for name in sorted(cluster.picture.header.damaged.unloadable)]


@page(
    "Kafka fails at the znode when a broker starts, a controller takes over, or a request comes.",
    STEP_FOLLOWS,
    is_in_check=True,
)
def unreadable_znode(cluster: Linted) -> Iterator[str]:
    """Yield znodes that end brokers or controllers, each with the effect and the step that mends it."""
    return (f"{each.with_mend}." for each in _flawed(cluster) if each.is_deadly)


@warn(
    "Brokers and controllers go on, but do not do what the znode is for.",
    STEP_FOLLOWS,
    is_in_check=True,
)
def znode_without_effect(cluster: Linted) -> Iterator[str]:
    """Yield znodes that cost Kafka only a function, each with the effect and the step that mends it."""
    return (f"{each.with_mend}." for each in _flawed(cluster) if not each.is_deadly)


@page(
    "/controller_epoch was set back. Brokers refuse the controller's requests as those of a deposed one.",
    Advice(remedies=(RAISE_EPOCH.filled(EPOCH="the highest epoch in this finding"),)),
    is_in_check=True,
)
def state_of_a_later_controller(cluster: Linted) -> Iterator[str]:
    """Yield partitions whose state has a later controller epoch than /controller_epoch."""
    epoch = cluster.picture.header.controller_epoch

    def is_newer(partition: Partition) -> bool:
        return partition.zk_state is not None and partition.zk_state.controller_epoch > epoch >= 0

    for name, partition in cluster.partitions(is_newer):
        assert partition.zk_state is not None, "a partition without a state has no epoch"
        yield f"{name} (controller epoch {partition.zk_state.controller_epoch}, /controller_epoch {epoch})"


@page(
    "Brokers refuse every write with acks=all, even while all brokers are live.",
    Advice(remedies=(LOWER_MIN_ISR, REASSIGN.given("the topic should have more replicas"))),
)
def min_isr_above_replication_factor(cluster: Linted) -> Iterator[str]:
    """Yield topics whose min.insync.replicas no ISR can reach."""
    return (
        f"{name} (min.insync.replicas {needed}, {most} replicas)"
        for name, needed, most in _least(cluster)
        if needed > most
    )


@page(
    "The znode is persistent. No process leads the broker's partitions, and the real broker cannot register.",
    kinds.BROKER_WITHOUT_SESSION.advice,
)
def broker_without_session(cluster: Linted) -> Iterator[str]:
    """Return registrations that belong to no session."""
    header = cluster.picture.header
    return (f"/brokers/ids/{broker}" for broker in sorted(header.brokers) if is_without_session(broker, header))


@warn(
    "No broker writes such a state, so somebody edited it. The leader's end may lose records, or empty the ISR, and "
    "then no return elects a leader.",
    Advice(
        "Compare the replicas. Write the state with a live leader that has all records, it alone in the isr, and a "
        "leader_epoch one higher.",
        (MOVE_CONTROLLER,),
    ),
    is_in_check=True,
)
def edited_state(cluster: Linted) -> Iterator[str]:
    """Yield partitions whose leader is not in their ISR, or whose ISR names a broker twice."""

    def is_edited(partition: Partition) -> bool:
        value = partition.zk_state
        return value is not None and (
            (value.leader != NO_LEADER and value.leader not in value.isr) or len(value.isr) > len({*value.isr})
        )

    for name, partition in cluster.partitions(is_edited):
        assert partition.zk_state is not None, "a partition without a state has no leader"
        yield f"{name} (leader {partition.zk_state.leader}, {replicas_in_words(partition.zk_state.isr)})"


@warn(
    "The controller waits for these brokers for ever, and handles no other reassignment of the partitions.",
    kinds.BROKER_UNKNOWN.advice,
)
def replicas_of_unknown_brokers(cluster: Linted) -> Iterator[str]:
    """Yield brokers that have replicas and no trace of ever having run."""
    header = cluster.picture.header
    for broker, count in sorted(replicas_by_broker(header).items()):
        if never_registered(header, broker):
            yield f"broker {broker} ({counted(count, 'replica')})"


@warn(
    "The state names brokers outside the replicas. The controller elects no such broker, and their ISR is lost.",
    kinds.ASSIGNMENT_EDITED.advice,
    is_in_check=True,
)
def leader_or_isr_not_assigned(cluster: Linted) -> Iterator[str]:
    """Find partitions whose state names brokers outside their replicas."""
    for name, partition in cluster.partitions(_strays):
        yield f"{name} {sorted(_strays(partition))}"


@info(
    "If partitions were added under live groups, brokers disagree on a group's coordinator until all restart, and "
    "groups look for their offsets in other partitions.",
    Advice("Check that the topic was created with this number (offsets.topic.num.partitions)."),
)
def internal_topic_grown(cluster: Linted) -> Iterator[str]:
    """Yield internal topics with more partitions than the default, because brokers map groups by that number."""
    for name, topic in cluster.topics:
        if name in _COMPACTED and len(topic.partitions) > _DEFAULT_PARTITIONS:
            yield f"{name} ({len(topic.partitions)} partitions)"


@warn(
    "Clients that hash keys over the count send to a partition that does not exist, and never to the last one.",
    Advice("Find out who edited the topic's znode, and write the missing partition back."),
    is_in_check=True,
)
def partitions_with_a_gap(cluster: Linted) -> Iterator[str]:
    """Yield topics whose partitions are not numbered without a gap."""
    for name, topic in cluster.topics:
        numbers = sorted(topic.partitions)
        if missing := sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers)):
            yield f"{name} (without partition {bracketed(missing[:3])}, of {len(numbers)})"


@warn(
    "The leader is the common cause, because its followers are in sync with other leaders. Its loss takes the "
    "partitions offline in which it is the only in-sync replica.",
    Advice("Look at the leader's connections, disks and log. Move its leaderships once another replica is in sync."),
)
def leader_alone_in_its_isrs(cluster: Linted) -> Iterator[str]:
    """Find the one leader of all partitions whose ISR lacks followers that are in sync with other leaders."""
    header = cluster.picture.header
    lagging = {
        broker
        for _, partition in cluster.partitions(lambda each: each.zk_state is not None)
        for broker in partition.replicas
        if partition.zk_state is not None and broker not in {*partition.zk_state.isr, *partition.adding}
    }
    leader = common_leader(header, lagging & header.brokers.keys())
    if leader is not None:
        count = header.tally.gauges.under_replicated[leader]
        yield f"broker {leader} ({counted(count, 'partition')}, {listed(lagging)} out of sync)"


@warn(
    "Each partition there lacks a replica, and a deletion of its topic waits for the broker.",
    kinds.BROKER_ABSENT.advice,
)
def dead_replicas(cluster: Linted) -> Iterator[str]:
    """Yield brokers that host replicas and are not registered."""
    for broker, count in sorted(replicas_by_broker(cluster.picture.header).items()):
        header = cluster.picture.header
        if count and broker not in header.brokers and not never_registered(header, broker):
            yield f"broker {broker} ({counted(count, 'replica')})"


@warn(
    "With racks on some brokers only, Kafka rejects new topics by rack, or ignores racks.",
    Advice("Set broker.rack on the named brokers, and restart them."),
)
def brokers_without_rack(cluster: Linted) -> Iterable[str]:
    """Return brokers without a rack, if other brokers have one."""
    brokers = cluster.picture.header.brokers
    lacking = [f"broker {number}" for number, broker in sorted(brokers.items()) if not broker.rack]
    return lacking if len(lacking) < len(brokers) else ()


@warn(
    "The loss of that rack takes the partition offline.",
    Advice(remedies=(REASSIGN,)),
)
def all_replicas_in_one_rack(cluster: Linted) -> Iterator[str]:
    """Yield partitions whose replicas are all in one of several racks."""
    racks = _racks(cluster)
    if len(set(racks.values())) < 2:
        return

    @cache  # most partitions share their replicas with others
    def are_in_one(replicas: tuple[BrokerId, ...]) -> bool:
        used = set(map(racks.get, replicas))
        return len(replicas) > 1 and len(used) == 1 and None not in used

    for name, partition in cluster.partitions(lambda partition: are_in_one(partition.replicas)):
        yield f"{name} (rack {racks[partition.replicas[0]]})"


@warn(
    "Each restart of a broker stops writes with acks=all.",
    Advice(remedies=(LOWER_MIN_ISR, REASSIGN.given("the topic should have more replicas"))),
)
def min_isr_of_all_replicas(cluster: Linted) -> Iterator[str]:
    """Yield topics whose min.insync.replicas needs every replica."""
    return (f"{name} (min.insync.replicas {needed})" for name, needed, most in _least(cluster) if needed == most > 1)


@warn(
    "The next controller gives each a new id. Brokers that have the old id on disk then refuse the topic.",
    kinds.MISSING_TOPIC_ID.advice,
)
def missing_topic_id(cluster: Linted) -> Iterable[str]:
    """Return topics without an id, if other topics have one."""
    lacking = [name for name, topic in cluster.topics if not topic.topic_id]
    return lacking if any(topic.topic_id for _, topic in cluster.topics) else ()


@info(
    "No spread gives each replica a rack of its own, so one rack has two.",
    Advice("Add a rack, or count on its loss taking two replicas."),
)
def more_replicas_than_racks(cluster: Linted) -> Iterator[str]:
    """Yield topics with more replicas than there are racks."""
    racks = set(_racks(cluster).values())
    for name, topic in cluster.topics if len(racks) > 1 else ():
        most = max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        if most > len(racks):
            yield f"{name} ({most} replicas, {len(racks)} racks)"


@info(
    "It goes offline with its broker, at each restart too, and is lost with its disk.",
    kinds.TOPIC_WITH_ONE_REPLICA.advice,
)
def one_replica(cluster: Linted) -> Iterator[str]:
    """Return partitions of one replica."""
    return (name for name, _ in cluster.partitions(lambda partition: len(partition.replicas) == 1))


@info(
    "If all in-sync replicas fail, the controller elects a lagging replica, and records are lost.",
    Advice(remedies=(FORBID_UNCLEAN.given("its data matters more than availability"),)),
)
def unclean_election_enabled(cluster: Linted) -> Iterator[str]:
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
