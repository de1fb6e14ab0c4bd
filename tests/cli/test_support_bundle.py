"""`kontrast support-bundle`: a real recording that can be asked, the facts, and no secret."""

from __future__ import annotations

import json
import tarfile
import threading

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.records import RecordKind, decode_record
from ingest.config import IngestConfig
from ingest.forwarder import Forwarder
from tests.archives import extract
from tests.clients import zookeeper_client
from tests.ingest.conftest import make_cluster
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.journal_reading import read_journal

SECRET = "hunter2"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def changes(watched, tmp_path) -> JournalAddress:
    """Write a forwarder's output for a cluster whose broker has a secret among its dynamic settings."""
    with zookeeper_client(watched) as kafka:
        make_cluster(kafka)
        config = {"ssl.keystore.password": SECRET, "min.insync.replicas": "2"}
        kafka.create("/config/brokers/1", json.dumps({"version": 1, "config": config}).encode(), makepath=True)
        address, stop = JournalAddress(tmp_path / "changes"), threading.Event()
        forwarder = Forwarder(IngestConfig(zookeeper=watched, cluster="east", to=address))
        thread = threading.Thread(target=forwarder.run, args=(stop,))
        thread.start()
        eventually(lambda: address.directory.exists() and b"snapshot-end" in b"".join(_lines(address)))
        stop.set()
        thread.join()
    return address


def _lines(address: JournalAddress) -> list[bytes]:
    return list(read_journal(address.directory, 0, 1 << 24).lines)


def test_the_recording_answers_as_the_stream_does_and_has_no_secret(changes, tmp_path):
    config, bundle, unpacked = tmp_path / "kontrast.toml", tmp_path / "bundle.tar.xz", tmp_path / "unpacked"
    config.write_text(
        f'[stream]\nfrom = "{changes}"\n[serve]\nfrom = "journal:{tmp_path}/none"\n'
        f'[serve.alertmanager]\nurls = ["http://me:{SECRET}@am:9093"]\n'
    )
    written = run("support-bundle", "--config", config, "--out", bundle)
    assert written.exit_code == 0, written.stderr
    assert bundle.stat().st_mode & 0o077 == 0
    extract(bundle, unpacked)
    content = b"".join(file.read_bytes() for file in unpacked.rglob("*") if file.is_file())
    assert SECRET.encode() not in content
    assert b"min.insync.replicas" in content
    assert "exit code 3" in (unpacked / "status.jsonl").read_text()
    assert json.loads((unpacked / "settings.json").read_text())["stream"]["from"] == str(changes)
    asked = [run("check", "--json", "--from", f"journal:{tmp_path / at}/changes").stdout for at in ("", "unpacked")]
    assert asked[0] == asked[1] != ""
    kinds = [decode_record(line).kind for line in _lines(JournalAddress(unpacked / "changes"))]
    assert kinds[0] is RecordKind.SNAPSHOT_BEGIN

    again = run("support-bundle", "--config", config, "--out", bundle)
    assert (again.exit_code, "File exists" in again.stderr) == (2, True)


def test_without_a_stream_the_facts_are_written_and_the_lack_is_said(tmp_path):
    config, bundle = tmp_path / "kontrast.toml", tmp_path / "bundle.tar.xz"
    config.write_text("")
    lacking = run("support-bundle", "--config", config, "--out", bundle)
    assert lacking.exit_code == 3
    assert "[stream] names no stream" in lacking.stderr
    with tarfile.open(bundle) as archive:
        assert sorted(archive.getnames()) == ["about.json", "settings.json", "status.jsonl"]
    assert run("support-bundle", "--config", config, "--out", tmp_path / "b", "--no-recording").exit_code == 0
