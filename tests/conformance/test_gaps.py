"""Another forwarder's complete read at busy moments of real clusters, and the later writes that stay unexplained.

A forwarder that takes over from a paused or killed one has missed some records and reads everything again.
`REWRITE=1 pytest tests/conformance/test_gaps.py -m ''` writes the gaps that leave more writes unexplained than no gap.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from controller.contract.records import Record, RecordKind
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.step import step, steps
from tests.conformance.recording import Recording, unpack
from tests.conformance.test_row_digests import NAMES
from tests.controller.test_first_read_anywhere import from_a_first_read, in_generation
from tests.lanes import in_gate

KNOWN = Path(__file__).parent / "gaps.json"
GAPS = 10  # of each recording
MISSED = (1, 2, 5, 20, 60)  # records
FOLLOWED = 400  # records after a gap


class Gap(NamedTuple):
    """Records that no forwarder sent, from one to before another."""

    begin: int
    end: int


def gaps(records: list[Record], seed: str) -> Iterator[Gap]:
    """Yield gaps that end near the write of a partition's state."""
    chance = random.Random(seed)
    first = next(at for at, record in enumerate(records) if record.kind is RecordKind.SNAPSHOT_END) + 2
    busy = [at for at, record in enumerate(records) if record.path.endswith("/state") and first < at < len(records) - 2]
    for _ in range(GAPS if busy else 0):
        end = max(first + 1, chance.choice(busy) + chance.choice([-3, -1, 0, 0, 1]))
        yield Gap(max(first, end - chance.choice(MISSED)), end)


def contexts(recording: Recording, records: list[Record]) -> list[Context]:
    """Return the context after each record."""
    context = new_context(records[0].cluster, recording.settings(), recording.profile(), chunk_count=8)
    found = []
    for record in records:
        context = step(context, record).context
        found.append(context)
    return found


def unexplained(before: Context, after: Context) -> int:
    return after.header.tally.writes.unexplained - before.header.tally.writes.unexplained


@pytest.mark.parametrize("name", in_gate("fuzz11a", "fuzz39c", "race39", of=NAMES))
def test_few_writes_are_unexplained_after_a_gap(name, tmp_path):
    recording = unpack(name, tmp_path)
    records = list(recording.records())
    complete = contexts(recording, records)
    found = {}
    for gap in gaps(records, name):
        last = complete[gap.begin - 1]
        followed = records[: gap.end + FOLLOWED]
        read = in_generation(records[gap.begin - 1].generation + 1, from_a_first_read(followed, gap.end))
        with_gap = unexplained(last, steps(last, read).context)
        without = unexplained(complete[gap.end - 1], complete[len(followed) - 1])
        if with_gap > without:
            found[f"{gap.begin} to {gap.end}"] = with_gap - without
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if os.environ.get("REWRITE") == "1":
        known = {**{each: gaps for each, gaps in known.items() if each != name}, **({name: found} if found else {})}
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    assert found == known.get(name, {})
