"""An imagined cluster: znodes change, and the writes of the controller and leaders follow.

This module has no rules of its own. Each change is a record for `controller.step`. Its due writes return as records of
observed writes, until no write is due.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from controller.contract.ids import NO_BROKER, BrokerId, TopicPartition, Zxid
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import Record, RecordKind
from controller.restore.altered_context import request_shutdown, without_departures
from controller.rules.assignment import ReplicaAssignment
from controller.step import Outcome, steps
from controller.view.types import FOLLOWING, Broker, Context, Partition
from questions.question import NotFoundError

_REASSIGN: Final = "/admin/reassign_partitions"
_BETWEEN_CHANGES_MS: Final = 1  # the imagined cluster does not wait, but it keeps the order in time
_REASSIGNED_AT_ONCE: Final = 100  # each is an event, and each write looks through all events under way
# Versions for znodes that were never seen, because higher ones would mean a newer release with other rules.
_ANY_BROKER_VERSION: Final = 5
_ANY_TOPIC_VERSION: Final = 3
_ROUNDS: Final = 1_000  # chains of writes are much shorter, and a longer one has no end


class NoControllerError(NotFoundError):
    """A cluster without predictions: it was not read, KRaft leads, or its writes do not end."""


def at_rest(context: Context) -> Context:
    """Return the cluster after the controller's due writes. Raise NoControllerError."""
    return HypotheticalCluster(context).context


class HypotheticalCluster:
    """A cluster whose brokers leave and return and whose partitions move. The original context does not change.

    The controller's due writes come first. Each change is played to its end: all writes of the controller, and those of
    leaders whose followers caught up. `touched` are the partitions with changed rows. Raise NoControllerError.
    """

    def __init__(self, context: Context) -> None:
        if context.header.phase is not FOLLOWING:
            raise NoControllerError("Kontrast has not read the cluster completely, and cannot predict")
        if context.header.led_by_kraft:
            raise NoControllerError("KRaft leads, and ZooKeeper lacks the records that determine its actions")
        self.context = context
        self.touched: set[TopicPartition] = set()
        self._unwritten: set[TopicPartition] = set()
        self._registrations: dict[BrokerId, Broker] = {}
        self._finish_what_is_due()

    @property
    def brokers(self) -> Collection[BrokerId]:
        """Return registered brokers."""
        return self.context.header.brokers.keys()

    def lose(self, brokers: Collection[BrokerId]) -> None:
        """Crash these brokers at the same moment. Unregistered ones are lost already."""
        header = self.context.header
        lost = [broker for broker in sorted(brokers) if broker in header.brokers]
        self._registrations.update({broker: header.brokers[broker] for broker in lost})
        if header.controller in lost:
            self._delete("/controller")
        for broker in lost:
            self._delete(f"/brokers/ids/{broker}")
        self._elect_controller()
        self._play()
        self.context = without_departures(self.context, lost)  # no transaction of ZooKeeper shows when they left

    def shut_down(self, broker: BrokerId) -> None:
        """Let a broker ask for its shutdown until it leads no movable partition, and then close its session."""
        if broker not in self.context.header.brokers:
            return
        self._take(request_shutdown(self.context, broker, shows_steps=False))
        self._play()
        self.lose((broker,))

    def restore(self, brokers: Iterable[BrokerId]) -> None:
        """Let brokers register again, with the listeners and racks they had, and let their replicas catch up."""
        header = self.context.header
        for broker in sorted(set(brokers) - header.brokers.keys()):
            departed = header.departures.last.get(broker)
            was = self._registrations.get(broker) or (departed.was if departed is not None else None)
            endpoints, rack = (was.endpoints, was.rack) if was is not None else ((), None)
            version = header.configuration.evidence.broker_version or _ANY_BROKER_VERSION
            protocols = {endpoint.partition("://")[0]: "PLAINTEXT" for endpoint in endpoints}
            content = {"version": version, "jmx_port": -1, "host": "", "port": -1, "endpoints": endpoints, "rack": rack}
            content["listener_security_protocol_map"] = protocols
            path = f"/brokers/ids/{broker}"
            self._write(path, content, owner=self._next_zxid(), created=True)
        self._elect_controller()
        self._play()
        self._catch_up(self._lagging())

    def reassign(self, targets: dict[TopicPartition, tuple[BrokerId, ...]]) -> None:
        """Request a reassignment and play it as far as the live brokers allow, after all lagging replicas caught up.

        Partitions that surely complete are requested in parts, because a controller takes the next part only after the
        last one is complete. All other partitions follow at once. The order does not matter, because the end of a
        partition does not depend on other partitions.
        """
        self._catch_up(self._lagging())
        done = [tp for tp, to in targets.items() if self._can_finish(tp, to)]
        parts = [done[at : at + _REASSIGNED_AT_ONCE] for at in range(0, len(done), _REASSIGNED_AT_ONCE)]
        parts.append(list(targets.keys() - set(done)))
        touched = set(self.touched)
        for part in filter(None, parts):
            self.touched.clear()
            self._reassign_at_once({tp: targets[tp] for tp in sorted(part)})
            touched |= self.touched
        self.touched |= touched

    def _can_finish(self, tp: TopicPartition, target: tuple[BrokerId, ...]) -> bool:
        partition = self.context.topics.partition(tp)
        value = partition.zk_state if partition else None
        if partition is None or value is None or not self._is_live(value.leader, partition):
            return False
        return not partition.reassigning and all(self._is_live(replica, partition) for replica in target)

    def _reassign_at_once(self, targets: dict[TopicPartition, tuple[BrokerId, ...]]) -> None:
        entries = [{"topic": tp.topic, "partition": tp.partition, "replicas": to} for tp, to in targets.items()]
        self._write(_REASSIGN, {"version": 1, "partitions": entries}, created=True)
        self._play()
        self._catch_up()
        self._delete(_REASSIGN)
        self._play()

    def _finish_what_is_due(self) -> None:
        if self.context.header.events:
            self._unwritten = {
                TopicPartition(name, number)
                for name, topic in self.context.topics
                for number, partition in topic.partitions.items()
                if partition.write_due or partition.pending_assignments
            }
        self._elect_controller()
        self._play()

    def _elect_controller(self) -> None:
        """Let the first live broker become controller if the cluster lacks one. The choice changes no election."""
        header = self.context.header
        if header.controller != NO_BROKER or not header.brokers:
            return
        broker = min(header.brokers)
        epoch, session = header.controller_epoch + 1, header.brokers[broker].session
        self._write("/controller", {"version": 1, "brokerid": broker}, owner=session, created=True)
        self._write("/controller_epoch", epoch)

    def _play(self) -> None:
        """Write the controller's due writes in order, until no write is due."""
        for _ in range(_ROUNDS):
            due = sorted(self._due_states())
            assignments = [tp for tp in self._unwritten if self._pending_assignment(tp)]
            if not (due or assignments):
                self._unwritten.clear()
                return
            self._unwritten.clear()
            records = [self._state_record(tp, value, after) for after, (_, tp, value) in enumerate(due)]
            self._step(records)
            for topic in sorted({tp.topic for tp in assignments}):
                self._write_assignment(topic)
        raise NoControllerError("the controller's writes do not end")

    def _due_states(self) -> Iterator[tuple[tuple[int, int, int], TopicPartition, LeaderAndIsr]]:
        """Yield the controller's next write of each partition's state, behind its place in the order of writing."""
        epoch = self.context.header.controller_epoch
        for tp in self._unwritten:
            partition = self.context.topics.partition(tp)
            for action in partition.queue if partition else ():
                value = action.apply(partition.zk_state, epoch) if partition and action.writes else None
                if value is not None:
                    yield (action.event, action.at_batch, action.ordinal), tp, value
                    break

    def _pending_assignment(self, tp: TopicPartition) -> ReplicaAssignment | None:
        partition = self.context.topics.partition(tp)
        return partition.pending_assignments[0] if partition and partition.pending_assignments else None

    def _write_assignment(self, name: str) -> None:
        """Write a topic's znode with the next assignment of each of its partitions."""
        topic = self.context.topics.get(name)
        if topic is None:
            return
        written = {
            number: self._pending_assignment(TopicPartition(name, number)) or each.zk_assignment or each.assignment
            for number, each in topic.partitions.items()
        }
        content: dict[str, object] = {
            "version": self.context.header.configuration.evidence.topic_version or _ANY_TOPIC_VERSION,
            "partitions": {number: each.replicas for number, each in written.items()},
            "adding_replicas": {number: each.adding for number, each in written.items() if each.adding},
            "removing_replicas": {number: each.removing for number, each in written.items() if each.removing},
        }
        if topic.topic_id:
            content["topic_id"] = topic.topic_id
        self._write(f"/brokers/topics/{name}", content)

    def _lagging(self) -> set[TopicPartition]:
        """Return the partitions whose ISR lacks a replica."""
        return {
            TopicPartition(name, number)
            for name, topic in self.context.topics
            for number, partition in topic.partitions.items()
            if partition.zk_state is not None and len(partition.zk_state.isr) < len(partition.replicas)
        }

    def _catch_up(self, lagging: Collection[TopicPartition] = ()) -> None:
        """Let the leaders of these and of touched partitions add every live replica to the ISR.

        The controller's writes in answer follow, until nothing changes.
        """
        for _ in range(_ROUNDS):
            candidates = sorted(self.touched.union(lagging))
            grown = [(tp, value) for tp in candidates if (value := self._with_all_live_in_sync(tp))]
            if not grown:
                return
            records = [self._state_record(tp, value, after) for after, (tp, value) in enumerate(grown)]
            self._step(records)
            self._play()
        raise NoControllerError("the leaders' writes do not end")

    def _with_all_live_in_sync(self, tp: TopicPartition) -> LeaderAndIsr | None:
        """Return the state that the leader writes after all live replicas caught up, if it is a change."""
        topic, partition = self.context.topics.get(tp.topic), self.context.topics.partition(tp)
        value = partition.zk_state if partition else None
        if topic is None or partition is None or value is None or not self._is_live(value.leader, partition):
            return None
        if topic.queued_for_deletion:
            return None
        lagging = [
            replica for replica in partition.replicas if replica not in value.isr and self._is_live(replica, partition)
        ]
        isr = (*value.isr, *lagging)
        return LeaderAndIsr(value.leader, value.leader_epoch, isr, value.controller_epoch) if lagging else None

    def _is_live(self, broker: BrokerId, partition: Partition) -> bool:
        return broker in self.context.header.brokers and broker not in partition.offline_dirs

    def _state_record(self, tp: TopicPartition, value: LeaderAndIsr, after: int) -> Record:
        partition = self.context.topics.partition(tp)
        before = partition.zk_state if partition else None
        content = {
            "controller_epoch": value.controller_epoch,
            "leader": value.leader,
            "version": 1,
            "leader_epoch": value.leader_epoch,
            "isr": value.isr,
            "leader_recovery_state": int(value.recovering),
        }
        return self._record(
            RecordKind.NODE,
            after,
            path=f"/brokers/topics/{tp.topic}/partitions/{tp.partition}/state",
            data=json.dumps(content),
            version=before.partition_epoch + 1 if before else 0,
            mzxid=Zxid(self._next_zxid() + after),
        )

    def _write(self, path: str, content: object, *, owner: int = 0, created: bool = False) -> None:
        zxid = self._next_zxid()
        czxid, version = (zxid, 0) if created else (-1, 1)
        record = self._record(
            RecordKind.NODE,
            path=path,
            data=json.dumps(content),
            czxid=czxid,
            mzxid=zxid,
            version=version,
            ephemeral_owner=owner,
        )
        self._step([record])

    def _delete(self, path: str) -> None:
        self._step([self._record(RecordKind.DELETED, path=path)])

    def _step(self, records: Sequence[Record]) -> None:
        self._take(steps(self.context, records, shows_steps=False))

    def _take(self, outcome: Outcome) -> None:
        self.context = outcome.context
        changed = {TopicPartition(row.topic, row.partition) for row in outcome.effects if type(row) is PartitionRow}
        self.touched |= changed
        self._unwritten |= changed

    def _next_zxid(self) -> Zxid:
        return Zxid(self.context.header.zxid + 1)

    def _record(self, kind: RecordKind, after: int = 0, **fields: object) -> Record:
        header = self.context.header
        return Record(
            cluster=header.cluster,
            generation=header.position.generation,
            seq=header.position.seq + 1 + after,
            kind=kind,
            observed_ms=header.wall_ms + _BETWEEN_CHANGES_MS * (1 + after),
            zxid=Zxid(self._next_zxid() + after),
            **fields,  # type: ignore[arg-type]
        )
