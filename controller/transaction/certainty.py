"""Certainty of events, with the rules by which their batches and actions become final and are published.

ZooKeeper shows the controller's writes. It shows neither its events nor its requests nor the states in its memory. This
module decides when a planned action has certainly happened. It rests on one fact: **the controller has one thread**. It
handles one event after the other, and one batch of a state machine after the other within an event.

Terms
    An *event* is a queue entry of the controller, as BrokerChange. Its handler runs here as soon as its cause is seen.
    A *batch* is one call of a state machine. An event numbers its batches from 0. Requests have a batch of their own.
    An *action* is a write, a state change, or a partition's entry in a request. Each has its event, its batch and an
    ordinal. A partition queues its actions in the order in which the controller does them.
    A write is *due* until ZooKeeper shows it (`Event.due` counts the due writes of each batch).

Rows
    An action is published as *provisional* when its event begins here. It becomes *final* once it is certain, and
    *withdrawn* if it will not happen. Both are published once, under the effect id of the provisional row.

Rules
    1. **A write is final when ZooKeeper shows it.** The event has then begun (`mark_begun`).
    2. **A begun event is certain up to its first batch with a due write** (`Event.next_batch`). Earlier batches are
       done, because the thread came past them. Later batches wait, although the controller may be there already.
    3. **A partition's queue keeps its order.** A state change is final only at the front of the queue. Behind a due
       write of the same partition it waits, whichever event the write belongs to (`_flush`).
    4. **Requests wait for the whole event.** A batch of requests names many partitions. It is final when no due write
       precedes it. The write may be in its own event (rule 2), or in an older event in the queue of one of its
       partitions (`_certain_batches`).
    5. **An event without due writes leaves no trace.** It is certain when no older event has a due write left, for the
       thread must have come past it (`_begun_now`).
    6. **Time ends waiting.** A due write that later writes have overtaken does not come any more (`has_written_all`).
       An event that a dead controller may never have handled waits until that controller shows a sign of life
       (`await_proof`).
    7. **A lost term ends all.** A controller that resigns has done what is certain. The rest is withdrawn. An
       expired session proves no actions (`conclude_events`).

Doubt
    These rules decide when an action is certain. Other rooms decide whether its event happened. Until then, or until
    the controller resigns, nothing of the event is published (`Event.is_doubtful`):

    - A controlled shutdown may have been requested once, and not again (`UnprovenShutdown`). It waits for a write, or
      for the end of the broker's session. Later events do not wait for it.
    - A TopicChange may not know a broker that registered during the controller's load (`UnknownBroker`). It waits
      until all its writes were seen, even if it has begun. Later events without writes wait too (`Event.holds_back`).
    - A deposed controller may have run up to its first write, or was killed before. `set_aside` takes these actions out
      of the queues, and `events/fenced_controller.py` publishes or withdraws them.

    `Event.held_by` is no doubt. It names the older event of rule 4, so the queues are searched once and not again
    before that event has written all.

A worked example
    Topic t has t-0 on brokers 1 and 2 (leader 1) and t-1 on brokers 2 and 1 (leader 2). Broker 3 is the controller.
    Broker 1 dies, and somebody creates topic u with u-0 on brokers 2 and 3. BrokerChange (B) elects in batch 1 and
    removes broker 1 from ISRs in batch 3. TopicChange (T) writes the first state of u-0 in batch 3.

    | seen in ZooKeeper       | due, by batch          | final now                                            |
    | ----------------------- | ---------------------- | ---------------------------------------------------- |
    | /brokers/ids/1 deleted  | B 0 1 0 1 0            | broker 1 is dead: ZooKeeper shows it. B 0 to 4 wait  |
    | /brokers/topics/u       | B 0 1 0 1 0, T 0001000 | topic u exists. T 0 to 6 wait                        |
    | state of t-0: leader 2  | B 0 0 0 1 0, T 0001000 | B 0 and 1: t-0 was offline, and is online            |
    |                         |                        | B 2: LeaderAndIsr, UpdateMetadata about t-0 (rule 4) |
    | state of t-1: ISR 2     | B 0 0 0 0 0, T 0001000 | B 3: the replicas of t-0 and t-1 on 1 are offline    |
    |                         |                        | B 4: LeaderAndIsr, UpdateMetadata about both. B ends |
    | state of u-0            | T 0000000              | T 0 to 6: u-0 is new, then online, with its replicas |
    |                         |                        | and requests. T ends                                 |

    The replica of t-0 on broker 1 becomes final with t-1's write, not with its own partition's. Nothing is due in t-0
    any more, but batch 3 of B has a due write (rule 2). T waits although no partition has actions of both events. If
    the state of u-0 came first, its own write would prove T at once (rule 1). B would keep waiting.

`tests/controller/test_certainty_example.py` plays this example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from controller.contract.effect_rows import FINAL
from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.event import Batch, Event
from controller.model.leadership import (
    AnyAction,
    AnyEntry,
    AnyUnwritten,
    Done,
    StateChange,
    StateEntry,
    StopEntry,
    Write,
)
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules import timing
from controller.transaction.pending_events import PendingEvents
from controller.transaction.pending_requests import PendingRequests, RequestContents


class SetAside:
    """State changes and entries of requests, by topic and partition, each with the partition's state at that time."""

    __slots__ = ("_numbers", "batches", "by_topic")

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = tuple(batches)
        self._numbers = {batch.at_batch for batch in batches}
        self.by_topic: dict[str, list[Done]] = {}

    def takes(self, entry: AnyEntry) -> bool:
        """Return whether the entry belongs to a batch that is set aside."""
        return entry.at_batch in self._numbers

    def add(self, tp: TopicPartition, action: AnyUnwritten, value: LeaderAndIsr | None) -> None:
        """Add an action of the partition in this state."""
        self.by_topic.setdefault(tp.topic, []).append((tp.partition, action, value))


replace = msgspec.structs.replace


class _Patience(NamedTuple):
    """Limits that decide whether due writes still come, equal for all events of a record. Times are in milliseconds."""

    last_written_event: int
    unfinished_before_ms: int
    overtaken_before_ms: int
    loaded_ms: int

    def is_over(self, event: Event) -> bool:
        seen_ms = max(event.time_ms, event.last_write_ms)
        if event.id >= self.last_written_event:
            return seen_ms < self.unfinished_before_ms
        return max(seen_ms, self.loaded_ms) < self.overtaken_before_ms


class CertaintyRules:
    """Rules of certainty, applied to the events of one transaction."""

    __slots__ = ("_events", "_header", "_requests", "_state")

    def __init__(self, state: MutableState, events: PendingEvents, requests: PendingRequests) -> None:
        self._state = state
        self._header = state.header
        self._events = events
        self._requests = requests

    def publish_certain(self, events: dict[int, Event]) -> None:
        """Publish the parts of these in-flight events that this record made certain."""
        for event_id in self._begun_now(events):
            event, stored = self._events.open_event(event_id), self._header.events.get(event_id)
            event.begun = True
            # Only a finished batch makes actions certain in partitions that were not touched.
            same_batch = stored is not None and stored.begun and event.next_batch == stored.next_batch
            batches = self._certain_batches(event, events)
            if batches or not same_batch:
                self._send(event, batches, self.waiting(event))
            elif changed := [tp for tp in self._state.touched if self._begins_with_certain(tp)]:
                self._send(event, (), changed)

    def _begins_with_certain(self, tp: TopicPartition) -> bool:
        """Return whether a state change that is certain stands first in the partition's queue."""
        partition = self._state.topics.partition(tp)
        first = partition.queue[0] if partition is not None and partition.queue else None
        if first is None or first.writes:
            return False
        event = self._events.open_event(first.event)
        return event.begun and first.at_batch < event.next_batch

    def waiting(self, event: Event) -> list[TopicPartition]:
        """Return the partitions of an event's topics with queued actions."""
        found = ((name, self._state.topics.get(name)) for name in event.topics)
        return [
            TopicPartition(name, number)
            for name, topic in found
            if topic is not None
            for number, partition in topic.partitions.items()
            if partition.queue
        ]

    def actions_of(self, event: Event) -> Iterator[AnyAction]:
        """Yield the queued actions of the event."""
        for tp in self.waiting(event):
            yield from self.actions_at(tp, event)

    def actions_at(self, tp: TopicPartition, event: Event) -> list[AnyAction]:
        """Return the event's queued actions on a partition that waits."""
        queue = self._state.topics[tp.topic].partitions[tp.partition].queue
        return [action for action in queue if action.event == event.id]

    def _certain_batches(self, event: Event, events: Mapping[int, Event]) -> Sequence[Batch]:
        """Return the request batches that no due write precedes, in this event or in an older event.

        If a write came before an older event's write, it is not known yet whether the older event was handled.
        """
        held_by = events.get(event.held_by)
        first_due = event.next_batch if event.writes_due else math.inf
        done = [batch for batch in event.batches if batch.at_batch < first_due]
        if not done or (held_by is not None and held_by.writes_due):
            return ()
        event.held_by = -1
        if not any(other.writes_due for other in events.values()):
            return done  # so no write stands in any queue
        held_from = len(event.due)
        for tp in self.waiting(event):
            older = -1
            for action in self._state.topics[tp.topic].partitions[tp.partition].queue:
                if isinstance(action, Write):
                    older = action.event
                elif (
                    older >= 0
                    and action.event == event.id
                    and action.at_batch < held_from
                    and not isinstance(action, StateChange)
                ):
                    event.held_by, held_from = older, action.at_batch
        return [batch for batch in done if batch.at_batch < held_from]

    def _begun_now(self, events: dict[int, Event]) -> list[int]:
        """Return the events with new certain parts.

        The controller has one thread. An event without writes leaves no trace. It is certain once no write of an older
        event is due any more, or only writes that are overdue and will not come.
        """
        certain, unfinished = [], False
        patience = self._patience()  # once, because thousands of deletions may be in flight
        for event_id, event in events.items():
            if event.detail is not None and event.is_doubtful and (event.holds_back or not event.begun):
                unfinished = unfinished or event.holds_back
                continue
            if event.writes_due:
                if event.begun and event_id in self._events.advanced:
                    certain.append(event_id)
                unfinished = unfinished or not patience.is_over(event)
            elif event.begun or not (unfinished or self._may_never_have_been(event)):
                certain.append(event_id)
            else:
                self._events.open_event(event_id).taken_up = not unfinished
                unfinished = True
        return certain

    def has_written_all(self, event: Event) -> bool:
        """Return whether the event's due writes will not come any more."""
        return self._patience().is_over(event)

    def _patience(self) -> _Patience:
        header = self._header
        return _Patience(
            header.last_written_event,
            header.time_ms - timing.UNFINISHED.of(header.partitions),
            header.time_ms - timing.OVERTAKEN.of(header.partitions),
            header.term.began_ms + header.loaded_within_ms,
        )

    def _may_never_have_been(self, event: Event) -> bool:
        wrote_since = (
            event.id <= self._header.last_written_event or event.time_ms + timing.HEARD.ms < self._header.term.heard_ms
        )
        return event.proven_ms > self._header.time_ms and not wrote_since

    def conclude_events(self, *, expired: bool) -> None:
        """Publish the controller's completed actions when it resigned.

        After its session expired, publish only the proven actions.
        """
        events = {**self._header.events, **self._events.open}
        for event_id in () if expired else list(events):
            events[event_id] = self._events.open_event(event_id)
            events[event_id].proven_ms = 0
            if events[event_id].is_doubtful:
                events[event_id].detail = None
        if events:
            self.publish_certain(events)

    def frozen(self, partition: Partition) -> tuple[AnyAction, ...]:
        """Return the partition's queue, in which entries that were already sent keep their state.

        An entry counts as sent once its event has no due write.
        """
        return tuple(
            replace(action, value=sent_value(partition, action))
            if isinstance(action, StateEntry)
            and action.value is None
            and not self._events.open_event(action.event).writes_due
            else action
            for action in partition.queue
        )

    def make_certain(self, name: str) -> None:
        """Publish all queued actions of a topic as done, because its znodes show a later event."""
        topic = self._state.topics.get(name)
        sent: dict[int, dict[int, None]] = {}  # by event, the batches whose requests contain the topic
        for number, partition in list(topic.partitions.items()) if topic else ():
            tp, value = TopicPartition(name, number), partition.zk_state
            entries: list[AnyAction] = []
            for action in partition.queue:
                if isinstance(action, Write):
                    value = action.apply(value, self._events.open_event(action.event).epoch) or value
                    self._events.settle(action, seen=False)
                elif isinstance(action, StateChange):
                    self._events.publish_state_change(tp, action, FINAL, action.value or value)
                    self._events.open_event(action.event).pending -= 1
                else:
                    sent.setdefault(action.event, {})[action.at_batch] = None
                    entries.append(
                        replace(action, value=action.value or value) if isinstance(action, StateEntry) else action
                    )
            self._state.put_partition(tp, replace(partition, queue=tuple(entries)))
        for event_id, numbers in sorted(sent.items()):
            event = self._events.open_event(event_id)
            batches = [batch for batch in event.batches if batch.at_batch in numbers]
            self._send(event, batches, self.waiting(event))

    def set_aside(self, event: Event) -> SetAside:
        """Take an event's actions before its first due write out of the queues, without a row."""
        event.begun = True
        batches = self._certain_batches(event, {each.id: each for each in self._events.open_events()})
        aside, limits = SetAside(batches), CertainUpTo(self._events.open_event)
        for tp in self.waiting(event):
            self._flush(tp, event, aside, limits, aside.add)
        event.batches = tuple(batch for batch in event.batches if batch not in batches)
        event.pending -= len(batches)
        return aside

    def _send(self, event: Event, batches: Sequence[Batch], tps: Iterable[TopicPartition]) -> None:
        """Publish the certain actions of partitions that wait for an event, and these batches of its requests."""
        contents, limits = RequestContents(batches, self._header.profile), CertainUpTo(self._events.open_event)
        publish = self._events.publisher_of(event, FINAL)
        for tp in tps:
            self._flush(tp, event, contents, limits, publish)
        if batches:
            self._requests.publish_sent(event, batches, contents)
            event.batches = tuple(batch for batch in event.batches if batch not in batches)
            event.pending -= len(batches)

    def _flush(
        self,
        tp: TopicPartition,
        event: Event,
        contents: RequestContents | SetAside,
        limits: CertainUpTo,
        publish: Callable[[TopicPartition, StateChange, LeaderAndIsr | None], None],
    ) -> None:
        """Publish certain state changes at the front of the partition's queue, and move its entries into requests."""
        partition = self._state.topics.partition(tp)
        assert partition is not None, f"{tp} waits, and is not there"
        kept: list[AnyAction] = []
        own, limit, is_front, published = event.id, limits[event.id], True, 0
        for action in partition.queue:
            is_own = action.event == own
            if is_front and (action.writes or action.at_batch >= (limit if is_own else limits[action.event])):
                is_front = False
            if isinstance(action, StateChange):
                if is_front:
                    value = action.value or partition.zk_state
                    if is_own:
                        publish(tp, action, value)
                        published += 1
                    else:
                        self._events.publish_state_change(tp, action, FINAL, value)
                        self._events.open_event(action.event).pending -= 1
                    continue
            elif is_own and isinstance(action, (StateEntry, StopEntry)) and contents.takes(action):
                contents.add(tp, action, sent_value(partition, action))
                published += 1
                continue
            kept.append(action)
        event.pending -= published
        if len(kept) < len(partition.queue):
            self._state.put_partition(tp, replace(partition, queue=tuple(kept)))


class CertainUpTo(dict[int, int]):
    """First batch of each event whose actions are not certain, valid until a write is seen or becomes due."""

    def __init__(self, event_of: Callable[[int], Event]) -> None:
        super().__init__()
        self._event_of = event_of

    def __missing__(self, event_id: int) -> int:
        event = self._event_of(event_id)
        limit = self[event_id] = event.next_batch if event.begun else 0
        return limit


def sent_value(partition: Partition, entry: AnyEntry) -> LeaderAndIsr | None:
    """Return the state that an entry is sent with, or None for a StopReplica.

    It is ZooKeeper's state, or the controller's cached state until it reads the state again.
    """
    if not isinstance(entry, StateEntry):
        return None
    if entry.value is None and not entry.read and partition.cached is not None:
        return partition.cached
    return entry.value or partition.zk_state
