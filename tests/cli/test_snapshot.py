"""`kontrast snapshot` against a real ZooKeeper, with its output and its sentences for errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient
from kazoo.security import ACL, ANYONE_ID_UNSAFE, Permissions

from cli.main import main
from cli.running import ExitCode
from tests.clients import zookeeper_client
from tests.ingest.conftest import server_zxid


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["snapshot", *map(str, arguments)])


def of(watched: str, *arguments: object) -> Result:
    return run("--zookeeper", watched, *arguments)


@pytest.fixture
def kafka(watched: str) -> Iterator[KazooClient]:
    """Yield a client that writes znodes as Kafka does."""
    with zookeeper_client(watched) as client:
        yield client


def put(kafka: KazooClient, path: str, content: object) -> int:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    kafka.create(path, data, makepath=True)
    return kafka.exists(path).czxid


def state(kafka: KazooClient, tp: str, leader: int, epoch: int, isr: list[int]) -> None:
    topic, _, number = tp.rpartition("-")
    content = {"version": 1, "controller_epoch": 3, "leader": leader, "leader_epoch": epoch, "isr": isr}
    put(kafka, f"/brokers/topics/{topic}/partitions/{number}/state", content)


@pytest.fixture
def cluster(kafka: KazooClient) -> dict[int, int]:
    """Create two brokers, a topic in every state and one under deletion. Return the brokers' epochs."""
    for parent in ("/brokers/ids", "/brokers/topics", "/admin/delete_topics"):
        kafka.ensure_path(parent)
    epochs = {
        2: put(
            kafka, "/brokers/ids/2", {"version": 5, "jmx_port": -1, "endpoints": ["PLAINTEXT://b2:9092"], "rack": "r2"}
        ),
        1: put(kafka, "/brokers/ids/1", {"version": 1, "host": "b1", "port": 9092, "jmx_port": -1}),
    }
    put(kafka, "/controller", {"version": 2, "brokerid": 2, "timestamp": "1"})
    put(kafka, "/controller_epoch", b"3")
    replicas = {"10": [1, 2], "2": [1, 2], "0": [9, 1], "1": [3]}
    put(kafka, "/brokers/topics/t", {"version": 3, "partitions": replicas, "adding_replicas": {"0": [9]}})
    state(kafka, "t-10", 1, 0, [1, 2])
    state(kafka, "t-2", 9, 4, [9])
    state(kafka, "t-0", 1, 7, [1])
    state(kafka, "t-77", 1, 0, [1])  # not in the assignment
    put(kafka, "/brokers/topics/gone", {"version": 1, "partitions": {"0": [1]}})
    state(kafka, "gone-0", -1, 1, [1])
    put(kafka, "/admin/delete_topics/gone", b"")
    return epochs


def test_it_prints_brokers_controller_and_partitions_in_order(watched, cluster):
    done = of(watched, "--json")
    assert done.exit_code == ExitCode.OK, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    rest = {"rack": None, "registered": True, "type": "broker"}
    absent = {**rest, "epoch": -1, "endpoints": [], "registered": False}
    assert lines[:5] == [
        {**rest, "broker": 1, "epoch": cluster[1], "endpoints": ["PLAINTEXT://b1:9092"]},
        {**rest, "broker": 2, "epoch": cluster[2], "endpoints": ["PLAINTEXT://b2:9092"], "rack": "r2"},
        {**absent, "broker": 3},
        {**absent, "broker": 9},
        {"type": "controller", "broker": 2, "epoch": 3},
    ]
    told = [
        (line["topic"], line["partition"], line["state"], line["leader"], line["leader_epoch"], line["isr"])
        for line in lines[5:]
    ]
    assert told == [
        ("gone", 0, "OfflinePartition", -1, 1, [1]),
        ("t", 0, "OnlinePartition", 1, 7, [1]),
        ("t", 1, "NewPartition", -1, -1, []),
        ("t", 2, "OfflinePartition", 9, 4, [9]),
        ("t", 10, "OnlinePartition", 1, 0, [1, 2]),
    ]
    assert [(line["replicas"], line["adding_replicas"], line["deleting"]) for line in lines[5:7]] == [
        ([1], [], True),
        ([9, 1], [9], False),
    ]
    concerns = {(line["topic"], line["partition"]): line["concerns"] for line in lines[5:]}
    assert concerns == {
        ("gone", 0): [],  # it is being deleted
        ("t", 0): ["at-min-isr"],
        ("t", 1): ["offline"],
        ("t", 2): ["offline", "under-replicated", "at-min-isr"],
        ("t", 10): [],
    }


def test_what_takes_acks_all_follows_the_brokers_files_too(watched, cluster):
    def of_led(*arguments: object) -> dict[int, tuple]:
        lines = map(json.loads, of(watched, "--json", *arguments).stdout.splitlines())
        fields = ("writable_acks_all", "in_sync_lacking", "in_sync_candidates", "concerns")
        led = (line for line in lines if line["type"] == "partition" and line["state"] == "OnlinePartition")
        return {line["partition"]: tuple(line[field] for field in fields) for line in led}

    assert of_led() == {0: (True, 0, [], ["at-min-isr"]), 10: (True, 0, [], [])}
    assert of_led("--broker-config", "min.insync.replicas=2") == {
        0: (False, 1, [9], ["under-min-isr"]),
        10: (True, 0, [], ["at-min-isr"]),
    }


def test_to_a_person_it_tells_the_counts_and_what_is_not_well(watched, cluster):
    done = of(watched)
    assert done.exit_code == ExitCode.OK, done.output
    assert done.stdout.splitlines() == [
        "controller: broker 2, epoch 3",
        f"broker 1: epoch {cluster[1]}, PLAINTEXT://b1:9092, leads 2 of 4 partitions",
        f"broker 2: epoch {cluster[2]}, PLAINTEXT://b2:9092, rack r2, leads 0 of 2 partitions",
        "broker 3: not registered, hosts 1 partition",
        "broker 9: not registered, hosts 1 partition",
        "2 topics, 5 partitions: 1 NewPartition, 2 OfflinePartition, 2 OnlinePartition",
        "t-1: offline: no replica was live at its creation: broker 3 has never registered here as far as ZooKeeper "
        "shows",
        "t-2: offline: no in-sync broker is assigned: broker 9 is in sync, but brokers 1 and 2 are assigned. "
        "No return and no failover elects one",
    ]


def test_the_worst_comes_first_and_one_kind_or_topic_can_be_asked_for(watched, kafka, cluster):
    put(kafka, "/config/topics/a", {"version": 1, "config": {"min.insync.replicas": "2"}})
    put(kafka, "/brokers/topics/a", {"version": 1, "partitions": {"0": [1, 2], "1": [1, 2], "2": [2, 1]}})
    state(kafka, "a-0", 1, 0, [1, 2])
    state(kafka, "a-1", 1, 0, [1])
    state(kafka, "a-2", 2, 0, [2, 1])
    put(kafka, "/brokers/topics/b", {"version": 1, "partitions": {"0": [1, 2]}})
    state(kafka, "b-0", 1, 0, [1])

    def named(*arguments: object) -> list[str]:
        lines = of(watched, *arguments).stdout.splitlines()
        return [": ".join(line.split(": ")[:2]) for line in lines if line.split("-")[0] in ("a", "b", "t")]

    assert named() == ["t-1: offline", "t-2: offline", "a-1: under-min-isr", "b-0: under-replicated"]
    assert named("--only", "offline") == ["t-1: offline", "t-2: offline"]
    assert named("--only", "at-min-isr", "--topic", "a") == ["a-0: at-min-isr", "a-2: at-min-isr"]
    assert named("--topic", "a") == ["a-1: under-min-isr", "a-0: at-min-isr", "a-2: at-min-isr"]
    assert named("--broker-config", "min.insync.replicas=2", "--topic", "b") == ["b-0: under-min-isr"]
    lines = [json.loads(line) for line in of(watched, "--only", "under-min-isr", "--json").stdout.splitlines()]
    assert [(line["topic"], line["partition"]) for line in lines if line["type"] == "partition"] == [("a", 1)]
    wrong = of(watched, "--only", "sleepy")
    assert (wrong.exit_code, "'under-min-isr'" in wrong.stderr) == (ExitCode.USAGE, True)
    absent = of(watched, "--topic", "nobody")
    assert (absent.exit_code, "there is no topic nobody" in absent.stderr) == (ExitCode.USAGE, True)


def test_of_many_that_are_not_well_only_the_first_are_named(watched, kafka):
    put(kafka, "/brokers/topics/t", {"version": 1, "partitions": {str(number): [1] for number in range(25)}})
    lines = of(watched).stdout.splitlines()
    assert lines[0] == "controller: none, epoch -1"
    assert lines[-1] == "and 5 more (5 offline, --only names all of one kind, --json all)"
    assert len(lines) == 24
    assert len(of(watched, "--only", "offline").stdout.splitlines()) == 28


def test_what_an_acl_hides_is_named_and_counts_as_not_read(watched, kafka, cluster):
    closed = [ACL(Permissions.WRITE | Permissions.ADMIN, ANYONE_ID_UNSAFE)]
    kafka.set_acls("/brokers/topics/t/partitions/10/state", closed)
    done = of(watched, "--json")
    assert done.exit_code == ExitCode.FAILED
    hidden = {"type": "unreadable", "path": "/brokers/topics/t/partitions/10/state"}
    assert json.loads(done.stdout.splitlines()[0]) == {**hidden, "reason": "its ACL does not let this session in"}
    (line,) = (line for line in done.stdout.splitlines() if '"partition":10,' in line)
    assert json.loads(line)["state"] == "Unreadable"
    assert "t-10: Unreadable: its state cannot be read" in of(watched).stdout
    kafka.set_acls("/brokers/topics", closed)
    done = of(watched)
    assert done.exit_code == ExitCode.FAILED
    assert "kontrast: /brokers/topics cannot be read: its ACL does not let this session in" in done.stderr
    assert "0 topics, 0 partitions: none\nincomplete: 1 znode cannot be read, nor their children\n" in done.stdout
    assert done.stderr.count("/brokers/topics") == 1


def test_what_cannot_be_read_is_named_and_the_rest_is_printed(watched, kafka, cluster):
    put(kafka, "/brokers/topics/bad", b"\xff")
    put(kafka, "/brokers/ids/7", b"")
    done = of(watched, "--json")
    assert done.exit_code == ExitCode.FAILED
    assert "kontrast: /brokers/ids/7 cannot be read: no data" in done.stderr
    assert "kontrast: /brokers/topics/bad cannot be read: " in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(line["path"] for line in lines[:2]) == ["/brokers/ids/7", "/brokers/topics/bad"]
    assert len(lines) == 2 + 4 + 1 + 5


def test_more_than_can_be_named_is_counted(watched, kafka):
    for number in range(22):
        put(kafka, f"/brokers/topics/bad{number:02}", b"{")
    done = of(watched)
    assert done.exit_code == ExitCode.FAILED
    assert "2 more znodes cannot be read (--json names them all)" in done.stderr


def test_it_reads_below_the_chroot_and_names_the_right_ones_where_nothing_is(zookeeper, watched, kafka):
    put(kafka, "/some/kafka/controller_epoch", b"5")
    put(kafka, "/some/kafka/brokers/ids", b"")
    put(kafka, "/other/brokers", b"")
    put(kafka, "/other/config", b"")
    put(kafka, "/brokers-of-another-kind", b"")
    below = run("--zookeeper", f"{watched}/some/kafka", "--json")
    assert below.stdout == '{"type":"controller","broker":-1,"epoch":5}\n'
    assert below.stderr == ""
    for chroot in ("", "/nowhere", "/some"):
        wrong = of(f"{watched}{chroot}", "--json")
        assert (wrong.exit_code, wrong.stdout) == (ExitCode.USAGE, "")
        assert f"there is one at {watched}/other and at {watched}/some/kafka\n" in wrong.stderr


def test_the_ensemble_sees_nothing_but_a_session_that_opens_and_closes(zookeeper, kafka, cluster):
    before = server_zxid(zookeeper)
    assert of(zookeeper.connect_string).exit_code == ExitCode.OK
    assert server_zxid(zookeeper) == before + 2


def test_the_cluster_may_come_from_the_configuration(watched, kafka, tmp_path: Path):
    put(kafka, "/controller_epoch", b"5")
    put(kafka, "/other/controller_epoch", b"6")
    file = tmp_path / "kontrast.toml"
    file.write_text(f'[clusters.orders]\nzookeeper = "{watched}"\n')
    assert '"epoch":5' in run("--config", file, "--json").stdout
    file.write_text(file.read_text() + f'[clusters.other]\nzookeeper = "{watched}/other"\n')
    assert '"epoch":6' in run("--config", file, "--cluster", "other", "--json").stdout
    which = run("--config", file)
    assert (which.exit_code, "which cluster? Give --cluster with one of orders, other" in which.stderr) == (2, True)
    wrong = run("--config", file, "--cluster", "order")
    assert (wrong.exit_code, "no cluster 'order' is configured" in wrong.stderr) == (2, True)
