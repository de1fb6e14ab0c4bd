"""Values that the preflight reads as Kafka does, with Java's numbers, SCRAM credentials, names of settings."""

from __future__ import annotations

import json

import pytest

from ingest.observed.observations import Value
from migration.preflight.report import examine
from migration.preflight.tree import Tree


def found(path: str, **config: str) -> list[str]:
    content = json.dumps({"version": 1, "config": config}).encode()
    above = {
        f"/config/users/{name}": Value(None, 1, 1, 0, 0)
        for name in path.split("/")[3:4]
        if path.startswith("/config/users")
    }
    tree = Tree({**above, path: Value(content, 1, 1, 0, 0)})
    return [one.check.name for one in examine(tree).found if one.check.name != "protocol-version"]


@pytest.mark.parametrize("value", ["1000", " 1000 ", "1000.0", "1e3", "1000d", "+5", ".5e1", "1000.0000001", "1e300"])
def test_a_rate_that_java_reads_as_a_whole_number_is_well(value):
    assert found("/config/users/u", producer_byte_rate=value) == []


@pytest.mark.parametrize("value", ["", "1_000", "1,5", "ten", "1000 B", "inf", "٣"])
def test_a_rate_that_java_refuses_kills(value):
    assert found("/config/users/u", producer_byte_rate=value) == ["quota-no-number"]


@pytest.mark.parametrize(
    ("path", "key", "value", "names"),
    [
        ("/config/users/u", "request_percentage", "12.5", []),
        ("/config/users/u", "controller_mutation_rate", "0.5", []),
        ("/config/users/u", "producer_byte_rate", "0.5", ["quota-fraction"]),
        ("/config/users/u", "connection_creation_rate", "5", ["quota-unknown"]),
        ("/config/users/u/clients/c", "SCRAM-SHA-256", "5", ["quota-unknown"]),
        ("/config/users/u/clients/c", "consumer_byte_rate", "x", ["quota-no-number"]),
        ("/config/clients/c", "producer_byte_rate", "x", ["quota-no-number"]),
        ("/config/ips/10.0.0.1", "connection_creation_rate", "5", []),
        ("/config/ips/10.0.0.1", "connection_creation_rate", "5.5", ["quota-fraction"]),
        ("/config/ips/10.0.0.1", "producer_byte_rate", "5", ["quota-unknown"]),
        ("/config/brokers/1", "ssl.keystore.password", "x", ["broker-password"]),
        ("/config/brokers/<default>", "listener.name.a.plain.sasl.jaas.config", "x", ["broker-password"]),
        ("/config/brokers/1", "log.cleaner.threads", "2", []),
    ],
)
def test_keys_and_types_are_those_of_their_kind(path, key, value, names):
    assert found(path, **{key: value}) == names


@pytest.mark.parametrize(
    ("credential", "names"),
    [
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096", []),
        ("iterations=4096,server_key=a2V5,stored_key=a2V5,salt=c2FsdA==", []),
        ("salt=c2FsdA,stored_key=a2V5,server_key=a2V5,iterations=4096", []),
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5", ["scram-malformed"]),
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=many", ["scram-malformed"]),
        ("salt=*,stored_key=a2V5,server_key=a2V5,iterations=4096", ["scram-malformed"]),
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096,more=1", ["scram-malformed"]),
        ("", ["scram-malformed"]),
    ],
)
def test_a_scram_credential_has_four_parts(credential, names):
    assert found("/config/users/u", **{"SCRAM-SHA-512": credential}) == names


# The reading of the same values by `AclEntry.fromBytes`, `ConfigEntityZNode.decode` and `ProducerIdBlockZNode` of
# 3.9.2.
@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        ("/kafka-acl/Topic/t", "none", ["acl-no-json"]),
        ("/kafka-acl/Topic/t", "{", ["acl-no-json"]),
        ("/kafka-acl/Topic/t", "[]", ["acl-malformed"]),
        ("/kafka-acl/Topic/t", "null", ["acl-malformed"]),
        ("/kafka-acl/Topic/t", '{"acls":[]}', ["acl-malformed"]),
        ("/kafka-acl/Topic/t", '{"version":2,"acls":[]}', ["acl-malformed"]),
        ("/kafka-acl/Topic/t", '{"version":1,"acls":[{}]}', ["acl-malformed"]),
        ("/kafka-acl/Topic/t", '{"version":1,"acls":[]}', []),
        ("/kafka-acl/Topic", "none", []),
        ("/config/topics/t", "none", ["config-no-json", "orphan-config"]),
        ("/config/topics/t", "[]", ["config-no-json", "orphan-config"]),
        ("/config/topics/t", '{"version":1,"config":[]}', ["config-no-json", "orphan-config"]),
        ("/config/topics/t", '{"version":1}', ["orphan-config"]),
        ("/config/topics/t", '{"version":1,"config":{"a":5}}', ["config-no-text", "orphan-config"]),
        ("/latest_producer_id_block", "none", ["producer-ids-no-json"]),
        ("/latest_producer_id_block", '{"version":1}', ["producer-ids-no-json"]),
        ("/latest_producer_id_block", '{"broker":1,"block_start":0,"block_end":999}', ["producer-ids-no-json"]),
        ("/latest_producer_id_block", '{"broker":1,"block_start":"0","block_end":"999"}', []),
        ("/latest_producer_id_block", "", []),
    ],
)
def test_a_value_is_read_as_kafka_reads_it(path, value, names):
    tree = Tree({path: Value(value.encode(), 1, 1, 0, 0)})
    assert [one.check.name for one in examine(tree).found if one.check.name != "protocol-version"] == names


@pytest.mark.parametrize("name", ["9" * 5_000, "٣", "-1", "one"])
def test_a_registration_under_a_name_that_is_no_id_is_passed_over(name):
    assert examine(Tree({f"/brokers/ids/{name}": Value(b"{}", 1, 1, 0, 5)})).found[0].check.name == "protocol-version"
