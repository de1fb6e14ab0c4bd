"""The checkpoint on a file system of Hadoop, through Hadoop's own for this machine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streaming.checkpoint.directory import Checkpoint, Fence
from streaming.checkpoint.place import HadoopPath, hadoop_path, remove_directory, replace_content
from streaming.errors import StreamError
from streaming.job import prepare
from tests.streaming.cluster_records import life_of

pytestmark = pytest.mark.xdist_group("pipelines")


@pytest.fixture(params=["pathlib", "Hadoop"])
def place(request, spark, tmp_path):
    directory = tmp_path / "place"
    return directory if request.param == "pathlib" else hadoop_path(spark, directory.as_uri())


def test_a_path_of_hadoop_is_like_one_of_pathlib(place, tmp_path):
    (tmp_path / "place").mkdir()
    file = place / "one"
    assert (file.name, str(file).endswith("/place/one"), file.with_name("two").name) == ("one", True, "two")
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()
    for content in (b"\x00\xff", b"again"):
        replace_content(file, content)
        assert file.read_bytes() == content
    assert [path.name for path in place.glob("o*")] == ["one"]
    assert [path.name for path in (place / "missing").glob("*")] == []
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    remove_directory(place)
    assert not place.exists()


def test_a_checkpoint_on_hadoop_is_held_by_its_newest_driver(spark, tmp_path):
    place = hadoop_path(spark, (tmp_path / "checkpoint").as_uri())
    with Checkpoint(place) as first, Checkpoint(place) as second:
        older, newer = Fence([first.directory]), Fence([second.directory])
        newer.require()
        with pytest.raises(StreamError, match="another job has started on file:"):
            older.require()


@pytest.mark.parametrize(
    ("uri", "reason"), [("s3a://bucket/kontrast", "S3A.* not found"), ("gopher://host/kontrast", "gopher")]
)
def test_a_file_system_without_a_jar_is_one_sentence(spark, uri, reason):
    with pytest.raises(StreamError, match=f"checkpoint {uri} cannot be used .*{reason}.*hadoop_directory") as refused:
        hadoop_path(spark, uri)
    assert "\n" not in str(refused.value)


@pytest.mark.deploy
def test_a_job_goes_on_from_hadoop_and_begins_again_with_other_shuffle_partitions(spark, streams, tmp_path, caplog):
    def work_off(**changes):
        stop = threading.Event()
        with prepare(streams.config(**changes), stop, place) as job:
            job.stream(spark, stop, available_now=True)

    place = hadoop_path(spark, (tmp_path / "checkpoint").as_uri())
    assert isinstance(place, HadoopPath)
    life = life_of("east", topics=4)
    half = len(life.lines) // 2
    streams.append(life.lines[:half])
    work_off()
    streams.append(life.lines[half:])
    work_off()
    assert streams.read_all() == life.rows()
    assert not list(Path(tmp_path / "checkpoint").glob("*.lock"))
    streams.append(life.in_generation(2).lines)
    work_off(shuffle_partitions=3)
    assert (
        "was started with 1 shuffle partitions, not 3. The job begins again at the newest complete read" in caplog.text
    )
    assert [path.name for path in place.glob("spark*")] == ["spark-1"]
    again = life.in_generation(2).rows()
    for output, rows in streams.read_all().items():
        assert rows[-len(again[output]) :] == again[output]
