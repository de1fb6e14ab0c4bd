"""One broker's metadata, requested over one connection that stays open."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from kafka.protocol.metadata import MetadataRequest

from controller.contract.ids import BrokerId, LeaderEpoch, PartitionId
from controller.contract.metadata_rows import PartitionRow
from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
from outputs.kafka_node import AnswerTooLongError, KafkaNode, NodeError
from questions.memory import Memory
from transport.kafka_login import host_and_port

_LOOK_SECONDS, _PORT_SECONDS = 0.2, 2.0
# Room for the parts of every answer beside partitions, which are brokers, the cluster's id, and recent topics.
_ANSWER_BYTES = 1024**2
# Bytes of Metadata's fields (version 12, with 10 bytes to spare for later versions) of a topic, of a partition, and of
# a broker in its three lists: replicas, ISR and offline replicas.
_TOPIC_BYTES, _PARTITION_BYTES, _REPLICA_BYTES = 40, 36, 12
_ENDPOINT = re.compile(r"(?P<listener>[^:]+)://(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d+)")


class ProbeError(Exception):
    """A broker did not answer. The message is one sentence."""


class Leader(NamedTuple):
    """The leader of a partition. The epoch is -1 from brokers before Kafka 2.1, which do not report it."""

    broker: BrokerId
    epoch: LeaderEpoch


BrokerView = Mapping[tuple[str, PartitionId], Leader]  # by topic and partition


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener of a broker with its address."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


def choose_endpoint(endpoints: Sequence[str], login: KafkaLoginConfig) -> Endpoint:
    """Return the endpoint of a registered broker to ask. Raise ProbeError if no endpoint fits.

    Names of listeners are free. Without a given name, the listener named like the protocol comes first.
    """
    parsed = [
        Endpoint(match["listener"], match["ipv6"] or match["host"], int(match["port"]))
        for match in map(_ENDPOINT.fullmatch, endpoints)
        if match is not None
    ]
    wanted = login.kafka_listener or login.protocol
    for endpoint in parsed:
        if endpoint.listener.upper() == wanted.upper():
            return endpoint
    if login.kafka_listener is None and len(parsed) == 1:
        return parsed[0]
    raise ProbeError(f"no listener {wanted} among {', '.join(endpoints) or 'none'}: name one with kafka_listener")


def expected_bytes(partitions: Mapping[tuple[str, PartitionId], PartitionRow]) -> int:
    """Return the largest answer about these partitions."""
    topics = {topic for topic, _ in partitions}
    return (
        sum(_TOPIC_BYTES + len(topic) for topic in topics)
        + _PARTITION_BYTES * len(partitions)
        + _REPLICA_BYTES * sum(len(row.replicas) for row in partitions.values())
    )


class BrokerNode:
    """Connection to one broker, for one thread. It opens with the first question, and with the first after `close`."""

    client_id: ClassVar[str]

    def __init__(self, endpoint: Endpoint, login: KafkaLoginConfig, timeout_seconds: float) -> None:
        self.endpoint = endpoint
        self._login = login
        self._timeout_seconds = timeout_seconds
        self._node: KafkaNode | None = None

    def _connected(self, largest_answer_bytes: int) -> KafkaNode:
        """Return the open connection. Raise NodeError or OSError."""
        if self._node is None:
            self._node = KafkaNode(
                str(self.endpoint),
                self._login.node_login(),
                timeout_seconds=self._timeout_seconds,
                largest_answer_bytes=largest_answer_bytes,
                client_id=self.client_id,
            )
        return self._node

    def close(self) -> None:
        """Close the connection."""
        node, self._node = self._node, None
        if node is not None:
            node.close()


class BrokerConnection(BrokerNode):
    """Questions for one broker's metadata. An answer of more than twice the expected length is rejected."""

    client_id = "kontrast-probe"

    def view(self, expected_bytes: int) -> BrokerView:
        """Return the leader of every partition by the broker's answer.

        Raise ProbeError, and connect again the next time.
        """
        largest_answer_bytes = _ANSWER_BYTES + 2 * expected_bytes
        try:
            node = self._connected(largest_answer_bytes)
            node.allow_answers_of(largest_answer_bytes)
            answer = node.ask(MetadataRequest(topics=MetadataRequest.ALL_TOPICS, allow_auto_topic_creation=False))
        except AnswerTooLongError as error:
            raise ProbeError(
                f"{self.endpoint} answers with more than {largest_answer_bytes} bytes, twice the size of "
                f"the cluster's metadata: {error}"
            ) from error
        except (NodeError, OSError, ValueError) as error:
            raise ProbeError(f"{self.endpoint} does not answer: {error}") from error
        if answer.topics is None or any(None in (topic.name, topic.partitions) for topic in answer.topics):
            self.close()
            raise ProbeError(f"{self.endpoint} answers with metadata that has null for topics, names or partitions")
        return {
            (topic.name, partition.partition_index): Leader(partition.leader_id, _epoch(answer, partition))
            for topic in answer.topics
            for partition in topic.partitions
        }


def _epoch(answer: Any, partition: Any) -> LeaderEpoch:  # noqa: ANN401 (kafka-python's own)
    return partition.leader_epoch if answer.API_VERSION >= 7 else LeaderEpoch(-1)


def ask_ports(cluster: str, config: ProbeConfig, memory: Memory, stop: threading.Event) -> None:
    """Ask the ports of brokers that left without a shutdown. If one answers, its process hangs.

    A port is asked once a departure, because a process that is started later answers, too.
    """
    asked: dict[BrokerId, int] = {}
    while not stop.wait(_LOOK_SECONDS):
        found = memory.cluster(cluster)
        for row in () if found is None else found.brokers:
            has_crashed = not row.registered and not row.inferred and row.left_in_order is False
            if has_crashed and asked.get(row.broker) != row.since_ms:
                asked[row.broker] = row.since_ms
                with suppress(ProbeError, OSError):
                    endpoint = choose_endpoint(row.endpoints, config.login_of(cluster))
                    socket.create_connection((endpoint.host, endpoint.port), _PORT_SECONDS).close()
                    memory.note_answering(cluster, row.broker)
