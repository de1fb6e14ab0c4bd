"""HTTP server of pages in a thread."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import math
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from functools import partial
from ipaddress import ip_address
from typing import Final

import anyio
import uvicorn
from anyio import CapacityLimiter, Semaphore, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboards.errors import ServeError
from dashboards.serving.connections import BoundedListener, BoundedProtocol, HttpFigures
from transport.kafka_login import host_and_port
from transport.listening import ANY_HOST, Listening, ListeningError
from transport.printable import Complaints, printable

# Slows down guessing. A right password never waits.
_WRONG_LOGIN_SECONDS = 1.0

# Probes have no login, and these pages name no cluster.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})

_access_logger = logging.getLogger("kontrast.dashboards")


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
            _access_logger.warning("%s. The old password stays", error)
        else:
            _access_logger.info("%s changed, the new password is needed from now on", self._listening.password_file)

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
            _access_logger.warning("%d wrong logins since the last such line, the newest from %s", count, client)
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
            _access_logger.warning(
                "%s changed and is unusable, keeping the old certificate: %s", self._certificate_file, error
            )
        else:
            _access_logger.info("%s changed, new connections get the new certificate", self._certificate_file)

    def _show_newest(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._shown

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # If no password were given, OpenSSL would prompt for a passphrase.
        context.load_cert_chain(self._certificate_file, self._key_file, password="")
        return context


_LOOPBACK: Final = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
_HOST: Final = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:@/?#\s]+))(?::[0-9]*)?")
_SHOWN: Final = 100  # characters of a foreign name

_logger = logging.getLogger("kontrast.dashboards")


class KnownHosts:
    """Middleware that answers 421 to a host name that is neither this machine's nor allowed.

    Starlette's TrustedHostMiddleware supports only names. This class accepts every IP address, because a browser sends
    one only to a page that it loaded from that address, and no configuration lists the addresses of pods and probes.
    """

    def __init__(self, app: ASGIApp, listening: Listening) -> None:
        self._app = app
        self._setting = f"{listening.prefix}allowed_hosts"
        self._complaints = Complaints()
        self._names = {*_LOOPBACK, *map(str.lower, (listening.host, socket.gethostname(), *listening.allowed_hosts))}
        # In a thread, because a resolver that does not answer would delay the start.
        threading.Thread(
            target=lambda: self._names.add(socket.getfqdn().lower()), name="host name", daemon=True
        ).start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application, or answer 421."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host")
        # A browser always names a host, but some health checks of load balancers do not.
        if host is None or self._is_known(host):
            await self._app(scope, receive, send)
            return
        shown = printable(host, _SHOWN)
        if count := self._complaints.due():
            what = "refused %d requests for foreign host names, the newest for %s: %s allows a name"
            _logger.warning(what, count, shown, self._setting)
        sentence = (
            f"Kontrast does not answer for the host name {shown}. "
            f"Use the IP address of this server, or add the name to the setting {self._setting}.\n"
        )
        await PlainTextResponse(sentence, status_code=421)(scope, receive, send)

    def _is_known(self, host: str) -> bool:
        if ANY_HOST in self._names:
            return True
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["ipv6"] or match["name"]).lower().removesuffix(".")
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


_GRACEFUL_SECONDS = 3
_BACKLOG = 128  # connections that asyncio accepts at once, before the server can end any

# Headers of every answer, so that no other site can use it as a script, frame or image.
_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class HttpServer:
    """uvicorn in a thread, so that the caller handles signals. Raise ServeError at once."""

    def __init__(self, app: Starlette, listening: Listening, figures: HttpFigures) -> None:
        self._certificate = None if listening.tls_certificate_file is None else Certificate(listening)
        self._login = None if listening.username is None else BasicAuthentication(app, listening, figures)
        self._socket = _listening_socket(listening, figures)
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self._certificate is None else "https"
        self.address = f"{scheme}://{host_and_port(host, port)}"
        config = uvicorn.Config(
            KnownHosts(self._login or app, listening),
            http=partial(BoundedProtocol, figures),  # type: ignore[arg-type]  # a factory
            ws="none",
            backlog=_BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            headers=list(_HEADERS),
            timeout_graceful_shutdown=_GRACEFUL_SECONDS,
        )
        config.load()
        config.ssl = None if self._certificate is None else self._certificate.context
        self._server = uvicorn.Server(config)
        # A daemon, so that a request without end cannot keep the process.
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)

    def close(self) -> None:
        """Close the port of a server that was never started."""
        self._socket.close()

    def check(self) -> None:
        """Raise ServeError if the server has ended. Call this at intervals, also for renewed files."""
        if not self._thread.is_alive():
            raise ServeError(f"the HTTP server at {self.address} ended by itself (details in the log)")
        if self._certificate is not None:
            self._certificate.renew()
        if self._login is not None:
            self._login.renew()

    def __enter__(self) -> HttpServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _listening_socket(listening: Listening, figures: HttpFigures) -> socket.socket:
    listen = listening.listen
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM
        )[0]
    except (OSError, OverflowError) as error:
        raise ServeError(f"cannot listen on {listen}: {getattr(error, 'strerror', None) or error}") from error
    listening_socket = BoundedListener(family, kind, protocol, figures)
    try:
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening_socket.bind(address)
        listening_socket.listen()
    except (OSError, OverflowError) as error:
        listening_socket.close()
        reason = getattr(error, "strerror", None) or error
        raise ServeError(f"cannot listen on {listen}: {reason}. Free it or choose another") from error
    return listening_socket


WAIT_SECONDS: Final = 5.0
RETRY_AFTER_SECONDS: Final = 5
BUSY: Final = f"Kontrast computes other pages at the moment. Ask again in {RETRY_AFTER_SECONDS} seconds."


class Pool:
    """Threads for answers that take long to compute.

    Python computes in one thread at a time, so more threads finish no earlier, but delay the event loop.
    """

    def __init__(self, threads: int) -> None:
        self._free = Semaphore(threads)
        self._threads = CapacityLimiter(math.inf)  # without a limit, because `_free` limits the threads

    async def answer(
        self,
        request: Request,
        make: Callable[[Request], Response],
        at_hand: Callable[[Request], Response | None] = lambda _: None,
    ) -> Response:
        """Make the answer in a thread, unless the client has left. Raise HTTPException 503 if none is free in time.

        An answer that is `at_hand` needs no thread. While others waited for one, it may have been made.
        """
        if (answer := at_hand(request)) is not None:
            return answer
        try:
            with anyio.fail_after(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise HTTPException(503, BUSY, {"Retry-After": str(RETRY_AFTER_SECONDS)}) from None
        try:
            if await request.is_disconnected():
                return Response()  # no client is left to read it
            answer = at_hand(request)
            return await to_thread.run_sync(make, request, limiter=self._threads) if answer is None else answer
        finally:
            self._free.release()
