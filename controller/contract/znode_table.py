"""Table of the znodes that Kafka reads, with their paths, their content, and the consequences of flawed content.

A new znode is a `Place` and a row of `ZNODES` here, and a handler in `controller/step.py`. The forwarder watches every
place. Alerts, `lint`, `restartable` and `explain` quote the consequences.
Source: `KafkaZkClient`, `KafkaController` and `KafkaServer`, 1.1 to 3.9. `tests/conformance/test_znode_readers.py`
compares the readers, `tests/conformance/test_flawed_znodes.py` tries the consequences on real brokers, and
`tests/remedies/test_mending_steps.py` follows what mends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from controller.contract.ids import NO_BROKER, BrokerId, PartitionId
from controller.contract.znodes import (
    BrokerZnode,
    ClusterIdZnode,
    ConfigZnode,
    ControllerZnode,
    FeatureZnode,
    Flaw,
    LogDirEventZnode,
    MigrationZnode,
    PartitionsZnode,
    ReassignmentZnode,
    StateZnode,
    TopicZnode,
    ZnodeContent,
    ZnodeError,
    decode,
)

_NO_PARTITION: Final = PartitionId(-1)
Release = tuple[int, int]
_OLDEST, _NEWEST = (0, 8), (3, 9)


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
SINGLES: Final = {
    place.value: ZnodePath(place)
    for place in Place
    if place.value[0] == "/" and "/P/" not in place.value and place.parent is None
}
CHILDREN: Final = {place.parent: place for place in Place if place.parent is not None}


def locate(path: str) -> ZnodePath:
    """Return the meaning of the path, which is `Place.OTHER` for an unexpected path."""
    if path.startswith("/brokers/topics/") and path.endswith("/state"):  # first, because nearly all paths are of states
        name, _, digits = path[16:-6].partition("/partitions/")
        partition = _partition_id(digits)
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
def _partition_id(digits: str) -> PartitionId:
    return PartitionId(_number(digits))


def _number(text: str) -> int:
    # int() would also take "+1", "1_0" and other scripts' digits. Nine digits fit int32, as every id does.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


class Consequence(NamedTuple):
    """Effect of a flawed znode on Kafka, as a text that continues "PATH: ", and the steps that mend the znode.

    If a flaw has several consequences, the one of the newest release comes first.
    """

    effect: str
    mend: str
    flaws: tuple[Flaw, ...]
    since: Release = _OLDEST
    stops_start: bool = False  # a broker that reads the znode at its start ends
    stops_controllers: bool = False  # no broker becomes or stays controller


class Znode(NamedTuple):
    """A znode that Kafka reads, with its content (None if it has no JSON) and the consequences of flaws."""

    content: type[ZnodeContent] | None = None
    consequences: tuple[Consequence, ...] = ()


_EMPTY_THROWS: Final = (2, 1)  # up to 2.0 Kafka takes an empty text for a missing value
_ODD: Final = (Flaw.WRONG_TYPE, Flaw.WRONG_VERSION)
_NO_CONTROLLER: Final = "every broker that becomes controller fails at it and gives up, so no controller stays"
_UNREADABLE: Final = (Flaw.NULL, Flaw.EMPTY, Flaw.UNPARSABLE, *_ODD)


def _ends_controllers(mend: str) -> tuple[Consequence, ...]:
    """Return the consequence of content at which a controller's load throws."""
    return (
        Consequence(_NO_CONTROLLER, mend, (Flaw.NULL, *_ODD), stops_controllers=True),
        Consequence(_NO_CONTROLLER, mend, (Flaw.EMPTY,), since=_EMPTY_THROWS, stops_controllers=True),
    )


_NOBODY = "no broker becomes controller, because /controller exists and names nobody"
_DELETE_CONTROLLER = "Check that no KRaft controller runs, then delete /controller."
_NO_START = "a broker that starts reads it and ends"
_WRITE_STATE = (
    "If its last leader is live, write the state back with that leader, an isr of it alone, and a leader_epoch above "
    "the leader's last. Then delete /controller."
)
_ID_ON_DISK: Final = (2, 4)
_CLUSTER_ID = "Write the cluster.id of a broker's meta.properties back."
_NEW_CLUSTER_ID = "Delete /cluster/id. The next broker that starts writes a new id, because none is on disk before 2.4."
_REQUEST_IGNORED = "Kafka ignores it as long as it exists, and every later request in it"
_DELETE_REQUEST = "Delete /admin/reassign_partitions, then /controller."
_WRITE_SETTINGS = "Write the settings again with every value in quotation marks, before a broker restarts."
_WRITE_BACK = "Write the topic's assignment and topic_id back from a backup or from the brokers' partition.metadata."

ZNODES: Final[Mapping[Place, Znode]] = {
    Place.CLUSTER_ID: Znode(
        ClusterIdZnode,
        (
            Consequence(_NO_START, _CLUSTER_ID, _UNREADABLE, since=_ID_ON_DISK, stops_start=True),
            Consequence(_NO_START, _NEW_CLUSTER_ID, _UNREADABLE, stops_start=True),
        ),
    ),
    Place.CONTROLLER: Znode(
        ControllerZnode,
        (
            Consequence(_NOBODY, _DELETE_CONTROLLER, _UNREADABLE, stops_controllers=True),
            Consequence(
                "no session owns it, so it stays when its broker ends, and no other broker becomes controller",
                _DELETE_CONTROLLER,
                (Flaw.PERSISTENT,),
                stops_controllers=True,
            ),
        ),
    ),
    Place.CONTROLLER_EPOCH: Znode(
        None,
        (
            Consequence(  # its writes check the version of /controller_epoch
                "the present controller can write nothing, and no broker can be elected after it",
                "Write the highest controller epoch as digits, without a line end. Then delete /controller. If no "
                "broker is controller, restart one.",
                _UNREADABLE,
                since=(2, 1),
                stops_controllers=True,
            ),
            Consequence(
                "the present controller goes on, but no broker can be elected after it",
                "Write the highest controller epoch as digits, without a line end, before /controller goes.",
                _UNREADABLE,
                stops_controllers=True,
            ),
        ),
    ),
    Place.FEATURE: Znode(
        FeatureZnode,
        (
            Consequence(
                "a broker that starts waits for it and ends, and no broker becomes controller",
                "Delete /feature. The next controller writes it again.",
                (Flaw.NULL, Flaw.EMPTY, Flaw.WRONG_TYPE),
                since=(2, 7),
                stops_start=True,
                stops_controllers=True,
            ),
            Consequence(
                "every broker that becomes controller fails at it and gives up, so no controller stays",
                "Delete /feature. The next controller writes it again.",
                (Flaw.UNPARSABLE, Flaw.WRONG_VERSION),
                since=(2, 7),
                stops_controllers=True,
            ),
        ),
    ),
    Place.MIGRATION: Znode(
        MigrationZnode,
        (
            Consequence(
                "a migration to KRaft does not begin",
                "If no KRaft controller has copied ZooKeeper, delete /migration.",
                _UNREADABLE,
                since=(3, 4),
            ),
        ),
    ),
    Place.REASSIGN_PARTITIONS: Znode(
        ReassignmentZnode,
        (
            Consequence(_NO_CONTROLLER, "Delete /admin/reassign_partitions.", (Flaw.NULL,), stops_controllers=True),
            Consequence(_REQUEST_IGNORED, _DELETE_REQUEST, (Flaw.UNPARSABLE, *_ODD)),
            Consequence(_REQUEST_IGNORED, _DELETE_REQUEST, (Flaw.EMPTY,), since=_EMPTY_THROWS),
        ),
    ),
    Place.PREFERRED_ELECTION: Znode(PartitionsZnode, _ends_controllers("Delete /admin/preferred_replica_election.")),
    Place.BROKER: Znode(
        BrokerZnode,
        (
            Consequence(
                "brokers that start and controllers that load read it and fail",
                "Stop its broker, delete the znode if it stays, start the broker.",
                _UNREADABLE,
                stops_start=True,
                stops_controllers=True,
            ),
            Consequence(
                "no session owns it, so the broker counts as live for ever and cannot register",
                "Check that the broker is down, delete the znode, then start the broker.",
                (Flaw.PERSISTENT,),
            ),
        ),
    ),
    Place.TOPIC: Znode(
        TopicZnode,
        (
            *_ends_controllers(_WRITE_BACK),
            Consequence(
                "the next controller loads a topic without partitions, and elects no leaders for it",
                f"{_WRITE_BACK} Then delete /controller.",
                (Flaw.UNPARSABLE,),
            ),
        ),
    ),
    Place.PARTITION_STATE: Znode(
        StateZnode,
        (
            *_ends_controllers(_WRITE_STATE),
            Consequence(
                "the next controller takes the partition for new, and cannot elect a leader",
                _WRITE_STATE,
                (Flaw.UNPARSABLE,),
            ),
        ),
    ),
    Place.TOPIC_CONFIG: Znode(
        ConfigZnode,
        (
            Consequence("brokers that host the topic fail at their start", _WRITE_SETTINGS, _ODD, stops_start=True),
            Consequence("the topic has the brokers' defaults", _WRITE_SETTINGS, (Flaw.UNPARSABLE,)),
        ),
    ),
    Place.BROKER_CONFIG: Znode(
        ConfigZnode,
        (
            Consequence("the brokers that read it fail at their start", _WRITE_SETTINGS, _ODD, stops_start=True),
            Consequence("the brokers have the settings of their files", _WRITE_SETTINGS, (Flaw.UNPARSABLE,)),
        ),
    ),
    Place.DELETE_TOPIC: Znode(),  # the name is the request
    Place.ISR_CHANGE: Znode(
        PartitionsZnode,
        (
            Consequence(
                "the controller removes it unread, so brokers hear later of these ISRs",
                "Nothing is to be done.",
                _UNREADABLE,
            ),
        ),
    ),
    Place.LOG_DIR_EVENT: Znode(
        LogDirEventZnode,
        (
            Consequence(
                "the controller removes it unread, so partitions in a failed log directory may keep their leader",
                "Restart the broker whose log directory failed.",
                _UNREADABLE,
            ),
        ),
    ),
}
"""Every znode that Kafka reads and Kontrast records. Flaws without a consequence are harmless to Kafka."""


def consequence_of(path: str, flaw: Flaw, release: Release = _NEWEST) -> Consequence | None:
    """Return the consequence of a flawed znode in this release, None if the flaw is harmless."""
    znode = ZNODES.get(locate(path).place, _UNKNOWN_ZNODE)
    for consequence in znode.consequences:
        if flaw in consequence.flaws and release >= consequence.since:
            return consequence
    return None


def flaw_of(path: str, data: bytes | str | None) -> Flaw | None:
    """Return the flaw in a znode's content as Kafka 3.9 reads it, None for sound content."""
    content = ZNODES.get(locate(path).place, _UNKNOWN_ZNODE).content
    if content is None or (content is ConfigZnode and not data):
        return None
    try:
        decode(data, content)
    except ZnodeError as error:
        return error.flaw
    return None


_UNKNOWN_ZNODE: Final = Znode()
