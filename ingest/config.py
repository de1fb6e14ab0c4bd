"""The settings of a ZooKeeper session and of a forwarder, checked before anything is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from controller.contract.forwarder_status import DEFAULT_JUTE_MAXBUFFER
from ingest.errors import IngestError
from transport.address import Address, JournalAddress
from transport.disk import RETAIN_BYTES, Fsync
from transport.listening import Listening, ListeningError
from transport.secret import password_problem, read_secret, settings_problem

_SERVER = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
_ZOOKEEPER = re.compile(rf"(?P<servers>{_SERVER}(?:,{_SERVER})*)(?P<chroot>(?:/[^/\s,]+)*)/?")
_TOGETHER = (
    ("zookeeper_password_file", "zookeeper_username"),
    ("zookeeper_password_variable", "zookeeper_username"),
    ("zookeeper_keytab_file", "zookeeper_principal"),
    ("zookeeper_principal", "zookeeper_keytab_file"),
    ("zookeeper_ca_file", "zookeeper_tls"),
    ("zookeeper_certificate_file", "zookeeper_key_file"),
    ("zookeeper_key_file", "zookeeper_certificate_file"),
    ("zookeeper_certificate_file", "zookeeper_tls"),
)
_FILES = tuple(f"zookeeper_{name}_file" for name in ("password", "keytab", "ca", "certificate", "key"))
_PREFIX = "zookeeper_"
_SERVICE_NAME = "zookeeper"
_ELECTION = (
    *("username", "password_file", "password_variable", "principal", "keytab_file", "service_name"),
    *("tls", "ca_file", "certificate_file", "key_file"),
)
_METRICS = "metrics_"
_LISTENING = ("tls_certificate_file", "tls_key_file", "username", "password_file", "password_variable", "allowed_hosts")
_SMALLEST = {
    "coalesce_ms": 0,
    "heartbeat_seconds": 0.1,
    "connect_timeout_seconds": 0.1,
    "session_timeout_seconds": 1,
    "multi_read_paths": 1,
    "read_budget_znodes_per_second": 1,
    "journal_retain_bytes": 1,
    "journal_retain_seconds": 1,
    "resync_jitter_seconds": 0,
    "sweep_seconds": 1,
    "ensemble_interval_seconds": 1,
    "zookeeper_admin_port": 1,
    "jute_maxbuffer_bytes": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperConfig:
    """Settings of a session on a cluster's ZooKeeper. Raise IngestError for impossible settings.

    `zookeeper` is HOST:PORT[,HOST:PORT…][/chroot]. A request reads at most `multi_read_paths` znodes, all reads
    together at most `read_budget_znodes_per_second` (None is unlimited). A question gives up after
    `connect_timeout_seconds`, but `kontrast watch` only logs then, and retries for ever. Secrets are in files or in the
    environment, not here. A username logs in by DIGEST-MD5, a principal by Kerberos.
    """

    zookeeper: str
    zookeeper_username: str | None = None
    zookeeper_password_file: str | None = None
    zookeeper_password_variable: str | None = None
    zookeeper_principal: str | None = None
    zookeeper_keytab_file: str | None = None
    zookeeper_service_name: str = _SERVICE_NAME
    zookeeper_tls: bool = False
    zookeeper_ca_file: str | None = None
    zookeeper_certificate_file: str | None = None
    zookeeper_key_file: str | None = None
    connect_timeout_seconds: float = 30.0
    session_timeout_seconds: float = 10.0
    multi_read_paths: int = 500
    read_budget_znodes_per_second: int | None = None

    def __post_init__(self) -> None:
        if not _ZOOKEEPER.fullmatch(self.zookeeper):
            raise IngestError(f"zookeeper {self.zookeeper!r} is no address. Give HOST:PORT[,HOST:PORT][/chroot]")
        for field in fields(self):
            value, smallest = getattr(self, field.name), _SMALLEST.get(field.name)
            if value is not None and smallest is not None and not value >= smallest:
                raise IngestError(f"{field.name} is {value}, but must be at least {smallest}")
        if problem := settings_problem(self, _TOGETHER, _FILES):
            raise IngestError(problem)
        if self.zookeeper_username is not None:
            self._check_password()

    def _check_password(self) -> None:
        if self.zookeeper_principal is not None:
            raise IngestError("zookeeper_username is given and so is zookeeper_principal. A login has only one")
        if problem := password_problem(self.zookeeper_password_file, self.zookeeper_password_variable, _PREFIX):
            raise IngestError(f"{_PREFIX}{problem}")

    @property
    def password(self) -> str:
        """Return the password from its file, without the newline at its end, or from the variable.

        Raise IngestError.
        """
        try:
            password = read_secret(self.zookeeper_password_file, self.zookeeper_password_variable)
        except (OSError, UnicodeDecodeError) as error:
            raise IngestError(
                f"zookeeper_password_file {self.zookeeper_password_file} cannot be read: {error}"
            ) from error
        assert password is not None, "a password that no setting names"
        return password

    @property
    def servers(self) -> str:
        """Return HOST:PORT[,HOST:PORT…] of the watched ensemble."""
        return self._zookeeper_part("servers")

    @property
    def chroot(self) -> str:
        """Return the path of the cluster without a final slash, empty for the root."""
        return self._zookeeper_part("chroot")

    def _zookeeper_part(self, name: str) -> str:
        match = _ZOOKEEPER.fullmatch(self.zookeeper)
        assert match is not None, self.zookeeper
        return match[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig(ZooKeeperConfig):
    """Settings of one cluster's forwarder. Raise IngestError for impossible settings.

    The forwarder reads events within `coalesce_ms` together. After a lost connection it reads everything again after a
    random part of `resync_jitter_seconds`, so that the watchers of an ensemble do not read at once. Within
    `sweep_seconds` at most it reads every znode once more, None for never. Every `ensemble_interval_seconds` it asks
    each server of the ensemble about its state, None for never. In `election_zookeeper`,
    HOST:PORT[,HOST:PORT…][/chroot], the forwarders of a cluster elect one. `maintenance_file` may be missing, but not
    its folder.
    """

    cluster: str
    to: Address
    coalesce_ms: float = 10.0
    heartbeat_seconds: float = 1.0
    resync_jitter_seconds: float = 0.5
    sweep_seconds: float | None = 600.0
    ensemble_interval_seconds: float | None = 10.0
    zookeeper_admin_port: int | None = None
    jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER
    election_zookeeper: str | None = None
    election_on_watched: bool = False
    election_username: str | None = None
    election_password_file: str | None = None
    election_password_variable: str | None = None
    election_principal: str | None = None
    election_keytab_file: str | None = None
    election_service_name: str = _SERVICE_NAME
    election_tls: bool = False
    election_ca_file: str | None = None
    election_certificate_file: str | None = None
    election_key_file: str | None = None
    metrics_listen: str | None = None
    metrics_tls_certificate_file: str | None = None
    metrics_tls_key_file: str | None = None
    metrics_username: str | None = None
    metrics_password_file: str | None = None
    metrics_password_variable: str | None = None
    metrics_allowed_hosts: tuple[str, ...] = ()
    maintenance_file: Path | None = None
    journal_fsync: Fsync = Fsync.INTERVAL
    journal_retain_bytes: int | None = RETAIN_BYTES
    journal_retain_seconds: float | None = None

    def __post_init__(self) -> None:
        if not self.cluster or any(character.isspace() for character in self.cluster):
            raise IngestError(f"cluster {self.cluster!r} is no name. It must be one word")
        ZooKeeperConfig.__post_init__(self)
        try:
            self.listening  # noqa: B018 (the property checks)
        except ListeningError as error:
            raise IngestError(str(error)) from error
        if self.maintenance_file is not None and not self.maintenance_file.parent.is_dir():
            raise IngestError(
                f"maintenance_file {self.maintenance_file} cannot be used. Create its directory, or name another"
            )
        if self.election_zookeeper is not None:
            self._check_election(self.election_zookeeper)
            return
        of_election = {f"election_{name}" for name in _ELECTION}
        for field in fields(self):
            if field.name in of_election and getattr(self, field.name) != field.default:
                raise IngestError(f"{field.name} is given and election_zookeeper is not. Each needs the other")

    @property
    def listening(self) -> Listening | None:
        """Return the address and login of the forwarder's metrics, if configured. Raise ListeningError."""
        given = {name: getattr(self, f"{_METRICS}{name}") for name in _LISTENING}
        if self.metrics_listen is not None:
            return Listening(listen=self.metrics_listen, prefix=_METRICS, **given)
        for name, value in given.items():
            if value not in (None, ()):
                raise ListeningError(f"{_METRICS}{name} is given and {_METRICS}listen is not. Each needs the other")
        return None

    @property
    def election(self) -> ZooKeeperConfig:
        """Return the settings of the session on the election's ensemble. Raise IngestError."""
        assert self.election_zookeeper is not None
        own: dict[str, Any] = {f"zookeeper_{name}": getattr(self, f"election_{name}") for name in _ELECTION}
        try:
            return ZooKeeperConfig(
                zookeeper=self.election_zookeeper,
                connect_timeout_seconds=self.connect_timeout_seconds,
                session_timeout_seconds=self.session_timeout_seconds,
                **own,
            )
        except IngestError as error:
            raise IngestError(re.sub(rf"\bzookeeper_(?={'|'.join(_ELECTION)})", "election_", str(error))) from error

    def _check_election(self, address: str) -> None:
        match = _ZOOKEEPER.fullmatch(address)
        if match is None:
            raise IngestError(f"election_zookeeper {address!r} is no address. Give HOST:PORT[,HOST:PORT][/chroot]")
        self.election  # noqa: B018 (the property checks)
        if isinstance(self.to, JournalAddress):
            raise IngestError(
                f"election_zookeeper is given and the changes go to {self.to}, which takes one writer anyway. "
                "Use a kafka:// stream, or no election"
            )
        shared = set(match["servers"].split(",")) & set(self.servers.split(","))
        if shared and not self.election_on_watched:
            raise IngestError(
                f"election_zookeeper has {', '.join(sorted(shared))} of the watched ensemble, to which Kontrast never "
                "writes. Name another, or allow it with election_on_watched"
            )
