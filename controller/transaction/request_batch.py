"""The requests that one pass of the controller sends, gathered and then sent together.

Here belongs what Kafka's `AbstractControllerBrokerRequestBatch` does: who receives what, that a later entry for the
same broker and partition replaces an earlier one while `is_new` sticks, the order LeaderAndIsr, UpdateMetadata,
StopReplica, and which entries travel in one request. What must be said is decided by the machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from controller.contract.effect_rows import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from controller.model.event import Sending
from controller.model.leadership import EPOCH_DURING_DELETE, NO_EPOCH, AnyEntry, StateEntry, StopEntry
from controller.model.topics import Partition, TopicPartition
from controller.transaction.pending_requests import PendingRequests


class RequestBatch:
    """What one pass of a state machine must send."""

    __slots__ = ("_entries", "_leader_and_isr", "_read", "_stop_replica", "_tx", "_update_metadata")

    def __init__(self, tx: PendingRequests) -> None:
        self._tx = tx
        self._leader_and_isr: defaultdict[TopicPartition, dict[int, bool]] = defaultdict(dict)
        self._read: set[TopicPartition] = set()
        self._update_metadata: dict[TopicPartition, None] = {}
        self._stop_replica: defaultdict[int, dict[TopicPartition, tuple[bool, int]]] = defaultdict(dict)
        self._entries: defaultdict[TopicPartition, list[AnyEntry]] = defaultdict(list)

    def leader_and_isr(self, brokers: Iterable[int], tp: TopicPartition, *, is_new: bool, read: bool = False) -> None:
        """Tell brokers who leads the partition (`read`: the controller has just read it); all learn it by metadata."""
        if read:
            self._read.add(tp)
        for broker in brokers:
            if self._is_told(broker):
                told = self._leader_and_isr[tp]
                told[broker] = is_new or told.get(broker, False)
        self.update_metadata(tp)

    def _is_told(self, broker: int) -> bool:
        header = self._tx.header
        return broker in header.brokers or not header.profile.sends_to_live_brokers_only

    def update_metadata(self, tp: TopicPartition) -> None:
        """Tell every broker of the partition."""
        self._update_metadata[tp] = None

    def stop_replica(self, broker: int, tp: TopicPartition, *, delete: bool) -> None:
        """Tell a broker to stop its replica, and to delete it or not."""
        if self._is_told(broker):
            told = self._stop_replica[broker]
            epoch = self._leader_epoch(tp)
            told[tp] = (delete or told.get(tp, (False, 0))[0], epoch)

    def _leader_epoch(self, tp: TopicPartition) -> int:
        topic, partition = self._tx.topic(tp.topic), self._tx.partition(tp)
        if topic is not None and topic.queued_for_deletion:
            return EPOCH_DURING_DELETE
        value = partition.value(self._tx.header.controller_epoch) if partition is not None else None
        return NO_EPOCH if value is None else value.leader_epoch

    def send(self) -> None:
        """Put the requests behind the writes of this pass."""
        if not (self._leader_and_isr or self._update_metadata or self._stop_replica):
            return
        tx = self._tx
        tx.begin_batch()
        known = {tp: partition for tp in self._update_metadata if (partition := self._known(tp)) is not None}
        requests = [*self._leader_and_isrs(known), *self._metadata(known), *self._stop_replicas()]
        for tp, entries in self._entries.items():
            tx.queue(tp, tx.topics[tp.topic].partitions[tp.partition], *entries)
        tx.await_sending(requests)

    def _leader_and_isrs(self, known: Collection[TopicPartition]) -> Iterator[Sending]:
        told: defaultdict[int, int] = defaultdict(int)
        for tp, brokers in self._leader_and_isr.items():
            for broker in brokers if tp in known else ():
                told[broker] += 1
        for broker, count in sorted(told.items()):
            yield Sending(self._tx.place()[-1], LEADER_AND_ISR, (broker,), count)

    def _metadata(self, known: Mapping[TopicPartition, Partition]) -> Iterator[Sending]:
        tx = self._tx
        if not self._update_metadata:
            return
        place = tx.place()
        for tp, partition in known.items():
            told = self._leader_and_isr.get(tp, {})
            entry = StateEntry(
                *place,
                partition.replicas,
                tp in self._read,
                tuple(told),
                tuple([broker for broker, is_new in told.items() if is_new]),
                partition.adding,
                partition.removing,
                tx.offline_replicas(partition),
                tx.topics[tp.topic].queued_for_deletion,
            )
            self._entries[tp].append(entry)
        if tx.registered:
            yield Sending(place[-1], UPDATE_METADATA, tx.registered, len(known))

    def _stop_replicas(self) -> Iterator[Sending]:
        for broker, told in sorted(self._stop_replica.items()):
            known = {tp: stop for tp, stop in told.items() if self._tx.partition(tp) is not None}
            for together in self._travelling_together(known):
                place = self._tx.place()
                for tp in together:
                    self._entries[tp].append(StopEntry(*place, broker, *known[tp]))
                deletes = known[together[0]][0] and not self._tx.header.profile.flags_each_stopped_replica
                yield Sending(place[-1], STOP_REPLICA, (broker,), len(together), deletes)

    def _travelling_together(self, told: dict[TopicPartition, tuple[bool, int]]) -> Iterator[list[TopicPartition]]:
        """The replicas that a broker is told to stop, by request."""
        profile = self._tx.header.profile
        if profile.flags_each_stopped_replica:
            groups = [list(told)]
        elif profile.groups_stopped_replicas:
            groups = [[tp for tp, (delete, _) in told.items() if delete is deleted] for deleted in (True, False)]
        else:
            groups = [[tp] for tp in told]
        yield from filter(None, groups)

    def _known(self, tp: TopicPartition) -> Partition | None:
        partition = self._tx.partition(tp)
        return partition if partition is not None and partition.has_value else None
