"""Settings of delivery to Alertmanager, checked at construction."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboards.catalogue.cluster_metrics import ALERT_SINCE
from dashboards.errors import ServeError
from transport.secret import read_secret

# Labels from an alert's own row, so a setting may not give them.
OWN_LABELS = frozenset({"alertname", *ALERT_SINCE.labels})

# A heartbeat comes each second, but a batch of a large cluster or a failover of the forwarder takes up to ten seconds.
STALE_AFTER_SECONDS = 30.0

_LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CREDENTIALS = ("password_file", "password_variable", "bearer_token_file", "bearer_token_variable")

# A crash pages by default, because the next loss may take partitions from clients, and a crashed process does not
# always start again. If a supervisor restarts brokers, a warning is enough, because BrokerCrashed pages only while
# clients have lost nothing. Their first loss pages as PartitionsOffline or PartitionsUnderMinIsr in any case.
CRASH_SEVERITIES = ("page", "warn")
_MORE_THAN_NOTHING = ("timeout_seconds", "resend_interval_seconds", "resolve_timeout_seconds", "stale_after_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerConfig:
    """Delivery of alerts. Raise ServeError for an impossible setting.

    Each of `urls` gets every alert, as Alertmanagers of one cluster expect it. An alert is sent again each
    `resend_interval_seconds`. Alertmanager ends it after `resolve_timeout_seconds` without a message. A cluster's
    alerts are unknown after `stale_after_seconds` without a heartbeat. `crash_without_damage` is the severity of
    BrokerCrashed while clients can use every partition, "page" or "warn". Secrets are in files or in the environment,
    not here.
    """

    urls: tuple[str, ...] = ()
    username: str | None = None
    password_file: str | None = None
    password_variable: str | None = None
    bearer_token_file: str | None = None
    bearer_token_variable: str | None = None
    ca_file: str | None = None
    timeout_seconds: float = 5.0
    resend_interval_seconds: float = 30.0
    resolve_timeout_seconds: float = 300.0
    stale_after_seconds: float = STALE_AFTER_SECONDS
    external_labels: Mapping[str, str] = field(default_factory=dict)
    generator_url: str | None = None
    runbook_url: str = "docs/runbooks"
    page_url: str | None = None
    crash_without_damage: str = "page"

    @property
    def stale_after_ms(self) -> int:
        """Return the age of the newest heartbeat at which pages, metrics and alerts take a cluster for unknown."""
        return int(self.stale_after_seconds * 1000)

    def __post_init__(self) -> None:
        for url in (*self.urls, self.generator_url, self.page_url):
            if url is not None:
                _check_url(url)
        for name in _MORE_THAN_NOTHING:
            if not getattr(self, name) > 0:
                raise ServeError(f"{name} is {getattr(self, name)}: expected more than 0")
        if self.resolve_timeout_seconds < 2 * self.resend_interval_seconds:
            raise ServeError(
                f"resolve_timeout_seconds is {self.resolve_timeout_seconds:g}: expected at least twice "
                f"resend_interval_seconds ({self.resend_interval_seconds:g}), or one lost sending would end an alert"
            )
        if self.crash_without_damage not in CRASH_SEVERITIES:
            raise ServeError(f"crash_without_damage is {self.crash_without_damage!r}: expected page or warn")
        for label in self.external_labels:
            if not _LABEL_NAME.fullmatch(label) or label in OWN_LABELS:
                raise ServeError(f"external_labels has {label!r}: expected a label's name that is not Kontrast's own")
        self._check_login()

    def _check_login(self) -> None:
        given = [name for name in _CREDENTIALS if getattr(self, name) is not None]
        passwords = [name for name in given if name.startswith("password")]
        if len(given) > 1:
            raise ServeError(f"{given[0]} and {given[1]} are both set. Keep one login")
        if bool(passwords) != (self.username is not None):
            raise ServeError("username needs password_file or password_variable, and each of these needs username")
        for name in given:
            setting = getattr(self, name)
            if name.endswith("_variable") and not os.environ.get(setting):
                raise ServeError(f"{name} names {setting}, which the environment lacks or has empty")
        for name in ("password_file", "bearer_token_file", "ca_file"):
            file = getattr(self, name)
            if file is not None and not os.access(file, os.R_OK):
                raise ServeError(f"{name} {file} cannot be read. Check its path and permissions")

    @property
    def password(self) -> str | None:
        """Return the content of the password's file or variable, if any. Raise OSError or UnicodeDecodeError."""
        return read_secret(self.password_file, self.password_variable)

    @property
    def bearer_token(self) -> str | None:
        """Return the content of the token's file or variable, if any. Raise OSError or UnicodeDecodeError."""
        return read_secret(self.bearer_token_file, self.bearer_token_variable)


def _check_url(url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or any(character.isspace() for character in url):
        raise ServeError(f"{url!r} is no URL. Write http://HOST:PORT or https://HOST:PORT, optionally with a path")
    if parts.username is not None:
        raise ServeError(f"the URL of {parts.hostname} has a login. Set username and password_file instead")
