"""The verdict of a soak, which names a reading that grows, and not one that only moves."""

from __future__ import annotations

import random

import pytest

from tests.soak.measurements import HEAP_TAKEN, Sample
from tests.soak.verdict import judge

MEGABYTE = 1024 * 1024


def samples(values, *, reading, life="1@1", begin=0.0):
    return [Sample(begin + 60.0 * minute, "serve", life, {reading: int(value)}) for minute, value in enumerate(values)]


def grown(of):
    return [each.sentence() for each in judge(of) if each.grew]


@pytest.mark.parametrize(
    ("reading", "start", "a_minute"),
    [("rss_bytes", 80 * MEGABYTE, MEGABYTE / 4), ("open_files", 40, 1), ("threads", 9, 1)],
)
def test_a_steady_growth_is_a_violation(reading, start, a_minute):
    (sentence,) = grown(samples([start + a_minute * minute for minute in range(60)], reading=reading))
    assert sentence.startswith(f"serve: {reading} grew from ")


def test_readings_that_only_move_are_no_violation():
    draw = random.Random(1)
    moving = [80 * MEGABYTE + draw.uniform(-1, 1) * 8 * MEGABYTE for _ in range(60)]
    assert grown(samples(moving, reading="rss_bytes")) == []


@pytest.mark.parametrize(("an_hour", "violations"), [(40, 0), (600, 1)])
def test_files_that_come_and_go_may_swing_and_not_add_up(an_hour, violations):
    files = [240 + 60 * (minute % 7) + an_hour * minute / 60 for minute in range(60)]
    assert len(grown(samples(files, reading="checkpoint_files"))) == violations


def test_growth_within_the_warm_up_is_no_violation():
    warming = [min(minute, 8) * 10 * MEGABYTE for minute in range(60)]
    assert grown(samples(warming, reading="rss_bytes")) == []


def test_each_life_begins_anew_and_the_longest_is_judged():
    short = samples([minute * 10 * MEGABYTE for minute in range(20)], reading="rss_bytes")
    long = samples([80 * MEGABYTE] * 40, reading="rss_bytes", life="2@2", begin=1200.0)
    (judged,) = judge([*short, *long])
    assert (judged.grew, judged.first) == (False, 80 * MEGABYTE)


@pytest.mark.parametrize(("leak_an_hour", "violations"), [(0, 0), (600, 1)])
def test_files_are_judged_over_whole_cycles_of_cleaning(leak_an_hour, violations):
    """The readings end in the middle of a cycle, whose files are no leak."""
    files = [240 + 90 * (minute % 13) + leak_an_hour * minute / 60 for minute in range(77)]
    assert len(grown(samples(files, reading="checkpoint_files"))) == violations


def test_files_that_nothing_cleans_are_a_violation():
    assert len(grown(samples([240 + 10 * minute for minute in range(60)], reading="checkpoint_files"))) == 1


def of_java(full_at, leak_a_minute=0.0):
    """Return samples of a process whose memory grows until its heap is full at this minute of 60, and then leaks."""
    return [
        Sample(
            60.0 * minute,
            "java",
            "1@1",
            {
                "rss_bytes": int((300 + 10 * min(minute, full_at) + leak_a_minute * minute) * MEGABYTE),
                HEAP_TAKEN: min(950, 400 + 550 * minute // full_at),
            },
        )
        for minute in range(60)
    ]


@pytest.mark.parametrize(
    ("full_at", "leak", "violations"),
    [(20, 0.0, 0), (28, 0.0, 0), (20, 1.0, 1), (50, 0.0, 0)],
)
def test_javas_memory_is_judged_once_its_heap_was_full_for_half_of_the_time(full_at, leak, violations):
    assert len(grown(of_java(full_at, leak))) == violations
