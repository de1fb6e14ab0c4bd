"""Sessions that own a broker's registration and are connected to no server, from the servers' answers to `dump`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timezone
from typing import Final, NamedTuple

from controller.contract.forwarder_status import LeftSession
from controller.contract.ids import BrokerId
from ingest.observed.paths import BROKERS

_EXPIRY: Final = re.compile(r"expire at \w+ (\w+ +\d+ \d+:\d+:\d+) \S+ (\d+):")
_SESSION: Final = re.compile(r"(0x[0-9a-f]{1,16})(?:\s+\d+ms|:)?")
_CONNECTED: Final = re.compile(r"sessionId: (0x[0-9a-f]{1,16})")
_ZONE_SECONDS: Final = 900  # time zones differ by quarters of an hour
_BROKER_ID_DIGITS: Final = 10


class Sessions(NamedTuple):
    """Answer to `dump`. Only the leader has expiries."""

    owners: Mapping[str, int]  # of the ephemeral znodes, by path
    expiries: Mapping[int, str]  # of the sessions, by the server's clock
    connected: frozenset[int] | None  # sessions with a connection, None from a server that does not list them


def read_dump(answer: str) -> Sessions:
    """Return the sessions in the answer to `dump`."""
    owners: dict[str, int] = {}
    expiries: dict[int, str] = {}
    session, expiry = 0, ""
    for line in map(str.strip, answer.splitlines()):
        if found := _EXPIRY.search(line):
            expiry = f"{found[1]} {found[2]}"
        elif found := _SESSION.fullmatch(line):
            session = int(found[1], 16)
            if expiry:
                expiries[session] = expiry
        elif line.startswith("/"):
            owners[line] = session
        elif not line.startswith("ip:"):
            expiry = ""  # a heading
    # The connection of the question itself has number 0.
    connected = frozenset(int(found, 16) for found in _CONNECTED.findall(answer))
    return Sessions(owners, expiries, connected or None)


def left_sessions(answers: Collection[Sessions], chroot: str, now_seconds: float) -> Iterator[LeftSession]:
    """Yield the owners of registrations without a connection, if every serving server lists its connections.

    `now_seconds` is the time since 1970. Expiries follow the leader's clock, so both clocks must agree.
    """
    connected: set[int] = set()
    for answer in answers:
        if answer.connected is None:
            return
        connected |= answer.connected
    parent = f"{chroot}{BROKERS}/"
    owners = {path: session for answer in answers for path, session in answer.owners.items()}
    expiries = {session: expiry for answer in answers for session, expiry in answer.expiries.items()}
    for path, session in sorted(owners.items()):
        name = path.removeprefix(parent)
        is_broker = path.startswith(parent) and name.isdecimal() and len(name) <= _BROKER_ID_DIGITS
        if is_broker and session not in connected:
            yield LeftSession(BrokerId(int(name)), _signed(session), _expires_ms(expiries.get(session), now_seconds))


def _signed(session: int) -> int:
    """Return the session as records have it."""
    return session - 2**64 if session >= 2**63 else session


def _expires_ms(expiry: str | None, now_seconds: float) -> int:
    """Return the milliseconds until this moment, -1 if unknown. The nearest time zone explains a larger distance."""
    if expiry is None:
        return -1
    try:
        moment = datetime.strptime(expiry, "%b %d %H:%M:%S %Y").replace(tzinfo=timezone.utc)
    except ValueError:
        return -1
    left_seconds = moment.timestamp() - now_seconds
    in_zone = left_seconds - _ZONE_SECONDS * round(left_seconds / _ZONE_SECONDS)
    return max(0, round(in_zone * 1000))
