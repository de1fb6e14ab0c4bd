"""Addresses of servers and their access rules, with their settings, which never include a secret."""

from __future__ import annotations

import pytest

from transport.listening import Listening, ListeningError


@pytest.mark.parametrize(
    ("listen", "host", "port"),
    [("127.0.0.1:9642", "127.0.0.1", 9642), ("[::1]:0", "::1", 0), ("monitor-1.example:80", "monitor-1.example", 80)],
)
def test_an_address_is_host_and_port(listen, host, port):
    listening = Listening(listen=listen)
    assert (listening.host, listening.port) == (host, port)


@pytest.mark.parametrize("listen", ["9642", "127.0.0.1:65536", "127.0.0.1:", "::1:9642", "a b:1", "", "h:1\n"])
def test_what_is_no_address_is_refused_with_the_setting_s_name(listen):
    with pytest.raises(ListeningError, match=r"^metrics_listen is "):
        Listening(listen=listen, prefix="metrics_")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_text("secret\n")
    return str(path)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tls_certificate_file": "FILE"}, "tls_key_file is not"),
        ({"tls_key_file": "FILE"}, "tls_certificate_file is not"),
        ({"tls_key_file": "FILE", "tls_certificate_file": "/absent"}, "tls_certificate_file /absent cannot be read"),
        ({"username": "prometheus"}, "needs its password"),
        ({"username": "prometheus", "password_file": "FILE", "password_variable": "SET"}, "not in both"),
        ({"username": "prometheus", "password_file": "/absent"}, "password_file /absent cannot be read"),
        ({"username": "prometheus", "password_variable": "UNSET"}, "UNSET, which the environment lacks"),
        ({"username": "a:b", "password_file": "FILE"}, "colon"),
        ({"username": "", "password_file": "FILE"}, "empty"),
        ({"password_file": "FILE"}, "username is not"),
        ({"password_variable": "SET"}, "username is not"),
    ],
)
def test_what_cannot_work_is_one_sentence(settings, sentence, file, monkeypatch):
    monkeypatch.setenv("SET", "secret")
    monkeypatch.delenv("UNSET", raising=False)
    given = {name: file if value == "FILE" else value for name, value in settings.items()}
    with pytest.raises(ListeningError, match=sentence) as refusal:
        Listening(listen="127.0.0.1:0", **given)
    assert "\n" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_the_password_comes_from_its_file_or_its_variable_and_is_shown_nowhere(file, monkeypatch):
    monkeypatch.setenv("SET", "secret")
    for settings in ({"password_file": file}, {"password_variable": "SET"}):
        listening = Listening(listen="127.0.0.1:0", username="prometheus", **settings)
        assert listening.password == "secret"
        assert "secret" not in repr(listening)


def test_an_empty_password_file_is_refused_when_it_is_read(tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(ListeningError, match="is empty"):
        _ = Listening(listen="127.0.0.1:0", username="prometheus", password_file=str(empty)).password
