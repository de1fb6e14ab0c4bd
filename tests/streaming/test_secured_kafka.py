"""Stream and outputs on a real broker with TLS, each SASL mechanism, and the ACLs that the documentation names."""

from __future__ import annotations

import base64
import re
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from kafka.admin import KafkaAdminClient

from cli.embedded.process import own_command
from cli.embedded.zookeeper import ZooKeeper
from cli.printing.standard_error import LIBRARIES
from controller.contract.records import decode_record
from ingest.errors import IngestError
from ingest.sinks.kafka_sink import KafkaSink
from outputs import SourceDownError, open_outputs
from outputs.kafka_connections import client_options
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.sinks.sink import output_topics
from tests.lanes import in_gate
from tests.secured_broker import USERS, SecuredBroker
from tests.streaming.cluster_records import life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually
from transport.address import KafkaAddress
from transport.kafka_login import Mechanism
from transport.topics import request_topic

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


ROWS = [(user, kind) for user, kinds in documented().items() for kind in kinds]


def allow(broker: SecuredBroker, stream: KafkaAddress, outputs: KafkaAddress, without: tuple[str, str] | None = None):
    """Add the ACLs of the page, but for one row."""
    topics = {
        "CHANGES": [stream.topic],
        "CHANGES.snapshot-wanted": [request_topic(stream)],
        "OUTPUTS.*": [topic.name for topic in output_topics(outputs)],
    }
    by_user = documented()
    assert by_user.keys() == set(USERS)
    broker.allow(
        {
            user: {name: done for kind, done in kinds.items() if (user, kind) != without for name in topics[kind]}
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


@pytest.mark.parametrize("mechanism", in_gate("SCRAM-SHA-512", of=MECHANISMS))
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


@pytest.mark.usefixtures("spark")  # beside the tests that share the broker
def test_a_new_connection_logs_in_with_the_password_that_the_file_has_by_then(broker, own_name, tmp_path):
    file = tmp_path / "password"
    own = broker.login("serve", "SCRAM-SHA-256")
    file.write_bytes(Path(str(own.password_file)).read_bytes())
    address = KafkaAddress(broker.address, own_name, login=replace(own, password_file=str(file)))
    with closing(KafkaAdminClient(**client_options(address), connections_max_idle_ms=500)) as admin:
        admin.list_topics()
        try:
            broker.make_users(["serve"], "renewed")
            file.write_text("renewed\n")
            time.sleep(2)  # the connection ends
            admin.list_topics()
        finally:
            broker.make_users(["serve"])


def play(broker, stream, outputs, streams, spark) -> None:
    """Let every command use all its ACLs, from the change to the reader, and back with a request."""
    life = life_of("east", topics=2)
    expected = life.rows()["metadata"]
    watch = KafkaSink(as_user(broker, stream, "watch", "PLAIN"), "east", threading.Event(), lambda _: None)
    ends = (as_user(broker, address, "stream", "PLAIN") for address in (stream, outputs))
    with closing(watch), running(spark, streams.config(**dict(zip(("source", "sink"), ends, strict=True)))):
        watch.append(life.records)
        assert metadata_lines(as_user(broker, outputs, "serve", "PLAIN"), len(expected)) == expected
        behind_a_hole = msgspec.structs.replace(life.records[-1], seq=len(life.records) + 1)
        watch.append([behind_a_hole])
        eventually(watch.complete_read_requested, within_seconds=60)


@pytest.mark.nightly
def test_every_row_together_is_enough(broker, own_name, streams, spark):
    allow(broker, *(ends := addresses(broker, own_name)))
    play(broker, *ends, streams, spark)


@pytest.mark.nightly
@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_every_row_is_needed(broker, own_name, streams, spark, row):
    allow(broker, *(ends := addresses(broker, own_name)), without=row)
    with pytest.raises((IngestError, StreamError, SourceDownError, AssertionError)):
        play(broker, *ends, streams, spark)


@pytest.mark.nightly
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


def _first_log_of_watch(command: list[str], environment: dict[str, str]) -> str:
    """Return the log until `watch`, which opens the stream first, waits for ZooKeeper."""
    lines = []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "ZooKeeper at 127.0.0.1:1 is not reachable" in line:
                process.terminate()
    return "".join(lines)


@pytest.mark.timeout(300)
@pytest.mark.nightly
def test_no_command_logs_a_secret_even_with_all_details(broker, own_name, streams, work_off, tmp_path):
    """A password, or its Base64 form behind a user, must not reach the log of a command or of a library."""
    stream, outputs = addresses(broker, own_name)
    allow(broker, stream, outputs)
    login, file = broker.login("stream", "PLAIN"), tmp_path / "kontrast.toml"
    file.write_text(
        f'[kafka]\ntls = true\nca_file = "{login.ca_file}"\nsasl_mechanism = "PLAIN"\nusername = "stream"\n'
        f'password_file = "{login.password_file}"\n[stream]\nfrom = "{stream}"\nto = "{outputs}"\n'
        f'checkpoint = "{tmp_path / "checkpoint"}"\n[serve]\nfrom = "{outputs}"\n'
        f'[watch]\nzookeeper = "127.0.0.1:1"\ncluster = "east"\nto = "{stream}"\n'
    )
    commands = {
        "stream": ["--available-now"],
        "status": [],
        "check": ["--from", str(outputs)],
        "support-bundle": ["--out", str(tmp_path / "bundle.tar.xz")],
        "serve": ["--check"],
    }
    secret = Path(login.password_file).read_text().strip()
    behind = (base64.b64encode(bytes(before) + secret.encode())[4:-4].decode() for before in range(3))
    forms = [secret, repr(secret)[1:-1], *behind]
    detailed = ["--log-level", "debug", *(f"--log-library={name}" for name in LIBRARIES)]
    command, environment = own_command(*detailed)
    logs = {
        name: subprocess.run(
            [*command, name, "--config", str(file), *arguments], env=environment, capture_output=True, text=True
        )
        for name, arguments in commands.items()
    }
    said = {name: ran.stdout + ran.stderr for name, ran in logs.items()}
    said["watch"] = _first_log_of_watch([*command, "watch", "--config", str(file)], environment)
    assert {name: [form for form in forms if form in text] for name, text in said.items()} == dict.fromkeys(said, [])
    assert [name for name, text in said.items() if " DEBUG " not in text] == []
    assert "[hidden]" in said["watch"]
    assert "DEBUG py4j" in said["stream"]
    with tarfile.open(tmp_path / "bundle.tar.xz") as bundle:
        bundle.extractall(tmp_path / "bundle", filter="data")
    packed = [path.read_text() for path in (tmp_path / "bundle").rglob("*") if path.is_file()]
    assert len(packed) > 2
    assert [form for form in forms if any(form in text for text in packed)] == []
