"""End of a transaction, which publishes, judges and counts the changes of each record.

Everything that a record touched is concluded here once, so that no row, count or alert can be forgotten.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from controller.alerts import lifecycle
from controller.contract.effect_rows import PROVISIONAL
from controller.contract.ids import PartitionId, TopicPartition
from controller.contract.records import Record
from controller.contract.row import Row
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.context import FOLLOWING, Context
from controller.model.leadership import StateChange, StateEntry, Write
from controller.model.topics import InTopic, Partition, Topic, Topics
from controller.model.wall_clock import shown
from controller.transaction.transaction import Transaction
from controller.view.counting import GaugeIndex, count_gauges
from controller.view.gauges import gauges_row
from controller.view.health import judged, reason_for
from controller.view.invariants import check_queues
from controller.view.migration import migration_row
from controller.view.partition_issues import PartitionIssueIndex, index_issues
from controller.view.rows import ordinary_row, partition_row, topic_row
from controller.view.state_epochs import recounted

replace = msgspec.structs.replace


class Outcome(msgspec.Struct, frozen=True):
    """Context after a record, and the rows to be published, in order."""

    context: Context
    effects: tuple[Row, ...]


class Conclusion:
    """End of each record of a transaction. Make it before the first record is handled."""

    __slots__ = (
        "_certainty",
        "_counted_by",
        "_events",
        "_gauge_index",
        "_header",
        "_issue_index",
        "_ordinary",
        "_others",
        "_requests",
        "_resized",
        "_rows",
        "_state",
    )

    def __init__(self, tx: Transaction) -> None:
        self._state, self._header, self._rows = tx.state, tx.header, tx.rows
        self._events, self._requests, self._certainty = tx.events, tx.requests, tx.certainty
        self._resized: set[str] = set()  # topics with a partition that has another number of replicas now
        self._start_counting()

    def _start_counting(self) -> None:
        tally = self._header.tally
        self._counted_by = rules = self._state.rules
        self._gauge_index = GaugeIndex(tally.gauges, rules)
        self._issue_index = PartitionIssueIndex(tally.issues, tally.offline_by_topic, rules)

    def next_record(self, record: Record) -> None:
        """Conclude the current record, and advance to the next one."""
        self._conclude_record()
        self._state.next_record(record)
        self._events.next_record()
        self._rows.begin(record)

    def finish(self) -> Outcome:
        """Conclude the last record, and return the new context with all rows."""
        self._conclude_record()
        topics = self._state.topics.freeze()
        if self._rows.shown.unchanged:
            check_queues(self._header, topics)
        context = Context(self._header, topics, self._next_replica_index(topics))
        return Outcome(context, tuple(self._rows.effects))

    def _conclude_record(self) -> None:
        """Publish certain and expected effects, and judge the touched partitions."""
        if not self._events.is_idle:
            self._certainty.publish_certain({**self._header.events, **self._events.open})
        at_heartbeat = self._rows.shown.gauges
        has_news = self._conclude_touched() or at_heartbeat
        wants_judging = (
            has_news and lifecycle.may_judge_again(self._header, at_heartbeat=at_heartbeat)
        ) or self._header.brokers is not self._state.judged_brokers
        if self._events.fresh:
            self._requests.publish_expected_requests()
        if self._events.open:
            self._store_events()
        if wants_judging or self._rows.shown.unchanged:
            lifecycle.judge(self._state, self._rows)
            self._state.judged_brokers = self._header.brokers
        if self._header.migration.seen and self._header.phase is FOLLOWING:
            self._publish_migration()
        if at_heartbeat:
            self._rows.effects.append(gauges_row(self._header, self._rows.stamp()))
        if self._header.clocks.walls:
            rows, walls = self._rows, self._header.clocks.walls
            rows.effects[rows.first :] = [shown(row, walls) for row in rows.effects[rows.first :]]

    def _store_events(self) -> None:
        """Replace the events that this record changed, and drop those that are over."""
        events = dict(self._header.events)
        for key, event in self._events.open.items():
            if event.pending > 0:
                events[key] = event.stored()
            else:
                events.pop(key, None)
        self._header.events = events

    def _publish_migration(self) -> None:
        """Publish the migration's row at heartbeats, complete reads and new phases. Other changes wait for these."""
        migration = self._header.migration
        if not (self._rows.shown.gauges or migration.since_ms == self._header.time_ms):
            return
        row = migration_row(self._header, self._rows.stamp())
        if row is not None:
            self._rows.effects.append(row)

    def _conclude_touched(self) -> bool:
        """Publish and count touched partitions and topics. Return whether alerts must be judged at once."""
        follows = self._header.phase is FOLLOWING
        if not (follows or self._state.touched_topics):
            return False
        issue_index = self._issue_index
        issue_index.wants_judging = False
        ends_read = self._rows.shown.unchanged
        if ends_read:
            self._judge_all()
        else:
            for tp, before in self._state.touched.items():
                self._judge_and_count(tp, before)
        for name, topic in self._state.touched_topics.items():
            self._gauge_index.recount_topic(topic, self._state.topics.get(name))
        if follows:
            self._take_counts()
        shows_all = ends_read and self._rows.shown.partitions
        for tp, before in self._state.touched.items():  # with complete counts, on which sentences depend
            if not (shows_all and self._state.partition(tp)):
                self._publish(tp, before)
        if shows_all:
            self._publish_all()
        if self._rows.shown.partitions and (self._state.touched_topics or self._resized):
            self._publish_topics()
        self._state.follow_by_index(self._state.topics)
        return issue_index.wants_judging

    def _publish_topics(self) -> None:
        """Publish a row of each topic whose row has changed. After a complete read, publish a row of every topic."""
        for name in sorted({*self._resized, *self._state.touched_topics}):
            now = self._state.topics.get(name)
            then = self._state.touched_topics.get(name, now)
            shown, before = _row_facts(now), _row_facts(then)
            differs = shown != before or name in self._resized or (self._rows.shown.unchanged and shown is not None)
            if differs and (shown is None or self._header.phase is FOLLOWING):
                self._rows.effects.append(topic_row(name, now, self._rows.stamp()))
        self._resized = set()

    def _judge_all(self) -> None:
        """Judge the partitions that the end of a complete read touched. The others are ordinary."""
        header, rules = self._header, self._state.rules
        touched: defaultdict[str, set[PartitionId]] = defaultdict(set)
        for tp in self._state.touched:
            touched[tp.topic].add(tp.partition)
        self._ordinary, self._others = {}, []
        for name, topic in self._state.topics:
            others: dict[PartitionId, Partition] = {}
            for number in sorted(touched[name].intersection(topic.partitions)) if name in touched else ():
                partition = topic.partitions[number]
                predicted = partition.value(header.controller_epoch)
                others[number] = now = judged(partition, topic, header, rules, predicted, header.time_ms)
                if now is not partition:
                    self._state.topics.own(name).partitions[number] = now
            partitions = topic.partitions
            self._ordinary[name] = [at for number, at in partitions.items() if number not in others]
            self._others.append((name, replace(topic, partitions=others)))

    def _publish_all(self) -> None:
        """Publish the row of every partition at the end of a complete read."""
        effects, first, begins = self._rows.effects, self._rows.first, self._rows.stamp()[:3]
        ends = self._rows.stamp()[4:]
        for name, topic in self._others:
            others, partitions = topic.partitions, self._state.topics[name].partitions
            if not others:
                numbered = enumerate(partitions.items(), len(effects) - first)
                effects += [ordinary_row(name, at, part, (*begins, number, *ends)) for number, (at, part) in numbered]
                continue
            for number, partition in partitions.items():
                if number in others:
                    self._publish(TopicPartition(name, number), (topic, partition))
                else:
                    stamp = (*begins, len(effects) - first, *ends)
                    effects.append(ordinary_row(name, number, partition, stamp))

    def _take_counts(self) -> None:
        header, topics, rules = self._header, self._state.topics, self._state.rules
        if self._rows.shown.unchanged:
            header.tally.gauges = count_gauges(self._others, rules, self._ordinary)
            header.tally.issues, header.tally.offline_by_topic = index_issues(self._others, header)
            self._start_counting()
        elif rules != self._counted_by:
            header.tally.judged_by = None  # also if the rules change back before the partitions are judged
            header.tally.gauges = count_gauges(topics, rules)
            header.tally.issues, header.tally.offline_by_topic = index_issues(topics, header)
            self._start_counting()
        else:
            header.tally.gauges, header.tally.issues = self._gauge_index.counts, self._issue_index.groups
            header.tally.offline_by_topic = self._issue_index.offline_by_topic

    def _next_replica_index(self, topics: Topics) -> BrokerReplicaIndex | None:
        if self._header.phase is not FOLLOWING:
            return None
        if (
            self._rows.shown.unchanged
        ):  # a reader of the context alone may never need the index, which is then made on demand
            return BrokerReplicaIndex(topics, self._others) if self._rows.shown.partitions else None
        return self._state.follow_by_index(topics)

    def _judge_and_count(self, tp: TopicPartition, was: InTopic) -> None:
        """Judge and count a touched partition as it is now."""
        header, now, (then, before) = self._header, self._state.topics.get(tp.topic), was
        partition = now.partitions.get(tp.partition) if now else None
        if now is not None and partition is not None:
            predicted = partition.value(header.controller_epoch)
            shown = judged(partition, now, header, self._state.rules, predicted, header.time_ms)
            if shown is not partition:
                self._state.topics.own(tp.topic).partitions[tp.partition] = partition = shown
        if header.migration.seen:
            epochs = header.migration.partitions_by_epoch
            header.migration.partitions_by_epoch = recounted(epochs, before, partition)
        if header.phase is FOLLOWING:
            differs = partition != before
            if differs or not (then and now and _count_alike(then, now)):
                self._gauge_index.recount(was, (now, partition))
                self._issue_index.recount(tp, was, (now, partition), header.time_ms)
            self._state.note_in_index(tp, before, partition, differs=differs)
            if before and partition and len(before.replicas) != len(partition.replicas):
                self._resized.add(tp.topic)

    def _publish(self, tp: TopicPartition, was: InTopic) -> None:
        """Publish what a touched partition's row shows otherwise now, and its expected changes."""
        now = self._state.topics.get(tp.topic)
        partition = now.partitions.get(tp.partition) if now else None
        if now is None or partition is None:
            assert was[1] is not None, f"{tp} was touched, and was never there"
            if self._rows.shown.partitions:
                self._publish_gone(tp, was[1])
            return
        if partition.queue and self._events.fresh:
            self._publish_expected(tp, partition)
        if self._rows.shown.partitions and (self._rows.shown.unchanged or _shown_otherwise(was, partition, now)):
            predicted = partition.value(self._header.controller_epoch)
            problem, due = partition.problem, predicted if partition.write_due else None
            reason = reason_for(problem, partition, now, self._header, predicted) if problem else None
            self._rows.effects.append(partition_row(tp, partition, now, due, reason, self._rows.stamp()))

    def _publish_expected(self, tp: TopicPartition, partition: Partition) -> None:
        value = partition.zk_state
        for action in partition.queue:
            if isinstance(action, Write):
                value = action.apply(value, self._events.open_event(action.event).epoch) or value
            elif action.event not in self._events.fresh:
                continue
            elif isinstance(action, StateChange):
                self._events.publish_state_change(tp, action, PROVISIONAL, action.value or value)
            else:
                self._requests.expect(tp, action, action.value or value if isinstance(action, StateEntry) else None)

    def _publish_gone(self, tp: TopicPartition, before: Partition) -> None:
        gone = Partition(before.replicas, zk_state=before.zk_state)
        self._rows.effects.append(partition_row(tp, gone, None, None, None, self._rows.stamp()))


def _shown_otherwise(was: InTopic, now: Partition, topic: Topic) -> bool:
    """Return whether a row of the partition shows anything that its last row did not."""
    in_topic, before = was
    if (in_topic is not None and in_topic.queued_for_deletion) is not topic.queued_for_deletion:
        return True
    return now != before and (now.problem is not None or not _differ_by_entries(before, now))


def _count_alike(before: Topic, now: Topic) -> bool:
    """Return whether an unchanged partition adds the same to counts and issues under both topics."""
    return (
        before.queued_for_deletion is now.queued_for_deletion
        and before.min_insync_replicas == now.min_insync_replicas
        and before.unclean_election is now.unclean_election
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
