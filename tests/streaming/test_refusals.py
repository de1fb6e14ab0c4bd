"""Impossible jobs, refused in one sentence before any start or change."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from streaming.checkpoint.directory import EPOCH_FILE, Checkpoint, Fence
from streaming.checkpoint.files import drop_torn, fruitless_starts
from streaming.errors import StreamError
from streaming.job import check_settings, prepare
from streaming.spark.failure import stream_error
from transport.address import JournalAddress, KafkaAddress
from transport.journal import JournalWriter


def _prepare(config, *, rebuild=False):
    with prepare(config, threading.Event(), lock_wait_seconds=0, rebuild=rebuild):
        pass


def _files(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunk_count": 32}, "chunk count 64, not 32"),
        ({"source": JournalAddress(Path("/elsewhere"))}, "not journal:/elsewhere"),
    ],
)
def test_a_checkpoint_that_was_started_with_other_settings_is_refused(streams, changes, words):
    _prepare(streams.config())
    before = _files(streams.checkpoint)
    with pytest.raises(StreamError, match=f"{words}. Give that value again, or begin .* --rebuild`"):
        _prepare(streams.config(**changes))
    assert _files(streams.checkpoint) == before
    _prepare(streams.config())


def test_outputs_cannot_be_sent_elsewhere_in_the_middle(streams, tmp_path):
    _prepare(streams.config())
    with pytest.raises(StreamError, match="was started with sink journal:"):
        _prepare(streams.config(sink=JournalAddress(tmp_path / "other")))


def test_a_directory_that_holds_something_else_is_refused_and_left_alone(streams):
    streams.checkpoint.mkdir()
    (streams.checkpoint / "thesis.txt").write_text("precious")
    with pytest.raises(StreamError, match="neither empty nor a checkpoint of Kontrast"):
        _prepare(streams.config())
    assert [path.name for path in streams.checkpoint.iterdir()] == ["thesis.txt"]


def test_a_checkpoint_of_a_newer_kontrast_is_refused(streams):
    streams.checkpoint.mkdir()
    (streams.checkpoint / "kontrast.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(StreamError, match="format 99, newer than this Kontrast's"):
        _prepare(streams.config())


def test_state_in_a_format_that_this_kontrast_does_not_know_is_refused(streams):
    _prepare(streams.config())
    settings = streams.checkpoint / "kontrast.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "state format": 99}))
    with pytest.raises(StreamError, match="started with state format 99, not [0-9]+. Run the Kontrast that wrote it"):
        _prepare(streams.config())


@pytest.mark.parametrize(
    "damaged", ["[", "[" * 100_000, '{"format": 1e400}'], ids=["cut short", "nested too deeply", "no number"]
)
def test_a_damaged_settings_file_is_refused_and_given_up_with_rebuild(streams, damaged):
    streams.checkpoint.mkdir()
    (streams.checkpoint / "kontrast.json").write_text(damaged)
    for look in (_prepare, check_settings):
        with pytest.raises(StreamError, match="kontrast.json is damaged. Restore it, or begin again with .*--rebuild"):
            look(streams.config())
    _prepare(streams.config(), rebuild=True)


def test_a_missing_settings_file_is_named_and_a_foreign_directory_is_no_checkpoint(streams):
    _prepare(streams.config())
    (streams.checkpoint / "spark").mkdir()
    fruitless_starts(streams.checkpoint, streams.checkpoint / "spark")
    (streams.checkpoint / "kontrast.json").unlink()
    with pytest.raises(StreamError, match="kontrast.json is missing. Restore it, or begin again with .*--rebuild"):
        _prepare(streams.config())
    _prepare(streams.config(), rebuild=True)
    (streams.checkpoint / "spark").rename(streams.checkpoint / "spark-4.2.0-bin-hadoop3")
    with pytest.raises(StreamError, match="neither empty nor a checkpoint of Kontrast"):
        _prepare(streams.config(), rebuild=True)


@pytest.mark.parametrize("damaged", ["", "v1", "v1\n", "v1\n{", "\0" * 100, "v1\n{}\n" + "[" * 100_000])
@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_the_newest_file_of_sparks_logs_that_is_torn_is_removed_and_named(streams, log, damaged, caplog):
    directory = streams.checkpoint / "spark" / log
    directory.mkdir(parents=True)
    for batch, content in ((9, "v1\n{}\n-"), (10, damaged)):
        for path in (directory.with_name("offsets") / str(batch), directory / str(batch)):
            path.parent.mkdir(exist_ok=True)
            path.write_text("v1\n{}\n-" if path.parent != directory else content)
    (streams.checkpoint / "spark" / "metadata").write_text("{}")
    drop_torn(streams.checkpoint / "spark")
    assert [path.name for path in directory.iterdir()] == ["9"]
    assert f"{directory}/10 was not written whole" in caplog.text


def test_settings_that_lack_something_are_named_with_the_way_out(streams):
    _prepare(streams.config())
    file = streams.checkpoint / "kontrast.json"
    stored = json.loads(file.read_text())
    del stored["shuffle partitions"]
    file.write_text(json.dumps(stored))
    for look in (_prepare, check_settings):
        with pytest.raises(StreamError, match="kontrast.json is damaged, it lacks shuffle partitions.*--rebuild"):
            look(streams.config())


def test_a_checkpoint_path_that_is_a_file_is_refused(streams):
    streams.checkpoint.write_text("")
    with pytest.raises(StreamError, match="checkpoint .* cannot be used: "):
        _prepare(streams.config())


def test_a_second_job_on_the_same_checkpoint_is_refused(streams):
    with Checkpoint(streams.checkpoint), pytest.raises(StreamError, match="is in use by process [0-9]+"):
        _prepare(streams.config())
    _prepare(streams.config())


def test_a_driver_is_shut_out_when_another_one_has_started(tmp_path):
    checkpoint, outputs = tmp_path / "checkpoint", tmp_path / "outputs"
    for directory in (checkpoint, outputs):
        directory.mkdir()
    first = Fence([checkpoint, outputs])
    first.require()
    second = Fence([outputs])
    with pytest.raises(StreamError, match=rf"another job has started on {outputs}: process {os.getpid()} on "):
        first.require()
    second.require()
    (outputs / EPOCH_FILE).unlink()
    with pytest.raises(StreamError, match="kontrast.epoch cannot be read"):
        second.require()


def test_a_second_job_on_the_same_outputs_is_refused(streams):
    with (
        JournalWriter(streams.outputs / "alerts", batches=True),
        pytest.raises(StreamError, match="is being written by another process"),
    ):
        _prepare(streams.config())


def test_a_journal_of_a_newer_kontrast_is_refused(streams):
    streams.append([])
    (streams.input / "journal.json").write_text(json.dumps({"format": 99, "batches": False}))
    with pytest.raises(StreamError, match="format 99, newer than this Kontrast's"):
        _prepare(streams.config())
    assert not (streams.checkpoint / "kontrast.json").exists()


def test_kafka_that_cannot_be_reached_is_named_after_the_timeout(streams):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound without listening, so connections are refused
        server = f"127.0.0.1:{unused.getsockname()[1]}"
        config = streams.config(source=KafkaAddress(server, "records"), connect_timeout_seconds=1)
        with pytest.raises(StreamError, match=f"Kafka at {server} was not reached in 1 seconds"):
            _prepare(config)
    assert not (streams.checkpoint / "kontrast.json").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"master": "yarn"}, r"master 'yarn' is not local\[N\]"),
        ({"checkpoint": "hdfs://host/"}, "checkpoint hdfs://host/ names no directory"),
        ({"checkpoint": "file://host/dir"}, "checkpoint file://host/dir names no directory"),
        ({"hadoop_directory": "/nowhere"}, "hadoop_directory /nowhere is no directory"),
        ({"checkpoint": ""}, "has no name"),
        ({"driver_memory": "lots"}, "driver memory 'lots' is no size"),
        ({"chunk_count": 0}, "chunk_count is 0, but must be at least 1"),
        ({"connect_timeout_seconds": 0}, "must be above 0"),
        ({"sink": JournalAddress(Path("/x")), "source": JournalAddress(Path("/x"))}, "both source and sink"),
    ],
)
def test_settings_that_cannot_work_are_refused(streams, changes, words):
    with pytest.raises(StreamError, match=words):
        streams.config(**changes)


def test_brokers_that_refuse_the_login_of_a_running_job_are_one_sentence():
    of_java = (
        "org.apache.kafka.common.errors.SaslAuthenticationException: invalid credentials with SASL mechanism PLAIN"
    )
    said = (
        "Java cannot log in to Kafka (invalid credentials with SASL mechanism PLAIN). Check [kafka], and for Kerberos"
    )
    assert str(stream_error(RuntimeError(of_java))).startswith(said)
