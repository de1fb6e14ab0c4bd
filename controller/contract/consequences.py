"""Table of what Kafka does not survive: content, ACLs and absence of znodes, with consequences by release.

`lint`, `restartable`, `explain`, `migration check`, alerts and the preconditions of remedies ask this table.
Source: `KafkaZkClient`, `KafkaController`, `KafkaServer`, `DynamicConfigManager`, `AclAuthorizer`,
`FinalizedFeatureChangeListener` and `ProducerIdManager`, 1.1 to 3.9. `tests/conformance/test_flawed_znodes.py` tries
the consequences on real brokers, and `tests/remedies/test_mending_steps.py` follows what mends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from controller.contract.znode_table import Place, place_of
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
    decode_lasting_epoch,
)

Release = tuple[int, int]
_OLDEST, _NEWEST = (0, 8), (3, 9)


class Consequence(NamedTuple):
    """Effect of a flawed znode on Kafka, as a text that continues "PATH: ", and the steps that mend the znode.

    If a flaw has several consequences, the one of the newest release comes first. `then_fail_over` ends the mend with
    a deletion of /controller, which has to wait while another flaw ends or misleads the next controller.
    """

    effect: str
    mend: str
    flaws: tuple[Flaw, ...]
    since: Release = _OLDEST
    stops_start: bool = False  # a broker that reads the znode at its start ends
    stops_controllers: bool = False  # no broker becomes or stays controller
    stops_brokers: bool = False  # a running broker ends, too
    misleads_controllers: bool = False  # the next controller loses what the present one still knows
    then_fail_over: bool = False

    @property
    def harms_failover(self) -> bool:
        """Return whether the next controller fails, or loses what the present one knows."""
        return self.stops_controllers or self.misleads_controllers


_EMPTY_THROWS: Final = (2, 1)  # up to 2.0 Kafka takes an empty text for a missing value
_ODD: Final = (Flaw.WRONG_TYPE, Flaw.WRONG_VERSION)
_NO_CONTROLLER: Final = "every broker that becomes controller fails at it and gives up, so no controller stays"
_NO_EPOCH: Final = (Flaw.NULL, Flaw.EMPTY, Flaw.NO_DIGITS)
_LOW_EPOCH: Final = (Flaw.ABSENT, Flaw.NO_EPOCH)
_UNREADABLE: Final = (Flaw.NULL, Flaw.EMPTY, Flaw.UNPARSABLE, *_ODD)


_ends_start: Final = partial(Consequence, stops_start=True)
_ends_controllers: Final = partial(Consequence, stops_controllers=True)
_ends_both: Final = partial(Consequence, stops_start=True, stops_controllers=True)


def _misleads(effect: str, mend: str, flaws: tuple[Flaw, ...] = (Flaw.UNPARSABLE, Flaw.EMPTY)) -> Consequence:
    return Consequence(effect, mend, flaws, misleads_controllers=True, then_fail_over=True)


def _throws(mend: str) -> tuple[Consequence, ...]:
    """Return the consequence of content at which a controller's load throws."""
    return (
        _ends_controllers(_NO_CONTROLLER, mend, (Flaw.NULL, *_ODD)),
        _ends_controllers(_NO_CONTROLLER, mend, (Flaw.EMPTY,), _EMPTY_THROWS),
    )


_NOBODY = "no broker becomes controller, because /controller exists and names nobody"
_DELETE_CONTROLLER = "Check that no KRaft controller runs."
_NO_START = "a broker that starts reads it and ends"
_WRITE_STATE = (
    "Do not restart the controller's broker. Write the state back with a live leader that has the partition, best the "
    "last one, an isr of it alone, and a leader_epoch above the last in the brokers' leader-epoch-checkpoint."
)
_EPOCH = "Write the highest controller epoch, or more, as digits without a line end."
_ID_ON_DISK: Final = (2, 4)
_CLUSTER_ID = "Write the cluster.id of a broker's meta.properties back."
_NEW_CLUSTER_ID = "Delete /cluster/id. The next broker that starts writes a new id, because none is on disk before 2.4."
_NO_NUMBER = "a broker that starts and every broker that becomes controller fail at its name"
_FEATURES: Final = (2, 7)
_NO_FEATURES = "a broker that starts waits for it and ends, and no broker becomes controller"
_NO_OBJECT: Final = (Flaw.NULL, Flaw.EMPTY, Flaw.WRONG_TYPE)
_DELETE_FEATURE = "Delete /feature. The next controller writes it again."
_DELETE_NAME = "Delete the znode before a broker restarts."
_REQUEST_IGNORED = "Kafka ignores it as long as it exists, and every later request in it"
_DELETE_REQUEST = "Delete /admin/reassign_partitions, then /controller."
_WRITE_SETTINGS = "Write the settings again with every value in quotation marks, before a broker restarts."
_WRITE_BACK = "Write the topic's assignment and topic_id back from a backup or from the brokers' partition.metadata."
_PRODUCER_IDS = 'Write a block above all given out: {"version":1,"broker":B,"block_start":"S","block_end":"E"}.'
_COMMON_LISTENER = (
    "Give every broker one listener of a common name and protocol, and set it as inter.broker.listener.name. "
    "Restart first the brokers that lack it."
)
_OWN_ENDPOINT = "Give each broker its own advertised.listeners before it restarts."
_NEW_PASSWORD = "Delete the key and give the user a new password with kafka-configs.sh, before a broker restarts."
_BEFORE = "Do it before /controller goes."
_RESTART_ONE = "If no broker is controller, restart one."  # a broker that failed does not try again
_OPEN = (
    "Give the brokers' login the right, by zookeeper-security-migration.sh or by setAcl with the login that owns the "
    "znode, before a broker restarts."
)
_UNNUMBERED = _ends_controllers(
    "the controller reads no notification beside it, and every broker that becomes controller fails at its name",
    "Delete the znode.",
    (Flaw.WRONG_NAME,),
)
_QUOTA = (
    _ends_start("a broker that starts cannot decode its name and ends", _DELETE_NAME, (Flaw.WRONG_NAME,)),
    _ends_start(
        "every broker reads it at its start and ends",
        "Write the number again with kafka-configs.sh, or delete the key in the znode, before a broker restarts.",
        (Flaw.NO_NUMBER, *_ODD),
    ),
    Consequence("clients under it hardly pass", "Raise it with kafka-configs.sh, or delete it.", (Flaw.NEAR_ZERO,)),
    _ends_start(
        "every broker looks the name up at its start, and ends if it finds no address",
        "Delete the znode, or write it under an IP address, before a broker restarts.",
        (Flaw.NO_ADDRESS,),
    ),
)

CONSEQUENCES: Final[Mapping[Place, tuple[Consequence, ...]]] = {
    Place.CLUSTER_ID: (
        _ends_start(_NO_START, _CLUSTER_ID, _UNREADABLE, _ID_ON_DISK),
        _ends_start(
            "the next broker that starts writes a new id, does not find it in its meta.properties and ends, and so "
            "does every later one",
            f"Restart no broker. {_CLUSTER_ID}",
            (Flaw.ABSENT,),
            _ID_ON_DISK,
        ),
        _ends_start(
            "a broker that starts finds another id in its meta.properties and ends, and what Kontrast knew is of "
            "another cluster",
            f"Restart no broker before you know why. If the brokers are the same as before: {_CLUSTER_ID}",
            (Flaw.REPLACED,),
            _ID_ON_DISK,
        ),
        _ends_start(_NO_START, _NEW_CLUSTER_ID, _UNREADABLE),
    ),
    Place.CONTROLLER: (
        _ends_controllers(_NOBODY, _DELETE_CONTROLLER, _UNREADABLE, then_fail_over=True),
        _ends_controllers(
            "no session owns it, so it stays when its broker ends, and no other broker becomes controller",
            _DELETE_CONTROLLER,
            (Flaw.PERSISTENT,),
            then_fail_over=True,
        ),
    ),
    Place.CONTROLLER_EPOCH: (
        _ends_controllers(  # its writes check the version of /controller_epoch
            "the present controller can write nothing, and no broker can be elected after it",
            f"{_EPOCH} {_RESTART_ONE}",
            _NO_EPOCH,
            (2, 1),
            then_fail_over=True,
        ),
        _ends_controllers(
            "the present controller can write nothing, and brokers refuse the next one, whose epoch is below theirs",
            _EPOCH,
            _LOW_EPOCH,
            (2, 1),
            then_fail_over=True,
        ),
        _ends_controllers(
            "the present controller goes on, but no broker can be elected after it", f"{_EPOCH} {_BEFORE}", _NO_EPOCH
        ),
        _misleads("brokers refuse the next controller, whose epoch is below theirs", _EPOCH, _LOW_EPOCH),
        _ends_controllers(
            "a broker with another login cannot raise it (NoAuth), so no broker can be elected after the present "
            "controller",
            f"{_OPEN} {_RESTART_ONE}",
            (Flaw.LOCKED,),
        ),
    ),
    Place.FEATURE: (
        _ends_both(_NO_FEATURES, _DELETE_FEATURE, _NO_OBJECT, (3, 5)),
        _ends_both(
            f"every running broker ends within seconds, and {_NO_FEATURES}",
            "Delete /feature, then start the brokers. The controller writes it again.",
            _NO_OBJECT,
            _FEATURES,
            stops_brokers=True,  # until KAFKA-14887. Brokers of 2.8.2 and 3.2.3 ended within six seconds
        ),
        _ends_controllers(_NO_CONTROLLER, _DELETE_FEATURE, (Flaw.UNPARSABLE, Flaw.WRONG_VERSION), _FEATURES),
        _ends_start(
            "a broker without this level ends, at its start and within seconds while it runs",
            "Delete /feature before a broker starts. The next controller writes it again.",
            (Flaw.INCOMPATIBLE,),
            _FEATURES,
            stops_brokers=True,
        ),
    ),
    Place.MIGRATION: (
        Consequence(
            "a migration to KRaft does not begin",
            "If no KRaft controller has copied ZooKeeper, delete /migration.",
            _UNREADABLE,
            (3, 4),
        ),
    ),
    Place.REASSIGN_PARTITIONS: (
        _ends_controllers(_NO_CONTROLLER, "Delete /admin/reassign_partitions.", (Flaw.NULL,)),
        Consequence(_REQUEST_IGNORED, _DELETE_REQUEST, (Flaw.UNPARSABLE, *_ODD)),
        Consequence(_REQUEST_IGNORED, _DELETE_REQUEST, (Flaw.EMPTY,), _EMPTY_THROWS),
    ),
    Place.PREFERRED_ELECTION: _throws("Delete /admin/preferred_replica_election."),
    Place.BROKER: (
        _ends_both(
            "brokers that start and controllers that load read it and fail",
            "Stop its broker, delete the znode if it stays, start the broker.",
            _UNREADABLE,
        ),
        _ends_both(_NO_NUMBER, _DELETE_NAME, (Flaw.WRONG_NAME,), (2, 8)),
        _ends_controllers(_NO_CONTROLLER, _DELETE_NAME, (Flaw.WRONG_NAME,)),
        _ends_start(
            "each of them ends at its next start, as long as the other is registered",
            _OWN_ENDPOINT,
            (Flaw.SAME_ENDPOINT,),
            (2, 0),
        ),
        Consequence("clients and brokers that mean one of them reach the other", _OWN_ENDPOINT, (Flaw.SAME_ENDPOINT,)),
        Consequence(
            "no session owns it, so the broker counts as live for ever and cannot register",
            "Check that the broker is down, delete the znode, then start the broker.",
            (Flaw.PERSISTENT,),
        ),
    ),
    Place.TOPIC: (
        *_throws(_WRITE_BACK),
        _ends_controllers(_NO_CONTROLLER, f"{_WRITE_BACK} {_RESTART_ONE}", (Flaw.SAME_ID,), (2, 8)),
        _misleads("the next controller loads a topic without partitions, and elects no leaders for it", _WRITE_BACK),
    ),
    Place.PARTITION_STATE: (
        *(each._replace(then_fail_over=True) for each in _throws(_WRITE_STATE)),
        _misleads("the next controller takes the partition for new, and cannot elect a leader", _WRITE_STATE),
        _misleads(
            "the next controller takes the partition for new, and brokers that have it ignore leader epoch 0",
            f"{_WRITE_STATE} If no broker has the partition, no state is needed.",
            (Flaw.ABSENT,),
        ),
    ),
    Place.TOPIC_CONFIG: (
        _ends_start("brokers that host the topic fail at their start", _WRITE_SETTINGS, _ODD),
        Consequence("the topic has the brokers' defaults", _WRITE_SETTINGS, (Flaw.UNPARSABLE,)),
    ),
    Place.BROKER_CONFIG: (
        _ends_start("the brokers that read it fail at their start", _WRITE_SETTINGS, _ODD),
        Consequence("the brokers have the settings of their files", _WRITE_SETTINGS, (Flaw.UNPARSABLE,)),
        _ends_start(_NO_START, _DELETE_NAME, (Flaw.WRONG_NAME,)),
    ),
    Place.USER: (
        *_QUOTA,
        _ends_start(
            "the user cannot log in, and a broker that allows this mechanism reads it at its start and ends",
            _NEW_PASSWORD,
            (Flaw.NO_CREDENTIAL,),
        ),
        Consequence("the user cannot log in", _NEW_PASSWORD, (Flaw.WEAK_CREDENTIAL,)),
    ),
    Place.CLIENT: _QUOTA,
    Place.IP: _QUOTA,
    Place.ACL: (
        _ends_start(
            "a broker with the ZooKeeper authorizer reads it at its start and ends",
            "Write the entry again with a principal like User:alice, or delete the znode and give the rights again "
            "with kafka-acls.sh, before a broker restarts.",
            (*_ODD, Flaw.NULL),
        ),
    ),
    Place.PRODUCER_IDS: (
        _ends_start(
            "with inter.broker.protocol.version up to 2.8 a broker that starts reads it and ends, and with a later one "
            "no producer gets an id",
            _PRODUCER_IDS,
            (Flaw.UNPARSABLE, Flaw.WRONG_TYPE),
        ),
        Consequence("no producer gets an id", _PRODUCER_IDS, (Flaw.NO_NEXT,)),
    ),
    Place.REGISTRATIONS: (
        _ends_start("a broker with another login cannot register and ends at its start", _OPEN, (Flaw.LOCKED,)),
        _ends_controllers(
            "every broker that becomes controller fails at a broker without its listener, and gives up. These brokers "
            "cannot copy from one another either",
            _COMMON_LISTENER,
            (Flaw.NO_COMMON_LISTENER,),
        ),
        Consequence(
            "these brokers cannot copy from one another, and the controller reaches only those with a listener like "
            "its own",
            _COMMON_LISTENER,
            (Flaw.NO_COMMON_PROTOCOL,),
        ),
        Consequence(
            "a broker whose zookeeper.connect has another chroot gets no partition of this cluster",
            "If it should be one of this cluster, stop it, correct zookeeper.connect, and delete meta.properties in "
            "its log directories, which has the other cluster's id. Then start it.",
            (Flaw.ELSEWHERE,),
        ),
    ),
    Place.CHROOT: (
        _ends_controllers(
            "a broker with another login cannot create /controller, so no broker becomes controller",
            f"{_OPEN} {_RESTART_ONE}",
            (Flaw.LOCKED,),
        ),
    ),
    Place.ISR_CHANGE: (
        _UNNUMBERED,
        Consequence(
            "the controller removes it unread, so brokers hear later of these ISRs",
            "Nothing is to be done.",
            _UNREADABLE,
        ),
    ),
    Place.CONFIG_CHANGE: (
        Consequence(
            "brokers fail at its name, so changed settings and quotas may reach them only at their next start",
            "Delete the znode.",
            (Flaw.WRONG_NAME,),
        ),
    ),
    Place.LOG_DIR_EVENT: (
        _UNNUMBERED,
        Consequence(
            "the controller removes it unread, so partitions in a failed log directory may keep their leader",
            "Restart the broker whose log directory failed.",
            _UNREADABLE,
        ),
    ),
}
"""Flaws without a consequence are harmless to Kafka."""

_CONTENTS: Final[Mapping[Place, type[ZnodeContent]]] = {
    Place.CLUSTER_ID: ClusterIdZnode,
    Place.CONTROLLER: ControllerZnode,
    Place.FEATURE: FeatureZnode,
    Place.MIGRATION: MigrationZnode,
    Place.REASSIGN_PARTITIONS: ReassignmentZnode,
    Place.PREFERRED_ELECTION: PartitionsZnode,
    Place.BROKER: BrokerZnode,
    Place.TOPIC: TopicZnode,
    Place.PARTITION_STATE: StateZnode,
    Place.ISR_CHANGE: PartitionsZnode,
    Place.LOG_DIR_EVENT: LogDirEventZnode,
    **dict.fromkeys((Place.TOPIC_CONFIG, Place.BROKER_CONFIG, Place.USER, Place.CLIENT, Place.IP), ConfigZnode),
}


def consequence_of(path: str, flaw: Flaw, release: Release = _NEWEST) -> Consequence | None:
    """Return the consequence of a flawed znode in this release, None if the flaw is harmless."""
    rows = CONSEQUENCES.get(place_of(path), ())
    return next((each for each in rows if flaw in each.flaws and release >= each.since), None)


def flaw_of(path: str, data: bytes | str | None) -> Flaw | None:
    """Return the flaw in a znode's content as Kafka 3.9 reads it, None for sound content."""
    place = place_of(path)
    content = _CONTENTS.get(place)
    try:
        if place is Place.CONTROLLER_EPOCH:
            decode_lasting_epoch(data.encode() if isinstance(data, str) else data)
        elif content is not None and (data or content is not ConfigZnode):
            decode(data, content)
    except ZnodeError as error:
        return error.flaw
    return None
