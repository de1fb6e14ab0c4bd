"""A real cluster of a release, the commands of Kafka's tools as they are printed, and the records that must survive."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from cli.embedded.java import StartedByWith
from cli.embedded.kafka import KafkaBroker
from cli.embedded.zookeeper import ZooKeeper
from cli.main import main
from streaming.java.installation import find_java
from tests.older_releases import KAFKA_TOOLS, class_path_of, older_jars
from tests.waiting import eventually

PROPERTIES: Mapping[str, str] = {
    "auto.leader.rebalance.enable": "false",  # because no test could choose the time of its moves
    "controlled.shutdown.retry.backoff.ms": "500",
    "offsets.topic.replication.factor": "1",
    "replica.lag.time.max.ms": "30000",  # on a busy machine a live broker stands still for seconds
    "zookeeper.session.timeout.ms": "6000",
}
_TOOLS = {
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-leader-election.sh": "kafka.admin.LeaderElectionCommand",
    "kafka-preferred-replica-election.sh": "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "kafka-reassign-partitions.sh": "kafka.admin.ReassignPartitionsCommand",
    "kafka-topics.sh": "kafka.admin.TopicCommand",
}
_TOOLS_OF_3_9 = {
    **_TOOLS,
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
_NEWEST = "3.9.2"
_ADMIN_SINCE = (2, 4)  # the admin client creates topics from an assignment
_OF_SHELL = "commons-cli_"  # older brokers lack this jar, because their ZooKeeper had it


class RealCluster(StartedByWith):
    """ZooKeeper and brokers of one release, with the tools of that release."""

    def __init__(self, directory: Path, release: str, broker_ids: Iterable[int] = (1, 2, 3)) -> None:
        self.release = release
        self.directory = directory
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.brokers = {
            number: KafkaBroker(
                number,
                self.zookeeper.connect_string,
                directory / f"broker-{number}",
                properties=PROPERTIES,
                class_path=class_path_of(release),
            )
            for number in broker_ids
        }

    def start(self) -> None:
        """Start everything and wait until a broker is controller."""
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_ready()
        self.controller()

    def stop(self) -> None:
        """End everything at once."""
        self.kill()

    def kill(self) -> None:
        """End everything as a crash does."""
        if "client" in self.__dict__:
            self.client.stop()
            self.client.close()
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.kill()

    @property
    def release_pair(self) -> tuple[int, int]:
        """Return the release without its last number."""
        major, minor, *_ = self.release.split(".")
        return int(major), int(minor)

    # --- its znodes

    @cached_property
    def client(self) -> KazooClient:
        """Return a client of its ZooKeeper."""
        client = KazooClient(self.zookeeper.connect_string, timeout=30)
        client.start(timeout=30)
        return client

    def data(self, path: str) -> bytes:
        """Return the content of a znode."""
        content: bytes = self.client.get(path)[0]
        return content

    def content(self, path: str) -> Any:
        """Return the JSON of a znode, None if it is not there."""
        try:
            return json.loads(self.data(path))
        except (NoNodeError, ValueError):
            return None

    def controller(self) -> int:
        """Return the controller's broker, once there is one."""
        return int(eventually(lambda: self.content("/controller"))["brokerid"])

    def state(self, topic: str, partition: int = 0) -> Any:
        """Return a partition's state, None if it has none."""
        return self.content(f"/brokers/topics/{topic}/partitions/{partition}/state")

    def move_controller(self) -> None:
        """Let another controller's term begin."""
        epoch = int(self.data("/controller_epoch"))
        self.client.delete("/controller")
        eventually(lambda: self.content("/controller") and int(self.data("/controller_epoch")) > epoch)

    def rewrite_topic(self, topic: str, **fields: object) -> None:
        """Write a topic's znode by hand with these fields, or without those that are None."""
        path = f"/brokers/topics/{topic}"
        changed = {key: value for key, value in (self.content(path) | fields).items() if value is not None}
        self.client.set(path, json.dumps(changed).encode())

    def rewrite_state(self, topic: str, **fields: object) -> None:
        """Write the state of a topic's first partition by hand with these fields."""
        changed = self.state(topic) | fields
        self.client.set(f"/brokers/topics/{topic}/partitions/0/state", json.dumps(changed).encode())

    def vanishes(self, path: str) -> bool:
        """Return whether the controller removes a znode within five seconds."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and self.client.exists(path):
            time.sleep(0.1)
        return self.client.exists(path) is None

    @contextmanager
    def ghost_controller(self) -> Iterator[None]:
        """Let /controller name a broker that never took over, and delete it in the end."""
        content = self.content("/controller")
        other = next(number for number in self.brokers if number != content["brokerid"])
        self.client.set("/controller", json.dumps(content | {"brokerid": other}).encode())
        time.sleep(1)
        try:
            yield
        finally:
            self.client.delete("/controller")
            self.controller()

    def heal(self) -> None:
        """Start the brokers that a failed case left down, and wait for a controller."""
        for broker in self.brokers.values():
            if not broker.running:
                broker.start()
        self.controller()

    # --- its clients

    def bootstrap(self) -> str:
        """Return the address of a live broker."""
        return next(broker.bootstrap_server for broker in self.brokers.values() if broker.running)

    def create(self, topic: str, assignment: Mapping[int, list[int]], **settings: str) -> None:
        """Create a topic and wait for its leaders. Underscores stand for dots."""
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        if self.release_pair < _ADMIN_SINCE:
            self._create_as_old_tools_do(topic, assignment, configs)
            return
        made = NewTopic(
            topic, replica_assignments=dict(assignment), num_partitions=-1, replication_factor=-1, topic_configs=configs
        )
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap())) as admin:
            admin.create_topics([made])
        eventually(lambda: all(self.state(topic, partition) for partition in assignment))

    def _create_as_old_tools_do(
        self, topic: str, assignment: Mapping[int, list[int]], configs: Mapping[str, str]
    ) -> None:
        content = {"version": 1, "partitions": {str(number): hosts for number, hosts in assignment.items()}}
        self.client.create(f"/config/topics/{topic}", json.dumps({"version": 1, "config": configs}).encode())
        self.client.create(f"/brokers/topics/{topic}", json.dumps(content).encode())
        eventually(lambda: all(self.state(topic, partition) for partition in assignment))

    def add_partition(self, topic: str, number: int, replicas: list[int]) -> None:
        """Add a partition to a topic with one partition fewer."""
        if self.release_pair < _ADMIN_SINCE:
            partitions = self.content(f"/brokers/topics/{topic}")["partitions"]
            self.rewrite_topic(topic, partitions=partitions | {str(number): replicas})
            return
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap())) as admin:
            admin.create_partitions({topic: NewPartitions(number + 1, [replicas])})

    def plan(self, file: str, topic: str, replicas: list[int]) -> None:
        """Write a reassignment of a topic's first partition for Kafka's tool."""
        entry = {"topic": topic, "partition": 0, "replicas": replicas}
        (self.directory / file).write_text(json.dumps({"version": 1, "partitions": [entry]}))

    def request_reassignment(self, topic: str, replicas: list[int]) -> None:
        """Request a reassignment past the checks of Kafka's tool."""
        entry = {"topic": topic, "partition": 0, "replicas": replicas}
        request = json.dumps({"version": 1, "partitions": [entry]}).encode()
        self.client.create("/admin/reassign_partitions", request)

    def write(self, topic: str, *values: str, partition: int = 0, retries: int = 100) -> None:
        """Write records with acks=all. Fail if the leader does not take them."""
        with closing(KafkaProducer(bootstrap_servers=self.bootstrap(), acks="all", retries=retries)) as producer:
            for value in values:
                producer.send(topic, value.encode(), partition=partition).get(timeout=60)

    def read(self, topic: str, partition: int = 0) -> list[str]:
        """Return all records of a partition."""
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap(), auto_offset_reset="earliest")
        with closing(consumer):
            tp = TopicPartition(topic, partition)
            consumer.assign([tp])
            end = consumer.end_offsets([tp])[tp]
            consumer.seek_to_beginning(tp)
            values: list[str] = []
            while consumer.position(tp) < end:
                for records in consumer.poll(timeout_ms=1000).values():
                    values += [record.value.decode() for record in records]
            return values

    def topic_id_on_disk(self, topic: str, broker: int, partition: int = 0) -> str:
        """Return the topic id that a broker has for its replica. Brokers of 2.8 write it with the next controller."""
        file = self.directory / f"broker-{broker}" / "data" / f"{topic}-{partition}" / "partition.metadata"
        eventually(file.exists)
        return dict(line.split(": ") for line in file.read_text().splitlines())["topic_id"]

    # --- its operator

    def run(self, command: str) -> str:
        """Run a command as it is printed, with the cluster's addresses, and return its output. Fail if it fails."""
        command = command.replace("ZOOKEEPER", self.zookeeper.connect_string).replace("BOOTSTRAP", self.bootstrap())
        tool, *words = shlex.split(command)
        done = subprocess.run(
            [*self._java(tool), *words], capture_output=True, text=True, check=False, cwd=self.directory, timeout=180
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0, f"{command}\n{output}"
        return output

    def _java(self, tool: str) -> list[str | Path]:
        shell = (jar for jar in class_path_of(_NEWEST) if jar.name.startswith(_OF_SHELL))
        jars = [*class_path_of(self.release), *shell]
        if self.release == _NEWEST:
            jars = [*jars, *older_jars(KAFKA_TOOLS)]
        java: list[str | Path] = [
            find_java(),
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            ":".join(map(str, jars)),
        ]
        if tool == "zookeeper-shell.sh":
            return [*java, "org.apache.zookeeper.ZooKeeperMain", "-server"]
        return [*java, (_TOOLS_OF_3_9 if self.release == _NEWEST else _TOOLS)[tool]]

    def kontrast(self, *words: str) -> list[Any]:
        """Return the answer of a question about this cluster, as it is printed with --json."""
        asked = [*words, "--json", "--zookeeper", self.zookeeper.connect_string]
        done = CliRunner().invoke(main, asked)
        assert done.exit_code in (0, 1), (asked, done.output)
        return [json.loads(line) for line in done.stdout.splitlines()]
