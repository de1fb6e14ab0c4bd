"""Mutable copy of a context, with its header and topics, and the partitions touched so far.

Topics and partitions change only through these few methods, so that every touched partition is judged. Each part of the
header changes by the verbs of its own class. `published_rows` has the rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from itertools import chain

import msgspec

from controller.contract.ids import BrokerEpoch, BrokerId, PartitionId, TopicPartition
from controller.contract.records import Record
from controller.model import clock
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.brokers import Broker
from controller.model.context import FOLLOWING, Context, Header
from controller.model.tally import CountingRules, Counts, Happened
from controller.model.topics import InTopic, Partition, Topic, Topics
from controller.rules.states import ReplicaState


class MutableState:
    """Private copy of a context, which one transaction changes."""

    __slots__ = (
        "_epochs",
        "_indexed_amid",
        "_live",
        "_registered",
        "_replica_index",
        "_ruled_by",
        "_rules",
        "clock_set_by_ms",
        "gone_ms",
        "header",
        "concludes_all",
        "judged_brokers",
        "record",
        "topics",
        "touched",
        "touched_topics",
    )

    def __init__(self, context: Context, record: Record, *, concludes_all: bool = False) -> None:
        self.header: Header = context.header.copy()
        self.topics = context.topics.mutable_copy()
        self.advance_to(record)
        self.concludes_all = concludes_all  # every partition is concluded at the end, touched or not
        self.judged_brokers = context.header.brokers  # the brokers as the alerts last judged them
        self._registered: tuple[dict[BrokerId, Broker], tuple[BrokerId, ...]] | None = None
        self._epochs: tuple[dict[BrokerId, Broker], tuple[BrokerEpoch, ...]] | None = None
        self._live: tuple[dict[BrokerId, Broker], tuple[BrokerId, ...], frozenset[BrokerId]] | None = None
        index = context.replica_index
        self._replica_index = index if index is not None and index.topics is context.topics else None
        self._indexed_amid = False  # the index was made during this record, so it has the record's earlier changes
        self._find_rules()
        self.touched: dict[TopicPartition, InTopic] = {}
        self.touched_topics: dict[str, Topic | None] = {}

    def advance_to(self, record: Record) -> None:
        """Advance the header to this record."""
        header, before_ms = self.header, self.header.time_ms
        self.clock_set_by_ms = clock.advance(header, record)
        self.gone_ms = header.time_ms - before_ms if before_ms else 0
        header.position = record.position
        if record.zxid > header.zxid:
            header.zxid = record.zxid
            header.read.is_ahead = False  # newer than all that the read found
        self.record = record

    def next_record(self, record: Record) -> None:
        """Forget the touched partitions, which are concluded, and advance to the next record."""
        self.touched, self.touched_topics, self._indexed_amid = {}, {}, False
        self.advance_to(record)

    def fork(self) -> MutableState:
        """Return a copy whose changes do not affect this one."""
        forked = copy(self)
        forked.header = self.header.copy()
        forked.topics = self.topics.mutable_copy()
        forked.touched, forked.touched_topics = dict(self.touched), dict(self.touched_topics)
        return forked

    def adopt(self, fork: MutableState) -> None:
        """Take over the state of a fork. The header stays the same object, because handlers refer to it."""
        header = self.header
        for name in self.__slots__:
            setattr(self, name, getattr(fork, name))
        self.header = header
        header.take_over(fork.header)

    @property
    def rules(self) -> CountingRules:
        """Return the rules that counts and partitions' health depend on beside the topics, as of now."""
        header, (settings, profile, dynamic, older) = self.header, self._ruled_by
        if (
            header.settings is not settings
            or header.profile is not profile
            or header.configuration.dynamic is not dynamic
            or header.older is not older
        ):
            self._find_rules()
        return self._rules

    def _find_rules(self) -> None:
        header = self.header
        self._ruled_by = header.settings, header.profile, header.configuration.dynamic, header.older
        self._rules = header.counting_rules

    @property
    def happened(self) -> Happened:
        """Return the counters of this cluster, to change."""
        return self.header.tally.happened

    def count(self, counts: Counts, word: str, by: int = 1) -> None:
        """Add to one of the counters of `happened`."""
        counts[word] = counts.get(word, 0) + by

    def count_write(self, inferred_by: str | None = None, *, explained: bool = True) -> None:
        """Count a write of the controller by how it was explained."""
        self.header.tally.count_write(self.header.time_ms, inferred_by, explained=explained)

    def note_at_work(self, *brokers: BrokerId) -> None:
        """Note that registered brokers show signs of work (see `Broker.at_work`)."""
        before = self.header.brokers
        for broker in brokers:
            found = self.header.brokers.get(broker)
            if found is not None and not found.at_work:
                self.header.brokers = {**self.header.brokers, broker: msgspec.structs.replace(found, at_work=True)}
        if self.judged_brokers is before:
            self.judged_brokers = self.header.brokers  # no alert depends on signs of work

    def topic(self, name: str) -> Topic | None:
        """Return the topic as changed so far, if known."""
        return self.topics.get(name)

    def topic_exists(self, name: str) -> bool:
        """Return whether the topic has a znode."""
        topic = self.topic(name)
        return topic is not None and topic.exists

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return the partition as changed so far, if known."""
        return self.topics.partition(tp)

    def hosted_by(self, broker: BrokerId) -> list[TopicPartition]:
        """Return the partitions with a replica on the broker, in order."""
        return self._found(lambda partition: broker in partition.replicas, self.replica_index.hosted_by(broker))

    def count_hosted(self, brokers: Collection[BrokerId]) -> int:
        """Count the partitions with a replica on one of the brokers, as of the last concluded change."""
        numbers: defaultdict[str, set[PartitionId]] = defaultdict(set)
        for broker in brokers:
            for name, hosted in self.replica_index.hosted_by(broker):
                numbers[name].update(hosted)
        return sum(map(len, numbers.values()))

    def unsettled(self, predicate: Callable[[Partition], bool]) -> list[TopicPartition]:
        """Return the partitions with the predicate, in order. The predicate must be false for settled partitions."""
        return self._found(predicate, self.replica_index.unsettled.items())

    def amid_touched(self, predicate: Callable[[Partition], bool]) -> list[TopicPartition]:
        """Return the partitions with the predicate, in order. The predicate must be false for untouched partitions."""
        return self._found(predicate, ())

    def every(self, predicate: Callable[[Partition], bool]) -> list[TopicPartition]:
        """Return the partitions with the predicate, in order, by a walk that only a full reading can afford."""
        return _in_order(
            TopicPartition(name, number)
            for name, topic in self.topics
            for number, partition in topic.partitions.items()
            if predicate(partition)
        )

    def unled(self, predicate: Callable[[Partition], bool]) -> list[TopicPartition]:
        """Return the partitions with the predicate, in order.

        The predicate must be false for settled partitions with a live leader.
        """
        return self._found(predicate, self._unled_before())

    def touch_unled(self, predicate: Callable[[Partition], bool]) -> None:
        """Touch the partitions with the predicate, which must be false for settled partitions with a live leader."""
        for tp in _in_order(self._among(self._unled_before(), predicate)):
            self.touch(tp)

    def _unled_before(self) -> Iterable[tuple[str, Iterable[PartitionId]]]:
        index, live = self.replica_index, self.live
        away = (index.hosted_by(host) for host in index.hosts if host not in live)
        return chain(index.unsettled.items(), *away)

    def _found(
        self, predicate: Callable[[Partition], bool], candidates: Iterable[tuple[str, Iterable[PartitionId]]]
    ) -> list[TopicPartition]:
        now = self.topics.partition
        touched = (tp for tp in self.touched if (partition := now(tp)) is not None and predicate(partition))
        return _in_order(chain(touched, self._among(candidates, predicate)))

    def _among(
        self, candidates: Iterable[tuple[str, Iterable[PartitionId]]], predicate: Callable[[Partition], bool]
    ) -> Iterator[TopicPartition]:
        for name, numbers in candidates:
            topic = self.topics.get(name)
            partitions = topic.partitions if topic is not None else {}
            for number in numbers:
                if number in partitions and predicate(partitions[number]):
                    yield TopicPartition(name, number)

    @property
    def replica_index(self) -> BrokerReplicaIndex:
        """Return the index. It may lack this record's changes, so `_found` also looks at the touched partitions."""
        if self._replica_index is None:
            self._replica_index, self._indexed_amid = BrokerReplicaIndex(self.topics), True
        return self._replica_index

    def note_in_index(
        self, tp: TopicPartition, before: Partition | None, now: Partition | None, *, differs: bool
    ) -> None:
        """Note a touched partition in the index, if a lookup has needed the index so far."""
        if self._replica_index is not None and (differs or self._indexed_amid):
            self._replica_index.note(tp, None if self._indexed_amid else before, now)

    def follow_by_index(self, topics: Topics) -> BrokerReplicaIndex | None:
        """Update the replica index to these topics, and return it. It is None until a lookup needs it."""
        if self._replica_index is not None:
            self._replica_index.follow(topics)
        return self._replica_index

    def put_topic(self, name: str, topic: Topic | None) -> None:
        """Replace a topic, or remove it if `topic` is None."""
        topic_before = self.topics.get(name)
        before, after = topic_before.partitions if topic_before else {}, topic.partitions if topic else {}
        if self.concludes_all:
            self._replica_index = None  # because the index follows touched partitions
        # During a complete read only partitions that are gone are concluded. At its end, so are those that differ.
        follows = self.header.phase is FOLLOWING
        numbers: Iterable[PartitionId] = {**before, **after} if follows else [at for at in before if at not in after]
        if follows and self.concludes_all:
            numbers = [number for number in numbers if before.get(number) is not after.get(number)]
        for number in numbers:
            tp = TopicPartition(name, number)
            if tp not in self.touched:
                self.touched[tp] = (topic_before, before.get(number))
        self.touched_topics.setdefault(name, topic_before)
        self.topics.put(name, topic)

    def put_partition(self, tp: TopicPartition, partition: Partition) -> None:
        """Replace a partition of a known topic."""
        if tp not in self.touched:
            self.touch(tp)
        self.topics.put_partition(tp, partition)

    def touch(self, tp: TopicPartition) -> None:
        """Judge the partition's health once the record is handled, even if the partition itself does not change.

        A complete read postpones this to its end.
        """
        if self.header.phase is FOLLOWING and tp not in self.touched:
            topic = self.topics.get(tp.topic)
            self.touched[tp] = (topic, topic.partitions.get(tp.partition) if topic is not None else None)

    def forget_offline_dirs(self, broker: BrokerId) -> None:
        """Forget failed log directories of a registration that is over. A complete read does that at its end."""
        reports = self.header.triggers.log_dir_failures
        if broker in reports:
            self.header.triggers.log_dir_failures = {key: each for key, each in reports.items() if key != broker}
        if self.header.phase is not FOLLOWING:
            self.header.read.ended = (*self.header.read.ended, broker)
            return
        for tp in self.unsettled(lambda partition: broker in partition.offline_dirs):
            self.put_partition(tp, self.topics[tp.topic].partitions[tp.partition].with_dirs_back((broker,)))

    def is_online(self, replica: BrokerId, partition: Partition) -> bool:
        """Return whether the replica's broker is live and its log directory works, by the controller's knowledge."""
        return replica in self.live and replica not in partition.offline_dirs

    def can_lead(self, broker: BrokerId, partition: Partition) -> bool:
        """Return whether the broker still leads. It does until its session ends, even if it seems to shut down."""
        return broker in self.header.brokers and broker not in partition.offline_dirs

    def offline_replicas(self, partition: Partition) -> tuple[BrokerId, ...]:
        """Return the replicas that are not online, as far as the controller knows."""
        if not partition.offline_dirs and self.live.issuperset(partition.replicas):
            return ()
        return tuple([replica for replica in partition.replicas if not self.is_online(replica, partition)])

    def states_by_brokers(self, partition: Partition) -> dict[BrokerId, ReplicaState]:
        """Return the states of the replicas as their brokers are: Online or Offline."""
        return {
            replica: ReplicaState.ONLINE if self.is_online(replica, partition) else ReplicaState.OFFLINE
            for replica in partition.replicas
        }

    @property
    def registered(self) -> tuple[BrokerId, ...]:
        """Return the registered brokers, in order."""
        brokers = self.header.brokers
        if self._registered is None or self._registered[0] is not brokers:
            self._registered = (brokers, tuple(sorted(brokers)))
        return self._registered[1]

    @property
    def broker_epochs(self) -> tuple[BrokerEpoch, ...]:
        """Return the epochs of the registered brokers, in the brokers' order."""
        brokers = self.header.brokers
        if self._epochs is None or self._epochs[0] is not brokers:
            self._epochs = (brokers, tuple([brokers[broker].epoch for broker in self.registered]))
        return self._epochs[1]

    @property
    def live(self) -> frozenset[BrokerId]:
        """Return the brokers that are registered and not shutting down (Kafka's `liveBrokerIds`)."""
        brokers, shutting_down = self.header.brokers, self.header.shutdowns.under_way
        if self._live is None or self._live[0] is not brokers or self._live[1] is not shutting_down:
            self._live = (brokers, shutting_down, frozenset(brokers).difference(shutting_down))
        return self._live[2]


def _in_order(tps: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return each partition once, by topic and number. A comparison of whole names takes four times as long."""
    numbers: defaultdict[str, set[PartitionId]] = defaultdict(set)
    for tp in tps:
        numbers[tp.topic].add(tp.partition)
    return [TopicPartition(name, number) for name in sorted(numbers) for number in sorted(numbers[name])]
