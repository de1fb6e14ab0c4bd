"""Output topics on a real broker, written as the streaming job writes them."""

from __future__ import annotations

from collections.abc import Mapping

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from controller.contract.outputs import OutputRow, encode_row
from transport.address import KafkaAddress


class Topics:
    """The topics PREFIX.OUTPUT of some outputs. Tests create the other topics later."""

    def __init__(self, server: str, prefix: str, *outputs: str) -> None:
        self.address = KafkaAddress(server, prefix)
        self._admin = KafkaAdminClient(bootstrap_servers=server)
        self._producer = KafkaProducer(bootstrap_servers=server, acks="all")
        if outputs:
            self.create(*outputs)

    def create(self, *outputs: str, partitions: int = 2, configs: Mapping[str, str] | None = None) -> None:
        named = [NewTopic(self._topic(output), partitions, 1, topic_configs=configs) for output in outputs]
        self._admin.create_topics(named)

    def produce(self, *written: OutputRow) -> None:
        """Write rows, each after the previous one was accepted."""
        for row in written:
            value, key = encode_row(row), row.subject_key().encode()
            self._producer.send(self._topic(row.output), value=value, key=key).get(60)

    def delete_key(self, output: str, key: bytes) -> None:
        """Write a tombstone."""
        self._producer.send(self._topic(output), key=key, value=None).get(60)

    def close(self) -> None:
        self._admin.close()
        self._producer.close()

    def _topic(self, output: str) -> str:
        return f"{self.address.topic}.{output}"
