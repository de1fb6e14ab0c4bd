"""Ask all nodes at once for their modes, and one node for the quorum and its brokers.

ApiVersions needs no login. kafka-python's connections send it, too, but keep only the APIs. This module needs the rest
of the answer, and a connection of its own, because brokers refuse a second ApiVersions before a login.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from kafka.errors import KafkaError, for_code
from kafka.protocol.admin import DescribeClusterRequest, DescribeConfigsRequest, DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.parser import KafkaProtocol

from controller.contract.ids import BrokerId
from migration.nodes.nodes import Node, Nodes, Quorum, mode_of
from outputs.kafka_node import KafkaNode, NodeError
from transport.kafka_login import KafkaLogin, host_and_port, split_address
from transport.printable import printable

# Kafka 3.9.2 answers with 500 bytes. An API takes 7, a feature some 30.
_LARGEST_VERSIONS_BYTES = 64 * 1024
_PIECE_BYTES = 16 * 1024
_VERSION = 3  # the first version with tagged fields. Brokers before 2.4 do not know it and answer in version 0
_LONGEST_REASON = 300
_UNSUPPORTED_VERSION = 35
_METADATA_VERSION = "metadata.version"


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """The parts of the answer that show a node's role in the migration, with the finalized level of each feature."""

    apis: frozenset[int]
    zk_migration_ready: bool
    features: Mapping[str, int]

    @property
    def metadata_version(self) -> int | None:
        """Return the finalized level of metadata.version."""
        return self.features.get(_METADATA_VERSION)


def ask_api_versions(address: str, login: KafkaLogin, timeout_seconds: float) -> ApiVersions:
    """Return the answer of the node at HOST:PORT within the time, without a login. Raise NodeError."""
    try:
        return _read(_exchange(split_address(address), login, time.monotonic() + timeout_seconds))
    except TimeoutError as error:
        raise NodeError(f"no answer came within {timeout_seconds:g} s") from error
    except ssl.SSLError as error:
        raise NodeError(f"no TLS connection comes about: {printable(error.reason or str(error))}") from error
    except OSError as error:
        raise NodeError(printable(error.strerror or str(error), _LONGEST_REASON)) from error
    # The decoder raises many kinds of errors for bytes that are no answer.
    except (KafkaError, ValueError, TypeError, AttributeError, LookupError, MemoryError) as error:
        detail = printable(str(error), _LONGEST_REASON)
        raise NodeError(f"its answer to ApiVersions cannot be read: {detail}") from error


def _exchange(host_and_port: tuple[str, int], login: KafkaLogin, give_up_at: float) -> Any:  # noqa: ANN401 (kafka-python's)
    protocol = KafkaProtocol(client_id="kontrast", receive_message_max_bytes=_LARGEST_VERSIONS_BYTES)
    protocol.send_request(
        ApiVersionsRequest(version=_VERSION, client_software_name="kontrast", client_software_version="1")
    )
    with socket.create_connection(host_and_port, _left(give_up_at)) as plain:
        plain.settimeout(_left(give_up_at))
        with _tls(plain, host_and_port[0], login) if login.tls else plain as connection:
            connection.sendall(protocol.send_bytes())
            while True:
                connection.settimeout(_left(give_up_at))
                piece = connection.recv(_PIECE_BYTES)
                if not piece:
                    raise ConnectionError("it closes the connection; it may expect TLS, or not be a Kafka node")
                for _, answer in protocol.receive_bytes(piece):
                    return answer


def _tls(plain: socket.socket, host: str, login: KafkaLogin) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=login.ca_file)
    if login.certificate_file is not None:
        context.load_cert_chain(login.certificate_file, login.key_file)
    return context.wrap_socket(plain, server_hostname=host)


def _left(give_up_at: float) -> float:
    left = give_up_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _read(answer: Any) -> ApiVersions:  # noqa: ANN401 (kafka-python's)
    if answer.error_code not in (0, _UNSUPPORTED_VERSION):
        raise ValueError(f"error {answer.error_code}")
    return ApiVersions(
        apis=frozenset(api.api_key for api in answer.api_keys),
        zk_migration_ready=bool(answer.zk_migration_ready),
        features={feature.name: feature.max_version_level for feature in answer.finalized_features or ()},
    )


_AT_ONCE = 32
# DescribeQuorum takes 50 bytes per replica, DescribeCluster some 40 per broker. This suffices for ten thousand.
_LARGEST_ANSWER_BYTES = 1024**2
_METADATA_TOPIC = "__cluster_metadata"
_OF_BROKERS = 1  # DescribeCluster's endpoint type
_BROKER = 4  # ConfigResource.Type

# The decoder's errors for an answer with null for a list, or with a number outside an enumeration.
UNREADABLE_ANSWERS = (ValueError, TypeError, AttributeError, LookupError)


def ask_nodes(
    addresses: Sequence[str], registered: dict[BrokerId, str], login: KafkaLogin, timeout_seconds: float
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


def with_settings(nodes: Nodes, names: Sequence[str], login: KafkaLogin, timeout_seconds: float) -> Nodes:
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


def with_voters(nodes: Nodes, login: KafkaLogin, timeout_seconds: float) -> Nodes:
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


def connect(node: Node, login: KafkaLogin, timeout_seconds: float, largest_answer_bytes: int) -> KafkaNode:
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
    return host_and_port(printable(host, 255), port)


def _modes(addresses: Iterable[str], login: KafkaLogin, timeout_seconds: float) -> list[Node]:
    """Return the node of each address, once, in the order of the addresses."""
    distinct = list(dict.fromkeys(addresses))
    if not distinct:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(distinct)), thread_name_prefix="nodes") as threads:
        return list(threads.map(lambda address: _mode(address, login, timeout_seconds), distinct))


def _mode(address: str, login: KafkaLogin, timeout_seconds: float) -> Node:
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
    login: KafkaLogin,
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
