"""Checks of the nodes' own answers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.contract.ids import NO_BROKER, BrokerId
from migration.nodes.nodes import METADATA_VERSIONS, VOTERS, Mode, Node
from migration.preflight.check import Check, Fault, Hazard
from migration.preflight.tree import BROKERS, Tree

INTER_BROKER_PROTOCOL = "inter.broker.protocol.version"
LOG_DIRS = "log.dirs"
SETTINGS = (INTER_BROKER_PROTOCOL, LOG_DIRS, VOTERS)

_WITH_TRANSACTIONS = "3.6-IV1"
_WITH_SEVERAL_DIRECTORIES = "3.7-IV2"
_TOO_EARLY = "runs in KRaft mode although the migration has not begun"
_LEVELS = {name: level for level, name in METADATA_VERSIONS.items()}


def not_asked(tree: Tree) -> str:
    """Return the reason if no node was asked."""
    return "" if tree.nodes is not None else "no znode shows it; ask the nodes with --bootstrap"


def no_controller_asked(tree: Tree) -> str:
    """Return the reason if no KRaft controller answered."""
    if reason := not_asked(tree):
        return reason
    asked = _in_mode(tree, Mode.CONTROLLER, Mode.CONTROLLER_MIGRATING)
    return "" if asked else "no KRaft controller answers; name the quorum's controllers with --bootstrap"


def no_voter_known(tree: Tree) -> str:
    """Return the reason if no node names the voters' addresses."""
    if reason := not_asked(tree):
        return reason
    return "" if _voters_by_address(tree) else "no node names the voters' addresses"


def silent_brokers(tree: Tree) -> str:
    """Return a sentence about registered brokers whose mode is unknown, or an empty text."""
    known = {node.node_id for node in tree.nodes.nodes if node.mode is not None} if tree.nodes else set()
    return _sentence("broker", sorted(tree.brokers.keys() - known), _reasons(tree))


def silent_voters(tree: Tree) -> str:
    """Return a sentence about voters of the quorum that did not answer, or an empty text."""
    if tree.nodes is None or tree.nodes.quorum is None:
        return "no controller reports the voters; name the leading one with --bootstrap"
    known = {node.node_id for node in tree.nodes.nodes if node.mode is not None}
    return _sentence("voter", sorted(set(tree.nodes.quorum.voters) - known), _reasons(tree))


def unread_settings(tree: Tree) -> str:
    """Return a sentence about brokers in ZooKeeper mode whose settings are unknown, or an empty text."""
    nodes = _in_mode(tree, Mode.ZOOKEEPER, Mode.ZOOKEEPER_MIGRATING)
    unread = [node.node_id if node.node_id is not None else NO_BROKER for node in nodes if not node.settings]
    return _sentence("broker", unread, ": its settings may not be described with this login") or silent_brokers(tree)


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap each broker's ApiVersions answer",
    means="The quorum waits for that broker without limit of time.",
    mend="Restart it with zookeeper.metadata.migration.enable=true and the quorum's voters.",
    source="KRaftMigrationDriver, ClusterControlManager (3.9)",
    reads=(BROKERS,),
    hindered=not_asked,
    incomplete=silent_brokers,
)
def broker_without_flag(tree: Tree) -> Iterator[Fault]:
    """Find a live broker without the flag of the migration."""
    for node in _in_mode(tree, Mode.ZOOKEEPER):
        yield Fault(_place(node), f"{node.name} lives in ZooKeeper mode without the flag")


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap each controller's ApiVersions answer",
    means="The quorum waits for that voter without a time limit. One that first started without the flag "
    "never migrates.",
    mend="Start every controller with zookeeper.metadata.migration.enable=true and zookeeper.connect. If the"
    " quorum has run without the flag, format all controllers' disks again.",
    source="ZkMigrationState, KRaftMigrationDriver (3.9)",
    hindered=no_controller_asked,
    incomplete=silent_voters,
)
def controller_without_flag(tree: Tree) -> Iterator[Fault]:
    """Find a KRaft controller without the flag of the migration."""
    if not tree.is_ruled_by_kraft:
        for node in _in_mode(tree, Mode.CONTROLLER):
            yield Fault(node.address, f"{node.name} was started without the flag")


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap its ApiVersions answer, or the quorum's list of observers",
    means="The quorum refuses the broker (BROKER_ID_NOT_REGISTERED) and waits for it in ZooKeeper mode. Its "
    "replicas are offline meanwhile.",
    mend="Remove process.roles and node.id from its settings. Restart it in ZooKeeper mode with broker.id and the "
    "migration flag. Set process.roles only after the copy.",
    source="https://github.com/bitnami/containers/issues/54066 (December 2023); ClusterControlManager (3.9)",
    reads=(BROKERS,),
    hindered=not_asked,
)
def kraft_mode_too_early(tree: Tree) -> Iterator[Fault]:
    """Find a broker in KRaft mode before the copy."""
    if tree.nodes is None or tree.is_ruled_by_kraft:
        return
    for node in _in_mode(tree, Mode.KRAFT):
        yield Fault(node.address, f"{node.name} {_TOO_EARLY}")
    quorum = tree.nodes.quorum
    answering = {node.node_id for node in tree.nodes.nodes if node.mode is not None}
    for broker in sorted(quorum.observers - tree.brokers.keys() - answering if quorum else ()):
        yield Fault(
            f"{BROKERS}/{broker}", f"broker {broker} {_TOO_EARLY}: it reads the quorum's log and is absent here"
        )


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap the addresses in DescribeQuorum and in the brokers' "
    "controller.quorum.voters, each asked",
    means="Votes and fetches reach another voter or none. The quorum elects no lasting leader, and brokers do not "
    "register.",
    mend="Give each voter its own address in controller.quorum.voters, past any load balancer, on all controllers "
    "and brokers.",
    source="https://github.com/strimzi/strimzi-kafka-operator/issues/10714 (October 2024)",
    hindered=no_voter_known,
)
def voter_address(tree: Tree) -> Iterator[Fault]:
    """Find a voter that does not answer by its own address."""
    modes = {node.address: node for node in (tree.nodes.nodes if tree.nodes else ())}
    for address, voters in sorted(_voters_by_address(tree).items()):
        node, named = modes[address], " and ".join(map(str, sorted(voters)))
        if len(voters) > 1:
            yield Fault(address, f"the voters {named} share this address, as behind a load balancer")
        if node.mode is None:
            yield Fault(address, f"voter {named} does not answer this machine by its own address: {node.reason}")
        elif not node.mode.is_controller:
            yield Fault(address, f"a {node.mode.words} answers by the address of voter {named}")


def _voters_by_address(tree: Tree) -> dict[str, set[BrokerId]]:
    found: dict[str, set[BrokerId]] = defaultdict(set)
    for voter, address in tree.nodes.voter_addresses if tree.nodes else ():
        found[address].add(voter)
    return found


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap the brokers' settings and the controllers' features",
    means="The quorum refuses the broker's registration, and waits for it without limit of time.",
    mend="Format the controllers with that version (kafka-storage.sh format -r), or change it on the brokers.",
    source="KafkaServer, ClusterControlManager.processRegistrationFeature (3.9)",
    reads=(BROKERS,),
    hindered=no_controller_asked,
    incomplete=unread_settings,
)
def metadata_version(tree: Tree) -> Iterator[Fault]:
    """Find inter.broker.protocol.version is not the quorum's metadata.version."""
    wanted = _metadata_version(tree)
    for node in _in_mode(tree, Mode.ZOOKEEPER, Mode.ZOOKEEPER_MIGRATING):
        version = node.settings.get(INTER_BROKER_PROTOCOL)
        if wanted is not None and version is not None and version != wanted:
            yield Fault(
                _place(node), f"{node.name} has {INTER_BROKER_PROTOCOL} {version}, the quorum metadata.version {wanted}"
            )


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap the controllers' features",
    means="The quorum refuses to begin. Before 3.8.1 it begins, and an aborted copy stays incomplete.",
    mend="Raise inter.broker.protocol.version on the brokers, and format the controllers with the same version.",
    source="KAFKA-17457, ActivationRecordsGenerator (3.9)",
    hindered=no_controller_asked,
)
def metadata_version_without_transactions(tree: Tree) -> Iterator[Fault]:
    """Find a metadata.version below 3.6-IV1."""
    version = _metadata_version(tree)
    if version is not None and _LEVELS[version] < _LEVELS[_WITH_TRANSACTIONS]:
        controllers = _in_mode(tree, Mode.CONTROLLER, Mode.CONTROLLER_MIGRATING)
        yield Fault(controllers[0].address, f"the quorum has metadata.version {version}, below {_WITH_TRANSACTIONS}")


@Check(
    Hazard.BLOCKS,
    shown_by="no znode; with --bootstrap the brokers' settings",
    means="The broker refuses the flag, until inter.broker.protocol.version is 3.7-IV2 or later.",
    mend="Go to 3.7 or later and raise inter.broker.protocol.version first.",
    source="KAFKA-15450, KIP-858",
    reads=(BROKERS,),
    hindered=not_asked,
    incomplete=unread_settings,
    since=(3, 5, 2),
)
def several_log_directories(tree: Tree) -> Iterator[Fault]:
    """Find brokers with several log directories."""
    for node in _in_mode(tree, Mode.ZOOKEEPER, Mode.ZOOKEEPER_MIGRATING):
        count = len([part for part in node.settings.get(LOG_DIRS, "").split(",") if part.strip()])
        version = node.settings.get(INTER_BROKER_PROTOCOL, "")
        if count > 1 and _LEVELS.get(version, 0) < _LEVELS[_WITH_SEVERAL_DIRECTORIES]:
            yield Fault(_place(node), f"{node.name} has {count} log directories and {INTER_BROKER_PROTOCOL} {version}")


def _sentence(kind: str, ids: list[BrokerId], reason: str) -> str:
    if not ids:
        return ""
    more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    return f"{kind} {ids[0]}{more} did not answer{reason}"


def _reasons(tree: Tree) -> str:
    reasons = [f"{node.name}: {node.reason}" for node in (tree.nodes.nodes if tree.nodes else ()) if node.reason]
    return f" ({reasons[0]})" if reasons else ""


def _in_mode(tree: Tree, *modes: Mode) -> list[Node]:
    return tree.nodes.in_mode(*modes) if tree.nodes is not None else []


def _metadata_version(tree: Tree) -> str | None:
    levels = [node.metadata_version or 0 for node in _in_mode(tree, Mode.CONTROLLER, Mode.CONTROLLER_MIGRATING)]
    return next((METADATA_VERSIONS[level] for level in levels if level in METADATA_VERSIONS), None)


def _place(node: Node) -> str:
    return node.address if node.node_id is None else f"{BROKERS}/{node.node_id}"
