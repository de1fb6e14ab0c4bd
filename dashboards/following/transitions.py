"""Follows the newest transitions of each cluster, from the first request for them on."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Final

from controller.contract.effect_rows import Transition
from controller.contract.job_row import JobRow
from controller.contract.row import Row
from dashboards.following.follower import Follower
from dashboards.following.past import PAST_ROWS
from dashboards.following.reading import Reading
from outputs import Chunk, OutputsSource, open_outputs
from transport.address import Address

_OF_REPLICAS: Final = b'"subject":"replica"'


class Transitions:
    """Newest transitions, but those of replicas; they are read in a thread as long as the `with` lasts."""

    def __init__(self, address: Address, connect_timeout_seconds: float, most: int = PAST_ROWS) -> None:
        self._most = most  # of one cluster; 0.7 kB each
        self._address = address
        self._connect_timeout_seconds = connect_timeout_seconds
        self._reading = Reading()
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
        """The kept transitions of this time; of the first who asks there may be none yet."""
        self._follow()
        with self._lock:
            return [row for row in self._kept.get(cluster, ()) if begin_ms <= row.time_ms <= end_ms]

    def why_incomplete(self) -> str | None:
        """Why transitions may be missing; None where all that are kept have been read."""
        follower, state = self._follower, self._reading.snapshot()
        if follower is not None and follower.failure is not None:
            return f"what the controller did cannot be read: {follower.failure}"
        if state.missing:
            return "what the controller did is not in the outputs: they have no transitions"
        return None if state.caught_up else "what the controller did is still being read: look again in a moment"

    def apply(self, row: Row | JobRow) -> bool:
        """Keep a transition, and drop the oldest for it where there is no room."""
        if isinstance(row, Transition):
            with self._lock:
                self._kept.setdefault(row.cluster, deque(maxlen=self._most)).append(row)
        return False

    def know(self, cluster: str) -> None:
        """Nothing is kept of a cluster that is only known."""

    def forget(self, output: str, cluster: str | None = None, *, for_good: bool = False) -> None:  # noqa: ARG002
        """Drop the transitions: what follows repeats what holds."""
        with self._lock:
            if cluster is None:
                self._kept.clear()
            else:
                self._kept.pop(cluster, None)

    def lacks_rows_before(self, output: str) -> None:
        """Each transition stands for itself: those that are there hold."""

    def is_live(self, cluster: str) -> bool:
        """Nothing is judged by how old it is."""
        return True

    def clock_behind_ms(self, cluster: str) -> int:
        """Nothing is judged by a clock."""
        return 0

    def _follow(self) -> None:
        with self._lock:
            if self._follower is None and not self._ended:
                source = _WithoutReplicas(open_outputs(self._address, (Transition.output,)))
                follower = Follower(source, self, self._reading, self._connect_timeout_seconds)
                self._follower = self._running.enter_context(follower)


class _WithoutReplicas:
    """An output without the transitions of replicas, which are most and in no timeline: they are not even decoded.

    That retention took the oldest is no gap: each stands for itself.
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

    def close(self) -> None:
        self._source.close()
