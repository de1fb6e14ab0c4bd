"""A checkpoint and outputs of different ages, after a power cut or after a copy of an old one."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.contract.outputs import OUTPUTS
from streaming.errors import StreamError
from tests.lanes import in_gate
from tests.streaming.checkpoints import drop_newest, forget_state, newest_rows
from tests.streaming.cluster_records import ClusterLife, Streams, life_of
from tests.streaming.power_cut import Disk, Image, recorded, restore

_POINTS = int(os.environ.get("KONTRAST_FAULTS_POWER_CUTS", "30"))
_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20260801"))


def assert_readers_end_right(streams: Streams, life: ClusterLife) -> None:
    """Check that every row exists, and that readers that keep newest rows, or drop known ones, end correctly."""
    outputs, expected = streams.read_all(), life.rows()
    for output in OUTPUTS:
        assert newest_rows(outputs[output]) == newest_rows(expected[output]), output
        assert list(dict.fromkeys(outputs[output])) == list(dict.fromkeys(expected[output])), output


def cut(streams: Streams, work_off, life: ClusterLife, points: int) -> list[Image]:
    """Return possible contents of the disk at this many moments of the job's work."""
    root = streams.checkpoint.parent
    images: list[Image] = []
    chance = random.Random(_SEED)
    forces = 0

    def look(disk: Disk) -> None:
        nonlocal forces
        forces += 1
        # Each moment is as likely as any other to be among those that are kept.
        if len(images) < points:
            images.append(disk.after_a_cut(chance))
        elif (place := chance.randrange(forces)) < points:
            images[place] = disk.after_a_cut(chance)

    with recorded(root, look):
        work_off(streams.config(max_batch_bytes=len(life.lines) * 20))
    assert forces > 2 * points, "too few moments to choose from"
    return images


def apart(tmp_path: Path, life: ClusterLife) -> Streams:
    """Return streams whose source is not on the failing disk."""
    streams = Streams(tmp_path / "disk")
    streams.checkpoint.parent.mkdir()
    streams.input = tmp_path / "records"
    streams.append(life.lines)
    return streams


def outlive(tmp_path: Path, spark: SparkSession, work_off, points: int) -> None:
    life = life_of("east", topics=10, losses=6)
    streams = apart(tmp_path, life)
    images = cut(streams, work_off, life, points)
    assert_readers_end_right(streams, life)
    for number, image in enumerate(images):
        forget_state(spark)
        restore(streams.checkpoint.parent, image)
        try:
            work_off(streams.config())
        except StreamError as error:
            pytest.fail(f"power cut {number}: {error}")
        assert_readers_end_right(streams, life)


def test_a_power_cut_loses_nothing_and_nobody_has_to_do_anything(tmp_path, spark, work_off):
    outlive(tmp_path, spark, work_off, points=1)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_many_power_cuts_lose_nothing(tmp_path, spark, work_off):
    outlive(tmp_path, spark, work_off, _POINTS)


def without_the_newest_entry(streams: Streams, _: Path) -> None:
    drop_newest(streams, 1)


def without_some_entries(streams: Streams, _: Path) -> None:
    drop_newest(streams, 3)


def an_older_copy(streams: Streams, older: Path) -> None:
    shutil.rmtree(streams.checkpoint)
    shutil.copytree(older, streams.checkpoint)


def without_sparks_files(streams: Streams, _: Path) -> None:
    drop_newest(streams, None)


BEHIND = [without_the_newest_entry, without_some_entries, an_older_copy, without_sparks_files]


@pytest.mark.parametrize("make_behind", in_gate(without_the_newest_entry, of=BEHIND))
def test_a_checkpoint_behind_the_outputs_drops_no_rows(streams, spark, work_off, tmp_path, make_behind):
    life = life_of("east", topics=10, losses=3)
    half = len(life.lines) // 2
    for number, lines in enumerate((life.lines[:half], life.lines[half:-20])):
        streams.append(lines)
        work_off(streams.config(max_batch_bytes=5000))
        if number == 0:
            shutil.copytree(streams.checkpoint, tmp_path / "older")
    forget_state(spark)
    make_behind(streams, tmp_path / "older")
    for part in (life.lines[-20:-10], life.lines[-10:]):  # the second goes on from the state that the first left
        streams.append(part)
        work_off(streams.config())
    assert_readers_end_right(streams, life)


@pytest.mark.nightly
def test_outputs_behind_the_checkpoint_are_refused_with_the_way_out(streams, work_off, tmp_path):
    life = life_of("east", topics=4, losses=2)
    half = len(life.lines) // 2
    streams.append(life.lines[:half])
    work_off(streams.config())
    shutil.copytree(streams.outputs, tmp_path / "older")
    streams.append(life.lines[half:-10])
    work_off(streams.config())
    for older in (tmp_path / "older", None):
        shutil.rmtree(streams.outputs)
        if older is not None:
            shutil.copytree(older, streams.outputs)
        streams.append(life.lines[-10:])
        with pytest.raises(StreamError, match=r"lost rows of batches before .*begin again with .*--rebuild"):
            work_off(streams.config())
        before = {path: path.read_bytes() for path in streams.outputs.rglob("*.log")}
        with pytest.raises(StreamError, match="--rebuild"):
            work_off(streams.config())
        assert {path: path.read_bytes() for path in streams.outputs.rglob("*.log")} == before
    work_off(streams.config(), rebuild=True)
    assert newest_rows(streams.read("metadata")) == newest_rows(life.rows()["metadata"])


def cut_at_its_end(journal: Path) -> None:
    (newest,) = sorted(journal.glob("*.log"))[-1:]
    os.truncate(newest, newest.stat().st_size // 2)


@pytest.mark.parametrize("output", in_gate("alerts", of=["alerts", "job"]))
@pytest.mark.parametrize("lose", in_gate(cut_at_its_end, of=[shutil.rmtree, cut_at_its_end]))
def test_each_output_proves_that_it_has_the_rows_before_the_checkpoint(streams, work_off, output, lose):
    """The other outputs are whole, so their newest batches prove nothing about this one."""
    life = life_of("east", topics=4, losses=2)
    streams.append(life.lines[:-10])
    work_off(streams.config())
    lose(streams.outputs / output)
    streams.append(life.lines[-10:])
    with pytest.raises(StreamError, match=rf"outputs/{output} lost rows .*with `kontrast stream --rebuild`"):
        work_off(streams.config())
    work_off(streams.config(), rebuild=True)
    for name in ("alerts", "metadata"):
        assert newest_rows(streams.read(name)) == newest_rows(life.rows()[name])
    work_off(streams.config())
