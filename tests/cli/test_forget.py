"""`kontrast forget` over real journals, with its clusters, questions, refusals and exit codes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.outputs import encode_row
from controller.contract.records import Record, RecordKind, decode_record, encode_record
from ingest.config import IngestConfig
from ingest.sinks import journal_sink
from tests.integration.conftest import lines_of
from tests.waiting import repeating
from transport.address import JournalAddress
from transport.journal import JournalWriter


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    """Write a stream with two clusters, whose clock is in the future."""
    with JournalWriter(tmp_path / "changes") as journal:
        for cluster, generation in (("north", 10**15), ("south", 1)):
            now_ms = int(time.time() * 1000)
            record = Record(
                cluster=cluster, generation=generation, seq=0, kind=RecordKind.HEARTBEAT, observed_ms=now_ms, zxid=7
            )
            journal.append([encode_record(record)])
    return tmp_path / "changes"


@pytest.fixture
def derived(tmp_path: Path, rows) -> Path:
    for row in (rows.gauges(), rows.alert("a"), rows.gauges(cluster="west", generation=10**16)):
        with JournalWriter(tmp_path / "derived" / row.output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [encode_row(row)])
    return tmp_path / "derived"


def forget(cluster: str, changes: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["forget", cluster, "--from", f"journal:{changes}", *map(str, arguments)])


def records(changes: Path) -> list[Record]:
    return [decode_record(line) for line in lines_of(changes)]


def test_the_record_comes_after_all_that_was_written_of_the_cluster(changes):
    done = forget("north", changes, "--yes")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "north is forgotten, `kontrast stream` drops it with its next batch" in done.stderr
    *before, last = records(changes)
    assert [record.cluster for record in before] == ["north", "south"]
    assert (last.cluster, last.kind, last.generation, last.seq, last.zxid) == (
        "north",
        RecordKind.FORGOTTEN,
        10**15 + 1,
        0,
        7,
    )
    again = forget("north", changes, "--yes")
    assert (again.exit_code, "north was forgotten already" in again.stderr) == (0, True)
    assert len(records(changes)) == 3


def test_a_cluster_that_only_the_outputs_still_have_is_forgotten_too(changes, derived):
    done = forget("west", changes, "--to", f"journal:{derived}", "--yes")
    assert done.exit_code == 0
    assert (records(changes)[-1].cluster, records(changes)[-1].generation) == ("west", 10**16 + 1)


def test_a_cluster_that_nobody_knows_is_refused_by_name(changes, derived):
    done = forget("nroth", changes, "--to", f"journal:{derived}", "--yes")
    assert done.exit_code == 2
    assert f"there is no cluster 'nroth' in journal:{changes}" in done.stderr
    assert f"journal:{derived} has north, west" in done.stderr
    assert len(records(changes)) == 2


def test_a_cluster_is_forgotten_beside_the_watch_of_others_but_not_of_its_own(changes, monkeypatch):
    monkeypatch.setattr(journal_sink, "_REQUESTED_WITHIN_SECONDS", 0.5)
    config = IngestConfig(cluster="south", zookeeper="127.0.0.1:1", to=JournalAddress(changes))
    (changes / "record-wanted-by-nobody").write_text("{")
    with closing(journal_sink.JournalSink(config)) as watching, repeating(watching.complete_read_requested, 0.1):
        own = forget("south", changes, "--yes")
        assert (own.exit_code, "by a `kontrast watch` that forwards south, or that takes" in own.stderr) == (3, True)
        assert forget("north", changes, "--yes").exit_code == 0
        watching.append([msgspec.structs.replace(records(changes)[1], seq=1)])  # its watch goes on
    assert [(each.cluster, each.kind.value) for each in records(changes)[2:]] == [
        ("north", "forgotten"),
        ("south", "heartbeat"),
    ]
    assert [each.name for each in changes.glob("record-*")] == ["record-wanted-by-nobody"]


def test_a_stream_that_is_not_there_is_refused(changes, tmp_path):
    nowhere = forget("north", tmp_path / "nowhere", "--yes")
    assert (nowhere.exit_code, "does not exist. Name the stream" in nowhere.stderr) == (3, True)
    assert not (tmp_path / "nowhere").exists()
    without = CliRunner().invoke(main, ["forget", "north"])
    assert (without.exit_code, "which stream? Give --from ADDRESS" in without.stderr) == (2, True)
    assert len(records(changes)) == 2


def test_without_an_answer_nothing_is_done(changes, derived):
    done = forget("north", changes, "--to", f"journal:{derived}")
    assert (done.exit_code, "No person can answer here. Give --yes." in done.stderr) == (2, True)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cli", "forget", "north", "--from", f"journal:{changes}"]
    command += ["--to", f"journal:{derived}"]
    with subprocess.Popen(command, stdin=theirs, stderr=subprocess.PIPE, text=True) as asking:
        os.close(theirs)
        os.write(ours, b"n\n")
        _, said = asking.communicate(timeout=60)
    os.close(ours)
    assert asking.returncode == 1
    assert "1 alert open" in said
    assert "this resolves its open alerts" in said
    assert "north stays, without a change" in said
    assert len(records(changes)) == 2


def test_one_that_is_still_configured_is_named(changes, tmp_path):
    config = tmp_path / "kontrast.toml"
    config.write_text(
        f'[stream]\nfrom = "journal:{changes}"\n[clusters.north]\nzookeeper = "127.0.0.1:1"\nto = "journal:{changes}"\n'
    )
    done = CliRunner().invoke(main, ["forget", "north", "--config", str(config), "--yes"])
    assert done.exit_code == 0
    assert "north is still configured. Remove it, or the next `kontrast watch` watches it again" in done.stderr
