"""Checks of leftovers from an earlier attempt, of the controller and of the brokers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.contract.znodes import ZnodeError, decode_epoch
from migration.nodes.nodes import Mode
from migration.preflight.check import Finding
from migration.preflight.tree import BROKERS, CONTROLLER, MIGRATION, Owner, Tree

EPOCH = "/controller_epoch"
SEQUENCE = "/brokers/seqid"
FEATURE = "/feature"
TRIGGERS = ("/admin/reassign_partitions", "/admin/preferred_replica_election")

# An election of the quorum raises KRaft's epoch by one or two, but /controller_epoch by one. In a real quorum, each of
# five leader changes cost 0.4 of the distance, so ten suffice for the 25 changes of a few rolling restarts.
_SMALL_EPOCH = 10
_HIGHEST_CHOSEN_ID = 1_000  # reserved.broker.max.id, above which Kafka makes ids
_FIRST_WITH_MIGRATION = "3.4"


def earlier_attempt(tree: Tree) -> Iterator[Finding]:
    """Find an old /migration that reports a complete copy while no KRaft controller leads."""
    migration = tree.migration
    if migration is None or migration.kraft_metadata_offset <= 0 or tree.is_ruled_by_kraft:
        return
    ruler = f"broker {tree.controller.brokerid} is controller" if tree.controller else "nobody is controller"
    yield Finding(
        MIGRATION,
        f"says that KRaft controller {migration.kraft_controller_id} has copied everything up to offset "
        f"{migration.kraft_metadata_offset} of epoch {migration.kraft_metadata_epoch}, while {ruler}",
    )


def null_migration(tree: Tree) -> Iterator[Finding]:
    """Yield a /migration that has a null for a value."""
    if MIGRATION in tree.znodes and tree.data(MIGRATION) is None:
        yield Finding(MIGRATION, "has a null for a value")


def unreadable_migration(tree: Tree) -> Iterator[Finding]:
    """Yield a /migration whose value is not in Kafka's form."""
    data = tree.data(MIGRATION)
    if data is not None and tree.migration is None:
        yield Finding(MIGRATION, "is not the JSON of version 0" if data else "is empty")


def leftover_controller(tree: Tree) -> Iterator[Finding]:
    """Yield a /controller that no session keeps, before KRaft rules."""
    znode = tree.znodes.get(CONTROLLER)
    if znode is None or znode.ephemeral_owner or tree.is_ruled_by_kraft:
        return
    known = tree.controller
    whose = "and cannot be read"
    if known is not None:
        whose = f"of node {known.brokerid}"
        whose += f", KRaft epoch {known.kraftControllerEpoch}" if known.kraftControllerEpoch >= 0 else ""
    yield Finding(CONTROLLER, f"is persistent, {whose}")


def triggers_left(tree: Tree) -> Iterator[Finding]:
    """Yield the requests in ZooKeeper that a next ZooKeeper controller would obey."""
    for path in TRIGGERS:
        if path in tree.znodes:
            yield Finding(path, "is there")


def generated_ids(tree: Tree) -> Iterator[Finding]:
    """Yield the brokers whose id Kafka has made."""
    sequence = tree.znodes.get(SEQUENCE)
    if sequence is not None and sequence.version > 0:
        for broker in sorted(tree.brokers):
            if broker > _HIGHEST_CHOSEN_ID:
                yield Finding(f"{BROKERS}/{broker}", f"the id {broker} was made by Kafka (version of {SEQUENCE} > 0)")


def shared_node_ids(tree: Tree) -> Iterator[Finding]:
    """Yield the ids of planned controllers that brokers have, too."""
    assigned = {broker for partition in tree.partitions for broker in partition.replicas}
    for node in sorted(tree.controller_ids & (tree.brokers.keys() | assigned)):
        yield Finding(f"{BROKERS}/{node}", f"{node} is a broker's id and a controller's")


def no_controller_ids(tree: Tree) -> str:
    """Return the reason if ids cannot be compared, otherwise an empty text."""
    return "" if tree.controller_ids else "no znode has them; give --controller-ids"


def still_registered(tree: Tree) -> Iterator[Finding]:
    """Yield the registered brokers while a KRaft controller leads, and name a controller that already finalizes."""
    if not tree.is_ruled_by_kraft:
        return
    finalizing = tree.nodes.in_mode(Mode.CONTROLLER) if tree.nodes else []
    already = f", and {finalizing[0].name} runs without the flag already" if finalizing else ""
    for broker in sorted(tree.brokers):
        yield Finding(f"{BROKERS}/{broker}", f"broker {broker} is still registered in ZooKeeper{already}")


def control_plane_listeners(tree: Tree) -> Iterator[Finding]:
    """Yield the brokers with a listener that is named like a control plane's."""
    for number, broker in sorted(tree.brokers.items()):
        names = {endpoint.partition("://")[0] for endpoint in broker.addresses()}
        for name in sorted(name for name in names if "CONTROL" in name.upper()):
            yield Finding(f"{BROKERS}/{number}", f"has the listener {name}")


def protocol_version(tree: Tree) -> Iterator[Finding]:
    """Yield signs of an inter.broker.protocol.version, or a release, before the first that migrates."""
    for number, broker in sorted(tree.brokers.items()):
        if broker.version < 5 and f"{BROKERS}/{number}" in tree.znodes:
            yield Finding(f"{BROKERS}/{number}", f"version {broker.version} is that of a protocol before 2.7")
    if tree.controller is not None and tree.controller.version < 2:
        yield Finding(CONTROLLER, f"the controller's release is before {_FIRST_WITH_MIGRATION}")
    elif FEATURE not in tree.znodes and tree.may_be_read(FEATURE):
        yield Finding(FEATURE, "is missing, so no controller of 2.7 or later has been active")
    elif tree.feature is not None and tree.feature.version < 2:
        yield Finding(FEATURE, f"version {tree.feature.version} is that of a protocol before 3.3")


def small_epoch(tree: Tree) -> Iterator[Finding]:
    """Yield a /controller_epoch that is so small that KRaft's own epoch would soon overtake it."""
    if tree.is_ruled_by_kraft:
        return
    try:
        epoch = decode_epoch(tree.data(EPOCH))
    except ZnodeError:
        return
    if epoch < _SMALL_EPOCH:
        yield Finding(EPOCH, f"is {epoch}")


def zookeeper_acls(tree: Tree) -> Iterator[Finding]:
    """Yield the identities that ACLs of znodes demand, each with the first of its znodes."""
    for path in sorted(tree.unreadable):
        yield Finding(path, "may not be read by this session, nor by a controller that logs in like it")
    znodes: dict[frozenset[Owner], list[str]] = defaultdict(list)
    known = tree.owners or {}
    for path, owners in known.items():
        named = frozenset(owner for owner in owners if owner.scheme != "world")
        if named:
            znodes[named].append(path)
    for owners, paths in sorted(znodes.items(), key=lambda found: sorted(found[0])):
        who = " and ".join(f"{owner.scheme}:{owner.name}" for owner in sorted(owners))
        yield Finding(min(paths), f"{who} may change {len(paths)} of {len(known)} znodes whose ACL was read")


def no_acls(tree: Tree) -> str:
    """Return the reason if ZooKeeper's ACLs cannot be checked, otherwise an empty text."""
    return "copied files are read without their ACLs; read a live ZooKeeper" if tree.owners is None else ""
