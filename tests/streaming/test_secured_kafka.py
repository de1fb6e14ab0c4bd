"""Stream and outputs on a real broker with TLS, each SASL mechanism, and the ACLs that the documentation names."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import decode_record
from ingest.errors import IngestError
from ingest.sinks.kafka_sink import KafkaSink
from outputs import SourceDownError, open_outputs
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.sinks.sink import output_topics
from tests.secured_broker import USERS, SecuredBroker
from tests.streaming.cluster_records import life_of
from transport.address import KafkaAddress
from transport.complete_read_requests import request_topic
from transport.kafka_login import Mechanism

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
MECHANISMS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("secured")
    with ZooKeeper(directory / "zookeeper") as zookeeper:
        broker = SecuredBroker(zookeeper.connect_string, directory / "kafka")
        try:
            broker.start()
            broker.make_users()
            yield broker
        finally:
            broker.kill()


def documented() -> dict[str, dict[str, list[str]]]:
    """Return the page's operations by command and kind of topic."""
    rows = re.findall(r"^\| `kontrast (\w+)` \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    found: dict[str, dict[str, list[str]]] = {}
    for command, topics, operations in rows:
        if command in USERS and topics.startswith("`"):
            found.setdefault(command, {})[topics.strip().strip("`")] = operations.strip().split(", ")
    return found


def allow(broker: SecuredBroker, stream: KafkaAddress, outputs: KafkaAddress) -> None:
    topics = {
        "CHANGES": [stream.topic],
        "CHANGES.snapshot-wanted": [request_topic(stream)],
        "OUTPUTS.*": [topic.name for topic in output_topics(outputs)],
    }
    by_user = documented()
    assert by_user.keys() == set(USERS)
    broker.allow(
        {
            user: {name: operations for kind, operations in kinds.items() for name in topics[kind]}
            for user, kinds in by_user.items()
        }
    )


def as_user(broker: SecuredBroker, address: KafkaAddress, user: str, mechanism: Mechanism) -> KafkaAddress:
    return replace(address, login=broker.login(user, mechanism))


def addresses(broker: SecuredBroker, own_name: str) -> tuple[KafkaAddress, KafkaAddress]:
    return KafkaAddress(broker.address, own_name), KafkaAddress(broker.address, f"{own_name}-out")


def metadata_lines(address: KafkaAddress, count: int) -> list[bytes]:
    lines: list[bytes] = []
    give_up_at = time.monotonic() + 60
    with closing(open_outputs(address, ("metadata",))) as source:
        while len(lines) < count:
            lines += [line for chunk in source.poll() for line in chunk.lines]
            assert time.monotonic() < give_up_at, f"{len(lines)} of {count} rows"
    return lines


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_the_documentation_allows_is_enough_from_the_change_to_the_reader(
    broker, own_name, streams, work_off, mechanism
):
    stream, outputs = addresses(broker, own_name)
    allow(broker, stream, outputs)
    life = life_of("east", topics=2)
    watch = KafkaSink(as_user(broker, stream, "watch", mechanism), "east", threading.Event(), lambda _: None)
    with closing(watch):
        watch.append([decode_record(line) for line in life.lines])
        assert watch.newest_record() == decode_record(life.lines[-1])
        assert not watch.complete_read_requested()
    ends = (as_user(broker, address, "stream", mechanism) for address in (stream, outputs))
    work_off(streams.config(**dict(zip(("source", "sink"), ends, strict=True))))
    expected = life.rows()["metadata"]
    assert metadata_lines(as_user(broker, outputs, "serve", mechanism), len(expected)) == expected


def test_a_user_without_rights_or_with_a_wrong_password_gets_a_sentence(broker, own_name, streams, work_off, tmp_path):
    stream, outputs = addresses(broker, own_name)
    with pytest.raises(IngestError, match="refuses to create them .*Authorization failed"):
        KafkaSink(as_user(broker, stream, "watch", "PLAIN"), "east", threading.Event(), lambda _: None)
    with pytest.raises(StreamError, match="refuses to create them"):
        work_off(streams.config(sink=as_user(broker, outputs, "stream", "PLAIN")))

    (tmp_path / "wrong").write_text("wrong")
    login = replace(broker.login("stream", "SCRAM-SHA-512"), password_file=str(tmp_path / "wrong"))
    with pytest.raises(StreamError, match="invalid credentials"):
        work_off(StreamConfig(source=replace(stream, login=login), sink=outputs, checkpoint=str(tmp_path / "c")))
    with closing(open_outputs(replace(outputs, login=login), ("metadata",))) as source:
        with pytest.raises(SourceDownError) as refused:
            source.poll()
        assert str(refused.value).endswith("Check the listener, the user name and the password")
    untrusted = replace(broker.login("serve", "PLAIN"), ca_file=None)
    source = open_outputs(replace(outputs, login=untrusted), ("metadata",))
    with closing(source), pytest.raises(SourceDownError, match="CERTIFICATE_VERIFY_FAILED"):
        source.poll()
    (tmp_path / "wrong").unlink()
    with closing(open_outputs(replace(outputs, login=login), ("metadata",))) as source:
        with pytest.raises(SourceDownError) as unread:
            source.poll()
        assert f"password_file {tmp_path / 'wrong'} cannot be read" in str(unread.value)
