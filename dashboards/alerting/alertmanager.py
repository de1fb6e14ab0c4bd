"""One Alertmanager's v2 API, as far as it is needed: tell alerts, and ask which it has.

The only place that knows HTTP's ways to fail. When to try again is `sender`'s business.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from datetime import datetime
from http.client import HTTPException
from typing import Any

import msgspec

from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import NAME_PREFIX, Message
from dashboards.errors import ServeError

_LONGEST_REASON = 300


class UnreachableError(Exception):
    """It does not answer, or says that it cannot for now: one sentence."""


class RefusedError(Exception):
    """It answers that it will not: one sentence. `in_part`: it has taken what it found nothing wrong with."""

    def __init__(self, sentence: str, *, in_part: bool) -> None:
        super().__init__(sentence)
        self.in_part = in_part


class _FoundAlert(msgspec.Struct, rename={"starts_at": "startsAt"}):
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime


class Alertmanager:
    """One Alertmanager; raises ServeError for a file of authorities that is none."""

    def __init__(self, url: str, config: AlertmanagerConfig) -> None:
        self.url = url.rstrip("/")
        self._config = config
        try:
            context = ssl.create_default_context(cafile=config.ca_file)
        except (ssl.SSLError, OSError) as error:
            raise ServeError(f"ca_file {config.ca_file} holds no certificates in PEM form: {error}") from error
        # Straight to it: the variables for proxies are meant for what is outside.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def tell(self, messages: Sequence[Message], now_ms: int) -> None:
        """Hand over alerts; raises UnreachableError, RefusedError."""
        self._ask("/api/v2/alerts", json.dumps([message.as_json(now_ms, self._config) for message in messages]))

    def alerts(self) -> list[Message]:
        """Kontrast's alerts that it has and that are not over; raises UnreachableError, RefusedError."""
        query = urllib.parse.urlencode({"filter": f'alertname=~"{NAME_PREFIX}.+"'})
        answer = self._ask(f"/api/v2/alerts?{query}")
        try:
            found = msgspec.json.decode(answer, type=list[_FoundAlert])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UnreachableError(f"{self.url} answers with what is no list of alerts: {error}") from error
        return [
            Message(
                labels=tuple(sorted(alert.labels.items())),
                annotations=tuple(sorted(alert.annotations.items())),
                since_ms=int(alert.starts_at.timestamp() * 1000),
            )
            for alert in found
        ]

    def _ask(self, path: str, body: str | None = None) -> bytes:
        try:
            request = urllib.request.Request(self.url + path, None if body is None else body.encode(), self._headers())
            with self._opener.open(request, timeout=self._config.timeout_seconds) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (OSError, HTTPException, UnicodeDecodeError) as error:
            reason: Any = error.reason if isinstance(error, urllib.error.URLError) else error
            raise UnreachableError(f"{self.url} cannot be told of alerts: {reason or type(reason).__name__}") from error

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "kontrast"}
        if (password := self._config.password) is not None:
            login = f"{self._config.username}:{password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        elif (token := self._config.bearer_token) is not None:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        try:
            said = " ".join(error.read().decode("utf-8", "replace").split())[:_LONGEST_REASON]
        except (OSError, HTTPException):
            said = ""
        sentence = f"{self.url} answers {error.code} {error.reason}" + (f": {said}" if said else "")
        if error.code >= 500 or error.code == 429:
            return UnreachableError(sentence)
        return RefusedError(sentence, in_part=error.code == 400)
