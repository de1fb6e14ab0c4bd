"""Recorded clusters at the moment of a case that the live page must show, moved to the present."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from controller.step import steps
from tests.conformance.recording import unpack
from tests.dashboards.page_cases import MINUTE_MS, Story


class Moment(NamedTuple):
    """A moment of a recording, and how long ago the picture has it."""

    recording: str
    seconds: int  # since the recording's first record
    ago_ms: int = 5_000


MOMENTS: Final = {
    "broker-lost": Moment("dev39", 75),  # broker 3 was killed 6 s ago, and took partitions with it
    "shut-down": Moment("dev39", 31),
    "ghost": Moment("fuzz39a", 79),  # /controller names a broker that never took over
    "migration": Moment("migration39", 350),  # the dual write
    "zookeeper-lost": Moment("dev39", 75, MINUTE_MS),
    "watch-dead": Moment("dev39", 75, 2 * MINUTE_MS),
    "job-dead": Moment("dev39", 75, 2 * MINUTE_MS),
}


def recorded_story(name: str) -> Story:
    """Return the cluster of this name up to its moment. Its story can go on with heartbeats alone."""
    moment = MOMENTS[name]
    with tempfile.TemporaryDirectory() as directory:
        records = list(unpack(moment.recording, Path(directory)).records())
    begin_ms = records[0].observed_ms
    records = [record for record in records if record.observed_ms <= begin_ms + 1_000 * moment.seconds]
    later_ms = time.time_ns() // 1_000_000 - moment.ago_ms - records[-1].observed_ms
    story = Story(name)
    outcome = steps(
        story.context,
        [
            msgspec.structs.replace(record, cluster=name, observed_ms=record.observed_ms + later_ms)
            for record in records
        ],
    )
    story.context, story.effects = outcome.context, list(outcome.effects)
    newest = records[-1]
    story.generation, story.seq, story.zxid = newest.generation, newest.seq, max(record.zxid for record in records)
    story.now_ms = newest.observed_ms + later_ms
    story.heartbeat(1)  # with the counts of the moment
    return story
