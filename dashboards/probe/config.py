"""Settings of the brokers' probe, checked at construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dashboards.errors import ServeError
from transport.kafka_login import KafkaLogin, KafkaLoginError, split_address

_LOGIN_KEYS = (
    *("tls", "ca_file", "certificate_file", "key_file"),
    *("sasl_mechanism", "username", "password_file", "password_variable", "principal", "keytab_file", "service_name"),
)
_PREFIX = "kafka_"
_MORE_THAN_NOTHING = (
    *("interval_seconds", "confirm_seconds", "timeout_seconds", "requests_per_second"),
    *("groups_interval_seconds", "group_requests_per_second"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLoginConfig:
    """Login to a cluster's brokers. Raise ServeError with a sentence for an impossible one.

    `kafka_listener` is the name of the listener to ask, by default the name of the protocol. `kafka_quorum` has
    HOST:PORT of the KRaft controllers of a migrating cluster. Secrets are in files or in the environment, not here.
    """

    kafka_listener: str | None = None
    kafka_quorum: tuple[str, ...] = ()
    kafka_tls: bool = False
    kafka_ca_file: str | None = None
    kafka_certificate_file: str | None = None
    kafka_key_file: str | None = None
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI"] = "SCRAM-SHA-512"
    kafka_username: str | None = None
    kafka_password_file: str | None = None
    kafka_password_variable: str | None = None
    kafka_principal: str | None = None
    kafka_keytab_file: str | None = None
    kafka_service_name: str = "kafka"

    def __post_init__(self) -> None:
        try:
            self.node_login()
        except KafkaLoginError as error:
            raise ServeError(str(error)) from error
        for address in self.kafka_quorum:
            try:
                split_address(address)
            except ValueError as error:
                raise ServeError(f"kafka_quorum: {error}") from error

    @property
    def protocol(self) -> str:
        """Return Kafka's name of the security protocol."""
        if self.kafka_username is None and self.kafka_principal is None:
            return "SSL" if self.kafka_tls else "PLAINTEXT"
        return "SASL_SSL" if self.kafka_tls else "SASL_PLAINTEXT"

    def node_login(self) -> KafkaLogin:
        """Return the login to a node. Raise KafkaLoginError for an impossible one, and for a file that is gone."""
        return KafkaLogin(prefix=_PREFIX, **{key: getattr(self, _PREFIX + key) for key in _LOGIN_KEYS})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeConfig(KafkaLoginConfig):
    """Settings of the questions to brokers. Raise ServeError with a sentence for an impossible setting.

    The brokers of a cluster are asked in turn each `interval_seconds`, at most `requests_per_second` of them. A
    difference counts if both sides are unchanged `confirm_seconds` later. With `groups`, brokers are also asked for
    consumer groups each `groups_interval_seconds`, and `groups_directory`, if set, keeps the last answers. The login
    applies to clusters that `clusters` does not name.
    """

    brokers: bool = False
    interval_seconds: float = 60.0
    confirm_seconds: float = 5.0
    timeout_seconds: float = 10.0
    requests_per_second: float = 5.0
    groups: bool = False
    groups_interval_seconds: float = 300.0
    group_requests_per_second: float = 0.9
    groups_directory: Path | None = None
    clusters: Mapping[str, KafkaLoginConfig] = field(default_factory=dict, metadata={"is_key": False})

    def __post_init__(self) -> None:
        KafkaLoginConfig.__post_init__(self)
        for name in _MORE_THAN_NOTHING:
            if not getattr(self, name) > 0:
                raise ServeError(f"{name} is {getattr(self, name)}: expected more than 0")

    @property
    def asks_a_quorum(self) -> bool:
        """Return whether any cluster's quorum is asked."""
        return any(login.kafka_quorum for login in (self, *self.clusters.values()))

    def login_of(self, cluster: str) -> KafkaLoginConfig:
        """Return the login for this cluster's brokers."""
        return self.clusters.get(cluster, self)
