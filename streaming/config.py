"""What `kontrast stream` can be told, checked before anything is started.

Here belong the settings of the Spark job and what makes them valid. Where they are read from is `cli/`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from streaming.errors import StreamError
from transport.address import Address, KafkaAddress

_LOCAL_MASTER = re.compile(r"local\[(\*|[1-9][0-9]*)\]")
_JVM_MEMORY = re.compile(r"[1-9][0-9]*[mg]")
_SMALLEST = {
    "chunk_count": 1,
    "shuffle_partitions": 1,
    "max_batch_bytes": 1024,
    "max_batch_records": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """The settings of one Spark job; creating it raises StreamError for what cannot work.

    `chunk_count` and `shuffle_partitions` are fixed by a checkpoint's first start. `max_batch_bytes` bounds a batch
    that is read from a journal, `max_batch_records` one that is read from Kafka.
    """

    source: Address
    sink: Address
    checkpoint: str
    master: str = "local[*]"
    driver_memory: str = "1g"
    chunk_count: int = 64
    shuffle_partitions: int = 1
    max_batch_bytes: int = 8 * 1024**2
    max_batch_records: int = 50_000
    connect_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise StreamError("the checkpoint directory has no name: give one with --checkpoint")
        if "://" in self.checkpoint:
            raise StreamError(
                f"checkpoint {self.checkpoint} is no local directory: give a path on a local disk or a mounted volume"
            )
        if not _LOCAL_MASTER.fullmatch(self.master):
            raise StreamError(f"master {self.master!r} is not local[N] or local[*]: the job runs inside one process")
        if not _JVM_MEMORY.fullmatch(self.driver_memory):
            raise StreamError(f"driver memory {self.driver_memory!r} is no size: write it like 512m or 2g")
        for name, smallest in _SMALLEST.items():
            value = getattr(self, name)
            if value < smallest:
                raise StreamError(f"{name} is {value}: it must be at least {smallest}")
        if not self.connect_timeout_seconds > 0:
            raise StreamError(f"connect_timeout_seconds is {self.connect_timeout_seconds}: it must be above 0")
        if str(self.source) == str(self.sink):
            raise StreamError(f"the job would read what it writes: {self.source} is both source and sink")

    @property
    def checkpoint_directory(self) -> Path:
        """Where the job keeps what it must not forget, as an absolute path."""
        return Path(self.checkpoint).expanduser().absolute()

    @property
    def kafka_addresses(self) -> tuple[KafkaAddress, ...]:
        """The ends of the job that are Kafka topics."""
        return tuple(address for address in (self.source, self.sink) if isinstance(address, KafkaAddress))
