"""The settings of the Spark job, checked before anything is started."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from controller.contract.ids import BrokerId
from controller.contract.job_row import JobRow
from controller.contract.outputs import OUTPUTS
from controller.restore import CHUNK_COUNT
from controller.rules.releases import Profile, profile_of, read_release
from controller.rules.settings import GivenSettings, read_settings
from controller.rules.timing import CLEAN_STOP_MS
from controller.rules.topic_ranks import TopicRanks
from streaming.errors import StreamError
from transport.address import Address, KafkaAddress
from transport.disk import RETAIN_BYTES

_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_VERSION_2 = "0::"


def usable_cores(own_group: Path = _OWN_GROUP, groups: Path = _GROUPS) -> int:
    """Return the number of cores that this process may use, by its affinity and its control groups' quotas, at least 1.

    Half a core counts as one, as for Java. Files that cannot be read limit nothing.
    """
    return max(1, min([len(os.sched_getaffinity(0)), *_quotas(own_group, groups)]))


def _quotas(own_group: Path, groups: Path) -> Iterator[int]:
    own = ""
    with suppress(OSError):
        lines = own_group.read_text().splitlines()
        own = next((line.removeprefix(_VERSION_2) for line in lines if line.startswith(_VERSION_2)), "")
    path = groups / own.lstrip("/")
    for directory in (path, *(each for each in path.parents if each.is_relative_to(groups))):
        with suppress(OSError, ValueError):  # "max" is no number, and means that there is no quota
            quota, period = (directory / "cpu.max").read_text().split()
            yield ceil(int(quota) / int(period))
    with suppress(OSError, ValueError):
        first = groups / "cpu"  # version 1, of a container
        quota, period = ((first / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if int(quota) > 0:
            yield ceil(int(quota) / int(period))


_LOCAL_MASTER = re.compile(r"local\[(\*|[1-9][0-9]*)\]")
_JVM_MEMORY = re.compile(r"[1-9][0-9]*[mg]")
_LOCAL = "file"
_URI = re.compile(rf"[a-z][a-z0-9+.-]*://|{_LOCAL}:")
_WITH_RETENTION = (*OUTPUTS, JobRow.output)
_NONE = "none"
_SMALLEST = {
    "chunk_count": 1,
    "shuffle_partitions": 1,
    "max_batch_bytes": 1024,
    "max_batch_records": 1,
}


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of an output's journal in bytes and seconds. None is unlimited."""

    bytes: int | None = RETAIN_BYTES
    seconds: int | None = None


def read_retention(texts: Mapping[str, str]) -> dict[str, int | None]:
    """Return limits by output, None for no limit. Raise ValueError with the expected form."""
    for output, text in texts.items():
        if output not in _WITH_RETENTION:
            raise ValueError(f"{output!r} is no output. It must be one of {', '.join(_WITH_RETENTION)}")
        if text != _NONE and not (text.isdecimal() and int(text) > 0):
            raise ValueError(f"{output} is {text!r}, but must be a whole number above 0, or {_NONE!r}")
    return {output: None if text == _NONE else int(text) for output, text in texts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersConfig:
    """A cluster's broker settings and release, as text. Raise StreamError for unreadable texts.

    `broker_config` has Kafka's names. With `kafka_version` None, Kontrast infers the release from the znodes. The
    controller should be one of `preferred_controllers`, if there are any. What a clean stop takes from clients pages
    after `clean_stop_pages_after_seconds`.
    """

    broker_config: Mapping[str, str] = field(default_factory=dict, metadata={"reader": read_settings})
    kafka_version: str | None = field(default=None, metadata={"reader": read_release})
    preferred_controllers: tuple[BrokerId, ...] = ()
    clean_stop_pages_after_seconds: float = CLEAN_STOP_MS / 1000
    topic_ranks: TopicRanks = field(default=(), metadata={"is_key": False})  # of the section [topics]

    def __post_init__(self) -> None:
        try:
            self.read()
        except ValueError as error:
            raise StreamError(str(error)) from error

    def read(self) -> tuple[GivenSettings, Profile | None, tuple[BrokerId, ...], TopicRanks, int]:
        """Return what the operator set for the cluster, in the order of `Header.configure`."""
        profile = None if self.kafka_version is None else profile_of(read_release(self.kafka_version))
        if self.clean_stop_pages_after_seconds < 0:
            raise ValueError(
                f"clean_stop_pages_after_seconds is {self.clean_stop_pages_after_seconds}, but must be at least 0"
            )
        clean_stop_ms = int(self.clean_stop_pages_after_seconds * 1000)
        return read_settings(self.broker_config), profile, self.preferred_controllers, self.topic_ranks, clean_stop_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """Settings of one Spark job. Raise StreamError for impossible settings.

    `file_system` writes a local checkpoint, either Hadoop's own, or a fast one that starts no process for permissions.
    `hadoop_directory` has Hadoop's settings and the jars of its file systems, for a checkpoint on one of these. The
    first start of a checkpoint fixes `chunk_count` and `shuffle_partitions`. With `shuffle_partitions` None there is
    one for each of the `clusters`, up to the number of cores, and more at a later start. `output_retain_bytes` and
    `output_retain_seconds` limit the outputs' journals by name. `max_batch_bytes` limits a batch from a journal,
    `max_batch_records` a batch from Kafka. `broker_config`, `kafka_version`, `preferred_controllers` and
    `clean_stop_pages_after_seconds` apply to clusters outside `clusters`.

    A batch that takes `stalled_after_seconds` while records wait is a hanging job. The longest measured batch took
    20.4 s, which was the first of 200,000 partitions, at a load of 15 on two cores. The time of a batch grows with
    `max_batch_bytes`, not with the cluster.
    """

    source: Address
    sink: Address
    checkpoint: str
    master: str = "local[*]"
    driver_memory: str = "1g"
    file_system: Literal["fast", "hadoop"] = "fast"
    hadoop_directory: str | None = None
    chunk_count: int = CHUNK_COUNT
    shuffle_partitions: int | None = None
    max_batch_bytes: int = 96 * 1024**2
    max_batch_records: int = 50_000
    connect_timeout_seconds: float = 30.0
    stalled_after_seconds: float = 300.0
    broker_config: Mapping[str, str] = field(default_factory=dict, metadata={"reader": read_settings})
    kafka_version: str | None = field(default=None, metadata={"reader": read_release})
    preferred_controllers: tuple[BrokerId, ...] = ()
    clean_stop_pages_after_seconds: float = CLEAN_STOP_MS / 1000
    output_retain_bytes: Mapping[str, str] = field(default_factory=dict, metadata={"reader": read_retention})
    output_retain_seconds: Mapping[str, str] = field(default_factory=dict, metadata={"reader": read_retention})
    topic_ranks: TopicRanks = field(default=(), metadata={"is_key": False})
    clusters: Mapping[str, BrokersConfig] = field(default_factory=dict, metadata={"is_key": False})

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise StreamError("the checkpoint directory has no name. Give one with --checkpoint")
        place = urlsplit(self.checkpoint) if _URI.match(self.checkpoint) else None
        if place is not None and (not place.path.strip("/") or (place.scheme == _LOCAL and place.netloc)):
            raise StreamError(
                f"checkpoint {self.checkpoint} names no directory. Write it like hdfs://namenode/kontrast, "
                "s3a://bucket/kontrast, or file:///var/lib/kontrast for this machine"
            )
        if self.hadoop_directory is not None and not Path(self.hadoop_directory).expanduser().is_dir():
            raise StreamError(f"hadoop_directory {self.hadoop_directory} is no directory")
        self._check_resources()
        for name, smallest in _SMALLEST.items():
            value = getattr(self, name)
            if value is not None and value < smallest:
                raise StreamError(f"{name} is {value}, but must be at least {smallest}")
        for name in ("connect_timeout_seconds", "stalled_after_seconds"):
            if not getattr(self, name) > 0:
                raise StreamError(f"{name} is {getattr(self, name)}, but must be above 0")
        if str(self.source) == str(self.sink):
            raise StreamError(f"the job would read its own output, because {self.source} is both source and sink")
        if isinstance(self.sink, KafkaAddress) and (self.output_retain_bytes or self.output_retain_seconds):
            raise StreamError(
                f"retention is given for journals and the outputs go to {self.sink}. Set it on the topics"
            )
        self.retention  # noqa: B018 (the property checks)
        self._brokers_of_the_others()

    def _check_resources(self) -> None:
        if not _LOCAL_MASTER.fullmatch(self.master):
            raise StreamError(
                f"master {self.master!r} is not local[N] or local[*], because the job runs inside one process"
            )
        if not _JVM_MEMORY.fullmatch(self.driver_memory):
            raise StreamError(f"driver memory {self.driver_memory!r} is no size. Write it like 512m or 2g")

    @property
    def retention(self) -> dict[str, Retention]:
        """Return the retention of each output's journal. Raise StreamError."""
        try:
            in_bytes, in_seconds = read_retention(self.output_retain_bytes), read_retention(self.output_retain_seconds)
        except ValueError as error:
            raise StreamError(str(error)) from error
        return {
            output: Retention(in_bytes.get(output, RETAIN_BYTES), in_seconds.get(output)) for output in _WITH_RETENTION
        }

    @property
    def checkpoint_directory(self) -> Path:
        """Return the directory of the checkpoint on this machine, as an absolute path."""
        is_uri = self.checkpoint.startswith(f"{_LOCAL}:")
        return Path(unquote(urlsplit(self.checkpoint).path) if is_uri else self.checkpoint).expanduser().absolute()

    @property
    def checkpoint_uri(self) -> str | None:
        """Return the place of the checkpoint, if it is on a file system of Hadoop."""
        is_uri = _URI.match(self.checkpoint) and not self.checkpoint.startswith(f"{_LOCAL}:")
        return self.checkpoint.rstrip("/") if is_uri else None

    @property
    def library_parents(self) -> tuple[Path, ...]:
        """Return the directories into which Java may unpack RocksDB, of which some may be mounted noexec."""
        usual = Path(tempfile.gettempdir())
        return (usual, self.checkpoint_directory.parent) if self.checkpoint_uri is None else (usual,)

    def with_shuffle_partitions(self, fixed: int | None, executors_cores: int | None = None) -> StreamConfig:
        """Return the settings with a number of shuffle partitions, either given, fixed, or sensible.

        For a grown fleet the fixed number changes only to at least twice as many, because each change is a rebuild.
        """
        if self.shuffle_partitions is not None:
            return self
        sensible = max(1, min(executors_cores or self._local_cores, len(self.clusters)))
        keeps = fixed is not None and sensible < 2 * fixed
        return replace(self, shuffle_partitions=fixed if keeps else sensible)

    @property
    def _local_cores(self) -> int:
        cores = _LOCAL_MASTER.fullmatch(self.master)
        assert cores is not None, self.master
        return usable_cores() if cores[1] == "*" else int(cores[1])

    def brokers_of(self, cluster: str) -> BrokersConfig:
        """Return the configuration of a cluster's brokers."""
        return self.clusters.get(cluster) or self._brokers_of_the_others()

    def _brokers_of_the_others(self) -> BrokersConfig:
        return BrokersConfig(
            broker_config=self.broker_config,
            kafka_version=self.kafka_version,
            preferred_controllers=self.preferred_controllers,
            clean_stop_pages_after_seconds=self.clean_stop_pages_after_seconds,
            topic_ranks=self.topic_ranks,
        )

    @property
    def kafka_addresses(self) -> tuple[KafkaAddress, ...]:
        """Return the ends of the job that are Kafka topics."""
        return tuple(address for address in (self.source, self.sink) if isinstance(address, KafkaAddress))
