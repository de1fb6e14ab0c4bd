"""Kafka-python's connections with limits on reads, its errors in words for people, and the topics that Kontrast needs.

kafka-python reads a socket until it is empty before it parses. A fast peer would fill the memory and stop all timers. A
setting of the library limits the size of frames (`receive_message_max_bytes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    BrokerResponseError,
    IncompatibleBrokerVersion,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MetadataEmptyBrokerList,
    NodeNotReadyError,
    NoError,
    SaslAuthenticationFailedError,
    TopicAlreadyExistsError,
    for_code,
)
from kafka.net import KafkaConnectionManager, NetworkSelector
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from outputs.kerberos import KerberosError, KerberosExchange, Keytab
from transport.address import KafkaAddress
from transport.kafka_login import GSSAPI, NO_LOGIN, KafkaLogin, KafkaLoginError
from transport.topics import PARTITIONS, SETTINGS, ExistingTopic, RequiredTopic

_TURN_BYTES = 1024**2

_NO_TLS = "Handshake failed"  # kafka-python's words
_DISCONNECTED = "socket disconnected"
_CHECK_LOGIN = "Check the listener, the user name and the password"

_NOBODY_THERE = (KafkaConnectionError, MetadataEmptyBrokerList, NodeNotReadyError)


def error_in_words(error: Exception) -> str:
    """Return the meaning of a failure in half a sentence, with Kafka's name of the brokers' answer."""
    if isinstance(error, SaslAuthenticationFailedError):
        return f"the brokers refuse the login. {_CHECK_LOGIN}"
    if isinstance(error, BrokerResponseError):
        return f"the brokers answer {error.message}"
    if isinstance(error, (KafkaConfigurationError, RefusedConnectionError)):
        return str(error.args[0])
    if isinstance(error, _NOBODY_THERE) or (isinstance(error, KafkaTimeoutError) and "bootstrap" in str(error)):
        return "no connection is accepted"
    if isinstance(error, KafkaTimeoutError):
        return "no answer came in time"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def client_options(address: KafkaAddress) -> dict[str, Any]:
    """Return the options by which consumers, producers and admins reach an address, with the secrets as they are now.

    Raise KafkaError, like the clients themselves.
    """
    try:
        login = login_options(address.login)
    except (KafkaLoginError, KerberosError) as error:
        raise KafkaConfigurationError(str(error)) from error
    return {
        "kafka_client": partial(BoundedKafkaClient, login=address.login),
        "bootstrap_servers": address.bootstrap_servers.split(","),
        **login,
    }


def login_options(login: KafkaLogin) -> dict[str, Any]:
    """Return the options of a login, with the secrets as they are now. Raise KafkaLoginError or KerberosError."""
    return {
        "security_protocol": login.protocol,
        "ssl_cafile": login.ca_file,
        "ssl_certfile": login.certificate_file,
        "ssl_keyfile": login.key_file,
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.username,
        "sasl_plain_password": login.password,
        "sasl_oauth_token_provider": None if login.token_file is None else _TokenOfFile(login),
        **_kerberos_options(login.principal, login.keytab_file, login.service_name),
    }


def _kerberos_options(principal: str | None, keytab_file: str | None, service_name: str) -> dict[str, Any]:
    if principal is None or keytab_file is None:
        return {}
    return {"sasl_kerberos_name": Keytab(principal, keytab_file), "sasl_kerberos_service_name": service_name}


class _TokenOfFile(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Token from its file, read again at each login because another program renews it."""

    def __init__(self, login: KafkaLogin) -> None:
        super().__init__()
        self._login = login

    def token(self) -> str:
        """Return the current token. Raise KafkaError."""
        try:
            return self._login.token or ""
        except KafkaLoginError as error:
            raise KafkaConfigurationError(str(error)) from error


class RefusedConnectionError(KafkaConnectionError):  # type: ignore[misc]  # kafka-python has no types
    """Refusal by a broker that is reachable and denies TLS or a login, in words for people."""


class _KerberosMechanism(KerberosExchange):
    """The mechanism GSSAPI, made by `_kerberos_options`. Raise KafkaError."""

    def __init__(self, *, host: str, **options: Any) -> None:  # noqa: ANN401 (kafka-python's own)
        try:
            super().__init__(options["sasl_kerberos_name"], options["sasl_kerberos_service_name"], host)
        except KerberosError as error:
            raise RefusedConnectionError(str(error)) from error


register_sasl_mechanism(GSSAPI, _KerberosMechanism, overwrite=True)


class BoundedConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """Connections that read a megabyte, then let the parser and the timers have their turn.

    A first connection that TLS or SASL prevents fails with this reason. kafka-python alone would only raise a timeout.
    """

    _refusal: KafkaError | None = None
    login: KafkaLogin = NO_LOGIN

    def bootstrap(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 (kafka-python's own)
        """Connect as the library does. Raise KafkaError."""
        try:
            super().bootstrap(*arguments, **options)
        except KafkaTimeoutError as error:
            raise self._refusal or error from error

    def get_connection(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        """Return the connection as the library does."""
        connection = super().get_connection(*arguments, **options)
        connection.init_future.add_errback(self._note)
        return connection

    def _note(self, error: BaseException) -> None:
        if isinstance(error, (SaslAuthenticationFailedError, RefusedConnectionError)):
            self._refusal = error
        elif _DISCONNECTED in str(error) and self.config["sasl_mechanism"] and self._refusal is None:
            # The broker's answer and the end of the connection may come together, and kafka-python drops the answer.
            self._refusal = RefusedConnectionError(f"the broker ends the connection. {_CHECK_LOGIN}")

    async def _connect(self, node: Any, connection: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        if self.login.password_file is not None:
            with suppress(KafkaLoginError):  # while the file is being written, the connection uses the earlier password
                connection.config["sasl_plain_password"] = self.login.password
        return await super()._connect(node, connection, *arguments, **options)

    async def _build_transport(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        try:
            transport = await super()._build_transport(*arguments, **options)
        except KafkaConnectionError as error:
            reason = str(error.args[0])
            if not reason.startswith(_NO_TLS):
                raise
            raise RefusedConnectionError(f"TLS: {reason}") from error
        transport._sock = _TurnTakingSocket(transport._sock)
        return transport


class BoundedKafkaClient(KafkaNetClient):  # type: ignore[misc]
    """The client that consumers, producers and admins take as `kafka_client`.

    Each new connection reads the password of `login` again.
    """

    def __init__(self, *, login: KafkaLogin = NO_LOGIN, **configs: Any) -> None:  # noqa: ANN401
        net = NetworkSelector(**configs)
        manager = BoundedConnectionManager(net, **configs)
        manager.login = login
        super().__init__(net=net, manager=manager, **configs)


class _TurnTakingSocket:
    """A socket that seems empty once per megabyte. The selector reports at once that it is not."""

    def __init__(self, its_socket: Any) -> None:  # noqa: ANN401 (a socket, or TLS over one)
        self._socket = its_socket
        self._left_bytes = _TURN_BYTES

    def recv(self, count: int) -> bytes:
        """Receive as the socket does. Raise BlockingIOError at the end of a turn."""
        # The selector does not know of data that TLS has already decrypted.
        if self._left_bytes <= 0 and not (hasattr(self._socket, "pending") and self._socket.pending()):
            self._left_bytes = _TURN_BYTES
            raise BlockingIOError
        data: bytes = self._socket.recv(count)
        self._left_bytes -= len(data)
        return data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (the socket's)
        return getattr(self._socket, name)


_NONE: Final[dict[str, Any]] = {}
_THERE_NOW: Final = (NoError, TopicAlreadyExistsError)


def existing_topics(admin: KafkaAdminClient, topics: Sequence[RequiredTopic]) -> list[ExistingTopic]:
    """Return the existing topics with their visible settings. Raise KafkaError."""
    present = set(admin.list_topics())
    there = [topic for topic in topics if topic.name in present]
    if not there:
        return []
    described = {found["name"]: found for found in admin.describe_topics([topic.name for topic in there])}
    settings = _settings(admin, there)
    return [
        ExistingTopic(topic, len(described[topic.name]["partitions"]), settings.get(topic.name, {})) for topic in there
    ]


def create_topics(admin: KafkaAdminClient, topics: Sequence[RequiredTopic]) -> dict[RequiredTopic, KafkaError]:
    """Make the topics with their settings, wait for them, and return the brokers' refusals by topic.

    Raise KafkaError. Raise IncompatibleBrokerVersion before 2.4, where the client would have to choose the replicas.
    """
    wanted = {topic.name: {"num_partitions": PARTITIONS, "configs": topic.settings} for topic in topics}
    answers = {answer["name"]: answer for answer in admin.create_topics(wanted, raise_errors=False)["topics"]}
    errors = {
        topic: for_code(answers[topic.name]["error_code"])(answers[topic.name].get("error_message") or "")
        for topic in topics
    }
    refused = {topic: error for topic, error in errors.items() if not isinstance(error, _THERE_NOW)}
    if made := [topic.name for topic in topics if topic not in refused]:
        admin.wait_for_topics(made)
    return refused


def _settings(admin: KafkaAdminClient, topics: Sequence[RequiredTopic]) -> dict[str, dict[str, str]]:
    """Return settings by topic, without topics whose settings an ACL hides."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic.name, list(SETTINGS)) for topic in topics]
    try:
        answers = admin.describe_configs(resources, config_filter="all").get("topic", _NONE)
    except IncompatibleBrokerVersion:  # before 0.11
        return {}
    return {
        name: {key: found["value"] for key, found in values.items() if found.get("value") is not None}
        for name, values in answers.items()
    }
