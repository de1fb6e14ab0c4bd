"""The verdict of a soak, which names a reading that grows, and not one that only moves."""

from __future__ import annotations

import random

import pytest

from tests.soak.measurements import Sample
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
