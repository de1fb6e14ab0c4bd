"""Clients that connect and send little, no request, or the wrong password. Others must still get answers."""

from __future__ import annotations

import gc
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.watch_page import open_page, run as run_watching
from dashboards.serving import connections
from dashboards.serving.connections import Drop, HttpFigures
from dashboards.serving.http import HttpServer
from dashboards.serving.metrics import ProcessCollector
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.forwarding import Forwarding
from transport.listening import Listening

DROPPED = r'^kontrast_http_dropped_connections_total\{reason="%s"\} [1-9]'


def connect(running) -> socket.socket:
    host, port = running.address.split("//")[1].split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def ended(connection: socket.socket) -> bool:
    with suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


@pytest.fixture
def config(tmp_path) -> ServeConfig:
    return ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")


@pytest.mark.parametrize(
    "said", [b"", b"GET /metrics HTTP/1.1\r\nHost: [::1]\r\nX-"], ids=["nothing", "half a request"]
)
def test_many_who_ask_nothing_keep_nobody_out(config, start_exporter, caplog, said):
    with start_exporter(config) as running:
        crowd = []
        for _ in range(3 * connections.MOST_CONNECTIONS):
            crowd.append(connect(running))
            crowd[-1].sendall(said)
        assert running.get("/healthz")[0] in (200, 503)
        running.metrics_with(DROPPED % "limit")
        assert all(ended(connection) for connection in crowd[: connections.MOST_CONNECTIONS])
        for connection in crowd:
            connection.close()
    told = [record for record in caplog.records if "ended the oldest" in record.getMessage()]
    assert len(told) == 1
    assert len(caplog.records) < 50


def test_a_watchers_page_has_the_same_bounds():
    stop, started = threading.Event(), []
    thread = threading.Thread(
        target=run_watching,
        args=(open_page(Listening(listen="127.0.0.1:0"), [Forwarding("north")]), stop, started.append),
    )
    thread.start()
    eventually(lambda: started)
    host, port = started[0].split("//")[1].split(":")
    crowd = [socket.create_connection((host, int(port)), timeout=60) for _ in range(2 * connections.MOST_CONNECTIONS)]
    asking = socket.create_connection((host, int(port)), timeout=60)
    asking.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = b"".join(iter(lambda: asking.recv(65536), b""))
    assert b'kontrast_http_dropped_connections_total{reason="limit"}' in answer
    assert ended(crowd[0])
    for connection in (*crowd, asking):
        connection.close()
    stop.set()
    thread.join()


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"],
    ids=["none", "half", "body"],
)
def test_a_request_that_does_not_come_ends_the_connection(config, start_exporter, monkeypatch, said):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    with start_exporter(config) as running:
        connection = connect(running)
        connection.sendall(said)
        assert ended(connection)
        connection.close()


@contextmanager
def asked_for_20_mb(figures: HttpFigures) -> Iterator[socket.socket]:
    """Yield a connection that has asked for a large page and has not read it."""
    large = Starlette(routes=[Route("/", lambda _: Response(bytes(20_000_000)))])
    server = HttpServer(large, Listening(listen="127.0.0.1:0"), figures)
    with server, connect(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        yield connection


def test_an_answer_that_is_not_taken_ends_the_connection(monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.5)
    figures = HttpFigures()
    with asked_for_20_mb(figures):
        eventually(lambda: figures.dropped[Drop.TIMEOUT])


def test_an_answer_may_be_taken_for_longer_than_a_request(monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    figures = HttpFigures()
    with asked_for_20_mb(figures) as connection:
        time.sleep(1)
        assert len(b"".join(iter(lambda: connection.recv(1 << 20), b""))) > 20_000_000
    assert figures.dropped[Drop.TIMEOUT] == 0


def test_wrong_logins_are_counted_said_once_and_hold_up_nobody(tmp_path, start_exporter, monkeypatch, caplog):
    monkeypatch.setenv("EXPORTER_PASSWORD", "right")
    config = ServeConfig(
        source=JournalAddress(tmp_path),
        listen="127.0.0.1:0",
        username="prometheus",
        password_variable="EXPORTER_PASSWORD",
    )
    right, wrong = "Basic cHJvbWV0aGV1czpyaWdodA==", "Basic cHJvbWV0aGV1czp3cm9uZw=="
    with start_exporter(config) as running:
        answers: list[int] = []
        guessing = [
            threading.Thread(target=lambda: answers.append(running.get("/metrics", Authorization=wrong)[0]))
            for _ in range(5)
        ]
        for thread in guessing:
            thread.start()
        assert running.get("/metrics")[0] == 401  # a request without a login is not a wrong login
        for thread in guessing:
            thread.join()
        assert answers == [401] * 5
        page = running.get("/metrics", Authorization=right)[2].decode()
        assert "kontrast_http_wrong_logins_total 5.0" in page
    (told,) = [record for record in caplog.records if "wrong logins" in record.getMessage()]
    assert told.levelno == logging.WARNING
    assert "127.0.0.1" in told.getMessage()


def test_what_every_server_of_pages_says_is_of_the_catalogue():
    assert {metric.name for metric in CATALOGUE if metric.of_pages} == {
        "kontrast_build_info",
        "kontrast_process_small_objects",
        "kontrast_process_heap_bytes",
        "kontrast_http_wrong_logins_total",
        "kontrast_http_dropped_connections_total",
    }


def test_live_memory_grows_by_what_is_held_and_not_by_what_was_freed():
    def told() -> list[float]:
        return [family.samples[0].value for family in ProcessCollector().collect()][1:]

    gc.collect()
    before = told()
    held = [*(bytearray(100_000) for _ in range(100)), *([number] for number in range(100_000))]
    objects, heap = (now - was for now, was in zip(told(), before, strict=True))
    assert 100_000 <= objects < 300_000
    assert 10_000_000 <= heap < 12_000_000
    del held
    objects, heap = (now - was for now, was in zip(told(), before, strict=True))
    assert objects < 1_000
    assert heap < 1_000_000
