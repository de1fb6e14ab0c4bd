"""Requests to one Kafka node over one connection, with limits on time and bytes.

This is the only module that knows kafka-python's connections (`kafka.net`). An ordinary client asks any node, but these
requests need a particular node.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, InvalidReceiveError, KafkaError
from kafka.net import NetworkSelector

from outputs.kafka_connections import BoundedConnectionManager, login_options
from outputs.kerberos import KerberosError
from transport.kafka_login import KafkaLogin
from transport.printable import printable

_LONGEST_REASON = 300


class NodeError(Exception):
    """A node did not answer. The message is half a sentence without the node's address."""


class AnswerTooLongError(NodeError):
    """A node answered with more bytes than allowed."""


class UnknownRequestError(NodeError):
    """A node's release does not know the request in any of the offered versions. The connection stays open."""


class KafkaNode:
    """Connection to one node, opened when needed, for one thread.

    kafka-python makes some hundred bytes of one byte in an answer and decodes without a time limit. Kontrast therefore
    checks the length at the beginning of an answer.
    """

    def __init__(
        self, address: str, login: KafkaLogin, *, timeout_seconds: float, largest_answer_bytes: int, client_id: str
    ) -> None:
        self.address = address
        self._login = login
        self._timeout_ms = int(timeout_seconds * 1000)
        self._largest_answer_bytes = largest_answer_bytes
        self._client_id = client_id
        self._manager: Any = None
        self._net: Any = None

    def ask(self, request: Any) -> Any:  # noqa: ANN401 (kafka-python's own)
        """Return the answer to a request. Raise NodeError, and connect again the next time."""
        try:
            if self._manager is None:
                self._open()
            return self._manager.run(self._send, request)
        except InvalidReceiveError as error:
            self.close()
            raise AnswerTooLongError(printable(str(error), _LONGEST_REASON)) from error
        except IncompatibleBrokerVersion as error:
            raise UnknownRequestError(printable(str(error), _LONGEST_REASON)) from error
        except (KafkaError, KerberosError, OSError, ValueError) as error:
            self.close()
            raise NodeError(printable(str(error), _LONGEST_REASON)) from error

    def allow_answers_of(self, largest_answer_bytes: int) -> None:
        """Raise the limit if it is smaller. A connection's limit is fixed, so the next request opens a new one."""
        if largest_answer_bytes > self._largest_answer_bytes:
            self.close()
            self._largest_answer_bytes = largest_answer_bytes

    def close(self) -> None:
        """Close the connection."""
        manager, net, self._manager, self._net = self._manager, self._net, None, None
        if manager is not None:
            with suppress(KafkaError, OSError):
                manager.close()
                net.drain()
                net.close()

    def _open(self) -> None:
        self._net = NetworkSelector()
        self._manager = BoundedConnectionManager(
            self._net,
            bootstrap_servers=[self.address],
            client_id=self._client_id,
            request_timeout_ms=self._timeout_ms,
            receive_message_max_bytes=self._largest_answer_bytes,
            **login_options(self._login),
        )

    async def _send(self, request: Any) -> Any:  # noqa: ANN401 (kafka-python's own)
        # The manager must not look for other nodes, so it knows only the node to ask.
        (node,) = self._manager.cluster.bootstrap_brokers()
        connection = self._manager.get_connection(
            node.node_id, timeout_ms=self._timeout_ms, refresh_metadata_on_err=False
        )
        await self._manager.wait_for(connection.init_future, self._timeout_ms)
        return await connection.send_request(request, request_timeout_ms=self._timeout_ms)
