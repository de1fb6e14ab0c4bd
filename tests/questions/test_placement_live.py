"""`kontrast place` beside Kafka's own tool, and beside topics that Kafka places, on clusters of three generations."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import free_port
from cli.main import main
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from questions.whatif.placement import current_assignment, placed_by_kafka
from streaming.java.installation import find_java
from tests.lanes import in_gate
from tests.older_releases import KAFKA_TOOLS, class_path_of, older_jars

# In the order of a Java hash map with these ids, which is not ascending. 1 and 17 share a bucket.
RACKS = {1: "eu-2", 17: "eu-1", 2: "eu-1", 5: "eu-3", 1030: "eu-2", 1001: "eu-2"}
REAL = 1  # the only broker that answers, and controller. The others are registered
# Partitions and replication factor. With more partitions than brokers, Kafka's shift grows on the way.
TOPICS = {"wide": (30, 3), "most": (13, 5), "single": (8, 1), "pairs": (17, 2)}

Assignment = Mapping[int, tuple[int, ...]]


class Cluster:
    """A cluster of a release, with Kontrast's view and Kafka's tool of that release."""

    def __init__(self, release: str, zookeeper: str, bootstrap_server: str, directory: Path) -> None:
        self.zookeeper = zookeeper
        self.bootstrap_server = bootstrap_server
        self._release = release
        self._directory = directory

    def context(self) -> Context:
        read = read_once(ZooKeeperConfig(zookeeper=self.zookeeper), threading.Event(), lambda _count, _total: None)
        return steps(new_context("c", chunk_count=16), read.records("c")).context

    def generated(self, brokers: Sequence[int], *, rack_aware: bool) -> dict[str, Assignment]:
        """Return the proposal of `kafka-reassign-partitions --generate` for all topics."""
        topics = self._directory / "topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in TOPICS]}))
        asked = ["--generate", "--topics-to-move-json-file", topics, "--broker-list", ",".join(map(str, brokers))]
        done = subprocess.run(
            [*self._tool(), *asked, *(() if rack_aware else ("--disable-rack-aware",))],
            capture_output=True,
            text=True,
            check=False,
        )
        assignments = [line for line in done.stdout.splitlines() if line.startswith('{"version":1')]
        assert len(assignments) == 2, done.stdout + done.stderr  # the current one, and the proposed one
        return by_topic(assignments[1])

    def _tool(self) -> list[str | Path]:
        if self._release.startswith("3."):
            jars = [*class_path_of(self._release), *older_jars(KAFKA_TOOLS)]
            tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
            where = ("--bootstrap-server", self.bootstrap_server)
        else:
            jars = class_path_of(self._release)
            tool = "kafka.admin.ReassignPartitionsCommand"
            where = ("--zookeeper", self.zookeeper)
        java = [find_java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [*java, "-cp", ":".join(map(str, jars)), tool, *where]


def by_topic(reassignment: str) -> dict[str, Assignment]:
    """Return replicas by topic and partition, in order. Fail if a partition occurs twice."""
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    for entry in sorted(json.loads(reassignment)["partitions"], key=itemgetter("topic", "partition")):
        assert entry["partition"] not in found.setdefault(entry["topic"], {})
        found[entry["topic"]][entry["partition"]] = tuple(entry["replicas"])
    return found


def registration(broker: int, port: int) -> bytes:
    """Return the znode of a broker that never answers the controller, and leads clients to this port."""
    znode = {
        "version": 4,
        "listener_security_protocol_map": {"CLIENT": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"CLIENT://localhost:{port}", "PLAINTEXT://127.0.0.1:1"],
        "host": "127.0.0.1",
        "port": 1,
        "jmx_port": -1,
        "timestamp": "1",
        "rack": RACKS[broker],
    }
    return json.dumps(znode).encode()


@pytest.fixture(params=in_gate("3.9.2", of=("1.1.1", "2.8.2", "3.9.2")))
def cluster(request, shared_chroot: str, tmp_path: Path) -> Iterator[Cluster]:
    broker = KafkaBroker(REAL, shared_chroot, tmp_path / "broker", class_path=class_path_of(request.param))
    broker.settings |= {
        "broker.rack": RACKS[REAL],
        "listeners": f"CLIENT://{broker.bootstrap_server},PLAINTEXT://127.0.0.1:{free_port()}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    registrations = KazooClient(shared_chroot)
    registrations.start(timeout=30)
    try:
        # Register these before the broker that becomes controller, so that the first metadata for clients has them all.
        for other in RACKS.keys() - {REAL}:
            znode = registration(other, broker.port)
            registrations.create(f"/brokers/ids/{other}", znode, ephemeral=True, makepath=True)
        broker.start()
        yield Cluster(request.param, shared_chroot, broker.bootstrap_server, tmp_path)
    finally:
        broker.kill()
        registrations.stop()
        registrations.close()


def agree(
    cluster: Cluster, context: Context, kafka: Mapping[str, Assignment], brokers: Sequence[int], *, rack_aware: bool
) -> None:
    """Check that one of Kafka's random draws gives a topic's assignment, and that `kontrast place` prints it."""
    for topic, assignment in kafka.items():
        computed = partial(placed_by_kafka, context, [topic], brokers, rack_aware=rack_aware)
        draws = product(range(len(brokers)), repeat=2)
        found = [
            at for at in draws if list(computed(start_index=at[0], shift=at[1]).values()) == [*assignment.values()]
        ]
        assert found, f"no start index and shift lead to {topic} = {assignment}"
        start_index, shift = map(str, found[0])
        draw = ["--start-index", start_index, "--shift", shift, "--rack-aware" if rack_aware else "--no-rack-aware"]
        asked = ["place", topic, "--zookeeper", cluster.zookeeper, "--brokers", ",".join(map(str, brokers)), *draw]
        done = CliRunner().invoke(main, asked)
        assert done.exit_code in (0, 1), done.output
        assert by_topic(done.stdout) == {topic: assignment}


@pytest.mark.nightly
def test_place_is_equal_to_what_kafka_computes(cluster):
    with closing(KafkaAdminClient(bootstrap_servers=[cluster.bootstrap_server])) as admin:
        admin.create_topics([NewTopic(name, *size) for name, size in TOPICS.items()])
    context = cluster.context()
    created = {
        name: {tp.partition: replicas for tp, replicas in current_assignment(context, [name]).items()}
        for name in TOPICS
    }
    assert {name: (len(placed), len(placed[0])) for name, placed in created.items()} == TOPICS
    agree(cluster, context, created, list(RACKS), rack_aware=True)
    for brokers, rack_aware in (((1030, 17, 1001, 2, 5), True), (tuple(RACKS), False)):
        proposed = cluster.generated(brokers, rack_aware=rack_aware)
        assert proposed.keys() == TOPICS.keys()
        agree(cluster, context, proposed, brokers, rack_aware=rack_aware)
