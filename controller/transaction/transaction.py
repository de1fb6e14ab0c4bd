"""Transaction: a context while records change it, and its end, which publishes, judges and counts every change.

Every change passes through here, so that no row, count or alert can be forgotten. The machines and event handlers that
are given a transaction decide what changes and why.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from controller.alerts import lifecycle
from controller.contract.effect_rows import FINAL, PROVISIONAL
from controller.contract.records import Record
from controller.contract.row import Row
from controller.derived.gauges import GaugeCounts, count_gauges, gauges_row
from controller.derived.health import judged, reason_for
from controller.derived.partition_issues import PartitionIssueIndex, index_issues
from controller.derived.rows import partition_row
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.brokers import NO_BROKER
from controller.model.context import FOLLOWING, Context
from controller.model.event import Batch, Event, EventKind
from controller.model.leadership import AnyAction, AnyEntry, LeaderAndIsr, StateChange, StateEntry, StopEntry, Write
from controller.model.mutable_state import MutableState
from controller.model.tally import CountingRules
from controller.model.topics import InTopic, Partition, Topic, TopicPartition, Topics
from controller.model.wall_clock import shown
from controller.transaction.pending_events import PendingEvents
from controller.transaction.pending_requests import PendingRequests, RequestContents
from controller.transaction.request_batch import RequestBatch

replace = msgspec.structs.replace

# Within this an active controller has taken up an event that it was notified of.
_HEARING_MS = 20

# For this long an event with due writes holds up the certainty of the events after it.
UNFINISHED_MS = 3_000


class Outcome(msgspec.Struct, frozen=True):
    """Context after a record, and the rows to be published, in order."""

    context: Context
    effects: tuple[Row, ...]


class Transaction(PendingRequests):
    """Transaction: a private copy of the context, its in-flight events, and the rows to be published."""

    __slots__ = ("_gauge_counts", "_counted_by", "_issue_index", "_rules", "_ruled_by")

    def __init__(self, context: Context, record: Record) -> None:
        super().__init__(context, record)
        self._start_counting()

    def _start_counting(self) -> None:
        header = self.header
        self._rules = self._counted_by = rules = header.counting_rules
        self._ruled_by = (header.settings, header.profile, header.configuration.dynamic)
        self._gauge_counts = GaugeCounts(header.tally.gauges, rules)
        self._issue_index = PartitionIssueIndex(header.tally.issues, header.tally.offline_by_topic, rules)

    def next_record(self, record: Record) -> None:
        """Conclude the current record, and advance to the next one."""
        self.conclude()
        self._touched, self._touched_topics = {}, {}
        if self._open or self.event is not None:
            self.event, self._open, self._fresh, self._advanced = None, {}, set(), set()
        self._first = len(self.effects)
        self.advance_to(record)

    def fork(self) -> Transaction:
        """Trial copy of this transaction, whose changes do not affect this one."""
        trial = copy.copy(self)
        trial.header = self.header.copy()
        trial.header.tally.happened = self.header.tally.happened.copy()
        trial.topics = self.topics.mutable_copy()
        trial.effects = list(self.effects)
        trial._open = {key: replace(e, due=list(e.due), topics=dict(e.topics)) for key, e in self._open.items()}
        trial._fresh, trial._advanced = set(self._fresh), set(self._advanced)
        trial._touched, trial._touched_topics = dict(self._touched), dict(self._touched_topics)
        return trial

    def adopt(self, trial: Transaction) -> None:
        """Take over the state of a trial."""
        for name in (
            *MutableState.__slots__,
            *PendingEvents.__slots__,
            *PendingRequests.__slots__,
            *Transaction.__slots__,
        ):
            setattr(self, name, getattr(trial, name))

    def finish(self) -> Context:
        """Conclude the last record, and return the new context."""
        self.conclude()
        topics = self.topics.freeze()
        return Context(self.header, topics, self._next_replica_index(topics))

    def conclude(self) -> None:
        """Publish certain and expected effects, and judge the touched partitions."""
        if not self.is_idle:
            self._publish_certain({**self.header.events, **self._open})
        wants_judging = self._conclude_touched() or self.header.brokers is not self._judged_brokers
        if self._fresh:
            self.publish_expected_requests()
        if self._open:
            events = {**self.header.events, **self._open}
            self.header.events = {key: event for key, event in events.items() if event.pending > 0}
        if self.shows_gauges or wants_judging or self.shows_all:
            lifecycle.judge(self)
            self._judged_brokers = self.header.brokers
        if self.shows_gauges:
            self.effects.append(gauges_row(self.header, self.stamp()))
        if self.header.clocks.walls:
            self.effects[self._first :] = [shown(row, self.header.clocks.walls) for row in self.effects[self._first :]]

    def _conclude_touched(self) -> bool:
        """Publish and count touched partitions and topics; returns whether alerts must be judged at once."""
        follows = self.header.phase is FOLLOWING
        if not (follows or self._touched_topics):
            return False
        issue_index = self._issue_index
        issue_index.wants_judging = False
        for tp, before in self._touched.items():
            self._conclude(tp, before)
        for name, topic in self._touched_topics.items():
            self._gauge_counts.recount_topic(topic, self.topics.get(name))
        if follows:
            self._take_counts()
        if self._replica_index is not None:
            self._replica_index.follow(self.topics)
        return issue_index.wants_judging

    def _take_counts(self) -> None:
        header = self.header
        if self.shows_all or self.rules != self._counted_by:
            header.tally.gauges = count_gauges(self.topics, self.rules)
            header.tally.issues, header.tally.offline_by_topic = index_issues(self.topics, header)
            self._start_counting()
        else:
            header.tally.gauges, header.tally.issues = self._gauge_counts.counts, self._issue_index.groups
            header.tally.offline_by_topic = self._issue_index.offline_by_topic

    @property
    def rules(self) -> CountingRules:
        """Rules that counts and partitions' health depend on beside the topics, as of now."""
        header, (settings, profile, dynamic) = self.header, self._ruled_by
        if header.settings is settings and header.profile is profile and header.configuration.dynamic is dynamic:
            return self._rules
        self._ruled_by = (header.settings, header.profile, header.configuration.dynamic)
        self._rules = header.counting_rules
        return self._rules

    def _next_replica_index(self, topics: Topics) -> BrokerReplicaIndex | None:
        if self.header.phase is not FOLLOWING:
            return None
        if self.shows_all:
            return BrokerReplicaIndex(topics)
        if self._replica_index is not None:
            self._replica_index.follow(topics)
        return self._replica_index

    def _publish_certain(self, events: dict[int, Event]) -> None:
        for event_id in self._begun_now(events):
            event, stored = self.open_event(event_id), self.header.events.get(event_id)
            event.begun = True
            # Only a finished batch makes actions certain in partitions that were not touched.
            same_batch = stored is not None and stored.begun and event.next_batch == stored.next_batch
            batches = self._certain_batches(event, events)
            self._send(event, batches, list(self._touched) if same_batch and not batches else self.waiting(event))

    def waiting(self, event: Event) -> list[TopicPartition]:
        """Partitions of an event's topics with queued actions."""
        found = ((name, self.topics.get(name)) for name in event.topics)
        return [
            TopicPartition(name, number)
            for name, topic in found
            if topic is not None
            for number, partition in topic.partitions.items()
            if partition.queue
        ]

    def actions_of(self, event: Event) -> Iterator[AnyAction]:
        """Queued actions of the event."""
        for tp in self.waiting(event):
            for action in self.topics[tp.topic].partitions[tp.partition].queue:
                if action.event == event.id:
                    yield action

    def _certain_batches(self, event: Event, events: Mapping[int, Event]) -> Sequence[Batch]:
        """Request batches that are certain: no write before them is due, of this event or an older one.

        Where a write came before one of an older event, it is not known yet whether the older event was handled.
        """
        held_by = events.get(event.held_by)
        done = [batch for batch in event.batches if _is_done(event, batch.at_batch)]
        if not done or (held_by is not None and held_by.writes_due):
            return ()
        event.held_by = -1
        held_from = len(event.due)
        for tp in self.waiting(event):
            older = -1
            for action in self.topics[tp.topic].partitions[tp.partition].queue:
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

    def begin_update_metadata(self, kind: EventKind, cause: str, tp: TopicPartition) -> None:
        """Begin an event that only sends UpdateMetadata of a partition; if none is in flight it is certain at once."""
        if self.is_idle:
            self.publish_update_metadata(kind, cause, tp)
        else:
            self.begin(kind, cause)
            batch = RequestBatch(self)
            batch.update_metadata(tp)
            batch.send()

    def _begun_now(self, events: dict[int, Event]) -> list[int]:
        """Events of which more is certain now.

        The controller is one thread: an event without writes leaves no trace of its own, and is certain once no write
        of an older event is due any more, or only writes that are overdue and will not come.
        """
        certain, unfinished = [], False
        for event_id, event in events.items():
            if event.is_doubtful and (event.holds_back or not event.begun):
                unfinished = unfinished or event.holds_back
                continue
            if event.writes_due:
                if event.begun and event_id in self._advanced:
                    certain.append(event_id)
                unfinished = unfinished or self.header.time_ms - event.time_ms <= UNFINISHED_MS
            elif event.begun or not (unfinished or self._may_never_have_been(event)):
                certain.append(event_id)
            else:
                self.open_event(event_id).taken_up = not unfinished
                unfinished = True
        return certain

    def _may_never_have_been(self, event: Event) -> bool:
        wrote_since = (
            event.id <= self.header.last_written_event or event.time_ms + _HEARING_MS < self.header.term.heard_ms
        )
        return event.proven_ms > self.header.time_ms and not wrote_since

    def conclude_events(self, *, expired: bool) -> None:
        """Publish what the controller had done when it resigned; after its session expired, only what is proven."""
        events = {**self.header.events, **self._open}
        for event_id in () if expired else list(events):
            events[event_id] = self.open_event(event_id)
            events[event_id].proven_ms = 0
            events[event_id].may_have_asked = events[event_id].may_not_know = NO_BROKER
        if events:
            self._publish_certain(events)

    def frozen(self, partition: Partition) -> tuple[AnyAction, ...]:
        """Partition's queue, in which entries of events without due writes keep the state that they were sent with."""
        return tuple(
            replace(action, value=sent_value(partition, action))
            if isinstance(action, StateEntry) and action.value is None and not self.open_event(action.event).writes_due
            else action
            for action in partition.queue
        )

    def make_certain(self, name: str) -> None:
        """Publish all queued actions of a topic as done: its znodes show an event that comes after them."""
        topic = self.topics.get(name)
        sent: dict[int, dict[int, None]] = {}  # the batches whose requests contain it, by event
        for number, partition in list(topic.partitions.items()) if topic else ():
            tp, value = TopicPartition(name, number), partition.zk_state
            entries: list[AnyAction] = []
            for action in partition.queue:
                if isinstance(action, Write):
                    value = action.apply(value, self.open_event(action.event).epoch) or value
                    self.settle(action, seen=False)
                elif isinstance(action, StateChange):
                    self._publish_state_change(tp, action, FINAL, action.value or value)
                    self.open_event(action.event).pending -= 1
                else:
                    sent.setdefault(action.event, {})[action.at_batch] = None
                    entries.append(
                        replace(action, value=action.value or value) if isinstance(action, StateEntry) else action
                    )
            self.put_partition(tp, replace(partition, queue=tuple(entries)))
        for event_id, numbers in sorted(sent.items()):
            event = self.open_event(event_id)
            batches = [batch for batch in event.batches if batch.at_batch in numbers]
            self._send(event, batches, self.waiting(event))

    def _send(self, event: Event, batches: Sequence[Batch], tps: Iterable[TopicPartition]) -> None:
        """Publish the certain actions of partitions that wait for an event, and these requests of it."""
        contents = RequestContents(batches, self.header.profile)
        for tp in tps:
            self._flush(tp, event, contents)
        if batches:
            self.publish_sent(event, batches, contents)
            event.batches = tuple(batch for batch in event.batches if batch not in batches)
            event.pending -= len(batches)

    def _flush(self, tp: TopicPartition, event: Event, contents: RequestContents) -> None:
        """Publish certain state changes at the front of the partition's queue, and move its entries into requests."""
        partition = self.partition(tp)
        if partition is None:
            return
        kept: list[AnyAction] = []
        is_front = True
        for action in partition.queue:
            is_front = is_front and self._is_certain(action)
            if isinstance(action, (StateEntry, StopEntry)) and action.event == event.id and contents.takes(action):
                contents.add(tp, action, sent_value(partition, action))
                event.pending -= 1
            elif is_front and isinstance(action, StateChange):
                self._publish_state_change(tp, action, FINAL, action.value or partition.zk_state)
                self.open_event(action.event).pending -= 1
            else:
                kept.append(action)
        if len(kept) < len(partition.queue):
            self.put_partition(tp, replace(partition, queue=tuple(kept)))

    def _is_certain(self, action: AnyAction) -> bool:
        event = self.open_event(action.event)
        return event.begun and _is_done(event, action.at_batch) and not isinstance(action, Write)

    def _conclude(self, tp: TopicPartition, was: InTopic) -> None:
        """Publish and count a touched partition as it is now."""
        now, before = self.topics.get(tp.topic), was[1]
        partition = now.partitions.get(tp.partition) if now else None
        if now is not None and partition is not None:
            if partition.queue and self._fresh:
                self._publish_expected(tp, partition)
            partition = self._publish_partition(tp, was, partition, now)
        else:
            assert before is not None, f"{tp} was touched, and was never there"
            self._publish_gone(tp, before)
        if self.header.phase is FOLLOWING and not self.shows_all:
            self._gauge_counts.recount(was, (now, partition))
            self._issue_index.recount(tp, was, (now, partition), self.header.time_ms)
            if self._replica_index is not None:
                self._replica_index.note(tp, before, partition)

    def _publish_expected(self, tp: TopicPartition, partition: Partition) -> None:
        value = partition.zk_state
        for action in partition.queue:
            if isinstance(action, Write):
                value = action.apply(value, self.open_event(action.event).epoch) or value
            elif action.event not in self._fresh:
                continue
            elif isinstance(action, StateChange):
                self._publish_state_change(tp, action, PROVISIONAL, action.value or value)
            else:
                self.expect(tp, action, action.value or value if isinstance(action, StateEntry) else None)

    def _publish_gone(self, tp: TopicPartition, before: Partition) -> None:
        gone = Partition(before.replicas, zk_state=before.zk_state)
        self.effects.append(partition_row(tp, gone, None, None, None, self.stamp()))

    def _publish_partition(self, tp: TopicPartition, was: InTopic, partition: Partition, topic: Topic) -> Partition:
        predicted = partition.value(self.header.controller_epoch)
        now = judged(partition, topic, self.header, self.rules, predicted, self.header.time_ms)
        if now is not partition:
            self.topics.own(tp.topic).partitions[tp.partition] = now
        in_topic, before = was
        changed = now != before and (now.problem is not None or not _differ_by_entries(before, now))
        if (
            self.shows_all
            or changed
            or (in_topic is not None and in_topic.queued_for_deletion) is not topic.queued_for_deletion
        ):
            reason = reason_for(now.problem, now, topic, self.header, predicted) if now.problem else None
            due = predicted if now.write_due else None
            self.effects.append(partition_row(tp, now, topic, due, reason, self.stamp()))
        return now


def sent_value(partition: Partition, entry: AnyEntry) -> LeaderAndIsr | None:
    """State that an entry is sent with: ZooKeeper's, or the controller's cached one until it reads the state again."""
    if not isinstance(entry, StateEntry):
        return None
    if entry.value is None and not entry.read and partition.cached is not None:
        return partition.cached
    return entry.value or partition.zk_state


def _differ_by_entries(before: Partition | None, now: Partition) -> bool:
    """Whether a partition differs only in queued entries of requests, which its row does not show."""
    if before is None or before.queue == now.queue or replace(now, queue=before.queue) != before:
        return False
    then, left = (
        [action for action in queue if not isinstance(action, (StateEntry, StopEntry))]
        for queue in (before.queue, now.queue)
    )
    return then == left


def _is_done(event: Event, at_batch: int) -> bool:
    """Whether no write of the event up to the end of this batch is due any more."""
    return at_batch < event.next_batch or not event.writes_due
