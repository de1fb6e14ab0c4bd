"""The verdict of a soak, which names a reading that grows, and not one that only moves."""

from __future__ import annotations

import random

import pytest

from tests.soak.measurements import HEAP_TAKEN, FewestFiles, Sample
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


def test_growth_within_the_warm_up_is_no_violation():
    warming = [min(minute, 8) * 10 * MEGABYTE for minute in range(60)]
    assert grown(samples(warming, reading="rss_bytes")) == []


def test_each_life_begins_anew_and_the_longest_is_judged():
    short = samples([minute * 10 * MEGABYTE for minute in range(20)], reading="rss_bytes")
    long = samples([80 * MEGABYTE] * 40, reading="rss_bytes", life="2@2", begin=1200.0)
    (judged,) = judge([*short, *long])
    assert (judged.grew, judged.first) == (False, 80 * MEGABYTE)


@pytest.mark.parametrize(("leak_an_hour", "violations"), [(0, 0), (600, 1)])
def test_files_that_are_cleaned_are_judged_by_the_fewest_of_two_minutes(leak_an_hour, violations):
    """A round's end falls anywhere between two cleanings, whose files are no leak."""
    files, readings = FewestFiles(), []
    for second in range(5400):
        files.note(240 + 8 * (second % 60) + leak_an_hour * second // 3600, 1)
        if second % 47 == 0:
            readings.append(Sample(float(second), "on disk", "", {"checkpoint_files": files.fewest()[0]}))
    assert len(grown(readings)) == violations


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
