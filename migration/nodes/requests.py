"""Ask all nodes at once for their modes, and one node for the quorum and its brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from kafka.errors import for_code
from kafka.protocol.admin import DescribeClusterRequest, DescribeConfigsRequest, DescribeQuorumRequest

from controller.contract.ids import BrokerId
from migration.nodes.api_versions import ApiVersions, ask_api_versions
from migration.nodes.nodes import Node, Nodes, Quorum, mode_of
from outputs.kafka_node import KafkaNode, NodeError
from transport.kafka_login import NodeLogin
from transport.printable import printable

_AT_ONCE = 32
# DescribeQuorum takes 50 bytes per replica, DescribeCluster some 40 per broker. This suffices for ten thousand.
_LARGEST_ANSWER_BYTES = 1024**2
_METADATA_TOPIC = "__cluster_metadata"
_OF_BROKERS = 1  # DescribeCluster's endpoint type
_BROKER = 4  # ConfigResource.Type

# The decoder's errors for an answer with null for a list, or with a number outside an enumeration.
UNREADABLE_ANSWERS = (ValueError, TypeError, AttributeError, LookupError)


def ask_nodes(
    addresses: Sequence[str], registered: dict[BrokerId, str], login: NodeLogin, timeout_seconds: float
) -> Nodes:
    """Return the modes of these nodes, of the registered brokers, and of the nodes that they name.

    Modes need no login, but the quorum and the list of brokers do. A broker in ZooKeeper mode names the brokers in
    KRaft mode, and these report the quorum and name its controllers.
    """
    known = {address: broker for broker, address in registered.items()}
    nodes = {node.address: node for node in _modes([*addresses, *known], login, timeout_seconds)}
    listed = _first(ask_brokers, nodes.values(), login, timeout_seconds) or {}
    known |= {address: broker for broker, address in listed.items()}
    nodes |= {node.address: node for node in _modes(known.keys() - nodes.keys(), login, timeout_seconds)}
    quorum = _first(ask_quorum, nodes.values(), login, timeout_seconds)
    known |= {address: broker for broker, address in (quorum.addresses if quorum else {}).items()}
    nodes |= {node.address: node for node in _modes(known.keys() - nodes.keys(), login, timeout_seconds)}
    return Nodes(tuple(replace(node, node_id=known.get(node.address)) for node in nodes.values()), quorum)


def with_settings(nodes: Nodes, names: Sequence[str], login: NodeLogin, timeout_seconds: float) -> Nodes:
    """Return the same nodes with settings of each broker whose id is known and whose settings are readable."""
    if not nodes.nodes:
        return nodes

    def ask(node: Node) -> Node:
        if node.node_id is None or node.mode is None or node.mode.is_controller:
            return node
        kafka = connect(node, login, timeout_seconds, _LARGEST_ANSWER_BYTES)
        try:
            return replace(node, settings=_ask_settings(node.node_id, names, kafka))
        except (NodeError, *UNREADABLE_ANSWERS):
            return node
        finally:
            kafka.close()

    with ThreadPoolExecutor(min(_AT_ONCE, len(nodes.nodes)), thread_name_prefix="nodes") as threads:
        return replace(nodes, nodes=tuple(threads.map(ask, nodes.nodes)))


def with_voters(nodes: Nodes, login: NodeLogin, timeout_seconds: float) -> Nodes:
    """Return the same nodes and each voter at an address that only a broker's settings name."""
    voters = {address: voter for voter, address in nodes.voter_addresses}
    asked = {node.address for node in nodes.nodes}
    found = _modes(voters.keys() - asked, login, timeout_seconds)
    return replace(nodes, nodes=(*nodes.nodes, *(replace(node, node_id=voters[node.address]) for node in found)))


def _ask_settings(broker: BrokerId, names: Sequence[str], kafka: KafkaNode) -> dict[str, str]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(broker), configuration_keys=list(names)
    )
    (result,) = kafka.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=False)).results
    refuse(result.error_code)
    return {one.name: one.value for one in result.configs if one.name in names and one.value and not one.is_sensitive}


def ask_quorum(node: Node, kafka: KafkaNode) -> Quorum | None:
    """Return the quorum as this node reports it, None if the node has no such API. Raise NodeError."""
    if DescribeQuorumRequest.API_KEY not in node.apis:
        return None
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    answer = kafka.ask(DescribeQuorumRequest(topics=[topic(topic_name=_METADATA_TOPIC, partitions=[partition])]))
    refuse(answer.error_code)
    for found in (partition for topic in answer.topics for partition in topic.partitions):
        refuse(found.error_code)  # a controller that does not lead has an error here
        return Quorum(
            leader=found.leader_id,
            leader_epoch=found.leader_epoch,
            high_watermark=found.high_watermark,
            voters=tuple(sorted(voter.replica_id for voter in found.current_voters)),
            addresses={
                voter.node_id: written(listener.host, listener.port)
                for voter in answer.nodes or ()
                for listener in voter.listeners[:1]
            },
            log_ends={one.replica_id: one.log_end_offset for one in (*found.current_voters, *found.observers)},
        )
    return None


def ask_brokers(node: Node, kafka: KafkaNode) -> dict[BrokerId, str] | None:
    """Return the live brokers' addresses as this broker reports them. A controller has no answer. Raise NodeError."""
    if node.mode is None or node.mode.is_controller:
        return None
    answer = kafka.ask(DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_OF_BROKERS))
    refuse(answer.error_code)
    return {broker.broker_id: written(broker.host, broker.port) for broker in answer.brokers}


def connect(node: Node, login: NodeLogin, timeout_seconds: float, largest_answer_bytes: int) -> KafkaNode:
    """Return a connection to the node, with the login."""
    return KafkaNode(
        node.address,
        login,
        timeout_seconds=timeout_seconds,
        largest_answer_bytes=largest_answer_bytes,
        client_id="kontrast",
    )


def refuse(error_code: int) -> None:
    """Raise NodeError with Kafka's name of the error, unless the code is 0."""
    if error_code:
        raise NodeError(f"it answers {for_code(error_code).message}")


def written(host: str, port: int) -> str:
    """Return HOST:PORT for print and requests, with IPv6 in brackets."""
    host = printable(host, 255)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _modes(addresses: Iterable[str], login: NodeLogin, timeout_seconds: float) -> list[Node]:
    """Return the node of each address, once, in the order of the addresses."""
    distinct = list(dict.fromkeys(addresses))
    if not distinct:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(distinct)), thread_name_prefix="nodes") as threads:
        return list(threads.map(lambda address: _mode(address, login, timeout_seconds), distinct))


def _mode(address: str, login: NodeLogin, timeout_seconds: float) -> Node:
    try:
        answer: ApiVersions = ask_api_versions(address, login, timeout_seconds)
    except NodeError as error:
        return Node(address, reason=str(error))
    mode = mode_of(answer.apis, zk_migration_ready=answer.zk_migration_ready)
    reason = "" if mode else "its APIs are those of no Kafka node that takes part in a migration"
    return Node(address, mode=mode, apis=answer.apis, metadata_version=answer.metadata_version, reason=reason)


def _first(
    ask: Callable[[Node, KafkaNode], Any],
    nodes: Iterable[Node],
    login: NodeLogin,
    timeout_seconds: float,
) -> Any:  # noqa: ANN401 (the result of `ask`)
    """Return the answer of the first node that has one, None if no node has."""
    for node in nodes:
        kafka = connect(node, login, timeout_seconds, _LARGEST_ANSWER_BYTES)
        try:
            if node.mode is not None and (found := ask(node, kafka)) is not None:
                return found
        except (NodeError, *UNREADABLE_ANSWERS):
            continue
        finally:
            kafka.close()
    return None
