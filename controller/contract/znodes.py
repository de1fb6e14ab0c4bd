"""Znodes: the meaning of their paths and the JSON forms of their content (Kafka `ZkData`, 0.8 to 3.9).

Unknown keys are ignored, as Kafka ignores them; content that cannot be read becomes a `ZnodeError` whose text says why.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.ensemble import Ensemble
from controller.contract.ids import (
    INT32,
    INT64,
    NO_BROKER,
    UNKNOWN_ZXID,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    Zxid,
)
from controller.contract.records import Int64, TimeMs

Int32 = Annotated[int, INT32]
_BrokerId = Annotated[BrokerId, INT32]
_PartitionId = Annotated[PartitionId, msgspec.Meta(ge=0, lt=2**31)]
Brokers = tuple[_BrokerId, ...]

_NO_PARTITION: Final = PartitionId(-1)
REPLAYED: Final = "replay"  # the session of records that were made of ZooKeeper's files: they are of the past

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")


class ZnodeError(ValueError):
    """Content of a znode that cannot be read; the text says why."""


class Place(Enum):
    """Meaning of a path to the controller."""

    CONTROLLER = "/controller"
    CONTROLLER_EPOCH = "/controller_epoch"
    BROKER = "/brokers/ids/N"
    TOPIC = "/brokers/topics/T"
    PARTITION_STATE = "/brokers/topics/T/partitions/P/state"
    DELETE_TOPIC = "/admin/delete_topics/T"
    REASSIGN_PARTITIONS = "/admin/reassign_partitions"
    PREFERRED_ELECTION = "/admin/preferred_replica_election"
    ISR_CHANGE = "/isr_change_notification/isr_change_N"
    LOG_DIR_EVENT = "/log_dir_event_notification/log_dir_event_N"
    TOPIC_CONFIG = "/config/topics/T"
    BROKER_CONFIG = "/config/brokers/N"
    CLUSTER_ID = "/cluster/id"
    FEATURE = "/feature"
    MIGRATION = "/migration"
    OTHER = "anything else"

    __hash__ = object.__hash__  # members are singletons: identity is enough, and much faster than the enum's own


class ZnodePath(msgspec.Struct, frozen=True, gc=False):
    """Meaning of a path, with the name and id in it."""

    place: Place
    name: str = ""
    partition: PartitionId = _NO_PARTITION
    broker: BrokerId = NO_BROKER


_FIXED = {
    place.value: ZnodePath(place)
    for place in (
        Place.CONTROLLER,
        Place.CONTROLLER_EPOCH,
        Place.REASSIGN_PARTITIONS,
        Place.PREFERRED_ELECTION,
        Place.CLUSTER_ID,
        Place.FEATURE,
        Place.MIGRATION,
    )
}
_NAMED = {
    ("admin", "delete_topics"): Place.DELETE_TOPIC,
    ("config", "topics"): Place.TOPIC_CONFIG,
    ("config", "brokers"): Place.BROKER_CONFIG,
    ("brokers", "topics"): Place.TOPIC,
}
_OTHER = ZnodePath(Place.OTHER)
_PARTITION_STATE = Place.PARTITION_STATE


def locate(path: str) -> ZnodePath:
    """Meaning of the path; an unexpected one is `Place.OTHER`."""
    if path.startswith("/brokers/topics/") and path.endswith("/state"):  # first: nearly all paths are of states
        name, _, digits = path[16:-6].partition("/partitions/")
        partition = _partition_id(digits)
        if partition >= 0 and "/" not in name:
            return ZnodePath(_PARTITION_STATE, name, partition)
    fixed = _FIXED.get(path)
    if fixed is not None:
        return fixed
    parts = path.split("/")
    if len(parts) == 4:
        if parts[1:3] == ["brokers", "ids"]:
            broker = BrokerId(_number(parts[3]))
            return _OTHER if broker < 0 else ZnodePath(Place.BROKER, broker=broker)
        place = _NAMED.get((parts[1], parts[2]))
        return ZnodePath(place, parts[3]) if place and parts[3] else _OTHER
    if len(parts) == 3 and parts[1] == "isr_change_notification":
        return ZnodePath(Place.ISR_CHANGE, parts[2])
    if len(parts) == 3 and parts[1] == "log_dir_event_notification":
        return ZnodePath(Place.LOG_DIR_EVENT, parts[2])
    return _OTHER


@lru_cache(1 << 10)
def _partition_id(digits: str) -> PartitionId:
    return PartitionId(_number(digits))


def _number(text: str) -> int:
    # int() would also take "+1", "1_0" and other scripts' digits; no id is beyond int32.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


class ControllerZnode(msgspec.Struct, frozen=True):
    """/controller, v1 and v2."""

    brokerid: _BrokerId
    version: Int32 = 1
    kraftControllerEpoch: Int32 = -1  # noqa: N815 (Kafka's key)


class BrokerZnode(msgspec.Struct, frozen=True):
    """/brokers/ids/N, v1 to v5 and later."""

    host: str | None = None
    port: Int32 = -1
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    version: Int32 = 1

    def addresses(self) -> tuple[str, ...]:
        """Listeners of the broker; before v2 there are host and port only."""
        if self.endpoints or self.host is None:
            return self.endpoints
        return (f"PLAINTEXT://{self.host}:{self.port}",)


class TopicZnode(msgspec.Struct, frozen=True):
    """/brokers/topics/T, v1 to v3."""

    partitions: dict[_PartitionId, Brokers]
    adding_replicas: dict[_PartitionId, Brokers] = {}
    removing_replicas: dict[_PartitionId, Brokers] = {}
    topic_id: str | None = None
    version: Int32 = 1


class StateZnode(msgspec.Struct, frozen=True, gc=False):
    """/brokers/topics/T/partitions/P/state."""

    leader: _BrokerId
    leader_epoch: Annotated[LeaderEpoch, INT32]
    controller_epoch: Annotated[ControllerEpoch, INT32]
    isr: Brokers
    leader_recovery_state: Int32 = 0


class ConfigZnode(msgspec.Struct, frozen=True):
    """/config/topics/T and /config/brokers/N."""

    config: dict[str, str] = {}

    def integer(self, key: str, *, at_least: int) -> int | None:
        """Setting of Kafka's type INT, None if absent, not of that type, or below Kafka's bound."""
        text = self.config.get(key, "").strip()
        number = int(text) if _INTEGER.fullmatch(text) else None
        return number if number is not None and at_least <= number < 2**31 else None

    def boolean(self, key: str) -> bool | None:
        """Setting of Kafka's type BOOLEAN as Kafka reads it, None if absent or neither true nor false."""
        return {"true": True, "false": False}.get(self.config.get(key, "").strip().lower())


class ClusterIdZnode(msgspec.Struct, frozen=True):
    """/cluster/id, from 0.10.1 on (`ClusterIdZNode`, 3.9)."""

    id: Annotated[str, msgspec.Meta(max_length=100)]  # 22 characters, but for what a person wrote


class FeatureZnode(msgspec.Struct, frozen=True):
    """/feature, v1 and v2, from 2.7 on; Kafka refuses another status and a lower version (`FeatureZNode`, 3.9)."""

    version: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    status: Literal[0, 1]  # disabled, enabled


class MigrationZnode(msgspec.Struct, frozen=True):
    """/migration, from 3.4 on; Kafka reads no other version than 0 (`MigrationZNode`, 3.9)."""

    version: Literal[0]
    kraft_metadata_offset: Int64
    kraft_controller_id: _BrokerId
    kraft_metadata_epoch: Int32
    kraft_controller_epoch: Int32


class LogDirEventZnode(msgspec.Struct, frozen=True):
    """/log_dir_event_notification/log_dir_event_N."""

    broker: _BrokerId


class ReassignmentEntry(msgspec.Struct, frozen=True):
    """Target replicas of one partition in /admin/reassign_partitions."""

    topic: str
    partition: Annotated[PartitionId, INT32]
    replicas: Brokers = ()


class PartitionsZnode(msgspec.Struct, frozen=True):
    """/admin/reassign_partitions, /admin/preferred_replica_election and isr_change_N."""

    partitions: tuple[ReassignmentEntry, ...] = ()


class MaintenanceWindow(msgspec.Struct, frozen=True):
    """Maintenance window: while people work on these brokers, alerts that follow from it are held back."""

    brokers: Brokers  # none: the whole cluster
    until_ms: TimeMs
    reason: str = ""


class ForwarderStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of a forwarder's own records: its clock, its ZooKeeper session, and the maintenance windows given to it."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    maintenance: tuple[MaintenanceWindow, ...] = ()  # the windows in force
    clock_of: str = ""  # the host whose clock the records' times follow; given where a generation begins
    lost_zxid: Annotated[Zxid, INT64] = UNKNOWN_ZXID  # of a published change that ZooKeeper does not have any more
    ensemble: Ensemble | None = None  # after each round of questions to its servers


_Content = TypeVar(
    "_Content",
    ControllerZnode,
    BrokerZnode,
    TopicZnode,
    StateZnode,
    ConfigZnode,
    ClusterIdZnode,
    FeatureZnode,
    MigrationZnode,
    LogDirEventZnode,
    PartitionsZnode,
    ForwarderStatus,
)


# One decoder for each form: making one costs more than decoding.
_decoder_of = lru_cache(None)(JsonDecoder)
_ANY_JSON: Final = JsonDecoder(object)


def decode(data: bytes | str | None, content: type[_Content]) -> _Content:
    """Content of a znode; raises ZnodeError."""
    if not data:
        raise ZnodeError("no data")
    try:
        decoded: _Content = _decoder_of(content).decode(data)
        return decoded
    except UndecodableError as error:
        raise ZnodeError(str(error)) from error


def ends_controllers(data: bytes | None) -> bool:
    """Return whether a topic's content ends every controller that loads it (`TopicZNode.decode`, seen on 3.9.2).

    Content that is no JSON is a topic without partitions. JSON that is no object, and no content, raise.
    """
    try:
        return not isinstance(_ANY_JSON.decode((data or b"").strip() or b"null"), dict)
    except UndecodableError:
        return False


def decode_config(data: bytes | None) -> ConfigZnode:
    """Settings in a /config znode; like in Kafka, none where it has no data; raises ZnodeError."""
    return decode(data, ConfigZnode) if data else ConfigZnode()


def decode_status(data: bytes | str | None) -> ForwarderStatus:
    """Status in a forwarder's own record, an empty one where it cannot be read."""
    try:
        return decode(data, ForwarderStatus)
    except ZnodeError:
        return ForwarderStatus()


def decode_epoch(data: bytes | None) -> ControllerEpoch:
    """Epoch in /controller_epoch, a decimal text; raises ZnodeError."""
    text = (data or b"").decode("ascii", "replace").strip()
    if not text.isdigit() or len(text) > 10 or int(text) >= 2**31:
        raise ZnodeError(f"no epoch: {text[:40]!r}")
    return ControllerEpoch(int(text))
