"""Needs of Kontrast on one machine, as measured by `make bench-capacity` and `make bench-streaming` (decisions 43, 62).

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
_MEMORY_MB: Final = {"watch": (25, 0.7), "stream, Python": (580, 3.1), "stream, Java": (670, 0.6), "serve": (60, 1.6)}
# Megabytes for each further cluster, by `make bench-fleet`: its session with two threads, its tree and its tables.
_WATCH_MB_A_CLUSTER: Final = 0.8
_JAVA: Final = "stream, Java"
_PARTS: Final = {"up": "", "watch": "watch", "stream": "stream", "serve": "serve"}  # how names of parts begin
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

    @property
    def cores(self) -> int:
        """Return the cores that the machine needs."""
        return max(_LEAST_CORES, math.ceil(self.changes_per_second / _CHANGES_A_CORE))

    @property
    def tasks(self) -> int:
        """Return how many clusters the job works on at once with these cores, for `shuffle_partitions` in [stream]."""
        return min(self.cores, self.clusters)

    @property
    def memory_mb(self) -> dict[str, int]:
        """Return the resident memory by part, as measured."""
        thousands = self.partitions / 1_000
        by_clusters = {"watch": (self.clusters - 1) * _WATCH_MB_A_CLUSTER}
        return {
            part: round(base + each * thousands + by_clusters.get(part, 0)) for part, (base, each) in _MEMORY_MB.items()
        }

    @property
    def memory_limits_mb(self) -> dict[str, int]:
        """Return the memory limit of each command, with a full Java heap. `up` runs all other commands."""
        full = {**self.memory_mb, _JAVA: self.heap_mb + _JAVA_BESIDE_HEAP_MB}
        return {
            command: round(sum(size for part, size in full.items() if part.startswith(begins)) * _HEADROOM) + _PEAK_MB
            for command, begins in _PARTS.items()
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
