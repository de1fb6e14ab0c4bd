"""Several forwarders of one cluster, as real processes, with a real ensemble for their election and a real Kafka.

The leading forwarder and its readers belong here. `test_kafka_sink` has the sink alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from cli.embedded.process import ChildProcess
from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import Record, RecordKind, data_fields, encode_record
from controller.restore.stored_context import new_context
from controller.step import step
from ingest.config import IngestConfig
from ingest.election import Election, UnopposedTerms
from ingest.errors import IngestError
from ingest.sinks.journal_sink import JournalSink
from ingest.sinks.kafka_sink import KafkaSink
from ingest.sinks.sink import SinkUnavailableError
from tests.ingest.conftest import make_cluster, replayed_tree, server_tree
from tests.ingest.test_kafka_sink import consume
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.relay import Relay
from tests.waiting import eventually
from transport.address import JournalAddress, KafkaAddress

SESSION_SECONDS = 2.0


class Forwarders:
    """Several `kontrast watch` processes of one cluster that elect a leader."""

    def __init__(self, directory: Path, watched: str, kafka: KafkaAddress, election: str) -> None:
        self._directory = directory
        self._election = election
        self._watched = watched
        self.kafka = kafka
        self.processes: dict[str, ChildProcess] = {}

    def start(self, name: str) -> None:
        options = {
            "cluster": "blue",
            "zookeeper": self._watched,
            "to": str(self.kafka),
            "election-zookeeper": self._election,
            "session-timeout-seconds": str(SESSION_SECONDS),
            "heartbeat-seconds": "0.2",
        }
        arguments = [text for option, value in options.items() for text in (f"--{option}", value)]
        command = [sys.executable, "-m", "cli", "watch", *arguments]
        self.processes[name] = ChildProcess(name, command, self._directory / name / "log")
        self.processes[name].launch()

    def has_said(self, name: str, words: str) -> bool:
        return words in self.processes[name].log.read_text()

    def records(self) -> list[Record]:
        """Return all records of the topic, in order."""
        return [record for messages in consume(self.kafka).values() for _, record in messages]

    def generations(self) -> list[int]:
        return sorted({record.generation for record in self.records()})

    def wait_for_heartbeats(self) -> None:
        """Wait until the current leader has published every past event."""
        newest = self.records()[-1].position

        def new_heartbeats() -> int:
            return sum(record.position > newest and record.kind is RecordKind.HEARTBEAT for record in self.records())

        eventually(lambda: new_heartbeats() > 1)


@pytest.fixture
def election(java: Path, tmp_path: Path) -> Iterator[ZooKeeper]:
    with ZooKeeper(tmp_path / "election") as server:
        yield server


@pytest.fixture
def forwarders(
    watched: str, election: ZooKeeper, shared_broker: str, own_name: str, tmp_path: Path
) -> Iterator[Forwarders]:
    topic = KafkaAddress(shared_broker, own_name)
    made = Forwarders(tmp_path, watched, topic, f"{election.connect_string}/of/kontrast")
    with ExitStack() as ending:
        ending.callback(lambda: [process.kill() for process in made.processes.values()])
        yield made


def as_readers_have_it(records: list[Record]) -> list[Record]:
    """Drop the records of an older generation than one before them."""
    taken: list[Record] = []
    for record in records:
        if not taken or record.position > taken[-1].position:
            taken.append(record)
    return taken


def newest_tree(records: list[Record]) -> dict[str, tuple[bytes | None, int, int]]:
    """Return the tree of the newest generation."""
    newest = records[-1].generation
    return replayed_tree([record for record in records if record.generation == newest])


def effects(records: list[Record]) -> list[object]:
    """Return all effects of the records in the core."""
    context, made = new_context("blue", chunk_count=8), []
    for record in records:
        context, new = (outcome := step(context, record)).context, outcome.effects
        made += new
    return made


def test_another_forwarder_takes_over_from_a_killed_one_and_from_a_paused_one(
    forwarders: Forwarders, kafka: KazooClient
) -> None:
    make_cluster(kafka)
    forwarders.start("first")
    eventually(lambda: forwarders.has_said("first", "this forwarder leads"))
    forwarders.start("second")
    eventually(lambda: forwarders.has_said("second", "waits for its turn"))
    forwarders.wait_for_heartbeats()
    kafka.create("/brokers/topics/before", b"{}")

    forwarders.processes["first"].kill()
    kafka.create("/brokers/topics/meanwhile", b"{}")
    eventually(lambda: forwarders.has_said("second", "this forwarder leads"))
    kafka.create("/brokers/topics/after", b"{}")
    forwarders.start("third")
    eventually(lambda: forwarders.has_said("third", "waits for its turn"))
    forwarders.wait_for_heartbeats()
    assert len(forwarders.generations()) == 2
    assert newest_tree(forwarders.records()) == server_tree(kafka)

    forwarders.processes["second"].pause()
    eventually(lambda: forwarders.has_said("third", "this forwarder leads"))
    kafka.set("/brokers/topics/after", b"changed")
    forwarders.wait_for_heartbeats()
    forwarders.processes["second"].resume()
    eventually(lambda: forwarders.has_said("second", "this forwarder is no longer the leader"))
    kafka.delete("/brokers/topics/after")
    forwarders.wait_for_heartbeats()
    records = as_readers_have_it(forwarders.records())
    assert len(forwarders.generations()) == 3
    assert newest_tree(records) == server_tree(kafka)

    # A deposed leader that pauses between its last check and a send can still append a record, which has no effect.
    _, second, third = forwarders.generations()
    stale = Record(
        cluster="blue",
        generation=second,
        seq=10**6,
        kind=RecordKind.NODE,
        observed_ms=records[-1].observed_ms,
        path="/controller",
        zxid=10**6,
        **data_fields(b'{"version":2,"brokerid":9,"timestamp":"1"}'),
    )
    sink = KafkaSink(forwarders.kafka, "blue", threading.Event(), lambda _: None)
    sink.append([stale])
    sink.close()
    forwarders.wait_for_heartbeats()
    told = forwarders.records()
    assert stale in told
    assert told[-1].generation == third
    assert effects(told) == effects(as_readers_have_it(told))

    forwarders.processes["third"].stop()  # cleanly, so that no session has to expire
    eventually(lambda: forwarders.processes["second"].log.read_text().count("this forwarder leads, generation") == 2)


@pytest.fixture
def candidate() -> Iterator[Callable[[str], tuple[Election, threading.Event]]]:
    made: list[tuple[Election, threading.Event]] = []

    def start(address: str, newest: int = -1) -> tuple[Election, threading.Event]:
        stop = threading.Event()
        config = IngestConfig(
            cluster="blue",
            zookeeper="watched:2181",
            to=KafkaAddress("h:1", "t"),
            election_zookeeper=address,
            session_timeout_seconds=SESSION_SECONDS,
        )
        made.append((Election(config, stop, lambda: newest, lambda _: None), stop))
        return made[-1]

    yield start
    for election, stop in made:
        stop.set()
        election.close()


def test_terms_follow_each_other_with_growing_generations(watched: str, kafka: KazooClient, candidate) -> None:
    kafka.create("/kontrast/blue/generation", str(10**15).encode(), makepath=True)  # by a host whose clock is ahead
    election, _ = candidate(watched)
    first = election.next_term()
    second = election.next_term()
    assert (first.generation, second.generation) == (10**15 + 1, 10**15 + 2)
    assert not first.holds()
    assert second.holds()


def test_a_generation_is_newer_than_the_streams_whatever_the_election_and_the_clock(watched: str, candidate) -> None:
    election, _ = candidate(watched, newest=10**15)
    assert election.next_term().generation == 10**15 + 1


def test_terms_of_an_only_forwarder_wait_for_the_stream_and_are_newer() -> None:
    answers: list[int | Exception] = [10**15, SinkUnavailableError("away"), 10**15]

    def newest() -> int:
        answer = answers.pop()
        if isinstance(answer, Exception):
            raise answer
        return answer

    stop = threading.Event()
    terms = UnopposedTerms(stop, newest)
    assert terms.next_term().generation == 10**15 + 1
    assert terms.next_term().generation == 10**15 + 2
    stop.set()
    assert terms.next_term() is None


def test_a_journal_knows_each_clusters_newest_generation(tmp_path: Path) -> None:
    def of(cluster: str) -> IngestConfig:
        return IngestConfig(cluster=cluster, zookeeper="a:1", to=JournalAddress(tmp_path / "changes"))

    def record(cluster: str, generation: int) -> Record:
        kind = RecordKind.HEARTBEAT
        return Record(cluster=cluster, generation=generation, seq=0, kind=kind, observed_ms=1, path='"cluster":"blue"')

    with closing(JournalSink(of("blue"))) as blue, closing(JournalSink(of("blue-green"))) as green:
        assert blue.newest_generation() == green.newest_generation() == -1
        blue.append([record("blue", 5), record("blue", 10**15)])
        green.append([record("blue-green", 7)] * 1_000)
        assert (blue.newest_generation(), green.newest_generation()) == (10**15, 7)
        lines = [b"garbage", encode_record(record("blue", 9))[:30]]
        blue._journal.writer.append(lines)
        assert blue.newest_generation() == 10**15


def test_a_candidate_that_waits_can_be_asked_to_stop(watched: str, candidate) -> None:
    leading, _ = candidate(watched)
    assert leading.next_term() is not None
    waiting, stop = candidate(watched)
    threading.Timer(0.5, stop.set).start()
    assert waiting.next_term() is None


def test_a_leader_goes_on_while_nobody_can_be_elected_and_ends_when_its_session_did(
    in_memory: ZooKeeperInMemory, candidate, caplog: pytest.LogCaptureFixture
) -> None:
    with Relay(in_memory.port) as relay:
        election, _ = candidate(f"127.0.0.1:{relay.port}")
        term = election.next_term()
        relay.close_door()
        eventually(lambda: "this forwarder continues to lead" in caplog.text)
        assert term.holds()
        relay.open_door()
        eventually(lambda: not term.holds())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"election_zookeeper": "elsewhere"}, "election_zookeeper 'elsewhere' is no address"),
        ({"election_zookeeper": "e:1,b:2/x"}, "election_zookeeper has b:2 of the watched ensemble"),
        ({"election_zookeeper": "e:1", "to": JournalAddress(Path("j"))}, "takes one writer anyway"),
    ],
)
def test_an_election_that_cannot_be_is_refused_by_name(settings: dict[str, object], words: str) -> None:
    values = {"cluster": "c", "zookeeper": "a:1,b:2/y", "to": KafkaAddress("h:1", "t"), **settings}
    with pytest.raises(IngestError, match=words):
        IngestConfig(**values)


def test_an_election_on_the_watched_ensemble_must_be_allowed() -> None:
    IngestConfig(
        cluster="c",
        zookeeper="a:1",
        to=KafkaAddress("h:1", "t"),
        election_zookeeper="a:1/elsewhere",
        election_on_watched=True,
    )
