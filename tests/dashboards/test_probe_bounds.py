"""Hostile answers to the probe. Each gives one sentence, within the time-out and with little memory."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from dashboards.probe.broker import BrokerConnection, Endpoint, ProbeError, expected_bytes
from dashboards.probe.config import KafkaLoginConfig

API_VERSIONS, METADATA = 18, 3
# The form of brokers before 2.4, without tagged fields.
SUPPORTED = struct.pack(">hi", 0, 2) + struct.pack(">hhh", API_VERSIONS, 0, 0) + struct.pack(">hhh", METADATA, 0, 7)
SUPPORTED_BY_UNKNOWN_VERSION = struct.pack(">h", 35) + SUPPORTED[2:]
MEBIBYTE = 1024**2

Answer = Callable[[socket.socket, bytes], None]


class Broker:
    """A broker that shakes hands, gives one answer to a metadata request, and counts the bytes it could send."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.sent_bytes = 0
        self.ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint("PLAINTEXT", "127.0.0.1", self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def send(self, connection: socket.socket, data: bytes) -> None:
        connection.sendall(data)
        self.sent_bytes += len(data)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError, struct.error):
                    self._talk(connection)
                self.ended.set()

    def _talk(self, connection: socket.socket) -> None:
        while True:
            (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            request = connection.recv(length, socket.MSG_WAITALL)
            api, version = struct.unpack(">hh", request[:4])
            if api == API_VERSIONS:
                body = request[4:8] + (SUPPORTED if version == 0 else SUPPORTED_BY_UNKNOWN_VERSION)
                connection.sendall(struct.pack(">i", len(body)) + body)
            else:
                self._answer(connection, request[4:8])


def framed(correlation: bytes, body: bytes, length: int | None = None) -> bytes:
    return struct.pack(">i", len(correlation + body) if length is None else length) + correlation + body


@contextmanager
def answering(answer: Callable[[Broker, socket.socket, bytes], None], **settings) -> Iterator[tuple[Broker, object]]:
    broker = Broker(lambda connection, correlation: answer(broker, connection, correlation))
    connection = BrokerConnection(broker.endpoint, KafkaLoginConfig(), settings.pop("timeout_seconds", 30.0))
    try:
        yield broker, connection
    finally:
        connection.close()
        broker.close()


def endless(broker: Broker, connection: socket.socket, start: bytes, piece: bytes) -> None:
    broker.send(connection, start)
    while True:
        broker.send(connection, piece)


@pytest.mark.parametrize("length", [8 * MEBIBYTE, 2**31 - 1, -1])
def test_a_frame_that_is_too_long_for_the_cluster_is_refused_by_its_length(length):
    def answer(broker: Broker, connection: socket.socket, correlation: bytes) -> None:
        endless(broker, connection, framed(correlation, b"", length), b"\0" * 65536)

    with answering(answer) as (broker, connection):
        with pytest.raises(ProbeError, match=rf"twice the size of the cluster's metadata: .*{length}"):
            connection.view(0)
        assert broker.ended.wait(60)
        assert broker.sent_bytes < 32 * MEBIBYTE  # the capacity of the sockets' buffers, and the current turn


def test_a_flood_of_frames_ends_with_the_first_that_nobody_asked_for():
    def answer(broker: Broker, connection: socket.socket, _: bytes) -> None:
        endless(broker, connection, b"", framed(b"\0\0\0\0", b"x" * 1000) * 1000)

    with answering(answer) as (broker, connection):
        with pytest.raises(ProbeError, match="does not answer"):
            connection.view(0)
        assert broker.ended.wait(60)
        assert broker.sent_bytes < 32 * MEBIBYTE


@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 64,
        struct.pack(">ii", 0, 2**31 - 1),
        struct.pack(">ii", 0, -(2**31)),
        struct.pack(">ii", 0, 0) + struct.pack(">h", -1) + struct.pack(">ii", 1, 2**31 - 1),
        b"",
        random.Random(3).randbytes(4096),  # some noise is an answer without brokers, by chance
    ],
    ids=["ones", "brokers without end", "less than no brokers", "topics without end", "nothing", "noise"],
)
def test_an_answer_that_is_no_metadata_is_one_sentence(body):
    def answer(broker: Broker, connection: socket.socket, correlation: bytes) -> None:
        broker.send(connection, framed(correlation, body))

    with answering(answer, timeout_seconds=1.0) as (_, connection), pytest.raises(ProbeError) as refusal:
        connection.view(0)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_an_answer_that_comes_byte_by_byte_ends_with_the_timeout():
    pause = threading.Event()

    def answer(broker: Broker, connection: socket.socket, correlation: bytes) -> None:
        broker.send(connection, framed(correlation, b"", 100_000))
        while not pause.wait(0.02):
            broker.send(connection, b"\0")

    with answering(answer, timeout_seconds=0.5) as (_, connection):
        with pytest.raises(ProbeError, match="timed out"):
            connection.view(0)
        pause.set()


def test_a_connection_is_made_anew_when_the_cluster_has_outgrown_its_bound(rows):
    metadata = struct.pack(">ii", 0, 0) + struct.pack(">h", -1) + struct.pack(">ii", 1, 0)
    asked = []

    def answer(broker: Broker, connection: socket.socket, correlation: bytes) -> None:
        asked.append(connection)
        padding = struct.pack(">ii", 0, 0) + struct.pack(">h", -1) + struct.pack(">ii", 1, 1)
        topic = struct.pack(">hh", 0, 1) + b"t" + b"\0" + struct.pack(">i", 60_000)
        partition = struct.pack(">hiii", 0, 0, 1, 0) + struct.pack(">iii", 0, 0, 0)
        broker.send(connection, framed(correlation, padding + topic + partition * 60_000 if large else metadata))

    large = False
    with answering(answer) as (_, connection):
        assert connection.view(0) == connection.view(0) == {}
        assert asked[0] is asked[1]
        large = True
        with pytest.raises(ProbeError, match="answers with more than"):
            connection.view(0)
        partitions = {("t", number): rows.partition("t", number) for number in range(60_000)}
        assert len(connection.view(expected_bytes(partitions))) == 1
