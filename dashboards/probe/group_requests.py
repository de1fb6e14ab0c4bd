"""Kafka's admin requests about groups and transactional ids, to one broker. Client ids and hosts are dropped."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

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
_LARGEST_ANSWER_BYTES: Final = 32 * 1024**2  # 50 groups of a hundred members, each with an assignment of 6 kB
_DENIED: Final = frozenset({"GroupAuthorizationFailedError", "ClusterAuthorizationFailedError"})
_STABLE: Final = "Stable"
# From this version (Kafka 3.0) on, one OffsetFetch can ask about many groups, before only about one.
_OFFSETS_OF_MANY: Final = 8


class DeniedError(ProbeError):
    """The user may not send this request."""


class GroupRequests(BrokerNode):
    """Questions to one broker, for one thread. Raise ProbeError without an answer, and DeniedError for a denied one."""

    client_id = "kontrast-groups"

    def __init__(self, endpoint: Endpoint, login: KafkaLoginConfig, timeout_seconds: float) -> None:
        super().__init__(endpoint, login, timeout_seconds)
        self.fetches_many = True  # until the broker's answer shows that its release cannot
        self.tells_transactional_ids = True

    def groups(self) -> list[str]:
        """Return the groups that the broker coordinates."""
        answer = self._ask(ListGroupsRequest())
        _refuse(answer.error_code, "ListGroups")
        return [each.group_id for each in answer.groups]

    def described(self, groups: Sequence[str]) -> tuple[dict[str, Described], list[str]]:
        """Return the descriptions of up to 50 groups, and the groups whose description is denied."""
        answer = self._ask(DescribeGroupsRequest(groups=list(groups)))
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
                answers = list(self._ask(OffsetFetchRequest(groups=of_groups, **many)).groups)
            except UnknownRequestError:
                self.fetches_many = False
                return self.committed(groups[:1])
        else:
            one = OffsetFetchRequest(group_id=groups[0], topics=None, min_version=2, max_version=_OFFSETS_OF_MANY - 1)
            answers = [self._ask(one)]
        named = list(
            zip([each.group_id for each in answers] if self.fetches_many else groups[:1], answers, strict=True)
        )
        denied = [group for group, answer in named if _name(answer.error_code) in _DENIED]
        return {group: _offsets(answer.topics) for group, answer in named if not answer.error_code}, denied

    def transactional_ids(self) -> list[str]:
        """Return the transactional ids that the broker coordinates, none if its release does not list them."""
        try:
            answer = self._ask(ListTransactionsRequest(state_filters=[], producer_id_filters=[]))
        except UnknownRequestError:
            self.tells_transactional_ids = False
            return []
        _refuse(answer.error_code, "ListTransactions")
        return [each.transactional_id for each in answer.transaction_states]

    def _ask(self, request: Any) -> Any:  # noqa: ANN401 (kafka-python's own)
        try:
            return self._connected(_LARGEST_ANSWER_BYTES).ask(request)
        except UnknownRequestError:
            raise
        except (NodeError, OSError, ValueError) as error:
            raise ProbeError(f"{self.endpoint} does not answer: {error}") from error


def _name(code: int) -> str:
    return str(for_code(code).__name__)


def _refuse(code: int, request: str) -> None:
    if _name(code) in _DENIED:
        raise DeniedError(request)
    if code:
        raise ProbeError(f"{request} fails with {_name(code)}")


def _described(group: Any) -> Described:  # noqa: ANN401 (the same)
    if not group.members:
        return Described(group.group_state)
    if group.group_state != _STABLE:
        return Described(group.group_state, has_members=True)
    if group.protocol_type != ConsumerProtocolType:  # such as Connect's workers, which read no topic
        return Described(group.group_state, has_members=True, assigned={})
    assignments = [each for member in group.members for each in _assigned(member.member_assignment)]
    subscriptions = {topic for member in group.members for topic in _subscribed(member.member_metadata)}
    return Described(group.group_state, True, partitions_of(assignments), tuple(sorted(subscriptions)))


def _assigned(data: bytes) -> Iterator[tuple[str, Iterable[int]]]:
    if data:
        for each in _decoded(ConsumerProtocolAssignment, data, "assigned_partitions"):
            yield each.topic, each.partitions


def _subscribed(data: bytes) -> Iterator[str]:
    if data:
        yield from _decoded(ConsumerProtocolSubscription, data, "topics")


def _decoded(form: Any, data: bytes, field: str) -> Iterable[Any]:  # noqa: ANN401 (the same)
    """Return a list from bytes that a client wrote, empty if the client uses another form."""
    try:
        return list(getattr(form.decode(bytes(data)), field) or ())
    except (struct.error, ValueError, IndexError, TypeError, AttributeError, UnicodeDecodeError):
        return ()


def _offsets(topics: Iterable[Any]) -> Offsets:
    found: Mapping[str, dict[PartitionId, int]] = {
        topic.name: {
            PartitionId(each.partition_index): each.committed_offset
            for each in topic.partitions
            if not each.error_code and each.committed_offset >= 0
        }
        for topic in topics
    }
    return {topic: offsets for topic, offsets in found.items() if offsets}
