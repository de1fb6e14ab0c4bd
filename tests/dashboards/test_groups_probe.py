"""Questions about groups to a real broker: their number for 5,000 groups, a denied one, and the kept answers."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, KafkaAdminClient, ResourcePattern, ResourceType
from kafka.protocol.consumer import OffsetCommitRequest

from cli.embedded.kafka import KafkaCluster
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.probe.config import ProbeConfig
from dashboards.probe.group_requests import GroupRequests
from dashboards.probe.groups import GroupsProbe
from dashboards.probe.kept_groups import keep_groups, kept_groups
from outputs.kafka_node import KafkaNode, NodeError
from questions.clients.known_groups import CONSUMER_OFFSETS, Group, KnownGroups
from questions.clients.teams import read_teams
from tests.dashboards.page_cases import Size, Story
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.kafka_login import KafkaLogin

GROUPS = 5_000
INTERVAL_SECONDS = ProbeConfig().groups_interval_seconds
PROPERTIES = {
    "allow.everyone.if.no.acl.found": "true",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "offsets.topic.num.partitions": "1",
}


class Rows:
    """The rows of a cluster with one broker, whose group topics are led."""

    def __init__(self, bootstrap: str, rows) -> None:
        broker = rows.broker(1, endpoints=(f"PLAINTEXT://{bootstrap}",))
        self.memory = SimpleNamespace(partitions_of=lambda _, topic: {0: rows.partition(topic, 0)})
        self.snapshot = SimpleNamespace(brokers=(broker,), unusable=(), under_min_isr=())

    def now(self) -> SimpleNamespace:
        return self.snapshot


def commit(node: KafkaNode, group: str, offset: int) -> int:
    """Commit an offset without being a member, and return the error."""
    partition = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[topic], max_version=8
    )
    return int(node.ask(request).topics[0].partitions[0].error_code)


def commit_until_taken(node: KafkaNode, group: str, offset: int) -> None:
    def taken() -> bool:
        try:
            return commit(node, group, offset) == 0
        except NodeError:
            return False

    eventually(taken)


@pytest.fixture
def cluster(start_kafka_cluster) -> KafkaCluster:
    started: KafkaCluster = start_kafka_cluster(properties=PROPERTIES)
    with closing(KafkaAdminClient(bootstrap_servers=started.bootstrap_servers)) as admin:
        admin.create_topics({"t": {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
        # The first answer about a group creates __consumer_offsets.
        admin.create_topics({CONSUMER_OFFSETS: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    return started


@pytest.mark.nightly
def test_a_round_about_5000_groups_takes_less_than_a_request_a_second(cluster, rows, tmp_path, monkeypatch):
    bootstrap = cluster.bootstrap_servers[0]
    node = KafkaNode(bootstrap, KafkaLogin(), timeout_seconds=30, largest_answer_bytes=2**20, client_id="t")
    names = [f"g{number}" for number in range(GROUPS)]
    commit_until_taken(node, names[0], 1)
    assert [name for name in names if commit(node, name, 1)] == []
    deny(cluster, "g7")
    asked: list[object] = []
    ask = GroupRequests._ask
    monkeypatch.setattr(GroupRequests, "_ask", lambda self, *asking: asked.append(asking) or ask(self, *asking))
    config = ProbeConfig(groups=True, group_requests_per_second=10_000.0, groups_directory=tmp_path / "kept")
    probe = GroupsProbe("north", config, Rows(bootstrap, rows))
    stop = threading.Event()
    running = threading.Thread(target=probe.run, args=(stop,), daemon=True)
    running.start()
    known = eventually(lambda: probe.known, lambda known: known.asked_ms)
    stop.set()
    running.join()
    assert len(asked) / INTERVAL_SECONDS < 1
    assert len(asked) == 1 + 1 + 100 + 100  # groups, transactional ids, descriptions, offsets
    assert known.groups.keys() == set(names) - {"g7"}
    assert known.groups["g1"].committed == {"t": {0: 1}}
    assert known.gaps == (
        "the brokers deny DescribeGroups: allow Kontrast's user the operation Describe on 1 group (g7)",
    )
    assert kept_groups(tmp_path / "kept", "north") == known
    assert GroupsProbe("north", config, Rows(bootstrap, rows)).known == known  # after a restart


def test_the_rate_bounds_the_requests_to_all_brokers_together(rows, monkeypatch):
    asked_at: list[float] = []

    def answered(_self: GroupRequests, *_asking: object) -> SimpleNamespace:
        asked_at.append(time.monotonic())
        return SimpleNamespace(error_code=0, groups=[], transaction_states=[])

    monkeypatch.setattr(GroupRequests, "_ask", answered)
    source = Rows("127.0.0.1:1", rows)
    source.snapshot.brokers = tuple(
        rows.broker(number, endpoints=(f"PLAINTEXT://127.0.0.1:{number}",)) for number in (1, 2, 3)
    )
    config = ProbeConfig(groups=True, groups_interval_seconds=0.01, group_requests_per_second=50.0)
    stop = threading.Event()
    running = threading.Thread(target=GroupsProbe("north", config, source).run, args=(stop,), daemon=True)
    running.start()
    eventually(lambda: len(asked_at) >= 20)
    stop.set()
    running.join()
    assert asked_at[-1] - asked_at[0] >= (len(asked_at) - 1.5) / 50


def deny(cluster: KafkaCluster, group: str) -> None:
    """Deny everybody the description of a group."""
    acl = ACL(
        principal="User:*",
        host="*",
        operation=ACLOperation.DESCRIBE,
        permission_type=ACLPermissionType.DENY,
        resource_pattern=ResourcePattern(ResourceType.GROUP, group),
    )
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        admin.create_acls([acl])


def test_a_broken_file_is_no_knowledge_and_a_missing_one_neither(tmp_path):
    assert kept_groups(tmp_path, "a/b") == KnownGroups()
    (tmp_path / "a%2Fb.json").write_text("{")
    assert kept_groups(tmp_path, "a/b") == KnownGroups()


@pytest.mark.parametrize("key", ["groups_interval_seconds", "group_requests_per_second"])
def test_a_rate_of_nothing_is_refused(key):
    with pytest.raises(ServeError, match=f"{key} is 0: expected more than 0"):
        ProbeConfig(**{key: 0})


def test_the_card_of_an_incident_names_the_groups_that_it_stops(tmp_path, start_exporter):
    reads = {"tmp_a": dict.fromkeys(range(8), 1)}
    groups = {name: Group(name, "Stable", 1, True, reads, ("tmp_a",)) for name in ("pay-1", "other")}
    keep_groups(tmp_path / "kept", "orders", KnownGroups(1, groups, gaps=("broker 1 did not answer",)))
    probe = ProbeConfig(groups=True, groups_directory=tmp_path / "kept")
    teams = read_teams({"pay*": {"team": "payments", "contact": "#pay"}, "tmp_*": {"team": "ledger"}})
    config = ServeConfig(source=JournalAddress(tmp_path / "outputs"), listen="127.0.0.1:0", probe=probe, teams=teams)
    with start_exporter(config) as exporter:
        exporter.write(*Story("orders").begin(topics={"tmp_a": Size(8, 1, 1)}).crash(1).to_the_present().rows())
        page = exporter.page_with("/clusters/orders", "It stops 1 group of team payments")
        assert "(#pay) (pay-1) and 1 group (other), as brokers answered" in page
        assert "<li>pay-1 (team payments (#pay)): cannot read tmp_a-" in page
        assert "Broker 1 did not answer." in page
        assert page.count(">ledger, 2 groups</text>") == 2  # on the wide and on the narrow map
        assert "<p>Team ledger.</p><p>Read by 1 group of team payments (#pay) (pay-1) and 1 group (other).</p>" in page
        assert "This stops 1 group of team payments" in exporter.page("/clusters/orders/consequences?broker=2")
        restart = json.loads(exporter.page("/api/v1/clusters/orders/restartable?broker=2"))
        assert "This stops 1 group of team payments (#pay) (pay-1)" in restart["reasons"][0]["sentence"]
        topic = json.loads(exporter.page("/api/v1/clusters/orders/topics/tmp_a"))["explanation"]["statements"]
        assert "read by" in [each["about"] for each in topic]
