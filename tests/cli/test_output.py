"""Lines of a log, harmless for a terminal whatever they quote, and of bounded length."""

from __future__ import annotations

import base64
import json
import logging
import re
from urllib.parse import quote

import httpx
import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import Py4JNetworkError

from cli.printing import standard_error
from transport.secret import read_secret

HOSTILE = "one\ntwo\r\x1b[2Jthree\u202efour\x00"
ESCAPED = r"one\ntwo\r\x1b[2Jthree\u202efour\x00"


@pytest.fixture
def log(capsys):
    def lines(say, **how) -> list[str]:
        standard_error.configure(**how)
        say()
        return capsys.readouterr().err.splitlines()

    yield lines
    standard_error.configure()
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, standard_error._StandardError)]:
        root.removeHandler(handler)


def test_foreign_text_is_one_escaped_line(log):
    (line,) = log(lambda: logging.getLogger("kontrast.ingest").warning("the path %s", HOSTILE))
    assert line.endswith(f"WARNING kontrast.ingest: the path {ESCAPED}")


def test_a_sentence_for_who_started_the_command_is_one_escaped_line(log):
    (line,) = log(lambda: standard_error.complain(f"the path {HOSTILE}"))
    assert r"\x1b[2Jthree\u202efour\x00" in line
    assert "\x1b[2J" not in line


def test_an_exceptions_text_is_escaped_too(log):
    def fail() -> None:
        try:
            raise ValueError("\x1b[2J")
        except ValueError:
            logging.getLogger("kontrast.ingest").exception("failed")

    lines = log(fail)
    assert lines[-1] == r"ValueError: \x1b[2J"


def test_a_line_has_an_end(log):
    for how in ({}, {"as_json": True}):
        (line,) = log(lambda: logging.getLogger("kontrast.ingest").warning("x" * 10**6), **how)
        assert len(line) < 10_000


def test_json_says_what_was_said(log):
    (line,) = log(lambda: logging.getLogger("kontrast.ingest").warning(HOSTILE), as_json=True)
    assert json.loads(line)["message"] == HOSTILE


def test_a_library_says_the_same_once_a_minute_and_kontrast_as_often_as_it_means_to(log):
    def say() -> None:
        for number in range(1_000):
            logging.getLogger("asyncio").error("accept failed: %d", number)
        logging.getLogger("asyncio").error("something else")
        for _ in range(3):
            logging.getLogger("kontrast.ingest").warning("again")

    said = [re.sub(r"^\S+ ", "", line) for line in log(say)]
    assert said == [
        "ERROR asyncio: accept failed: 0",
        "ERROR asyncio: something else",
        *["WARNING kontrast.ingest: again"] * 3,
    ]


def test_a_request_is_no_line_unless_its_library_is_named(log):
    def ask() -> None:
        with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as client:
            client.post("http://alertmanager.example/api/v2/alerts")

    assert log(ask) == []
    (line,) = log(ask, libraries=("httpx",))
    assert "HTTP Request: POST http://alertmanager.example/api/v2/alerts" in line


SECRET = 'a "quoted" \\ pässword/+'


@pytest.mark.parametrize("how", [{}, {"as_json": True}])
def test_a_secret_that_was_read_is_in_no_line_in_any_notation(log, tmp_path, how):
    (tmp_path / "password").write_text(f"{SECRET}\n")
    read_secret(tmp_path / "password", None)
    basic = [base64.b64encode(f"{user}:{SECRET}".encode()).decode() for user in ("a", "ab", "abc")]
    shown = [SECRET, {"password": SECRET}, f"\0user\0{SECRET}".encode(), json.dumps(SECRET), quote(SECRET), *basic]

    def fail() -> None:
        for text in shown:
            logging.getLogger("kontrast.ingest").warning("sends %s", text)
        try:
            raise ValueError(SECRET)
        except ValueError:
            logging.getLogger("kontrast.ingest").exception("x" * 7_990 + SECRET)

    said = "\n".join(log(fail, **how))
    assert said.count("[hidden]") >= len(shown) + 1
    assert "quoted" not in said
    core = base64.b64encode(SECRET.encode()).decode()[4:-4]
    assert not any(base64.b64encode(b"\0" * before + SECRET.encode()).decode()[8:-8] in said for before in range(3))
    assert core not in said


def test_libraries_log_their_details_only_if_they_are_named(log):
    def say() -> None:
        for name in ("kontrast.ingest", "kafka.conn", "kontrast.ingest.kazoo", "httpcore"):
            logging.getLogger(name).debug("details of %s", name)

    (own,) = log(say, level="debug")
    assert own.endswith("details of kontrast.ingest")
    named = log(say, level="debug", libraries=("kafka", "kazoo"))
    assert [line.split()[-1] for line in named] == ["kontrast.ingest", "kafka.conn", "kontrast.ingest.kazoo"]


class LostConnection:
    def send_command(self, _: str) -> str:
        raise Py4JNetworkError("Answer from Java side is empty")

    def close(self, _: object) -> None:
        pass


@pytest.mark.parametrize("libraries", [(), ("py4j",)])
def test_a_lost_java_is_a_stack_only_for_who_named_py4j_which_logs_it_to_the_root(log, monkeypatch, libraries):
    monkeypatch.setattr(GatewayClient, "_get_connection", lambda _: LostConnection())
    monkeypatch.setattr(GatewayClient, "_should_retry", lambda *_, **__: False)
    said = log(lambda: GatewayClient.send_command(GatewayClient.__new__(GatewayClient), "c"), libraries=libraries)
    assert bool(said) is bool(libraries)
