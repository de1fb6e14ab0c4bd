"""A context being changed by one step: its topics, its partitions, what was touched of them, and the rows so far.

Here belong the few ways in which a step may change a context, so that nothing that is touched goes unjudged. Events
are in `events`; what is published of all this is decided in `turn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from controller.contract.records import Record
from controller.contract.row import Row, Stamp
from controller.model import clock
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.brokers import Broker
from controller.model.context import FOLLOWING, Context, Header
from controller.model.topics import InTopic, Partition, Topic, TopicPartition


class MutableState:
    """A step's private copy of the context, and the rows that it publishes."""

    __slots__ = (
        "_epochs",
        "_first",
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
        "topics",
    )

    def __init__(self, context: Context, record: Record) -> None:
        self.effects: list[Row] = []
        self._first = 0  # the first effect of the record that is taken up
        self.header: Header = context.header.copy()
        self.header.tally.happened = context.header.tally.happened.copy()
        self.topics = context.topics.draft()
        self.take_up(record)
        self.shows_all = False  # give each partition's row, changed or not
        self.shows_gauges = False  # give the cluster's counts, as at each heartbeat
        self._judged_brokers = context.header.brokers
        self._registered: tuple[dict[int, Broker], tuple[int, ...]] | None = None
        self._epochs: tuple[dict[int, Broker], tuple[int, ...]] | None = None
        self._live: tuple[dict[int, Broker], tuple[int, ...], frozenset[int]] | None = None
        known = context.replica_index
        self._replica_index = known if known is not None and known.topics is context.topics else None
        self._touched: dict[TopicPartition, InTopic] = {}
        self._touched_topics: dict[str, Topic | None] = {}

    def take_up(self, record: Record) -> None:
        """Go on with this record."""
        header = self.header
        self.clock_set_by_ms = clock.advance(header, record)
        header.position = record.position
        if record.zxid > header.zxid:
            header.zxid = record.zxid
        self.record = record

    def stamp(self) -> Stamp:
        """The fields that every row of this step has, in their order."""
        record = self.record
        ordinal = len(self.effects) - self._first
        return record.cluster, record.generation, record.seq, ordinal, record.zxid, record.observed_ms

    def publish_behind(self, ordinal: int) -> None:
        """Give the rows of this record ordinals from this one on."""
        self._first = len(self.effects) - ordinal

    def count(self, key: str, by: int = 1) -> None:
        """Count something that happened."""
        self.header.tally.happened[key] = self.header.tally.happened.get(key, 0) + by

    def topic(self, name: str) -> Topic | None:
        """The topic as it is in this step, None if unknown."""
        return self.topics.get(name)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """The partition as it is in this step, None if unknown."""
        return self.topics.partition(tp)

    def hosted_by(self, broker: int) -> list[TopicPartition]:
        """The partitions with a replica on the broker, in order."""
        return self._found(lambda partition: broker in partition.replicas, self.replica_index.hosted_by(broker))

    def unsettled(self, such: Callable[[Partition], bool]) -> list[TopicPartition]:
        """The partitions that are such, in order; to ask for what no settled partition is."""
        return self._found(such, self.replica_index.unsettled.items())

    def unled(self, such: Callable[[Partition], bool]) -> list[TopicPartition]:
        """The partitions that are such, in order; to ask for what no settled partition is that a live broker leads."""
        live = self.live
        away = (self.replica_index.hosted_by(host) for host in self.replica_index.hosts if host not in live)
        return self._found(such, chain(self.replica_index.unsettled.items(), *away))

    def _found(
        self, such: Callable[[Partition], bool], candidates: Iterable[tuple[str, Iterable[int]]]
    ) -> list[TopicPartition]:
        found = {tp for tp in self._touched if (partition := self.partition(tp)) is not None and such(partition)}
        for name, numbers in candidates:
            topic = self.topics.get(name)
            partitions = topic.partitions if topic is not None else {}
            found.update(TopicPartition(name, at) for at in numbers if at in partitions and such(partitions[at]))
        return sorted(found)

    @property
    def replica_index(self) -> BrokerReplicaIndex:
        """Where to look, as of before the record or later; what the record touched is looked at besides."""
        if self._replica_index is None:
            self._replica_index = BrokerReplicaIndex(self.topics)
        return self._replica_index

    def put_topic(self, name: str, topic: Topic | None) -> None:
        """Replace a topic; None removes it."""
        known = self.topics.get(name)
        before, after = known.partitions if known else {}, topic.partitions if topic else {}
        # During a complete read, something is concluded only of what is gone.
        follows = self.header.phase is FOLLOWING
        for number in {**before, **after} if follows else [gone for gone in before if gone not in after]:
            tp = TopicPartition(name, number)
            if tp not in self._touched:
                self._touched[tp] = (known, before.get(number))
        self._touched_topics.setdefault(name, known)
        self.topics.put(name, topic)

    def put_partition(self, tp: TopicPartition, partition: Partition) -> None:
        """Replace a partition of a known topic."""
        self.touch(tp)
        self.topics.own(tp.topic).partitions[tp.partition] = partition

    def touch(self, tp: TopicPartition) -> None:
        """Judge the partition's health once the record is handled, though nothing of its own may change.

        During a complete read nothing is concluded of it before the end.
        """
        if self.header.phase is FOLLOWING and tp not in self._touched:
            topic = self.topics.get(tp.topic)
            self._touched[tp] = (topic, topic.partitions.get(tp.partition) if topic is not None else None)

    def is_online(self, replica: int, partition: Partition) -> bool:
        """Whether the replica's broker is live and its log directory works, as far as the controller knows."""
        return replica in self.live and replica not in partition.offline_dirs

    def offline_replicas(self, partition: Partition) -> tuple[int, ...]:
        """The replicas that are not online as far as the controller knows."""
        if not partition.offline_dirs and self.live.issuperset(partition.replicas):
            return ()
        return tuple([replica for replica in partition.replicas if not self.is_online(replica, partition)])

    @property
    def registered(self) -> tuple[int, ...]:
        """The registered brokers, in order."""
        brokers = self.header.brokers
        if self._registered is None or self._registered[0] is not brokers:
            self._registered = (brokers, tuple(sorted(brokers)))
        return self._registered[1]

    @property
    def broker_epochs(self) -> tuple[int, ...]:
        """The epochs of the registered brokers, in the brokers' order."""
        brokers = self.header.brokers
        if self._epochs is None or self._epochs[0] is not brokers:
            self._epochs = (brokers, tuple([brokers[broker].epoch for broker in self.registered]))
        return self._epochs[1]

    @property
    def live(self) -> frozenset[int]:
        """The brokers that are registered and not shutting down."""
        brokers, shutting_down = self.header.brokers, self.header.shutdowns.under_way
        if self._live is None or self._live[0] is not brokers or self._live[1] is not shutting_down:
            self._live = (brokers, shutting_down, frozenset(brokers).difference(shutting_down))
        return self._live[2]
