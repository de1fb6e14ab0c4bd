"""Follower of the newest transitions of each cluster, from the first request for them on."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Final

from controller.contract.effect_rows import Transition
from controller.contract.job_row import JobRow
from controller.contract.row import Row
from dashboards.kept_rows.follower import Follower
from dashboards.kept_rows.reading import ReadingCounts
from outputs import Chunk, OutputsSource, open_outputs
from questions.past import PAST_ROWS
from transport.address import Address

_OF_REPLICAS: Final = b'"subject":"replica"'


class Transitions:
    """Newest transitions, without those of replicas, read in a thread as long as the `with` lasts."""

    def __init__(self, address: Address, connect_timeout_seconds: float, most: int = PAST_ROWS) -> None:
        self._most = most  # per cluster, 0.7 kB each
        self._address = address
        self._connect_timeout_seconds = connect_timeout_seconds
        self._reading = ReadingCounts()
        self._lock = threading.Lock()
        self._kept: dict[str, deque[Transition]] = {}
        self._follower: Follower | None = None
        self._running = ExitStack()
        self._ended = False

    def __enter__(self) -> Transitions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
        self._running.close()

    def between(self, cluster: str, begin_ms: int, end_ms: int) -> list[Transition]:
        """Return the kept transitions of this time. The first caller may get an empty list."""
        self._follow()
        with self._lock:
            return [row for row in self._kept.get(cluster, ()) if begin_ms <= row.time_ms <= end_ms]

    def why_incomplete(self) -> str | None:
        """Return the reason why transitions may be missing, if any."""
        follower, state = self._follower, self._reading.snapshot()
        if follower is not None and follower.failure is not None:
            return f"the transitions cannot be read: {follower.failure}"
        if state.missing:
            return "the controller's actions are missing, because the outputs have no transitions"
        return None if state.caught_up else "the controller's actions are still being read, look again in a moment"

    def apply(self, row: Row | JobRow) -> bool:
        """Keep a transition. Drop the oldest one if there is no room."""
        if isinstance(row, Transition):
            with self._lock:
                self._kept.setdefault(row.cluster, deque(maxlen=self._most)).append(row)
        return False

    def know(self, cluster: str) -> None:
        """Ignore a known cluster without transitions."""

    def forget(self, output: str, cluster: str | None = None, *, for_good: bool = False) -> None:  # noqa: ARG002
        """Drop the transitions, because the rows that follow repeat them."""
        with self._lock:
            if cluster is None:
                self._kept.clear()
            else:
                self._kept.pop(cluster, None)

    def lacks_rows_before(self, output: str) -> None:
        """Ignore missing rows, because each transition stands for itself."""

    def is_live(self, cluster: str) -> bool:
        """Return True, because the age of transitions does not matter."""
        return True

    def clock_behind_ms(self, cluster: str) -> int:
        """Return 0, because clocks do not matter here."""
        return 0

    def _follow(self) -> None:
        with self._lock:
            if self._follower is None and not self._ended:
                source = _WithoutReplicas(open_outputs(self._address, (Transition.output,)))
                follower = Follower(source, self, self._reading, self._connect_timeout_seconds)
                self._follower = self._running.enter_context(follower)


class _WithoutReplicas:
    """Output without the transitions of replicas. These are the most frequent, and no timeline shows them.

    The follower does not even decode them. Rows that retention took are no gap, because each stands for itself.
    """

    def __init__(self, source: OutputsSource) -> None:
        self._source = source

    def poll(self) -> Sequence[Chunk]:
        chunks = self._source.poll()
        return [
            replace(chunk, lines=[line for line in chunk.lines if _OF_REPLICAS not in line], after_gap=False)
            for chunk in chunks
        ]

    @property
    def caught_up(self) -> bool:
        return self._source.caught_up

    @property
    def missing(self) -> tuple[str, ...]:
        return self._source.missing

    def lacking(self, ends: Mapping[str, tuple[str, int]]) -> tuple[str, ...]:
        return self._source.lacking(ends)

    def close(self) -> None:
        self._source.close()
