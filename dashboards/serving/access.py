"""Basic authentication and TLS, with a password and a certificate that are renewed while the server runs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
import ssl
from collections.abc import Iterable

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboards.errors import ServeError
from dashboards.serving.connections import HttpFigures
from transport.listening import Listening, ListeningError
from transport.printable import Complaints

# Slows down guessing. A right password never waits.
_WRONG_LOGIN_SECONDS = 1.0

# Probes have no login, and these pages name no cluster.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})

_logger = logging.getLogger("kontrast.dashboards")


class BasicAuthentication:
    """Middleware that answers 401 to requests without the login, except for `OPEN_PATHS`.

    A wrong login waits a second for its answer. A renewed password file takes effect while the server runs. Raise
    ServeError at once if there is no password.
    """

    def __init__(self, app: ASGIApp, listening: Listening, figures: HttpFigures) -> None:
        self._app = app
        self._listening = listening
        self._figures = figures
        self._complaints = Complaints()
        self._written = _times(listening.password_file)
        try:
            self._known = self._read()
        except ListeningError as error:
            raise ServeError(str(error)) from error

    def renew(self) -> None:
        """Read the password again if its file changed. Keep the old password while the file is unreadable."""
        written = _times(self._listening.password_file)
        if written == self._written:
            return
        self._written = written
        try:
            self._known = self._read()
        except ListeningError as error:
            _logger.warning("%s. The old password stays", error)
        else:
            _logger.info("%s changed, the new password is needed from now on", self._listening.password_file)

    def _read(self) -> bytes:
        return _digest(f"{self._listening.username}:{self._listening.password}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application, or answer 401."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS and not self._is_known(scope["headers"]):
            if any(name == b"authorization" for name, _ in scope["headers"]):
                await self._slow_down(scope)
            ask = {"WWW-Authenticate": 'Basic realm="Kontrast", charset="UTF-8"'}
            await PlainTextResponse("a login is needed\n", status_code=401, headers=ask)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _slow_down(self, scope: Scope) -> None:
        self._figures.wrong_logins += 1
        if count := self._complaints.due():
            client = (scope.get("client") or ("unknown",))[0]
            _logger.warning("%d wrong logins since the last such line, the newest from %s", count, client)
        await anyio.sleep(_WRONG_LOGIN_SECONDS)

    def _is_known(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = next((value for name, value in headers if name == b"authorization"), b"")
        scheme, _, credentials = given.partition(b" ")
        try:
            login = base64.b64decode(credentials.strip(), validate=True)
        except binascii.Error:
            return False
        # Digests have equal lengths, so the time of the comparison does not reveal the password.
        return scheme.lower() == b"basic" and hmac.compare_digest(_digest(login), self._known)


def _times(*files: str | None) -> tuple[int, ...]:
    """Return when each file was written, or an empty tuple while a file is missing."""
    try:
        return tuple(os.stat(file).st_mtime_ns for file in files if file is not None)
    except OSError:
        return ()


def _digest(login: bytes) -> bytes:
    return hashlib.sha256(login).digest()


class Certificate:
    """TLS certificate of the server, which follows renewed files. Raise ServeError at once if it is unusable."""

    def __init__(self, listening: Listening) -> None:
        assert listening.tls_certificate_file is not None, "TLS without a certificate"
        assert listening.tls_key_file is not None, "TLS without a key"
        self._certificate_file, self._key_file = listening.tls_certificate_file, listening.tls_key_file
        self._written = _times(self._certificate_file, self._key_file)
        try:
            self._shown = self._load()
        except (OSError, ssl.SSLError) as error:
            raise ServeError(
                f"{self._certificate_file} with {self._key_file} is no certificate with its key, "
                f"in PEM and without a passphrase: {error}"
            ) from error
        self.context = self._load()
        # Open connections keep their context. Each new connection begins with the newest context.
        self.context.sni_callback = self._show_newest

    def renew(self) -> None:
        """Load the files again if they changed. Keep the old certificate until the new one and its key fit."""
        written = _times(self._certificate_file, self._key_file)
        if written == self._written:
            return
        self._written = written
        try:
            self._shown = self._load()
        except (OSError, ssl.SSLError) as error:
            _logger.warning(
                "%s changed and is unusable, keeping the old certificate: %s", self._certificate_file, error
            )
        else:
            _logger.info("%s changed, new connections get the new certificate", self._certificate_file)

    def _show_newest(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._shown

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # If no password were given, OpenSSL would prompt for a passphrase.
        context.load_cert_chain(self._certificate_file, self._key_file, password="")
        return context
