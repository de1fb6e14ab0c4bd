"""Recorded clusters at the moment of a case that the live page must show, moved to the present."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from controller.contract.records import Record
from controller.step import steps
from tests.conformance.recording import unpack
from tests.dashboards.page_cases import MINUTE_MS, Story


class ShownMoment(NamedTuple):
    """A moment of a recording, and how long ago the picture has it."""

    recording: str
    seconds: int  # since the recording's first record
    ago_ms: int = 5_000


MOMENTS: Final = {
    "healthy": ShownMoment("racks39", 25),
    "broker-lost": ShownMoment("racks39", 80),
    "shut-down": ShownMoment("racks39", 38),
    "rack-lost": ShownMoment("racks39", 125),
    "long-name": ShownMoment("racks39", 182),
    "no-controller": ShownMoment("racks39b", 42),
    "brokers-30": ShownMoment("racks39b", 92),
    "topics-2000": ShownMoment("racks39c", 108),
    "ghost": ShownMoment("fuzz39a", 79),
    "migration": ShownMoment("migration39", 350),
    "zookeeper-lost": ShownMoment("racks39", 80, MINUTE_MS),
    "watch-dead": ShownMoment("racks39", 80, 2 * MINUTE_MS),
    "job-dead": ShownMoment("racks39", 80, 2 * MINUTE_MS),
}
"""The clusters by name. docs/explanation/page-compared.md repeats the moments of pictures."""


def recorded_story(name: str) -> Story:
    """Return the cluster of this name up to its moment. Its story can go on with heartbeats alone."""
    moment = MOMENTS[name]
    records = _records(moment.recording)
    end_ms = records[0].observed_ms + 1_000 * moment.seconds
    later_ms = time.time_ns() // 1_000_000 - moment.ago_ms - end_ms
    moved = [
        msgspec.structs.replace(record, cluster=name, observed_ms=record.observed_ms + later_ms)
        for record in records
        if record.observed_ms <= end_ms
    ]
    story = Story(name)
    outcome = steps(story.context, moved)
    story.context, story.effects = outcome.context, list(outcome.effects)
    newest = moved[-1]
    story.generation, story.seq, story.zxid = newest.generation, newest.seq, max(record.zxid for record in moved)
    story.now_ms = end_ms + later_ms
    story.heartbeat(1)  # with the counts of the moment
    return story


def _records(recording: str) -> Sequence[Record]:
    with tempfile.TemporaryDirectory() as directory:
        return list(unpack(recording, Path(directory)).records())
