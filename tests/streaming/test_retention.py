"""Output journals far beyond their retention, with kills. A new reader still finds every current row.

KONTRAST_FAULTS_LOSSES=1500 and KONTRAST_FAULTS_RETAIN_BYTES=67108864 give some 350,000 rows of metadata in 64 MiB.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from controller.contract.outputs import decode_row
from controller.contract.row import Row
from tests.streaming.checkpoints import newest_rows
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.victim import Victim
from transport.journal_reading import earliest_offset, is_complete, read_journal

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("pipelines")]

_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_LOSSES = int(os.environ.get("KONTRAST_FAULTS_LOSSES", "12"))
_RETAIN_BYTES = int(os.environ.get("KONTRAST_FAULTS_RETAIN_BYTES", "150000"))
_KILLS = 2
_TOPICS = 100
_RETAINED = {"metadata": _RETAIN_BYTES, "alerts": _RETAIN_BYTES // 8, "gauges": _RETAIN_BYTES // 8}


def kept(streams: Streams, output: str) -> list[bytes]:
    """Return all lines for a reader that begins now."""
    directory = streams.outputs / output
    offset = earliest_offset(directory)
    lines: list[bytes] = []
    while (batch := read_journal(directory, offset, 1 << 24)).lines:
        assert batch.hole is None
        lines += batch.lines
        offset = batch.next_offset
    return lines


def holding(lines: list[bytes]) -> dict[str, bytes]:
    """Return each subject's newest row, but for subjects that have ended, which a new reader does without."""

    def holds(line: bytes) -> bool:
        row = decode_row(line)
        assert isinstance(row, Row)
        return not row.ends_subject

    return {key: line for key, line in newest_rows(lines).items() if holds(line)}


def size_of(streams: Streams, output: str) -> int:
    return sum(path.stat().st_size for path in (streams.outputs / output).glob("*.log"))


def test_every_row_that_holds_outlives_retention_and_kills(java: object, streams: Streams) -> None:
    life = life_of("east", topics=_TOPICS, losses=_LOSSES)
    streams.append(life.lines)
    bounds = [f"--output-retain-bytes={output}={count}" for output, count in _RETAINED.items()]
    batch_bytes = _RETAIN_BYTES // 5
    victim = Victim(streams, "--max-batch-bytes", str(batch_bytes), *bounds)
    chance = random.Random(_SEED)
    metadata = streams.outputs / "metadata"
    for _ in range(_KILLS):
        victim.start()
        before = earliest_offset(metadata) if metadata.exists() else 0
        assert victim.until(lambda: metadata.exists() and earliest_offset(metadata) > before)  # noqa: B023
        time.sleep(chance.uniform(0, 0.3))
        victim.kill()
    expected = life.rows()
    assert len(kept(streams, "metadata")) < len(expected["metadata"])
    victim.finish(batch_bytes)
    for output in _RETAINED:
        assert holding(kept(streams, output)) == holding(expected[output]), output
        assert is_complete(streams.outputs / output)
    dropped = sum(map(len, expected["metadata"])) - size_of(streams, "metadata")
    assert dropped > 4 * _RETAIN_BYTES, "retention had little to drop"
    standing = sum(map(len, newest_rows(expected["metadata"]).values()))
    assert size_of(streams, "metadata") < 2 * _RETAIN_BYTES + 2 * standing
