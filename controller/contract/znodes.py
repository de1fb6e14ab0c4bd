"""Content of znodes, as Kafka's `kafka.zk` classes read it (`ZkData`, 0.8 to 3.9).

A strict decoder reads content as Kafka writes it. Content that it rejects is read again with Kafka's tolerance, so that
both readers together accept and reject as Kafka 3.9 does (`tests/conformance/test_znode_readers.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeGuard, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from controller.contract import kafka_json
from controller.contract.decoding import UNDECODABLE, BareJsonDecoder
from controller.contract.flaw import Flaw as Flaw
from controller.contract.ids import INT32, BrokerId, ControllerEpoch, LeaderEpoch, PartitionId
from controller.contract.kafka_json import object_of
from controller.contract.records import Int64

Int32 = Annotated[int, INT32]
_BrokerId = Annotated[BrokerId, INT32]
_PartitionId = Annotated[PartitionId, msgspec.Meta(ge=0, lt=2**31)]
Brokers = tuple[_BrokerId, ...]

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_BETWEEN_ENDPOINTS: Final = re.compile(r"\s*,\s*", re.ASCII)
_TRIMMED: Final = "".join(map(chr, range(33)))  # by Java's String.trim
_PROTOCOLS: Final = frozenset(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))


class ZnodeError(ValueError):
    """Content of a znode that Kafka cannot read. The text gives the details of the flaw."""

    def __init__(self, text: str, flaw: Flaw = Flaw.WRONG_TYPE) -> None:
        super().__init__(text)
        self.flaw = flaw


class _WrongVersionError(ValueError):
    """A version that Kafka does not read."""

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version}")


class ZnodeContent(msgspec.Struct, frozen=True):
    """Fields of a znode that Kafka reads."""

    @staticmethod
    def read_from(value: object) -> object:
        """Return the fields in a JSON value that the strict decoder rejected, as Kafka takes them."""
        return value


class ControllerZnode(ZnodeContent, frozen=True):
    """/controller, v1 and v2. Kafka does not look at its version."""

    brokerid: _BrokerId
    version: Int32 = 1
    kraftControllerEpoch: Int32 = -1  # noqa: N815 (Kafka's key)

    @staticmethod
    def read_from(value: object) -> object:
        """Leave out a version that is no number."""
        return _without_odd_version(value)


class BrokerZnode(ZnodeContent, frozen=True):
    """/brokers/ids/N, v1 to v5 and later."""

    version: Int32
    jmx_port: Int32
    host: str | None = None
    port: Int32 | UnsetType = UNSET
    endpoints: tuple[str, ...] | UnsetType = UNSET
    listener_security_protocol_map: dict[str, str] | UnsetType = UNSET
    rack: str | None = None
    features: dict[str, dict[str, Int32]] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for content that Kafka refuses although its types are right."""
        if self.version < 1:
            raise _WrongVersionError(self.version)
        if self.version == 1:
            if self.host is None or self.port is UNSET:
                raise ValueError("no host or no port")
        elif self.endpoints is UNSET:
            raise ValueError("no endpoints")
        else:
            _check_listeners(self.endpoints, self.listener_security_protocol_map)
        for name, levels in (self.features or {}).items():
            if not 0 <= levels.get("min_version", -1) <= levels.get("max_version", -1):
                raise ValueError(f"feature {name} has no range of versions")

    def addresses(self) -> tuple[str, ...]:
        """Return the listeners of the broker, before v2 made from its host and port."""
        if self.version == 1:
            return (f"PLAINTEXT://{self.host}:{self.port}",)
        return () if self.endpoints is UNSET else _split_as_kafka_does(self.endpoints)

    @staticmethod
    def read_from(value: object) -> object:
        """Leave out the fields of the other versions."""
        if not isinstance(value, dict):
            return value
        unread = ("endpoints", "listener_security_protocol_map") if value.get("version") == 1 else ("host", "port")
        return {key: field for key, field in value.items() if key not in unread}


def _check_listeners(endpoints: Iterable[str], protocols: Mapping[str, str] | UnsetType) -> None:
    """Raise ValueError for listeners that Kafka refuses (`CoreUtils.listenerListToEndPoints`, 3.9)."""
    protocol_of = {each: each for each in _PROTOCOLS} if protocols is UNSET else protocols
    if not _PROTOCOLS.issuperset(protocol_of.values()):
        raise ValueError("an unknown security protocol")
    unnamed = {name.upper() for name in protocol_of}
    for endpoint in _split_as_kafka_does(endpoints):
        match = _ENDPOINT.fullmatch(endpoint)
        if match is None or match[1].upper() not in unnamed:
            raise ValueError(f"{endpoint[:100]!r} is no endpoint, or its listener has no protocol or is there twice")
        unnamed.remove(match[1].upper())


def _split_as_kafka_does(endpoints: Iterable[str]) -> tuple[str, ...]:
    """Return the endpoints as Kafka reads them, after it joined the list by commas and split the text at commas."""
    return tuple(filter(None, _BETWEEN_ENDPOINTS.split(",".join(endpoints).strip(_TRIMMED))))


class TopicZnode(ZnodeContent, frozen=True):
    """/brokers/topics/T, v1 to v3. Kafka does not look at its version."""

    partitions: dict[_PartitionId, Brokers] = {}
    adding_replicas: dict[_PartitionId, Brokers] = {}
    removing_replicas: dict[_PartitionId, Brokers] = {}
    topic_id: str | UnsetType = UNSET
    version: Int32 = 1

    def __post_init__(self) -> None:
        """Raise ValueError for a topic id that is no UUID."""
        if self.topic_id is not UNSET and _TOPIC_ID.fullmatch(self.topic_id) is None:
            raise ValueError(f"topic_id {self.topic_id[:40]!r} is no UUID")

    @staticmethod
    def read_from(value: object) -> object:
        """Take partition numbers as Java does, and reassignments only of partitions that exist."""
        value = _without_odd_version(value)
        if not isinstance(value, dict):
            return value
        numbers = {text: _partition_number(text) for text in object_of(value.get("partitions", {}))}
        maps: dict[str, dict[int, Brokers]] = {}
        for field in ("partitions", "adding_replicas", "removing_replicas"):
            given = object_of(value.get(field, {}))
            lists = {text: msgspec.convert(given.get(text, ()), Brokers) for text in numbers}
            maps[field] = {numbers[text]: replicas for text, replicas in lists.items()}
        return value | maps


class StateZnode(ZnodeContent, frozen=True, gc=False):
    """/brokers/topics/T/partitions/P/state."""

    leader: _BrokerId
    leader_epoch: Annotated[LeaderEpoch, INT32]
    controller_epoch: Annotated[ControllerEpoch, INT32]
    isr: Brokers
    leader_recovery_state: Literal[0, 1] = 0

    @staticmethod
    def read_from(value: object) -> object:
        """Take only the lowest byte of the recovery state, as Kafka does."""
        recovery = value.get("leader_recovery_state") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not _is_int32(recovery):
            return value
        return {**value, "leader_recovery_state": recovery & 0xFF}


class ConfigZnode(ZnodeContent, frozen=True):
    """/config/topics/T and /config/brokers/N."""

    config: dict[str, str] = {}

    @staticmethod
    def read_from(value: object) -> object:
        """Take a config that is no object for no settings."""
        config = value.get("config") if isinstance(value, dict) else None
        return {"config": config} if isinstance(config, dict) else {}

    def integer(self, key: str, *, at_least: int) -> int | None:
        """Return a setting of Kafka's type INT, None if absent, not of that type, or below Kafka's bound."""
        text = self.config.get(key, "").strip()
        number = int(text) if _INTEGER.fullmatch(text) else None
        return number if number is not None and at_least <= number < 2**31 else None

    def boolean(self, key: str) -> bool | None:
        """Return a setting of Kafka's type BOOLEAN as Kafka reads it, None if absent or neither true nor false."""
        return {"true": True, "false": False}.get(self.config.get(key, "").strip().lower())


class ClusterIdZnode(ZnodeContent, frozen=True):
    """/cluster/id, from 0.10.1 on."""

    id: Annotated[str, msgspec.Meta(max_length=100)]  # 22 characters, if Kafka wrote it


class FeatureZnode(ZnodeContent, frozen=True):
    """/feature, v1 and v2, from 2.7 on."""

    version: Int32
    status: Literal[0, 1]  # disabled, enabled
    features: dict[str, dict[str, Int32]]

    def __post_init__(self) -> None:
        """Raise ValueError for content that Kafka refuses although its types are right."""
        if self.version not in (1, 2):
            raise _WrongVersionError(self.version)
        for name, levels in self.features.items():
            lowest = levels.get("min_version_level", 0) if self.version == 1 else 1
            if not 1 <= lowest <= levels.get("max_version_level", 0):
                raise ValueError(f"feature {name[:40]!r} has no range of versions")


class MigrationZnode(ZnodeContent, frozen=True):
    """/migration, from 3.4 on. Kafka reads only version 0."""

    version: Int64
    kraft_metadata_offset: Int64
    kraft_controller_id: _BrokerId
    kraft_metadata_epoch: Int32
    kraft_controller_epoch: Int32

    def __post_init__(self) -> None:
        """Raise ValueError for any version but 0."""
        if self.version != 0:
            raise _WrongVersionError(self.version)


class LogDirEventZnode(ZnodeContent, frozen=True):
    """/log_dir_event_notification/log_dir_event_N."""

    broker: _BrokerId


class NamedPartition(msgspec.Struct, frozen=True):
    """Partition in a request or a notification."""

    topic: str
    partition: Annotated[PartitionId, INT32]


class PartitionsZnode(ZnodeContent, frozen=True):
    """/admin/preferred_replica_election and isr_change_N."""

    partitions: tuple[NamedPartition, ...]


class ReassignmentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partition with its target replicas in a request."""

    topic: str
    partition: Annotated[PartitionId, INT32]
    replicas: Brokers


class ReassignmentZnode(ZnodeContent, frozen=True, forbid_unknown_fields=True):
    """/admin/reassign_partitions. Kafka refuses further fields (Jackson's data binding, from 2.0 on)."""

    partitions: tuple[ReassignmentEntry, ...]
    version: Int32 = 1

    @staticmethod
    def read_from(value: object) -> object:
        """Take texts and fractions for numbers."""
        fields = {"version": 1, **object_of(value)}
        entries = fields.get("partitions")
        if not isinstance(entries, list):
            return value
        entries = [
            {**object_of(entry), "topic": _text(entry.get("topic")), "partition": _coerced(entry.get("partition"))}
            for entry in entries
        ]
        return {**fields, "version": _coerced(fields["version"]), "partitions": entries}


_Content = TypeVar("_Content", bound=msgspec.Struct)

# One decoder for each form, because making a decoder costs more than decoding.
decoder_of = lru_cache(None)(BareJsonDecoder)


def decode(data: bytes | str | None, content: type[_Content]) -> _Content:
    """Return the content of a znode. Raise ZnodeError."""
    if data and (data.isascii() or isinstance(data, str) or _is_utf8(data)):
        try:
            decoded: _Content = decoder_of(content).decode(data)
            return decoded
        except UNDECODABLE:
            pass
    return _tolerantly(data.encode() if isinstance(data, str) else data, content)


def _is_utf8(data: bytes) -> bool:
    # The strict decoder does not look into texts that it skips.
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _tolerantly(data: bytes | None, content: type[_Content]) -> _Content:
    if data is None:
        raise ZnodeError("no data", Flaw.NULL)
    try:
        value = kafka_json.value_in(data)
        return msgspec.convert(content.read_from(value) if issubclass(content, ZnodeContent) else value, content)
    except kafka_json.NoContentError as error:
        raise ZnodeError("no data", Flaw.EMPTY) from error
    except kafka_json.NoJsonError as error:
        raise ZnodeError(f"not JSON: {error}", Flaw.UNPARSABLE) from error
    except ValueError as error:
        is_version = isinstance(error.__cause__, _WrongVersionError)
        raise ZnodeError(str(error), Flaw.WRONG_VERSION if is_version else Flaw.WRONG_TYPE) from error


def _is_int32(value: object) -> TypeGuard[int]:
    return type(value) is int and -(2**31) <= value < 2**31


def _without_odd_version(value: object) -> object:
    """Leave out a version that Kafka does not look at, if it is no number of 32 bits."""
    if not isinstance(value, dict):
        return value
    is_odd = "version" in value and not _is_int32(value["version"])
    return {key: field for key, field in value.items() if key != "version"} if is_odd else value


def _text(value: object) -> object:
    """Return a number or a word as text, as Jackson's data binding does."""
    if isinstance(value, kafka_json.Fraction):
        return value.text
    return str(value).lower() if isinstance(value, int) else value


def _coerced(value: object) -> object:
    """Return a text or a fraction as an integer, as Jackson's data binding does."""
    if isinstance(value, str):
        trimmed = value.strip(_TRIMMED)
        number = 0 if trimmed in ("", "null") else kafka_json.integer_in(trimmed)
        return value if number is None else number
    if isinstance(value, float):
        return int(value) if abs(value) < 2**31 else value
    return 0 if value is None else value


def _partition_number(text: str) -> int:
    if (number := kafka_json.integer_in(text)) is None:
        raise ValueError(f"{text[:40]!r} is no partition")
    return number


def decode_config(data: bytes | None) -> ConfigZnode:
    """Return the settings in a /config znode, none if it has no data, as in Kafka. Raise ZnodeError."""
    try:
        return decode(data, ConfigZnode) if data else ConfigZnode()
    except ZnodeError as error:
        if error.flaw not in (Flaw.UNPARSABLE, Flaw.EMPTY):
            raise
        return ConfigZnode()


def decode_epoch(data: bytes | None) -> ControllerEpoch:
    """Return the epoch in /controller_epoch, a decimal text without spaces or line ends. Raise ZnodeError."""
    if data is None:
        raise ZnodeError("no data", Flaw.NULL)
    text = data.decode("utf-8", "replace")
    epoch = kafka_json.integer_in(text)
    if epoch is None:
        raise ZnodeError(f"{text[:40]!r} is no number", Flaw.NO_DIGITS if text else Flaw.EMPTY)
    return ControllerEpoch(epoch)


def decode_lasting_epoch(data: bytes | None) -> ControllerEpoch:
    """Return an epoch in /controller_epoch whose successor brokers accept. Raise ZnodeError for any other."""
    if 0 <= (epoch := decode_epoch(data)) < 2**31 - 1:
        return epoch
    raise ZnodeError(f"{epoch} is {Flaw.NO_EPOCH.value}", Flaw.NO_EPOCH)
