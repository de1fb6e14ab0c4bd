"""Protection from requests for foreign host names, which a web page sends after it rebinds its name to this server."""

from __future__ import annotations

import logging
import re
import socket
import threading
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from transport.listening import ANY_HOST, Listening
from transport.printable import Complaints, printable

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
        threading.Thread(target=self._add_full_name, name="host name", daemon=True).start()

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

    def _add_full_name(self) -> None:
        self._names.add(socket.getfqdn().lower())


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
