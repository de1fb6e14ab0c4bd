"""Counts of the outputs of several jobs, behind the interface of one job's counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboards.kept_rows.reading import ReadingCounts, ReadingSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedSnapshot(ReadingSnapshot):
    """The counts of several jobs' outputs at one moment. `parts` has the counts of each job by address."""

    parts: Mapping[str, ReadingSnapshot]

    def by_source(self) -> Mapping[str, ReadingSnapshot]:
        """Return the counts of each job's outputs by address."""
        return self.parts

    def of(self, cluster: str) -> ReadingSnapshot:
        """Return the counts of the outputs that have the cluster, or all if none has it."""
        return next((part for part in self.parts.values() if part.knows(cluster)), self)

    def outputs_lacking_rows_of(self, cluster: str) -> tuple[str, ...]:
        """Return the outputs that lost rows of this cluster, which the job has not written again."""
        part = self.of(cluster)
        return () if part is self else part.outputs_lacking_rows_of(cluster)

    def vouches_for_alerts(self, cluster: str) -> bool:
        """Return whether one job has the cluster, and its rows there that alerts need have been read."""
        part = self.of(cluster)
        return part is not self and part.vouches_for_alerts(cluster)


class JoinedCounts(ReadingCounts):
    """The counts of several jobs' outputs. Count in its `parts`, which are by address."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.parts = {address: ReadingCounts() for address in addresses}

    def snapshot(self) -> JoinedSnapshot:
        """Return the present counts. Unreadable lines and gaps of an output are summed over the jobs."""
        parts = {address: part.snapshot() for address, part in self.parts.items()}
        each = parts.values()
        outputs = dict.fromkeys(output for part in each for output in part.bad_rows)
        return JoinedSnapshot(
            parts=parts,
            source_up=all(part.source_up for part in each),
            missing=tuple(output for output in outputs if all(output in part.missing for part in each)),
            cut=(),
            caught_up=all(part.caught_up for part in each),
            alerts_known=all(part.alerts_known for part in each),
            newer=frozenset().union(*(part.newer for part in each)),
            rows={key: count for part in each for key, count in part.rows.items()},
            bad_rows={output: sum(part.bad_rows[output] for part in each) for output in outputs},
            gaps={output: sum(part.gaps[output] for part in each) for output in outputs},
            lag={cluster: lag for part in each for cluster, lag in part.lag.items()},
            begun_since_gap={},
        )
