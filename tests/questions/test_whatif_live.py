"""Predicted losses of brokers on a real cluster with racks, compared with the real losses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaCluster
from controller.contract.ids import TopicPartition
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from questions.whatif.consequences import is_offline
from questions.whatif.hypothetical_cluster import HypotheticalCluster
from questions.whatif.rolling import rolling_order
from tests.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("racks")]  # five brokers, started once

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
ACKS_ALL = {"min.insync.replicas": "2"}
PROPERTIES = {
    "zookeeper.session.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "false",  # because no test could choose the time of its moves
    "replica.lag.time.max.ms": "30000",  # on a busy machine a live broker stands still for seconds
    "controlled.shutdown.retry.backoff.ms": "500",
}
TOPICS = {
    "spread": ({number: [1 + (number + at) % 5 for at in range(3)] for number in range(5)}, ACKS_ALL),
    "pairs": ({0: [1, 3], 1: [2, 4], 2: [3, 5], 3: [4, 1]}, {}),
    "tight": ({0: [1, 2], 1: [5, 4]}, ACKS_ALL),
    "single": ({number: [number + 1] for number in range(5)}, {}),
    "unclean": ({0: [2, 1], 1: [3, 4]}, {"unclean.leader.election.enable": "true"}),
}
SECONDS = 60

# Writes of a partition fail while its leader moves and the client learns it. The client refreshes its metadata after
# 0.1 s, and waits at most 3 s for the old leader's answer.
LEADER_MOVE_SECONDS = 5


class Cluster:
    """A real cluster, with Kontrast's view."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self.kafka = kafka
        self.config = ZooKeeperConfig(zookeeper=kafka.zookeeper.connect_string)

    def context(self) -> Context:
        read = read_once(self.config, threading.Event(), lambda _count, _total: None)
        return steps(new_context("c", chunk_count=16), read.records("c")).context

    def restart(self, *brokers: int) -> None:
        for broker in brokers:
            self.kafka.brokers[broker].launch()
        for broker in brokers:
            self.kafka.brokers[broker].wait_until_ready()


def picture(context: Context) -> dict[str, tuple[int, list[int], bool, int]]:
    """Return each partition's leader, ISR, whether it is offline, and the number of replicas that acks=all lacks."""
    return {
        f"{name}-{number}": (
            partition.zk_state.leader,
            sorted(partition.zk_state.isr),
            is_offline(partition.problem.value if partition.problem else None),
            partition.in_sync_lacking,
        )
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
        if partition.zk_state is not None
    }


@pytest.fixture(scope="module")
def cluster(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kafka = KafkaCluster(tmp_path_factory.mktemp("racks"), broker_ids=RACKS, properties=PROPERTIES)
    for broker, rack in RACKS.items():
        kafka.brokers[broker].settings["broker.rack"] = rack
    with kafka:
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        new = [
            NewTopic(name, replica_assignments=assignment, topic_configs=settings)
            for name, (assignment, settings) in TOPICS.items()
        ]
        admin.create_topics(new)
        admin.close()
        running = Cluster(kafka)
        eventually(lambda: picture(running.context()), lambda found: len(found) == 18)
        yield running


def agree(cluster: Cluster, do: Callable[[], None], *predictions: Callable[[HypotheticalCluster], None]) -> None:
    """Predict, act, and wait until the cluster matches. Several predictions are the possible orders."""
    expected = []
    for predict in predictions:
        imagined = HypotheticalCluster(cluster.context())
        predict(imagined)
        expected.append(picture(imagined.context))
    do()
    eventually(lambda: picture(cluster.context()), lambda observed: observed in expected, within_seconds=SECONDS)


def one_after_another(
    change: Callable[[HypotheticalCluster, tuple[int, ...]], None], brokers: tuple[int, ...]
) -> list[Callable[[HypotheticalCluster], None]]:
    """Return the orders in which the controller may see a simultaneous change of brokers."""

    def in_order(imagined: HypotheticalCluster, order: tuple[int, ...]) -> None:
        for broker in order:
            change(imagined, (broker,))

    return [partial(in_order, order=order) for order in permutations(brokers)]


def lose(cluster: Cluster, *brokers: int) -> None:
    """Lose brokers at once. ZooKeeper may end one session a moment before the other."""

    def crash() -> None:
        for broker in brokers:
            cluster.kafka.brokers[broker].kill()

    orders = one_after_another(HypotheticalCluster.lose, brokers)
    agree(cluster, crash, lambda imagined: imagined.lose(brokers), *orders)


def restore(cluster: Cluster, *brokers: int) -> None:
    """Start brokers at once. The first to register leads the partitions that only an unclean election restores."""
    orders = one_after_another(HypotheticalCluster.restore, brokers)
    agree(cluster, lambda: cluster.restart(*brokers), lambda imagined: imagined.restore(brokers), *orders)


def shut_down(cluster: Cluster, broker: int) -> None:
    agree(cluster, cluster.kafka.brokers[broker].stop, lambda imagined: imagined.shut_down(broker))


def reassign(cluster: Cluster, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    entries = [{"topic": tp.topic, "partition": tp.partition, "replicas": to} for tp, to in targets.items()]

    def ask() -> None:
        client = KazooClient(hosts=cluster.kafka.zookeeper.connect_string)
        client.start()
        client.create("/admin/reassign_partitions", json.dumps({"version": 1, "partitions": entries}).encode())
        client.stop()
        client.close()

    agree(cluster, ask, lambda imagined: imagined.reassign(targets))


def controller(cluster: Cluster) -> int:
    return cluster.context().header.controller


@pytest.mark.nightly
def test_what_was_predicted_happens(cluster):
    """Fourteen changes of one cluster follow each other. Each starts from the result of the one before."""
    other = next(broker for broker in (2, 4) if broker != controller(cluster))
    lose(cluster, other)
    restore(cluster, other)
    lose(cluster, 1, 5)
    restore(cluster, 1, 5)
    own = controller(cluster)
    lose(cluster, own)
    restore(cluster, own)
    rack = tuple(broker for broker, name in RACKS.items() if name == "b")
    lose(cluster, *rack)
    restore(cluster, *rack)
    lose(cluster, 5)
    reassign(cluster, {TopicPartition("spread", 0): (5, 3, 1), TopicPartition("pairs", 1): (5, 2)})
    shut_down(cluster, 3)  # while the reassignments wait for broker 5
    restore(cluster, 5)
    restore(cluster, 3)
    reassign(cluster, {TopicPartition("spread", 1): (4, 5, 1), TopicPartition("single", 2): (2,)})


class Writer(threading.Thread):
    """A producer with acks=all that tries each partition of a topic again and again, without retries of its own."""

    def __init__(self, servers: list[str], topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self._producer = KafkaProducer(bootstrap_servers=servers, acks="all", retries=0, request_timeout_ms=3_000)
        self._topic, self._partitions = topic, partitions
        self._stop_asked = threading.Event()
        self.errors: set[str] = set()
        self.longest_seconds = 0.0  # from a first error of a partition to its next success
        self.acknowledged = 0

    def run(self) -> None:
        failing_since: dict[int, float] = {}
        while not self._stop_asked.is_set():
            for number in range(self._partitions):
                try:
                    self._producer.send(self._topic, b"x", partition=number).get(timeout=10)
                except KafkaError as error:
                    self.errors.add(type(error).__name__)
                    failing_since.setdefault(number, time.monotonic())
                    continue
                self.acknowledged += 1
                begun = failing_since.pop(number, None)
                if begun is not None:
                    self.longest_seconds = max(self.longest_seconds, time.monotonic() - begun)
            self._stop_asked.wait(0.02)
        self._producer.close()

    def end(self) -> None:
        self._stop_asked.set()
        self.join()


@pytest.mark.nightly
def test_the_proposed_order_of_restarts_lets_a_producer_write_on(cluster):
    order = rolling_order(cluster.context())
    assert {topic for each in order.obstacles for topic in each.topics} == {"single", "tight"}
    writer = Writer(cluster.kafka.bootstrap_servers, "spread", 5)
    writer.start()
    try:
        for batch in order.batches:
            with ThreadPoolExecutor() as stopping:
                list(stopping.map(lambda broker: cluster.kafka.brokers[broker].stop(), batch))
            lacking = {name for name, (*_, lacks) in picture(cluster.context()).items() if lacks}
            assert not any(name.startswith(("spread", "pairs", "unclean")) for name in lacking)
            cluster.restart(*batch)
            eventually(cluster.context, lambda context: not context.header.tally.gauges.under_replicated)
    finally:
        writer.end()
    assert writer.acknowledged > 100
    assert "NotEnoughReplicasError" not in writer.errors
    assert writer.longest_seconds < LEADER_MOVE_SECONDS, writer.errors


HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "rolling-restart.md"
_SHELL = """\
set -o pipefail
kontrast() {{ {python} -m cli "$@"; }}
restart_broker() {{ echo "$1" > asked; read -r _ < restarted; }}
trap 'echo > asked' EXIT
{loop}
"""


def restart_what_is_asked(cluster: Cluster, directory: Path) -> None:
    """Restart each broker that the shell names in one pipe, and answer in the other. An empty line ends it.

    The thread must outlive the brokers, because the kernel kills them with the thread that started them.
    """
    while broker := (directory / "asked").read_text().strip():
        cluster.kafka.brokers[int(broker)].stop()
        cluster.restart(int(broker))
        (directory / "restarted").write_text("done\n")


def run_loop(cluster: Cluster, directory: Path, loop: str) -> bytes:
    """Run a loop of the how-to in a shell of its own directory. Return its output."""
    directory.mkdir()
    for pipe in ("asked", "restarted"):
        os.mkfifo(directory / pipe)
    environment = {**os.environ, "PYTHONPATH": str(HOW_TO.parents[2])}
    script = _SHELL.format(python=sys.executable, loop=loop)
    with subprocess.Popen(["bash", "-c", script], cwd=directory, env=environment, stdout=subprocess.PIPE) as shell:
        restart_what_is_asked(cluster, directory)
        output, _ = shell.communicate()
    assert shell.returncode == 0, output
    return output


@pytest.mark.nightly
def test_the_loop_of_the_how_to_restarts_brokers_under_load(cluster, tmp_path):
    (loop,) = re.findall(r"```sh\n(for broker in .*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    zookeeper, accepted = cluster.kafka.zookeeper.connect_string, "--accept-topic single --accept-topic tight"
    loop = loop.replace("zk1:2181/kafka", zookeeper)
    loop = loop.replace("--accept-topic 'scratch-*'", f"{accepted} --accept-topic pairs")
    writer = Writer(cluster.kafka.bootstrap_servers, "spread", 5)
    writer.start()
    try:
        output = run_loop(cluster, tmp_path / "alone", loop)
    finally:
        writer.end()
    assert output.count(b"yes: broker") == 4, output
    assert writer.acknowledged > 100
    assert "NotEnoughReplicasError" not in writer.errors
    assert writer.longest_seconds < LEADER_MOVE_SECONDS, writer.errors
