"""Bound the reads of kafka-python's connections, and put its errors into words for people.

kafka-python reads a socket until it is empty before it looks at what it has: a peer that sends faster than that fills
the memory, and no timer runs. Which frames are too large is a setting of the library's own
(`receive_message_max_bytes`).
"""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    BrokerResponseError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaTimeoutError,
    MetadataEmptyBrokerList,
    NodeNotReadyError,
)
from kafka.net import KafkaConnectionManager, NetworkSelector
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from transport.address import KafkaAddress
from transport.kafka_login import KafkaLogin, KafkaLoginError

_TURN_BYTES = 1024**2

_NOBODY_THERE = (KafkaConnectionError, MetadataEmptyBrokerList, NodeNotReadyError)


def in_words(error: Exception) -> str:
    """The meaning of a failure, in half a sentence: Kafka's name of the brokers' answer, nothing of the library's."""
    if isinstance(error, BrokerResponseError):
        return f"the brokers answer {error.message}"
    if isinstance(error, KafkaConfigurationError):
        return str(error.args[0])
    if isinstance(error, _NOBODY_THERE) or (isinstance(error, KafkaTimeoutError) and "bootstrap" in str(error)):
        return "no connection is accepted"
    if isinstance(error, KafkaTimeoutError):
        return "no answer came in time"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def client_options(address: KafkaAddress) -> dict[str, Any]:
    """The options by which consumers, producers and admins reach an address, with the secrets as they are now.

    Raises KafkaError, like the clients themselves.
    """
    try:
        login = _login_options(address.login)
    except KafkaLoginError as error:
        raise KafkaConfigurationError(str(error)) from error
    return {
        "kafka_client": BoundedKafkaClient,
        "bootstrap_servers": address.bootstrap_servers.split(","),
        **login,
    }


def _login_options(login: KafkaLogin) -> dict[str, Any]:
    return {
        "security_protocol": login.protocol,
        "ssl_cafile": login.ca_file,
        "ssl_certfile": login.certificate_file,
        "ssl_keyfile": login.key_file,
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.username,
        "sasl_plain_password": login.password,
        "sasl_oauth_token_provider": None if login.token_file is None else _TokenOfFile(login),
    }


class _TokenOfFile(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Read the token's file at each login: another program renews it."""

    def __init__(self, login: KafkaLogin) -> None:
        super().__init__()
        self._login = login

    def token(self) -> str:
        """The token as it is now; raises KafkaError."""
        try:
            return self._login.token or ""
        except KafkaLoginError as error:
            raise KafkaConfigurationError(str(error)) from error


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
    """A socket that seems empty once in a megabyte; the selector says at once that it is not."""

    def __init__(self, its_socket: Any) -> None:  # noqa: ANN401 (a socket, or TLS over one)
        self._socket = its_socket
        self._left_bytes = _TURN_BYTES

    def recv(self, count: int) -> bytes:
        """As the socket's own."""
        # What TLS has decrypted already no selector knows of.
        if self._left_bytes <= 0 and not (hasattr(self._socket, "pending") and self._socket.pending()):
            self._left_bytes = _TURN_BYTES
            raise BlockingIOError
        data: bytes = self._socket.recv(count)
        self._left_bytes -= len(data)
        return data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (the socket's)
        return getattr(self._socket, name)
