"""Foreign host names are refused, and every answer has the headers that keep other sites out."""

from __future__ import annotations

import socket
from itertools import product

import pytest

from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from tests.dashboards.page_load import asking
from transport.address import JournalAddress

FOREIGN = "kafka.evil.example"
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


def forbids(headers: dict[str, str]) -> bool:
    return "default-src 'none'" in headers["content-security-policy"] and headers.items() >= HEADERS.items()


def test_a_foreign_host_name_gets_one_sentence_with_the_setting(exporter):
    hosts = (FOREIGN, f"{FOREIGN}:9642", "127.0.0.1.evil.example", "localhost.evil", "a b")
    for path, host in product(("/", "/metrics", "/healthz", "/api/v1/clusters", "/static/live.js"), hosts):
        status, headers, body = exporter.get(path, Host=host)
        assert (status, headers["content-type"]) == (421, "text/plain; charset=utf-8"), (path, host)
        assert body.count(b"\n") == 1
        assert b"allowed_hosts" in body
        assert forbids(headers)


def test_addresses_and_names_of_this_machine_are_answered(exporter):
    known = ("localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "10.1.2.3:9642", "[::1]:9642", socket.gethostname())
    for host in known:
        assert exporter.get("/metrics", Host=host)[0] == 200, host


@pytest.mark.parametrize("allowed", [FOREIGN, FOREIGN.upper(), "*"])
def test_an_allowed_name_is_answered(tmp_path, start_exporter, allowed):
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", allowed_hosts=(allowed,))
    with start_exporter(config) as running:
        assert running.get("/metrics", Host=FOREIGN)[0] == 200


@pytest.mark.parametrize("wrong", ["", "http://a", "a:80", "*.example", "a/b"])
def test_an_allowed_name_that_is_none_is_refused(tmp_path, wrong):
    with pytest.raises(ServeError, match="allowed_hosts has"):
        ServeConfig(source=JournalAddress(tmp_path), allowed_hosts=(wrong,))


def test_every_answer_keeps_other_sites_out(exporter):
    exporter.metrics_with(r"^kontrast_source_up\{.*\} 1")
    found = ("/", "/metrics", "/static/page.css", "/colours.css", "/api/v1/clusters", "/api/v1/openapi.json")
    absent = ("/static/none", "/api/v1/clusters/none", "/nothing-here")
    others = {"/readyz": 503, "/clusters/north/consequences": 400}
    for path, status in {**dict.fromkeys(found, 200), **dict.fromkeys(absent, 404), **others}.items():
        answered, headers, _ = exporter.get(path)
        assert (answered, forbids(headers)) == (status, True), (path, headers)


def test_the_demand_for_a_login_keeps_other_sites_out(tmp_path, start_exporter, monkeypatch):
    monkeypatch.setenv("EXPORTER_PASSWORD", "right")
    config = ServeConfig(
        source=JournalAddress(tmp_path), listen="127.0.0.1:0", username="ann", password_variable="EXPORTER_PASSWORD"
    )
    with start_exporter(config) as running:
        status, headers, _ = running.get("/metrics")
    assert (status, forbids(headers)) == (401, True)


def test_the_refusal_of_bytes_that_are_no_request_keeps_other_sites_out(exporter):
    with asking(exporter.address, "/a b c") as connection:
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode().lower()
    assert answer.startswith("http/1.1 400 ")
    assert all(f"\r\n{name}: {value.lower()}\r\n" in answer for name, value in HEADERS.items())
    assert "\r\ncontent-security-policy: default-src 'none';" in answer
