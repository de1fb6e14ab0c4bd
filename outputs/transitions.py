"""Follower of the transitions of each cluster, from the first request for them on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from controller.contract.effect_rows import Transition
from outputs import Chunk, OutputsSource, open_outputs
from outputs.follower import Follower
from outputs.reading import ReadingCounts
from questions.memory import Memory
from transport.address import Address

_OF_REPLICAS: Final = b'"subject":"replica"'
_EFFECT: Final = b'"effect":"'


class Transitions:
    """Threads that read transitions into the memory until the `with` ends, of replicas only the first of each event.

    Each address belongs to one of the memory's sources.
    """

    def __init__(self, addresses: Sequence[Address], connect_timeout_seconds: float, memory: Memory) -> None:
        self._addresses = addresses
        self._connect_timeout_seconds = connect_timeout_seconds
        self._memory = memory
        self._lock = threading.Lock()
        self._followers: list[tuple[Follower, ReadingCounts]] = []
        self._running = ExitStack()
        self._ended = False

    def __enter__(self) -> Transitions:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended = True
        self._running.close()

    def follow(self) -> str | None:
        """Follow from the first call on. Return the reason why transitions may be missing, if any."""
        with self._lock:
            if not self._followers and not self._ended:
                for named, address in zip(self._memory.sources, self._addresses, strict=True):
                    source, reading = _FirstOfReplicas(open_outputs(address, (Transition.output,))), ReadingCounts()
                    follower = Follower(source, self._memory, reading, self._connect_timeout_seconds, named)
                    self._followers.append((self._running.enter_context(follower), reading))
            reasons = [_why_incomplete(follower, reading) for follower, reading in self._followers]
        return next(filter(None, reasons), None)


def _why_incomplete(follower: Follower, reading: ReadingCounts) -> str | None:
    state = reading.snapshot()
    if follower.failure is not None:
        return f"the transitions cannot be read: {follower.failure}"
    if state.missing:
        return "the controller's actions are missing, because the outputs have no transitions"
    return None if state.caught_up else "the controller's actions are still being read, look again in a moment"


class _FirstOfReplicas(OutputsSource):
    """Output that passes only the first transition of replicas of each event.

    Transitions of replicas are the most frequent, but a timeline needs only their causes, so the follower need not
    decode the rest. Rows that retention dropped are no gap, because each transition stands for itself.
    """

    def __init__(self, source: OutputsSource) -> None:
        self._source = source
        self.wanted, self.missing = source.wanted, source.missing
        self._event = b""

    def poll(self) -> Sequence[Chunk]:
        chunks, self.missing = self._source.poll(), self._source.missing
        return [replace(chunk, lines=list(filter(self._keeps, chunk.lines)), after_gap=False) for chunk in chunks]

    def _keeps(self, line: bytes) -> bool:
        before, self._event = self._event, line.partition(_EFFECT)[2].partition(b'"')[0].rpartition(b"-")[0]
        return before != self._event or _OF_REPLICAS not in line

    def has_read(self, outputs: Collection[str]) -> bool:
        return self._source.has_read(outputs)

    def lacking(self, ends: Mapping[str, tuple[str, int]]) -> tuple[str, ...]:
        return self._source.lacking(ends)

    def close(self) -> None:
        self._source.close()
