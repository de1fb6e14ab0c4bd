"""A defect in the core of a real job. It quarantines the cluster of the affected records, but no other.

Python's own `sitecustomize` plants the defect, in Spark's Python processes as in any other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow
from controller.contract.outputs import OUTPUTS, decode_row
from controller.contract.records import RecordKind
from controller.contract.row import Row
from tests.streaming.cluster_records import ClusterLife, Streams, life_of
from tests.waiting import eventually
from transport.topics import complete_read_requested_ns

pytestmark = pytest.mark.xdist_group("pipelines")

ROOT = Path(__file__).parent.parent.parent
# Over one topic of one cluster, because no known input makes the core fail.
PLANTED = """
import controller.step as core

_sound = core.steps

def steps(context, records):
    if any(record.path == "/brokers/topics/cursed" for record in records):
        raise OverflowError("int too big to convert")
    return _sound(context, records)

core.steps = steps
"""
RUN = """
import sys, threading
from pathlib import Path
from streaming.config import StreamConfig
from streaming.job import run
from transport.address import JournalAddress

source, sink, checkpoint = sys.argv[1:]
run(StreamConfig(source=JournalAddress(Path(source)), sink=JournalAddress(Path(sink)), checkpoint=checkpoint,
                 master="local[2]"), threading.Event())
"""


@contextmanager
def running_with_the_defect(streams: Streams, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    (directory / "sitecustomize.py").write_text(PLANTED)
    where = os.pathsep.join((str(directory), str(ROOT)))
    paths = [str(path) for path in (streams.input, streams.outputs, streams.checkpoint)]
    process = subprocess.Popen([sys.executable, "-c", RUN, *paths], cwd=ROOT, env={**os.environ, "PYTHONPATH": where})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def rows_of(streams: Streams, output: str, cluster: str) -> list[Row]:
    rows = (decode_row(line) for line in streams.read(output))
    return [row for row in rows if isinstance(row, Row) and row.cluster == cluster]


def is_at(streams: Streams, life: ClusterLife, *, ready: bool) -> bool:
    gauges = [row for row in rows_of(streams, "gauges", life.cluster) if isinstance(row, GaugesRow)]
    last = life.records[-1]
    at = (last.generation, last.seq)
    return bool(gauges) and (gauges[-1].generation, gauges[-1].seq, gauges[-1].ready) == (*at, ready)


def quarantines(streams: Streams) -> list[str]:
    alerts = [row for row in rows_of(streams, "alerts", "east") if isinstance(row, AlertRow)]
    return [alert.state for alert in alerts if alert.alert == "ClusterQuarantined"]


def cursed(life: ClusterLife) -> ClusterLife:
    life.send(RecordKind.NODE, "/brokers/topics/cursed", {"version": 2, "partitions": {"0": [1, 2]}})
    life.send(RecordKind.HEARTBEAT, value={"session": "connected", "watch_mode": "persistent"})
    return life


def test_its_cluster_is_given_up_others_go_on_and_a_complete_read_ends_it(streams: Streams, tmp_path: Path):
    well, west = life_of("east", topics=6, losses=1), life_of("west", topics=6, losses=2)
    east = cursed(life_of("east", topics=6, losses=1))
    half = len(west.lines) // 2
    directory = tmp_path / "planted"
    directory.mkdir()
    streams.append([*west.lines[:half], *well.lines])
    with running_with_the_defect(streams, directory) as process:

        def still_runs() -> None:
            assert process.poll() is None, "the job ended"

        eventually(lambda: is_at(streams, well, ready=True), meanwhile=still_runs)
        # In one batch with the failing records. The other cluster's rows are published as usual.
        streams.append([*east.lines[len(well.lines) :], *west.lines[half:]])
        eventually(lambda: is_at(streams, east, ready=False), meanwhile=still_runs)
        eventually(lambda: is_at(streams, west, ready=True), meanwhile=still_runs)
        assert quarantines(streams) == ["open"]
        eventually(lambda: complete_read_requested_ns(streams.input) > 0, meanwhile=still_runs)
        again = cursed(life_of("east", topics=6, losses=1)).in_generation(2)
        streams.append(again.lines)
        eventually(lambda: is_at(streams, again, ready=False), meanwhile=still_runs)
        mended = life_of("east", topics=6, losses=1).in_generation(3)
        streams.append(mended.lines)
        eventually(lambda: is_at(streams, mended, ready=True), meanwhile=still_runs)
    assert quarantines(streams)[-1] == "resolved"
    for output in OUTPUTS:
        assert [line for line in streams.read(output) if json.loads(line)["cluster"] == "west"] == west.rows()[output]
    batches = [decode_row(line).clusters for line in streams.read("job")]
    together = {"east": len(east.lines) - len(well.lines), "west": len(west.lines) - half}
    assert together in [{cluster: did.records for cluster, did in batch.items()} for batch in batches]
    kept = [json.loads(row.data).get("path") for row in rows_of(streams, "refused", "east")]
    assert kept.count("/brokers/topics/cursed") == 1  # of two failures at the same place
    expected = {line for line in mended.rows()["metadata"] if b'"topic"' in line}
    assert expected <= set(streams.read("metadata"))
