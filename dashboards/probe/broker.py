"""One broker's metadata, asked over one connection that is kept.

The only place of the exporter that knows kafka-python's connections (`kafka.net`): an ordinary client would ask any
broker, and here it matters which one answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka.errors import InvalidReceiveError, KafkaError
from kafka.net import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from controller.contract.metadata_rows import PartitionRow
from dashboards.probe.config import KafkaLoginConfig
from outputs.kafka_connections import BoundedConnectionManager
from transport.printable import printable

# What every answer may have beside partitions: brokers, the cluster's id, topics that were created a moment ago.
_ANSWER_BYTES = 1024**2
# Metadata's fields of a topic (version 12, and 10 bytes for what later ones may add), of a partition, of each replica
# in its replicas, ISR and offline replicas.
_TOPIC_BYTES, _PARTITION_BYTES, _REPLICA_BYTES = 40, 36, 12
_LONGEST_REASON = 300
_ENDPOINT = re.compile(r"(?P<listener>[^:]+)://(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d+)")


class ProbeError(Exception):
    """A broker that did not answer: one sentence."""


class Leader(NamedTuple):
    """The leader of a partition; epoch -1 from brokers before Kafka 2.1, which do not say it."""

    broker: int
    epoch: int


BrokerView = Mapping[tuple[str, int], Leader]  # by topic and partition


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener of a broker with its address."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def choose_endpoint(endpoints: Sequence[str], login: KafkaLoginConfig) -> Endpoint:
    """The endpoint of a registered broker to ask; raises ProbeError if none fits.

    Names of listeners are free, so without a name given one that is called as the protocol is comes first.
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


def expected_bytes(partitions: Mapping[tuple[str, int], PartitionRow]) -> int:
    """The largest answer about these partitions."""
    topics = {topic for topic, _ in partitions}
    return (
        sum(_TOPIC_BYTES + len(topic) for topic in topics)
        + _PARTITION_BYTES * len(partitions)
        + _REPLICA_BYTES * sum(len(row.replicas) for row in partitions.values())
    )


class BrokerConnection:
    """The connection to one broker, made when it is needed; to be used from one thread.

    kafka-python makes some hundred bytes of one in an answer, and decodes for as long as it takes. So an answer is
    refused by the length that it begins with, where that is twice that of the cluster in ZooKeeper.
    """

    def __init__(self, endpoint: Endpoint, login: KafkaLoginConfig, timeout_seconds: float) -> None:
        self.endpoint = endpoint
        self._login = login
        self._timeout_ms = int(timeout_seconds * 1000)
        self._manager: Any = None
        self._net: Any = None
        self._largest_answer_bytes = 0

    def view(self, expected_bytes: int) -> BrokerView:
        """The leader of every partition by the broker's answer; raises ProbeError, and connects again the next time."""
        if _ANSWER_BYTES + expected_bytes > self._largest_answer_bytes:
            self.close()  # a connection's bound is fixed
            self._largest_answer_bytes = _ANSWER_BYTES + 2 * expected_bytes
        try:
            if self._manager is None:
                self._open()
            answer = self._manager.run(self._ask)
        except InvalidReceiveError as error:
            self.close()
            raise ProbeError(
                f"{self.endpoint} answers with more than {self._largest_answer_bytes} bytes, twice what the cluster's "
                f"partitions take: {error}"
            ) from error
        except (KafkaError, OSError, ValueError) as error:
            self.close()
            raise ProbeError(f"{self.endpoint} does not answer: {printable(str(error), _LONGEST_REASON)}") from error
        if answer.topics is None or any(None in (topic.name, topic.partitions) for topic in answer.topics):
            self.close()
            raise ProbeError(f"{self.endpoint} answers with metadata that has null for topics, names or partitions")
        return {
            (topic.name, partition.partition_index): Leader(partition.leader_id, _epoch(answer, partition))
            for topic in answer.topics
            for partition in topic.partitions
        }

    def close(self) -> None:
        """Close the connection."""
        manager, net, self._manager, self._net = self._manager, self._net, None, None
        if manager is not None:
            with suppress(KafkaError, OSError):
                manager.close()
                net.drain()
                net.close()

    def _open(self) -> None:
        login = self._login
        self._net = NetworkSelector()
        self._manager = BoundedConnectionManager(
            self._net,
            bootstrap_servers=[str(self.endpoint)],
            client_id="kontrast-probe",
            request_timeout_ms=self._timeout_ms,
            receive_message_max_bytes=self._largest_answer_bytes,
            security_protocol=login.protocol,
            ssl_cafile=login.kafka_ca_file,
            ssl_certfile=login.kafka_certificate_file,
            ssl_keyfile=login.kafka_key_file,
            sasl_mechanism=None if login.kafka_username is None else login.kafka_sasl_mechanism,
            sasl_plain_username=login.kafka_username,
            sasl_plain_password=login.password,
        )

    async def _ask(self) -> Any:  # noqa: ANN401 (kafka-python's own)
        # The manager must not look for other brokers: its only one is the one that is asked.
        (node,) = self._manager.cluster.bootstrap_brokers()
        connection = self._manager.get_connection(
            node.node_id, timeout_ms=self._timeout_ms, refresh_metadata_on_err=False
        )
        await self._manager.wait_for(connection.init_future, self._timeout_ms)
        request = MetadataRequest(topics=MetadataRequest.ALL_TOPICS, allow_auto_topic_creation=False)
        return await connection.send_request(request, request_timeout_ms=self._timeout_ms)


def _epoch(answer: Any, partition: Any) -> int:  # noqa: ANN401 (kafka-python's own)
    return partition.leader_epoch if answer.API_VERSION >= 7 else -1
