"""Where the newest complete read of each cluster begins."""

from __future__ import annotations

import pytest

from controller.contract.records import Record, RecordKind, newest_complete_reads

BEGIN, END, FORGOTTEN = RecordKind.SNAPSHOT_BEGIN, RecordKind.SNAPSHOT_END, RecordKind.FORGOTTEN
BEAT = RecordKind.HEARTBEAT


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ([(BEGIN, 1), (END, 1), (BEAT, 1), (BEGIN, 2), (BEAT, 2)], {"east": 0}),
        ([(BEGIN, 1), (END, 1), (BEGIN, 2), (END, 2)], {"east": 2}),
        ([(BEGIN, 1), (END, 2)], {}),
        ([(END, 1), (BEAT, 1)], {}),
        ([(BEGIN, 1), (END, 1), (FORGOTTEN, 2)], {"east": None}),
        ([(FORGOTTEN, 2), (BEGIN, 3), (END, 3)], {"east": 1}),
        ([(BEGIN, 1), (FORGOTTEN, 2), (END, 1)], {"east": None}),
    ],
    ids=["the newest has not ended", "two", "another's end", "no beginning", "forgotten", "again", "forgotten within"],
)
def test_a_read_counts_once_its_end_is_there(kinds, found):
    placed = enumerate(
        Record(cluster="east", generation=generation, seq=0, kind=kind, observed_ms=0) for kind, generation in kinds
    )
    assert newest_complete_reads(placed) == found
