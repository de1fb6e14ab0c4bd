"""A kazoo client that can connect to servers whose data was restored from a backup."""

from __future__ import annotations

import logging

from kazoo.client import KazooClient
from kazoo.protocol.connection import ConnectionHandler

from ingest.config import ZooKeeperConfig


class RestorableConnection(ConnectionHandler):
    """A kazoo connection that hides the client's newest zxid from servers.

    A server with older data refuses a client with a newer zxid. After a restore from a backup it would do so for ever.
    Users of this connection must expect a lagging server and wait with a sync.
    """

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        self.client.last_zxid = 0
        return super()._connect(host, hostip, port)


class RestorableClient(KazooClient):
    """A kazoo client over `RestorableConnection`."""

    def __init__(self, *, logger: logging.Logger, login: dict[str, str] | None = None, **settings: object) -> None:
        super().__init__(logger=logger, **settings)
        self._connection = RestorableConnection(self, self._conn_retry.copy(), logger=logger, sasl_options=login)


def login_of(config: ZooKeeperConfig) -> dict[str, str] | None:
    """Return kazoo's options of a login, if the configuration has one. Raise IngestError."""
    if config.zookeeper_username is None:
        return None
    return {"mechanism": "DIGEST-MD5", "username": config.zookeeper_username, "password": config.password}


def tls_of(config: ZooKeeperConfig) -> dict[str, object]:
    """Return kazoo's options of TLS."""
    return {
        "use_ssl": config.zookeeper_tls,
        "check_hostname": config.zookeeper_tls,
        "ca": config.zookeeper_ca_file,
        "certfile": config.zookeeper_certificate_file,
        "keyfile": config.zookeeper_key_file,
    }
