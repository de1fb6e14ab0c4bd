"""Findings from the nodes' answers that no real quorum of one controller gives."""

from __future__ import annotations

from cli.printing.standard_output import plain_lines
from migration.nodes.nodes import VOTERS, Mode, Node, Nodes, Quorum
from migration.preflight.check import Fault
from migration.preflight.node_checks import kraft_mode_too_early, voter_address
from migration.preflight.report import examine
from migration.preflight.tree import Tree


def tree(*nodes: Node, quorum: Quorum | None = None) -> Tree:
    return Tree({}, nodes=Nodes(nodes, quorum))


def test_half_of_a_fleet_without_the_flag_is_named():
    flags = (Mode.ZOOKEEPER, Mode.ZOOKEEPER_MIGRATING)
    report = examine(tree(*(Node(f"b{at}:9092", at, flags[at % 2]) for at in range(24))))
    printed = "\n".join(plain_lines(report.said()))
    assert "broker 2 at b2:9092 lives in ZooKeeper mode without the flag" in printed
    others = ", ".join(f"/brokers/ids/{at}" for at in range(10, 24, 2))
    assert f"  and 7 more: {others}\n" in printed


def test_voters_behind_one_address_and_a_broker_at_a_voters_address_are_named():
    quorum = Quorum(1, 1, 10, (1, 2, 3), {1: "lb:9093", 2: "lb:9093", 3: "b1:9092"})
    found = voter_address.find(
        tree(Node("lb:9093", 1, Mode.CONTROLLER_MIGRATING), Node("b1:9092", 3, Mode.KRAFT), quorum=quorum)
    )
    assert list(found) == [
        Fault("b1:9092", "a broker in KRaft mode answers by the address of voter 3"),
        Fault("lb:9093", "the voters 1 and 2 share this address, as behind a load balancer"),
    ]


def test_voters_that_two_brokers_name_differently_are_all_asked():
    own, other = "1@c1:9093,2@c2:9093", "1@lb:9093,2@c2:9093"
    brokers = [Node(f"b{at}:9092", at, Mode.ZOOKEEPER, settings={VOTERS: said}) for at, said in ((1, own), (2, other))]
    assert set(tree(*brokers).nodes.voter_addresses) == {(1, "c1:9093"), (1, "lb:9093"), (2, "c2:9093")}


def test_an_observer_that_is_not_registered_and_does_not_answer_is_in_kraft_mode():
    quorum = Quorum(1, 1, 10, (1,), {1: "c1:9093"}, {1: 10, 7: 9})
    silent = tree(Node("c1:9093", 1, Mode.CONTROLLER_MIGRATING), quorum=quorum)
    (found,) = kraft_mode_too_early.find(silent)
    assert found.znode == "/brokers/ids/7"
    assert found.detail.startswith("broker 7 runs in KRaft mode although the migration has not begun")
    answering = tree(Node("b7:9092", 7, Mode.KRAFT), quorum=quorum)
    (found,) = kraft_mode_too_early.find(answering)
    assert found == Fault("b7:9092", "broker 7 at b7:9092 runs in KRaft mode although the migration has not begun")
