"""The rows of unreadable znodes, and of the controller's steps: state changes and requests, expected or withdrawn."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Final

import msgspec

from controller.contract.ids import ControllerEpoch, Zxid
from controller.contract.records import Int64
from controller.contract.row import Row, RowBrokerEpoch, RowBrokerId, RowControllerEpoch, RowLeaderEpoch, RowPartitionId


class Status(Enum):
    """How sure an effect is: expected of the controller, seen in ZooKeeper, or withdrawn because it will not happen."""

    PROVISIONAL = "provisional"
    FINAL = "final"
    WITHDRAWN = "withdrawn"


# Named for themselves: to find a member in its enum takes Python 3.11 0.2 µs.
PROVISIONAL, FINAL, WITHDRAWN = Status


# The first fields of a row of the controller's steps: of the record, then of the effect.
EffectStamp = tuple[str, int, int, int, Zxid, int, str, Status, str, ControllerEpoch]


class Transition(Row, frozen=True, gc=False, tag="transition", omit_defaults=True):
    """State change of a partition, replica, topic, broker or controller."""

    output: ClassVar[str] = "transitions"

    effect: str  # <controller epoch>-<event>-<ordinal>: the same for the provisional, final and withdrawn rows
    status: Status
    cause: str
    controller_epoch: RowControllerEpoch
    subject: str  # partition | replica | topic | broker | controller
    from_state: str = msgspec.field(name="from")
    to_state: str = msgspec.field(name="to")
    topic: str | None = None
    partition: RowPartitionId | None = None
    broker: RowBrokerId | None = None  # the replica's broker, the broker, or the controller's broker
    leader: RowBrokerId | None = None
    leader_epoch: RowLeaderEpoch | None = None
    isr: tuple[RowBrokerId, ...] | None = None
    inferred_by: str = ""  # the rule of inference that its event rests on; empty: a znode announced the event
    inferred_from: str = ""  # the write that shows it: the path of its znode and the zxid


# The requests of the controller, by Kafka's names.
LEADER_AND_ISR: Final = "LeaderAndIsr"
UPDATE_METADATA: Final = "UpdateMetadata"
STOP_REPLICA: Final = "StopReplica"


class RequestedState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Partition state in a request, as in Kafka's `LeaderAndIsrPartitionState` and `UpdateMetadataPartitionState`.

    Fields that the request does not have are left out: a StopReplica has only the names, leader epoch and delete flag.
    """

    topic: str
    partition: RowPartitionId
    leader: RowBrokerId | None = None  # -1 none; -2 in UpdateMetadata while the topic is being deleted
    leader_epoch: RowLeaderEpoch | None = None  # in StopReplica from 2.6: -2 while its topic is deleted, -1 unknown
    isr: tuple[RowBrokerId, ...] | None = None
    replicas: tuple[RowBrokerId, ...] | None = None
    controller_epoch: RowControllerEpoch | None = None  # of the controller whose write the state is
    partition_epoch: Int64 | None = None  # the state znode's data version, left out where it was not read
    leader_recovery_state: Int64 = 0  # LeaderAndIsr from 3.2; 1: recovering from an unclean election
    is_new: bool = False  # LeaderAndIsr from 1.0
    adding_replicas: tuple[RowBrokerId, ...] = ()  # LeaderAndIsr from 2.4
    removing_replicas: tuple[RowBrokerId, ...] = ()  # LeaderAndIsr from 2.4
    offline_replicas: tuple[RowBrokerId, ...] = ()  # UpdateMetadata from 1.0
    delete_partition: bool = False  # StopReplica from 2.6


class Request(Row, frozen=True, gc=False, tag="request", omit_defaults=True):
    """Request that the controller must send, or a part of a large one.

    LeaderAndIsr and StopReplica go to one broker each; UpdateMetadata goes with the same content to all its brokers. A
    withdrawn request has no partition states.
    """

    output: ClassVar[str] = "requests"

    effect: str  # the same for the provisional row and the final or withdrawn one, and for all parts
    status: Status
    cause: str
    controller_epoch: RowControllerEpoch
    controller: RowBrokerId  # the broker that sends it
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[RowBrokerId, ...]  # its receivers, at its end without those that the controller's load missed
    broker_epochs: tuple[RowBrokerEpoch, ...] = ()  # theirs, in the same order, from 2.2
    part: Int64 = 1  # of `parts`, which a row of less than a megabyte needs
    parts: Int64 = 1
    live_leaders: tuple[RowBrokerId, ...] = ()  # LeaderAndIsr: the live brokers among the leaders
    live_brokers: tuple[RowBrokerId, ...] = ()  # UpdateMetadata
    all_partitions: bool = False  # UpdateMetadata of every partition; the states are not listed: see output `metadata`
    delete_partitions: bool = False  # StopReplica up to 2.5
    topic_ids: dict[str, str] = {}  # by topic, LeaderAndIsr and UpdateMetadata from 2.8
    partition_states: tuple[RequestedState, ...] = ()
    inferred_by: str = ""  # as in transitions
    inferred_from: str = ""


class RefusedRow(Row, frozen=True, kw_only=True, gc=False, tag="refused"):
    """Znode or record that could not be read, kept whole; the last good value stays in force."""

    output: ClassVar[str] = "refused"

    path: str
    reason: str
    data: str | None = None
    data_base64: str | None = None
