"""Many histories, by the seeds of a range, in several processes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable

from lab.modelled_cluster.checks import BrokenPropertyError
from lab.modelled_cluster.histories import drawn, play

_CHUNK = 50
_PROGRESS_SECONDS = 10.0

Result = tuple[int, int, "list[tuple[int, str, str]]"]  # histories, those judged at rest, failures by seed


def play_seeds(seeds: range) -> Result:
    """Play the histories of these seeds."""
    judged, failures = 0, []
    for seed in seeds:
        try:
            judged += play(drawn(seed)).is_judged
        except BrokenPropertyError as error:
            failures.append((seed, error.name, str(error)))
    return len(seeds), judged, failures


def play_all(first_seed: int, histories: int, processes: int, *, shows: bool = False) -> Result:
    """Play so many histories from this seed on, in several processes."""
    chunks = [
        range(begin, min(begin + _CHUNK, first_seed + histories))
        for begin in range(first_seed, first_seed + histories, _CHUNK)
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return _sum(pool.imap_unordered(play_seeds, chunks), shows=shows)


def _sum(results: Iterable[Result], *, shows: bool) -> Result:
    total, judged, failures = 0, 0, list[tuple[int, str, str]]()
    began = shown = time.monotonic()
    for count, at_rest, found in results:
        total, judged = total + count, judged + at_rest
        failures += found
        if shows and time.monotonic() - shown > _PROGRESS_SECONDS:
            shown = time.monotonic()
            broken = [(seed, name) for seed, name, _ in failures]
            print(
                f"{total} histories, {judged} judged at rest, {total / (shown - began):.0f}/s, broken: {broken}",
                flush=True,
            )
    return total, judged, sorted(failures)
