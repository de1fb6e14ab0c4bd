"""Counting of partitions and replicas, with each partition's share in the gauges, and their sums over changes.

The definitions are Kafka's (`KafkaController.updateMetrics`, `ReplicaManager`, 3.9). A change costs the same however
many partitions have the same replicas, because the counts are indexed by the partition's brokers and states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from controller.contract.ids import BrokerId
from controller.contract.problem import UNUSABLE
from controller.model.tally import ByBroker, CountingRules, GaugeCounts
from controller.model.topics import InTopic, Partition, Topic
from controller.rules.states import PartitionState, ReplicaState
from controller.view.health import foreseen, is_under_replicated, needed_in_sync

# A broker that received StopReplica with delete does not count the replica any more.
_DELETED_ON_DISK: Final = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)
_DELETED, _INELIGIBLE = ReplicaState.DELETION_SUCCESSFUL, ReplicaState.DELETION_INELIGIBLE

# A plain tuple, in the order of `GaugeCounts.by_leadership`, because every change of an ISR makes two.
_Leadership = tuple[BrokerId | None, ...]
_NO_STATE: Final[_Leadership] = (None,) * len(GaugeCounts().by_leadership)


def leadership(topic: Topic, partition: Partition, rules: CountingRules) -> _Leadership:
    """Return the brokers whose counts the partition increments, in the order of `GaugeCounts.by_leadership`.

    A count without such a broker has None.
    """
    value = partition.zk_state
    if value is None:
        return _NO_STATE
    leader, isr, replicas, adding = value.leader, value.isr, partition.replicas, partition.adding
    named = preferred = imbalanced = sole = None
    if not topic.queued_for_deletion:
        named, sole = leader, isr[0] if len(isr) == 1 else None
        if replicas:
            preferred = replicas[0]
            # A replica that is being added counts only once it is in sync, whichever replica leads.
            may_lag = rules.adding_need_not_lead and preferred in adding
            imbalanced = preferred if (preferred in isr if may_lag else leader != preferred) else None
    if leader < 0:
        return named, preferred, imbalanced, sole, None, None, None, None, None
    excused = len(adding) if rules.adding_need_not_follow else 0
    lacks = is_under_replicated(len(isr), len(replicas), excused)
    needed = needed_in_sync(topic.min_insync_replicas, leader, len(replicas), rules)
    at_min, under_min = leader if len(isr) == needed else None, leader if len(isr) < needed else None
    rejects = under_min
    if (
        partition.queue or partition.absent
    ) and partition.problem not in UNUSABLE:  # a dead replica is none for acks=all
        rejects = leader if len(foreseen(partition, value, partition.absent).isr) < needed else None
    return named, preferred, imbalanced, sole, leader, leader if lacks else None, at_min, under_min, rejects


class GaugeIndex:
    """Counts of a cluster while a transaction changes them. The first change copies the counts."""

    __slots__ = ("_by_leadership", "_owned", "_rules", "counts")

    def __init__(self, counts: GaugeCounts, rules: CountingRules) -> None:
        self.counts = counts
        self._rules = rules
        self._owned = False
        self._by_leadership: tuple[ByBroker, ...] = ()  # of the copy

    def recount_topic(self, before: Topic | None, after: Topic | None) -> None:
        """Replace a topic's share before the transaction by its share after it."""
        for topic, by in ((before, -1), (after, 1)):
            if topic is not None and topic.exists:
                _add_topic(self._changeable(), topic, by)

    def recount(self, before: InTopic, after: InTopic, times: int = 1) -> None:
        """Replace a partition's share before the transaction by its share after it. Both depend on its topic.

        `times` is the number of equal partitions that change alike.
        """
        (then, was), (now, is_) = before, after
        if then and was and now and is_ and _hosted_alike(then, was, now, is_):
            self._replace_leadership(then, was, now, is_, times)
            return
        if then and was:
            self._add(then, was, -times)
        if now and is_:
            self._add(now, is_, times)

    def _replace_leadership(self, then: Topic, was: Partition, now: Topic, is_: Partition, times: int) -> None:
        gone, come = leadership(then, was, self._rules), leadership(now, is_, self._rules)
        if gone != come:
            self._changeable()
            _shift(self._by_leadership, gone, come, times)
        created = (is_.zk_state is not None) - (was.zk_state is not None)
        if created:
            self._changeable().partitions += created * times
        if was.problem is not is_.problem:
            more = (is_.problem in UNUSABLE) - (was.problem in UNUSABLE)
            self._changeable().leaderless += more * times
        if created or was.adding or was.removing or is_.adding or is_.removing:
            _add_unproven(self._changeable(), was, self._rules, -times)
            _add_unproven(self._changeable(), is_, self._rules, times)

    def _add(self, topic: Topic, partition: Partition, by: int) -> None:
        counts = self._changeable()
        _add_replicas(counts, topic, partition, by)
        _add_unproven(counts, partition, self._rules, by)
        shares = leadership(topic, partition, self._rules)
        _shift(counts.by_leadership, _NO_STATE, shares, by)
        counts.partitions += by * (partition.zk_state is not None)
        counts.leaderless += by * (partition.problem in UNUSABLE)

    def _changeable(self) -> GaugeCounts:
        if not self._owned:
            self.counts, self._owned = self.counts.copy(), True
            self._by_leadership = self.counts.by_leadership
        return self.counts


def _hosted_alike(then: Topic, was: Partition, now: Topic, is_: Partition) -> bool:
    same_replicas = was.replicas is is_.replicas and was.replica_states is is_.replica_states
    return same_replicas and was.state is is_.state and then.queued_for_deletion is now.queued_for_deletion


def _shift(counts: Iterable[ByBroker], gone: _Leadership, come: _Leadership, by: int) -> None:
    for count, then, now in zip(counts, gone, come, strict=True):
        if then != now:
            if then is not None:
                _bump(count, then, -by)
            if now is not None:
                _bump(count, now, by)


def _bump(count: ByBroker, broker: BrokerId, by: int) -> None:
    count[broker] = now = count.get(broker, 0) + by
    if not now:
        del count[broker]


def _add_topic(counts: GaugeCounts, topic: Topic, by: int) -> None:
    counts.topics += by
    counts.topics_to_delete += by * topic.queued_for_deletion
    counts.topics_ineligible_to_delete += by * topic.ineligible
    counts.topics_with_id += by * (topic.topic_id is not None)


def _add_replicas(counts: GaugeCounts, topic: Topic, partition: Partition, by: int) -> None:
    counts.partitions_in[partition.state] += by
    states = partition.all_replica_states.values()
    for replica in _on_disk(partition):
        _bump(counts.replicas_on, replica, by)
    for state in states:
        counts.replicas_in[state] += by
    if topic.queued_for_deletion:
        counts.replicas_to_delete += by * sum(state is not _DELETED for state in states)
        counts.replicas_ineligible_to_delete += by * sum(state is _INELIGIBLE for state in states)


def _add_unproven(counts: GaugeCounts, partition: Partition, rules: CountingRules, by: int) -> None:
    for replica in _unproven(partition, rules):
        _bump(counts.unproven_on, replica, by)


def _unproven(partition: Partition, rules: CountingRules) -> Iterable[BrokerId]:
    """Return replicas that may never have existed, because they are being added or their partition has no state."""
    if partition.zk_state is None:
        return _on_disk(partition)
    adding = partition.adding
    if partition.removing and not adding and not rules.adding_need_not_lead:
        # Up to 2.3 the topic's znode does not distinguish added replicas from old ones.
        adding = tuple(set(partition.assignment.target).difference(partition.zk_state.isr))
    return [replica for replica in _on_disk(partition) if replica in adding] if adding else ()


def _on_disk(partition: Partition) -> Iterable[BrokerId]:
    states = partition.replica_states
    if states is None:
        return partition.replicas
    return [replica for replica in partition.replicas if states.get(replica) not in _DELETED_ON_DISK]


def count_gauges(
    topics: Iterable[tuple[str, Topic]], rules: CountingRules, ordinary: Mapping[str, Collection[Partition]] = {}
) -> GaugeCounts:
    """Count everything in a walk over all partitions. `Counter` counts an iterable in C.

    `ordinary` has further partitions of these topics, which are ordinary (`health.ordinary`).
    """
    counts = GaugeCounts()
    replicas_on: Counter[BrokerId] = Counter()
    unproven_on: Counter[BrokerId] = Counter()
    shares: list[Counter[BrokerId | None]] = [Counter() for _ in _NO_STATE]
    for name, topic in topics:
        if topic.exists:
            _add_topic(counts, topic, 1)
        partitions = topic.partitions.values()
        replicas_on.update(chain.from_iterable(_count_replicas(counts, topic)))
        counts.partitions += sum([partition.zk_state is not None for partition in partitions])
        counts.leaderless += sum([partition.problem in UNUSABLE for partition in partitions])
        columns = zip(*[leadership(topic, partition, rules) for partition in partitions], strict=True)
        for share, column in zip(shares, columns, strict=False):  # a topic may have no partitions
            share.update(column)
        if well := ordinary.get(name):
            counts.partitions += len(well)
            counts.partitions_in[PartitionState.ONLINE] += len(well)
            counts.replicas_in[ReplicaState.ONLINE] += sum([len(partition.replicas) for partition in well])
            replicas_on.update(chain.from_iterable([partition.replicas for partition in well]))
            for share, brokers in zip(shares, _ordinary_leadership(topic, well, rules), strict=True):
                share.update(brokers)
        unproven_on.update(chain.from_iterable([_unproven(partition, rules) for partition in partitions]))
    counts.replicas_on, counts.unproven_on = dict(replicas_on), dict(unproven_on)
    for by_broker, share in zip(counts.by_leadership, shares, strict=True):
        by_broker.update({broker: count for broker, count in share.items() if broker is not None})
    return counts


def _ordinary_leadership(
    topic: Topic, partitions: Collection[Partition], rules: CountingRules
) -> tuple[Sequence[BrokerId], ...]:
    """Return the columns of `leadership` for ordinary partitions, without what is None."""
    values = [partition.zk_state for partition in partitions if partition.zk_state is not None]
    leaders, preferred = [value.leader for value in values], [partition.replicas[0] for partition in partitions]
    imbalanced = [first for first, leader in zip(preferred, leaders, strict=True) if first != leader]
    sole = [value.leader for value in values if len(value.isr) == 1]
    least = topic.min_insync_replicas
    at_min = [at.leader for at in values if needed_in_sync(least, at.leader, len(at.isr), rules) == len(at.isr)]
    return leaders, preferred, imbalanced, sole, leaders, (), at_min, (), ()


def _count_replicas(counts: GaugeCounts, topic: Topic) -> Iterator[Iterable[BrokerId]]:
    """Count a topic's partitions and replicas by state. Yield each partition's replicas on disk."""
    partitions = topic.partitions.values()
    for partition_state, count in Counter([partition.state for partition in partitions]).items():
        counts.partitions_in[partition_state] += count
    in_state = Counter(chain.from_iterable([partition.all_replica_states.values() for partition in partitions]))
    for state, count in in_state.items():
        counts.replicas_in[state] += count
    if topic.queued_for_deletion:
        counts.replicas_to_delete += in_state.total() - in_state[_DELETED]
        counts.replicas_ineligible_to_delete += in_state[_INELIGIBLE]
    all_on_disk = in_state.keys().isdisjoint(_DELETED_ON_DISK)
    yield from ([partition.replicas for partition in partitions] if all_on_disk else map(_on_disk, partitions))
