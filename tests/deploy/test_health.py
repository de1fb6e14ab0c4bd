"""The image's health check, at real servers with and without TLS."""

from __future__ import annotations

import socket
import ssl

import pytest

from cli.embedded.process import free_port
from deploy.health import is_healthy
from tests.certificates import make_self_signed
from tests.http_server import HttpServer, say


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (401, True), (421, True), (503, False)])
def test_an_answer_that_blames_the_server_is_the_only_bad_one(status, healthy):
    with HttpServer(say(status)) as server:
        assert is_healthy((free_port(), server.port)) is healthy


def test_a_certificate_of_any_authority_is_good_enough(tmp_path):
    certificate = tmp_path / "server.pem"
    make_self_signed(certificate, certificate.with_suffix(".key"), "kontrast")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with HttpServer(say(200), tls) as server:
        assert is_healthy((server.port,))


def test_an_open_port_without_an_answer_is_unhealthy_beside_one_with_answers(monkeypatch):
    monkeypatch.setattr("deploy.health._TIMEOUT_SECONDS", 0.2)
    with HttpServer(say(200)) as server, socket.create_server(("127.0.0.1", 0)) as hangs:
        assert not is_healthy((server.port, hangs.getsockname()[1]))


def test_silence_at_both_ports_is_unhealthy():
    assert not is_healthy((free_port(), free_port()))
