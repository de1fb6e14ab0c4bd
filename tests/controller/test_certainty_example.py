"""The worked example at the head of `controller/transaction/certainty.py`, row by row."""

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.row import Row
from tests.controller.znode_history import ZnodeHistory

TOPICS = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
BROKER_CHANGE, TOPIC_CHANGE = 0, 1


def final(rows: tuple[Row, ...]) -> list[str]:
    """Return final transitions as subject, partition and new state, and final requests by API."""
    found = []
    for row in rows:
        if isinstance(row, Transition) and row.status is Status.FINAL:
            name = "" if row.topic is None else f" {row.topic}" + ("" if row.partition is None else f"-{row.partition}")
            broker = "" if row.broker is None else f" on {row.broker}"
            found.append(f"{row.subject}{name}{broker} {row.to_state}")
        elif isinstance(row, Request) and row.status is Status.FINAL:
            found.append(row.api)
    return found


def due(history: ZnodeHistory) -> dict[int, list[int]]:
    return {event.id: event.due for event in history.context.header.events.values()}


def test_the_worked_example_of_certainty():
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, controller=3, topics=TOPICS)
    assert final(history.broker_leaves(1)) == ["broker on 1 dead"]
    assert due(history) == {BROKER_CHANGE: [0, 1, 0, 1, 0]}
    assert final(history.topic("u", {0: [2, 3]})) == ["topic u Existing"]
    assert due(history) == {BROKER_CHANGE: [0, 1, 0, 1, 0], TOPIC_CHANGE: [0, 0, 0, 1, 0, 0, 0]}
    assert final(history.state("t", 0, 2, 1, [2])) == [
        "partition t-0 OfflinePartition",
        "partition t-0 OnlinePartition",
        "LeaderAndIsr",
        "UpdateMetadata",
    ]
    assert due(history) == {BROKER_CHANGE: [0, 0, 0, 1, 0], TOPIC_CHANGE: [0, 0, 0, 1, 0, 0, 0]}
    assert final(history.state("t", 1, 2, 1, [2])) == [
        "replica t-0 on 1 OfflineReplica",
        "replica t-1 on 1 OfflineReplica",
        "LeaderAndIsr",
        "UpdateMetadata",
    ]
    assert due(history) == {TOPIC_CHANGE: [0, 0, 0, 1, 0, 0, 0]}
    assert final(history.state("u", 0, 2, 0, [2, 3])) == [
        "partition u-0 NewPartition",
        "replica u-0 on 2 NewReplica",
        "replica u-0 on 3 NewReplica",
        "partition u-0 OnlinePartition",
        "replica u-0 on 2 OnlineReplica",
        "replica u-0 on 3 OnlineReplica",
        "LeaderAndIsr",
        "LeaderAndIsr",
        "UpdateMetadata",
    ]
    assert due(history) == {}


def test_a_write_of_the_newer_event_proves_it_while_the_older_one_waits():
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, controller=3, topics=TOPICS)
    history.broker_leaves(1)
    history.topic("u", {0: [2, 3]})
    assert "partition u-0 OnlinePartition" in final(history.state("u", 0, 2, 0, [2, 3]))
    assert due(history) == {BROKER_CHANGE: [0, 1, 0, 1, 0]}
