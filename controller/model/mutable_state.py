"""Mutable copy of a context, with its header and topics, the partitions touched so far, and the rows so far.

A transaction changes a context only through these few methods, so that every touched partition is judged. Events are in
`transaction/pending_events.py`. `transaction/transaction.py` decides which rows are published.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

import msgspec

from controller.contract.ids import BrokerEpoch, TopicPartition
from controller.contract.records import Record
from controller.contract.row import Row, Stamp
from controller.model import clock
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.brokers import Broker
from controller.model.context import FOLLOWING, Context, Header
from controller.model.tally import Counts, Happened
from controller.model.topics import InTopic, Partition, Topic


class MutableState:
    """Transaction's private copy of the context, and the rows that it publishes."""

    __slots__ = (
        "_epochs",
        "_first",
        "_indexed_amid",
        "_judged_brokers",
        "_live",
        "_registered",
        "_replica_index",
        "_touched",
        "_touched_topics",
        "clock_set_by_ms",
        "effects",
        "header",
        "record",
        "shows_all",
        "shows_gauges",
        "shows_partitions",
        "shows_steps",
        "topics",
    )

    def __init__(self, context: Context, record: Record) -> None:
        self.effects: list[Row] = []
        self._first = 0  # index of the record's first effect
        self.header: Header = context.header.copy()
        self.topics = context.topics.mutable_copy()
        self.advance_to(record)
        self.shows_all = False  # publish each partition's row, changed or not
        self.shows_partitions = True  # publish partitions' rows. False if they are read from the context
        self.shows_steps = True  # publish transitions and requests
        self.shows_gauges = False  # publish the cluster's counts, as at each heartbeat
        self._judged_brokers = context.header.brokers
        self._registered: tuple[dict[int, Broker], tuple[int, ...]] | None = None
        self._epochs: tuple[dict[int, Broker], tuple[BrokerEpoch, ...]] | None = None
        self._live: tuple[dict[int, Broker], tuple[int, ...], frozenset[int]] | None = None
        index = context.replica_index
        self._replica_index = index if index is not None and index.topics is context.topics else None
        self._indexed_amid = False  # the index was made during this record and has its earlier changes
        self._touched: dict[TopicPartition, InTopic] = {}
        self._touched_topics: dict[str, Topic | None] = {}

    def advance_to(self, record: Record) -> None:
        """Advance the header to this record."""
        header = self.header
        self.clock_set_by_ms = clock.advance(header, record)
        header.position = record.position
        if record.zxid > header.zxid:
            header.zxid = record.zxid
        self.record = record

    def stamp(self) -> Stamp:
        """Return the fields that every row of this transaction has, in their order."""
        record = self.record
        ordinal = len(self.effects) - self._first
        return record.cluster, record.generation, record.seq, ordinal, record.zxid, record.observed_ms

    def number_rows_from(self, ordinal: int) -> None:
        """Number the rows of this record from this ordinal on."""
        self._first = len(self.effects) - ordinal

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

    def note_at_work(self, *brokers: int) -> None:
        """Note that registered brokers show signs of work (see `Broker.at_work`)."""
        before = self.header.brokers
        for broker in brokers:
            found = self.header.brokers.get(broker)
            if found is not None and not found.at_work:
                self.header.brokers = {**self.header.brokers, broker: msgspec.structs.replace(found, at_work=True)}
        if self._judged_brokers is before:
            self._judged_brokers = self.header.brokers  # no alert is about that

    def topic(self, name: str) -> Topic | None:
        """Return the topic as changed so far, if known."""
        return self.topics.get(name)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return the partition as changed so far, if known."""
        return self.topics.partition(tp)

    def hosted_by(self, broker: int) -> list[TopicPartition]:
        """Return the partitions with a replica on the broker, in order."""
        return self._found(lambda partition: broker in partition.replicas, self.replica_index.hosted_by(broker))

    def count_hosted(self, brokers: Collection[int]) -> int:
        """Count the partitions with a replica on one of the brokers, as of the last concluded change."""
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for broker in brokers:
            for name, hosted in self.replica_index.hosted_by(broker):
                numbers[name].update(hosted)
        return sum(map(len, numbers.values()))

    def unsettled(self, predicate: Callable[[Partition], bool]) -> list[TopicPartition]:
        """Return the partitions with the predicate, in order. It must be false for every settled partition."""
        return self._found(predicate, self.replica_index.unsettled.items())

    def unled(self, predicate: Callable[[Partition], bool]) -> list[TopicPartition]:
        """Return the partitions with the predicate, in order.

        It must be false for settled partitions with a live leader.
        """
        return self._found(predicate, self._unled_before())

    def touch_unled(self, predicate: Callable[[Partition], bool]) -> None:
        """Touch partitions with the predicate, for one that `unled` takes."""
        for tp in _in_order(self._among(self._unled_before(), predicate)):
            self.touch(tp)

    def _unled_before(self) -> Iterable[tuple[str, Iterable[int]]]:
        index, live = self.replica_index, self.live
        away = (index.hosted_by(host) for host in index.hosts if host not in live)
        return chain(index.unsettled.items(), *away)

    def _found(
        self, predicate: Callable[[Partition], bool], candidates: Iterable[tuple[str, Iterable[int]]]
    ) -> list[TopicPartition]:
        now = self.topics.partition
        touched = (tp for tp in self._touched if (partition := now(tp)) is not None and predicate(partition))
        return _in_order(chain(touched, self._among(candidates, predicate)))

    def _among(
        self, candidates: Iterable[tuple[str, Iterable[int]]], predicate: Callable[[Partition], bool]
    ) -> Iterator[TopicPartition]:
        for name, numbers in candidates:
            topic = self.topics.get(name)
            partitions = topic.partitions if topic is not None else {}
            for number in numbers:
                if number in partitions and predicate(partitions[number]):
                    yield TopicPartition(name, number)

    @property
    def replica_index(self) -> BrokerReplicaIndex:
        """Return the index as of before the record or later. Partitions that the record touched are checked besides."""
        if self._replica_index is None:
            self._replica_index, self._indexed_amid = BrokerReplicaIndex(self.topics), True
        return self._replica_index

    def put_topic(self, name: str, topic: Topic | None) -> None:
        """Replace a topic, or remove it if it is None."""
        topic_before = self.topics.get(name)
        before, after = topic_before.partitions if topic_before else {}, topic.partitions if topic else {}
        if self.judges_all:
            self._replica_index = None  # because the index follows touched partitions
        else:
            # During a complete read only partitions that are gone are concluded.
            follows = self.header.phase is FOLLOWING
            for number in {**before, **after} if follows else [gone for gone in before if gone not in after]:
                tp = TopicPartition(name, number)
                if tp not in self._touched:
                    self._touched[tp] = (topic_before, before.get(number))
        self._touched_topics.setdefault(name, topic_before)
        self.topics.put(name, topic)

    @property
    def judges_all(self) -> bool:
        """Return whether every partition is judged at the end, touched or not, without publishing their rows."""
        return self.shows_all and not self.shows_partitions

    def put_partition(self, tp: TopicPartition, partition: Partition) -> None:
        """Replace a partition of a known topic."""
        if tp not in self._touched:
            self.touch(tp)
        self.topics.put_partition(tp, partition)

    def touch(self, tp: TopicPartition) -> None:
        """Judge the partition's health once the record is handled, even if the partition itself does not change.

        A complete read postpones this to its end.
        """
        if self.header.phase is FOLLOWING and tp not in self._touched:
            topic = self.topics.get(tp.topic)
            self._touched[tp] = (topic, topic.partitions.get(tp.partition) if topic is not None else None)

    def is_online(self, replica: int, partition: Partition) -> bool:
        """Return whether the replica's broker is live and its log directory works, by the controller's knowledge."""
        return replica in self.live and replica not in partition.offline_dirs

    def offline_replicas(self, partition: Partition) -> tuple[int, ...]:
        """Return the replicas that are not online, as far as the controller knows."""
        if not partition.offline_dirs and self.live.issuperset(partition.replicas):
            return ()
        return tuple([replica for replica in partition.replicas if not self.is_online(replica, partition)])

    @property
    def registered(self) -> tuple[int, ...]:
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
    def live(self) -> frozenset[int]:
        """Return the brokers that are registered and not shutting down (Kafka's `liveBrokerIds`)."""
        brokers, shutting_down = self.header.brokers, self.header.shutdowns.under_way
        if self._live is None or self._live[0] is not brokers or self._live[1] is not shutting_down:
            self._live = (brokers, shutting_down, frozenset(brokers).difference(shutting_down))
        return self._live[2]


def _in_order(tps: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return each partition once, by topic and number. A comparison of whole names takes four times as long."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for tp in tps:
        numbers[tp.topic].add(tp.partition)
    return [TopicPartition(name, number) for name in sorted(numbers) for number in sorted(numbers[name])]
