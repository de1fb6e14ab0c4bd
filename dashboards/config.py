"""The settings of `kontrast serve`.

Here belongs what a setting may be. Where settings come from is `cli/`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dashboards.errors import ServeError
from transport.address import Address

_LISTEN = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """What to read and where to answer; raises ServeError with a sentence for a setting that cannot be."""

    source: Address  # the outputs of the streaming job
    listen: str = "127.0.0.1:9642"  # HOST:PORT or [IPV6]:PORT; port 0 takes any that is free
    connect_timeout_seconds: float = 30.0  # for the first answer of the source
    partition_detail_limit: int = 500  # partitions that are named on /metrics, of each cluster

    def __post_init__(self) -> None:
        match = _LISTEN.fullmatch(self.listen)
        if match is None or int(match["port"]) > 65535:
            raise ServeError(f"listen is {self.listen!r}: expected HOST:PORT with a port from 0 to 65535")
        if not self.connect_timeout_seconds > 0:
            raise ServeError(f"connect_timeout_seconds is {self.connect_timeout_seconds}: expected more than 0")
        if self.partition_detail_limit < 0:
            raise ServeError(f"partition_detail_limit is {self.partition_detail_limit}: expected 0 or more")

    @property
    def host(self) -> str:
        """The host of `listen`, without brackets."""
        match = _LISTEN.fullmatch(self.listen)
        assert match is not None, self.listen
        return match["ipv6"] or match["host"]

    @property
    def port(self) -> int:
        """The port of `listen`."""
        return int(self.listen.rpartition(":")[2])
