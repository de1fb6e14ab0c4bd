"""Settings of `kontrast serve`, checked at construction."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Final

from dashboards.alerting.config import AlertmanagerConfig
from dashboards.errors import ServeError
from dashboards.probe.config import ProbeConfig
from questions.clients.teams import Teams
from questions.past import PAST_ROWS
from transport.address import Address
from transport.listening import Listening, ListeningError
from wording.sentences import joined

_LIMITS = ("partition_detail_limit", "broker_detail_limit", "alert_detail_limit")


_EVERYWHERE: Final = ("", "0.0.0.0", "[::]")  # noqa: S104 (compared, not bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Settings of the exporter. Raise ServeError with a sentence for an impossible setting."""

    source: Address | tuple[Address, ...]  # the outputs of the streaming job, or of several
    listen: str = "127.0.0.1:9642"  # HOST:PORT or [IPV6]:PORT, with port 0 for any free one
    tls_certificate_file: str | None = None
    tls_key_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    password_variable: str | None = None
    allowed_hosts: tuple[str, ...] = ()  # host names besides this machine's, or *
    connect_timeout_seconds: float = 30.0  # for the first answer of the source
    partition_detail_limit: int = 500  # partitions of a cluster that /metrics names at most
    broker_detail_limit: int = 1000  # brokers of a cluster that /metrics names at most
    alert_detail_limit: int = 500  # alerts of a cluster that /metrics names at most
    past_rows: int = PAST_ROWS  # rows of each cluster and output that the page keeps
    start_command: str = "ssh {host} sudo systemctl start kafka"  # of a broker, for people to copy
    alertmanager: AlertmanagerConfig = field(default_factory=AlertmanagerConfig, metadata={"is_key": False})
    probe: ProbeConfig = field(default_factory=ProbeConfig, metadata={"is_key": False})
    teams: Teams = field(default_factory=Teams, metadata={"is_key": False})  # of the section [topics]

    def __post_init__(self) -> None:
        try:
            self.listening  # noqa: B018 (it checks)
        except ListeningError as error:
            raise ServeError(str(error)) from error
        if not self.connect_timeout_seconds > 0:
            raise ServeError(f"connect_timeout_seconds is {self.connect_timeout_seconds}: expected more than 0")
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise ServeError(f"from is {self.named_sources or 'empty'}: expected different outputs")
        for name in _LIMITS:
            if getattr(self, name) < 0:
                raise ServeError(f"{name} is {getattr(self, name)}: expected 0 or more")
        if self.past_rows < 1:
            raise ServeError(f"past_rows is {self.past_rows}: expected 1 or more")

    @property
    def sources(self) -> tuple[Address, ...]:
        """Return the outputs of each job."""
        return self.source if isinstance(self.source, tuple) else (self.source,)

    @property
    def page_url(self) -> str:
        """Return the address of the live page as browsers reach it, empty if the port is chosen at the start."""
        if self.alertmanager.page_url is not None:
            return self.alertmanager.page_url.rstrip("/")
        host, _, port = self.listen.rpartition(":")
        scheme = "http" if self.tls_certificate_file is None else "https"
        reached = socket.gethostname() if host in _EVERYWHERE else host
        return f"{scheme}://{reached}:{port}" if int(port) else ""

    @property
    def named_sources(self) -> str:
        """Return the outputs in words."""
        return joined([str(source) for source in self.sources])

    @property
    def listening(self) -> Listening:
        """Return the address of the pages and their access rules."""
        return Listening(
            listen=self.listen,
            tls_certificate_file=self.tls_certificate_file,
            tls_key_file=self.tls_key_file,
            username=self.username,
            password_file=self.password_file,
            password_variable=self.password_variable,
            allowed_hosts=self.allowed_hosts,
        )
