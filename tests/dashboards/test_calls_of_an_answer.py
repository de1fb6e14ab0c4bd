"""The work for an answer, counted in calls of Kontrast's functions, because a time would depend on the machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from types import FrameType

from starlette.requests import Request

from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import Problem
from dashboards.kept_rows.reading import ReadingCounts
from dashboards.kept_rows.transitions import Transitions
from dashboards.page.config import PageConfig
from dashboards.page.routes import LivePage
from deploy.dist import PACKAGES
from questions.explain.explanation import Explanation
from questions.memory import Memory
from tests.dashboards.recorded_cases import recorded_story
from transport.address import JournalAddress

MOST_CALLS = 220  # of the worst partition, whose preferred leader is away; the median is below 200
ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / package}/" for package in PACKAGES)


def calls_of(question: Callable[[], object]) -> int:
    """Return how many calls of Kontrast's functions the answer takes."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(OURS)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        question()
    finally:
        sys.setprofile(before)
    return count


def test_a_partition_is_explained_in_few_calls():
    story, memory, reading = recorded_story("rack-lost"), Memory(), ReadingCounts()
    for row in story.rows():
        memory.apply(row)
    reading.source_is(up=True)
    reading.caught_up()
    transitions, config = Transitions([JournalAddress(Path("none"))], 1, memory), PageConfig(stale_after_ms=10**15)
    page = LivePage(memory, reading, transitions, config, threading.Event(), str)
    asked = list(memory.partitions(story.cluster).values())
    assert not all(explained(page, row).is_well for row in asked)  # the releases in rows are read once in a process
    assert {row.problem for row in asked} > {None, Problem.UNDER_MIN_ISR.value, Problem.NO_LIVE_IN_SYNC_REPLICA.value}
    counts = [calls_of(partial(explained, page, row)) for row in asked]
    assert 100 < min(counts) < max(counts) < MOST_CALLS
    assert median(counts) < 200


def explained(page: LivePage, row: PartitionRow) -> Explanation:
    names = {"cluster": row.cluster, "topic": row.topic, "partition": str(row.partition)}
    return page.resources.partition(Request({"type": "http", "path_params": names, "query_string": b"", "headers": []}))
