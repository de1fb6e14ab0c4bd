"""Needs of Kontrast, as measured in runs of `kontrast up`, of standing Spark clusters, and by `make bench-streaming`.

`kontrast init` derives settings from these needs, and `kontrast size` prints them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 86_400_000
_MB: Final = 1_000_000
_DAY_SECONDS: Final = 86_400

# Megabytes of resident memory at rest, and for each 1,000 partitions. All parts were measured with 2,000 to 200,000
# partitions, and the job also with random placement, up to 1,000,000 partitions and 1,000 changes a second.
_MEMORY_MB: Final = {"watch": (25, 0.7), "serve": (60, 1.6)}
_JOB_MB: Final = {"stream, Python": (580, 3.1), "stream, Java": (670, 0.6)}
# The job on a standing Spark cluster: the driver, each executor of one core with its share of the partitions, and each
# daemon of a standalone cluster, measured with 30,000 to 400,000 partitions on one to three executors.
_SPARK_CLUSTER_MB: Final = {
    "driver, Python": (520, 0),
    "driver, Java": (740, 0),
    "executor, Python": (100, 3.1),
    "executor, Java": (500, 0),
    "master or worker": (210, 0),
}
# Megabytes of a fleet by `make bench-fleet`, also in containers, which share no library: Kafka's client, and for each
# further cluster its session with two threads, its tree and its tables.
_WATCH_MB_OF_KAFKA: Final = 8
_WATCH_MB_A_CLUSTER: Final = 0.75
_PARTS: Final = {"up": "", "watch": "watch", "stream": "stream", "serve": "serve"}  # how names of parts begin
_PARTS_WITH_EXECUTORS: Final = {each: each for each in ("watch", "driver", "executor", "serve")}
_JAVA_BESIDE_HEAP_MB: Final = 300  # classes, threads and buffers
_HEADROOM: Final = 1.25  # the limit in relation to the measurement
_PEAK_MB: Final = 25  # a complete read needs so much beyond the measurement, as does the process of `up`

# Bytes on disk for each partition of a complete read, for each change, and for each cluster and second.
_CHANGES_BYTES: Final = (370, 360, 230)
_OUTPUTS_BYTES: Final = (615, 3_800, 3_450)

# Bytes of the checkpoint for each partition, and for each partition of a cluster and change a second. A change writes a
# chunk, which stays for up to two minutes, so the checkpoint has 346 MB with 200,000 partitions and 100 changes a
# second. Beyond 250 changes a second it grows no more, because each of about four batches a second has all 64 chunks.
_CHECKPOINT_BYTES: Final = 90
_CHECKPOINT_CHANGE_BYTES: Final = 18
_CHECKPOINT_CHANGES_A_SECOND: Final = 250

# Two cores worked off 1,000 changes a second of 200,000 partitions with a median of 0.3 s (`docs/scale.json`).
_CHANGES_A_CORE: Final = 500
_LEAST_CORES: Final = 2

_KEPT_COMPLETE_READS: Final = 16
_LEAST_RETAIN_BYTES: Final = 256 * 1024**2
_LARGE_HEAP_PARTITIONS: Final = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The needs of some clusters, by their partitions in all, and by their changes of znodes a second in all."""

    clusters: int
    partitions: int
    changes_per_second: float
    days: float = 7.0  # time that the journals or topics keep
    executors: int = 0  # of a standing Spark cluster, 0 for a job on one machine

    @property
    def cores(self) -> int:
        """Return the cores that the machine needs, or all executors together."""
        return max(_LEAST_CORES, self.executors, math.ceil(self.changes_per_second / _CHANGES_A_CORE))

    @property
    def tasks(self) -> int:
        """Return how many clusters the job works on at once with these cores, for `shuffle_partitions` in [stream]."""
        return min(self.executors or self.cores, self.clusters)

    @property
    def memory_mb(self) -> dict[str, int]:
        """Return the resident memory by part, as measured. Each executor has the same."""
        thousands = self.partitions / 1_000
        share = thousands / self.tasks if self.executors else thousands
        job = _SPARK_CLUSTER_MB if self.executors else _JOB_MB
        more = self.clusters - 1
        watch, serve = (base + each * thousands for base, each in _MEMORY_MB.values())
        return {
            "watch": round(watch + (more and _WATCH_MB_OF_KAFKA + more * _WATCH_MB_A_CLUSTER)),
            **{part: round(base + each * share) for part, (base, each) in job.items()},
            "serve": round(serve),
        }

    def processes_of(self, part: str) -> int:
        """Return how many processes take the memory of this part each."""
        return self.executors + part.startswith("master") if part.startswith(("executor", "master")) else 1

    @property
    def memory_limits_mb(self) -> dict[str, int]:
        """Return the memory limit of each command or pod, with full Java heaps. `up` runs all other commands."""
        java_mb = self.heap_mb + _JAVA_BESIDE_HEAP_MB
        full = {part: java_mb if part.endswith("Java") else size for part, size in self.memory_mb.items()}
        return {
            command: round(sum(size for part, size in full.items() if part.startswith(begins)) * _HEADROOM) + _PEAK_MB
            for command, begins in (_PARTS_WITH_EXECUTORS if self.executors else _PARTS).items()
        }

    @property
    def heap_mb(self) -> int:
        """Return the size of Java's heap, for `driver_memory` in [stream]."""
        return 2_048 if self.partitions > _LARGE_HEAP_PARTITIONS else 1_024

    @property
    def changes_bytes(self) -> int:
        """Return the bytes of the stream over the days, its complete reads included."""
        return self._bytes(*_CHANGES_BYTES)

    @property
    def outputs_bytes(self) -> int:
        """Return the bytes of all outputs over the days."""
        return self._bytes(*_OUTPUTS_BYTES)

    @property
    def checkpoint_bytes(self) -> int:
        """Return the bytes of the checkpoint while clusters of equal size change."""
        changes = min(self.changes_per_second, _CHECKPOINT_CHANGES_A_SECOND * self.clusters)
        a_cluster = self.partitions / self.clusters
        return round(self.partitions * _CHECKPOINT_BYTES + changes * a_cluster * _CHECKPOINT_CHANGE_BYTES)

    @property
    def retain_bytes(self) -> int:
        """Return the bytes of a journal to keep, a power of two for the days' changes."""
        # round up to a power of two
        return 1 << (max(_LEAST_RETAIN_BYTES, self.changes_bytes) - 1).bit_length()

    def _bytes(self, a_partition: int, a_change: int, a_second: int) -> int:
        seconds = self.days * _DAY_SECONDS
        flowing = (self.changes_per_second * a_change + self.clusters * a_second) * seconds
        return round(_KEPT_COMPLETE_READS * self.partitions * a_partition + flowing)


def shown_bytes(count: int) -> str:
    """Return the number of bytes with its unit."""
    return f"{count / 1000**3:.1f} GB" if count >= 1000**3 else f"{count / _MB:.0f} MB"
