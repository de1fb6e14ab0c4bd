"""`kontrast watch` as a process, on a real ZooKeeper."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from controller.contract.records import Record, RecordKind, decode_record
from tests.certificates import make_self_signed
from tests.waiting import eventually
from transport.journal import JournalWriter
from transport.journal_reading import read_journal

_DEADLINE_SECONDS = 60


@contextmanager
def watching(log: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as stderr:
        command = [sys.executable, "-m", "cli", "watch", *arguments]
        process = subprocess.Popen(command, stderr=stderr, env=os.environ | variables)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def records(journal: Path) -> list[Record]:
    return [decode_record(line) for line in read_journal(journal, 0, 64 * 1024**2).lines]


def heartbeats(journal: Path, cluster: str) -> int:
    return sum(record.kind is RecordKind.HEARTBEAT and record.cluster == cluster for record in records(journal))


def end(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=_DEADLINE_SECONDS)


def test_a_watched_cluster_is_in_the_journal_and_sigterm_ends_in_order(watched: str, tmp_path):
    journal, log = tmp_path / "changes", tmp_path / "stderr"
    where = ["--zookeeper", watched, "--to", f"journal:{journal}"]
    with watching(log, "--cluster", "orders", *where) as process:
        eventually(lambda: any(record.kind is RecordKind.SNAPSHOT_END for record in records(journal)))
        assert end(process) == 0
    assert "Traceback" not in log.read_text()


def test_a_cluster_that_is_away_leaves_the_other_one_watched_and_the_service_ready(watched: str, tmp_path):
    file, log, journal = tmp_path / "kontrast.toml", tmp_path / "stderr", tmp_path / "orders"
    with socket.socket() as bound, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        bound.bind(("127.0.0.1", 0))  # bound without listening, so connections are refused
        manager.bind(str(tmp_path / "manager"))
        absent = f"127.0.0.1:{bound.getsockname()[1]}"
        file.write_text(
            '[watch]\nheartbeat_seconds = 0.2\nconnect_timeout_seconds = 3\nmetrics_listen = "127.0.0.1:0"\n'
            f'[clusters.orders]\nzookeeper = "{watched}"\nto = "journal:{journal}"\n'
            f'[clusters.absent]\nzookeeper = "{absent}"\nto = "journal:{tmp_path / "absent"}"\n'
        )
        with watching(log, "--config", str(file), NOTIFY_SOCKET=str(tmp_path / "manager")) as process:
            manager.settimeout(_DEADLINE_SECONDS)
            assert manager.recv(100) == b"READY=1"
            page = re.search(r"metrics: (http\S+)/metrics", log.read_text())[1]
            with urllib.request.urlopen(f"{page}/readyz", timeout=_DEADLINE_SECONDS) as answer:
                assert answer.read() == b"ready\naway, but tried again and again: absent\n"
            given_up = f"absent: ZooKeeper at {absent} could not be reached within 3 s"
            eventually(lambda: log.read_text().count(given_up) > 1)  # it goes on trying
            before = heartbeats(journal, "orders")
            eventually(lambda: heartbeats(journal, "orders") > before + 3)
            assert end(process) == 0


def test_clusters_share_one_journal_and_one_is_forgotten_beside_the_other(watched: str, tmp_path):
    file, log, journal = tmp_path / "kontrast.toml", tmp_path / "stderr", tmp_path / "changes"
    orders = f'[watch]\nto = "journal:{journal}"\nheartbeat_seconds = 0.2\n[clusters.orders]\nzookeeper = "{watched}"\n'
    file.write_text(f'{orders}[clusters.payments]\nzookeeper = "{watched}/payments"\n')
    with watching(log, "--config", str(file)) as process:
        eventually(lambda: heartbeats(journal, "orders") > 3 and heartbeats(journal, "payments") > 3)
        assert end(process) == 0
    file.write_text(orders)
    before = heartbeats(journal, "orders")
    with watching(log, "--config", str(file)) as process:
        eventually(lambda: heartbeats(journal, "orders") > before)
        done = CliRunner().invoke(main, ["forget", "payments", "--from", f"journal:{journal}", "--yes"])
        assert (done.exit_code, "payments is forgotten" in done.stderr) == (0, True), done.stderr
        before = heartbeats(journal, "orders")
        eventually(lambda: heartbeats(journal, "orders") > before)
        assert end(process) == 0


def test_it_tells_prometheus_of_its_own_work(watched: str, tmp_path):
    log = tmp_path / "stderr"
    where = ["--zookeeper", watched, "--to", f"journal:{tmp_path / 'changes'}"]
    with watching(log, "--cluster", "orders", *where, "--metrics-listen", "127.0.0.1:0") as process:
        eventually(lambda: "metrics: http" in log.read_text())
        address = re.search(r"metrics: (http\S+)", log.read_text())[1]

        def says(line: str) -> bool:
            with urllib.request.urlopen(address, timeout=_DEADLINE_SECONDS) as answer:
                return line in answer.read().decode()

        eventually(lambda: says('kontrast_watch_leads{kafka_cluster="orders"} 1.0'))
        eventually(lambda: says('kontrast_watch_complete_reads_total{kafka_cluster="orders",reason="start"} 1.0'))
        assert end(process) == 0
    assert "Traceback" not in log.read_text()


def test_a_taken_metrics_port_ends_it_and_metrics_end_with_what_they_tell_of(watched: str, tmp_path):
    log, journal = tmp_path / "stderr", tmp_path / "changes"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = ["--metrics-listen", f"127.0.0.1:{taken.getsockname()[1]}"]
        where = ["--cluster", "orders", "--to", f"journal:{journal}", "--heartbeat-seconds", "0.2"]
        with watching(log, *where, "--zookeeper", watched, *listen) as process:
            assert process.wait(_DEADLINE_SECONDS) == 3
        assert f"kontrast: cannot listen on {listen[1]}" in log.read_text()
        assert not journal.exists()
    mine = ["--zookeeper", watched, "--metrics-listen", "127.0.0.1:0"]
    with JournalWriter(journal), watching(log, *where, *mine) as process:
        assert process.wait(_DEADLINE_SECONDS) == 3


def test_its_metrics_are_for_who_has_the_login_and_trusts_the_certificate(watched: str, tmp_path):
    log, shown, key = tmp_path / "stderr", tmp_path / "shown.pem", tmp_path / "key.pem"
    make_self_signed(shown, key, "watch")
    (tmp_path / "password").write_text("open sesame")
    where = ["--zookeeper", watched, "--to", f"journal:{tmp_path / 'changes'}"]
    secured = ["--metrics-listen", "127.0.0.1:0", "--metrics-username", "prometheus"]
    secured += ["--metrics-password-file", str(tmp_path / "password")]
    secured += ["--metrics-tls-certificate-file", str(shown), "--metrics-tls-key-file", str(key)]
    with watching(log, "--cluster", "orders", *where, *secured) as process:
        eventually(lambda: "metrics: https://" in log.read_text())
        address = re.search(r"metrics: (https\S+)", log.read_text())[1]
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=shown))
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.build_opener(trust).open(address, timeout=_DEADLINE_SECONDS)
        logins = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        logins.add_password(None, address, "prometheus", "open sesame")
        known = urllib.request.build_opener(trust, urllib.request.HTTPBasicAuthHandler(logins))
        with known.open(address, timeout=_DEADLINE_SECONDS) as answer:
            assert b'kontrast_watch_leads{kafka_cluster="orders"}' in answer.read()
        assert end(process) == 0
    assert "sesame" not in log.read_text()
