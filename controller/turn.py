"""One step in progress, and its end: what is certain is published, what was touched is judged and counted.

Here belongs what happens to every change alike, so that rows, counts and alerts can never be forgotten. The context
changes by `draft`, events by `events`; what changes and why is decided by the machines and handlers that are given a
turn.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import msgspec

from controller import alerts, clock
from controller.context import FOLLOWING, NO_BROKER, Context, CountingRules, Event
from controller.draft import ContextDraft
from controller.events import EventDraft
from controller.gauges import Census, InTopic, census_of, gauges_row
from controller.health import judged, reason_for
from controller.leadership import AnyStep, LeaderAndIsr, Move, Tell
from controller.outputs import FINAL, PROVISIONAL
from controller.records import Record
from controller.roster import Roster
from controller.rows import partition_row
from controller.topics import Partition, Topic, TopicPartition, Topics
from controller.troubles import TroubleLedger, troubles_anew

replace = msgspec.structs.replace

# Within this a controller that lives has taken up what it hears of.
_HEARING_MS = 20

# For how long an event whose writes are due holds up the certainty of what follows it.
UNFINISHED_MS = 3_000


class Turn(EventDraft):
    """A step's private copy of the context, the events in it, and what is to be published."""

    __slots__ = ("_census", "_counted_by", "_ledger", "_rules", "_ruled_by", "shows_gauges")

    def __init__(self, context: Context, record: Record) -> None:
        super().__init__(context, record)
        self.shows_gauges = False
        self._count_on()

    def _count_on(self) -> None:
        header = self.header
        self._rules = self._counted_by = rules = header.counting_rules
        self._ruled_by = (header.settings, header.profile, header.dynamic_settings)
        self._census = Census(header.census, rules)
        self._ledger = TroubleLedger(header.troubles, header.offline_by_topic, rules)

    def go_on(self, record: Record) -> None:
        """The record that was taken up is handled: publish what came of it, and take up the next one."""
        self.conclude()
        self._touched, self._touched_topics = {}, {}
        if self._open or self.event is not None:
            self.event, self._open, self._fresh, self._advanced = None, {}, set(), set()
        self._first = len(self.effects)
        self.take_up(record)

    def fork(self) -> Turn:
        """A trial of this turn: what is done to it does not touch this one."""
        trial = copy.copy(self)
        trial.header = replace(self.header)
        trial.header.counts = self.header.counts.copy()
        trial.topics = self.topics.draft()
        trial.effects = list(self.effects)
        trial._open = {key: replace(e, due=list(e.due), topics=dict(e.topics)) for key, e in self._open.items()}
        trial._fresh, trial._advanced = set(self._fresh), set(self._advanced)
        trial._touched, trial._touched_topics = dict(self._touched), dict(self._touched_topics)
        return trial

    def adopt(self, trial: Turn) -> None:
        """Go on from where the trial stands."""
        for name in (*ContextDraft.__slots__, *EventDraft.__slots__, *Turn.__slots__):
            setattr(self, name, getattr(trial, name))

    def finish(self) -> Context:
        """Publish what came of the last record, and give the new context."""
        self.conclude()
        topics = self.topics.freeze()
        return Context(self.header, topics, self._next_roster(topics))

    def conclude(self) -> None:
        """Publish what is certain and what is expected, and judge what was touched."""
        if not self.is_idle:
            self._publish_certain({**self.header.events, **self._open})
            for event_id in sorted(self._fresh):
                self._publish_broadcasts(self._open[event_id], PROVISIONAL, self._open[event_id].broadcasts)
        wants_judging = self._conclude_touched() or self.header.brokers is not self._judged_brokers
        if self._open:
            known = {**self.header.events, **self._open}
            self.header.events = {key: event for key, event in known.items() if event.queued > 0}
        if self.shows_gauges or wants_judging or self.shows_all:
            alerts.judge(self)
            self._judged_brokers = self.header.brokers
        if self.shows_gauges:
            self.effects.append(gauges_row(self.header, self.stamp()))
        if self.header.walls:
            self.effects[self._first :] = [clock.shown(row, self.header.walls) for row in self.effects[self._first :]]

    def _conclude_touched(self) -> bool:
        """Publish and count what was touched; whether a person may have to know of it at once."""
        follows = self.header.phase is FOLLOWING
        if not (follows or self._touched_topics):
            return False
        ledger = self._ledger
        ledger.wants_judging = False
        for tp, before in self._touched.items():
            self._conclude(tp, before)
        for name, topic in self._touched_topics.items():
            self._census.recount_topic(topic, self.topics.get(name))
        if follows:
            self._take_counts()
        if self._roster is not None:
            self._roster.follow(self.topics)
        return ledger.wants_judging

    def _take_counts(self) -> None:
        header = self.header
        if self.shows_all or self.rules != self._counted_by:
            header.census = census_of(self.topics, self.rules)
            header.troubles, header.offline_by_topic = troubles_anew(self.topics, header)
            self._count_on()
        else:
            header.census, header.troubles = self._census.counts, self._ledger.groups
            header.offline_by_topic = self._ledger.offline_by_topic

    @property
    def rules(self) -> CountingRules:
        """What counts and partitions' health depend on beside the topics, as of now."""
        header, (settings, profile, dynamic) = self.header, self._ruled_by
        if header.settings is settings and header.profile is profile and header.dynamic_settings is dynamic:
            return self._rules
        self._ruled_by = (header.settings, header.profile, header.dynamic_settings)
        self._rules = header.counting_rules
        return self._rules

    def _next_roster(self, topics: Topics) -> Roster | None:
        if self.header.phase is not FOLLOWING:
            return None
        if self.shows_all:
            return Roster(topics)
        if self._roster is not None:
            self._roster.follow(topics)
        return self._roster

    def _publish_certain(self, known: dict[int, Event]) -> None:
        for event_id in self._begun_now(known):
            event, stored = self.open_event(event_id), self.header.events.get(event_id)
            event.begun = True
            # Only a pass that is done makes certain what stands in partitions that were not touched.
            same_pass = stored is not None and stored.begun and event.frontier == stored.frontier
            for tp in list(self._touched) if same_pass else self.waiting(event):
                self._flush(tp)
            self._publish_certain_broadcasts(event)

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

    def steps_of(self, event: Event) -> Iterator[AnyStep]:
        """What the event is still to do to partitions."""
        for tp in self.waiting(event):
            for step in self.topics[tp.topic].partitions[tp.partition].queue:
                if step.event == event.id:
                    yield step

    def _publish_certain_broadcasts(self, event: Event) -> None:
        if not event.broadcasts:
            return
        certain = [told for told in event.broadcasts if told.at_pass < event.frontier or not event.writes_due]
        self._publish_broadcasts(event, FINAL, certain)
        event.broadcasts = event.broadcasts[len(certain) :]
        event.queued -= len(certain)

    def _begun_now(self, known: dict[int, Event]) -> list[int]:
        """The events of which more is certain now.

        The controller is one thread: an event without writes leaves no trace of its own, and is certain once nothing
        that came before it is due any more, or is due for so long that it will not come.
        """
        certain, unfinished = [], False
        for event_id, event in known.items():
            if event.doubtful != NO_BROKER and (event.holds_back or not event.begun):
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
        wrote_since = event.id <= self.header.last_written_event or event.time_ms + _HEARING_MS < self.header.heard_ms
        return event.proven_ms > self.header.time_ms and not wrote_since

    def conclude_events(self, *, expired: bool) -> None:
        """The controller is gone: publish what it had surely done; of one that expired, only what is proven."""
        known = {**self.header.events, **self._open}
        for event_id in () if expired else list(known):
            known[event_id] = self.open_event(event_id)
            known[event_id].proven_ms = 0
            known[event_id].doubtful = NO_BROKER
        if known:
            self._publish_certain(known)

    def frozen(self, partition: Partition) -> tuple[AnyStep, ...]:
        """The partition's queue; what was told in events that write nothing keeps the value that it was told with."""
        return tuple(
            replace(step, value=told_value(partition, step))
            if isinstance(step, Tell) and step.value is None and not self.open_event(step.event).writes_due
            else step
            for step in partition.queue
        )

    def make_certain(self, name: str) -> None:
        """All that a topic's partitions wait for was done: what was seen of the topic comes only after it."""
        topic = self.topics.get(name)
        for number, partition in list(topic.partitions.items()) if topic else ():
            tp, value = TopicPartition(name, number), partition.confirmed
            for step in partition.queue:
                if not isinstance(step, (Move, Tell)):
                    value = step.apply(value, self.open_event(step.event).epoch) or value
                    self.settle(step, seen=False)
                else:
                    self._publish_step(tp, step, FINAL, step.value or value)
                    self.open_event(step.event).queued -= 1
            self.put_partition(tp, replace(partition, queue=()))

    def _flush(self, tp: TopicPartition) -> None:
        """Publish what stands in front of the partition's queue and is certain."""
        partition = self.partition(tp)
        if partition is None:
            return
        queue = partition.queue
        done = 0
        for step in queue:
            if not isinstance(step, (Move, Tell)):
                break
            event = self.open_event(step.event)
            if not event.begun or step.at_pass >= event.frontier and event.writes_due:
                break
            self._publish_step(tp, step, FINAL, step.value or told_value(partition, step))
            event.queued -= 1
            done += 1
        if done:
            self.put_partition(tp, replace(partition, queue=queue[done:]))

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
            self._census.recount(was, (now, partition))
            self._ledger.recount(tp, was, (now, partition), self.header.time_ms)
            if self._roster is not None:
                self._roster.note(tp, before, partition)

    def _publish_expected(self, tp: TopicPartition, partition: Partition) -> None:
        value = partition.confirmed
        for step in partition.queue:
            if not isinstance(step, (Move, Tell)):
                value = step.apply(value, self.open_event(step.event).epoch) or value
            elif step.event in self._fresh:
                self._publish_step(tp, step, PROVISIONAL, step.value or value)

    def _publish_gone(self, tp: TopicPartition, before: Partition) -> None:
        gone = Partition(before.replicas, confirmed=before.confirmed)
        self.effects.append(partition_row(tp, gone, None, None, None, self.stamp()))

    def _publish_partition(self, tp: TopicPartition, was: InTopic, partition: Partition, topic: Topic) -> Partition:
        predicted = partition.value(self.header.controller_epoch)
        now = judged(partition, topic, self.header, self.rules, predicted, self.header.time_ms)
        if now is not partition:
            self.topics.own(tp.topic).partitions[tp.partition] = now
        in_topic, before = was
        if self.shows_all or now != before or (in_topic is not None and in_topic.queued) is not topic.queued:
            reason = reason_for(now.problem, now, topic, self.header, predicted) if now.problem else None
            due = predicted if now.write_due else None
            self.effects.append(partition_row(tp, now, topic, due, reason, self.stamp()))
        return now


def told_value(partition: Partition, step: AnyStep) -> LeaderAndIsr | None:
    """What a step speaks of: ZooKeeper's value, or the controller's own copy where it has not read it again."""
    if isinstance(step, Tell) and not step.read and partition.known is not None:
        return partition.known
    return partition.confirmed
