"""Both sides of a comparison, from a tree of znodes, and from nodes with invalid answers."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from cli.printing.standard_output import plain_lines
from ingest.observed.observations import Value
from migration.comparison.comparing import Comparison, ComparisonOutcome, compare
from migration.comparison.quorum_view import QuorumReader
from migration.comparison.view import BothValues, CopiedKey, CopiedSubject, Expected, QuorumView, differences
from migration.comparison.zookeeper_view import UNREADABLE, forbidden_subjects, zookeeper_values
from migration.nodes.nodes import Mode, Node, Nodes, Quorum
from migration.preflight import node_checks
from migration.preflight.tree import Tree
from outputs.kafka_node import NodeError
from transport.kafka_login import KafkaLogin

SECRET = "hunter2"


def tree(znodes: dict[str, object], **more) -> Tree:
    def data(content: object) -> bytes | None:
        return content if isinstance(content, bytes | None) else json.dumps(content).encode()

    return Tree({path: Value(data(content), 1, 1, 0, 0) for path, content in znodes.items()}, **more)


def values(znodes: dict[str, object], **plain: frozenset[str]) -> dict[tuple[str, str, str], str]:
    shown = {CopiedSubject[name]: names for name, names in plain.items()}
    found = zookeeper_values(tree(znodes), shown)
    return {(key.subject.value, key.group, key.name): value for key, value in found.items()}


def test_a_topic_has_an_id_replicas_and_states():
    assignment = {"version": 3, "topic_id": "abcAAAAAAAAAAAAAAAAAAA", "partitions": {"0": [1, 2, 3], "1": [2]}}
    moving = {"adding_replicas": {"0": [3]}, "removing_replicas": {"0": [2, 1]}}
    state = {"version": 1, "controller_epoch": 9, "leader": 1, "leader_epoch": 4, "isr": [2, 1]}
    znodes = {"/brokers/topics/t": assignment | moving, "/brokers/topics/t/partitions/0/state": state}
    assert values(znodes) == {
        ("topics", "t", ""): "id abcAAAAAAAAAAAAAAAAAAA",
        ("replicas", "t", "0"): "replicas [1, 2, 3], adding [3], removing [1, 2]",
        ("replicas", "t", "1"): "replicas [2]",
        ("partitions", "t", "0"): "leader 1, leader epoch 4, ISR [2, 1]",
        ("partitions", "t", "1"): "no state",
    }


def test_a_setting_is_shown_only_if_the_quorum_calls_it_no_secret():
    config = {"version": 1, "config": {"retention.ms": "5", "sasl.jaas.config": SECRET, "odd": [SECRET]}}
    znodes = {"/config/topics/t": config, "/config/brokers/<default>": config}
    found = values(znodes, TOPIC_CONFIGS=frozenset({"retention.ms", "odd"}))
    assert found == {
        ("topic configurations", "t", "retention.ms"): "5",
        ("topic configurations", "t", "sasl.jaas.config"): "set, not shown",
        ("topic configurations", "t", "odd"): UNREADABLE,
        ("broker configurations", "<default>", "retention.ms"): "set, not shown",
        ("broker configurations", "<default>", "sasl.jaas.config"): "set, not shown",
        ("broker configurations", "<default>", "odd"): "set, not shown",
    }


def test_quotas_are_numbers_of_whom_they_hold_for_and_credentials_are_iterations():
    scram = f"salt={SECRET},stored_key={SECRET},server_key={SECRET},iterations=4096"
    user = {"config": {"producer_byte_rate": "1000.0", "SCRAM-SHA-256": scram, "SCRAM-SHA-512": SECRET}}
    quota = {"config": {"request_percentage": "12.5", "odd": SECRET, "endless": "inf"}}
    znodes = {
        "/config/users/a%40b": user,
        "/config/users/a%40b/clients/<default>": quota,
        "/config/ips/<default>": {"config": {"connection_creation_rate": "7"}},
        "/config/clients/c": b"no JSON",
    }
    found = values(znodes)
    assert found == {
        ("quotas", "user a@b", "producer_byte_rate"): "1000",
        ("quotas", "client-id <default>, user a@b", "request_percentage"): "12.5",
        ("quotas", "client-id <default>, user a@b", "odd"): "no number",
        ("quotas", "client-id <default>, user a@b", "endless"): "no number",
        ("quotas", "ip <default>", "connection_creation_rate"): "7",
        ("quotas", "client-id c", ""): UNREADABLE,
        ("SCRAM credentials", "a@b", "SCRAM-SHA-256"): "iterations 4096",
        ("SCRAM credentials", "a@b", "SCRAM-SHA-512"): UNREADABLE,
    }
    assert SECRET not in str(found)


def test_acls_are_entries_by_the_protocols_names():
    entry = {"principal": "User:a", "permissionType": "Allow", "operation": "ClusterAction", "host": "*"}
    znodes = {
        "/kafka-acl/Cluster": b"",
        "/kafka-acl/Cluster/kafka-cluster": {"version": 1, "acls": [entry]},
        "/kafka-acl-extended/prefixed": b"",
        "/kafka-acl-extended/prefixed/TransactionalId": b"",
        "/kafka-acl-extended/prefixed/TransactionalId/t": {"version": 1, "acls": [{}]},
    }
    assert values(znodes) == {
        ("ACLs", "CLUSTER LITERAL kafka-cluster", "User:a ALLOW CLUSTERACTION from *"): "there",
        ("ACLs", "TRANSACTIONALID PREFIXED t", UNREADABLE): "there",
    }


def test_what_may_not_be_read_is_no_side_of_a_comparison():
    found = forbidden_subjects(tree({}, unreadable=frozenset({"/config/users/a", "/kafka-acl"})))
    assert set(found) == {CopiedSubject.QUOTAS, CopiedSubject.SCRAM, CopiedSubject.ACLS}
    assert "/kafka-acl may not be read" in found[CopiedSubject.ACLS]


def test_only_what_the_quorum_was_asked_for_differs():
    view = QuorumView(
        sources={CopiedSubject.TOPICS: Node("b:1")}, withheld={(CopiedSubject.TOPICS, "secret"): "forbidden"}
    )
    view.values[CopiedKey(CopiedSubject.TOPICS, "only-in-quorum")] = "id 1"
    sides = {
        CopiedKey(CopiedSubject.TOPICS, "secret"): "id 2",
        CopiedKey(CopiedSubject.TOPICS, "t"): "id 3",
        CopiedKey(CopiedSubject.ACLS, "r"): "there",
    }
    assert differences(sides, view) == {
        CopiedKey(CopiedSubject.TOPICS, "only-in-quorum"): BothValues(None, "id 1"),
        CopiedKey(CopiedSubject.TOPICS, "t"): BothValues("id 3", None),
    }


# --- answers that no real node gives

ASKED = (3, 29, 32, 46, 48, 50, 55)


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """Run a node that announces all APIs in version 0 to 1, and answers each with the same bytes. Yield its address."""
    apis = struct.pack(">hi", 0, 1 + len(ASKED)) + struct.pack(">hhh", 18, 0, 0)
    apis += b"".join(struct.pack(">hhh", api, 0, 1) for api in ASKED)
    unsupported = struct.pack(">h", 35) + apis[2:]

    def talk(connection: socket.socket) -> None:
        while True:
            (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            request = connection.recv(length, socket.MSG_WAITALL)
            api, version = struct.unpack(">hh", request[:4])
            answer = request[4:8] + (body if api != 18 else apis if version == 0 else unsupported)
            connection.sendall(struct.pack(">i", len(answer)) + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError, struct.error):
                        talk(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff" * 64, b"\0" * 4 + b"\x7f" + b"\xff" * 20, struct.pack(">iihii", 0, 1, -1, 2**31 - 1, 7)],
    ids=["nothing", "ones", "much", "null names"],
)
def test_a_node_that_answers_with_anything_speaks_for_nothing_and_breaks_nothing(body):
    with answering(body) as address:
        node = Node(address, 1, Mode.KRAFT, frozenset(ASKED))
        reader = QuorumReader(Nodes((node,), None), KafkaLogin(), 0.5)
        try:
            view = reader.read(Expected(frozenset({"t"}), 1))
            with pytest.raises(NodeError, match="no node reports the quorum"):
                reader.position()
        finally:
            reader.close()
    assert CopiedSubject.PARTITIONS not in view.sources
    assert "broker 1 at" in view.reasons[CopiedSubject.PARTITIONS]
    assert not [key for key in view.values if key.subject not in view.sources]


# --- answers that no live cluster in these tests gives


def test_a_metadata_version_without_transactions_and_a_voter_that_is_not_asked():
    controller = Node("c:1", 3001, Mode.CONTROLLER, frozenset(), 11)
    asked = tree({}, nodes=Nodes((controller,), Quorum(3001, 1, 5, (3001, 3002))))
    (old,) = node_checks.metadata_version_without_transactions.find(asked)
    assert "metadata.version 3.5-IV2, below 3.6-IV1" in old.detail
    (unflagged,) = node_checks.controller_without_flag.find(asked)
    assert "controller 3001 at c:1" in unflagged.detail
    assert node_checks.silent_voters(asked) == "voter 3002 did not answer"


def test_a_registered_broker_that_does_not_answer_is_named_with_its_reason():
    silent = Node("b:1", 7, reason="Connection refused")
    asked = tree({"/brokers/ids/7": {"endpoints": []}}, nodes=Nodes((silent,), None))
    assert node_checks.silent_brokers(asked) == "broker 7 did not answer (broker 7 at b:1: Connection refused)"
    assert node_checks.no_controller_asked(asked)
    assert "no controller reports the voters" in node_checks.silent_voters(asked)


def test_where_nobody_was_asked_the_checks_say_how_to():
    assert "ask the nodes with --bootstrap" in node_checks.not_asked(tree({}))


def test_a_quorum_without_the_flag_is_named_as_what_never_writes_again():
    controller = Node("c:1", 3001, Mode.CONTROLLER)
    quorum = Quorum(3001, 4, 90, (3001,))
    printed = "\n".join(plain_lines(Comparison(7, 90, ()).said(Nodes((controller,), quorum))))
    assert "If the migration is finalized, no process writes to ZooKeeper again" in printed
    assert "offset 7, the quorum's high watermark is 90 (lag 82), leader 3001 of leader epoch 4" in printed


# --- a broker without contact to the quorum, simulated because no test can hold one at a moment


class CutOff:
    """A quorum whose only broker has fetched its log up to an offset, beside a complete ZooKeeper."""

    def __init__(self, fetched: int) -> None:
        self._fetched = fetched

    def read(self, _expected: Expected) -> QuorumView:
        view = QuorumView(sources={CopiedSubject.TOPICS: Node("b:1", 1, Mode.KRAFT)})
        view.values[CopiedKey(CopiedSubject.TOPICS, "t")] = "id old"
        return view

    def position(self) -> Quorum:
        return Quorum(3001, 1, 100, (3001,), log_ends={1: self._fetched})


class UpToDate:
    def read(self) -> Tree:
        return tree({"/brokers/topics/t": {"version": 3, "topic_id": "newAAAAAAAAAAAAAAAAAAA", "partitions": {}}})

    def wait_for(self, offset: int, _seconds: float) -> int:
        return offset


@pytest.mark.parametrize(("fetched", "verdict"), [(99, ComparisonOutcome.LAGGING), (100, ComparisonOutcome.DIFFERENT)])
def test_what_a_broker_says_that_has_not_fetched_the_log_is_no_difference(fetched, verdict):
    comparison = compare(UpToDate(), CutOff(fetched))
    assert comparison.verdict is verdict
    assert comparison.subjects[0].differences == {
        CopiedKey(CopiedSubject.TOPICS, "t"): BothValues("id newAAAAAAAAAAAAAAAAAAA", "id old")
    }
