"""What the table says of quotas, ACLs, features, ids and logins, tried on brokers of 3.9.2 and 2.8.2 that start."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, OPEN_ACL_UNSAFE, make_acl, make_digest_acl

from cli.embedded.kafka import KafkaBroker
from controller.contract.consequences import consequence_of
from controller.contract.flaw import Flaw
from controller.rules.flaws_besides import flaw_beside
from tests.clients import zookeeper_client
from tests.conformance.test_flawed_znodes import has_lasting_controller, starts
from tests.older_releases import class_path_of
from tests.waiting import eventually

pytestmark = pytest.mark.nightly

_ALLOW = {"permissionType": "Allow", "operation": "Read", "host": "*"}
_BLOCK = "/latest_producer_id_block"
_AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}
_ONE_LOGIN = [make_digest_acl("kafka", "secret", all=True), make_acl("world", "anyone", read=True)]


def _quota(path: str, key: str, value: str) -> tuple[str, object]:
    return path, {"version": 1, "config": {key: value}}


QUOTAS = (
    _quota("/config/users/alice", "producer_byte_rate", "10MB"),
    _quota("/config/users/alice", "producer_byte_rate", "1e6"),
    _quota("/config/users/alice", "producer_byte_rate", "1048576.0"),
    _quota("/config/users/alice", "producer_byte_rate", "1048576"),
    _quota("/config/users/alice/clients/app", "consumer_byte_rate", ""),
    _quota("/config/clients/<default>", "request_percentage", "fifty"),
    _quota("/config/clients/app", "request_percentage", "5e1"),
    _quota("/config/ips/no-such-host.invalid", "connection_creation_rate", "5"),
    _quota("/config/ips/192.0.2.7", "connection_creation_rate", "5.0"),
    _quota("/config/users/alice", "quota_of_nobody", "many"),
    *((path, {"config": {}}) for path in ("/config/users/50%", "/config/clients/a%zz", "/config/clients/a%20b")),
)
ACLS = (
    ("/kafka-acl/Topic/pay", {"version": 1, "acls": [_ALLOW]}),
    ("/kafka-acl/Topic/pay", {"version": 1, "acls": [{**_ALLOW, "principal": "alice"}]}),
    ("/kafka-acl/Topic/pay", {"version": 1, "acls": [{**_ALLOW, "principal": "User:alice"}]}),
    ("/kafka-acl/Topic/pay", {"version": 2, "acls": []}),
    ("/kafka-acl/Topic/pay", {"version": 1, "acls": [{**_ALLOW, "principal": "User:alice", "operation": "Reads"}]}),
    ("/kafka-acl/Topic/pay", {"version": 1, "acls": [{**_ALLOW, "principal": "User:a", "permissionType": "Maybe"}]}),
    ("/kafka-acl-extended/prefixed/Topic/pay", {"version": 1, "acls": [{"host": "*"}]}),
    ("/kafka-acl/Topic/pay", b"x"),
)
BLOCKS = (
    (_BLOCK, b"x"),
    (_BLOCK, {"version": 1, "broker": 1, "block_start": "0"}),
    (_BLOCK, {"version": 1, "broker": 1, "block_start": "9223372036854774808", "block_end": "9223372036854775807"}),
    (_BLOCK, {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}),
)
TRIED = [
    *(("3.9.2", each, {}) for each in QUOTAS),
    *(("2.8.2", each, {}) for each in QUOTAS if not each[0].startswith("/config/ips/no")),
    *((release, each, _AUTHORIZER) for release in ("3.9.2", "2.8.2") for each in ACLS),
    *(("2.8.2", each, {}) for each in BLOCKS),
    *(("3.9.2", each, {"inter.broker.protocol.version": "2.8"}) for each in BLOCKS),
]


# A flaw that ends the start, and the content of the mended znode, None for a deleted one.
_TWO = {"min_version_level": 1, "max_version_level": 3}
MENDED = (
    (QUOTAS[0], QUOTAS[3][1], {}),
    (QUOTAS[7], None, {}),
    (
        ("/config/users/bob", {"config": {"SCRAM-SHA-256": "salt=YQ==,server_key=YQ==,iterations=4096"}}),
        {"config": {}},
        {},
    ),
    (ACLS[0], ACLS[2][1], _AUTHORIZER),
    (BLOCKS[0], BLOCKS[3][1], {"inter.broker.protocol.version": "2.8"}),
    (("/brokers/ids/two", {"version": 5}), None, {}),
    (("/config/brokers/k1.example", {"config": {}}), None, {}),
    (("/feature", {"version": 1, "status": 1, "features": {"group": _TWO}}), None, {}),
)


def _broker(release: str, address: str, directory: Path, properties: Mapping[str, str]) -> KafkaBroker:
    class_path = () if release == "3.9.2" else class_path_of(release)
    return KafkaBroker(1, address, directory, properties=properties, class_path=class_path)


def _write(zookeeper: str, path: str, content: object, acl: Sequence[ACL] | None = None) -> None:
    with zookeeper_client(zookeeper) as client:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        client.ensure_path(path.rpartition("/")[0] or "/")
        client.create(path, data, acl)


@pytest.mark.parametrize(("release", "znode", "properties"), TRIED, ids=lambda each: str(each)[:70])
def test_a_broker_starts_unless_the_table_says_that_it_ends(
    release, znode, properties, shared_zookeeper, own_name, tmp_path
):
    path, content = znode
    _write(shared_zookeeper, f"/{own_name}{path}", content)
    found = flaw_beside(path, content if isinstance(content, bytes) else json.dumps(content).encode())
    major, minor, _ = map(int, release.split("."))
    consequence = None if found is None else consequence_of(path, found.flaw, (major, minor))
    broker = _broker(release, f"{shared_zookeeper}/{own_name}", tmp_path, properties)
    try:
        assert starts(broker) == (consequence is None or not consequence.stops_start)
    finally:
        broker.kill()


@pytest.mark.parametrize(("flawed", "mended", "properties"), MENDED, ids=lambda each: str(each)[:70])
def test_a_broker_starts_after_the_mend(flawed, mended, properties, shared_zookeeper, own_name, tmp_path):
    path, content = flawed
    _write(shared_zookeeper, f"/{own_name}{path}", content)
    broker = _broker("3.9.2", f"{shared_zookeeper}/{own_name}", tmp_path, properties)
    with zookeeper_client(f"{shared_zookeeper}/{own_name}") as client:
        try:
            assert not starts(broker)
            client.delete(path) if mended is None else client.set(path, json.dumps(mended).encode())
            assert starts(broker)
        finally:
            broker.kill()


def test_a_running_broker_ends_when_a_feature_is_finalized_that_it_lacks(shared_zookeeper, own_name, tmp_path):
    ends = consequence_of("/feature", Flaw.INCOMPATIBLE)
    assert ends is not None
    assert (ends.stops_start, ends.stops_brokers) == (True, True)
    broker = _broker("3.9.2", f"{shared_zookeeper}/{own_name}", tmp_path, {})
    broker.start()
    with zookeeper_client(f"{shared_zookeeper}/{own_name}") as client:
        try:
            levels = {"group_coordinator": {"min_version_level": 1, "max_version_level": 3}}
            client.set("/feature", json.dumps({"version": 1, "status": 1, "features": levels}).encode())
            eventually(lambda: not broker.running)
            assert not starts(broker)
        finally:
            broker.kill()


def test_a_broker_without_the_cluster_id_writes_another_and_ends_at_each_start(shared_zookeeper, own_name, tmp_path):
    broker = _broker("3.9.2", f"{shared_zookeeper}/{own_name}", tmp_path, {})
    broker.start()
    broker.kill()
    with zookeeper_client(f"{shared_zookeeper}/{own_name}") as client:
        try:
            kept, _ = client.get("/cluster/id")
            client.delete("/cluster/id")
            assert not starts(broker)
            assert client.get("/cluster/id")[0] != kept
            assert not starts(broker)
            client.set("/cluster/id", kept)
            assert starts(broker)
        finally:
            broker.kill()


def test_no_broker_is_elected_that_may_not_write_the_epoch(shared_zookeeper, own_name, tmp_path):
    _write(shared_zookeeper, f"/{own_name}/controller_epoch", b"7", _ONE_LOGIN)
    broker = _broker("3.9.2", f"{shared_zookeeper}/{own_name}", tmp_path, {})
    broker.start()
    with zookeeper_client(f"{shared_zookeeper}/{own_name}") as client:
        try:
            time.sleep(4)
            assert client.get("/controller_epoch")[0] == b"7"
            assert not client.exists("/controller")
            _open(client, "/controller_epoch")
            broker.kill()
            assert starts(broker)
            eventually(lambda: client.exists("/controller"))
        finally:
            broker.kill()


def test_a_broker_registers_once_its_login_may(shared_zookeeper, own_name, tmp_path):
    _write(shared_zookeeper, f"/{own_name}/brokers/ids", b"", _ONE_LOGIN)
    broker = _broker("3.9.2", f"{shared_zookeeper}/{own_name}", tmp_path, {})
    with zookeeper_client(f"{shared_zookeeper}/{own_name}") as client:
        try:
            assert not starts(broker)
            _open(client, "/brokers/ids")
            assert starts(broker)
        finally:
            broker.kill()


def _registration(*endpoints: str) -> bytes:
    names = {each.partition(":")[0]: each.partition(":")[0] for each in endpoints}
    fields = {"listener_security_protocol_map": names, "endpoints": endpoints, "features": {}}
    return json.dumps({"version": 5, "jmx_port": -1, "timestamp": "1", **fields}).encode()


@pytest.mark.parametrize("release", ["3.9.2", "2.8.2"])
def test_a_broker_starts_once_no_other_has_its_endpoint(release, shared_zookeeper, own_name, tmp_path):
    broker = _broker(release, f"{shared_zookeeper}/{own_name}", tmp_path, {})
    _write(shared_zookeeper, f"/{own_name}/brokers/ids/2", _registration(f"PLAINTEXT://127.0.0.1:{broker.port}"))
    with zookeeper_client(f"{shared_zookeeper}/{own_name}") as client:
        try:
            assert not starts(broker)
            client.set("/brokers/ids/2", _registration("PLAINTEXT://127.0.0.1:9"))
            assert starts(broker)
        finally:
            broker.kill()


@pytest.mark.parametrize("release", ["3.9.2", "2.8.2", "1.1.1"])
def test_no_controller_stays_while_a_broker_lacks_its_listener(release, shared_zookeeper, own_name, tmp_path):
    at = f"{shared_zookeeper}/{own_name}"
    _write(shared_zookeeper, f"/{own_name}/brokers/ids/2", _registration("SSL://127.0.0.1:9"))
    broker = _broker(release, at, tmp_path, {})
    with zookeeper_client(at) as client:
        try:
            broker.start()
            assert not has_lasting_controller(at)
            client.set("/brokers/ids/2", _registration("SSL://127.0.0.1:9", "PLAINTEXT://127.0.0.1:8"))
            broker.kill()
            broker.start()
            assert has_lasting_controller(at)
        finally:
            broker.kill()


def test_a_broker_of_another_chroot_joins_without_its_meta_properties(shared_zookeeper, own_name, tmp_path):
    joined, moved = f"{shared_zookeeper}/{own_name}", tmp_path / "moved"
    first, stray = _broker("3.9.2", joined, tmp_path, {}), KafkaBroker(2, f"{joined}-stray", moved)
    corrected = KafkaBroker(2, joined, moved)
    try:
        assert starts(first)
        assert starts(stray)
        stray.kill()
        assert not starts(corrected)
        (moved / "data" / "meta.properties").unlink()
        assert starts(corrected)
    finally:
        for broker in (first, stray, corrected):
            broker.kill()


def _open(client: KazooClient, path: str) -> None:
    """Give every login all rights, as the login that owns the znode."""
    client.add_auth("digest", "kafka:secret")
    client.set_acls(path, OPEN_ACL_UNSAFE)
