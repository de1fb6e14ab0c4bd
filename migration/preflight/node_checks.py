"""Checks of the nodes' own answers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.contract.ids import NO_BROKER, BrokerId
from migration.nodes.nodes import METADATA_VERSIONS, VOTERS, Mode, Node
from migration.preflight.check import Finding
from migration.preflight.tree import BROKERS, Tree

INTER_BROKER_PROTOCOL = "inter.broker.protocol.version"
LOG_DIRS = "log.dirs"
SETTINGS = (INTER_BROKER_PROTOCOL, LOG_DIRS, VOTERS)

_WITH_TRANSACTIONS = "3.6-IV1"
_WITH_SEVERAL_DIRECTORIES = "3.7-IV2"
_TOO_EARLY = "runs in KRaft mode although the migration has not begun"
_LEVELS = {name: level for level, name in METADATA_VERSIONS.items()}


def without_flag(tree: Tree) -> Iterator[Finding]:
    """Yield live brokers in ZooKeeper mode without the migration flag."""
    for node in _in_mode(tree, Mode.ZOOKEEPER):
        yield Finding(_place(node), f"{node.name} lives in ZooKeeper mode without the flag")


def controllers_without_flag(tree: Tree) -> Iterator[Finding]:
    """Yield KRaft controllers without the migration flag, unless a KRaft controller leads already."""
    if not tree.is_ruled_by_kraft:
        for node in _in_mode(tree, Mode.CONTROLLER):
            yield Finding(node.address, f"{node.name} was started without the flag")


def kraft_mode_too_early(tree: Tree) -> Iterator[Finding]:
    """Yield brokers that are in KRaft mode before the copy, as their own answer or the quorum's shows."""
    if tree.nodes is None or tree.is_ruled_by_kraft:
        return
    for node in _in_mode(tree, Mode.KRAFT):
        yield Finding(node.address, f"{node.name} {_TOO_EARLY}")
    quorum = tree.nodes.quorum
    answering = {node.node_id for node in tree.nodes.nodes if node.mode is not None}
    for broker in sorted(quorum.observers - tree.brokers.keys() - answering if quorum else ()):
        yield Finding(
            f"{BROKERS}/{broker}", f"broker {broker} {_TOO_EARLY}: it reads the quorum's log and is absent here"
        )


def unreachable_voters(tree: Tree) -> Iterator[Finding]:
    """Yield voters whose own address is not answered by a controller, and addresses that several voters share."""
    modes = {node.address: node for node in (tree.nodes.nodes if tree.nodes else ())}
    for address, voters in sorted(_voters_by_address(tree).items()):
        node, named = modes[address], " and ".join(map(str, sorted(voters)))
        if len(voters) > 1:
            yield Finding(address, f"the voters {named} share this address, as behind a load balancer")
        if node.mode is None:
            yield Finding(address, f"voter {named} does not answer this machine by its own address: {node.reason}")
        elif not node.mode.is_controller:
            yield Finding(address, f"a {node.mode.words} answers by the address of voter {named}")


def _voters_by_address(tree: Tree) -> dict[str, set[BrokerId]]:
    found: dict[str, set[BrokerId]] = defaultdict(set)
    for voter, address in tree.nodes.voter_addresses if tree.nodes else ():
        found[address].add(voter)
    return found


def no_voter_known(tree: Tree) -> str:
    """Return the reason if no node names the voters' addresses."""
    if reason := not_asked(tree):
        return reason
    return "" if _voters_by_address(tree) else "no node names the voters' addresses"


def other_protocol_version(tree: Tree) -> Iterator[Finding]:
    """Yield brokers whose inter.broker.protocol.version is not the quorum's metadata.version."""
    wanted = _metadata_version(tree)
    for node in _in_mode(tree, Mode.ZOOKEEPER, Mode.ZOOKEEPER_MIGRATING):
        version = node.settings.get(INTER_BROKER_PROTOCOL)
        if wanted is not None and version is not None and version != wanted:
            yield Finding(
                _place(node), f"{node.name} has {INTER_BROKER_PROTOCOL} {version}, the quorum metadata.version {wanted}"
            )


def old_metadata_version(tree: Tree) -> Iterator[Finding]:
    """Yield a metadata.version without transactions."""
    version = _metadata_version(tree)
    if version is not None and _LEVELS[version] < _LEVELS[_WITH_TRANSACTIONS]:
        controllers = _in_mode(tree, Mode.CONTROLLER, Mode.CONTROLLER_MIGRATING)
        yield Finding(controllers[0].address, f"the quorum has metadata.version {version}, below {_WITH_TRANSACTIONS}")


def several_log_directories(tree: Tree) -> Iterator[Finding]:
    """Yield brokers with several log directories and a protocol version that refuses them."""
    for node in _in_mode(tree, Mode.ZOOKEEPER, Mode.ZOOKEEPER_MIGRATING):
        count = len([part for part in node.settings.get(LOG_DIRS, "").split(",") if part.strip()])
        version = node.settings.get(INTER_BROKER_PROTOCOL, "")
        if count > 1 and _LEVELS.get(version, 0) < _LEVELS[_WITH_SEVERAL_DIRECTORIES]:
            yield Finding(
                _place(node), f"{node.name} has {count} log directories and {INTER_BROKER_PROTOCOL} {version}"
            )


def not_asked(tree: Tree) -> str:
    """Return the reason if no node was asked."""
    return "" if tree.nodes is not None else "no znode shows it; ask the nodes with --bootstrap"


def no_controller_asked(tree: Tree) -> str:
    """Return the reason if no KRaft controller answered."""
    if reason := not_asked(tree):
        return reason
    asked = _in_mode(tree, Mode.CONTROLLER, Mode.CONTROLLER_MIGRATING)
    return "" if asked else "no KRaft controller answers; name the quorum's controllers with --bootstrap"


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
