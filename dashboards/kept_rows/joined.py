"""Rows, counts and transitions of several outputs, each of another job, behind the interface of one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from types import TracebackType

from controller.contract.effect_rows import Transition
from controller.contract.job_row import JobRow
from dashboards.kept_rows.reading import ReadingCounts, ReadingSnapshot
from dashboards.kept_rows.transitions import Transitions
from questions.cluster_rows import ClusterRows
from questions.memory import Memory
from questions.past import PAST_ROWS
from transport.address import Address
from wording.sentences import joined


class _Clusters(ChainMap[str, ClusterRows]):
    """Clusters of several outputs by name. One that moved to another job is the one that was not forgotten."""

    def __getitem__(self, name: str) -> ClusterRows:
        held = [part[name] for part in self.maps if name in part]
        if not held:
            raise KeyError(name)
        return next((cluster for cluster in held if not cluster.is_gone), held[0])


class JoinedMemory(Memory):
    """The clusters of several memories, the `parts` by the address of their outputs. Only the parts take rows."""

    def __init__(self, addresses: Sequence[str], past_rows: int = PAST_ROWS) -> None:
        super().__init__(past_rows)
        self.parts = {address: Memory(past_rows) for address in addresses}
        for part in self.parts.values():
            part._lock, part.alert_news = self._lock, self.alert_news
        self._clusters = _Clusters(*(part._clusters for part in self.parts.values()))

    def jobs(self) -> Mapping[str, JobRow]:
        """Return the newest row of each job that has one, by the address of its outputs."""
        with self._lock:
            return {address: part._job for address, part in self.parts.items() if part._job is not None}

    def version(self, cluster: str | None, *outputs: str) -> int:
        """Return how often these outputs changed, for one cluster or all. The number only grows."""
        return sum(part.version(cluster, *outputs) for part in self.parts.values())

    def _transitions_of(self, cluster: str) -> Iterable[Transition]:
        return chain.from_iterable(part._transitions_of(cluster) for part in self.parts.values())

    def _job_of(self, cluster: str) -> JobRow | None:
        known = self._clusters.get(cluster)
        return next((part._job for part in self.parts.values() if part._clusters.get(cluster) is known), None)

    def named_twice(self) -> str | None:
        """Return a sentence about the first cluster that several outputs have, if there is one."""
        with self._lock:
            for name in sorted(self._clusters):
                known = {address: part._clusters.get(name) for address, part in self.parts.items()}
                held = [address for address, cluster in known.items() if cluster is not None and not cluster.is_gone]
                if len(held) > 1:
                    both = joined(held)
                    return f"cluster {name} is in the outputs {both}. Forget it where no watcher forwards it any more"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedSnapshot(ReadingSnapshot):
    """The counts of several outputs at one moment, the `parts` by address."""

    parts: Mapping[str, ReadingSnapshot]

    def by_source(self) -> Mapping[str, ReadingSnapshot]:
        """Return the counts of each output by its address."""
        return self.parts

    def of(self, cluster: str) -> ReadingSnapshot:
        """Return the counts of the outputs that have the cluster, or all if none has it."""
        return next((part for part in self.parts.values() if part.knows(cluster)), self)

    def outputs_lacking_rows_of(self, cluster: str) -> tuple[str, ...]:
        """Return the outputs that lost rows, which were not written again for this cluster."""
        part = self.of(cluster)
        return () if part is self else part.outputs_lacking_rows_of(cluster)

    def vouches_for(self, cluster: str) -> bool:
        """Return whether all of the cluster's rows in its outputs have been read."""
        part = self.of(cluster)
        return part is not self and part.vouches_for(cluster)


class JoinedCounts(ReadingCounts):
    """The counts of several outputs. Only the `parts`, by address, count."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.parts = {address: ReadingCounts() for address in addresses}

    def snapshot(self) -> JoinedSnapshot:
        """Return the counts as they are now. Lines and gaps of one output of each job are summed."""
        parts = {address: part.snapshot() for address, part in self.parts.items()}
        each = parts.values()
        outputs = dict.fromkeys(output for part in each for output in part.bad_rows)
        return JoinedSnapshot(
            parts=parts,
            source_up=all(part.source_up for part in each),
            missing=tuple(output for output in outputs if all(output in part.missing for part in each)),
            cut=(),
            caught_up=all(part.caught_up for part in each),
            newer=frozenset().union(*(part.newer for part in each)),
            rows={key: count for part in each for key, count in part.rows.items()},
            bad_rows={output: sum(part.bad_rows[output] for part in each) for output in outputs},
            gaps={output: sum(part.gaps[output] for part in each) for output in outputs},
            lag={cluster: lag for part in each for cluster, lag in part.lag.items()},
            begun_since_gap={},
        )


class JoinedTransitions(Transitions):
    """The followers of the transitions of several outputs, each into its part of the memory."""

    def __init__(self, addresses: Sequence[Address], connect_timeout_seconds: float, memory: JoinedMemory) -> None:
        parts = zip(addresses, memory.parts.values(), strict=True)
        self._parts = [Transitions(address, connect_timeout_seconds, part) for address, part in parts]
        self._running = ExitStack()

    def __enter__(self) -> JoinedTransitions:
        for part in self._parts:
            self._running.enter_context(part)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.close()

    def follow(self) -> str | None:
        """Follow from the first call on. Return the reason why transitions may be missing, if any."""
        reasons = [part.follow() for part in self._parts]
        return next(filter(None, reasons), None)
