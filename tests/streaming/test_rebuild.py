"""A job that starts with `--rebuild` at the newest complete read, because its checkpoint cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.contract.outputs import STANDING_OUTPUTS, decode_row
from controller.contract.records import Record, RecordKind, encode_record
from controller.restore.stored_context import STATE_VERSION
from streaming.checkpoint.directory import STATE_FORMAT, Checkpoint
from streaming.config import BrokersConfig
from streaming.errors import StreamError
from streaming.job import check_settings
from streaming.sources.newest_complete_reads import Place, find_complete
from streaming.watchdog import Watchdog
from tests.streaming.cluster_records import Streams, life_of


def _lives(streams: Streams):
    """Return a life with two complete reads, the second by the forwarder's next generation."""
    life = life_of("east", topics=4)
    again = life_of("east", topics=3, losses=1).in_generation(2)
    return life, again


def test_it_begins_at_the_newest_complete_snapshot_and_what_was_said_before_is_void(streams, work_off):
    life, again = _lives(streams)
    streams.append([*life.lines, *again.lines])
    work_off(streams.config())
    before = streams.read_all()
    work_off(streams.config(chunk_count=32), rebuild=True)
    after = streams.read_all()
    expected = again.rows(chunk_count=32)
    for output, rows in after.items():
        assert rows == before[output] + expected[output]
    for output in STANDING_OUTPUTS:
        assert decode_row(after[output][len(before[output])]).subject_key() == "east/beginning"
    assert sorted(path.name for path in streams.checkpoint.glob("spark*")) == ["spark-1"]


def test_a_newer_kontrast_that_cannot_read_the_state_begins_again_by_itself(streams, work_off, caplog, monkeypatch):
    life, again = _lives(streams)
    streams.append([*life.lines, *again.lines])
    work_off(streams.config())
    before = streams.read_all()
    settings = streams.checkpoint / "kontrast.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), STATE_FORMAT: STATE_VERSION - 1}))
    again_at_the_newest = "an older Kontrast. The job begins again at the newest complete read in the source"
    assert again_at_the_newest in check_settings(streams.config())
    with pytest.raises(StreamError, match="was started with chunk count 64, not 32"):
        work_off(streams.config(chunk_count=32))
    watched: list[Path] = []
    monkeypatch.setattr("streaming.job.Watchdog", lambda *of: watched.append(of[1]) or Watchdog(*of))
    work_off(streams.config())
    assert caplog.text.count(again_at_the_newest) == 1
    assert watched == [streams.checkpoint / "spark-1"]
    assert streams.read_all() == {output: before[output] + rows for output, rows in again.rows().items()}
    work_off(streams.config())
    assert caplog.text.count(again_at_the_newest) == 1


def test_a_grown_fleet_gets_more_tasks_by_itself(streams, work_off, caplog):
    life, other = life_of("east", topics=1), life_of("west", topics=1)
    streams.append(life.lines)
    work_off(streams.config(master="local[2]", clusters={"east": BrokersConfig()}))
    streams.append(other.lines)
    for _ in range(2):
        work_off(streams.config(master="local[2]", clusters={"east": BrokersConfig(), "west": BrokersConfig()}))
    assert caplog.text.count("was started with 1 shuffle partitions, not 2. The job begins again") == 1
    assert json.loads((streams.checkpoint / "kontrast.json").read_text())["shuffle partitions"] == 2


def test_more_shuffle_partitions_for_a_grown_fleet_begin_again_by_themselves(streams, work_off, caplog):
    life, again = _lives(streams)
    other = life_of("west", topics=2, losses=1)
    streams.append([*life.lines, *again.lines, *other.lines])
    work_off(streams.config())
    before = streams.read_all()
    work_off(streams.config(shuffle_partitions=3))
    assert (
        "was started with 1 shuffle partitions, not 3. The job begins again at the newest complete read" in caplog.text
    )
    expected = {"east": again.rows(), "west": other.rows()}
    for output, rows in streams.read_all().items():
        repeated = rows[len(before[output]) :]
        for cluster, wanted in expected.items():
            assert [row for row in repeated if f'"{cluster}"'.encode() in row] == wanted[output]
        assert len(repeated) == sum(len(wanted[output]) for wanted in expected.values())


def test_it_goes_on_from_there_as_any_checkpoint_does(streams, work_off):
    life, again = _lives(streams)
    streams.append([*life.lines, *again.lines[:-10]])
    work_off(streams.config())
    work_off(streams.config(), rebuild=True)
    before = streams.read_all()
    streams.append(again.lines[-10:])
    work_off(streams.config())
    expected = again.rows()
    for output, rows in streams.read_all().items():
        assert (
            rows[len(before[output]) :] == expected[output][len(expected[output]) - len(rows) + len(before[output]) :]
        )
        assert rows[-1:] == expected[output][-1:]


def test_a_snapshot_that_has_not_ended_is_not_begun_with(streams, work_off):
    life, again = _lives(streams)
    streams.append([*life.lines, *again.lines[:8]])
    work_off(streams.config())
    before = streams.read_all()
    work_off(streams.config(), rebuild=True)
    assert streams.read_all() == {output: rows + rows for output, rows in before.items()}


def test_without_a_complete_snapshot_it_begins_with_what_there_is(streams, work_off, caplog):
    streams.append(life_of("east", topics=4).lines[:8])
    work_off(streams.config())
    before = streams.read_all()
    work_off(streams.config(), rebuild=True)
    assert "holds no complete read of cluster east" in caplog.text
    assert streams.read_all() == {output: rows + rows for output, rows in before.items()}


def test_what_is_before_a_forgotten_clusters_end_is_not_gone_back_to():
    life = life_of("east", topics=2)
    end = Record(cluster="east", generation=2, seq=0, kind=RecordKind.FORGOTTEN, observed_ms=1)
    lines = [*life.lines, encode_record(end)]
    placed = [(Place(0, offset), line) for offset, line in enumerate(lines)]
    assert find_complete(placed) == {"east": None}
    third = life.in_generation(3)
    placed += [(Place(0, len(lines) + offset), line) for offset, line in enumerate(third.lines)]
    assert find_complete(placed) == {"east": Place(0, len(lines))}


def test_what_an_interrupted_rebuild_left_is_removed_by_the_next_one(streams, work_off):
    life, _ = _lives(streams)
    streams.append(life.lines)
    work_off(streams.config())
    (streams.checkpoint / "spark-9").mkdir()
    work_off(streams.config(), rebuild=True)
    assert [path.name for path in streams.checkpoint.glob("spark*")] == ["spark-1"]
    assert json.loads((streams.checkpoint / "kontrast.json").read_text())["rebuilds"] == 1
    with Checkpoint(streams.checkpoint) as checkpoint:
        assert checkpoint.spark_directory.name == "spark-1"
