"""The job's knowledge of forwarders' clocks, which keeps a wrong clock apart from lag."""

from __future__ import annotations

import json
import time

import msgspec
import pytest

from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS, JobRow
from controller.contract.outputs import decode_row
from controller.contract.records import RecordKind, encode_record
from streaming.progress import ClockReading, ForwarderClocks
from streaming.published import Observed
from tests.streaming.cluster_records import life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually

HOUR_MS = 3_600_000
T_MS = 1_700_000_000_000


BOOTED_MS, FORWARDER_BOOTED_MS = T_MS - 5_000_000, T_MS - 7_000_000


def moment(true_ms: int, ahead_ms: int = 0, generation: int = 1) -> Observed:
    """Return the moment of a record by a forwarder whose wall clock is that far ahead."""
    return Observed(generation, T_MS + true_ms + ahead_ms, T_MS + true_ms - FORWARDER_BOOTED_MS)


def reading(true_ms: int, ahead_ms: int = 0) -> ClockReading:
    return ClockReading(T_MS + true_ms + ahead_ms, T_MS + true_ms - BOOTED_MS)


def learned(*batches: tuple[int, int]) -> list[int]:
    """Return the knowledge after each batch, planned and with its last record at these times."""
    clocks = ForwarderClocks()
    found = []
    for planned_ms, last_ms in batches:
        clocks.compare("east", T_MS + planned_ms, moment(planned_ms, last_ms - planned_ms), reading(planned_ms))
        found.append(clocks.behind_ms("east"))
    assert clocks.behind_ms("west") == 0
    return found


def lags(*steps: tuple[int, int], generations: tuple[int, ...] = (), steady: bool = True) -> list[int]:
    """Return the lag of each batch, one a second and written after 200 ms.

    The forwarder's and the job's clocks are that far ahead in it.
    """
    clocks = ForwarderClocks()
    found = []
    for at, (forwarder_ms, job_ms) in enumerate(steps):
        generation = generations[at] if generations else 1
        observed = moment(1000 * at, forwarder_ms, generation)
        if not steady:
            observed = msgspec.structs.replace(observed, steady_ms=-1)
        planned, written = reading(1000 * at + 50, job_ms), reading(1000 * at + 200, job_ms)
        clocks.compare("east", planned.wall_ms, observed, written)
        found.append(clocks.lag_ms("east", observed, written))
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


@pytest.mark.parametrize("together", [False, True], ids=["the forwarder's", "both"])
def test_a_step_of_a_wall_clock_leaves_the_lag_alone(together: bool):
    steps = (0, 0, HOUR_MS, HOUR_MS, HOUR_MS, -HOUR_MS, -HOUR_MS, -HOUR_MS)
    assert lags(*((step, step if together else 0) for step in steps)) == pytest.approx([200] * 8, abs=50)


def test_a_step_of_the_job_s_clock_leaves_the_lag_alone():
    assert lags(*((0, step) for step in (0, 0, HOUR_MS, -HOUR_MS, -HOUR_MS, -HOUR_MS))) == pytest.approx(
        [200] * 6, abs=50
    )


def test_a_step_within_a_batch_is_not_taken_for_a_difference_of_clocks():
    clocks = ForwarderClocks()
    for at in range(6):
        planned, written = reading(1000 * at), reading(1000 * at + 200, HOUR_MS if at == 3 else 0)
        clocks.compare("east", planned.wall_ms, moment(1000 * at), written)
        if at:
            assert clocks.lag_ms("east", moment(1000 * at), written) == 200


def test_a_backlog_is_late_by_the_steady_clocks():
    clocks = ForwarderClocks()
    for at in range(2):
        clocks.compare("east", reading(1000 * at).wall_ms, moment(1000 * at), reading(1000 * at))
    assert clocks.lag_ms("east", moment(2_000), reading(602_000, -HOUR_MS)) == 600_000


def test_a_new_generation_is_compared_by_the_wall_clocks_first():
    assert lags((0, 0), (0, 0), (0, 0), (0, 0), generations=(1, 1, 2, 2)) == [200] * 4
    assert lags((0, 0), (0, 0), (-HOUR_MS, 0), (-HOUR_MS, 0), generations=(1, 1, 2, 2)) == [
        200,
        200,
        HOUR_MS + 200,
        150,
    ]


def test_records_without_a_steady_clock_are_compared_by_the_wall_clocks():
    assert lags((-HOUR_MS, 0), (-HOUR_MS, 0), (-HOUR_MS, 0), steady=False) == [HOUR_MS + 200, 150, 150]


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
