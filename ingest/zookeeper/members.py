"""Servers of the watched ensemble, from the address that the operator gave and from /zookeeper/config."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ingest.zookeeper.four_letter_words import Server

_HOST: Final = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
_MEMBER: Final = re.compile(
    rf"server\.\d+=(?P<host>{_HOST}):\d+:\d+(?::(?P<role>\w+))?(?:\|[^;\s]*)?"
    rf"(?:;(?:(?P<client_host>{_HOST}):)?(?P<port>\d{{1,5}}))?"
)
_EVERY_ADDRESS: Final = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")  # noqa: S104 (a server's, not ours)


class Member(NamedTuple):
    """A line of /zookeeper/config. Without a port the server has its client port in its own file."""

    host: str
    port: int | None
    votes: bool


def named_servers(servers: str) -> list[Server]:
    """Return the servers of HOST:PORT[,HOST:PORT…]."""
    pairs = (address.rpartition(":") for address in servers.split(","))
    return [Server(host.strip("[]"), int(port)) for host, _, port in pairs]


def read_members(configuration: bytes | None) -> list[Member]:
    """Return the members in the content of /zookeeper/config, none without one, as before 3.5."""
    lines = (configuration or b"").decode("utf-8", "replace").splitlines()
    return [_member(found) for found in map(_MEMBER.fullmatch, lines) if found]


def _member(found: re.Match[str]) -> Member:
    client_host = (found["client_host"] or "").strip("[]")
    host = found["host"].strip("[]") if client_host in ("", *_EVERY_ADDRESS) else client_host
    return Member(host, None if found["port"] is None else int(found["port"]), found["role"] != "observer")


def servers_of(named: Sequence[Server], members: Iterable[Member]) -> list[Server]:
    """Return every server once, under the operator's name if there is one.

    A name with several addresses stands for servers that the configuration names.
    """
    members = list(members)
    places: dict[tuple[str, int], Server] = {}
    for server in named:
        addresses = _addresses(server.host)
        if len(addresses) == 1 or not members:
            places[addresses[0], server.port] = server
    for member in members:
        address = _addresses(member.host)[0]
        if member.port is not None:
            places.setdefault((address, member.port), Server(member.host, member.port))
        elif all(address != known for known, _ in places):
            places[address, named[0].port] = Server(member.host, named[0].port)
    return list(places.values())


def _addresses(host: str) -> list[str]:
    """Return the host's addresses, or its name if there are none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return [host]
    families = {family for family, *_ in found}
    one_family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
    return sorted({str(place[0]) for family, *_, place in found if family == one_family}) or [host]
