"""Racks and host names of recorded brokers, which all run on loopback."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """A broker's host name and its rack, as its znode announces them."""

    host: str
    rack: str


def place_of(broker_id: int, racks: int) -> Place:
    """Return the place of the broker. Brokers go round the racks."""
    return Place(f"kafka-{broker_id}.example", f"eu-{(broker_id - 1) % racks + 1}")


def write_hosts(file: Path, places: Iterable[Place]) -> None:
    """Write a file by which Java resolves the host names to loopback."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *(place.host for place in places))))
