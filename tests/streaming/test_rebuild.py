"""A job that starts with `--rebuild` at the newest complete read, because its checkpoint cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.contract.outputs import STANDING_OUTPUTS, decode_row
from controller.restore.stored_context import STATE_VERSION
from streaming.checkpoint.directory import STATE_FORMAT, Checkpoint
from streaming.config import BrokersConfig
from streaming.errors import StreamError
from streaming.job import check_settings
from streaming.watchdog import Watchdog
from tests.streaming.cluster_records import life_of


def _lives():
    """Return a life with two complete reads, the second by the forwarder's next generation."""
    life = life_of("east", topics=4)
    again = life_of("east", topics=3, losses=1).in_generation(2)
    return life, again


def test_it_begins_at_the_newest_complete_snapshot_and_goes_on(streams, work_off, caplog, monkeypatch):
    """What was published before is void. A state of an older Kontrast is rebuilt without being asked."""
    life, again = _lives()
    streams.append([*life.lines, *again.lines[:-10]])
    work_off(streams.config())
    before = streams.read_all()
    (streams.checkpoint / "spark-9").mkdir()  # left by an interrupted rebuild
    work_off(streams.config(chunk_count=32), rebuild=True)
    assert [path.name for path in streams.checkpoint.glob("spark*")] == ["spark-1"]
    with Checkpoint(streams.checkpoint) as checkpoint:
        assert (checkpoint.spark_directory.name, checkpoint.settings()["rebuilds"]) == ("spark-1", 1)
    streams.append(again.lines[-10:])
    work_off(streams.config(chunk_count=32))
    expected = again.rows(chunk_count=32)
    after = streams.read_all()
    assert after == {output: before[output] + rows for output, rows in expected.items()}
    for output in STANDING_OUTPUTS:
        assert decode_row(after[output][len(before[output])]).subject_key() == "east/beginning"

    settings = streams.checkpoint / "kontrast.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), STATE_FORMAT: STATE_VERSION - 1}))
    again_at_the_newest = "an older Kontrast. The job begins again at the newest complete read in the source"
    assert again_at_the_newest in check_settings(streams.config(chunk_count=32))
    with pytest.raises(StreamError, match="was started with chunk count 32, not 64"):
        work_off(streams.config())
    watched: list[Path] = []
    monkeypatch.setattr("streaming.job.Watchdog", lambda *of: watched.append(of[1]) or Watchdog(*of))
    for _ in range(2):  # the second time from the new state
        work_off(streams.config(chunk_count=32))
        assert caplog.text.count(again_at_the_newest) == 1
        assert streams.read_all() == {output: after[output] + rows for output, rows in expected.items()}
    assert watched == [streams.checkpoint / "spark-2"] * 2


def test_more_shuffle_partitions_for_a_grown_fleet_begin_again_by_themselves(streams, work_off, caplog):
    life, again = _lives()
    other = life_of("west", topics=2, losses=1)
    streams.append([*life.lines, *again.lines, *other.lines])
    work_off(streams.config(clusters={"east": BrokersConfig()}))
    before = streams.read_all()
    work_off(streams.config(clusters={"east": BrokersConfig(), "west": BrokersConfig()}))
    assert (
        "was started with 1 shuffle partitions, not 2. The job begins again at the newest complete read" in caplog.text
    )
    assert json.loads((streams.checkpoint / "kontrast.json").read_text())["shuffle partitions"] == 2
    expected = {"east": again.rows(), "west": other.rows()}
    for output, rows in streams.read_all().items():
        repeated = rows[len(before[output]) :]
        for cluster, wanted in expected.items():
            assert [row for row in repeated if f'"{cluster}"'.encode() in row] == wanted[output]
        assert len(repeated) == sum(len(wanted[output]) for wanted in expected.values())


@pytest.mark.nightly
def test_without_a_complete_snapshot_it_begins_with_what_there_is(streams, work_off, caplog):
    streams.append(life_of("east", topics=4).lines[:8])
    work_off(streams.config())
    before = streams.read_all()
    work_off(streams.config(), rebuild=True)
    assert "holds no complete read of cluster east" in caplog.text
    assert streams.read_all() == {output: rows + rows for output, rows in before.items()}
