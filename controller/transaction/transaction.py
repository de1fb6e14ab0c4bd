"""Transaction, which is a context while records change it, and its end, which publishes, judges and counts changes.

Every change passes through here, so that no row, count or alert can be forgotten. The machines and event handlers that
are given a transaction decide on the changes.
"""

from __future__ import annotations

import copy

import msgspec

from controller.alerts import lifecycle
from controller.contract.effect_rows import PROVISIONAL
from controller.contract.ids import TopicPartition
from controller.contract.records import Record
from controller.contract.row import Row
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.context import FOLLOWING, Context
from controller.model.event import EventKind
from controller.model.leadership import StateChange, StateEntry, Write
from controller.model.tally import CountingRules
from controller.model.topics import InTopic, Partition, Topic, Topics
from controller.model.wall_clock import shown
from controller.transaction.certainty import CertainEvents
from controller.transaction.request_batch import RequestBatch
from controller.view.counting import GaugeIndex, count_gauges
from controller.view.gauges import gauges_row
from controller.view.health import judged, reason_for
from controller.view.invariants import check_queues
from controller.view.migration import migration_row
from controller.view.partition_issues import PartitionIssueIndex, index_issues
from controller.view.rows import partition_row, topic_row
from controller.view.state_epochs import recounted

replace = msgspec.structs.replace


class Outcome(msgspec.Struct, frozen=True):
    """Context after a record, and the rows to be published, in order."""

    context: Context
    effects: tuple[Row, ...]


class Transaction(CertainEvents):
    """Private copy of the context, with its in-flight events and the rows to be published."""

    __slots__ = ("_gauge_index", "_counted_by", "_issue_index", "_resized", "_rules", "_ruled_by")

    def __init__(self, context: Context, record: Record) -> None:
        super().__init__(context, record)
        self._resized: set[str] = set()  # topics with a partition that has another number of replicas now
        self._start_counting()

    def _start_counting(self) -> None:
        header = self.header
        self._rules = self._counted_by = rules = header.counting_rules
        self._ruled_by = (header.settings, header.profile, header.configuration.dynamic)
        self._gauge_index = GaugeIndex(header.tally.gauges, rules)
        self._issue_index = PartitionIssueIndex(header.tally.issues, header.tally.offline_by_topic, rules)

    def next_record(self, record: Record) -> None:
        """Conclude the current record, and advance to the next one."""
        self.conclude()
        self._touched, self._touched_topics, self._indexed_amid = {}, {}, False
        if self._open or self.event is not None:
            self.event, self._open, self._fresh, self._advanced = None, {}, set(), set()
        self._first = len(self.effects)
        self.advance_to(record)

    def fork(self) -> Transaction:
        """Return a trial copy of this transaction, whose changes do not affect this one."""
        trial = copy.copy(self)
        trial.header = self.header.copy()
        trial.topics = self.topics.mutable_copy()
        trial.effects = list(self.effects)
        trial._open = {key: replace(e, due=list(e.due), topics=dict(e.topics)) for key, e in self._open.items()}
        trial._fresh, trial._advanced = set(self._fresh), set(self._advanced)
        trial._touched, trial._touched_topics = dict(self._touched), dict(self._touched_topics)
        return trial

    def adopt(self, trial: Transaction) -> None:
        """Take over the state of a trial."""
        for name in _SLOTS:
            setattr(self, name, getattr(trial, name))

    def finish(self) -> Context:
        """Conclude the last record, and return the new context."""
        self.conclude()
        topics = self.topics.freeze()
        if self.shows_all:
            check_queues(self.header, topics)
        return Context(self.header, topics, self._next_replica_index(topics))

    def conclude(self) -> None:
        """Publish certain and expected effects, and judge the touched partitions."""
        if not self.is_idle:
            self._publish_certain({**self.header.events, **self._open})
        wants_judging = self._conclude_touched() or self.header.brokers is not self._judged_brokers
        if self._fresh:
            self.publish_expected_requests()
        if self._open:
            self._store_events()
        if self.shows_gauges or wants_judging or self.shows_all:
            lifecycle.judge(self)
            self._judged_brokers = self.header.brokers
        if self.header.migration.seen and self.header.phase is FOLLOWING:
            self._publish_migration()
        if self.shows_gauges:
            self.effects.append(gauges_row(self.header, self.stamp()))
        if self.header.clocks.walls:
            self.effects[self._first :] = [shown(row, self.header.clocks.walls) for row in self.effects[self._first :]]

    def _store_events(self) -> None:
        """Replace the events that this record changed, and drop those that are over."""
        events = dict(self.header.events)
        for key, event in self._open.items():
            if event.pending > 0:
                events[key] = event.stored()
            else:
                events.pop(key, None)
        self.header.events = events

    def _publish_migration(self) -> None:
        """Publish the migration's row at heartbeats, complete reads and new phases. Counts follow at the next one."""
        migration = self.header.migration
        if not (self.shows_gauges or migration.since_ms == self.header.time_ms):
            return
        row = migration_row(self.header, self.stamp())
        if row is not None:
            self.effects.append(row)

    def _conclude_touched(self) -> bool:
        """Publish and count touched partitions and topics. Return whether alerts must be judged at once."""
        follows = self.header.phase is FOLLOWING
        if not (follows or self._touched_topics):
            return False
        issue_index = self._issue_index
        issue_index.wants_judging = False
        if self.judges_all:
            self._judge_all()
        for tp, before in self._touched.items():
            self._conclude(tp, before)
        for name, topic in self._touched_topics.items():
            self._gauge_index.recount_topic(topic, self.topics.get(name))
        if self.shows_partitions and (self._touched_topics or self._resized):
            self._publish_topics()
        if follows:
            self._take_counts()
        if self._replica_index is not None:
            self._replica_index.follow(self.topics)
        return issue_index.wants_judging

    def _publish_topics(self) -> None:
        """Publish a row of each topic whose row has changed, or after a complete read of every topic."""
        for name in sorted({*self._resized, *self._touched_topics}):
            now = self.topics.get(name)
            then = self._touched_topics.get(name, now)
            shown, before = _row_facts(now), _row_facts(then)
            differs = shown != before or name in self._resized or (self.shows_all and shown is not None)
            if differs and (shown is None or self.header.phase is FOLLOWING):
                self.effects.append(topic_row(name, now, self.stamp()))
        self._resized = set()

    def _judge_all(self) -> None:
        """Judge every partition at the end of a complete read."""
        header, rules = self.header, self.rules
        for name, topic in self.topics:
            for number, partition in topic.partitions.items():
                predicted = partition.value(header.controller_epoch)
                now = judged(partition, topic, header, rules, predicted, header.time_ms)
                if now is not partition:
                    self.topics.own(name).partitions[number] = now

    def _take_counts(self) -> None:
        header = self.header
        if self.shows_all or self.rules != self._counted_by:
            header.tally.gauges = count_gauges(self.topics, self.rules)
            header.tally.issues, header.tally.offline_by_topic = index_issues(self.topics, header)
            self._start_counting()
        else:
            header.tally.gauges, header.tally.issues = self._gauge_index.counts, self._issue_index.groups
            header.tally.offline_by_topic = self._issue_index.offline_by_topic

    @property
    def rules(self) -> CountingRules:
        """Return the rules that counts and partitions' health depend on beside the topics, as of now."""
        header, (settings, profile, dynamic) = self.header, self._ruled_by
        if header.settings is settings and header.profile is profile and header.configuration.dynamic is dynamic:
            return self._rules
        self._ruled_by = (header.settings, header.profile, header.configuration.dynamic)
        self._rules = header.counting_rules
        return self._rules

    def _next_replica_index(self, topics: Topics) -> BrokerReplicaIndex | None:
        if self.header.phase is not FOLLOWING:
            return None
        if self.shows_all:  # a reader of the context alone may never need the index, which is made when it is
            return BrokerReplicaIndex(topics) if self.shows_partitions else None
        if self._replica_index is not None:
            self._replica_index.follow(topics)
        return self._replica_index

    def begin_update_metadata(self, kind: EventKind, cause: str, tp: TopicPartition) -> None:
        """Begin an event that only sends UpdateMetadata of a partition.

        If no event is in flight it is certain at once.
        """
        if self.is_idle:
            self.publish_update_metadata(kind, cause, tp)
        else:
            self.begin(kind, cause)
            batch = RequestBatch(self)
            batch.update_metadata(tp)
            batch.send()

    def _conclude(self, tp: TopicPartition, was: InTopic) -> None:
        """Publish and count a touched partition as it is now."""
        now, (then, before) = self.topics.get(tp.topic), was
        partition = now.partitions.get(tp.partition) if now else None
        if now is not None and partition is not None:
            if partition.queue and self._fresh:
                self._publish_expected(tp, partition)
            partition = self._publish_partition(tp, was, partition, now)
        else:
            assert before is not None, f"{tp} was touched, and was never there"
            if self.shows_partitions:
                self._publish_gone(tp, before)
        if self.header.migration.seen and not self.shows_all:
            epochs = self.header.migration.partitions_by_epoch
            self.header.migration.partitions_by_epoch = recounted(epochs, before, partition)
        if self.header.phase is FOLLOWING and not self.shows_all:
            differs = partition != before
            if differs or not (then and now and _count_alike(then, now)):
                self._gauge_index.recount(was, (now, partition))
                self._issue_index.recount(tp, was, (now, partition), self.header.time_ms)
            if self._replica_index is not None and (differs or self._indexed_amid):
                self._replica_index.note(tp, None if self._indexed_amid else before, partition)
            if before and partition and len(before.replicas) != len(partition.replicas):
                self._resized.add(tp.topic)

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
        if not self.shows_partitions:
            return now
        if self.shows_all or _shown_otherwise(was, now, topic):
            reason = reason_for(now.problem, now, topic, self.header, predicted) if now.problem else None
            due = predicted if now.write_due else None
            self.effects.append(partition_row(tp, now, topic, due, reason, self.stamp()))
        return now


def _shown_otherwise(was: InTopic, now: Partition, topic: Topic) -> bool:
    """Return whether a row of the partition shows anything that its last row did not."""
    in_topic, before = was
    if (in_topic is not None and in_topic.queued_for_deletion) is not topic.queued_for_deletion:
        return True
    return now != before and (now.problem is not None or not _differ_by_entries(before, now))


def _count_alike(before: Topic, now: Topic) -> bool:
    """Return whether a partition that is the same in both adds the same to counts and issues."""
    return (
        before.queued_for_deletion is now.queued_for_deletion and before.min_insync_replicas == now.min_insync_replicas
    )


def _row_facts(topic: Topic | None) -> tuple[object, ...] | None:
    """Return the facts of the topic's row, except for the number of replicas. Return None if there is no topic."""
    if topic is None or not topic.exists:
        return None
    settings = (topic.topic_id, topic.min_insync_replicas, topic.unclean_election, len(topic.partitions))
    return *settings, topic.queued_for_deletion, topic.deletion_started, topic.ineligible, topic.request_removed


def _differ_by_entries(before: Partition | None, now: Partition) -> bool:
    """Return whether a partition differs only in queued entries of requests, which its row does not show."""
    if before is None or before.queue == now.queue or replace(now, queue=before.queue) != before:
        return False
    then = [action for action in before.queue if not action.is_entry]
    return then == [action for action in now.queue if not action.is_entry]


_SLOTS = tuple(name for part in Transaction.__mro__ for name in getattr(part, "__slots__", ()))
