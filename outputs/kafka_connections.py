"""Limits on reads of kafka-python's connections, and its errors in words for people.

kafka-python reads a socket until it is empty before it parses. A fast peer would fill the memory and stop all timers. A
setting of the library limits the size of frames (`receive_message_max_bytes`).
"""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaTimeoutError,
    MetadataEmptyBrokerList,
    NodeNotReadyError,
)
from kafka.net import KafkaConnectionManager, NetworkSelector
from kafka.net.compat import KafkaNetClient

_TURN_BYTES = 1024**2


_NOBODY_THERE = (KafkaConnectionError, MetadataEmptyBrokerList, NodeNotReadyError)


def in_words(error: Exception) -> str:
    """Return the meaning of a failure in half a sentence, with Kafka's name of the brokers' answer."""
    if isinstance(error, BrokerResponseError):
        return f"the brokers answer {error.message}"
    if isinstance(error, _NOBODY_THERE) or (isinstance(error, KafkaTimeoutError) and "bootstrap" in str(error)):
        return "no connection is accepted"
    if isinstance(error, KafkaTimeoutError):
        return "no answer came in time"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


class BoundedConnectionManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """Connections that read a megabyte, then let the parser and the timers have their turn."""

    async def _build_transport(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 (kafka-python's own)
        transport = await super()._build_transport(*arguments, **options)
        transport._sock = _TurnTakingSocket(transport._sock)
        return transport


class BoundedKafkaClient(KafkaNetClient):  # type: ignore[misc]
    """The client that consumers, producers and admins take as `kafka_client`."""

    def __init__(self, **configs: Any) -> None:  # noqa: ANN401
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=BoundedConnectionManager(net, **configs), **configs)


class _TurnTakingSocket:
    """A socket that seems empty once per megabyte. The selector reports at once that it is not."""

    def __init__(self, its_socket: Any) -> None:  # noqa: ANN401 (a socket, or TLS over one)
        self._socket = its_socket
        self._left_bytes = _TURN_BYTES

    def recv(self, count: int) -> bytes:
        """As the socket's own."""
        # The selector does not know of data that TLS has already decrypted.
        if self._left_bytes <= 0 and not (hasattr(self._socket, "pending") and self._socket.pending()):
            self._left_bytes = _TURN_BYTES
            raise BlockingIOError
        data: bytes = self._socket.recv(count)
        self._left_bytes -= len(data)
        return data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (the socket's)
        return getattr(self._socket, name)
