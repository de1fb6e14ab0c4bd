"""Comparison of two sides of a cluster, with its differences, their order, and the limits of a broker's knowledge."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from controller.contract.metadata_rows import PartitionRow
from controller.model.brokers import Broker
from controller.restore.stored_context import new_context
from dashboards.probe.broker import BrokerAnswer, Leader
from dashboards.probe.sides import sides
from questions.diff.differences import Differences, diff
from questions.diff.side import CONTROLLER, Fields, Kind, Side, Subject
from tests.rows import Rows


def partition(topic: str, **fields: object) -> tuple[Subject, Fields]:
    healthy = {"state": "OnlinePartition", "leader": 1, "leader_epoch": 3, "isr": (1, 2), "replicas": (1, 2)}
    return Subject(Kind.PARTITION, topic, 0), {**healthy, **fields}


def broker(number: int, **fields: object) -> tuple[Subject, Fields]:
    return Subject(Kind.BROKER, number=number), {"registered": True, "rack": None, **fields}


def side(name: str, *subjects: tuple[Subject, Fields]) -> Side:
    return Side(name, dict(subjects))


def named(differences: Differences) -> list[str]:
    return [one.subject for one in differences.differences]


def test_the_worst_for_clients_comes_first_and_all_are_counted():
    before = side(
        "a",
        (CONTROLLER, {"broker": 1, "epoch": 4}),
        broker(1),
        broker(2),
        *(partition(topic) for topic in ("epochs", "gone", "isrs", "moved", "offline", "same")),
    )
    after = side(
        "b",
        (CONTROLLER, {"broker": 2, "epoch": 5}),
        broker(1, registered=False),
        broker(2, rack="x"),
        partition("epochs", leader_epoch=4),
        partition("isrs", isr=(1,)),
        partition("moved", leader=2),
        partition("offline", leader=-1),
        partition("same"),
    )
    found = diff(before, after)
    assert named(found) == [
        "offline-0", "controller", "broker 1", "moved-0", "gone-0", "isrs-0", "broker 2", "epochs-0",
    ]  # fmt: skip
    assert found.compared == {"controller": 1, "broker": 2, "partition": 6}
    assert found.differing == {"controller": 1, "broker": 2, "partition": 5}
    assert found.fields["partition leader"] == 2
    assert found.differences[4].only_in == "a"


def test_an_isr_in_another_order_and_what_one_side_does_not_say_are_no_differences():
    subject, fields = partition("t", isr=(2, 1))
    without_state = {name: value for name, value in fields.items() if name != "state"}
    assert not diff(side("a", partition("t")), side("b", (subject, without_state))).differences


def test_topics_choose_partitions_alone():
    before = side("a", broker(1), partition("x"), partition("y"))
    after = side("b", broker(1, rack="r"), partition("x", leader=2), partition("y", leader=2))
    assert named(diff(before, after, ("y",))) == ["y-0", "broker 1"]


def test_what_was_over_in_between_does_not_last():
    here = side("a", partition("x"), partition("y"), partition("z"))
    first = diff(here, side("b", partition("x", leader=2), partition("y", leader=2), partition("z")))
    moved = side("a", partition("x"), partition("y", leader=3), partition("z"))
    now = side("b", partition("x", leader=2), partition("y", leader=2), partition("z", leader=2))
    assert named(diff(moved, now, lasting=first)) == ["x-0"]


def compared(
    rows: list[PartitionRow], said: Mapping[str, tuple[Leader, tuple[int, ...], tuple[int, ...]]], **answer: object
) -> Differences:
    context = new_context("north", chunk_count=4)
    context.header.controller = 1
    context.header.brokers = {1: Broker(5, 6, 7), 2: Broker(5, 6, 7)}
    heard = BrokerAnswer(
        {(topic, 0): leader for topic, (leader, _, _) in said.items()},
        {(topic, 0): isr for topic, (_, isr, _) in said.items()},
        {(topic, 0): replicas for topic, (_, _, replicas) in said.items()},
        1,
        frozenset({1, 2}),
    )
    for name, value in answer.items():
        object.__setattr__(heard, name, value)
    return diff(*sides(context.header, {(row.topic, row.partition): row for row in rows}, heard, "broker"))


def test_a_broker_that_is_behind_differs_and_one_that_is_ahead_does_not():
    rows = Rows()
    known = [rows.partition(topic, leader_epoch=4) for topic in ("ahead", "behind", "isr", "missing", "moved", "same")]
    known.append(rows.partition("young", state="NewPartition", leader=-1, leader_epoch=-1, isr=()))
    both = (1, 2)
    found = compared(
        known,
        {
            "ahead": (Leader(2, 5), (2,), both),
            "behind": (Leader(2, 3), (2,), both),
            "gone": (Leader(1, 0), (1,), (1,)),
            "isr": (Leader(1, 4), (1,), both),
            "moved": (Leader(1, 4), both, (1, 3)),
            "same": (Leader(1, 4), (2, 1), both),
        },
    )
    said = {one.subject: [(field.name, field.a, field.b) for field in one.fields] for one in found.differences}
    assert said == {
        "behind-0": [("leader", 1, 2), ("leader_epoch", 4, 3)],
        "gone-0": [("presence", False, True)],
        "isr-0": [("isr", (1, 2), (1,))],
        "missing-0": [("presence", True, False)],
        "moved-0": [("replicas", (1, 2), (1, 3))],
    }


def test_the_controller_and_live_brokers_are_compared():
    found = compared([], {}, controller=2, brokers=frozenset({1, 3}))
    assert named(found) == ["controller", "broker 2", "broker 3"]


def test_every_difference_can_be_printed_as_json():
    found = diff(side("a", partition("x")), side("b", partition("x", leader=-1, isr=())))
    assert msgspec.json.decode(msgspec.json.encode(found))["differences"][0]["fields"][0]["b"] == -1
