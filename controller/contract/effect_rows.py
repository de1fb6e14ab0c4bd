"""Rows of unreadable znodes, and of the controller's steps, which are state changes and requests."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Final

import msgspec

from controller.contract.ids import ControllerEpoch, Zxid
from controller.contract.records import Int64
from controller.contract.row import Row, RowBrokerEpoch, RowBrokerId, RowControllerEpoch, RowLeaderEpoch, RowPartitionId


class Status(Enum):
    """Certainty of an effect, which is expected, seen in ZooKeeper, or withdrawn because it will not happen."""

    PROVISIONAL = "provisional"
    FINAL = "final"
    WITHDRAWN = "withdrawn"


# Each member has a name of its own, because Python 3.11 takes 0.2 µs to find a member in its enum.
PROVISIONAL, FINAL, WITHDRAWN = Status


# The first fields of a row of the controller's steps. The record gives some of them, the effect the rest.
EffectStamp = tuple[str, int, int, int, Zxid, int, str, Status, str, ControllerEpoch]


class Transition(Row, frozen=True, gc=False, tag="transition", omit_defaults=True):
    """State change of a partition, replica, topic, broker or controller."""

    output: ClassVar[str] = "transitions"

    effect: str  # <controller epoch>-<event>-<ordinal>, equal in the provisional, final and withdrawn rows
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
    inferred_by: str = ""  # the rule of inference that its event rests on, empty if a znode announced the event
    inferred_from: str = ""  # the write that shows its event, as the znode's path and the zxid


# The requests of the controller, by Kafka's names.
LEADER_AND_ISR: Final = "LeaderAndIsr"
UPDATE_METADATA: Final = "UpdateMetadata"
STOP_REPLICA: Final = "StopReplica"


class RequestedState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Partition state in a request, as in Kafka's `LeaderAndIsrPartitionState` and `UpdateMetadataPartitionState`.

    Fields that the request lacks are left out. A StopReplica has only the names, the leader epoch and the delete flag.
    """

    topic: str
    partition: RowPartitionId
    leader: RowBrokerId | None = None  # -1 none, -2 in UpdateMetadata while the topic is being deleted
    leader_epoch: RowLeaderEpoch | None = None  # in StopReplica from 2.6 on, -2 while its topic is deleted, -1 unknown
    isr: tuple[RowBrokerId, ...] | None = None
    replicas: tuple[RowBrokerId, ...] | None = None
    controller_epoch: RowControllerEpoch | None = None  # of the controller that wrote the state
    partition_epoch: Int64 | None = None  # the state znode's data version, left out if the znode was not read
    leader_recovery_state: Int64 = 0  # LeaderAndIsr from 3.2, 1 while it recovers from an unclean election
    is_new: bool = False  # LeaderAndIsr from 1.0
    adding_replicas: tuple[RowBrokerId, ...] = ()  # LeaderAndIsr from 2.4
    removing_replicas: tuple[RowBrokerId, ...] = ()  # LeaderAndIsr from 2.4
    offline_replicas: tuple[RowBrokerId, ...] = ()  # UpdateMetadata from 1.0
    delete_partition: bool = False  # StopReplica from 2.6


class Request(Row, frozen=True, gc=False, tag="request", omit_defaults=True):
    """Request that the controller must send, or a part of a large request.

    LeaderAndIsr and StopReplica go to one broker each. UpdateMetadata goes with equal content to each of its brokers. A
    withdrawn request has no partition states.
    """

    output: ClassVar[str] = "requests"

    effect: str  # equal in the provisional row, in the final or withdrawn row, and in all parts
    status: Status
    cause: str
    controller_epoch: RowControllerEpoch
    controller: RowBrokerId  # the broker that sends it
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[RowBrokerId, ...]  # its receivers. The final row omits brokers that the controller's load missed
    broker_epochs: tuple[RowBrokerEpoch, ...] = ()  # the brokers' epochs, in the same order, from 2.2
    part: Int64 = 1  # its number among `parts`, because a row stays below a megabyte
    parts: Int64 = 1
    live_leaders: tuple[RowBrokerId, ...] = ()  # LeaderAndIsr: the live brokers among the leaders
    live_brokers: tuple[RowBrokerId, ...] = ()  # UpdateMetadata
    all_partitions: bool = False  # UpdateMetadata of every partition, without the states (see output `metadata`)
    delete_partitions: bool = False  # StopReplica up to 2.5
    topic_ids: dict[str, str] = {}  # by topic, LeaderAndIsr and UpdateMetadata from 2.8
    partition_states: tuple[RequestedState, ...] = ()
    inferred_by: str = ""  # as in transitions
    inferred_from: str = ""


class RefusedRow(Row, frozen=True, kw_only=True, gc=False, tag="refused"):
    """Znode or record that could not be read, with all its data. The last good value of the znode stays in force."""

    output: ClassVar[str] = "refused"

    path: str
    reason: str
    data: str | None = None
    data_base64: str | None = None
