"""One step in progress, and its end: what is certain is published, what was touched is judged and counted.

Here belongs what happens to every change alike, so that rows, counts and alerts can never be forgotten. The context
changes by `draft`, events by `events`; what changes and why is decided by the machines and handlers that are given a
turn.
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

# Within this a controller that lives has taken up what it hears of.
_HEARING_MS = 20

# For how long an event whose writes are due holds up the certainty of what follows it.
UNFINISHED_MS = 3_000


class Outcome(msgspec.Struct, frozen=True):
    """The context after a record, and what is to be published, in order."""

    context: Context
    effects: tuple[Row, ...]


class Transaction(PendingRequests):
    """A step's private copy of the context, the events in it, and what is to be published."""

    __slots__ = ("_gauge_counts", "_counted_by", "_issue_index", "_rules", "_ruled_by")

    def __init__(self, context: Context, record: Record) -> None:
        super().__init__(context, record)
        self._count_on()

    def _count_on(self) -> None:
        header = self.header
        self._rules = self._counted_by = rules = header.counting_rules
        self._ruled_by = (header.settings, header.profile, header.configuration.dynamic)
        self._gauge_counts = GaugeCounts(header.tally.gauges, rules)
        self._issue_index = PartitionIssueIndex(header.tally.issues, header.tally.offline_by_topic, rules)

    def go_on(self, record: Record) -> None:
        """The record that was taken up is handled: publish what came of it, and take up the next one."""
        self.conclude()
        self._touched, self._touched_topics = {}, {}
        if self._open or self.event is not None:
            self.event, self._open, self._fresh, self._advanced = None, {}, set(), set()
        self._first = len(self.effects)
        self.take_up(record)

    def fork(self) -> Transaction:
        """A trial of this transaction: what is done to it does not touch this one."""
        trial = copy.copy(self)
        trial.header = self.header.copy()
        trial.header.tally.happened = self.header.tally.happened.copy()
        trial.topics = self.topics.draft()
        trial.effects = list(self.effects)
        trial._open = {key: replace(e, due=list(e.due), topics=dict(e.topics)) for key, e in self._open.items()}
        trial._fresh, trial._advanced = set(self._fresh), set(self._advanced)
        trial._touched, trial._touched_topics = dict(self._touched), dict(self._touched_topics)
        return trial

    def adopt(self, trial: Transaction) -> None:
        """Go on from where the trial stands."""
        for name in (
            *MutableState.__slots__,
            *PendingEvents.__slots__,
            *PendingRequests.__slots__,
            *Transaction.__slots__,
        ):
            setattr(self, name, getattr(trial, name))

    def finish(self) -> Context:
        """Publish what came of the last record, and give the new context."""
        self.conclude()
        topics = self.topics.freeze()
        return Context(self.header, topics, self._next_replica_index(topics))

    def conclude(self) -> None:
        """Publish what is certain and what is expected, and judge what was touched."""
        if not self.is_idle:
            self._publish_certain({**self.header.events, **self._open})
        wants_judging = self._conclude_touched() or self.header.brokers is not self._judged_brokers
        if self._fresh:
            self.publish_expected_requests()
        if self._open:
            known = {**self.header.events, **self._open}
            self.header.events = {key: event for key, event in known.items() if event.pending > 0}
        if self.shows_gauges or wants_judging or self.shows_all:
            lifecycle.judge(self)
            self._judged_brokers = self.header.brokers
        if self.shows_gauges:
            self.effects.append(gauges_row(self.header, self.stamp()))
        if self.header.clocks.walls:
            self.effects[self._first :] = [shown(row, self.header.clocks.walls) for row in self.effects[self._first :]]

    def _conclude_touched(self) -> bool:
        """Publish and count what was touched; whether a person may have to know of it at once."""
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
            self._count_on()
        else:
            header.tally.gauges, header.tally.issues = self._gauge_counts.counts, self._issue_index.groups
            header.tally.offline_by_topic = self._issue_index.offline_by_topic

    @property
    def rules(self) -> CountingRules:
        """What counts and partitions' health depend on beside the topics, as of now."""
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

    def _publish_certain(self, known: dict[int, Event]) -> None:
        for event_id in self._begun_now(known):
            event, stored = self.open_event(event_id), self.header.events.get(event_id)
            event.begun = True
            # Only a pass that is done makes certain what stands in partitions that were not touched.
            same_pass = stored is not None and stored.begun and event.next_batch == stored.next_batch
            batches = self._certain_batches(event, known)
            self._send(event, batches, list(self._touched) if same_pass and not batches else self.waiting(event))

    def waiting(self, event: Event) -> list[TopicPartition]:
        """The partitions of an event's topics that wait for something."""
        found = ((name, self.topics.get(name)) for name in event.topics)
        return [
            TopicPartition(name, number)
            for name, topic in found
            if topic is not None
            for number, partition in topic.partitions.items()
            if partition.queue
        ]

    def steps_of(self, event: Event) -> Iterator[AnyAction]:
        """What the event is still to do to partitions."""
        for tp in self.waiting(event):
            for step in self.topics[tp.topic].partitions[tp.partition].queue:
                if step.event == event.id:
                    yield step

    def _certain_batches(self, event: Event, known: Mapping[int, Event]) -> Sequence[Batch]:
        """The batches that are certain: nothing that was to be written before is due, by this event or an older one.

        Where a write came before that of an older event, whether the older one was handled is not known yet.
        """
        held_by = known.get(event.held_by)
        done = [batch for batch in event.batches if _is_done(event, batch.at_batch)]
        if not done or (held_by is not None and held_by.writes_due):
            return ()
        event.held_by = -1
        held_from = len(event.due)
        for tp in self.waiting(event):
            older = -1
            for step in self.topics[tp.topic].partitions[tp.partition].queue:
                if isinstance(step, Write):
                    older = step.event
                elif (
                    older >= 0
                    and step.event == event.id
                    and step.at_batch < held_from
                    and not isinstance(step, StateChange)
                ):
                    event.held_by, held_from = older, step.at_batch
        return [batch for batch in done if batch.at_batch < held_from]

    def announce(self, kind: EventKind, cause: str, tp: TopicPartition) -> None:
        """An event that only tells all brokers of a partition; where nothing is pending that is certain at once."""
        if self.is_idle:
            self.announce_at_once(kind, cause, tp)
        else:
            self.begin(kind, cause)
            batch = RequestBatch(self)
            batch.update_metadata(tp)
            batch.send()

    def _begun_now(self, known: dict[int, Event]) -> list[int]:
        """The events of which more is certain now.

        The controller is one thread: an event without writes leaves no trace of its own, and is certain once nothing
        that came before it is due any more, or is due for so long that it will not come.
        """
        certain, unfinished = [], False
        for event_id, event in known.items():
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
        """The controller is gone: publish what it had surely done; of one that expired, only what is proven."""
        known = {**self.header.events, **self._open}
        for event_id in () if expired else list(known):
            known[event_id] = self.open_event(event_id)
            known[event_id].proven_ms = 0
            known[event_id].may_have_asked = known[event_id].may_not_know = NO_BROKER
        if known:
            self._publish_certain(known)

    def frozen(self, partition: Partition) -> tuple[AnyAction, ...]:
        """The partition's queue; the entries of events that write nothing keep the value that they were sent with."""
        return tuple(
            replace(step, value=sent_value(partition, step))
            if isinstance(step, StateEntry) and step.value is None and not self.open_event(step.event).writes_due
            else step
            for step in partition.queue
        )

    def make_certain(self, name: str) -> None:
        """All that a topic's partitions wait for was done: what was seen of the topic comes only after it."""
        topic = self.topics.get(name)
        sent: dict[int, dict[int, None]] = {}  # the passes whose requests speak of it, by event
        for number, partition in list(topic.partitions.items()) if topic else ():
            tp, value = TopicPartition(name, number), partition.zk_state
            entries: list[AnyAction] = []
            for step in partition.queue:
                if isinstance(step, Write):
                    value = step.apply(value, self.open_event(step.event).epoch) or value
                    self.settle(step, seen=False)
                elif isinstance(step, StateChange):
                    self._publish_move(tp, step, FINAL, step.value or value)
                    self.open_event(step.event).pending -= 1
                else:
                    sent.setdefault(step.event, {})[step.at_batch] = None
                    entries.append(replace(step, value=step.value or value) if isinstance(step, StateEntry) else step)
            self.put_partition(tp, replace(partition, queue=tuple(entries)))
        for event_id, passes in sorted(sent.items()):
            event = self.open_event(event_id)
            batches = [batch for batch in event.batches if batch.at_batch in passes]
            self._send(event, batches, self.waiting(event))

    def _send(self, event: Event, batches: Sequence[Batch], tps: Iterable[TopicPartition]) -> None:
        """Publish what is certain of partitions that wait for an event, and these requests of it."""
        said = RequestContents(batches, self.header.profile)
        for tp in tps:
            self._flush(tp, event, said)
        if batches:
            self.publish_sent(event, batches, said)
            event.batches = tuple(batch for batch in event.batches if batch not in batches)
            event.pending -= len(batches)

    def _flush(self, tp: TopicPartition, event: Event, said: RequestContents) -> None:
        """Publish certain moves at the front of the partition's queue, and take out what requests say of it."""
        partition = self.partition(tp)
        if partition is None:
            return
        kept: list[AnyAction] = []
        is_front = True
        for step in partition.queue:
            is_front = is_front and self._is_certain(step)
            if isinstance(step, (StateEntry, StopEntry)) and step.event == event.id and said.takes(step):
                said.add(tp, step, sent_value(partition, step))
                event.pending -= 1
            elif is_front and isinstance(step, StateChange):
                self._publish_move(tp, step, FINAL, step.value or partition.zk_state)
                self.open_event(step.event).pending -= 1
            else:
                kept.append(step)
        if len(kept) < len(partition.queue):
            self.put_partition(tp, replace(partition, queue=tuple(kept)))

    def _is_certain(self, step: AnyAction) -> bool:
        event = self.open_event(step.event)
        return event.begun and _is_done(event, step.at_batch) and not isinstance(step, Write)

    def _conclude(self, tp: TopicPartition, was: InTopic) -> None:
        """Publish and count what a touched partition has become."""
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
        for step in partition.queue:
            if isinstance(step, Write):
                value = step.apply(value, self.open_event(step.event).epoch) or value
            elif step.event not in self._fresh:
                continue
            elif isinstance(step, StateChange):
                self._publish_move(tp, step, PROVISIONAL, step.value or value)
            else:
                self.expect(tp, step, step.value or value if isinstance(step, StateEntry) else None)

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
    """What an entry speaks of: ZooKeeper's value, or the controller's own copy where it has not read it again."""
    if not isinstance(entry, StateEntry):
        return None
    if entry.value is None and not entry.read and partition.cached is not None:
        return partition.cached
    return entry.value or partition.zk_state


def _differ_by_entries(before: Partition | None, now: Partition) -> bool:
    """Whether a partition differs in nothing but what requests are to say of it, which its row does not show."""
    if before is None or before.queue == now.queue or replace(now, queue=before.queue) != before:
        return False
    then, left = (
        [step for step in queue if not isinstance(step, (StateEntry, StopEntry))] for queue in (before.queue, now.queue)
    )
    return then == left


def _is_done(event: Event, at_batch: int) -> bool:
    """Whether nothing that the event writes before the end of this pass is due any more."""
    return at_batch < event.next_batch or not event.writes_due
