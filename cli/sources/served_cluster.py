"""Client of a running `kontrast serve` about one cluster: its restarts, leases and consumer groups."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from cli.served_pages import page_of
from cli.settings.config import ConfigError, Settings
from cli.settings.keys import keys_of
from controller.contract.decoding import JsonDecoder, UndecodableError
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.page import interface
from dashboards.page.paths import PagePath
from questions.clients.known_groups import KnownGroups
from questions.lease import Lease
from questions.may_restart import MayRestart
from questions.question import NotFoundError
from questions.restartable import Restartable
from transport.listening import Listening, ListeningError
from transport.printable import printable

# In `kontrast serve` a request waits up to 5 s for its turn, and a shutdown of 200,000 partitions takes some seconds.
_TIMEOUT_SECONDS: Final = 60.0
_LONGEST_REASON: Final = 300
_LOGIN: Final = ("username", "password_file", "password_variable")
_ANYWHERE: Final = "localhost:0"

_Answer = TypeVar("_Answer")


class NoLeaseError(Exception):
    """`kontrast serve` knows no such lease. The message is one sentence."""


class _Named(msgspec.Struct):
    cluster: str


class ServedCluster:
    """Requests to one `kontrast serve` about one cluster, in the name of a holder.

    Raise NotFoundError for a request that is refused, and ServeError without an answer. The login is the one of the
    section [serve]. Without a cluster's name, `kontrast serve` must have only one cluster.
    """

    def __init__(self, url: str, settings: Settings, cluster: str | None, holder: str, ca_file: Path | None) -> None:
        self._url = url.rstrip("/")
        self._login = _login(settings)
        self._holder = holder
        self._cluster = cluster
        try:
            self._tls = ssl.create_default_context(cafile=ca_file)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(f"--serve-ca-file {ca_file} holds no certificates in PEM form: {error}") from error

    def ask(self, question: MayRestart, hold_seconds: int | None) -> Restartable:
        """Return the judgement of a restart. If it is yes, take a lease of `hold_seconds`, if given."""
        accepted = {"accept_topic": question.accept_topics, "accept_absent": question.accept_absent}
        asked = {"broker": question.broker, **accepted, "holder": self._holder}
        if hold_seconds is None:
            return self._of_cluster(interface.RESTARTABLE, asked, Restartable)
        return self._of_cluster(interface.HOLD_LEASE, {**asked, "seconds": hold_seconds}, Restartable)

    def groups(self) -> KnownGroups:
        """Return the consumer groups as the brokers last described them to `kontrast serve`."""
        return self._of_cluster(interface.GROUPS, {}, KnownGroups)

    def release(self, broker: int) -> Lease:
        """Release the lease for this broker. Raise NoLeaseError if the holder does not have it."""
        try:
            return self._of_cluster(interface.RELEASE_LEASE, {"broker": broker, "holder": self._holder}, Lease)
        except NotFoundError as error:
            if isinstance(error, _MissingError):
                raise NoLeaseError(str(error)) from error
            raise

    def _of_cluster(self, path: PagePath, asked: dict[str, Any], answer: type[_Answer]) -> _Answer:
        if self._cluster is None:
            self._cluster = self._only_cluster()
        address = interface.API + path.path.replace("{cluster}", quote(self._cluster, safe=""))
        return self._asked(path.method, address, asked, answer)

    def _only_cluster(self) -> str:
        address = interface.API + interface.FLEET.path
        names = sorted(each.cluster for each in self._asked("get", address, {}, tuple[_Named, ...]))
        if len(names) == 1:
            return names[0]
        known = f"Give --cluster with one of {', '.join(names)}" if names else "It has none yet"
        raise NotFoundError(f"which cluster of {self._url}? {known}")

    def _asked(self, method: str, address: str, asked: dict[str, Any], answer: type[_Answer]) -> _Answer:
        try:
            # Ignore proxy variables, which are for outside addresses.
            with httpx.Client(verify=self._tls, auth=self._login, timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
                response = client.request(method, self._url + address, params=asked)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
            raise ServeError(
                f"kontrast serve at {self._url} does not answer: {error or type(error).__name__}"
            ) from error
        if response.status_code != httpx.codes.OK:
            raise self._refusal(response)
        try:
            return JsonDecoder(answer).decode(response.content)
        except UndecodableError as error:
            raise ServeError(f"{self._url} is no kontrast serve of this version: {error}") from error

    def _refusal(self, response: httpx.Response) -> Exception:
        if response.status_code == httpx.codes.UNAUTHORIZED:
            login = "Set KONTRAST_SERVE__USERNAME and KONTRAST_SERVE__PASSWORD_FILE"
            return NotFoundError(f"kontrast serve at {self._url} rejects the login. {login}")
        try:
            reason = JsonDecoder(interface.Refusal).decode(response.content).error
        except UndecodableError:
            reason = " ".join(response.text.split())
        sentence = printable(reason, _LONGEST_REASON).removesuffix(".")
        if response.status_code == httpx.codes.NOT_FOUND:
            return _MissingError(sentence)
        if response.is_client_error:
            return NotFoundError(sentence)
        return ServeError(f"kontrast serve at {self._url} has no answer now: {sentence}")


class _MissingError(NotFoundError):
    """`kontrast serve` answered 404."""


def serve_url(settings: Settings) -> str:
    """Return the address of the configured `kontrast serve`, by default on this machine. Raise ConfigError."""
    page = page_of(settings.sections["serve"], "listen", "", default=str(keys_of(ServeConfig)["listen"].default))
    if page is None:
        raise ConfigError("where is kontrast serve? Its setting listen has no fixed port. Give --serve URL")
    return page.address


def _login(settings: Settings) -> tuple[str, str] | None:
    """Return the login of [serve], if it has one. Raise ConfigError."""
    layer = settings.sections["serve"]
    if "username" not in layer:
        return None
    username, file, variable = (str(layer[key].value) if key in layer else None for key in _LOGIN)
    try:
        login = Listening(
            listen=_ANYWHERE, username=username, password_file=file, password_variable=variable, prefix="serve: "
        )
        return str(username), login.password
    except ListeningError as error:
        raise ConfigError(str(error)) from error
