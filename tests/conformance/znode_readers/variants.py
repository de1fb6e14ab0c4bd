"""Content of znodes, valid or broken as tools, editors and people break it. Equal seeds give equal content."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Json = Any

_STATE = {"controller_epoch": 7, "leader": 1, "version": 1, "leader_epoch": 3, "isr": [1, 2]}
_BROKER = {
    "listener_security_protocol_map": {"CLIENT": "PLAINTEXT", "SECURE": "SASL_SSL"},
    "endpoints": ["CLIENT://k1:9092", "SECURE://k1:9093"],
    "jmx_port": -1,
    "features": {},
    "host": "k1",
    "timestamp": "1700000000000",
    "port": 9092,
    "rack": "r1",
    "version": 5,
}
_V2 = {"jmx_port": -1, "host": "k1", "timestamp": "1", "port": 9092, "endpoints": ["PLAINTEXT://k1:9092"], "version": 2}
_TOPIC = {"version": 1, "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]}}
_MOVED = {"adding_replicas": {"0": [3]}, "removing_replicas": {"1": [2]}}
_NAMED = {"version": 1, "partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]}

SAMPLES: Final[Mapping[str, Sequence[Json]]] = {
    "controller": [
        {"version": 1, "brokerid": 1, "timestamp": "1700000000000"},
        {"version": 2, "brokerid": 1, "timestamp": "1700000000000", "kraftControllerEpoch": -1},
        {"version": 2, "brokerid": 3000, "timestamp": "1700000000000", "kraftControllerEpoch": 9},
    ],
    "epoch": ["1", "1000", "2147483647"],
    "broker": [
        _BROKER,
        {**_BROKER, "features": {"metadata.version": {"min_version": 1, "max_version": 15}}, "rack": None},
        {**{key: value for key, value in _BROKER.items() if key != "features"}, "version": 4},
        _V2,
        {"jmx_port": -1, "host": "k1", "timestamp": "1", "port": 9092, "version": 1},
    ],
    "topic": [
        _TOPIC,
        {**_TOPIC, "version": 2, **_MOVED},
        {**_TOPIC, "version": 3, **_MOVED, "topic_id": "jKTRaM_TSNqocJeQI2aYOQ"},
    ],
    "state": [_STATE, {**_STATE, "leader": -1, "isr": [2], "leader_recovery_state": 1}],
    "config": [
        {"version": 1, "config": {"min.insync.replicas": "2", "retention.ms": "100"}},
        {"version": 1, "config": {}},
    ],
    "reassign": [{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2]}]}],
    "preferred": [_NAMED],
    "isr": [_NAMED],
    "log_dir": [{"version": 1, "broker": 2, "event": 1}],
    "cluster": [{"version": "1", "id": "AAAAAAAAAAAAAAAAAAAAAA"}],
    "feature": [
        {"version": 1, "status": 1, "features": {}},
        {"version": 2, "status": 1, "features": {"metadata.version": {"max_version_level": 7}}},
        {"version": 1, "status": 0, "features": {"f": {"min_version_level": 1, "max_version_level": 2}}},
    ],
    "migration": [
        {
            "version": 0,
            "kraft_metadata_offset": 303,
            "kraft_controller_id": 3001,
            "kraft_metadata_epoch": 3,
            "kraft_controller_epoch": 3,
        }
    ],
}
"""Content as Kafka writes it, by kind of znode."""

_LITERALS = (
    *("0", "1", "-1", "-0", "01", "+1", "1.0", "1.5", "1e0", "1E2", "1e400", ".5", "1.", "0x1", "1_0", "1L"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *("1" * 40, "true", "false", "null", "NaN", "Infinity", "-Infinity", "None", "undefined", "'1'", '""', '"1"'),
    *('"x"', '"1.0"', '" 1"', '"null"', '"true"', '"PLAINTEXT://h:1"', '"é"', r'"\u0041"', r'"\ud800"', r'"\x"'),
    *('"\t"', '"\\u0000"', "[]", "[1]", '["1"]', "[null]", "[1,]", "[[1]]", "{}", '{"0":[1]}', '{"0":1}', '{"a":"b"}'),
    *('{"a":null}', '{"a":{"b":1}}', "[" * 60 + "]" * 60, "[1 2]", "[1.0]", "[2147483648]", "[-1]", "[1,1]", ""),
)
_KEYS = (
    *("0", "00", "01", "+1", "-1", "-0", "1 ", " 1", "", "x", "1.0", "1_0", "\u0661", "\uff11", "2147483647"),
    *("2147483648", "99999999999", "partition", "version", "Version", "0x1", "1e0", "\ud7ff", "\U0001f600"),
)
_AROUND = (
    *(b" ", b"\n", b"\r\n", b"\t", b"\x00", b"\xef\xbb\xbf", b"\x0b", b"\xc2\xa0", b"x", b"}", b"]", b",", b"{}", b"1"),
    *(b"//", b"/* a */", b"# a", b'"', b"null", b" garbage", b"\xff", b"\xfe\xff", b"\x1a"),
)
_TEXTS = (
    *("", " ", "\n", "0", "-1", "+1", "01", "1 ", " 1", "1\n", "\n1", "1\r\n", "1.0", "1e3", "0x10", "1_000", "1,000"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "\u0661\u0662", "\uff11", "\u00b2", "--1", "+", "-"),
    *('"1"', "null", "true", "{}", "1L", "1\x00", "\ufeff1", "00000000000001", "+2147483647", "1" * 40),
)


def variants(kind: str, seed: int, count: int) -> list[bytes | None]:
    """Return different contents of a znode of this kind, with those that Kafka writes, null and empty."""
    drawn = random.Random(f"{kind} {seed}")
    found: dict[bytes | None, None] = dict.fromkeys(
        [None, b"", *map(_bytes, SAMPLES[kind]), b" ", b"{}", b"[]", b"null", b"x"]
    )
    makes = _changed_texts(kind, drawn) if kind == "epoch" else _changed(kind, drawn)
    for content in makes:
        found[content] = None
        if len(found) >= count:
            break
    return list(found)


def _bytes(sample: Json) -> bytes:
    return sample.encode() if isinstance(sample, str) else json.dumps(sample, separators=(",", ":")).encode()


def _changed_texts(kind: str, drawn: random.Random) -> Iterator[bytes]:
    yield from (text.encode() for text in _TEXTS)
    while True:
        text = drawn.choice((*SAMPLES[kind], str(drawn.randrange(-(2**33), 2**33)), str(drawn.randrange(2**31))))
        yield drawn.choice((_around, _damaged, lambda content, _: content))(str(text).encode(), drawn)


def _changed(kind: str, drawn: random.Random) -> Iterator[bytes]:
    while True:
        text = _Writer(drawn).text(drawn.choice(SAMPLES[kind]))
        content = text.encode("utf-8", "surrogatepass")
        chance = drawn.random()
        if chance < 0.12:
            content = _around(content, drawn)
        elif chance < 0.22:
            content = _damaged(content, drawn)
        elif chance < 0.26:
            content = text.encode(
                drawn.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig")), "replace"
            )
        yield content


def _around(content: bytes, drawn: random.Random) -> bytes:
    extra = b"".join(drawn.choices(_AROUND, k=drawn.choice((1, 1, 2))))
    return drawn.choice((content + extra, content + extra, extra + content))


def _damaged(content: bytes, drawn: random.Random) -> bytes:
    at = drawn.randrange(len(content) + 1)
    return drawn.choice(
        (
            content[:at],
            content[:at] + content[at + 1 :],
            content[:at] + bytes([drawn.randrange(256)]) + content[at + 1 :],
            content[:at] + bytes([drawn.randrange(256)]) + content[at:],
            content[:at] + drawn.choice(_AROUND) + content[at:],
        )
    )


class _Writer:
    """Writes a JSON value with about one change in it."""

    def __init__(self, drawn: random.Random) -> None:
        self._drawn = drawn
        self._chance = drawn.choice((0.0, 0.01, 0.02, 0.04, 0.08))

    def text(self, value: Json) -> str:
        """Return the value's text, perhaps with another value, key or space in it."""
        if self._happens():
            return self._drawn.choice(_LITERALS)
        if isinstance(value, dict):
            return "{" + ",".join(self._members(value)) + "}"
        if isinstance(value, list):
            items = [self.text(item) for item in value]
            if self._happens():
                items.append(self._drawn.choice(_LITERALS))
            return "[" + ",".join(items) + "]"
        return json.dumps(value)

    def _members(self, value: Mapping[str, Json]) -> Iterator[str]:
        for key, member in value.items():
            written = f"{self._key(key)}:{self.text(member)}"
            if self._happens():
                continue  # the key is missing
            yield written
            if self._happens():
                yield f"{json.dumps(key)}:{self._drawn.choice(_LITERALS)}"  # the key comes twice
        if self._happens():
            yield f"{json.dumps(self._drawn.choice(_KEYS))}:{self._drawn.choice(_LITERALS)}"

    def _key(self, key: str) -> str:
        if not self._happens():
            return json.dumps(key)
        return json.dumps(self._drawn.choice((*_KEYS, key.upper(), f"{key} ")))

    def _happens(self) -> bool:
        return self._drawn.random() < self._chance
