"""Our decoder's answer to a znode's content, in the words of Kafka's answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from controller.contract.znodes import (
    BrokerZnode,
    ClusterIdZnode,
    ControllerZnode,
    FeatureZnode,
    Flaw,
    LogDirEventZnode,
    MigrationZnode,
    PartitionsZnode,
    ReassignmentZnode,
    StateZnode,
    TopicZnode,
    ZnodeError,
    decode,
    decode_config,
    decode_epoch,
)

NOTHING, REFUSED = "nothing", "refused"
_HALF_CHARACTER: Final = re.compile(
    r"\\ud[89ab]..(?!\\ud[c-f]..)|(?<!\\ud[89ab].{2})\\ud[c-f]..", re.IGNORECASE
)  # an escape of UTF-16 without its other half

# The values with which Kafka goes on if the content is no JSON. Other readers throw.
WITHOUT_JSON: Final[Mapping[str, Any]] = {"topic": [{}, None], "config": {}, "isr": [], "preferred": []}
_THROW_WITHOUT_JSON: Final = frozenset(("epoch", "broker", "cluster", "feature", "migration"))


def _controller(data: bytes | None) -> Any:
    znode = decode(data, ControllerZnode)
    return [znode.brokerid, znode.kraftControllerEpoch]


def _broker(data: bytes | None) -> Any:
    znode = decode(data, BrokerZnode)
    endpoints = []
    for address in znode.addresses():
        listener, _, place = address.strip().partition("://")
        host, _, port = place.rpartition(":")
        if place:
            read = host if znode.version == 1 else host.strip("[]") or None
            endpoints.append([listener.upper(), read, int(port)])
    return [znode.version, endpoints, znode.rack]


def _topic(data: bytes | None) -> Any:
    znode = decode(data, TopicZnode)
    assignment = {
        f"t-{number}": [
            list(each.get(number, ())) for each in (znode.partitions, znode.adding_replicas, znode.removing_replicas)
        ]
        for number in znode.partitions
    }
    return [assignment, znode.topic_id.rstrip("=") if znode.topic_id else None]


def _state(data: bytes | None) -> Any:
    znode = decode(data, StateZnode)
    return [znode.leader, znode.leader_epoch, list(znode.isr), znode.controller_epoch, znode.leader_recovery_state]


def _named(data: bytes | None) -> Any:
    return sorted({f"{each.topic}-{each.partition}" for each in decode(data, PartitionsZnode).partitions})


def _reassigned(data: bytes | None) -> Any:
    return {
        f"{each.topic}-{each.partition}": list(each.replicas) for each in decode(data, ReassignmentZnode).partitions
    }


def _feature(data: bytes | None) -> Any:
    znode = decode(data, FeatureZnode)
    return [znode.version, znode.status]


def _migration(data: bytes | None) -> Any:
    znode = decode(data, MigrationZnode)
    epochs = (znode.kraft_controller_epoch, znode.kraft_metadata_offset, znode.kraft_metadata_epoch)
    return [znode.kraft_controller_id, *epochs]


READERS: Final[Mapping[str, Callable[[bytes | None], Any]]] = {
    "controller": _controller,
    "epoch": decode_epoch,
    "broker": _broker,
    "topic": _topic,
    "state": _state,
    "config": lambda data: decode_config(data).config,
    "reassign": _reassigned,
    "preferred": _named,
    "isr": _named,
    "log_dir": lambda data: decode(data, LogDirEventZnode).broker,
    "cluster": lambda data: decode(data, ClusterIdZnode).id,
    "feature": _feature,
    "migration": _migration,
}


def ours(kind: str, data: bytes | None) -> Any:
    """Return our reading of the content, with `nothing` and `refused` as Kafka's reader of 3.9 answers."""
    try:
        return READERS[kind](data)
    except ZnodeError as error:
        without_json = error.flaw is Flaw.UNPARSABLE and kind not in _THROW_WITHOUT_JSON
        if kind == "reassign":
            return NOTHING  # Kafka ignores what it cannot bind, and throws later at entries without replicas
        return WITHOUT_JSON.get(kind, NOTHING) if without_json else REFUSED


def kafkas(kind: str, answer: str) -> Any:
    """Return Kafka's reading, in the same form, with a question mark for each half of a character, as in ours."""
    if not answer.startswith("value "):
        return NOTHING if kind == "reassign" else answer.partition(" ")[0]
    value = json.loads(_HALF_CHARACTER.sub("?", answer.removeprefix("value ")))
    if kind == "controller" and value[1] is None:
        value[1] = -1
    if kind in ("isr", "preferred"):
        value.sort()
    if kind == "reassign" and not all(_is_usable(name, replicas) for name, replicas in value.items()):
        return NOTHING
    return value


# --- differences that stay


def is_known_difference(kind: str, data: bytes | None) -> bool:
    """Return whether Kafka reads this content by accident, or Kontrast cannot follow.

    Jackson takes a byte FF in a name for none. Kontrast has no partition below 0, which Kafka's tools refuse to make,
    and takes "-0" for 0. Jackson binds a request's field each time that it comes, and we the last time.
    """
    text = (data or b"").decode("latin-1")
    if "\xff" in text or (kind == "topic" and re.search(r'"-(0|1|2147483648)"', text)):
        return True
    names = re.findall(r'"(topic|partition|partitions|replicas|version)" *:', text)
    return kind == "reassign" and ("-0" in text or len(names) > len(set(names)))


def _is_usable(name: str, replicas: Any) -> bool:
    """Return whether the controller can use an entry. If not, it throws."""
    is_named = not name.startswith("null-")
    return (
        is_named and replicas is not None and all(type(each) is int and -(2**31) <= each < 2**31 for each in replicas)
    )
