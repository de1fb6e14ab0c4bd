"""Kafka's admin requests about groups and transactional ids, to one broker. Client ids and hosts are dropped.

Any client can join a group and write an assignment that no broker reads, and kafka-python decodes null for a list or a
name. Here answers and clients' bytes become structs without null, so that no other module meets one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from kafka.errors import for_code
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.admin.transactions import ListTransactionsRequest
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolType,
)

from controller.contract.ids import PartitionId
from dashboards.probe.broker import BrokerNode, Endpoint, ProbeError
from dashboards.probe.config import KafkaLoginConfig
from outputs.kafka_node import NodeError, UnknownRequestError
from questions.clients.known_groups import Described, Offsets, partitions_of

GROUPS_OF_A_REQUEST: Final = 50
# An entry of a list takes 4 bytes in an answer and some hundred in memory, if its name is empty.
_LARGEST_LIST_BYTES: Final = 4 * 1024**2  # 100,000 groups with names of 30 bytes
_LARGEST_ANSWER_BYTES: Final = 32 * 1024**2  # 50 groups of a hundred members, each with an assignment of 6 kB
_DENIED: Final = frozenset({"GroupAuthorizationFailedError", "ClusterAuthorizationFailedError"})
_STABLE: Final = "Stable"
# From this version (Kafka 3.0) on, one OffsetFetch can ask about many groups, before only about one.
_OFFSETS_OF_MANY: Final = 8


_Form = TypeVar("_Form", bound=msgspec.Struct)


class DeniedError(ProbeError):
    """The user may not send this request."""


class NotKnownError(ProbeError):
    """The broker's release does not know the request."""


class _Listed(msgspec.Struct, frozen=True):
    group_id: str


class _Groups(msgspec.Struct, frozen=True):
    error_code: int
    groups: list[_Listed]


class _Transaction(msgspec.Struct, frozen=True):
    transactional_id: str


class _Transactions(msgspec.Struct, frozen=True):
    error_code: int
    transaction_states: list[_Transaction]


class _Member(msgspec.Struct, frozen=True):
    member_metadata: bytes
    member_assignment: bytes


class _Group(msgspec.Struct, frozen=True):
    error_code: int
    group_id: str
    group_state: str
    protocol_type: str
    members: list[_Member]


class _Descriptions(msgspec.Struct, frozen=True):
    groups: list[_Group]


class _Offset(msgspec.Struct, frozen=True):
    partition_index: int
    committed_offset: int
    error_code: int


class _OffsetsOfTopic(msgspec.Struct, frozen=True):
    name: str
    partitions: list[_Offset]


class _OffsetsOfGroup(msgspec.Struct, frozen=True):
    error_code: int
    topics: list[_OffsetsOfTopic]
    group_id: str = ""  # not in an answer about one group


class _OffsetsOfGroups(msgspec.Struct, frozen=True):
    groups: list[_OffsetsOfGroup]


class _AssignedTopic(msgspec.Struct, frozen=True):
    topic: str
    partitions: list[int]


class _Assignment(msgspec.Struct, frozen=True):
    assigned_partitions: list[_AssignedTopic]


class _Subscription(msgspec.Struct, frozen=True):
    topics: list[str]


class GroupRequests(BrokerNode):
    """Questions to one broker, for one thread. Raise ProbeError without an answer, and DeniedError for a denied one."""

    client_id = "kontrast-groups"

    def __init__(self, endpoint: Endpoint, login: KafkaLoginConfig, timeout_seconds: float) -> None:
        super().__init__(endpoint, login, timeout_seconds)
        self.fetches_many = True  # until the broker's answer shows that its release cannot
        self.tells_transactional_ids = True
        self._largest_bytes = 0

    def groups(self) -> list[str]:
        """Return the groups that the broker coordinates."""
        answer = self._ask(ListGroupsRequest(), _Groups, _LARGEST_LIST_BYTES)
        _refuse(answer.error_code, "ListGroups")
        return [each.group_id for each in answer.groups]

    def described(self, groups: Sequence[str]) -> tuple[dict[str, Described], list[str]]:
        """Return the descriptions of up to 50 groups, and the groups whose description is denied."""
        answer = self._ask(DescribeGroupsRequest(groups=list(groups)), _Descriptions)
        denied = [each.group_id for each in answer.groups if _name(each.error_code) in _DENIED]
        return {each.group_id: _described(each) for each in answer.groups if not each.error_code}, denied

    def committed(self, groups: Sequence[str]) -> tuple[dict[str, Offsets], list[str]]:
        """Return the committed offsets of groups, and the groups whose offsets are denied.

        A request has up to 50 groups if the broker `fetches_many`, and one otherwise.
        """
        if self.fetches_many:
            of_groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
            many = {"min_version": _OFFSETS_OF_MANY, "max_version": _OFFSETS_OF_MANY}
            try:
                answers = self._ask(OffsetFetchRequest(groups=of_groups, **many), _OffsetsOfGroups).groups
            except NotKnownError:
                self.fetches_many = False
                return self.committed(groups[:1])
            named = {each.group_id: each for each in answers}
        else:
            one = OffsetFetchRequest(group_id=groups[0], topics=None, min_version=2, max_version=_OFFSETS_OF_MANY - 1)
            named = {groups[0]: self._ask(one, _OffsetsOfGroup)}
        denied = [group for group, answer in named.items() if _name(answer.error_code) in _DENIED]
        return {group: _offsets(answer.topics) for group, answer in named.items() if not answer.error_code}, denied

    def transactional_ids(self) -> list[str]:
        """Return the transactional ids that the broker coordinates, none if its release does not list them."""
        request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        try:
            answer = self._ask(request, _Transactions, _LARGEST_LIST_BYTES)
        except NotKnownError:
            self.tells_transactional_ids = False
            return []
        _refuse(answer.error_code, "ListTransactions")
        return [each.transactional_id for each in answer.transaction_states]

    def _ask(self, request: Any, form: type[_Form], largest_bytes: int = _LARGEST_ANSWER_BYTES) -> _Form:  # noqa: ANN401 (kafka-python's own)
        if largest_bytes != self._largest_bytes:
            self.close()  # a connection has one limit
            self._largest_bytes = largest_bytes
        try:
            return msgspec.convert(self._connected(largest_bytes).ask(request), form, from_attributes=True)
        except UnknownRequestError as error:
            raise NotKnownError(f"{self.endpoint} does not know {type(request).__name__}: {error}") from error
        except msgspec.ValidationError as error:
            self.close()
            raise ProbeError(f"{self.endpoint} answers oddly: {error}") from error
        except (NodeError, OSError, ValueError) as error:
            raise ProbeError(f"{self.endpoint} does not answer: {error}") from error


def _name(code: int) -> str:
    return str(for_code(code).__name__)


def _refuse(code: int, request: str) -> None:
    if _name(code) in _DENIED:
        raise DeniedError(request)
    if code:
        raise ProbeError(f"{request} fails with {_name(code)}")


def _described(group: _Group) -> Described:
    if not group.members:
        return Described(group.group_state)
    if group.group_state != _STABLE:
        return Described(group.group_state, has_members=True)
    if group.protocol_type != ConsumerProtocolType:  # such as Connect's workers, which read no topic
        return Described(group.group_state, has_members=True, assigned={})
    assigned, topics = list[tuple[str, list[int]]](), set[str]()
    for member in group.members:
        assignment = _decoded(ConsumerProtocolAssignment, member.member_assignment, _Assignment)
        assigned += [(each.topic, each.partitions) for each in assignment.assigned_partitions] if assignment else []
        subscription = _decoded(ConsumerProtocolSubscription, member.member_metadata, _Subscription)
        topics.update(subscription.topics if subscription else ())
    return Described(group.group_state, True, partitions_of(assigned), tuple(sorted(topics)))


def _decoded(protocol: Any, data: bytes, form: type[_Form]) -> _Form | None:  # noqa: ANN401 (kafka-python's own)
    """Return the content of bytes that a client wrote, None if the client uses another form."""
    try:
        return msgspec.convert(protocol.decode(data), form, from_attributes=True) if data else None
    except (struct.error, ValueError, IndexError, TypeError, AttributeError):
        return None


def _offsets(topics: Iterable[_OffsetsOfTopic]) -> Offsets:
    found: Mapping[str, dict[PartitionId, int]] = {
        topic.name: {
            PartitionId(each.partition_index): each.committed_offset
            for each in topic.partitions
            if not each.error_code and each.committed_offset >= 0
        }
        for topic in topics
    }
    return {topic: offsets for topic, offsets in found.items() if offsets}
