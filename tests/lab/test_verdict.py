"""The verdict of a soak, which names a reading that grows, and not one that only moves."""

from __future__ import annotations

import os
import random
import time

import pytest

from lab.soak.measurements import HEAP_BYTES, HEAP_TAKEN, SMALL_OBJECTS, Sample, old_files
from lab.soak.verdict import judge

MEGABYTE = 1024 * 1024


def each_minute(readings, *, life="1@1", begin=0.0):
    return [Sample(begin + 60.0 * minute, "serve", life, each) for minute, each in enumerate(readings)]


def samples(values, *, reading, **of):
    return each_minute([{reading: int(value)} for value in values], **of)


def grown(of):
    return [each.sentence() for each in judge(of) if each.grew]


@pytest.mark.parametrize(("reading", "start", "a_minute"), [("rss_bytes", 80 * MEGABYTE, 2**18), ("threads", 9, 1)])
def test_a_steady_growth_is_a_violation(reading, start, a_minute):
    (sentence,) = grown(samples([start + a_minute * minute for minute in range(60)], reading=reading))
    assert sentence.startswith(f"serve: {reading} grew from ")


def test_readings_that_only_move_and_growth_within_the_warm_up_are_no_violation():
    draw = random.Random(1)
    moving = [80 * MEGABYTE + draw.uniform(-1, 1) * 8 * MEGABYTE for _ in range(60)]
    for readings in (moving, [min(minute, 8) * 10 * MEGABYTE for minute in range(60)]):
        assert grown(samples(readings, reading="rss_bytes")) == []


def test_each_life_begins_anew_and_the_longest_is_judged():
    short = samples([minute * 10 * MEGABYTE for minute in range(20)], reading="rss_bytes")
    long = samples([80 * MEGABYTE] * 40, reading="rss_bytes", life="2@2", begin=1200.0)
    (judged,) = judge([*short, *long])
    assert (judged.grew, judged.first) == (False, 80 * MEGABYTE)


@pytest.mark.parametrize(
    ("heap_a_minute", "objects_a_minute", "readings"),
    [(0, 0, []), (MEGABYTE / 4, 0, ["heap_bytes"]), (0, 2_000, ["small_objects"])],
)
def test_live_memory_is_judged_and_gaps_between_objects_are_not(heap_a_minute, objects_a_minute, readings):
    of = [
        {
            "rss_bytes": int((95 + 0.5 * minute) * MEGABYTE),
            HEAP_BYTES: int(20 * MEGABYTE + heap_a_minute * minute),
            SMALL_OBJECTS: 500_000 + objects_a_minute * minute,
        }
        for minute in range(60)
    ]
    assert [each.reading for each in judge(each_minute(of)) if each.grew] == readings


@pytest.mark.parametrize(("kept_a_minute", "violations"), [(0, 0), (0.2, 1)])
def test_files_are_judged_by_what_a_cleaning_leaves(kept_a_minute, violations):
    """Cleanings come each three minutes, and meanwhile more files wait for them with each hour."""
    waiting = [24 + (minute % 3) * minute / 6 + kept_a_minute * minute for minute in range(90)]
    assert len(grown(samples(waiting, reading="temporary_files"))) == violations


@pytest.mark.parametrize(("kept_an_hour", "violations"), [(0, 0), (600, 1)])
def test_only_files_that_no_cleaning_takes_are_a_leak(tmp_path, monkeypatch, kept_an_hour, violations):
    """Files of batches live for a minute, more of them with each minute, because there is less and less load."""
    readings, written, now_seconds = [], 0, time.time()
    monkeypatch.setattr("lab.soak.measurements.time.time", lambda: now_seconds)
    for minute in range(90):
        now_seconds += 60
        for file in tmp_path.glob("batch-*"):
            file.unlink()
        names = [f"batch-{number}" for number in range(100 + 2 * minute)]
        names += [f"kept-{written + number}" for number in range(kept_an_hour // 60)]
        written += kept_an_hour // 60
        for name in names:
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (now_seconds, now_seconds))
        readings.append(Sample(60.0 * minute, "on disk", "", old_files(tmp_path, "checkpoint")))
    assert len(grown(readings)) == violations


def of_java(full_at, leak_a_minute=0.0):
    """Return samples of a process whose memory grows until its heap is full at this minute of 60, and then leaks."""
    rss = [int((300 + 10 * min(minute, full_at) + leak_a_minute * minute) * MEGABYTE) for minute in range(60)]
    taken = [min(950, 400 + 550 * minute // full_at) for minute in range(60)]
    return each_minute([{"rss_bytes": size, HEAP_TAKEN: part} for size, part in zip(rss, taken, strict=True)])


@pytest.mark.parametrize(("full_at", "leak", "violations"), [(20, 0.0, 0), (28, 0.0, 0), (20, 1.0, 1), (50, 0.0, 0)])
def test_javas_memory_is_judged_once_its_heap_was_full_for_half_of_the_time(full_at, leak, violations):
    assert len(grown(of_java(full_at, leak))) == violations
