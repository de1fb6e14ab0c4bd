"""Other servers at Alertmanager's address. No alert counts as accepted, and no password goes elsewhere."""

from __future__ import annotations

import logging
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from dashboards.alerting import alertmanager as alertmanager_module
from dashboards.alerting.alertmanager import Alertmanager, NoAlertmanagerError, RefusedError
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Message
from dashboards.alerting.registry import AlertRegistry
from dashboards.alerting.sender import Result, Sender
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.http_server import Answer, HttpServer, say
from tests.waiting import eventually

MESSAGE = Message(labels=(("alertname", "KontrastTest"),), annotations=(("alert_id", "test"),), since_ms=1)
LOGIN_PAGE = b"<!doctype html><html><title>Log in</title></html>"


class Answering(HttpServer):
    """An HTTP server that gives one answer to everything, and keeps the requests."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, str, str | None]] = []

        def keep(request: BaseHTTPRequestHandler) -> None:
            self.asked.append((request.command, request.path, request.headers["Authorization"]))
            request.rfile.read(int(request.headers["Content-Length"] or 0))
            answer(request)

        super().__init__(keep)
        self.url = f"http://{self.address}"


@pytest.fixture
def answering() -> Iterator[Callable[..., Answering]]:
    made: list[Answering] = []

    def make(answer: Callable[[BaseHTTPRequestHandler], None]) -> Answering:
        made.append(Answering(answer))
        return made[-1]

    yield make
    for server in made:
        server.close()


def without_end(piece: bytes, pause_seconds: float = 0.0) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return an answer whose body does not end while the client reads."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(piece)
                time.sleep(pause_seconds)
        except OSError:
            request.close_connection = True

    return answer


@pytest.fixture
def login(tmp_path) -> dict[str, str]:
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    return {"username": "kontrast", "password_file": str(password)}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_password_stays_where_it_belongs(status, answering, login, tmp_path):
    real = AlertmanagerServer(tmp_path / "alertmanager").start()
    elsewhere = answering(say(200, b"[]"))
    try:
        for target in (elsewhere.url, real.url):
            before = answering(say(status, Location=f"{target}/api/v2/alerts"))
            asked = Alertmanager(before.url, AlertmanagerConfig(urls=(before.url,), **login))
            for request in (lambda asked=asked: asked.send([MESSAGE], 5), asked.alerts, asked.check):
                with pytest.raises(
                    RefusedError, match=f"{status} .*, on to {target}.*This is not Alertmanager"
                ) as refusal:
                    request()
                assert not refusal.value.in_part
            assert [method for method, *_ in before.asked] == ["POST", "GET", "GET"]
            assert all(given is not None for *_, given in before.asked)
        assert elsewhere.asked == []
        assert real.alerts() == {}
    finally:
        real.kill()


@pytest.mark.parametrize("answer", [say(200, LOGIN_PAGE), say(201), say(202, b"{}"), say(204), say(200, b"{}")])
def test_an_answer_that_is_not_alertmanagers_accepts_nothing(answer, answering):
    server = answering(answer)
    asked = Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,)))
    with pytest.raises(RefusedError):
        asked.send([MESSAGE], 5)
    with pytest.raises(RefusedError):
        asked.alerts()


@contextmanager
def sending(url, config):
    registry = AlertRegistry(config)
    registry.update((), 1, 1)
    sender = Sender(Alertmanager(url, config), config, registry)
    stop = threading.Event()
    thread = threading.Thread(target=sender.run, args=(stop,))
    thread.start()
    yield sender
    stop.set()
    thread.join()


def test_a_server_that_answers_200_to_everything_counts_no_alert_as_accepted(answering, caplog):
    everything = answering(say(200))
    config = AlertmanagerConfig(urls=(everything.url,))
    with sending(everything.url, config) as sender, caplog.at_level(logging.WARNING):
        eventually(lambda: sender.is_up is False)
    assert sender.results[Result.ACCEPTED] == 0
    assert "cannot deliver alerts" in caplog.text
    assert "This is not Alertmanager" in caplog.text


@pytest.mark.parametrize("wrong_ms", [-3_600_000, 3_600_000])
def test_a_wrong_clock_neither_ends_an_alert_nor_keeps_it(wrong_ms, tmp_path, monkeypatch, caplog, request):
    server = AlertmanagerServer(tmp_path / "alertmanager").start()
    request.addfinalizer(server.kill)
    alertmanager = Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,)))
    now_ms = time.time_ns() // 1_000_000 + wrong_ms
    monkeypatch.setattr(time, "time_ns", lambda: now_ms * 1_000_000)
    alertmanager.check()
    alertmanager.send([MESSAGE], now_ms)
    assert server.alerts().keys() == {"test"}
    alertmanager.send([replace(MESSAGE, ended_ms=now_ms)], now_ms)
    eventually(lambda: not server.alerts(), within_seconds=10)
    assert caplog.text.count(f"s {'behind' if wrong_ms > 0 else 'ahead of'} this machine's") == 1


def test_what_takes_an_alertmanagers_place_later_is_found_out(answering):
    page: list[Callable[[BaseHTTPRequestHandler], None]] = []

    def first_an_alertmanager(request: BaseHTTPRequestHandler) -> None:
        (page[0] if page else say(200, b"[]" if request.command == "GET" else b""))(request)

    server = answering(first_an_alertmanager)
    config = AlertmanagerConfig(urls=(server.url,), resend_interval_seconds=0.2)
    with sending(server.url, config) as sender:
        eventually(lambda: sender.is_up)
        page.append(say(200))
        eventually(lambda: sender.is_up is False)
        page.clear()
        eventually(lambda: sender.is_up)


def test_an_answer_without_end_costs_no_more_than_the_bound(answering, monkeypatch):
    monkeypatch.setattr(alertmanager_module, "_LARGEST_ANSWER_BYTES", 8 * 1024**2)
    server = answering(without_end(b"[" * 65536))
    asked = Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,), timeout_seconds=60))
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NoAlertmanagerError, match="an answer of more than 8 MiB"):
        asked.alerts()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 200 * 1024


def endless_header(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    number = 0
    try:
        while True:
            number += 1
            request.wfile.write(b"X-%d: y\r\n" % number)
            time.sleep(0.05)
    except OSError:
        request.close_connection = True


@pytest.mark.parametrize("answer", [without_end(b" ", 0.05), endless_header], ids=["body", "header"])
def test_an_answer_that_comes_drop_by_drop_ends_with_the_timeout(answer, answering):
    server = answering(answer)
    asked = Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,), timeout_seconds=0.5))
    with pytest.raises(NoAlertmanagerError, match="no complete answer within 0.5 s"):
        asked.check()


def test_a_refusal_is_quoted_in_one_line_that_does_nothing_to_a_terminal(answering):
    server = answering(say(500, b"\x1b[31mone\r\ntwo \xe2\x80\xae three" + b"x" * 100_000))
    asked = Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,)))
    with pytest.raises(NoAlertmanagerError) as refusal:
        asked.check()
    assert r"\x1b[31mone two \u202e three" in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_a_token_with_a_line_end_is_not_shown(answering, monkeypatch):
    server = answering(say(200, b"[]"))
    monkeypatch.setenv("TOKEN", "secret\nX-Forged: yes")
    asked = Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,), bearer_token_variable="TOKEN"))
    with pytest.raises(NoAlertmanagerError, match="characters outside printable ASCII") as refusal:
        asked.check()
    assert "secret" not in str(refusal.value)
    assert server.asked == []


def test_alerts_nested_too_deeply_are_refused(answering):
    server = answering(say(200, b"[" * 100_000))
    with pytest.raises(RefusedError, match="without a list of alerts"):
        Alertmanager(server.url, AlertmanagerConfig(urls=(server.url,))).alerts()
