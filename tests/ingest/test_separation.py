"""Separation from the watched ensembles and brokers, which Kontrast never writes to, under any name."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from kazoo.client import KazooClient

from ingest.config import IngestConfig
from ingest.election import open_terms
from ingest.errors import IngestError
from ingest.forwarder import Forwarder
from ingest.separation import KafkaIdentity, refuse_watched_cluster
from tests.clients import kafka_admin, zookeeper_client
from tests.ingest.conftest import make_cluster
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.waiting import eventually
from transport.address import KafkaAddress


def nothing() -> int:
    """Return the newest generation of an empty stream."""
    return -1


def under_another_name(address: str) -> str:
    return (
        address.replace("127.0.0.1", "localhost")
        if "127.0.0.1" in address
        else address.replace("localhost", "127.0.0.1")
    )


@pytest.fixture
def electing(in_memory: ZooKeeperInMemory) -> Callable[..., IngestConfig]:
    def config(election: str, chroot: str = "", **settings: object) -> IngestConfig:
        return IngestConfig(
            cluster="blue",
            zookeeper=in_memory.connect_string + chroot,
            to=KafkaAddress("unused:1", "t"),
            election_zookeeper=election,
            session_timeout_seconds=2.0,
            **settings,
        )

    return config


def znodes(server: ZooKeeperInMemory) -> list[str]:
    with zookeeper_client(server.connect_string) as client:
        return sorted(client.get_children("/"))


@pytest.mark.parametrize("chroot", ["", "/nothing/there"])
@pytest.mark.parametrize("path", ["", "/of/kontrast"])
def test_an_election_in_the_watched_ensemble_is_refused_before_anything_is_written(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, electing: Callable[..., IngestConfig], chroot: str, path: str
) -> None:
    make_cluster(kafka)
    before = znodes(in_memory)
    config = electing(under_another_name(in_memory.connect_string) + path, chroot)
    terms = open_terms(config, threading.Event(), nothing)
    with closing(terms), pytest.raises(IngestError, match="is the watched ensemble under another name"):
        terms.next_term()
    assert znodes(in_memory) == before


def test_a_candidate_whose_watched_ensemble_is_away_is_sure_later(
    in_memory: ZooKeeperInMemory, electing: Callable[..., IngestConfig], caplog: pytest.LogCaptureFixture
) -> None:
    in_memory.kill()
    with ZooKeeperInMemory() as another:
        config = electing(another.connect_string, connect_timeout_seconds=0.5)
        with closing(open_terms(config, threading.Event(), nothing)) as terms, ThreadPoolExecutor() as pool:
            term = pool.submit(terms.next_term)
            eventually(lambda: caplog.text.count("retrying the election after ZooKeeper at") > 1)
            assert znodes(another) == ["zookeeper"]
            in_memory.start()
            assert term.result().holds()


def test_an_election_in_a_watched_ensemble_in_which_nothing_is_yet_is_refused(
    in_memory: ZooKeeperInMemory, electing: Callable[..., IngestConfig]
) -> None:
    config = electing(under_another_name(in_memory.connect_string))
    terms = open_terms(config, threading.Event(), nothing)
    with closing(terms), pytest.raises(IngestError, match="under another name"):
        terms.next_term()
    assert znodes(in_memory) == ["zookeeper"]


def test_an_election_in_the_watched_ensemble_that_is_allowed_takes_place(
    in_memory: ZooKeeperInMemory, electing: Callable[..., IngestConfig]
) -> None:
    config = electing(under_another_name(in_memory.connect_string), election_on_watched=True)
    with closing(open_terms(config, threading.Event(), nothing)) as terms:
        assert terms.next_term() is not None


@pytest.mark.parametrize("has_kafka", [False, True])
def test_another_ensemble_is_another_though_both_are_new(
    electing: Callable[..., IngestConfig], kafka: KazooClient, has_kafka: bool
) -> None:
    if has_kafka:
        make_cluster(kafka)
    with (
        ZooKeeperInMemory() as election,
        closing(open_terms(electing(election.connect_string), threading.Event(), nothing)) as terms,
    ):
        term = terms.next_term()
        assert term is not None
        assert term.holds()


def test_an_election_while_others_write_to_the_watched_ensemble_is_refused(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, electing: Callable[..., IngestConfig]
) -> None:
    make_cluster(kafka)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            kafka.create("/brokers/ids/", b"{}", sequence=True)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        terms = open_terms(electing(under_another_name(in_memory.connect_string)), stop, nothing)
        with closing(terms), pytest.raises(IngestError, match="under another name"):
            terms.next_term()
    finally:
        stop.set()
        writing.join()


@contextmanager
def topics_of(address: str) -> Iterator[Callable[[], list[str]]]:
    with kafka_admin(address) as admin:
        yield admin.list_topics


def test_a_stream_in_the_watched_cluster_is_refused_before_a_topic_is_created(start_kafka_cluster) -> None:
    cluster = start_kafka_cluster()
    (broker,) = cluster.bootstrap_servers
    config = IngestConfig(
        cluster="blue",
        zookeeper=cluster.zookeeper.connect_string,
        to=KafkaAddress(under_another_name(broker), "changes"),
    )
    with pytest.raises(IngestError, match="is the watched cluster itself"):
        Forwarder(config).run(threading.Event())
    with topics_of(broker) as topics:
        assert topics() == []


def watching(address: str) -> IngestConfig:
    return IngestConfig(cluster="blue", zookeeper=address, to=KafkaAddress("kafka:9092", "changes"))


BROKER = {"version": 1, "host": "kafka", "port": 9092, "jmx_port": -1, "timestamp": "1"}


@pytest.mark.parametrize(
    ("cluster_id", "identity", "words"),
    [
        ("one", KafkaIdentity("one", {}), "cluster id one"),
        ("one", KafkaIdentity("two", {1: "kafka:9092"}), ""),
        ("one", KafkaIdentity(None, {1: "kafka:9092"}), "broker at kafka:9092"),
        (None, KafkaIdentity("one", {1: "kafka:9092"}), "broker at kafka:9092"),
        (None, KafkaIdentity("one", {2: "kafka:9092"}), ""),
        (None, KafkaIdentity("one", {1: "another:9092"}), ""),
        (None, KafkaIdentity("one", {}), ""),
    ],
)
def test_clusters_are_distinguished_by_their_ids_and_without_by_their_brokers(
    watched: str, kafka: KazooClient, cluster_id: str | None, identity: KafkaIdentity, words: str
) -> None:
    kafka.create("/brokers/ids/1", json.dumps(BROKER).encode(), makepath=True)
    if cluster_id is not None:
        kafka.create("/cluster/id", json.dumps({"version": "1", "id": cluster_id}).encode(), makepath=True)
    if words:
        with pytest.raises(IngestError, match=words):
            refuse_watched_cluster(watching(watched), identity, threading.Event())
    else:
        refuse_watched_cluster(watching(watched), identity, threading.Event())


@pytest.mark.parametrize("damaged", [b"", b"[", b"[" * 100_000, b'{"id": 5}'])
def test_damaged_znodes_tell_no_clusters_apart(watched: str, kafka: KazooClient, damaged: bytes) -> None:
    kafka.create("/brokers/ids/1", damaged, makepath=True)
    kafka.create("/cluster/id", damaged, makepath=True)
    refuse_watched_cluster(watching(watched), KafkaIdentity("one", {1: "kafka:9092"}), threading.Event())
