"""One Alertmanager's v2 API. It posts and lists alerts, and turns every failure of HTTP into one of two errors."""

from __future__ import annotations

import base64
import logging
import os
import ssl
import time
import urllib.parse
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, NamedTuple

import anyio
import httpx
import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.says.alert_kinds.kind import NAME_PREFIX
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Message
from dashboards.errors import ServeError
from transport.printable import Complaints, printable

_logger = logging.getLogger("kontrast.dashboards")

_CLOCK_PAUSE_SECONDS = 600.0
_CLOCKS_DIFFER_MS = 10_000  # an answer names its second, and may have been under way for some
_LONGEST_REASON = 300
# An alert of Kontrast has some 2 kB, so this has space for 30,000.
_LARGEST_ANSWER_BYTES = 64 * 1024**2
_LARGEST_REFUSAL_BYTES = 4096
_IS_NO_ALERTMANAGER = "This is not Alertmanager. Give Alertmanager's own address"


class NoAlertmanagerError(Exception):
    """The Alertmanager does not answer, or cannot take alerts now. The message is one sentence."""


class RefusedError(Exception):
    """The Alertmanager rejects alerts. The message is one sentence. `in_part` means that it accepted the valid ones."""

    def __init__(self, sentence: str, *, in_part: bool) -> None:
        super().__init__(sentence)
        self.in_part = in_part


class _FoundAlert(msgspec.Struct, rename={"starts_at": "startsAt"}):
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: Annotated[datetime, msgspec.Meta(tz=True)]


class _Answer(NamedTuple):
    response: httpx.Response
    content: bytes

    def __str__(self) -> str:
        said = printable(" ".join(self.content.decode("utf-8", "replace").split()), _LONGEST_REASON)
        status = printable(f"{self.response.status_code} {self.response.reason_phrase}", _LONGEST_REASON)
        return f"{status}: {said}" if said else status


_FOUND_ALERTS = JsonDecoder(list[_FoundAlert])


class Alertmanager:
    """One Alertmanager. Raise ServeError for an unusable `ca_file`.

    Requests go only to this address, so redirects are rejected, and proxy variables, which are for outside addresses,
    have no effect.
    """

    def __init__(self, url: str, config: AlertmanagerConfig) -> None:
        self.url = url.rstrip("/")
        self._config = config
        self._ahead_ms = 0  # of its clock, by its newest answer
        self._complaints = Complaints(_CLOCK_PAUSE_SECONDS)
        try:
            self._tls = ssl.create_default_context(cafile=config.ca_file)
        except (ssl.SSLError, OSError) as error:
            raise ServeError(f"ca_file {config.ca_file} holds no certificates in PEM form: {error}") from error

    def send(self, messages: Sequence[Message], now_ms: int) -> None:
        """Post alerts, by Alertmanager's clock, which decides on their ends. Raise UnreachableError or RefusedError."""
        its_ms = now_ms + self._ahead_ms
        body = msgspec.json.encode([message.as_json(its_ms, self._config) for message in messages])
        answer = self._ask("POST", "/api/v2/alerts", body)
        if answer.content.strip():  # Alertmanager's answer is empty
            raise RefusedError(f"{self.url} answers alerts with {answer}. {_IS_NO_ALERTMANAGER}", in_part=False)

    def alerts(self) -> list[Message]:
        """Return Kontrast's active alerts in this Alertmanager. Raise UnreachableError or RefusedError."""
        return [
            Message(
                labels=tuple(sorted(alert.labels.items())),
                annotations=tuple(sorted(alert.annotations.items())),
                since_ms=int(alert.starts_at.timestamp() * 1000),
            )
            for alert in self._found(f'alertname=~"{NAME_PREFIX}.+"')
        ]

    def check(self) -> None:
        """Check that an Alertmanager answers at the address. Raise UnreachableError or RefusedError."""
        self._found(f'alertname="{NAME_PREFIX}"')  # an unused name, for a short answer

    def _found(self, matcher: str) -> list[_FoundAlert]:
        answer = self._ask("GET", f"/api/v2/alerts?{urllib.parse.urlencode({'filter': matcher})}")
        try:
            return _FOUND_ALERTS.decode(answer.content)
        except UndecodableError as error:
            raise RefusedError(
                f"{self.url} answers without a list of alerts ({error}). {_IS_NO_ALERTMANAGER}", in_part=False
            ) from error

    def _ask(self, method: str, path: str, body: bytes | None = None) -> _Answer:
        try:
            answer = anyio.run(self._exchange, method, path, body)
        except TimeoutError as error:
            raise self._unreachable(f"no complete answer within {self._config.timeout_seconds:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise self._unreachable(_root_of(error)) from error
        if answer.response.status_code != httpx.codes.OK:
            raise self._refusal(answer)
        with suppress(KeyError, ValueError):
            self._compare_clocks(parsedate_to_datetime(answer.response.headers["Date"]))
        return answer

    def _compare_clocks(self, its_time: datetime) -> None:
        ahead_ms = round(its_time.timestamp() * 1000) - time.time_ns() // 1_000_000
        self._ahead_ms = ahead_ms if abs(ahead_ms) > _CLOCKS_DIFFER_MS else 0
        if self._ahead_ms and self._complaints.due():
            _logger.warning(
                "the clock of %s is %.0f s %s this machine's. Alerts are sent by its clock. Correct the wrong clock",
                self.url,
                abs(ahead_ms) / 1000,
                "ahead of" if ahead_ms > 0 else "behind",
            )

    async def _exchange(self, method: str, path: str, body: bytes | None) -> _Answer:
        # A limit for the whole request, because the client's own timeouts restart with each byte.
        with anyio.fail_after(self._config.timeout_seconds):
            async with (
                httpx.AsyncClient(verify=self._tls, trust_env=False, follow_redirects=False, timeout=None) as client,
                client.stream(method, self.url + path, content=body, headers=self._headers()) as response,
            ):
                return _Answer(response, await self._content(response))

    async def _content(self, response: httpx.Response) -> bytes:
        is_refusal = response.status_code != httpx.codes.OK
        content = bytearray()
        async for piece in response.aiter_raw():
            content += piece
            if is_refusal and len(content) >= _LARGEST_REFUSAL_BYTES:
                break
            if len(content) > _LARGEST_ANSWER_BYTES:
                raise self._unreachable(f"an answer of more than {_LARGEST_ANSWER_BYTES // 1024**2} MiB")
        return bytes(content)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "kontrast", "Accept-Encoding": "identity"}
        if (password := self._config.password) is not None:
            login = f"{self._config.username}:{password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        elif (token := self._config.bearer_token) is not None:
            if not (token.isascii() and token.isprintable()):  # an error by the HTTP library would show the token
                raise self._unreachable("the bearer token has characters outside printable ASCII")
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _unreachable(self, reason: str) -> NoAlertmanagerError:
        return NoAlertmanagerError(f"{self.url} takes no alerts: {reason}")

    def _refusal(self, answer: _Answer) -> Exception:
        code, sentence = answer.response.status_code, f"{self.url} answers {answer}"
        if answer.response.is_redirect:
            location = printable(answer.response.headers["location"], _LONGEST_REASON)
            return RefusedError(f"{sentence}, on to {location}. {_IS_NO_ALERTMANAGER}", in_part=False)
        if code >= 500 or code == httpx.codes.TOO_MANY_REQUESTS:
            return NoAlertmanagerError(sentence)
        return RefusedError(sentence, in_part=code == httpx.codes.BAD_REQUEST)


def _root_of(error: BaseException) -> str:
    """Return the operating system's reason below the libraries' own."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = getattr(cause, "exceptions", (cause,))[0]  # the first of several tried addresses
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return printable(str(error), _LONGEST_REASON) or type(error).__name__
