"""Paths of the znodes that Kafka reads, and their meaning.

A new znode is a `Place` here, a row of `ZNODES` in `consequences.py`, and a handler in `controller/step.py`. The
forwarder watches every place with records.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec

from controller.contract.ids import NO_BROKER, BrokerId, PartitionId

_NO_PARTITION: Final = PartitionId(-1)


class Place(Enum):
    """Meaning of a path. T, P and N stand for names and numbers."""

    CLUSTER_ID = "/cluster/id"
    CONTROLLER = "/controller"
    CONTROLLER_EPOCH = "/controller_epoch"
    FEATURE = "/feature"
    MIGRATION = "/migration"
    REASSIGN_PARTITIONS = "/admin/reassign_partitions"
    PREFERRED_ELECTION = "/admin/preferred_replica_election"
    BROKER = "/brokers/ids/N"
    TOPIC = "/brokers/topics/T"
    PARTITION_STATE = "/brokers/topics/T/partitions/P/state"
    TOPIC_CONFIG = "/config/topics/T"
    BROKER_CONFIG = "/config/brokers/T"
    DELETE_TOPIC = "/admin/delete_topics/T"
    ISR_CHANGE = "/isr_change_notification/T"
    LOG_DIR_EVENT = "/log_dir_event_notification/T"
    CHROOT = "/"
    REGISTRATIONS = "/brokers/ids"
    PRODUCER_IDS = "/latest_producer_id_block"
    CONFIG_CHANGE = "/config/changes/T"
    USER = "/config/users/T"
    CLIENT = "/config/clients/T"
    IP = "/config/ips/T"
    ACL = "/kafka-acl/T"
    OTHER = "anything else"

    __hash__ = object.__hash__  # members are singletons, so identity is enough, and much faster than the enum's own

    @property
    def parent(self) -> str | None:
        """Return the znode whose children have this meaning, None for a single znode and for a partition's state."""
        head, _, tail = self.value.rpartition("/")
        return head if tail in ("T", "N") else None


class ZnodePath(msgspec.Struct, frozen=True, gc=False):
    """Meaning of a path, with the name and id in it."""

    place: Place
    name: str = ""
    partition: PartitionId = _NO_PARTITION
    broker: BrokerId = NO_BROKER


_OTHER = ZnodePath(Place.OTHER)
_PARTITION_STATE = Place.PARTITION_STATE
_READ_BESIDES: Final = {
    "/config/changes/": Place.CONFIG_CHANGE,
    "/config/users/": Place.USER,
    "/config/clients/": Place.CLIENT,
    "/config/ips/": Place.IP,
    "/kafka-acl": Place.ACL,
}
_UNRECORDED: Final = {place.value: place for place in (Place.CHROOT, Place.REGISTRATIONS, Place.PRODUCER_IDS)}
"""Paths, and beginnings of paths, without records. They may hold secrets, so only their flaws are published."""

_RECORDED = [place for place in Place if place.value[0] == "/"]
_RECORDED = [place for place in _RECORDED if place not in (*_READ_BESIDES.values(), *_UNRECORDED.values())]
SINGLES: Final = {
    place.value: ZnodePath(place) for place in _RECORDED if "/P/" not in place.value and place.parent is None
}
CHILDREN: Final = {place.parent: place for place in _RECORDED if place.parent is not None}


def locate(path: str) -> ZnodePath:
    """Return the meaning of the path, which is `Place.OTHER` for an unexpected path."""
    if path.startswith("/brokers/topics/") and path.endswith("/state"):  # first, because nearly all paths are of states
        name, _, digits = path[16:-6].partition("/partitions/")
        partition = partition_id(digits)
        if partition >= 0 and "/" not in name:
            return ZnodePath(_PARTITION_STATE, name, partition)
    single = SINGLES.get(path)
    if single is not None:
        return single
    parent, _, name = path.rpartition("/")
    place = CHILDREN.get(parent)
    if place is None or not name:
        return _OTHER
    if place is not Place.BROKER:
        return ZnodePath(place, name)
    broker = BrokerId(_number(name))
    return _OTHER if broker < 0 else ZnodePath(place, broker=broker)


@lru_cache(1 << 10)
def partition_id(digits: str) -> PartitionId:
    """Return the partition of this name below a topic's `partitions`, -1 for another name."""
    return PartitionId(_number(digits))


def _number(text: str) -> int:
    # int() would also take "+1", "1_0" and other scripts' digits. Nine digits fit int32, as every id does.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def place_of(path: str) -> Place:
    """Return the meaning of any path in the table, with those that have no records."""
    place = locate(path).place
    if place is Place.OTHER:
        if path.startswith("/brokers/ids/"):
            return Place.BROKER  # of a name that is no number
        besides = (beside for begin, beside in _READ_BESIDES.items() if path.startswith(begin))
        return _UNRECORDED.get(path) or next(besides, place)
    return place
