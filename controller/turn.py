"""One step in progress: the context being changed, and the effects so far.

Here belong the few ways in which a step may change a context, so that counts, rows and alerts can never be forgotten.
What changes and why is decided by the machines and handlers that are given a turn.
"""

from __future__ import annotations

from typing import Any

import msgspec

from controller.alerts import partition_alert
from controller.context import Context, Event, Header, Phase
from controller.gauges import counted, counted_for_topic
from controller.health import LASTING, UNUSABLE, Problem, problem_of, reason_for
from controller.leadership import Create, Elect, Intent, LeaderAndIsr, Remove
from controller.outputs import PartitionRow, Request, Row, Status, Transition
from controller.records import Record
from controller.states import PartitionState, ReplicaState
from controller.topics import Partition, Topic, TopicPartition

replace = msgspec.structs.replace


class Turn:
    """A step's private copy of the context."""

    __slots__ = ("_before", "_ordinal", "effects", "event", "header", "record", "republish", "topics")

    def __init__(self, context: Context, record: Record) -> None:
        self.header: Header = replace(
            context.header,
            position=record.position,
            time_ms=max(record.observed_ms, context.header.time_ms),
            zxid=max(record.zxid, context.header.zxid),
            counts=dict(context.header.counts),
        )
        self.topics = context.topics.draft()
        self.record = record
        self.effects: list[Row] = []
        self.event: Event | None = None
        self.republish = False  # give each touched partition's row, changed or not
        self._ordinal = 0
        self._before: dict[TopicPartition, Partition | None] = {}

    def stamp(self) -> dict[str, Any]:
        """The fields that every row of this step has."""
        record = self.record
        return {
            "cluster": record.cluster,
            "generation": record.generation,
            "seq": record.seq,
            "ordinal": len(self.effects),
            "zxid": record.zxid,
            "time_ms": record.observed_ms,
        }

    def count(self, key: str, by: int = 1) -> None:
        """Add to one of the cluster's counts."""
        self.header.counts[key] = self.header.counts.get(key, 0) + by

    # --- topics and partitions

    def topic(self, name: str) -> Topic | None:
        """The topic as it is in this step, None if unknown."""
        return self.topics.get(name)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """The partition as it is in this step, None if unknown."""
        topic = self.topics.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def put_topic(self, name: str, topic: Topic | None) -> None:
        """Replace a topic (None removes it), and count its partitions by the new settings."""
        before = self.topics.get(name)
        for number, partition in before.partitions.items() if before else ():
            self.touch(TopicPartition(name, number))
            self._recount(before, partition, -1)
        for key in counted_for_topic(before) if before else ():
            self.count(key, -1)
        self.topics.put(name, topic)
        for key in counted_for_topic(topic) if topic else ():
            self.count(key)
        for number, partition in topic.partitions.items() if topic else ():
            self._before.setdefault(TopicPartition(name, number), None)
            self._recount(topic, partition, 1)

    def put_partition(self, tp: TopicPartition, partition: Partition) -> None:
        """Replace a partition of a known topic."""
        self.touch(tp)
        topic = self.topics.get(tp.topic)
        assert topic is not None, f"{tp} of an unknown topic"
        before = topic.partitions.get(tp.partition)
        if before is not None:
            self._recount(topic, before, -1)
        self._recount(topic, partition, 1)
        self.topics.put(tp.topic, replace(topic, partitions={**topic.partitions, tp.partition: partition}))

    def touch(self, tp: TopicPartition) -> None:
        """Judge the partition's health at the end of the step, though nothing of its own may change."""
        if tp not in self._before:
            self._before[tp] = self.partition(tp)

    def _recount(self, topic: Topic | None, partition: Partition, by: int) -> None:
        counts = self.header.counts
        for key in counted(topic, partition) if topic else ():
            counts[key] = counts.get(key, 0) + by

    # --- events, intents and what is published of them

    def begin(self, kind: str, cause: str) -> Event:
        """Start an event of the controller; the transitions that follow belong to it."""
        header = self.header
        self.event = Event(header.next_event, kind, cause, self.record.zxid, self.record.observed_ms)
        header.next_event += 1
        self._ordinal = 0
        return self.event

    def next_ordinal(self) -> int:
        """The place of the next effect within the event."""
        self._ordinal += 1
        return self._ordinal - 1

    def expect(self, tp: TopicPartition, partition: Partition, intent: Intent) -> None:
        """Hold the intent until ZooKeeper shows its write."""
        event = self.header.events.get(intent.event) or self.event
        assert event is not None, "an intent of no event"
        self._set_due(event, event.due + 1)
        self.put_partition(tp, replace(partition, pending=(*partition.pending, intent)))

    def settle(self, intent: Intent) -> Event | None:
        """Let go of an intent that was written or cut; gives its event."""
        event = self.header.events.get(intent.event)
        if event is not None:
            self._set_due(event, event.due - 1)
        return event

    def _set_due(self, event: Event, due: int) -> None:
        events = {**self.header.events, event.id: replace(event, due=due)}
        if due <= 0:
            del events[event.id]
        self.header.events = events

    def effect_id(self, event: int, ordinal: int) -> str:
        """The key that an effect keeps from its prediction to its confirmation."""
        return f"{self.header.controller_epoch}-{event}-{ordinal}"

    def moved(self, subject: str, from_state: str, to_state: str, **details: Any) -> None:  # noqa: ANN401 (row fields)
        """Publish a transition that is certain at once."""
        assert self.event is not None, "a transition outside of an event"
        self._publish(Transition, self.event, self.next_ordinal(), Status.FINAL, subject=subject,
                      from_state=from_state, to_state=to_state, **details)  # fmt: skip

    def publish_intent(
        self, tp: TopicPartition, intent: Intent, status: Status, event: Event | None, value: LeaderAndIsr | None = None
    ) -> None:
        """Publish the transition that the intent's write is part of; a bump of the leader epoch has none."""
        described = _described(intent)
        if described is None:
            return
        details: dict[str, Any] = {"topic": tp.topic, "partition": tp.partition} | described
        if value is not None and described["subject"] == "partition":
            details |= {"leader": value.leader, "leader_epoch": value.leader_epoch, "isr": value.isr}
        known = event or Event(intent.event, "unknown", "its event is no longer known", -1, 0)
        self._publish(Transition, known, intent.ordinal, status, **details)

    def request(self, api: str, brokers: tuple[int, ...], **content: Any) -> None:  # noqa: ANN401 (row fields)
        """Publish a request that the controller must send."""
        assert self.event is not None, "a request outside of an event"
        self._publish(Request, self.event, self.next_ordinal(), Status.PROVISIONAL, api=api, brokers=brokers, **content)

    def _publish(self, row: Any, event: Event, ordinal: int, status: Status, **fields: Any) -> None:  # noqa: ANN401
        self.effects.append(
            row(
                **self.stamp(),
                effect=self.effect_id(event.id, ordinal),
                status=status,
                cause=f"{event.kind}: {event.cause}",
                controller_epoch=self.header.controller_epoch,
                **fields,
            )
        )

    # --- the end of the step

    def finish(self) -> Context:
        """Judge what was touched, publish its rows and alerts, and give the new context."""
        for tp, before in self._before.items():
            self._publish_partition(tp, before)
        return Context(self.header, self.topics.freeze())

    def _publish_partition(self, tp: TopicPartition, before: Partition | None) -> None:
        topic = self.topics.get(tp.topic)
        partition = topic.partitions.get(tp.partition) if topic else None
        if topic is None or partition is None:
            if before is not None:
                gone = Partition(before.replicas, before.replica_states, confirmed=before.confirmed)
                self.effects.append(_row(self, tp, gone, None))
                self.effects.extend(partition_alert(self, tp, before, gone, None))
            return
        if self.header.phase is not Phase.FOLLOWING:
            return
        problem = problem_of(partition, topic, self.header)
        word = problem.value if problem else None
        judged = replace(
            partition,
            problem=word,
            problem_since_ms=self._problem_since(partition, problem),
            alerted=word in LASTING or (partition.alerted and word in UNUSABLE),
        )
        if judged != partition:
            self.put_partition(tp, judged)
        if judged != before or self.republish:
            reason = reason_for(problem, judged, topic, self.header) if problem else None
            self.effects.append(_row(self, tp, judged, reason))
            self.effects.extend(partition_alert(self, tp, before, judged, reason))

    def _problem_since(self, partition: Partition, problem: Problem | None) -> int:
        if problem is None:
            return 0
        unusable = (problem.value in UNUSABLE, partition.problem in UNUSABLE)
        if partition.problem is not None and unusable[0] == unusable[1]:
            return partition.problem_since_ms
        return self.record.observed_ms


def _described(intent: Intent) -> dict[str, Any] | None:
    if isinstance(intent, Remove):
        return {
            "subject": "replica",
            "from_state": ReplicaState(intent.from_state).word,
            "to_state": ReplicaState.OFFLINE.word,
            "broker": intent.replica,
        }
    if isinstance(intent, (Create, Elect)):
        from_state = PartitionState.NEW if isinstance(intent, Create) else intent.from_state
        return {"subject": "partition", "from_state": from_state.word, "to_state": PartitionState.ONLINE.word}
    return None


def _row(turn: Turn, tp: TopicPartition, partition: Partition, reason: str | None) -> PartitionRow:
    value = partition.confirmed
    predicted = partition.value(turn.header.controller_epoch) if partition.pending else None
    return PartitionRow(
        **turn.stamp(),
        topic=tp.topic,
        partition=tp.partition,
        state=partition.state.word,
        leader=value.leader if value else -1,
        leader_epoch=value.leader_epoch if value else -1,
        isr=value.isr if value else (),
        replicas=partition.replicas,
        adding_replicas=partition.adding,
        removing_replicas=partition.removing,
        controller_epoch=value.controller_epoch if value else -1,
        partition_epoch=value.partition_epoch if value else -1,
        predicted_leader=predicted.leader if predicted else None,
        predicted_leader_epoch=predicted.leader_epoch if predicted else None,
        predicted_isr=predicted.isr if predicted else None,
        problem=partition.problem,
        problem_since_ms=partition.problem_since_ms if partition.problem else None,
        reason=reason,
    )
