"""`kontrast migration` asks real brokers and a real KRaft controller of 3.9.2, before and in the dual write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import free_port
from cli.embedded.zookeeper import ZooKeeper
from cli.main import main
from cli.running import ExitCode
from dashboards.exporter.config import ServeConfig
from dashboards.probe.config import ProbeConfig
from outputs.kafka_node import KafkaNode
from tests.clients import zookeeper_client
from tests.conftest import make_chroot
from tests.dashboards.conftest import start_exporter  # noqa: F401 (a fixture)
from tests.dashboards.live_replica import LiveReplica
from tests.kraft import KRaftBroker, KRaftController, cluster_id, migrating_broker
from tests.lanes import in_gate
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.kafka_login import KafkaLogin

pytestmark = pytest.mark.xdist_group("migration nodes")  # so that one process has the shared cluster

AUTHORIZED = {"super.users": "User:ANONYMOUS"}
IN_ZOOKEEPER_MODE = {**AUTHORIZED, "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
IN_KRAFT_MODE = {**AUTHORIZED, "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
USER = "/config/users/alice%40example"
SECRET = "hunter2"


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["migration", command, *map(str, arguments)])


def rows(done: Result, kind: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, done.stdout.splitlines()) if row["type"] == kind]


# --- before the migration


def found_checks(done: Result) -> set[str]:
    return {row["check"] for row in rows(done, "finding")}


def had_been(broker: int, zookeeper: str, directory: Path) -> None:
    """Write the file that a broker in ZooKeeper mode leaves on its disk."""
    (directory / "data").mkdir(parents=True)
    properties = f"version=0\nbroker.id={broker}\ncluster.id={cluster_id(zookeeper)}\n"
    (directory / "data" / "meta.properties").write_text(properties)


def test_check_asks_brokers_and_controllers_for_what_no_znode_shows(shared_chroot, java, tmp_path):
    logs = ",".join(str(tmp_path / name) for name in ("a", "b"))
    settings = {"inter.broker.protocol.version": "3.6", "log.dirs": logs}
    controller = KRaftController(1, shared_chroot, tmp_path / "controller")
    silent = f"127.0.0.1:{free_port()}"
    settings["controller.quorum.voters"] = f"{controller.voters},2@127.0.0.1:{controller.port},3@{silent}"
    broker = KafkaBroker(1, shared_chroot, tmp_path / "broker", properties=settings)
    too_early = KRaftBroker(7, tmp_path / "too-early", controller)
    with controller, broker:
        had_been(7, shared_chroot, tmp_path / "too-early")
        too_early.launch()  # the broker waits until the quorum accepts it
        bootstrap = f"127.0.0.1:{controller.port}"
        try:
            done = eventually(
                lambda: run("check", "--zookeeper", shared_chroot, "--bootstrap", bootstrap, "--json"),
                lambda done: "kraft-mode-too-early" in found_checks(done),
            )
        finally:
            too_early.kill()
        controller.kill()
        without_controller = run("check", "--zookeeper", shared_chroot, "--bootstrap", silent, "--json")
    assert done.exit_code == ExitCode.FAILED, done.output
    found = {row["check"]: (row["outcome"], row["detail"]) for row in rows(done, "finding")}
    assert {name for name, (outcome, _) in found.items() if outcome == "blocks"} == {
        "broker-without-flag",
        "metadata-version",
        "several-log-directories",
        "controller-id",
        "kraft-mode-too-early",
        "voter-address",
    }
    assert "broker 1 at " in found["broker-without-flag"][1]
    assert "inter.broker.protocol.version 3.6, the quorum metadata.version 3.9-IV0" in found["metadata-version"][1]
    assert "2 log directories" in found["several-log-directories"][1]
    assert "broker 7 runs in KRaft mode although the migration has not begun" in found["kraft-mode-too-early"][1]
    addresses = {row["znode"]: row["detail"] for row in rows(done, "finding") if row["check"] == "voter-address"}
    assert addresses == {
        bootstrap: "the voters 1 and 2 share this address, as behind a load balancer",
        silent: "voter 3 does not answer this machine by its own address: Connection refused",
    }
    unchecked = {row["check"]: row["reason"] for row in rows(without_controller, "not-checked")}
    assert "no KRaft controller answers" in unchecked["metadata-version"]
    assert "broker-without-flag" in {row["check"] for row in rows(without_controller, "finding")}


# --- in the dual write


@dataclass
class DualWrite:
    zookeeper: str
    controller: KRaftController
    brokers: dict[int, KafkaBroker]

    def compare(self, *arguments: object, bootstrap: str = "") -> Result:
        bootstrap = bootstrap or self.brokers[2].bootstrap_server
        return run("compare", "--zookeeper", self.zookeeper, "--bootstrap", bootstrap, *arguments)


@pytest.fixture(scope="module")
def dual_write(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DualWrite]:
    """Run a controller, broker 1 in ZooKeeper mode, broker 2 in KRaft mode, and one object of each compared kind."""
    directory = tmp_path_factory.mktemp("dual-write")
    with ZooKeeper(directory / "zookeeper") as server:
        chroot = make_chroot(server.connect_string, "kafka")
        controller = KRaftController(3001, chroot, directory / "controller", properties=IN_KRAFT_MODE)
        first, second = (
            migrating_broker(one, chroot, directory / f"broker-{one}", controller, properties=IN_ZOOKEEPER_MODE)
            for one in (1, 2)
        )
        rolled = KRaftBroker(2, directory / "broker-2", controller, properties=IN_KRAFT_MODE)
        processes = (controller, first, second)
        try:
            for process in processes:
                process.launch()
            for process in processes:
                process.wait_until_ready()
            with zookeeper_client(chroot) as client:
                eventually(lambda: client.exists("/migration") and migration(client)["kraft_metadata_offset"] > 0)
            second.stop()
            rolled.start()
            fill(rolled.bootstrap_server)
            cluster = DualWrite(chroot, controller, {1: first, 2: rolled})
            eventually(lambda: cluster.compare().exit_code, lambda code: code == ExitCode.OK)
            yield cluster
        finally:
            for process in (rolled, *processes):
                process.kill()


def migration(client: KazooClient) -> dict[str, int]:
    return json.loads(client.get("/migration")[0])


def ask(address: str, request: Any) -> Any:
    node = KafkaNode(address, KafkaLogin(), timeout_seconds=30, largest_answer_bytes=2**20, client_id="test")
    try:
        return node.ask(request)
    finally:
        node.close()


def create_topic(address: str, name: str, assignment: dict[int, list[int]], **settings: str) -> None:
    topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            topic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    topic.CreatableReplicaAssignment(partition_index=number, broker_ids=replicas)
                    for number, replicas in assignment.items()
                ],
                configs=[
                    topic.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in settings.items()
                ],
            )
        ],
        timeout_ms=30_000,
        validate_only=False,
    )
    assert [result.error_code for result in ask(address, request).topics] == [0]


def fill(address: str) -> None:
    """Make something of every subject, by a broker in KRaft mode."""
    create_topic(address, "orders", {0: [1, 2], 1: [2, 1], 2: [1, 2]}, retention_ms="1234567")
    create_topic(address, "plain", {0: [1]})
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def setting(name: str, value: str) -> Any:
        return resource.AlterableConfig(name=name, config_operation=0, value=value)

    own = resource(resource_type=4, resource_name="2", configs=[setting("log.cleaner.threads", "1")])
    all_brokers = resource(resource_type=4, resource_name="", configs=[setting("background.threads", "3")])
    answer = ask(address, IncrementalAlterConfigsRequest(resources=[own, all_brokers], validate_only=False))
    assert [response.error_code for response in answer.responses] == [0, 0]
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    credential = upsertion(
        name="alice@example", mechanism=2, iterations=8192, salt=b"1" * 16, salted_password=b"2" * 64
    )
    answer = ask(address, AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential]))
    assert [result.error_code for result in answer.results] == [0]
    creation = CreateAclsRequest.AclCreation
    acls = ((2, "ord", 4, 10, 3), (3, "g", 3, 3, 2), (4, "kafka-cluster", 3, 9, 3), (5, "t", 3, 2, 3))
    creations = [
        creation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal="User:alice",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for kind, name, pattern, operation, permission in acls
    ]
    assert {result.error_code for result in ask(address, CreateAclsRequest(creations=creations)).results} == {0}
    quotas = (
        ((("user", "alice@example"),), "producer_byte_rate", 1000.0),
        ((("user", None), ("client-id", "app")), "request_percentage", 12.5),
        ((("ip", "10.0.0.1"),), "connection_creation_rate", 5.0),
        ((("client-id", None),), "consumer_byte_rate", 2e9),
    )
    entry = AlterClientQuotasRequest.EntryData
    entries = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[entry.OpData(key=key, value=value, remove=False)],
        )
        for entity, key, value in quotas
    ]
    answer = ask(address, AlterClientQuotasRequest(entries=entries, validate_only=False))
    assert {one.error_code for one in answer.entries} == {0}


def edit(client: KazooClient, path: str, settings: dict[str, str]) -> tuple[str, bytes]:
    """Write settings into a znode past KRaft. Return the path and its former content."""
    before, _ = client.get(path)
    content = json.loads(before)
    content["config"] |= settings
    client.set(path, json.dumps(content).encode())
    return path, before


def test_all_that_the_quorum_says_is_in_zookeeper_and_each_node_is_in_its_mode(dual_write):
    done = dual_write.compare("--json")
    assert done.exit_code == ExitCode.OK, done.output
    assert {row["id"]: row["mode"] for row in rows(done, "node")} == {
        1: "zookeeper-migrating",
        2: "kraft",
        3001: "controller-migrating",
    }
    compared = {row["subject"]: (row["verdict"], row["compared"]) for row in rows(done, "subject")}
    assert compared == {
        "topics": ("equal", 2),
        "replicas": ("equal", 4),
        "partitions": ("equal", 4),
        "topic configurations": ("equal", 1),
        "broker configurations": ("equal", 2),
        "quotas": ("equal", 4),
        "SCRAM credentials": ("equal", 1),
        "ACLs": ("equal", 4),
        "producer ids": ("not compared", 0),
        "delegation tokens": ("not compared", 0),
    }
    (whole,) = rows(done, "comparison")
    assert (whole["verdict"], whole["leader"], whole["voters"]) == ("equal", 3001, [3001])
    assert whole["offset"] > 0


def test_what_was_written_past_kraft_is_named_with_both_values_and_no_secret(dual_write):
    with zookeeper_client(dual_write.zookeeper) as client:
        restored = [
            edit(client, "/config/topics/orders", {"retention.ms": "999"}),
            edit(client, USER, {"producer_byte_rate": "17"}),
            edit(client, "/config/brokers/2", {"ssl.keystore.password": SECRET}),
        ]
        state = "/brokers/topics/orders/partitions/1/state"
        before, _ = client.get(state)
        restored.append((state, before))
        client.set(state, json.dumps({**json.loads(before), "isr": [1, 2]}).encode())
        acls = {"principal": "User:e\x1b[31m", "permissionType": "Allow", "operation": "Read", "host": "*"}
        client.create("/kafka-acl/Topic/e", json.dumps({"version": 1, "acls": [acls]}).encode(), makepath=True)
        done, people = dual_write.compare("--json"), dual_write.compare()
        for path, value in restored:
            client.set(path, value)
        client.delete("/kafka-acl/Topic/e")
    assert done.exit_code == people.exit_code == ExitCode.FAILED
    found = [
        (row["subject"], one["of"], one["name"], one["zookeeper"], one["quorum"])
        for row in rows(done, "subject")
        for one in row["differences"]
    ]
    leader_2 = "leader 2, leader epoch 0, ISR "
    assert found == [
        ("partitions", "orders", "1", f"{leader_2}[1, 2]", f"{leader_2}[2, 1]"),
        ("topic configurations", "orders", "retention.ms", "999", "1234567"),
        ("broker configurations", "2", "ssl.keystore.password", "set, not shown", None),
        ("quotas", "user alice@example", "producer_byte_rate", "17", "1000"),
        ("ACLs", "TOPIC LITERAL e", "User:e\x1b[31m ALLOW READ from *", "there", None),
    ]
    assert [row["verdict"] for row in rows(done, "comparison")] == ["different"]
    assert "orders retention.ms: ZooKeeper has 999, the quorum has 1234567" in people.stdout
    assert "\x1b[31m" not in people.stdout
    assert SECRET not in done.stdout + people.stdout
    assert "stored_key" not in done.stdout + people.stdout
    assert dual_write.compare().exit_code == ExitCode.OK


def test_a_controller_is_enough_to_find_a_broker_in_kraft_mode(dual_write):
    done = dual_write.compare("--json", bootstrap=f"127.0.0.1:{dual_write.controller.port}")
    sources = {row["subject"]: row["source"] or row["reason"] for row in rows(done, "subject")}
    assert "KRaft mode" in sources["topics"], "broker 2 is named by broker 1"
    assert done.exit_code == ExitCode.OK


@pytest.mark.parametrize("named", in_gate(True, of=[True, False]), ids=["the quorum is named", "through the brokers"])
def test_serve_counts_nodes_by_mode_and_what_differs(dual_write, start_exporter, tmp_path, named):  # noqa: F811
    quorum = (f"127.0.0.1:{dual_write.controller.port}", dual_write.brokers[2].bootstrap_server)
    settings = {"kafka_quorum": quorum} if named else {"brokers": True}
    probe = ProbeConfig(interval_seconds=0.5, confirm_seconds=0.3, **settings)
    state = "/brokers/topics/orders/partitions/1/state"
    with LiveReplica("north", dual_write.zookeeper, tmp_path) as replica:
        config = ServeConfig(source=JournalAddress(replica.outputs), listen="127.0.0.1:0", probe=probe)
        with start_exporter(config) as exporter, zookeeper_client(dual_write.zookeeper) as client:
            equal = {"partitions": 0, "replicas": 0}
            text = eventually(exporter.metrics, lambda text: figures(text, "differing_values") == equal)
            modes = {"controller-migrating": 1, "kraft": 1, "zookeeper-migrating": 1}
            assert figures(text, "nodes") == modes
            (high_watermark,) = figures(text, "quorum_high_watermark").values()
            assert high_watermark > migration(client)["kraft_metadata_offset"] - 20
            before, _ = client.get(state)
            client.set(state, json.dumps({**json.loads(before), "isr": [1, 2]}).encode())
            eventually(exporter.metrics, lambda text: figures(text, "differing_values") == {**equal, "partitions": 1})
            client.set(state, before)
            eventually(exporter.metrics, lambda text: figures(text, "differing_values") == equal)


def figures(text: str, name: str) -> dict[str, float]:
    """Return a family's values by its last label, if it has one beside the cluster's."""
    lines = re.findall(rf"^kontrast_migration_{name}{{([^}}]*)}} (\S+)$", text, re.MULTILINE)
    return {(re.findall(r'(?:mode|subject)="([^"]*)"', labels) or [""])[0]: float(value) for labels, value in lines}


@pytest.mark.nightly
def test_a_broken_dual_write_is_a_lag_until_the_controller_is_started_again(dual_write):
    with zookeeper_client(dual_write.zookeeper) as client:
        client.set("/migration", client.get("/migration")[0])  # its version no longer matches the driver's
        create_topic(dual_write.brokers[2].bootstrap_server, "late", {0: [2]})
        done = dual_write.compare("--json")
        assert done.exit_code == ExitCode.FAILED
        verdicts = {row["subject"]: row["verdict"] for row in rows(done, "subject")}
        assert verdicts["topics"] == "lagging"
        (whole,) = rows(done, "comparison")
        assert whole["verdict"] == "lagging"
        assert whole["lag"] == whole["high_watermark"] - 1 - whole["offset"] > 0
        dual_write.controller.stop()
        dual_write.controller.start()
        eventually(lambda: dual_write.compare().exit_code, lambda code: code == ExitCode.OK)
        assert client.exists("/brokers/topics/late")


@pytest.mark.nightly
def test_a_finalization_with_a_broker_in_zookeeper_pages_with_its_blindness(
    dual_write,
    start_exporter,  # noqa: F811 (a fixture)
    tmp_path,
):
    bootstrap = f"127.0.0.1:{dual_write.controller.port}"
    arguments = ("check", "--zookeeper", dual_write.zookeeper, "--bootstrap", bootstrap, "--json")
    before = [row["detail"] for row in rows(run(*arguments), "finding") if row["check"] == "broker-in-zookeeper"]
    assert before == ["broker 1 is still registered in ZooKeeper"]
    unflagged = {"zookeeper.metadata.migration.enable": "false"}
    first = KRaftController(3002, dual_write.zookeeper, tmp_path / "first", properties=unflagged)
    quorum = (bootstrap, f"127.0.0.1:{first.port}")
    probe = ProbeConfig(interval_seconds=0.5, confirm_seconds=0.3, kafka_quorum=quorum)
    with LiveReplica("north", dual_write.zookeeper, tmp_path) as replica:
        config = ServeConfig(source=JournalAddress(replica.outputs), listen="127.0.0.1:0", probe=probe)
        with start_exporter(config) as exporter, zookeeper_client(dual_write.zookeeper) as client:
            eventually(exporter.metrics, lambda text: "controller-migrating" in figures(text, "nodes"))
            assert not too_early(exporter.metrics())
            with first:  # like the first restarted controller of a quorum, while another one leads
                eventually(exporter.metrics, lambda text: too_early(text) == ["page"])
                written = migration(client)["kraft_metadata_offset"]
                eventually(lambda: migration(client)["kraft_metadata_offset"] > written)  # the migration goes on
            eventually(exporter.metrics, lambda text: not too_early(text))
            dual_write.controller.finalize()
            eventually(exporter.metrics, lambda text: too_early(text) == ["page"])
            after = [row["detail"] for row in rows(run(*arguments), "finding") if row["check"] == "broker-in-zookeeper"]
            assert after == [f"{before[0]}, and controller 3001 at {bootstrap} runs without the flag already"]
            page = exporter.page_with("/clusters/north", "Kontrast is blind to")
            assert "the migration is finalized (no controller has its flag)" in page
            client.delete("/brokers/ids/1")
            eventually(exporter.metrics, lambda text: not too_early(text))


def too_early(text: str) -> list[str]:
    """Return the severity of the alert on a finalization that comes too early, if it is open."""
    pattern = r'^kontrast_alert_since_timestamp_seconds{([^}]*alert="FinalizedTooEarly"[^}]*)}'
    return [re.findall(r'severity="(\w+)"', labels)[0] for labels in re.findall(pattern, text, re.MULTILINE)]


# --- without a counterpart


def test_it_says_where_no_quorum_rules_and_where_no_node_answers(shared_chroot):
    nobody = f"127.0.0.1:{free_port()}"
    with zookeeper_client(shared_chroot) as client:
        client.create("/controller_epoch", b"1")
        ruled_by_a_broker = run("compare", "--zookeeper", shared_chroot, "--bootstrap", nobody)
        ids = {"kraft_controller_id": 3001, "kraft_metadata_epoch": 1, "kraft_controller_epoch": 1}
        client.create("/migration", json.dumps({"version": 0, "kraft_metadata_offset": 7, **ids}).encode())
        claimed = {"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": 1}
        client.create("/controller", json.dumps(claimed).encode())
        unreachable = run("compare", "--zookeeper", shared_chroot, "--bootstrap", nobody)
    assert ruled_by_a_broker.exit_code == ExitCode.USAGE
    assert "no KRaft quorum rules this cluster" in ruled_by_a_broker.output
    assert unreachable.exit_code == ExitCode.UNAVAILABLE
    assert f"{nobody}: Connection refused" in unreachable.output
