"""Requests of in-flight events, which wait for certainty, and their rows. A large request has several rows.

`transaction` gathers the requests of a batch, and `certainty` decides when they are certain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from controller.contract.effect_rows import (
    FINAL,
    LEADER_AND_ISR,
    PROVISIONAL,
    STOP_REPLICA,
    UPDATE_METADATA,
    WITHDRAWN,
    Request,
    RequestedState,
    Status,
)
from controller.contract.ids import BrokerEpoch, BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.event import Batch, Event, EventKind, Sending
from controller.model.leadership import AnyEntry, StopEntry
from controller.model.mutable_state import MutableState
from controller.model.published_rows import PublishedRows
from controller.rules.releases import Profile
from controller.transaction.pending_events import PendingEvents
from controller.view.rows import led_state, metadata_state, stop_state

replace = msgspec.structs.replace

# A message of Kafka's default size (1 MB) holds a row with partition states up to this size, by an upper bound.
_PART_BYTES: Final = 700_000
_STATE_BYTES: Final = 350  # the names of a state's fields and its numbers
_ID_BYTES: Final = 11  # a broker's id and a comma
SURELY_ONE_PART: Final = 100


class RequestContents:
    """Partition states in requests, gathered from the partitions' queues."""

    __slots__ = ("_by_broker", "_longest_name", "_most_ids", "_profile", "_states")

    def __init__(self, batches: Iterable[Batch], profile: Profile) -> None:
        self._profile = profile
        self._longest_name, self._most_ids = 0, 0  # of its states, to bound their size
        self._states: dict[int, list[RequestedState]] = {}  # by the request's ordinal
        self._by_broker: dict[int, dict[BrokerId, list[RequestedState]]] = {}  # of LeaderAndIsr, by batch
        for batch in batches:
            in_batch = self._by_broker[batch.at_batch] = {}
            for request in batch.requests:
                states = self._states[request.ordinal] = []
                if request.api == LEADER_AND_ISR:
                    in_batch[request.brokers[0]] = states

    def __getitem__(self, ordinal: int) -> list[RequestedState]:
        return self._states[ordinal]

    def parts(self, ordinal: int) -> list[tuple[RequestedState, ...]]:
        """Split a request's states by the size of a row. The states stay together unless there are very many."""
        states = self._states[ordinal]
        if len(states) <= SURELY_ONE_PART:
            return [tuple(states)]
        size = max(1, _PART_BYTES // (_STATE_BYTES + 2 * self._longest_name + 2 * _ID_BYTES * self._most_ids))
        return [tuple(states[begin : begin + size]) for begin in range(0, len(states), size)]

    def takes(self, entry: AnyEntry) -> bool:
        """Return whether the entry, of the same event, belongs to one of these requests."""
        return entry.at_batch in self._by_broker

    def add(self, tp: TopicPartition, entry: AnyEntry, value: LeaderAndIsr | None) -> None:
        """Add the partition's state to the requests that have this entry."""
        profile = self._profile
        if len(tp.topic) > self._longest_name:
            self._longest_name = len(tp.topic)
        if isinstance(entry, StopEntry):
            self._states[entry.ordinal].append(stop_state(tp, entry, profile))
            return
        ids = len(entry.replicas) + (0 if value is None else len(value.isr))
        if ids > self._most_ids:
            self._most_ids = ids
        if entry.brokers:
            led, in_batch = led_state(tp, entry, value, profile), self._by_broker[entry.at_batch]
            new = profile.sends_new_and_offline_replicas and entry.new_on
            for broker in entry.brokers:
                in_batch[broker].append(replace(led, is_new=True) if new and broker in new else led)
        if entry.in_metadata and entry.ordinal in self._states:
            offline = entry.offline if profile.sends_new_and_offline_replicas else ()
            state = metadata_state(tp, entry.replicas, offline, value, deleted=entry.deleted)
            self._states[entry.ordinal].append(state)


class PendingRequests:
    """Requests that the events of a transaction wait to send."""

    __slots__ = ("_events", "_expected", "_header", "_rows", "_state")

    def __init__(self, state: MutableState, rows: PublishedRows, events: PendingEvents) -> None:
        self._state = state
        self._header = state.header
        self._rows = rows
        self._events = events
        # Expected contents of the requests of events that began in this transaction.
        self._expected: dict[int, RequestContents] = {}

    def broadcast(self, brokers: Sequence[BrokerId], *, of_all: bool = False) -> None:
        """Send brokers an UpdateMetadata with the live brokers, and all partitions or no partition.

        The request follows the writes so far.
        """
        if brokers:
            self._events.begin_batch()
            _, _, ordinal = self._events.place()
            of_all = of_all or not self._header.profile.spares_known_metadata
            self.await_sending([Sending(ordinal, UPDATE_METADATA, tuple(brokers), None if of_all else 0)])

    def await_sending(self, requests: Sequence[Sending]) -> None:
        """Queue the requests of the current event's newest batch. Their entries are in partitions' queues already."""
        assert self._events.event is not None, "a request outside of an event"
        if requests:
            epochs = self._state.broker_epochs if self._header.profile.sends_broker_epochs else ()
            self._events.event.batches += (
                Batch(len(self._events.event.due) - 1, tuple(requests), self._state.registered, epochs),
            )
            self._events.event.pending += 1

    def publish_update_metadata(self, kind: EventKind, cause: str, tps: Sequence[TopicPartition]) -> None:
        """Publish an event that only sends UpdateMetadata of these partitions, which all have a value.

        The event is certain at once, because no other is in flight. Every ISR change takes this way, so the row is made
        without the bookkeeping of requests that wait.
        """
        event = self._events.next_event(kind, cause)
        if not self._rows.shown.steps:
            return
        state, profile = self._state, self._header.profile
        brokers, topic_ids, shown = state.registered, {}, []
        for tp in tps:
            topic = state.topics[tp.topic]
            partition = topic.partitions[tp.partition]
            offline, deleted = state.offline_replicas(partition), topic.queued_for_deletion
            shown.append(metadata_state(tp, partition.replicas, offline, partition.zk_state, deleted=deleted))
            if profile.sends_topic_ids and topic.topic_id:
                topic_ids[tp.topic] = topic.topic_id
        self._rows.effects.append(
            Request(
                *self._events.effect_stamp(event, 0, FINAL),
                event.controller,
                UPDATE_METADATA,
                brokers,
                state.broker_epochs if profile.sends_broker_epochs else (),
                1,
                1,
                (),
                brokers,
                False,
                False,
                topic_ids,
                tuple(shown),
            )
        )

    def undo(self, event_id: int) -> None:
        """Take back an event that has not begun, with its planned actions and requests."""
        event = self._events.open_event(event_id)
        for name in list(event.topics):
            topic = self._state.topics.get(name)
            for number, partition in list(topic.partitions.items()) if topic else ():
                if partition.queue:
                    self._events.undo_in(TopicPartition(name, number), event_id)
        self.withdraw_requests(event)

    def withdraw_requests(self, event: Event) -> None:
        """Withdraw the event's unsent requests. The event is an open one, or another copy."""
        for batch in event.batches if event.id not in self._events.fresh else ():
            for request in batch.requests:
                self._publish_request(event, batch, request, WITHDRAWN, [()])
        event.pending -= len(event.batches)
        event.batches = ()

    def spare(self, event_id: int, brokers: Collection[BrokerId]) -> None:
        """Withdraw the event's requests to these brokers, because no partition's queue has their entries any more."""
        event, kept = self._events.open_event(event_id), []
        for batch in event.batches:
            gone = [request for request in batch.requests if not set(request.brokers).difference(brokers)]
            for request in gone:
                self._publish_request(event, batch, request, WITHDRAWN, [()])
            left = [request for request in batch.requests if request not in gone]
            others = tuple([replace(request, brokers=_without(request.brokers, brokers)) for request in left])
            live = _without(batch.live_brokers, brokers)
            kept.append(Batch(batch.at_batch, others, live, _epochs(live, batch)))
        event.batches = tuple(kept)

    def expect(self, tp: TopicPartition, entry: AnyEntry, value: LeaderAndIsr | None) -> None:
        """Add an entry to the expected contents of an event that began in this transaction."""
        contents = self._expected.get(entry.event)
        if contents is None:
            contents = self._expected[entry.event] = RequestContents(
                self._events.open[entry.event].batches, self._header.profile
            )
        contents.add(tp, entry, value)

    def publish_expected_requests(self) -> None:
        """Publish the expected requests of events that began in this transaction, without those that became empty."""
        for event_id in sorted(self._events.fresh):
            event = self._events.open[event_id]
            contents = self._expected.get(event_id) or RequestContents(event.batches, self._header.profile)
            batches = []
            for batch in event.batches:
                left = tuple([each for each in batch.requests if contents[each.ordinal] or not each.partitions])
                for request in left:
                    self._publish_request(event, batch, request, PROVISIONAL, contents.parts(request.ordinal))
                batches.append(replace(batch, requests=left))
            event.batches = tuple(batches)
        self._expected.clear()

    def publish_sent(self, event: Event, batches: Iterable[Batch], contents: RequestContents) -> None:
        """Publish certain requests with their contents. A request that has lost all its partitions was not sent."""
        for batch in batches:
            for request in batch.requests:
                if contents[request.ordinal] or not request.partitions:
                    self._publish_request(event, batch, request, FINAL, contents.parts(request.ordinal))
                elif event.id not in self._events.fresh:
                    self._publish_request(event, batch, request, WITHDRAWN, [()])

    def _publish_request(
        self, event: Event, batch: Batch, request: Sending, status: Status, parts: Sequence[tuple[RequestedState, ...]]
    ) -> None:
        if not self._rows.shown.steps:
            return
        by_leader = request.api == LEADER_AND_ISR
        leaders = {state.leader for part in parts for state in part} if by_leader else ()
        for number, part in enumerate(parts, start=1):
            self._events.append_effect(
                event,
                Request(
                    *self._events.effect_stamp(event, request.ordinal, status),
                    event.controller,
                    request.api,
                    request.brokers,
                    _epochs(request.brokers, batch),
                    number,
                    len(parts),
                    tuple([broker for broker in batch.live_brokers if broker in leaders]) if by_leader else (),
                    batch.live_brokers if request.api == UPDATE_METADATA else (),
                    request.partitions is None,
                    request.deletes,
                    {} if request.api == STOP_REPLICA else self._topic_ids(part),
                    part,
                ),
            )

    def _topic_ids(self, states: Sequence[RequestedState]) -> dict[str, str]:
        if not self._header.profile.sends_topic_ids:
            return {}
        topics = ((name, self._state.topics.get(name)) for name in dict.fromkeys([state.topic for state in states]))
        return {name: topic.topic_id for name, topic in topics if topic is not None and topic.topic_id}


def _without(receivers: tuple[BrokerId, ...], brokers: Collection[BrokerId]) -> tuple[BrokerId, ...]:
    return tuple([broker for broker in receivers if broker not in brokers])


def _epochs(brokers: tuple[BrokerId, ...], batch: Batch) -> tuple[BrokerEpoch, ...]:
    if brokers == batch.live_brokers or not batch.broker_epochs:
        return batch.broker_epochs
    return tuple([batch.broker_epochs[batch.live_brokers.index(broker)] for broker in brokers])
