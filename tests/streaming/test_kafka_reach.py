"""Log of the job while its Kafka is out of reach, over real sockets."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from streaming.sources import records
from streaming.sources.records import KafkaReach
from tests.waiting import eventually
from transport.address import JournalAddress, KafkaAddress


def listening(port: int = 0) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kontrast.streaming"]


def test_one_line_when_kafka_goes_and_one_when_it_is_back(caplog):
    caplog.set_level(logging.INFO)
    server = listening()
    port = server.getsockname()[1]
    address = KafkaAddress(f"127.0.0.1:{port}", "records")
    reach = KafkaReach([address, KafkaAddress(address.bootstrap_servers, "out")])
    reach.look()
    assert lines(caplog) == []
    server.close()
    for _ in range(3):
        reach.look()
    (gone,) = lines(caplog)
    assert gone.startswith(f"Kafka at 127.0.0.1:{port} is not reached (127.0.0.1:{port}: ")
    with listening(port):
        for _ in range(3):
            reach.look()
    assert len(lines(caplog)) == 2
    assert lines(caplog)[1].startswith(f"Kafka at 127.0.0.1:{port} is reached again, after ")


def test_the_line_comes_again_each_minute(caplog, monkeypatch):
    monkeypatch.setattr(records, "_LOG_AGAIN_SECONDS", 0.05)
    reach = KafkaReach([KafkaAddress("127.0.0.1:1", "records")])

    def look() -> list[str]:
        reach.look()
        return lines(caplog)

    eventually(look, lambda found: len(found) >= 3)


def test_a_kafka_with_one_server_left_is_reached(caplog):
    with listening() as server:
        servers = f"127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}"
        KafkaReach([KafkaAddress(servers, "records")]).look()
    assert lines(caplog) == []


def test_a_kafka_that_accepts_connections_and_stays_silent_does_not_answer(caplog):
    with listening() as server:
        servers = f"127.0.0.1:{server.getsockname()[1]}"
        answering = [True, False, False, True]
        reach = KafkaReach([KafkaAddress(servers, "records")], answers={servers: lambda: answering.pop(0)})
        reach.look()
        assert (lines(caplog), reach.is_away()) == ([], False)
        reach.look()
        assert reach.is_away(), "the watchdog does not count silent time"
        reach.look()
        reach.look()
        assert not reach.is_away()
    silent, over = lines(caplog)
    assert silent.startswith(f"Kafka at {servers} does not answer, though it accepts connections, and no batch is done")
    assert over.startswith(f"Kafka at {servers} is reached again, after ")


def test_it_is_looked_at_while_the_body_runs(caplog, monkeypatch):
    monkeypatch.setattr(records, "_LOOK_SECONDS", 0.01)
    reach = KafkaReach([KafkaAddress("127.0.0.1:1", "records"), JournalAddress(Path("/tmp/journal"))])
    with reach.watched():
        (line,) = eventually(lambda: lines(caplog))
    assert "127.0.0.1:1" in line
