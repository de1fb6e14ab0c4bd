"""The quorum's values of each copied subject, from a node that reads the subject from the quorum.

A broker in ZooKeeper mode gets its metadata from the quorum's leader, but reads settings, quotas, credentials and ACLs
from ZooKeeper, so it is not asked for these.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from migration.comparison.view import (
    DEFAULT,
    NOT_SHOWN,
    CopiedKey,
    CopiedSubject,
    Expected,
    QuorumView,
    acl_text,
    entity_text,
    leadership_text,
    quota_text,
    replicas_text,
    resource_text,
)
from migration.nodes.nodes import Mode, Node, Nodes, Quorum
from migration.nodes.requests import UNREADABLE_ANSWERS, ask_quorum, connect, refuse
from outputs.kafka_node import KafkaNode, NodeError
from transport.kafka_login import KafkaLogin

# Metadata takes 40, 36 and 12 bytes for a topic, a partition and a replica. The limit has room, because the quorum may
# have more topics than ZooKeeper.
_LARGEST_ANSWER_BYTES = 64 * 1024**2
_BYTES_OF_A_PARTITION = 256
_TOPICS_AT_ONCE = 200  # an answer has all 36 settings of a topic, some 2 kB
_UNKNOWN_TOPIC, _TOPIC_FORBIDDEN, _NO_AUTHORIZER = 3, 29, 54
_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_DYNAMIC = {_TOPIC: 1, _BROKER: 2}  # ConfigSource of the subject's own setting
_DYNAMIC_DEFAULT = 3
_ANY = 1
_SCRAM = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NO_PUBLIC_API = {
    CopiedSubject.PRODUCER_IDS: "no public API names the quorum's next producer id",
    CopiedSubject.DELEGATION_TOKENS: "no public API names a token's keys",
}
_NEEDS_KRAFT = "no broker in KRaft mode was asked, and one in ZooKeeper mode answers from ZooKeeper"

_OF_TOPICS = (CopiedSubject.TOPICS, CopiedSubject.REPLICAS, CopiedSubject.PARTITIONS)

_Read: TypeAlias = "Callable[[KafkaNode, Expected, QuorumView], None]"


class QuorumReader:
    """Reader of nodes with known modes, for one thread. The caller must close it."""

    def __init__(self, nodes: Nodes, login: KafkaLogin, timeout_seconds: float) -> None:
        self._nodes = nodes
        self._login = login
        self._timeout_seconds = timeout_seconds
        self._connections: dict[str, KafkaNode] = {}

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()

    def position(self) -> Quorum:
        """Return the quorum's position. Raise NodeError if no node reports it."""
        for node in self._nodes.in_mode(Mode.KRAFT, Mode.CONTROLLER_MIGRATING, Mode.CONTROLLER):
            try:
                quorum = ask_quorum(node, self._connection(node))
            except (NodeError, *UNREADABLE_ANSWERS):
                continue  # such as a controller that does not lead
            if quorum is not None:
                return quorum
        raise NodeError("no node reports the quorum's position")

    def read(self, expected: Expected) -> QuorumView:
        """Return the quorum's answer for each subject."""
        view = self.read_topics(expected)
        view.reasons.update(_NO_PUBLIC_API)
        kraft = self._nodes.in_mode(Mode.KRAFT)
        controllers = self._nodes.in_mode(Mode.CONTROLLER_MIGRATING, Mode.CONTROLLER)
        # For each subject, the first of its nodes that answers counts.
        plan: tuple[tuple[CopiedSubject, Sequence[Node], _Read], ...] = (
            (CopiedSubject.TOPIC_CONFIGS, [*kraft, *controllers], _read_topic_configs),
            (CopiedSubject.QUOTAS, kraft, _read_quotas),
            (CopiedSubject.SCRAM, kraft, _read_scram),
            (CopiedSubject.ACLS, [*kraft, *controllers], _read_acls),
        )
        for subject, nodes, read in plan:
            self._read([subject], nodes, partial(self._ask, read, expected, view), view)
        self._read_broker_configs(expected, [*kraft, *controllers], view)
        return view

    def read_topics(self, expected: Expected) -> QuorumView:
        """Return the quorum's topics and partitions."""
        view = QuorumView()
        nodes = self._nodes.in_mode(Mode.KRAFT) + self._nodes.in_mode(Mode.ZOOKEEPER_MIGRATING)
        self._read(_OF_TOPICS, nodes, partial(self._ask, _read_topics, expected, view), view)
        return view

    def _ask(self, read: _Read, expected: Expected, view: QuorumView, node: Node) -> None:
        connection = self._connection(node)
        connection.allow_answers_of(_LARGEST_ANSWER_BYTES + _BYTES_OF_A_PARTITION * expected.partitions)
        read(connection, expected, view)

    def _read(
        self, subjects: Sequence[CopiedSubject], nodes: Sequence[Node], read: Callable[[Node], None], view: QuorumView
    ) -> bool:
        reason = _NEEDS_KRAFT
        for node in nodes:
            try:
                read(node)
            except NodeError as error:
                reason = f"{node.name} does not report it ({error})"
            except UNREADABLE_ANSWERS as error:
                reason = f"{node.name} gave an unreadable answer ({error})"
            else:
                view.sources.update(dict.fromkeys(subjects, node))
                return True
            view.forget(subjects)
        view.reasons.update(dict.fromkeys(subjects, reason))
        return False

    def _read_broker_configs(self, expected: Expected, nodes: Sequence[Node], view: QuorumView) -> None:
        """Read the brokers' common default from any node, and each broker's own settings from that broker."""
        subject = CopiedSubject.BROKER_CONFIGS
        if not self._read([subject], nodes, lambda node: _read_broker(self._connection(node), "", view), view):
            return
        own = {str(node.node_id): node for node in self._nodes.in_mode(Mode.KRAFT) if node.node_id is not None}
        for broker in sorted({*expected.configured_brokers, *own} - {DEFAULT}):
            try:
                if broker not in own:
                    raise NodeError("only the broker itself answers, in KRaft mode")
                _read_broker(self._connection(own[broker]), broker, view)
            except (NodeError, *UNREADABLE_ANSWERS) as error:
                view.withheld[subject, broker] = str(error)

    def _connection(self, node: Node) -> KafkaNode:
        if node.address not in self._connections:
            self._connections[node.address] = connect(node, self._login, self._timeout_seconds, _LARGEST_ANSWER_BYTES)
        return self._connections[node.address]


def _read_topics(kafka: KafkaNode, expected: Expected, view: QuorumView) -> None:
    answer = kafka.ask(MetadataRequest(topics=MetadataRequest.ALL_TOPICS, allow_auto_topic_creation=False))
    moves = kafka.ask(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None))
    refuse(moves.error_code)
    moving = {(topic.name, one.partition_index): one for topic in moves.topics or () for one in topic.partitions or ()}
    listed = set()
    for topic in answer.topics or ():
        listed.add(topic.name)
        view.values[CopiedKey(CopiedSubject.TOPICS, topic.name)] = f"id {_topic_id(topic.topic_id)}"
        for partition in topic.partitions or ():
            number = str(partition.partition_index)
            move = moving.get((topic.name, partition.partition_index))
            moves_text = (move.adding_replicas, move.removing_replicas) if move else ()
            view.values[CopiedKey(CopiedSubject.REPLICAS, topic.name, number)] = replicas_text(
                partition.replica_nodes, *moves_text
            )
            view.values[CopiedKey(CopiedSubject.PARTITIONS, topic.name, number)] = leadership_text(
                partition.leader_id, partition.leader_epoch, partition.isr_nodes
            )
    for topic in _forbidden_topics(kafka, sorted(expected.topics - listed)):
        for subject in _OF_TOPICS:
            view.withheld[subject, topic] = "this login may not describe the topic"


def _forbidden_topics(kafka: KafkaNode, names: Sequence[str]) -> Iterator[str]:
    """Yield the topics that exist, but that a list of all topics silently omits, because this user may not see them."""
    for some in _batches(names):
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in some]
        answer = kafka.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        yield from (topic.name for topic in answer.topics or () if topic.error_code == _TOPIC_FORBIDDEN)


def _read_topic_configs(kafka: KafkaNode, expected: Expected, view: QuorumView) -> None:
    known = {key.group for key in view.values if key.subject is CopiedSubject.TOPICS}
    for some in _batches(sorted(known | expected.topics | expected.configured_topics)):
        for result in _describe(kafka, _TOPIC, some):
            if result.error_code == _TOPIC_FORBIDDEN:
                view.withheld[CopiedSubject.TOPIC_CONFIGS, result.resource_name] = (
                    "this login may not describe its settings"
                )
            elif result.error_code != _UNKNOWN_TOPIC:
                refuse(result.error_code)
                _take(CopiedSubject.TOPIC_CONFIGS, result.resource_name, result.configs, _DYNAMIC[_TOPIC], view)


def _read_broker(kafka: KafkaNode, broker: str, view: QuorumView) -> None:
    source = _DYNAMIC[_BROKER] if broker else _DYNAMIC_DEFAULT
    for result in _describe(kafka, _BROKER, [broker]):
        refuse(result.error_code)
        _take(CopiedSubject.BROKER_CONFIGS, broker or DEFAULT, result.configs, source, view)


def _describe(kafka: KafkaNode, kind: int, names: Iterable[str]) -> Any:  # noqa: ANN401 (kafka-python's own)
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [resource(resource_type=kind, resource_name=name, configuration_keys=None) for name in names]
    return kafka.ask(DescribeConfigsRequest(resources=resources, include_synonyms=False)).results or ()


def _take(subject: CopiedSubject, group: str, settings: Any, source: int, view: QuorumView) -> None:  # noqa: ANN401
    plain = {setting.name for setting in settings if not setting.is_sensitive}
    view.plain[subject] = view.plain.get(subject, frozenset()) | plain
    for setting in settings:
        if setting.config_source == source:
            shown = setting.value if setting.name in plain else NOT_SHOWN
            view.values[CopiedKey(subject, group, setting.name)] = "" if shown is None else shown


def _read_quotas(kafka: KafkaNode, _expected: Expected, view: QuorumView) -> None:
    answer = kafka.ask(DescribeClientQuotasRequest(components=[], strict=False))
    refuse(answer.error_code)
    for entry in answer.entries or ():
        group = entity_text({entity.entity_type: entity.entity_name for entity in entry.entity})
        for value in entry.values:
            view.values[CopiedKey(CopiedSubject.QUOTAS, group, value.key)] = quota_text(value.value)


def _read_scram(kafka: KafkaNode, _expected: Expected, view: QuorumView) -> None:
    answer = kafka.ask(DescribeUserScramCredentialsRequest(users=None))
    refuse(answer.error_code)
    for result in answer.results or ():
        refuse(result.error_code)
        for one in result.credential_infos:
            mechanism = _SCRAM.get(one.mechanism, f"mechanism {one.mechanism}")
            view.values[CopiedKey(CopiedSubject.SCRAM, result.user, mechanism)] = f"iterations {one.iterations}"


def _read_acls(kafka: KafkaNode, _expected: Expected, view: QuorumView) -> None:
    answer = kafka.ask(
        DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
    )
    if answer.error_code == _NO_AUTHORIZER:
        raise NodeError("it has no authorizer, and so no ACLs to compare")
    refuse(answer.error_code)
    for resource in answer.resources or ():
        kind, pattern = ResourceType(resource.resource_type), ACLResourcePatternType(resource.pattern_type)
        group = resource_text(kind.name, pattern.name, resource.resource_name)
        for acl in resource.acls:
            permission, operation = ACLPermissionType(acl.permission_type), ACLOperation(acl.operation)
            entry = acl_text(acl.principal, permission.name, operation.name, acl.host)
            view.values[CopiedKey(CopiedSubject.ACLS, group, entry)] = "there"


def _topic_id(topic_id: Any) -> str:  # noqa: ANN401 (a UUID, None for the zero one)
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=") if topic_id else "none"


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), _TOPICS_AT_ONCE):
        yield names[first : first + _TOPICS_AT_ONCE]
