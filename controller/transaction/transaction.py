"""Transaction, with its parts, trials of another explanation, and batches of requests.

The machines and event handlers that are given a transaction, or a part of it, decide on the changes. `conclusion`
publishes, judges and counts the changes.

A state machine gathers the requests of one batch and then sends them together. As in Kafka's
`AbstractControllerBrokerRequestBatch`, a later entry for the same broker and partition replaces an earlier one while
`is_new` sticks, and the order is LeaderAndIsr, UpdateMetadata, StopReplica.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from controller.contract.effect_rows import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from controller.contract.ids import BrokerId, LeaderEpoch, TopicPartition
from controller.contract.records import Record
from controller.model.context import Context
from controller.model.event import EventKind, Sending
from controller.model.leadership import EPOCH_DURING_DELETE, NO_EPOCH, StateEntry, StopEntry
from controller.model.mutable_state import MutableState
from controller.model.published_rows import EVERY_CHANGE, PublishedRows, RowKinds
from controller.model.topics import Partition
from controller.transaction.certainty import CertaintyRules
from controller.transaction.pending_events import PendingEvents
from controller.transaction.pending_requests import SURELY_ONE_PART, PendingRequests


class Transaction:
    """One step in progress, with the state, the rows so far, the events in flight, their requests, their certainty."""

    __slots__ = ("certainty", "events", "header", "requests", "rows", "state")

    def __init__(self, context: Context, record: Record, shown: RowKinds = EVERY_CHANGE) -> None:
        state, rows = MutableState(context, record, concludes_all=shown.unchanged), PublishedRows(record, shown)
        self._compose(state, rows, PendingEvents(state, rows))

    def _compose(self, state: MutableState, rows: PublishedRows, events: PendingEvents) -> None:
        self.state, self.header, self.rows, self.events = state, state.header, rows, events
        self.requests = PendingRequests(state, rows, events)
        self.certainty = CertaintyRules(state, events, self.requests)

    def fork(self) -> Transaction:
        """Return a trial copy of this transaction, whose changes do not affect this one."""
        trial = Transaction.__new__(Transaction)
        state, rows = self.state.fork(), self.rows.fork()
        trial._compose(state, rows, self.events.fork(state, rows))
        return trial

    def adopt(self, trial: Transaction) -> None:
        """Take over the changes of a trial. Every part stays the same object, because handlers refer to it."""
        self.state.adopt(trial.state)
        self.rows.effects = trial.rows.effects
        self.events.adopt(trial.events)


class Receivers(NamedTuple):
    """Receivers of a partition's state in LeaderAndIsr, and the receivers whose replica is new."""

    brokers: tuple[BrokerId, ...] = ()
    new_on: tuple[BrokerId, ...] = ()

    def joined_by(self, more: Receivers) -> Receivers:
        """Return all receivers of both. A replica that is new to one stays new."""
        if not self.brokers:
            return more
        brokers = tuple(dict.fromkeys(self.brokers + more.brokers))
        return Receivers(brokers, tuple([at for at in brokers if at in self.new_on or at in more.new_on]))


_NOBODY: Final = Receivers()


class RequestBatch:
    """Requests of one batch of a state machine."""

    __slots__ = ("_events", "_leader_and_isr", "_read", "_requests", "_state", "_stop_replica", "_update_metadata")

    def __init__(self, tx: Transaction) -> None:
        self._state, self._events, self._requests = tx.state, tx.events, tx.requests
        self._leader_and_isr: dict[TopicPartition, Receivers] = {}
        self._read: set[TopicPartition] = set()
        self._update_metadata: dict[TopicPartition, None] = {}
        self._stop_replica: defaultdict[BrokerId, dict[TopicPartition, tuple[bool, LeaderEpoch]]] = defaultdict(dict)

    def leader_and_isr(
        self, brokers: Collection[BrokerId], tp: TopicPartition, *, is_new: bool, read: bool = False
    ) -> None:
        """Add the partition to the brokers' LeaderAndIsr (`read`: its state was just read), and to UpdateMetadata."""
        if read:
            self._read.add(tp)
        self.send_state(tp, self.receivers(brokers, is_new=is_new))

    def receivers(self, brokers: Collection[BrokerId], *, is_new: bool) -> Receivers:
        """Return the receivers among these brokers, each once. An assignment edited by hand may name a broker twice."""
        header = self._state.header
        live = header.brokers if header.profile.sends_to_live_brokers_only else brokers
        receivers = tuple(dict.fromkeys([broker for broker in brokers if broker in live]))
        return Receivers(receivers, receivers if is_new else ())

    def send_state(self, tp: TopicPartition, receivers: Receivers) -> None:
        """Add the partition to these receivers' LeaderAndIsr, and to UpdateMetadata."""
        self._leader_and_isr[tp] = self._leader_and_isr.get(tp, _NOBODY).joined_by(receivers)
        self._update_metadata[tp] = None

    def _receives(self, broker: BrokerId) -> bool:
        header = self._state.header
        return broker in header.brokers or not header.profile.sends_to_live_brokers_only

    def update_metadata(self, tp: TopicPartition) -> None:
        """Add the partition to UpdateMetadata, which goes to every broker."""
        self._update_metadata[tp] = None

    def stop_replica(self, broker: BrokerId, tp: TopicPartition, *, delete: bool) -> None:
        """Add the replica to the broker's StopReplica. `delete` is whether the broker deletes it."""
        if self._receives(broker):
            stopped = self._stop_replica[broker]
            epoch = self._leader_epoch(tp)
            stopped[tp] = (delete or stopped.get(tp, (False, 0))[0], epoch)

    def _leader_epoch(self, tp: TopicPartition) -> LeaderEpoch:
        topic, partition = self._state.topic(tp.topic), self._state.partition(tp)
        if topic is not None and topic.queued_for_deletion:
            return EPOCH_DURING_DELETE
        value = partition.value(self._state.header.controller_epoch) if partition is not None else None
        return NO_EPOCH if value is None else value.leader_epoch

    def send(self) -> None:
        """Queue the requests, and the partitions' entries in them, after the writes of this batch."""
        if not (self._leader_and_isr or self._update_metadata or self._stop_replica):
            return
        self._events.begin_batch()
        partitions = {tp: found for tp in self._update_metadata if (found := self._with_state(tp)) is not None}
        sendings = [*self._leader_and_isrs(partitions), *self._metadata(partitions), *self._stop_replicas()]
        self._requests.await_sending(sendings)

    def _leader_and_isrs(self, partitions: Collection[TopicPartition]) -> Iterator[Sending]:
        receivers = (sent.brokers for tp, sent in self._leader_and_isr.items() if tp in partitions)
        counts = Counter(chain.from_iterable(receivers))
        for broker, count in sorted(counts.items()):
            yield Sending(self._events.place()[-1], LEADER_AND_ISR, (broker,), count)

    def _metadata(self, partitions: Mapping[TopicPartition, Partition]) -> Iterator[Sending]:
        if not self._update_metadata:
            return
        state, place = self._state, self._events.place()
        name, deleted = "", False
        for tp, partition in partitions.items():
            receivers, new_on = self._leader_and_isr.get(tp, _NOBODY)
            if tp.topic != name:
                name, deleted = tp.topic, state.topics[tp.topic].queued_for_deletion
            entry = StateEntry(
                *place,
                partition.replicas,
                tp in self._read,
                receivers,
                new_on,
                partition.adding,
                partition.removing,
                state.offline_replicas(partition),
                deleted,
            )
            self._events.queue_unwritten(tp, partition, (entry,))
        if state.registered:
            yield Sending(place[-1], UPDATE_METADATA, state.registered, len(partitions))

    def _stop_replicas(self) -> Iterator[Sending]:
        for broker, stopped in sorted(self._stop_replica.items()):
            existing = {tp: stop for tp, stop in stopped.items() if self._state.partition(tp) is not None}
            for together in self._by_request(existing):
                place = self._events.place()
                for tp in together:
                    entry = StopEntry(*place, broker, *existing[tp])
                    self._events.queue(tp, self._state.topics[tp.topic].partitions[tp.partition], entry)
                deletes = existing[together[0]][0] and not self._state.header.profile.flags_each_stopped_replica
                yield Sending(place[-1], STOP_REPLICA, (broker,), len(together), deletes)

    def _by_request(self, stopped: dict[TopicPartition, tuple[bool, LeaderEpoch]]) -> Iterator[list[TopicPartition]]:
        """Group the replicas that a broker must stop by StopReplica request."""
        profile = self._state.header.profile
        if profile.flags_each_stopped_replica:
            groups = [list(stopped)]
        elif profile.groups_stopped_replicas:
            groups = [[tp for tp, (delete, _) in stopped.items() if delete is deleted] for deleted in (True, False)]
        else:
            groups = [[tp] for tp in stopped]
        yield from filter(None, groups)

    def _with_state(self, tp: TopicPartition) -> Partition | None:
        partition = self._state.partition(tp)
        return partition if partition is not None and partition.has_value else None


def send_update_metadata(tx: Transaction, kind: EventKind, cause: str, tps: Sequence[TopicPartition]) -> None:
    """Begin an event that only sends UpdateMetadata of these partitions.

    If no other event is in flight, it is certain at once. Many partitions go through a batch, which splits its rows.
    """
    if tx.events.is_idle and len(tps) <= SURELY_ONE_PART:
        tx.requests.publish_update_metadata(kind, cause, tps)
    else:
        tx.events.begin(kind, cause)
        batch = RequestBatch(tx)
        for tp in tps:
            batch.update_metadata(tp)
        batch.send()
