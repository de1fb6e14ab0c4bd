"""Requests that the controller must send, with their content by release and their certainty."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.contract.effect_rows import Request, RequestedState, Status
from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.outputs import encode_row
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.model.brokers import Broker
from controller.model.context import Context
from controller.model.event import EventKind
from controller.model.topics import Partition, Topic
from controller.restore.stored_context import encode_header, new_context
from controller.rules.states import PartitionState
from controller.transaction.conclusion import Conclusion
from controller.transaction.transaction import RequestBatch, Transaction
from tests.controller.znode_history import ZnodeHistory

# Kafka's default for the size of a message (message.max.bytes).
MESSAGE_BYTES = 1_000_000


def metadata(effects: tuple[Row, ...]) -> list[tuple[tuple[int, ...], tuple | None]]:
    rows = [row for row in effects if isinstance(row, Request) and row.api == "UpdateMetadata"]
    return [(row.brokers, named(row)) for row in rows if row.status is not Status.WITHDRAWN]


def named(row: Request) -> tuple[tuple[str, int], ...] | None:
    return None if row.all_partitions else tuple((state.topic, state.partition) for state in row.partition_states)


def two_partitions() -> ZnodeHistory:
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    return ZnodeHistory().start(1, 2, 3, topics=topics)


def test_the_death_of_a_broker_without_replicas_is_sent_to_the_others():
    assert metadata(two_partitions().broker_leaves(3)) == [((1, 2), ())]


def test_the_start_of_a_deletion_is_sent_to_all_which_stop_serving():
    effects = two_partitions().delete_topic("t")
    assert ((1, 2, 3), (("t", 0), ("t", 1))) in metadata(effects)


# A request is one row


def requests(effects: tuple[Row, ...], api: str, status: Status = Status.FINAL) -> list[Request]:
    return [row for row in effects if isinstance(row, Request) and row.api == api and row.status is status]


def names(row: Request) -> list[str]:
    return [f"{state.topic}-{state.partition}" for state in row.partition_states]


def many_partitions(count: int = 40) -> ZnodeHistory:
    """Return partitions that 3 leads and 1 and 2 follow."""
    return ZnodeHistory().start(1, 2, 3, topics={"t": {n: ([3, 1, 2], 3, 0, [3, 1, 2]) for n in range(count)}})


def test_what_waits_is_kept_with_the_partitions_and_not_in_the_header():
    few, many = many_partitions(2), many_partitions(2_000)
    few.broker_leaves(3)
    many.broker_leaves(3)
    assert len(encode_header(many.context)) < len(encode_header(few.context)) + 300


def test_a_request_names_who_sends_it_to_whom_and_who_lives():
    history = ZnodeHistory().start(
        1, 2, 3, topics={"t": {0: ([3, 2], 3, 0, [3, 2])}}, topic_id="an-idAAAAAAAAAAAAAAAAA"
    )
    epochs = {broker: known.epoch for broker, known in history.context.header.brokers.items()}
    history.broker_leaves(3)
    effects = history.state("t", 0, 2, 1, [2])
    (leader, _), (metadata_, _) = requests(effects, "LeaderAndIsr"), requests(effects, "UpdateMetadata")
    assert (leader.controller, leader.controller_epoch, leader.brokers) == (1, 1, (2,))
    assert (leader.broker_epochs, leader.live_leaders, leader.live_brokers) == ((epochs[2],), (2,), ())
    assert (metadata_.brokers, metadata_.broker_epochs) == ((1, 2), (epochs[1], epochs[2]))
    assert (metadata_.live_brokers, metadata_.live_leaders) == ((1, 2), ())
    assert leader.topic_ids == metadata_.topic_ids == {"t": "an-idAAAAAAAAAAAAAAAAA"}
    led = RequestedState("t", 0, 2, 1, (2,), (3, 2), controller_epoch=1, partition_epoch=1)
    assert leader.partition_states == (led,)
    assert metadata_.partition_states[0].offline_replicas == (3,)


# By release


def test_before_2_6_replicas_to_delete_and_others_to_stop_are_two_requests():
    def stopped(release: tuple[int, int]) -> list[tuple[bool, list[str]]]:
        history = ZnodeHistory(release=release).start(1, 2, topics={"t": {n: ([1, 2], 1, 7, [1, 2]) for n in (0, 1)}})
        tx = a_transaction(history.context, (1, history.seq + 1), history.now_ms)
        batch = RequestBatch(tx)
        batch.stop_replica(2, TopicPartition("t", 0), delete=False)
        batch.stop_replica(2, TopicPartition("t", 1), delete=True)
        batch.send()
        Conclusion(tx).finish()
        return [(row.delete_partitions, names(row)) for row in requests(tuple(tx.rows.effects), "StopReplica")]

    assert stopped((2, 5)) == [(True, ["t-1"]), (False, ["t-0"])]
    assert stopped((2, 6)) == [(False, ["t-0", "t-1"])]


# Very large ones


@pytest.mark.no_cover  # traced it takes three times as long
def test_a_request_about_200_000_partitions_is_split_to_fit_into_any_message():
    tx = a_transaction(new_context("c", chunk_count=16))
    tx.header.brokers = {broker: Broker(100 + broker, broker, 0) for broker in (1, 2, 3)}
    led = Partition((1, 2, 3), state=PartitionState.ONLINE, zk_state=LeaderAndIsr(1, 7, (1, 2, 3), 1, 9))
    batch = RequestBatch(tx)
    for name in (f"{number:03}-{'with-a-long-name' * 4}" for number in range(200)):
        tx.state.topics.put(name, Topic(dict.fromkeys(range(1_000), led), topic_id=f"id-of-{name}"))
        for number in range(1_000):
            batch.leader_and_isr((1,), TopicPartition(name, number), is_new=False)
    batch.send()
    assert tx.events.event is not None
    tx.events.event.begun = True
    Conclusion(tx).finish()
    rows = [row for row in tx.rows.effects if isinstance(row, Request)]
    assert max(len(encode_row(row)) for row in rows) < MESSAGE_BYTES
    for api in ("LeaderAndIsr", "UpdateMetadata"):
        parts = requests(tuple(rows), api)
        assert [(row.part, row.parts) for row in parts] == [(n, len(parts)) for n in range(1, len(parts) + 1)]
        assert len({row.effect for row in parts}) == 1
        assert len({(state.topic, state.partition) for row in parts for state in row.partition_states}) == 200_000
        assert sum(len(row.partition_states) for row in parts) == 200_000
        assert all(set(row.topic_ids) == {state.topic for state in row.partition_states} for row in parts)
        assert min(len(row.partition_states) for row in parts[:-1]) > 500  # and not in crumbs


def a_transaction(context: Context, position: tuple[int, int] = (1, 0), at_ms: int = 1_000_000) -> Transaction:
    """Return a transaction in an event."""
    generation, seq = position
    record = Record(cluster="c", generation=generation, seq=seq, kind=RecordKind.HEARTBEAT, observed_ms=at_ms)
    tx = Transaction(context, record)
    tx.events.begin(EventKind.BROKER_CHANGE, "a batch is sent")
    return tx


def test_an_event_of_an_earlier_record_gets_no_topics_because_contexts_share_them():
    tx = a_transaction(new_context("c"))
    tx.events.event = replace(tx.events.event, id=-1)
    with pytest.raises(AssertionError, match="topics of an earlier record's event"):
        tx.events.affect(["t"])
