"""The values that the preflight reads as Kafka does: Java's numbers, SCRAM credentials, names of settings."""

from __future__ import annotations

import json

import pytest

from migration.preflight.report import examine
from migration.preflight.tree import Tree, Znode


def found(path: str, **config: str) -> list[str]:
    content = json.dumps({"version": 1, "config": config}).encode()
    above = {f"/config/users/{name}": Znode(None) for name in path.split("/")[3:4] if path.startswith("/config/users")}
    tree = Tree({**above, path: Znode(content)})
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
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5", ["scram-malformed"]),
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=many", ["scram-malformed"]),
        ("salt=*,stored_key=a2V5,server_key=a2V5,iterations=4096", ["scram-malformed"]),
        ("salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096,more=1", ["scram-malformed"]),
        ("", ["scram-malformed"]),
    ],
)
def test_a_scram_credential_has_four_parts(credential, names):
    assert found("/config/users/u", **{"SCRAM-SHA-512": credential}) == names
