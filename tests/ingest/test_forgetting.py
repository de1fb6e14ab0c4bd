"""Forgetting a cluster in a topic without locks, which needs the absence of any forwarder."""

from __future__ import annotations

import threading
import time

import pytest

from controller.contract.records import Record, RecordKind
from ingest import forgetting
from ingest.errors import IngestError
from ingest.forgetting import forget, newest_of
from ingest.sinks.kafka_sink import KafkaSink
from tests.clients import kafka_admin
from transport.address import KafkaAddress


def heartbeat(seq: int, observed_ms: int = 1) -> Record:
    return Record(cluster="blue", generation=10**15, seq=seq, kind=RecordKind.HEARTBEAT, observed_ms=observed_ms)


def test_a_topic_that_is_not_there_is_not_made(changes: KafkaAddress) -> None:
    with pytest.raises(IngestError, match="does not exist. Name the stream"):
        newest_of(changes, "blue", threading.Event())
    with kafka_admin(changes.bootstrap_servers) as admin:
        assert changes.topic not in admin.list_topics()


def test_a_cluster_that_is_forwarded_is_refused_by_its_clock_or_by_a_newer_record(
    changes: KafkaAddress, sink: KafkaSink
) -> None:
    sink.append([heartbeat(0, observed_ms=int(time.time() * 1000))])
    with pytest.raises(IngestError, match="wrote of blue to .* within the last 30 s"):
        forget(changes, "blue", -1, threading.Event())
    sink.append([heartbeat(1)])

    class Listening(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            sink.append([heartbeat(2)])  # `forget` is listening, and the heartbeat has a clock that is far behind
            return False

    with pytest.raises(IngestError, match="End each that forwards it"):
        forget(changes, "blue", -1, Listening())
    newest = newest_of(changes, "blue", threading.Event())
    assert newest is not None
    assert newest.seq == 2


class Stopped(threading.Event):
    """Event that is set as soon as something waits for it."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


def test_the_record_is_the_clusters_newest(
    changes: KafkaAddress, sink: KafkaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_LISTENS_SECONDS", 0.1)
    sink.append([heartbeat(0)])
    assert not forget(changes, "blue", -1, Stopped())
    assert newest_of(changes, "blue", threading.Event()) == heartbeat(0)
    assert forget(changes, "blue", -1, threading.Event())
    newest = newest_of(changes, "blue", threading.Event())
    assert newest is not None
    assert (newest.kind, newest.generation) == (RecordKind.FORGOTTEN, 10**15 + 1)
    forget(changes, "blue", 10**16, threading.Event())  # once more, after the position of the outputs
    assert sink.newest_generation() == 10**16 + 1
