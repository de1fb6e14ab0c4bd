"""A kazoo client that can connect to servers whose data was restored from a backup, and log in by Kerberos."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionDropped, SessionClosedRequireSaslError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from puresasl.mechanisms import Mechanism, mechanisms

from ingest.config import ZooKeeperConfig
from ingest.errors import IngestError
from transport.printable import Complaints

if TYPE_CHECKING:
    from outputs.kerberos import KerberosExchange

KAZOO_LOG = logging.getLogger("kontrast.ingest.kazoo")

_GSSAPI = "GSSAPI"


class RestorableConnection(ConnectionHandler):
    """A kazoo connection that hides the client's newest zxid from servers, and outlives a refused login.

    A server with older data refuses a client with a newer zxid. After a restore from a backup such a refusal would last
    for ever. Users of this connection must expect a lagging server and wait with a sync. After a refused login kazoo
    would never connect again, although a server may know a password earlier than its file, or leave during a login.
    """

    ends_if_never_let_in = False  # AuthFailedError ends the connection before the first login

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)
        self._was_let_in = False
        self.without_ticket = ""  # why Kerberos gave no ticket for the newest connection
        self._had_ticket = False  # until then the owner reports the reason
        self._complaints = Complaints()

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        self.client.last_zxid = 0
        if self.sasl_options is not None and self.sasl_options["mechanism"] == _GSSAPI:
            self._get_ticket(host)
        elif self.sasl_options is not None:
            with suppress(IngestError):  # while the file is being written, the connection uses the earlier password
                self.sasl_options["password"] = self.sasl_options["config"].password
        return super()._connect(host, hostip, port)

    def _get_ticket(self, host: str) -> None:
        """Begin the login before a server waits for it. Raise ConnectionDropped, after which kazoo tries again."""
        from outputs.kerberos import KerberosError, KerberosExchange  # slow, as it imports kafka-python

        keytab, service = self.sasl_options["keytab"], self.sasl_options["service"]
        try:
            self.sasl_options["exchange"] = KerberosExchange(keytab, service, host)
            self.without_ticket, self._had_ticket = "", True
        except KerberosError as error:
            self.without_ticket = str(error)
            if self._had_ticket and self._complaints.due():
                self.logger.error("%s. Kontrast tries again", error)
            raise ConnectionDropped("no ticket") from error

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            super()._authenticate_with_sasl(host, timeout)
        except (AuthFailedError, SessionClosedRequireSaslError) as error:  # kazoo knows only the first as a refusal
            if self.ends_if_never_let_in and not self._was_let_in:
                raise AuthFailedError("the server refused this login") from error
            if self._complaints.due():
                self.logger.error(
                    "ZooKeeper at %s refuses the login. Kontrast tries again with what its secret's file has by then. "
                    "Check that the file has the server's newest password",
                    host,
                )
            raise ConnectionDropped("the login was refused") from error
        self._was_let_in = True


class RestorableClient(KazooClient):
    """A kazoo client over `RestorableConnection`."""

    def __init__(self, *, login: dict[str, Any] | None = None, **settings: object) -> None:
        super().__init__(logger=KAZOO_LOG, **settings)
        self._connection = RestorableConnection(self, self._conn_retry.copy(), logger=KAZOO_LOG, sasl_options=login)

    @property
    def without_ticket(self) -> str:
        """Return the reason why Kerberos gave no ticket for the newest connection, or an empty text."""
        return self._connection.without_ticket


class _Kerberos(Mechanism):
    """pure-sasl's mechanism GSSAPI over the exchange that a connection has begun."""

    name = _GSSAPI

    def __init__(self, sasl: object, exchange: KerberosExchange, **_: object) -> None:
        super().__init__(sasl)
        self._exchange = exchange

    def process(self, challenge: bytes | None = None) -> bytes:
        """Return the answer to the server's token, or the first token if there is no challenge yet."""
        if challenge is not None:
            self._exchange.receive(challenge)
        token: bytes = self._exchange.auth_bytes()
        self.complete = self._exchange.is_done()
        return token


mechanisms[_GSSAPI] = _Kerberos


def login_of(config: ZooKeeperConfig) -> dict[str, Any] | None:
    """Return kazoo's options of a login, if the configuration has one. Raise IngestError."""
    if config.zookeeper_principal is not None and config.zookeeper_keytab_file is not None:
        from outputs.kerberos import KerberosError, Keytab

        try:
            keytab = Keytab(config.zookeeper_principal, config.zookeeper_keytab_file)
        except KerberosError as error:
            raise IngestError(str(error)) from error
        return {"mechanism": _GSSAPI, "service": config.zookeeper_service_name, "keytab": keytab}
    if config.zookeeper_username is None:
        return None
    login = {"mechanism": "DIGEST-MD5", "username": config.zookeeper_username, "password": config.password}
    return {**login, "config": config}  # for the password of each new connection


def tls_of(config: ZooKeeperConfig) -> dict[str, object]:
    """Return kazoo's options of TLS."""
    return {
        "use_ssl": config.zookeeper_tls,
        "check_hostname": config.zookeeper_tls,
        "ca": config.zookeeper_ca_file,
        "certfile": config.zookeeper_certificate_file,
        "keyfile": config.zookeeper_key_file,
    }


class SharedThreadsHandler(SequentialThreadingHandler):
    """Handler of one client that hands its callbacks to two threads of the process.

    Callbacks of all sessions run one after another, so they must not wait. Kontrast's only leave states in an inbox.
    The threads stay for the life of the process, because the next session needs them again.
    """

    _workers_of_all: ClassVar[SequentialThreadingHandler | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def start(self) -> None:
        """Take the queues of the process's threads, which the first session starts."""
        with self._starting:
            if SharedThreadsHandler._workers_of_all is None:
                SharedThreadsHandler._workers_of_all = SequentialThreadingHandler()
                SharedThreadsHandler._workers_of_all.start()
            workers = SharedThreadsHandler._workers_of_all
        self.callback_queue, self.completion_queue = workers.callback_queue, workers.completion_queue
        self._running = True

    def stop(self) -> None:
        """End this client's use of the threads. Its waiting callbacks still run."""
        self._running = False
