"""TLS and the login, over real HTTP."""

from __future__ import annotations

import base64
import logging
import os
import pty
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.server import run
from dashboards.serving import connections
from tests.programs import program
from tests.waiting import eventually
from transport.address import JournalAddress

PASSWORD = "pässword: with a colon"
HOSTILE = "AAAA" * 20_000


def lock(key: str, locked: str) -> None:
    """Write the key again, with a passphrase."""
    command = [program("openssl"), "rsa", "-aes256", "-passout", "pass:word", "-in", key, "-out", locked]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def secured(tmp_path, certificate):
    """Return the settings of an exporter that has a certificate and asks for a login."""
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n", encoding="utf-8")
    shown, key = certificate()
    return {
        "source": JournalAddress(tmp_path),
        "listen": "127.0.0.1:0",
        "tls_certificate_file": str(shown),
        "tls_key_file": str(key),
        "username": "prometheus",
        "password_file": str(password),
    }


def trusting(certificate_file) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate_file)


def basic(login: str) -> str:
    return "Basic " + base64.b64encode(login.encode()).decode()


def test_pages_are_for_who_knows_the_password_and_probes_for_all(secured, start_exporter, caplog, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    caplog.set_level(logging.DEBUG)
    tls = trusting(secured["tls_certificate_file"])
    with start_exporter(ServeConfig(**secured)) as running:
        assert running.address.startswith("https://127.0.0.1:")
        for path in ("/metrics", "/", "/nothing-here"):
            status, headers, _ = running.get(path, tls=tls)
            assert status == 401, path
            assert headers["www-authenticate"].startswith("Basic ")
        for path in ("/healthz", "/readyz"):
            assert running.get(path, tls=tls)[0] in (200, 503), path
        login = basic(f"prometheus:{PASSWORD}")
        assert running.get("/metrics", tls=tls, Authorization=login)[0] == 200
        assert running.get("/metrics", tls=tls, Authorization=login.replace("Basic", "bAsIc"))[0] == 200
        assert running.get("/nothing-here", tls=tls, Authorization=login)[0] == 404
        running.address = running.address.replace("https:", "http:")
        with pytest.raises(OSError):  # noqa: PT011 (no answer, or half of one)
            running.get("/metrics")
        time.sleep(1)  # every connection was looked at again
    assert "Exception in callback" not in caplog.text
    assert PASSWORD not in caplog.text
    assert login.split()[1] not in caplog.text


NO_LOGINS = (
    basic(f"prometheus:{PASSWORD} "),
    basic(f"Prometheus:{PASSWORD}"),
    basic("prometheus:"),
    basic(f"prometheus:{PASSWORD}").replace("Basic", "Bearer"),
    basic(f"prometheus:{PASSWORD}").replace("Basic ", ""),
    "Basic",
    "Basic ????",
    "Basic =",
    f"Basic {HOSTILE[:40_000]}",
)


def test_whatever_is_not_the_login_is_refused(secured, start_exporter):
    config = {name: value for name, value in secured.items() if not name.startswith("tls_")}
    with start_exporter(ServeConfig(**config)) as running:
        for given in NO_LOGINS:
            assert running.get("/metrics", Authorization=given)[0] == 401, given[:60]


def test_a_password_may_come_from_the_environment(secured, start_exporter, monkeypatch):
    monkeypatch.setenv("EXPORTER_PASSWORD", "from outside")
    config = {name: value for name, value in secured.items() if not name.startswith("tls_")}
    del config["password_file"]
    with start_exporter(ServeConfig(**config, password_variable="EXPORTER_PASSWORD")) as running:
        assert running.get("/metrics", Authorization=basic("prometheus:from outside"))[0] == 200
        assert running.get("/metrics", Authorization=basic("prometheus:from inside"))[0] == 401


def shown_by(address: str) -> str:
    host, port = address.removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port)))


def test_a_renewed_certificate_is_shown_and_a_broken_one_is_not(secured, start_exporter, certificate, caplog):
    shown, key = secured["tls_certificate_file"], secured["tls_key_file"]
    with start_exporter(ServeConfig(**secured)) as running:
        first = shown_by(running.address)
        with open(shown, "w") as file:
            file.write("half of a certificate")
        eventually(lambda: caplog.text, lambda text: "keeping the old certificate" in text)
        assert shown_by(running.address) == first
        renewed, renewed_key = certificate()
        os.replace(renewed_key, key)
        os.replace(renewed, shown)
        eventually(lambda: shown_by(running.address), lambda now: now != first)
        login = basic(f"prometheus:{PASSWORD}")
        assert running.get("/metrics", tls=trusting(shown), Authorization=login)[0] == 200


def test_a_renewed_password_is_needed_and_an_empty_one_is_not(secured, start_exporter, caplog):
    caplog.set_level(logging.INFO)
    with start_exporter(ServeConfig(**secured)) as running:

        def status_with(password: str) -> int:
            login = basic(f"prometheus:{password}")
            return running.get("/metrics", tls=trusting(secured["tls_certificate_file"]), Authorization=login)[0]

        with open(secured["password_file"], "w") as file:
            file.write("")
        eventually(lambda: caplog.text, lambda text: "The old password stays" in text)
        assert status_with(PASSWORD) == 200
        with open(secured["password_file"], "w") as file:
            file.write("renewed\n")
        eventually(lambda: caplog.text, lambda text: "the new password is needed from now on" in text)
        assert (status_with("renewed"), status_with(PASSWORD)) == (200, 401)


@pytest.mark.parametrize("wrong", ["no certificate", "another key", "a key with a passphrase"])
def test_a_certificate_that_cannot_be_used_is_one_sentence_and_no_question(secured, certificate, tmp_path, wrong):
    if wrong == "no certificate":
        (tmp_path / "text").write_text("not PEM")
        secured["tls_certificate_file"] = str(tmp_path / "text")
    elif wrong == "another key":
        secured["tls_key_file"] = str(certificate()[1])
    else:
        locked = str(tmp_path / "locked.key")
        lock(secured["tls_key_file"], locked)
        secured["tls_key_file"] = locked
    with pytest.raises(ServeError, match="no certificate with its key") as failure:
        run(ServeConfig(**secured), threading.Event())
    assert "\n" not in str(failure.value)


def test_nobody_is_asked_for_a_passphrase_where_there_is_a_terminal(secured, tmp_path):
    locked = str(tmp_path / "locked.key")
    lock(secured["tls_key_file"], locked)
    files = ["--tls-certificate-file", secured["tls_certificate_file"], "--tls-key-file", locked]
    serve = [sys.executable, "-m", "cli", "serve", "--from", f"journal:{tmp_path}", "--listen", "127.0.0.1:0"]
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [*serve, *files])
    said, give_up_at = b"", time.monotonic() + 60
    try:
        while b"no certificate with its key" not in said:
            assert time.monotonic() < give_up_at, said
            assert b"pass phrase" not in said
            if select.select([terminal], [], [], 1)[0]:
                said += os.read(terminal, 4096)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def test_a_password_file_that_became_empty_is_one_sentence(secured, tmp_path):
    config = ServeConfig(**secured)
    (tmp_path / "password").write_text("")
    with pytest.raises(ServeError, match="password_file .* is empty"):
        run(config, threading.Event())


def test_a_client_that_says_nothing_keeps_nobody_else_from_an_answer(secured, start_exporter):
    with start_exporter(ServeConfig(**secured)) as running:
        host, port = running.address.removeprefix("https://").split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(50)]
        tls = trusting(secured["tls_certificate_file"])
        assert running.get("/healthz", tls=tls)[0] == 200
        for connection in silent:
            connection.close()
