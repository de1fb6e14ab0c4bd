"""Lease for a restart, of which a cluster has at most one."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.ids import BrokerId

SHORTEST_LEASE_SECONDS: Final = 10
LONGEST_LEASE_SECONDS: Final = 3600  # the holder extends it, so that a lost holder blocks restarts for an hour at most


class Lease(msgspec.Struct, frozen=True):
    """Permission of one holder to restart one broker, until it expires at `until_ms` of the server's clock."""

    broker: BrokerId
    holder: str
    until_ms: int
    seconds_left: int
