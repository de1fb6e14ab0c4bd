"""Durations and moments in sentences."""

import pytest

from wording.times import duration, exact_moment, lasting, moment, near, time_of_day

A_MOMENT_MS = 1_795_558_439_120


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (43, "43 ms"),
        (999.9, "999 ms"),
        (1_000, "1 s"),
        (1_299, "1.2 s"),
        (9_999, "9.9 s"),
        (42_900, "42 s"),
        (60_000, "1 min"),
        (1_023_000, "17 min 3 s"),
        (7_200_000, "2 h"),
        (7_203_000, "2 h"),
        (11_160_000, "3 h 6 min"),
        (273_600_000, "3 d 4 h"),
        (86_400_000 * 400, "400 d"),
    ],
)
def test_a_duration_has_one_format(ms, words):
    assert duration(ms) == words


def test_a_duration_may_have_one_unit():
    assert duration(1_023_000, units=1) == "17 min"


def test_moments_are_in_utc_to_the_second():
    assert moment(A_MOMENT_MS) == "2026-11-24 22:13:59Z"
    assert exact_moment(A_MOMENT_MS) == "2026-11-24 22:13:59.120Z"
    assert time_of_day(A_MOMENT_MS) == "22:13:59Z"


@pytest.mark.parametrize("ms", [-1, 2**63])
def test_a_moment_beyond_the_calendar_is_its_end(ms):
    assert moment(ms) in ("1970-01-01 00:00:00Z", "9999-12-31 23:59:59Z")


def test_a_moment_of_another_day_has_its_date():
    assert near(A_MOMENT_MS, A_MOMENT_MS + 86_399_999) == "22:13:59Z"
    assert near(A_MOMENT_MS, A_MOMENT_MS + 86_400_000) == "2026-11-24 22:13:59Z"


def test_a_start_has_the_time_since():
    assert lasting(A_MOMENT_MS, A_MOMENT_MS + 1_023_456) == "for 17 min 3 s, since 2026-11-24 22:13:59Z"
    assert lasting(A_MOMENT_MS, A_MOMENT_MS + 3_456, exact=False) == "for at least 3 s, since 2026-11-24 22:13:59Z"
    assert lasting(None, A_MOMENT_MS) == "since an unknown time"
