"""Define Kontrast's Kafka topics, and the commands that create or mend them if Kontrast may not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from transport.address import KafkaAddress
from transport.segments import JournalError

PARTITIONS = 1  # the order of rows carries meaning

_CLEANUP_POLICY: Final = "cleanup.policy"
_SEGMENT_BYTES: Final = "segment.bytes"
_BOUNDS: Final = ("retention.ms", "retention.bytes")
_UNBOUNDED: Final = "-1"
SETTINGS: Final = (_CLEANUP_POLICY, *_BOUNDS, _SEGMENT_BYTES)  # the settings that Kontrast checks
# Brokers never compact the newest segment, so a new reader reads all replaced rows in it. By default a segment has
# 1 GiB. 200 clusters with a heartbeat a second fill 8 MiB of compressed rows in two minutes.
_SMALL_SEGMENTS: Final[Mapping[str, str]] = {_SEGMENT_BYTES: str(8 << 20), "min.cleanable.dirty.ratio": "0.1"}


@dataclass(frozen=True, slots=True)
class RequiredTopic:
    """A required topic.

    If it is compacted, the newest message of each key counts. With unique keys, compaction drops no message. If only
    keys order it, any number of partitions works. The brokers' default retention applies.
    """

    name: str
    compacted: bool = False
    unique_keys: bool = False
    ordered_by_key: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings that the topic is created with or must get, whatever the brokers' defaults are."""
        if self.compacted:
            return {_CLEANUP_POLICY: "compact", **_SMALL_SEGMENTS}
        return {_CLEANUP_POLICY: "delete"}


@dataclass(frozen=True, slots=True)
class ExistingTopic:
    """A topic as brokers report it, with the visible `SETTINGS`. It has 0 partitions while brokers do not know them."""

    topic: RequiredTopic
    partitions: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unfit:
    """Defects of existing topics, with one sentence for each kind."""

    refused: str  # rows would be lost or come in another order
    doubted: str


@dataclass(frozen=True, slots=True)
class _Fault:
    has: str
    means: str
    command: str
    is_refused: bool = True


def stream_topics(address: KafkaAddress) -> tuple[RequiredTopic, ...]:
    """Return the topic of a stream, and the topic beside it in which complete reads are requested."""
    return RequiredTopic(address.topic, ordered_by_key=True), RequiredTopic(request_topic(address))


def output_topic(address: KafkaAddress, output: str) -> str:
    """Return the topic of an output. The address is the common prefix."""
    return f"{address.topic}.{output}"


def refusal(address: KafkaAddress, topics: Sequence[RequiredTopic], reason: str) -> str:
    """Return one sentence for missing topics that the brokers do not let Kontrast create."""
    names, one = ", ".join(topic.name for topic in topics), len(topics) == 1
    return (
        f"Kafka at {address.bootstrap_servers} lacks the {'topic' if one else 'topics'} {names} and refuses to create "
        f"{'it' if one else 'them'} ({reason.strip().rstrip('.')}). Run "
        f"{creation_command(address.bootstrap_servers, topics)}"
    )


def creation_command(bootstrap_servers: str, topics: Iterable[RequiredTopic]) -> str:
    """Return a line for a shell that makes the topics with Kafka's own tool."""
    by_settings: dict[str, list[str]] = {}
    for topic in topics:
        settings = "".join(f" --config {name}={value}" for name, value in topic.settings.items())
        by_settings.setdefault(settings, []).append(topic.name)
    return "; ".join(
        _for_each(
            names,
            f"kafka-topics.sh --bootstrap-server {bootstrap_servers} --create --topic $topic "
            f"--partitions {PARTITIONS}{settings}",
        )
        for settings, names in by_settings.items()
    )


def unfit(address: KafkaAddress, existing: Iterable[ExistingTopic]) -> Unfit:
    """Find the defects of existing topics, with the commands that mend them."""
    by_fault: dict[_Fault, list[str]] = {}
    for found in existing:
        for fault in _faults(address.bootstrap_servers, found):
            by_fault.setdefault(fault, []).append(found.topic.name)
    sentences: dict[bool, list[str]] = {True: [], False: []}
    for fault, names in by_fault.items():
        sentences[fault.is_refused].append(_sentence(fault, names))
    where = f"Kafka at {address.bootstrap_servers}: "
    refused, doubted = (where + "; ".join(sentences[kind]) if sentences[kind] else "" for kind in (True, False))
    return Unfit(refused, doubted)


def _faults(servers: str, found: ExistingTopic) -> Iterator[_Fault]:
    topic, policy = found.topic, found.settings.get(_CLEANUP_POLICY, "")
    if found.partitions > PARTITIONS and not topic.ordered_by_key:
        yield _Fault(
            f"{found.partitions} partitions in place of {PARTITIONS}",
            "readers would not get messages in the order in which they were written",
            f"kafka-topics.sh --bootstrap-server {servers} --delete --topic $topic",
        )
    alter = (
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name $topic "
        f"--add-config {','.join(f'{name}={value}' for name, value in topic.settings.items())}"
    )
    if topic.compacted and "delete" in policy and not all(found.settings.get(bound) == _UNBOUNDED for bound in _BOUNDS):
        yield _Fault(f"{_CLEANUP_POLICY}={policy}", "rows that still hold would be dropped when they are old", alter)
    elif topic.unique_keys and policy == "compact":
        yield _Fault(f"{_CLEANUP_POLICY}={policy}", "and grows without bound", alter, is_refused=False)
    elif topic.compacted and int(found.settings.get(_SEGMENT_BYTES, 0)) > int(_SMALL_SEGMENTS[_SEGMENT_BYTES]):
        has = f"{_SEGMENT_BYTES}={found.settings[_SEGMENT_BYTES]}"
        yield _Fault(has, "so a start reads many rows that were replaced", alter, is_refused=False)
    elif not topic.compacted and not topic.unique_keys and "compact" in policy:
        yield _Fault(f"{_CLEANUP_POLICY}={policy}", "all messages but the newest of each key would be lost", alter)


def _sentence(fault: _Fault, names: Sequence[str]) -> str:
    topics = f"topic {names[0]} has" if len(names) == 1 else f"topics {', '.join(names)} have"
    return f"{topics} {fault.has}, {fault.means}. Run {_for_each(names, fault.command)}"


def _for_each(names: Sequence[str], command: str) -> str:
    if len(names) == 1:
        return command.replace("$topic", names[0])
    return f"for topic in {' '.join(names)}; do {command}; done"


_FILE = "snapshot-wanted"
_TOPIC_SUFFIX = ".snapshot-wanted"


def request_complete_read(directory: Path) -> None:
    """Ask the writer of a journal for a complete read. Raise JournalError."""
    try:
        (directory / _FILE).touch()
    except OSError as error:
        raise JournalError(f"journal {directory}: a complete read cannot be requested: {error.strerror}") from error


def complete_read_requested_ns(directory: Path) -> int:
    """Return when a complete read was requested last, in nanoseconds since 1970, or 0 for never."""
    try:
        return (directory / _FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def request_topic(address: KafkaAddress) -> str:
    """Return the topic in which any message asks the writers of a stream for a complete read."""
    return address.topic + _TOPIC_SUFFIX
