"""Ask one Kafka node for its APIs with ApiVersions, which needs no login.

kafka-python's connections send ApiVersions, too, but keep only the APIs. This module needs the rest of the answer, and
a connection of its own, because brokers refuse a second ApiVersions before a login.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.parser import KafkaProtocol

from outputs.kafka_node import NodeError
from transport.kafka_login import NodeLogin, split_address
from transport.printable import printable

# Kafka 3.9.2 answers with 500 bytes. An API takes 7, a feature some 30.
_LARGEST_ANSWER_BYTES = 64 * 1024
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


def ask_api_versions(address: str, login: NodeLogin, timeout_seconds: float) -> ApiVersions:
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


def _exchange(host_and_port: tuple[str, int], login: NodeLogin, give_up_at: float) -> Any:  # noqa: ANN401 (kafka-python's)
    protocol = KafkaProtocol(client_id="kontrast", receive_message_max_bytes=_LARGEST_ANSWER_BYTES)
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


def _tls(plain: socket.socket, host: str, login: NodeLogin) -> ssl.SSLSocket:
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
