"""Nodes with invalid answers to ApiVersions. Each gives one sentence, within the time and little memory."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import hypothesis
import pytest
from hypothesis import strategies

from cli.embedded.process import free_port
from migration.nodes.nodes import Mode, mode_of
from migration.nodes.requests import ask_api_versions
from outputs.kafka_node import NodeError
from tests.certificates import make_self_signed
from transport.kafka_login import KafkaLogin, split_address

Answer = Callable[[socket.socket, bytes], None]

OF_KAFKA_2_0 = struct.pack(">hi", 35, 2) + struct.pack(">hhh", 18, 0, 2) + struct.pack(">hhh", 4, 0, 1)
SUPPORTED = (
    b"\0\0"  # no error
    b"\3" + struct.pack(">hhh", 4, 0, 7) + b"\0" + struct.pack(">hhh", 18, 0, 4) + b"\0"
    b"\0\0\0\0"  # throttled for 0 ms
)


@contextmanager
def answering(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server that gives one answer to each request. Yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    with accepted, suppress(OSError, struct.error):
                        connection = tls.wrap_socket(accepted, server_side=True) if tls else accepted
                        (length,) = struct.unpack(">i", connection.recv(4))
                        answer(connection, connection.recv(length)[4:8])

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def ask(address: str, *, timeout_seconds: float = 10.0, login: KafkaLogin | None = None):
    return ask_api_versions(address, login or KafkaLogin(), timeout_seconds)


def whole(body: bytes) -> Answer:
    return lambda connection, correlation: connection.sendall(
        struct.pack(">i", len(correlation + body)) + correlation + body
    )


def test_a_broker_that_is_older_than_tagged_fields_is_read():
    with answering(whole(OF_KAFKA_2_0)) as address:
        answer = ask(address)
    assert (answer.apis, answer.zk_migration_ready, answer.metadata_version) == ({4, 18}, False, None)


@pytest.mark.parametrize(("tags", "is_ready"), [(b"\0", False), (b"\1\3\1\1", True), (b"\1\3\1\0", False)])
def test_the_flag_of_the_migration_is_a_tagged_field(tags, is_ready):
    with answering(whole(SUPPORTED + tags)) as address:
        assert ask(address).zk_migration_ready is is_ready


@pytest.mark.parametrize("length", [-1, 64 * 1024 + 1, 2**31 - 1])
def test_an_answer_that_is_too_long_is_refused_by_its_length(length):
    with (
        answering(lambda connection, _: connection.sendall(struct.pack(">i", length))) as address,
        pytest.raises(NodeError, match=f"cannot be read: .*{length}"),
    ):
        ask(address)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        SUPPORTED[:5],
        b"\0\0\xff\xff\xff\xff\x0f" + b"\0" * 100,  # an array of four thousand million
        SUPPORTED + b"\xff\xff\xff\xff\x0f",  # as many tagged fields
        SUPPORTED + b"\1\3\0",
        SUPPORTED + b"\1\2\7\2\3\xff\xfe\0\0\0\0\0",  # a feature's name that is not UTF-8
    ],
)
def test_an_answer_that_is_none_is_one_sentence(body):
    with answering(whole(body)) as address:
        assert "cannot be read" in sentence(address)


@hypothesis.settings(deadline=None, max_examples=50)
@hypothesis.given(strategies.binary(max_size=100))
def test_whatever_the_bytes_are_there_is_an_answer_or_a_sentence(body):
    with answering(whole(b"\0\0" + body)) as address:
        assert "\n" not in sentence(address)


def sentence(address: str) -> str:
    """Return the reason for a missing answer, or an empty text."""
    try:
        ask(address)
    except NodeError as error:
        return str(error)
    return ""


def test_another_correlation_id_is_refused():
    def answer(connection: socket.socket, _: bytes) -> None:
        whole(SUPPORTED + b"\0")(connection, b"\0\0\0\x63")

    with answering(answer) as address, pytest.raises(NodeError, match="cannot be read"):
        ask(address)


def test_bytes_that_come_one_by_one_end_with_the_time():
    def answer(connection: socket.socket, correlation: bytes) -> None:
        stop = threading.Event()
        for byte in struct.pack(">i", 1000) + correlation + bytes(990):
            connection.sendall(bytes([byte]))
            stop.wait(0.1)

    with answering(answer) as address, pytest.raises(NodeError, match=r"within 0.5 s"):
        ask(address, timeout_seconds=0.5)


def test_a_connection_that_is_closed_names_what_it_may_be():
    with answering(lambda _connection, _correlation: None) as address, pytest.raises(NodeError, match="expect TLS"):
        ask(address)


def test_a_node_with_tls_is_asked_with_the_authority_it_was_given_and_not_without(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make_self_signed(certificate, key, "broker")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with answering(whole(SUPPORTED + b"\1\3\1\1"), context) as address:
        assert ask(address, login=KafkaLogin(tls=True, ca_file=str(certificate))).zk_migration_ready
        with pytest.raises(NodeError, match="no TLS connection comes about: CERTIFICATE_VERIFY_FAILED"):
            ask(address, login=KafkaLogin(tls=True))
        with pytest.raises(NodeError):
            ask(address, timeout_seconds=1)


def test_tls_that_is_none_and_nobody_there_are_sentences(tmp_path):
    certificate = tmp_path / "certificate.pem"
    make_self_signed(certificate, tmp_path / "key.pem", "broker")
    with answering(whole(SUPPORTED + b"\0")) as address, pytest.raises(NodeError):
        ask(address, timeout_seconds=1, login=KafkaLogin(tls=True, ca_file=str(certificate)))
    with pytest.raises(NodeError, match="refused"):
        ask(f"127.0.0.1:{free_port()}")


# --- the meaning of an answer


@pytest.mark.parametrize(
    ("apis", "ready", "mode"),
    [
        ({3, 4}, False, Mode.ZOOKEEPER),
        ({3, 4}, True, Mode.ZOOKEEPER_MIGRATING),
        ({3, 55}, False, Mode.KRAFT),
        ({55, 62}, True, Mode.CONTROLLER_MIGRATING),
        ({55, 62}, False, Mode.CONTROLLER),
        (set(), False, None),
        ({4, 55}, False, None),
    ],
)
def test_the_mode_of_a_node(apis, ready, mode):
    assert mode_of(apis, zk_migration_ready=ready) is mode


@pytest.mark.parametrize(
    ("address", "parts"), [("b1:9092", ("b1", 9092)), ("[::1]:1", ("::1", 1)), ("10.0.0.1:65535", ("10.0.0.1", 65535))]
)
def test_an_address_is_a_host_and_a_port(address, parts):
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "b1", ":1", "b1:", "b1:x", "b1:0", "b1:65536"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="HOST:PORT"):
        split_address(address)
