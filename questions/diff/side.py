"""A side of a comparison: its view of the controller, brokers and partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from controller.contract.ids import NO_LEADER, BrokerId
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.metadata_rows import Assignment, BrokerRow, ControllerRow, PartitionRow
from controller.contract.row import Row
from controller.rules.assignment import ReplicaAssignment
from controller.rules.states import PARTITION_WORDS
from controller.view.metadata import BrokerMetadata, ControllerMetadata, Metadata, PartitionMetadata
from controller.view.types import Context, Partition, Topic

Value = bool | int | str | tuple[int, ...] | tuple[str, ...] | None
Fields = Mapping[str, Value]


class Kind(Enum):
    """Kind of a subject."""

    CONTROLLER = "controller"
    BROKER = "broker"
    PARTITION = "partition"


class Subject(NamedTuple):
    """Controller, broker or partition. Only a partition has a topic and a number."""

    kind: Kind
    topic: str = ""
    number: int = -1

    def __str__(self) -> str:
        if self.kind is Kind.PARTITION:
            return f"{self.topic}-{self.number}"
        return "controller" if self.kind is Kind.CONTROLLER else f"broker {self.number}"


class Side(NamedTuple):
    """Fields of each subject, and the name of the side. A missing field is not compared."""

    name: str
    subjects: Mapping[Subject, Fields]


CONTROLLER = Subject(Kind.CONTROLLER)


def of_metadata(metadata: Iterable[Metadata]) -> Iterator[tuple[Subject, Fields]]:
    """Yield the subjects in the lines of `kontrast snapshot --json`."""
    for line in metadata:
        match line:
            case ControllerMetadata():
                yield CONTROLLER, {"broker": line.broker, "epoch": line.epoch}
            case BrokerMetadata():
                yield Subject(Kind.BROKER, number=line.broker), _broker(line) if line.registered else _AWAY
            case PartitionMetadata():
                yield Subject(Kind.PARTITION, line.topic, line.partition), _partition(line)


def of_context(context: Context) -> Iterator[tuple[Subject, Fields]]:
    """Yield ZooKeeper's state as the replica knows it, with the controller's state of each partition."""
    header = context.header
    yield CONTROLLER, {"broker": header.controller, "epoch": header.controller_epoch}
    hosts: set[BrokerId] = set()
    for subject, topic, partition in _partitions(context):
        hosts.update(partition.replicas)
        yield (
            subject,
            {
                "state": PARTITION_WORDS[partition.state],
                **_leadership(partition.zk_state),
                **_assigned(partition.zk_assignment or partition.assignment),
                "deleting": topic.queued_for_deletion,
            },
        )
    for broker in sorted(hosts - header.brokers.keys()):
        yield Subject(Kind.BROKER, number=broker), _AWAY
    for broker, known in sorted(header.brokers.items()):
        yield (
            Subject(Kind.BROKER, number=broker),
            {"registered": not known.inferred, "epoch": known.epoch, "endpoints": known.endpoints, "rack": known.rack},
        )


def of_rows(rows: Collection[Row]) -> Iterator[tuple[Subject, Fields]]:
    """Yield the subjects in rows of the output `metadata`."""
    hosts = {broker for row in rows if isinstance(row, PartitionRow) for broker in row.replicas}
    for row in rows:
        match row:
            case ControllerRow():
                yield CONTROLLER, {"broker": row.broker, "epoch": row.epoch}
            case BrokerRow() if row.registered or row.inferred:
                known: Fields = {"epoch": row.epoch, "endpoints": row.endpoints, "rack": row.rack}
                yield Subject(Kind.BROKER, number=row.broker), {"registered": row.registered, **known}
            case BrokerRow() if row.broker in hosts:
                yield Subject(Kind.BROKER, number=row.broker), _AWAY
            case PartitionRow():
                shown = row.details.assignment_in_zookeeper if row.details is not None else None
                assigned = {} if shown is None else _assigned(shown)
                yield Subject(Kind.PARTITION, row.topic, row.partition), {**_partition(row), **assigned}


def observed(context: Context) -> Iterator[tuple[Subject, Fields]]:
    """Yield state and assignment of each partition as ZooKeeper has them."""
    for subject, _, partition in _partitions(context):
        assignment = partition.zk_assignment or partition.assignment
        yield subject, {**_leadership(partition.zk_state), "replicas": assignment.replicas}


def predicted(context: Context) -> Iterator[tuple[Subject, Fields]]:
    """Yield state and assignment of each partition once the controller has done the writes that it must do."""
    epoch = context.header.controller_epoch
    for subject, _, partition in _partitions(context):
        due = partition.pending_assignments
        assignment = due[-1] if due else partition.zk_assignment or partition.assignment
        yield subject, {**_leadership(partition.value(epoch)), "replicas": assignment.replicas}


_AWAY: Fields = {"registered": False}


def _broker(line: BrokerMetadata) -> Fields:
    return {"registered": True, "epoch": line.epoch, "endpoints": line.endpoints, "rack": line.rack}


def _partition(said: PartitionMetadata | PartitionRow) -> Fields:
    return {
        "state": said.state,
        "leader": said.leader,
        "leader_epoch": said.leader_epoch,
        "isr": said.isr,
        "replicas": said.replicas,
        "adding_replicas": said.adding_replicas,
        "removing_replicas": said.removing_replicas,
        "deleting": said.deleting,
    }


def _assigned(assignment: ReplicaAssignment | Assignment) -> Fields:
    return {
        "replicas": assignment.replicas,
        "adding_replicas": assignment.adding,
        "removing_replicas": assignment.removing,
    }


def _partitions(context: Context) -> Iterator[tuple[Subject, Topic, Partition]]:
    for name, topic in context.topics:
        if topic.exists:
            for number, partition in topic.partitions.items():
                yield Subject(Kind.PARTITION, name, number), topic, partition


def _leadership(state: LeaderAndIsr | None) -> Fields:
    if state is None:
        return {"leader": NO_LEADER, "leader_epoch": -1, "isr": ()}
    return {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": state.isr}
