"""Issues of partitions, grouped by the brokers that are the cause.

Groups are kept as partitions change, so that a broker failure is one group with all its partitions in it. Which groups
make an alert is decided in `alerts/partition_conditions.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from controller.contract.ids import INTERNAL_TOPICS, BrokerId, LeaderEpoch, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.problem import Problem
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.context import Header
from controller.model.tally import CountingRules, IssueGroup
from controller.model.topics import InTopic, Partition, Topic
from controller.rules.states import ReplicaState
from controller.rules.topic_ranks import place_in_sentence
from controller.view.gauges import REASSIGNING
from controller.view.health import electable, foreseen, is_under_replicated, needed_in_sync


class PartitionIssue(Enum):
    """Issue of a partition. The comments name the brokers by which partitions with the issue are grouped."""

    # The in-sync replicas, any of which would bring it online. If the ISR is empty, all replicas, also as the `others`,
    # because any of them would, by an unclean election.
    OFFLINE = "offline"
    OFFLINE_UNCLEAN = "offline_unclean"  # the same, where the topic's own setting allows unclean elections
    NEVER_CREATED = "never_created"  # all replicas, any of which would bring it online
    COMING_BACK = "coming_back"  # the in-sync replicas, of which one is back, and not elected yet
    ELECTION_DUE = "election_due"  # the leader that is not live
    ELECTION_OWED = "election_owed"  # the last leader, else the in-sync replicas, after a missed election
    CREATION_DUE = "creation_due"  # no brokers
    STATE_LOST = "state_lost"  # no brokers, and no controller owes the state
    LEADERLESS = "leaderless"  # the in-sync replicas
    UNDER_MIN_ISR = "under_min_isr"  # the replicas that are not in sync
    AT_MIN_ISR = "at_min_isr"  # the replicas that are not in sync
    UNDER_REPLICATED = "under_replicated"  # the replicas that are not in sync
    ONE_LEFT = "one_left"  # the replicas that are not in sync, beside the only in-sync one
    ONE_LEFT_UNCLEAN = "one_left_unclean"  # the same, where the topic's own setting allows unclean elections
    UNDELETED = "undeleted"  # the replicas that are not deleted yet
    REASSIGNING = REASSIGNING  # the replicas that must get in sync

    __hash__ = object.__hash__  # members are singletons, so identity is enough, and much faster than the enum's own

    def of(self, brokers: Iterable[BrokerId], others: Iterable[BrokerId] = (), lacking: int = 1) -> str:
        """Return the key of the group whose issue these brokers cause, and the return of `lacking` brokers would end.

        `others` could replace these brokers, but with data loss.
        """
        word = self.value if lacking == 1 else f"{self.value}*{lacking}"
        key = f"{word}/{','.join(map(str, sorted(brokers)))}"
        return f"{key}/{','.join(map(str, sorted(others)))}" if others else key


LOST: Final = (PartitionIssue.OFFLINE, PartitionIssue.OFFLINE_UNCLEAN)
"""Issues of partitions without a live in-sync replica."""

LAST_ONES: Final = (PartitionIssue.ONE_LEFT, PartitionIssue.ONE_LEFT_UNCLEAN)
"""Issues of partitions with one in-sync replica."""

# Issues that wait for the next heartbeat, because they come and go with every ISR change.
_PATIENT: Final = (
    PartitionIssue.AT_MIN_ISR,
    PartitionIssue.UNDER_REPLICATED,
    PartitionIssue.ONE_LEFT,
    PartitionIssue.ONE_LEFT_UNCLEAN,
    PartitionIssue.UNDELETED,
    PartitionIssue.REASSIGNING,
)

OFFLINE_ISSUES: Final = frozenset({*LOST, PartitionIssue.NEVER_CREATED, PartitionIssue.COMING_BACK})

# Beginnings of these groups' keys. A look at the beginning takes a fifth of the time of parsing a key.
_PATIENT_KEYS: Final = tuple(f"{issue.value}/" for issue in _PATIENT)
_ELECTION_OWED_KEYS: Final = f"{PartitionIssue.ELECTION_OWED.value}/"
_OFFLINE_KEYS: Final = tuple(f"{issue.value}/" for issue in OFFLINE_ISSUES)

_BY_PROBLEM: Final[Mapping[Problem | None, PartitionIssue]] = {
    Problem.NO_LIVE_IN_SYNC_REPLICA: PartitionIssue.OFFLINE,
    Problem.NO_LIVE_REPLICA_AT_CREATION: PartitionIssue.NEVER_CREATED,
    Problem.ELECTION_DUE: PartitionIssue.ELECTION_DUE,
    Problem.NOT_YET_CREATED: PartitionIssue.CREATION_DUE,
    Problem.LEADERLESS: PartitionIssue.LEADERLESS,
}

_ELECTION_DUE: Final = PartitionIssue.ELECTION_DUE
_USED_AGAIN_SOON: Final = (None, _ELECTION_DUE, PartitionIssue.ELECTION_OWED)


class GroupKey(NamedTuple):
    """Issue of a group, its causing brokers, the brokers that could replace these, and how many causes must end."""

    issue: PartitionIssue
    brokers: tuple[BrokerId, ...]
    others: tuple[BrokerId, ...]
    lacking: int


# Heartbeats read the same keys. With 33 of 100 brokers lost, 200,000 partitions at random placement had 31,344.
@lru_cache(1 << 16)
def parse_group(key: str) -> GroupKey:
    """Return the parts of a group's key."""
    first, brokers, *others = key.split("/")
    word, _, lacking = first.partition("*")
    return GroupKey(PartitionIssue(word), _brokers(brokers), _brokers(others[0]) if others else (), int(lacking or 1))


def _are_offline(keys: tuple[str, ...]) -> bool:
    return bool(keys) and keys[0].startswith(_OFFLINE_KEYS)  # the issue of an unusable partition is the first


def _brokers(listed: str) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(broker)) for broker in listed.split(",") if broker)


def issues_of(topic: Topic, partition: Partition, rules: CountingRules) -> tuple[str, ...]:
    """Return the keys of the groups to which the partition belongs. Most partitions belong to no group."""
    if topic.queued_for_deletion:
        left = [
            at for at, state in partition.all_replica_states.items() if state is not ReplicaState.DELETION_SUCCESSFUL
        ]
        return (PartitionIssue.UNDELETED.of(left),) if left else ()
    if partition.zk_state is None:
        return _without_state(partition)
    value = foreseen(partition, partition.zk_state, partition.absent)
    if partition.problem is None and _is_sound(topic, partition, value, rules):
        return ()
    unusable = _BY_PROBLEM.get(partition.problem)
    if unusable is _ELECTION_DUE and _is_passed_over(partition, partition.zk_state.leader_epoch):
        unusable = PartitionIssue.ELECTION_OWED
    if unusable is PartitionIssue.OFFLINE and topic.unclean_election:
        unusable = PartitionIssue.OFFLINE_UNCLEAN
    keys: tuple[str, ...] = ()
    if unusable is not None:
        in_sync = electable(partition, value) if value.isr else partition.replicas
        keys = (_unusable_for(unusable, partition.zk_state.leader, in_sync, set(partition.replicas) - set(value.isr)),)
    if partition.reassigning:
        keys += (PartitionIssue.REASSIGNING.of(set(partition.assignment.target) - set(value.isr)),)
    if unusable in _USED_AGAIN_SOON:  # otherwise clients cannot use the partition, so no other issue matters
        keys += _lacking_in(topic, partition, value, rules)
    return keys


def _is_sound(topic: Topic, partition: Partition, value: LeaderAndIsr, rules: CountingRules) -> bool:
    """Return whether a partition without a problem has no issue either, as nearly all partitions.

    This takes a fifth of the time for finding issues.
    """
    in_sync, replicas = len(value.isr), len(partition.replicas)
    if in_sync < replicas or partition.adding or partition.removing:
        return False
    margin = in_sync - needed_in_sync(topic.min_insync_replicas, value.leader, replicas, rules)
    return margin > 0 or (margin == 0 and value.isr == partition.replicas)


def _is_passed_over(partition: Partition, leader_epoch: LeaderEpoch) -> bool:
    owed = partition.passed_over
    return owed is not None and owed.leader_epoch == leader_epoch and not partition.write_due


def _without_state(partition: Partition) -> tuple[str, ...]:
    issue = _BY_PROBLEM.get(partition.problem)
    if issue is PartitionIssue.CREATION_DUE and not partition.write_due:
        issue = PartitionIssue.STATE_LOST
    return () if issue is None else (issue.of(partition.replicas if issue is PartitionIssue.NEVER_CREATED else ()),)


def _unusable_for(
    issue: PartitionIssue, leader: BrokerId, isr: tuple[BrokerId, ...], others: Collection[BrokerId]
) -> str:
    if issue is PartitionIssue.ELECTION_OWED:
        return issue.of((leader,) if leader >= 0 else isr)
    if issue is _ELECTION_DUE:
        return issue.of((leader,)) if leader >= 0 else PartitionIssue.COMING_BACK.of(isr)
    return issue.of(isr, others if issue in LOST else ())


def _lacking_in(topic: Topic, partition: Partition, value: LeaderAndIsr, rules: CountingRules) -> tuple[str, ...]:
    isr, replicas, adding = value.isr, partition.replicas, partition.adding
    missing = tuple([at for at in replicas if at not in isr and at not in adding])
    lagging = missing if is_under_replicated(len(isr), len(replicas), len(adding)) else ()
    margin = len(isr) - needed_in_sync(topic.min_insync_replicas, value.leader, len(replicas), rules)
    return _lacking(missing, lagging, isr if lagging and len(isr) == 1 else (), margin, topic.unclean_election is True)


# Few replicas are missing at a time, whichever partitions lack them. An entry takes 1 kB, and new brokers in ISRs add
# entries for weeks.
@lru_cache(1 << 11)
def _lacking(
    missing: tuple[BrokerId, ...],
    lagging: tuple[BrokerId, ...],
    last: tuple[BrokerId, ...],
    margin: int,
    unclean: bool,  # noqa: FBT001 (a positional argument is faster in the cache)
) -> tuple[str, ...]:
    keys = [PartitionIssue.UNDER_REPLICATED.of(lagging)] if lagging else []
    if margin < 0:
        keys.append(PartitionIssue.UNDER_MIN_ISR.of(missing, lacking=-margin))
    if last:
        keys.append((PartitionIssue.ONE_LEFT_UNCLEAN if unclean else PartitionIssue.ONE_LEFT).of(lagging, last))
    elif margin == 0 and missing:
        keys.append(PartitionIssue.AT_MIN_ISR.of(missing))
    return tuple(keys)


class PartitionIssueIndex:
    """Groups of a cluster while a transaction changes them. The first change copies the groups."""

    __slots__ = ("_owned", "_rules", "groups", "offline_by_topic", "wants_judging")

    def __init__(self, groups: dict[str, IssueGroup], offline_by_topic: dict[str, int], rules: CountingRules) -> None:
        self.groups = groups
        self.offline_by_topic = offline_by_topic
        self.wants_judging = False  # whether alerts must be judged before the next heartbeat
        self._rules = rules
        self._owned = False

    def recount(self, tp: TopicPartition, before: InTopic, after: InTopic, now_ms: int) -> None:
        """Move the partition from the groups of its former issues to the groups of its present ones."""
        (then, was), (now, is_) = before, after
        gone = issues_of(then, was, self._rules) if then and was else ()
        come = issues_of(now, is_, self._rules) if now and is_ else ()
        if gone == come:
            return
        if not self._owned:
            self.groups, self.offline_by_topic, self._owned = self.groups.copy(), self.offline_by_topic.copy(), True
        name, internal = str(tp), int(tp.topic in INTERNAL_TOPICS)
        rank = 0
        if now and is_:
            in_sync = self._rules.least_in_sync if now.min_insync_replicas is None else now.min_insync_replicas
            rank = place_in_sentence(tp.topic, in_sync, len(is_.replicas), self._rules.topic_ranks)
        for key in come:
            if key not in gone:
                # An owed election is due since its event came, not since the controller passed it over.
                owed = is_.passed_over if is_ and key.startswith(_ELECTION_OWED_KEYS) else None
                self._join(key, name, now_ms if owed is None else owed.since_ms, internal, rank)
        for key in gone:
            if key not in come:
                self._leave(key, name, internal)
        more = _are_offline(come) - _are_offline(gone)
        if more:
            self._count_offline(tp.topic, more)

    def _count_offline(self, topic: str, more: int) -> None:
        count = self.offline_by_topic.get(topic, 0) + more
        if count:
            self.offline_by_topic[topic] = count
        else:
            self.offline_by_topic.pop(topic, None)

    def _join(self, key: str, name: str, now_ms: int, internal: int, rank: int) -> None:  # noqa: PLR0913 (one call)
        group = self.groups.get(key)
        if group is None:
            self._note_change(key)
            self.groups[key] = IssueGroup(1, now_ms, (name,), internal, (rank,))
            return
        examples, ranks = group.examples, group.ranks
        at = bisect_right(ranks, rank)
        if at < EXAMPLES_NAMED:
            examples = (*examples[:at], name, *examples[at:])[:EXAMPLES_NAMED]
            ranks = (*ranks[:at], rank, *ranks[at:])[:EXAMPLES_NAMED]
        self.groups[key] = IssueGroup(group.count + 1, group.since_ms, examples, group.internal + internal, ranks)

    def _note_change(self, key: str) -> None:
        if not key.startswith(_PATIENT_KEYS):
            self.wants_judging = True

    def _leave(self, key: str, name: str, internal: int) -> None:
        group = self.groups[key]
        if group.count == 1:
            self._note_change(key)
            del self.groups[key]
            return
        examples, ranks = group.examples, group.ranks
        if name in examples:
            at = examples.index(name)
            examples, ranks = (*examples[:at], *examples[at + 1 :]), (*ranks[:at], *ranks[at + 1 :])
        self.groups[key] = IssueGroup(group.count - 1, group.since_ms, examples, group.internal - internal, ranks)


def index_issues(topics: Iterable[tuple[str, Topic]], header: Header) -> tuple[dict[str, IssueGroup], dict[str, int]]:
    """Return all groups and the offline partitions by topic, from a walk over all partitions.

    An existing group keeps its beginning.
    """
    rules = header.counting_rules
    issue_index = PartitionIssueIndex({}, {}, rules)
    for name, topic in sorted(topics, key=itemgetter(0)):  # so that an alert's examples do not depend on chunks
        for number, partition in topic.partitions.items():
            if issues_of(topic, partition, rules):
                issue_index.recount(TopicPartition(name, number), (None, None), (topic, partition), header.time_ms)
    before = header.tally.issues
    groups = {
        key: msgspec.structs.replace(group, since_ms=before[key].since_ms) if key in before else group
        for key, group in issue_index.groups.items()
    }
    return groups, issue_index.offline_by_topic
