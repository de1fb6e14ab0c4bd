"""The work for an answer, counted in calls of Kontrast's functions, because a time would depend on the machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from types import FrameType

import pytest
from starlette.requests import Request

from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import Problem
from dashboards.page.newest_pages import PageConfig, PageState
from dashboards.page.routes import LivePage
from lab.release.dist import PACKAGES
from outputs.reading import ReadingCounts
from outputs.transitions import Transitions
from questions.explain.explanation import Explanation
from questions.memory import Memory
from questions.page.pages import ExplainPartition
from tests.dashboards.recorded_cases import recorded_story
from transport.address import JournalAddress

MOST_CALLS = 215  # of the worst partition, whose preferred leader is away; the median is below 200
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


@pytest.fixture
def live() -> tuple[LivePage, list[PartitionRow]]:
    """Return the page of a recorded cluster, and the partitions of the cluster."""
    story, memory, reading = recorded_story("rack-lost"), Memory(), ReadingCounts()
    for row in story.rows():
        memory.apply(row)
    reading.source_is(up=True)
    reading.caught_up()
    transitions, config = Transitions([JournalAddress(Path("none"))], 1, memory), PageConfig(stale_after_ms=10**15)
    page = LivePage(memory, reading, transitions, config, threading.Event(), str)
    return page, list(memory.partitions(story.cluster).values())


def test_a_partition_is_explained_in_few_calls(live):
    page, asked = live
    assert not all(explained(page, row).is_well for row in asked)  # the releases in rows are read once in a process
    assert {row.problem for row in asked} > {None, Problem.UNDER_MIN_ISR.value, Problem.NO_LIVE_IN_SYNC_REPLICA.value}
    counts = [calls_of(partial(explained, page, row)) for row in asked]
    assert 100 < min(counts) < max(counts) < MOST_CALLS
    assert median(counts) < 200


def test_pages_of_one_moment_share_the_judged_cluster(live):
    page, asked = live
    first, second = (explained(page, row) for row in asked[:2])
    now, then = (page.resources.clusters.at(asked[0].cluster, at_ms) for at_ms in (None, asked[0].time_ms))
    bar = page.resources.shown_cluster(now, first, PageState(version=7, second=100))
    assert page.resources.shown_cluster(now, second, PageState(version=7, second=100)) is bar
    for cluster, version, second_of_page in ((now, 8, 100), (now, 8, 101), (then, 8, 101)):
        shown, bar = bar, page.resources.shown_cluster(cluster, first, PageState(version, second_of_page))
        assert shown is not bar


def explained(page: LivePage, row: PartitionRow) -> Explanation:
    names = {"cluster": row.cluster, "topic": row.topic, "partition": str(row.partition)}
    request = Request({"type": "http", "path_params": names, "query_string": b"", "headers": []})
    answer = page.resources.answer(request, ExplainPartition, page.resources.then(request, ExplainPartition))
    assert isinstance(answer, Explanation)
    return answer
