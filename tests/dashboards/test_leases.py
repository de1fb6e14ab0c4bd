"""Leases for restarts in a running serve, over HTTP and by the command."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import msgspec
import pytest

from dashboards.exporter.config import ServeConfig
from dashboards.page.interface import document
from questions.lease import Lease, Leases
from questions.restartable import Obstacle, Restartable, Verdict
from tests.dashboards.test_restartable import cluster
from transport.address import JournalAddress

CLUSTER = "/api/v1/clusters/north"
READY = r"^kontrast_ready\{.*\} 1"
PASSWORD = "correct horse"


@pytest.fixture
def exporter(tmp_path, start_exporter, rows):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as running:
        running.write(*cluster(rows))
        running.metrics_with(READY)
        yield running


def change(exporter, method: str, headers: dict[str, str] | None = None, **asked: object) -> tuple[int, bytes]:
    address = f"{exporter.address}{CLUSTER}/restart-lease?{urlencode(asked)}"
    request = urllib.request.Request(address, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def hold(exporter, broker: int, holder: str, seconds: int = 600, **more: object) -> Restartable:
    status, body = change(exporter, "POST", broker=broker, holder=holder, seconds=seconds, **more)
    assert status == 200, body
    return msgspec.json.decode(body, type=Restartable)


def kontrast(exporter, *arguments: object, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "cli", "restartable", "--serve", exporter.address, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout, done.stderr


def test_a_second_broker_waits_while_a_lease_is_held(exporter):
    first = hold(exporter, 2, "ansible@ops1")
    assert (first.verdict, first.reasons) == (Verdict.YES, ())
    assert first.lease is not None
    assert (first.lease.broker, first.lease.holder) == (2, "ansible@ops1")
    assert 590 < first.lease.seconds_left <= 600
    for broker, holder in ((1, "awx@ops2"), (2, "awx@ops2"), (1, "ansible@ops1")):
        second = hold(exporter, broker, holder)
        assert (second.verdict, second.reasons[0].obstacle) == (Verdict.NO, Obstacle.LEASE)
        held = r"ansible@ops1 holds the lease to restart broker 2 for another (10 min|9 min \d+ s): wait"
        assert re.fullmatch(held, second.reasons[0].sentence)
        assert second.lease is not None
        assert second.lease.holder == "ansible@ops1"
    read = msgspec.json.decode(exporter.page(f"{CLUSTER}/restartable?broker=1"), type=Restartable)
    assert (read.verdict, read.reasons[0].obstacle) == (Verdict.NO, Obstacle.LEASE)
    own = msgspec.json.decode(exporter.page(f"{CLUSTER}/restartable?broker=2&holder=ansible%40ops1"), type=Restartable)
    assert own.verdict is Verdict.YES
    page = exporter.page_with("/clusters/north", r'id="lease"')
    assert "<strong>ansible@ops1</strong> holds the lease to restart" in page
    status, body = change(exporter, "DELETE", broker=2, holder="ansible@ops1")
    assert (status, msgspec.json.decode(body, type=Lease).holder) == (200, "ansible@ops1")
    assert change(exporter, "DELETE", broker=2, holder="ansible@ops1")[0] == 404
    assert hold(exporter, 1, "awx@ops2").verdict is Verdict.YES


def test_a_refused_restart_takes_no_lease(exporter):
    refused = hold(exporter, 3, "ansible@ops1")
    assert (refused.verdict, refused.lease) == (Verdict.NO, None)
    accepted = hold(exporter, 3, "ansible@ops1", accept_topic="scratch")
    assert accepted.verdict is Verdict.YES
    extended = hold(exporter, 3, "ansible@ops1", seconds=1200)
    assert extended.verdict is Verdict.NO
    assert extended.lease is not None
    assert extended.lease.seconds_left > 1100


def test_of_several_serves_only_the_named_one_grants_leases(tmp_path, start_exporter, rows):
    source, anywhere = JournalAddress(tmp_path), "127.0.0.1:0"
    with (
        start_exporter(ServeConfig(source=source, listen=anywhere, lease_host=socket.gethostname())) as granting,
        start_exporter(ServeConfig(source=source, listen=anywhere, lease_host="kontrast-serve-0")) as other,
    ):
        granting.write(*cluster(rows))
        for each in (granting, other):
            each.metrics_with(READY)
        assert hold(granting, 2, "ansible@ops1").verdict is Verdict.YES
        for method in ("POST", "DELETE"):
            status, body = change(other, method, broker=2, holder="ansible@ops1", seconds=600)
            assert (status, json.loads(body)["error"]) == (
                403,
                "Another kontrast serve grants the leases. Ask the one on kontrast-serve-0.",
            )
        assert hold(granting, 1, "awx@ops2").verdict is Verdict.NO


def test_of_many_that_ask_at_once_one_gets_the_lease(exporter):
    barrier = threading.Barrier(4)

    def ask(number: int) -> Restartable:
        barrier.wait()
        return hold(exporter, 1 + number % 2, f"automation-{number}")

    with ThreadPoolExecutor(4) as asking:
        answers = list(asking.map(ask, range(4)))
    assert [answer.verdict for answer in answers].count(Verdict.YES) == 1
    assert len({(answer.lease.broker, answer.lease.holder) for answer in answers if answer.lease}) == 1


def test_a_lease_expires_by_the_steady_clock():
    now = [100.0]
    leases = Leases(lambda: now[0])
    assert leases.take("north", 1, "a", 60, now_ms=5_000) == Lease(1, "a", 65_000, 60)
    now[0] += 59.5
    assert leases.take("north", 2, "b", 60, now_ms=5_000) == Lease(1, "a", 5_500, 1)
    assert leases.take("south", 2, "b", 60, now_ms=5_000).holder == "b"
    now[0] += 0.5
    assert leases.held("north", 5_000) is None
    assert leases.release("north", 1, "a", 5_000) is None
    assert leases.take("north", 2, "b", 60, now_ms=5_000).holder == "b"


@pytest.mark.parametrize("header", ["Origin", "Sec-Fetch-Site"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_web_page_may_not_change_leases(exporter, method, header):
    status, body = change(exporter, method, {header: "cross-site"}, broker=2, holder="x", seconds=60)
    assert (status, "web page" in json.loads(body)["error"]) == (403, True)
    assert change(exporter, "POST", {"Host": "rebound.example"}, broker=2, holder="x", seconds=60)[0] == 421


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"broker": 2, "seconds": 60}, "holder is missing"),
        ({"broker": 2, "seconds": 60, "holder": "x" * 101}, "holder is missing"),
        ({"broker": 2, "seconds": 60, "holder": "a\nb"}, "holder is missing"),
        ({"broker": 2, "seconds": 9, "holder": "x"}, "seconds is not a number from 10 to 3600."),
        ({"broker": 2, "seconds": 3601, "holder": "x"}, "seconds is not a number from 10 to 3600."),
        ({"broker": 2, "seconds": "1e3", "holder": "x"}, "seconds is not a number from 10 to 3600."),
    ],
)
def test_a_lease_has_bounds(exporter, asked, error):
    status, body = change(exporter, "POST", **asked)
    assert (status, error in json.loads(body)["error"]) == (400, True)


def other_address() -> str | None:
    """Return an address of this machine that is not loopback. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


@pytest.mark.skipif(other_address() is None, reason="this machine has no network")
def test_another_machine_needs_a_login(tmp_path, start_exporter, rows):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="0.0.0.0:0")) as running:
        running.write(*cluster(rows))
        running.metrics_with(READY)
        running.address = running.address.replace("0.0.0.0", other_address())
        assert '"verdict":"yes"' in running.page(f"{CLUSTER}/restartable?broker=2")
        status, body = change(running, "POST", broker=2, holder="x", seconds=60)
        assert (status, "has no login" in json.loads(body)["error"]) == (403, True)


def test_the_command_holds_and_releases(exporter):
    code, said, _ = kontrast(exporter, "--broker", 2, "--hold", "10m", "--holder", "ansible@ops1")
    assert code == 0
    assert said.startswith("yes: broker 2 may be restarted now")
    assert "ansible@ops1 holds the lease until 20" in said
    code, said, _ = kontrast(exporter, "--broker", 1, "--hold", "10m", "--wait", "1s", "--every", "0.5")
    assert code == 1
    assert "ansible@ops1 holds the lease to restart broker 2 for another 9 min" in said
    code, said, _ = kontrast(exporter, "--broker", 2, "--release", "--holder", "ansible@ops1")
    assert (code, said) == (0, "ansible@ops1 released the lease to restart broker 2\n")
    code, _, error = kontrast(exporter, "--broker", 2, "--release", "--holder", "ansible@ops1")
    assert code == 1
    assert "ansible@ops1 holds no lease to restart broker 2" in error
    code, said, _ = kontrast(exporter, "--broker", 2, "--probe")
    assert (code, "OK" in said) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["--broker", 9, "--hold", "10m"], 2, "no broker 9"),
        (["--broker", 2, "--hold", "2h"], 2, "seconds is not a number from 10 to 3600"),
        (["--broker", 2, "--hold", "10m", "--cluster", "south"], 2, "south"),
        (["--broker", 2, "--hold", "10m", "--zookeeper", "zk1:2181"], 2, "its own source"),
        (["--broker", 2, "--hold", "10m", "--release"], 2, "--release ends a lease"),
    ],
)
def test_the_command_refuses_in_a_sentence(exporter, arguments, code, error):
    found, _, said = kontrast(exporter, *arguments)
    assert (found, error in said, "Traceback" in said) == (code, True, False), said


def test_the_command_logs_in_over_tls(tmp_path, start_exporter, certificate, rows):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KONTRAST_")}
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    shown, key = certificate()
    (tmp_path / "outputs").mkdir()
    config = ServeConfig(
        source=JournalAddress(tmp_path / "outputs"),
        listen="127.0.0.1:0",
        tls_certificate_file=str(shown),
        tls_key_file=str(key),
        username="ansible",
        password_file=str(password),
    )
    with start_exporter(config) as running:
        running.write(*cluster(rows))
        asked = ("--broker", 2, "--hold", "10m", "--serve-ca-file", shown, "--wait", "1m", "--every", "0.5")
        login = {"KONTRAST_SERVE__USERNAME": "ansible", "KONTRAST_SERVE__PASSWORD_FILE": str(password)}
        code, said, error = kontrast(running, *asked, environment={**environment, **login})
        assert (code, said.startswith("yes")) == (0, True), error
        code, _, error = kontrast(running, *asked[:6], environment=environment)
        assert (code, "rejects the login" in error) == (2, True), error
        code, _, error = kontrast(running, *asked[:4], environment={**environment, **login})
        assert (code, "does not answer" in error, "ertificate" in error) == (3, True, True), error


def test_serve_that_is_down_is_unknown():
    command = [sys.executable, "-m", "cli", "restartable", "--serve", "http://127.0.0.1:1", "--broker", "2"]
    done = subprocess.run([*command, "--hold", "1m"], capture_output=True, text=True, check=False)
    assert (done.returncode, "does not answer" in done.stderr) == (3, True)


def test_the_document_has_both_operations():
    operations = document()["paths"]["/api/v1/clusters/{cluster}/restart-lease"]
    assert {method: each["operationId"] for method, each in operations.items()} == {
        "post": "holdLease",
        "delete": "releaseLease",
    }
