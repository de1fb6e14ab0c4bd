"""Answers about groups that nobody expected. The thread of the probe outlives each, and names it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from dashboards.probe.config import ProbeConfig
from dashboards.probe.groups import GroupsProbe
from outputs.kafka_node import KafkaNode, NodeError, UnknownRequestError
from tests.waiting import eventually

Path = tuple[str | int, ...]


def answer(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def assigned(topic: str | None = "t", partitions: list[int] | None = [0]) -> bytes:  # noqa: B006 (not changed)
    of_topic = ConsumerProtocolAssignment.TopicPartition(topic=topic or "t", partitions=partitions)
    return bytes(ConsumerProtocolAssignment(assigned_partitions=[of_topic], user_data=b"").encode(version=0))


def subscribed() -> bytes:
    return bytes(ConsumerProtocolSubscription(topics=["t"], user_data=b"", owned_partitions=[]).encode(version=0))


MEMBER = answer(member_metadata=subscribed(), member_assignment=assigned())
STABLE = {"error_code": 0, "group_id": "g", "group_state": "Stable", "protocol_type": "consumer"}
EMPTY = {"error_code": 0, "group_id": "h", "group_state": "Empty", "protocol_type": "consumer"}
OFFSET = answer(partition_index=0, committed_offset=7, error_code=0)
ANSWERS = {
    "ListGroupsRequest": answer(error_code=0, groups=[answer(group_id="g"), answer(group_id="h")]),
    "ListTransactionsRequest": answer(error_code=0, transaction_states=[answer(transactional_id="x")]),
    "DescribeGroupsRequest": answer(groups=[answer(**STABLE, members=[MEMBER]), answer(**EMPTY, members=[])]),
    "OffsetFetchRequest": answer(
        groups=[answer(group_id="h", error_code=0, topics=[answer(name="t", partitions=[OFFSET])])]
    ),
}


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the places of all fields and elements of an answer."""
    if path:
        yield path
    if isinstance(value, SimpleNamespace):
        for name, inner in vars(value).items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


def with_null(request: str, path: Path) -> dict[str, SimpleNamespace]:
    changed = copy.deepcopy(ANSWERS)
    place: Any = changed[request]
    for step in path[:-1]:
        place = place[step] if isinstance(step, int) else getattr(place, step)
    if isinstance(path[-1], int):
        place[path[-1]] = None
    else:
        setattr(place, path[-1], None)
    return changed


NULLS = [(request, path) for request, found in ANSWERS.items() for path in paths(found)]


class Running:
    """The probe of a cluster with one broker, which runs until the end of the block."""

    def __init__(self, rows, config: ProbeConfig) -> None:
        broker = rows.broker(1, endpoints=("PLAINTEXT://127.0.0.1:1",))
        snapshot = SimpleNamespace(brokers=(broker,), unusable=(), under_min_isr=())
        memory = SimpleNamespace(partitions_of=lambda _, topic: {0: rows.partition(topic, 0)})
        self.probe = GroupsProbe("north", config, SimpleNamespace(memory=memory, now=lambda: snapshot))
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self.probe.run, args=(self._stop,), daemon=True)

    def __enter__(self) -> Running:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.thread.is_alive()
        self._stop.set()
        self.thread.join()


CONFIG = ProbeConfig(groups=True, groups_interval_seconds=0.02, group_requests_per_second=10_000.0)


def answering(monkeypatch, ask: Callable[[str], Any]) -> list[str]:
    """Let each node answer a request by its name. Return the list of the requests."""
    asked: list[str] = []

    def answered(_node: KafkaNode, request: Any) -> Any:
        asked.append(type(request).__name__)
        return ask(type(request).__name__)

    monkeypatch.setattr(KafkaNode, "ask", answered)
    return asked


def test_an_ordinary_answer_is_understood(rows, monkeypatch):
    answering(monkeypatch, ANSWERS.__getitem__)
    with Running(rows, CONFIG) as running:
        known = eventually(lambda: running.probe.known, lambda known: known.asked_ms)
    assert known.groups["g"].reads == {"t": (0,)}
    assert known.groups["h"].committed == {"t": {0: 7}}
    assert (list(known.transactional_ids), known.gaps) == (["x"], ())


@pytest.mark.parametrize(
    ("request_name", "path"), NULLS, ids=lambda value: value if isinstance(value, str) else str(value)
)
def test_a_null_in_an_answer_ends_no_thread(rows, monkeypatch, request_name, path):
    asked = answering(monkeypatch, with_null(request_name, path).__getitem__)
    with Running(rows, CONFIG) as running:
        eventually(lambda: asked.count("ListGroupsRequest") > 2)
        assert not [gap for gap in running.probe.known.gaps if "unexpectedly" in gap]


@pytest.mark.parametrize("data", [assigned(partitions=None), b"\0\0\xff\xff\xff\xff", b"\0", b"\0\1\x7f\xff\xff\xff"])
def test_an_assignment_that_a_client_made_up_is_no_assignment(rows, monkeypatch, data):
    odd = answer(member_metadata=data, member_assignment=data)
    described = answer(groups=[answer(**STABLE, members=[odd, MEMBER])])
    answering(monkeypatch, {**ANSWERS, "DescribeGroupsRequest": described}.__getitem__)
    with Running(rows, CONFIG) as running:
        known = eventually(lambda: running.probe.known, lambda known: known.groups)
    assert known.groups["g"].reads == {"t": (0,)}
    assert known.gaps == ()


@pytest.mark.parametrize("request_name", ANSWERS)
def test_a_broker_that_does_not_know_a_request_ends_no_thread(rows, monkeypatch, request_name):
    def ask(name: str) -> Any:
        if name == request_name:
            raise UnknownRequestError(name)
        return ANSWERS[name]

    asked = answering(monkeypatch, ask)
    with Running(rows, CONFIG) as running:
        eventually(lambda: asked.count("ListGroupsRequest") > 2)
        assert not [gap for gap in running.probe.known.gaps if "unexpectedly" in gap]


def test_an_unexpected_exception_is_a_gap_and_counted_until_a_round_succeeds(rows, monkeypatch, caplog):
    broken = threading.Event()
    broken.set()

    def ask(name: str) -> Any:
        if broken.is_set():
            raise RuntimeError("odd")
        return ANSWERS[name]

    answering(monkeypatch, ask)
    with Running(rows, CONFIG) as running:
        (gap,) = eventually(lambda: running.probe.known.gaps, lambda gaps: gaps and gaps[0].startswith("3 rounds "))
        assert gap == "3 rounds ended unexpectedly, the newest with RuntimeError (see the log)"
        broken.clear()
        known = eventually(lambda: running.probe.known, lambda known: known.asked_ms)
    assert known.gaps == ()
    assert len([record for record in caplog.records if "please report it" in record.message]) == 1


def test_a_broker_that_falls_silent_is_asked_once_a_round(rows, monkeypatch):
    many = answer(error_code=0, groups=[answer(group_id=f"g{number}") for number in range(1_000)])

    def ask(name: str) -> Any:
        if name == "DescribeGroupsRequest":
            raise NodeError("no answer came in time")
        return many if name == "ListGroupsRequest" else ANSWERS[name]

    asked = answering(monkeypatch, ask)
    with Running(rows, CONFIG) as running:
        eventually(lambda: asked.count("ListGroupsRequest") > 2)
    assert asked.count("DescribeGroupsRequest") <= asked.count("ListGroupsRequest")
    assert running.probe.known.gaps == ("broker 1 did not answer, so its groups are as they were before",)


def test_a_round_under_way_is_a_gap(rows, monkeypatch):
    goes_on = threading.Event()

    def ask(name: str) -> Any:
        goes_on.wait(10)
        return ANSWERS[name]

    answering(monkeypatch, ask)
    with Running(rows, CONFIG) as running:
        (gap,) = eventually(lambda: running.probe.known.gaps, bool)
        goes_on.set()
    assert gap.startswith("a round of questions has been under way since 20")
