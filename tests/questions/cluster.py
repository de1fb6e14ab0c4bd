"""A cluster's znodes in short notation, and the picture from one read of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping

from controller.contract.ids import Zxid
from controller.restore.stored_context import new_context
from controller.rules.releases import profile_of
from ingest.complete_read import CompleteRead
from ingest.observed.observations import Value
from questions.gathering import Gathering
from questions.picture import Picture

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def broker(number: int, rack: str | None = None) -> dict[str, object]:
    """Return a registered broker."""
    content = {"version": 5, "jmx_port": -1, "endpoints": [f"PLAINTEXT://b{number}:9092"]} | (
        {"rack": rack} if rack else {}
    )
    return {f"/brokers/ids/{number}": content}


def brokers(*numbers: int) -> dict[str, object]:
    """Return registered brokers without a rack."""
    return {path: content for number in numbers for path, content in broker(number).items()}


def controller(number: int, epoch: int = 7) -> dict[str, object]:
    """Return an active controller, if its broker is registered."""
    return {"/controller": {"version": 2, "brokerid": number}, "/controller_epoch": epoch}


def topic(name: str, *replicas: list[int], topic_id: str | None = None, **fields: object) -> dict[str, object]:
    """Return a topic whose partitions are led by their first replica and in sync."""
    assignment = {str(number): hosts for number, hosts in enumerate(replicas)}
    content = {"version": 3, "partitions": assignment, "topic_id": topic_id or id_of(name), **fields}
    found: dict[str, object] = {f"/brokers/topics/{name}": content}
    for number, hosts in enumerate(replicas):
        found |= state(name, number, hosts[0], hosts)
    return found


def id_of(name: str) -> str:
    """Return a topic's id, of 22 characters of base64 whatever the name is."""
    return f"id-of-{re.sub('[^A-Za-z0-9]', '-', name)[:16]:A<16}"


def state(name: str, number: int, leader: int, isr: list[int], *, epoch: int = 7) -> dict[str, object]:
    """Return a partition's state."""
    content = {"version": 1, "controller_epoch": epoch, "leader": leader, "leader_epoch": 3, "isr": isr}
    return {f"/brokers/topics/{name}/partitions/{number}/state": content}


def settings(name: str, **config: str) -> dict[str, object]:
    """Return a topic's settings. Underscores stand for dots."""
    return {f"/config/topics/{name}": {"version": 1, "config": {k.replace("_", "."): v for k, v in config.items()}}}


def owner(path: str, content: object) -> int:
    """Return the session that owns an ephemeral znode. Each broker has one."""
    if path == "/controller" and isinstance(content, dict):
        return 1 + int(content["brokerid"])
    is_persistent = isinstance(content, dict) and content.get("persistent")
    return 1 + int(path.rpartition("/")[2]) if path.startswith("/brokers/ids/") and not is_persistent else 0


def look(znodes: Mapping[str, object], ages_ms: Mapping[str, int] | None = None, release: str = "3.6") -> Picture:
    """Return the picture from one read of these znodes. Each was written an hour ago, unless `ages_ms` has its age."""
    now_ms = time.time_ns() // 1_000_000
    values = {}
    for at, (path, content) in enumerate(znodes.items(), start=100):
        written_ms = now_ms - (ages_ms or {}).get(path, HOUR_MS)
        stat = (Zxid(at), Zxid(at), 0, owner(path, content), written_ms, written_ms)
        raw = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        values[path] = Value(raw, *stat)
    read = CompleteRead(values)
    major, minor = map(int, release.split("."))
    gathering = Gathering(new_context("shop", profile=profile_of((major, minor)), chunk_count=8))
    return gathering.look(read.records("shop"), read.written_ms)
