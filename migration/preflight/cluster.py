"""Checks of leftovers from an earlier attempt, of the controller and of the brokers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.contract.znodes import ZnodeError, decode_lasting_epoch
from controller.says.alert_kinds.kinds import OLD_MIGRATION
from controller.says.remedies.controllership import DELETE_PREFERRED_REQUEST, MOVE_CONTROLLER, RAISE_EPOCH
from controller.says.remedies.migration import DELETE_MIGRATION, DELETE_MIGRATION_ALONE
from controller.says.remedies.reassignments import DELETE_REASSIGNMENT_REQUEST
from controller.says.remedies.remedy import Advice
from migration.nodes.nodes import Mode
from migration.preflight.check import Check, Fault, Hazard
from migration.preflight.tree import BROKERS, CONTROLLER, MIGRATION, STATES, Owner, Tree

EPOCH = "/controller_epoch"
SEQUENCE = "/brokers/seqid"
FEATURE = "/feature"
TRIGGERS = ("/admin/reassign_partitions", "/admin/preferred_replica_election")

# An election of the quorum raises KRaft's epoch by one or two, but /controller_epoch by one. In a real quorum, each of
# five leader changes cost 0.4 of the distance, so ten suffice for the 25 changes of a few rolling restarts.
_SMALL_EPOCH = 10
_HIGHEST_CHOSEN_ID = 1_000  # reserved.broker.max.id, above which Kafka makes ids
_FIRST_WITH_MIGRATION = "3.4"


def no_controller_ids(tree: Tree) -> str:
    """Return the reason if ids cannot be compared, otherwise an empty text."""
    return "" if tree.controller_ids else "no znode has them; give --controller-ids"


def no_acls(tree: Tree) -> str:
    """Return the reason if ZooKeeper's ACLs cannot be checked, otherwise an empty text."""
    return "copied files are read without their ACLs; read a live ZooKeeper" if tree.owners is None else ""


@Check(
    Hazard.LOSES,
    shown_by="an offset above 0 in /migration while no KRaft controller rules",
    means="The next quorum takes its own log for a copy of ZooKeeper. With newly formatted disks it deletes "
    "every topic and quota from ZooKeeper as soon as it has passed the old offset. With its old disks "
    "it deletes later topics and resets assignments and quotas.",
    mend=OLD_MIGRATION.action,
    source="KAFKA-17146; KRaftMigrationDriver, ZkMigrationLeadershipState (3.9)",
    reads=(MIGRATION, CONTROLLER),
    loses_all=True,
)
def earlier_attempt(tree: Tree) -> Iterator[Fault]:
    """Find /migration of an earlier attempt."""
    migration = tree.migration
    if migration is None or migration.kraft_metadata_offset <= 0 or tree.is_ruled_by_kraft:
        return
    ruler = f"broker {tree.controller.brokerid} is controller" if tree.controller else "nobody is controller"
    yield Fault(
        MIGRATION,
        f"says that KRaft controller {migration.kraft_controller_id} has copied everything up to offset "
        f"{migration.kraft_metadata_offset} of epoch {migration.kraft_metadata_epoch}, while {ruler}",
    )


@Check(
    Hazard.BLOCKS,
    shown_by="/migration; zookeeper-security-migration.sh creates it without --enable.path.check",
    means="The migration driver stays UNINITIALIZED.",
    mend=DELETE_MIGRATION_ALONE.says(),
    source="KAFKA-19480",
    reads=(MIGRATION,),
    fixed_in=(3, 9, 2),
)
def migration_null(tree: Tree) -> Iterator[Fault]:
    """Find /migration with a null for a value."""
    if MIGRATION in tree.znodes and tree.data(MIGRATION) is None:
        yield Fault(MIGRATION, "has a null for a value")


@Check(
    Hazard.BLOCKS,
    shown_by="/migration",
    means="The migration driver stays UNINITIALIZED.",
    mend=Advice(remedies=(DELETE_MIGRATION_ALONE, DELETE_MIGRATION.given("an earlier attempt has copied"))).in_words(),
    source="MigrationZNode, KRaftMigrationDriver (3.9)",
    reads=(MIGRATION,),
)
def migration_unreadable(tree: Tree) -> Iterator[Fault]:
    """Find /migration that is empty or not as Kafka writes it."""
    data = tree.data(MIGRATION)
    if data is not None and tree.migration is None:
        yield Fault(MIGRATION, "is not the JSON of version 0" if data else "is empty")


@Check(
    Hazard.BLOCKS,
    shown_by="/controller that is persistent while no KRaft controller rules",
    means="No broker can become controller. A quorum needs a higher epoch than the one in it, and is refused"
    " repeatedly.",
    mend=MOVE_CONTROLLER.given("no controller of a quorum runs").says(),
    source="KafkaZkClient.tryRegisterKRaftControllerAsActiveController (3.9)",
    reads=(CONTROLLER, MIGRATION),
)
def leftover_controller(tree: Tree) -> Iterator[Fault]:
    """Find /controller of an earlier attempt."""
    znode = tree.znodes.get(CONTROLLER)
    if znode is None or znode.ephemeral_owner or tree.is_ruled_by_kraft:
        return
    known = tree.controller
    whose = "and cannot be read"
    if known is not None:
        whose = f"of node {known.brokerid}"
        whose += f", KRaft epoch {known.kraftControllerEpoch}" if known.kraftControllerEpoch >= 0 else ""
    yield Fault(CONTROLLER, f"is persistent, {whose}")


@Check(
    Hazard.ROLLBACK,
    shown_by="/admin/reassign_partitions, /admin/preferred_replica_election",
    means="KRaft leaves it. After a rollback the next ZooKeeper controller obeys it.",
    mend=Advice("Let the controller finish it.", (DELETE_REASSIGNMENT_REQUEST, DELETE_PREFERRED_REQUEST)).in_words(),
    source="KafkaController (3.9)",
    reads=TRIGGERS,
)
def leftover_trigger(tree: Tree) -> Iterator[Fault]:
    """Find a request for a reassignment or an election that was left."""
    for path in TRIGGERS:
        if path in tree.znodes:
            yield Fault(path, "is there")


@Check(
    Hazard.BLOCKS,
    shown_by="a version above 0 of /brokers/seqid, and ids above 1000",
    means="The broker does not start with the flag.",
    mend="Write the id into the broker's settings as broker.id, or go to 3.9 first.",
    source="KAFKA-17543",
    reads=(SEQUENCE, BROKERS),
    fixed_in=(3, 9, 0),
)
def generated_broker_id(tree: Tree) -> Iterator[Fault]:
    """Find a broker id that Kafka has made."""
    sequence = tree.znodes.get(SEQUENCE)
    if sequence is not None and sequence.version > 0:
        for broker in sorted(tree.brokers):
            if broker > _HIGHEST_CHOSEN_ID:
                yield Fault(f"{BROKERS}/{broker}", f"the id {broker} was made by Kafka (version of {SEQUENCE} > 0)")


@Check(
    Hazard.BLOCKS,
    shown_by="/brokers/ids and assignments, beside the ids of --controller-ids",
    means="Brokers and controllers share one space of ids. The broker does not start in KRaft mode.",
    mend="Choose other ids for the controllers and format them.",
    source="KafkaConfig (3.9)",
    reads=(BROKERS, *STATES),
    hindered=no_controller_ids,
)
def controller_id(tree: Tree) -> Iterator[Fault]:
    """Find an id that a controller and a broker have."""
    assigned = {broker for partition in tree.partitions for broker in partition.replicas}
    for node in sorted(tree.controller_ids & (tree.brokers.keys() | assigned)):
        yield Fault(f"{BROKERS}/{node}", f"{node} is a broker's id and a controller's")


@Check(
    Hazard.LOSES,
    shown_by="/brokers/ids/N while a KRaft controller owns /controller; with --bootstrap the controllers' flag",
    means="Kafka finalizes nevertheless. That broker then gets no metadata, and its clients keep dead leaders.",
    mend="Restart the broker in KRaft mode. Finalize when /brokers/ids is empty. If a controller runs without the "
    "flag already, restart it with the flag first.",
    source="KAFKA-20960, https://github.com/apache/kafka/pull/23338 (open in September 2026)",
    reads=(BROKERS, CONTROLLER, MIGRATION),
)
def broker_in_zookeeper(tree: Tree) -> Iterator[Fault]:
    """Find a broker that is registered in ZooKeeper, while KRaft leads: do not finalize yet."""
    if not tree.is_ruled_by_kraft:
        return
    finalizing = tree.nodes.in_mode(Mode.CONTROLLER) if tree.nodes else []
    already = f", and {finalizing[0].name} runs without the flag already" if finalizing else ""
    for broker in sorted(tree.brokers):
        yield Fault(f"{BROKERS}/{broker}", f"broker {broker} is still registered in ZooKeeper{already}")


@Check(
    Hazard.BLOCKS,
    shown_by="an endpoint in /brokers/ids/N whose name has CONTROL in it",
    means="Before 3.9.0 brokers do not migrate with it (KAFKA-17788). In KRaft mode none starts with it.",
    mend="Remove control.plane.listener.name and its listener, at the latest before a broker goes to KRaft mode.",
    source="KAFKA-17788, KAFKA-17790",
    reads=(BROKERS,),
)
def control_plane_listener(tree: Tree) -> Iterator[Fault]:
    """Find a control plane listener."""
    for number, broker in sorted(tree.brokers.items()):
        names = {endpoint.partition("://")[0] for endpoint in broker.addresses()}
        for name in sorted(name for name in names if "CONTROL" in name.upper()):
            yield Fault(f"{BROKERS}/{number}", f"has the listener {name}")


@Check(
    Hazard.BLOCKS,
    shown_by="versions below 2 of /controller and /feature, below 5 of /brokers/ids/N",
    means="A broker refuses the flag, or the quorum the broker.",
    mend="Go to 3.9, raise inter.broker.protocol.version to it, and format the controllers with the same version.",
    source="KafkaConfig, ClusterControlManager.processRegistrationFeature (3.9)",
    reads=(BROKERS, CONTROLLER, FEATURE),
)
def protocol_version(tree: Tree) -> Iterator[Fault]:
    """Find a release or an inter.broker.protocol.version before 3.4."""
    for number, broker in sorted(tree.brokers.items()):
        if broker.version < 5 and f"{BROKERS}/{number}" in tree.znodes:
            yield Fault(f"{BROKERS}/{number}", f"version {broker.version} is that of a protocol before 2.7")
    if tree.controller is not None and tree.controller.version < 2:
        yield Fault(CONTROLLER, f"the controller's release is before {_FIRST_WITH_MIGRATION}")
    elif FEATURE not in tree.znodes and tree.may_be_read(FEATURE):
        yield Fault(FEATURE, "is missing, so no controller of 2.7 or later has been active")
    elif tree.feature is not None and tree.feature.version < 2:
        yield Fault(FEATURE, f"version {tree.feature.version} is that of a protocol before 3.3")


@Check(
    Hazard.ROLLBACK,
    shown_by="/controller_epoch below 10",
    means="KRaft's epoch grows faster with each of its elections. Once it exceeds /controller_epoch + 1, a "
    "ZooKeeper controller after a rollback elects no leader for the partitions that KRaft has written.",
    mend=RAISE_EPOCH.filled(EPOCH="1000")
    .given("ZooKeeper leads, and `kontrast lint` finds no unloadable-topic, duplicate-topic-id or missing-topic-id")
    .says(),
    source="KAFKA-20488; PartitionStateMachine (3.9)",
    reads=(EPOCH, MIGRATION, CONTROLLER),
    advises=True,
)
def small_epoch(tree: Tree) -> Iterator[Fault]:
    """Find a small /controller_epoch, and one that brokers do not accept."""
    if tree.is_ruled_by_kraft or EPOCH not in tree.znodes:
        return
    try:
        epoch = decode_lasting_epoch(tree.data(EPOCH))
    except ZnodeError as error:
        yield Fault(EPOCH, error.flaw.predicate)
        return
    if epoch < _SMALL_EPOCH:
        yield Fault(EPOCH, f"is {epoch}")


@Check(
    Hazard.BLOCKS,
    shown_by="ACLs of ZooKeeper with owners by sasl or digest",
    means="A controller with another login has no rights (NoAuth). The driver reports a fault and waits.",
    mend="Let the controllers log in to ZooKeeper as the brokers do, with the same JAAS section Client and principal.",
    source="KRaftMigrationDriver (3.9)",
    hindered=no_acls,
)
def zookeeper_acls(tree: Tree) -> Iterator[Fault]:
    """Find znodes that only some may read or write."""
    for path in sorted(tree.unreadable):
        yield Fault(path, "may not be read by this session, nor by a controller that logs in like it")
    znodes: dict[frozenset[Owner], list[str]] = defaultdict(list)
    known = tree.owners or {}
    for path, owners in known.items():
        named = frozenset(owner for owner in owners if owner.scheme != "world")
        if named:
            znodes[named].append(path)
    for owners, paths in sorted(znodes.items(), key=lambda found: sorted(found[0])):
        who = " and ".join(f"{owner.scheme}:{owner.name}" for owner in sorted(owners))
        yield Fault(min(paths), f"{who} may change {len(paths)} of {len(known)} znodes whose ACL was read")
