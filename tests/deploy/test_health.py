"""The image's health check, at real servers with and without TLS."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli.embedded.process import free_port
from deploy.health import is_healthy
from tests.certificates import make_self_signed


@contextmanager
def _serving(status: int, certificate: Path | None = None) -> Iterator[int]:
    """Answer each request with this status, over TLS if there is a certificate, whose key is beside it."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (401, True), (421, True), (503, False)])
def test_an_answer_that_blames_the_server_is_the_only_bad_one(status, healthy):
    with _serving(status) as port:
        assert is_healthy((free_port(), port)) is healthy


def test_a_certificate_of_any_authority_is_good_enough(tmp_path):
    certificate = tmp_path / "server.pem"
    make_self_signed(certificate, certificate.with_suffix(".key"), "kontrast")
    with _serving(200, certificate) as port:
        assert is_healthy((port,))


def test_silence_at_both_ports_is_unhealthy():
    assert not is_healthy((free_port(), free_port()))
