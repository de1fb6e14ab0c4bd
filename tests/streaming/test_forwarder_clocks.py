"""The job's knowledge of forwarders' clocks, which keeps a wrong clock apart from lag."""

from __future__ import annotations

import json
import time

import msgspec
import pytest

from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS, JobRow
from controller.contract.outputs import decode_row
from controller.contract.records import RecordKind, encode_record
from streaming.forwarder_clocks import ForwarderClocks
from tests.streaming.cluster_records import life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually

HOUR_MS = 3_600_000
T_MS = 1_700_000_000_000


def learned(*batches: tuple[int, int]) -> list[int]:
    """Return the knowledge after each batch, planned and with its newest record at these times."""
    clocks = ForwarderClocks()
    found = []
    for planned_ms, newest_ms in batches:
        clocks.compare("east", T_MS + planned_ms, T_MS + newest_ms)
        found.append(clocks.behind_ms("east"))
    assert clocks.behind_ms("west") == 0
    return found


def test_clocks_that_agree_within_some_seconds_agree():
    assert learned((0, 0), (2_000, 0), (10_000, 5_000), (11_000, 11_900)) == [0, 0, 0, 0]


def test_a_clock_that_is_behind_or_ahead_is_known_at_the_second_batch():
    assert learned((HOUR_MS, 0), (HOUR_MS + 1_000, 900)) == [0, HOUR_MS + 100]
    assert learned((0, HOUR_MS), (1_000, HOUR_MS + 1_000)) == [0, -HOUR_MS]


def test_the_last_words_of_a_forwarder_that_ended_teach_nothing():
    assert learned((0, 0), (1_000, 1_000), (HOUR_MS, 2_000), (HOUR_MS + 60_000, HOUR_MS + 60_000)) == [0, 0, 0, 0]


def test_a_clock_that_is_set_right_is_known_at_the_second_batch_too():
    wrong = ((HOUR_MS, 0), (HOUR_MS + 1_000, 1_000))
    right = ((HOUR_MS + 2_000, HOUR_MS + 2_000), (HOUR_MS + 3_000, HOUR_MS + 3_000))
    assert learned(*wrong, *right) == [0, HOUR_MS, HOUR_MS, 0]


def test_a_forwarder_an_hour_behind_is_not_called_late(spark, streams):
    life = life_of("east", losses=0)
    sent = 0

    def job_rows() -> list[JobRow]:
        return [decode_row(line) for line in streams.read("job")]

    def beat() -> JobRow | None:
        nonlocal sent
        life.send(RecordKind.HEARTBEAT, value={"session": "connected", "watch_mode": "persistent"})
        now_ms = time.time_ns() // 1_000_000 - HOUR_MS
        lines = [encode_record(msgspec.structs.replace(record, observed_ms=now_ms)) for record in life.records[sent:]]
        sent = len(life.records)
        streams.append(lines)
        return next(
            (row for row in job_rows() if "east" in row.clusters and row.clusters["east"].clock_behind_ms), None
        )

    with running(spark, streams.config()):
        known = eventually(beat)
    progress = known.clusters["east"]
    assert progress.clock_behind_ms == pytest.approx(HOUR_MS, abs=CLOCKS_AGREE_WITHIN_MS + 10_000)
    assert progress.lag_ms < 30_000
    assert json.loads(streams.read("job")[-1])["clusters"]["east"]["lag_ms"] < 30_000
