"""A kazoo client that can connect to servers whose data was restored from a backup."""

from __future__ import annotations

import logging

from kazoo.client import KazooClient
from kazoo.protocol.connection import ConnectionHandler


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

    def __init__(self, *, logger: logging.Logger, **settings: object) -> None:
        super().__init__(logger=logger, **settings)
        self._connection = RestorableConnection(self, self._conn_retry.copy(), logger=logger)
