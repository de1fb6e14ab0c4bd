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
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory

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


def test_metadata_that_belongs_to_a_write_is_as_sure_as_the_write():
    history = two_partitions()
    rows = [row for row in history.broker_leaves(2) if isinstance(row, Request)]
    assert {row.status for row in rows} == {Status.PROVISIONAL}


def test_of_an_event_that_never_was_nothing_stays_final_but_what_zookeeper_showed():
    history = two_partitions()
    effects = history.broker_leaves(2)
    undone = {row.effect.rpartition("-")[0] for row in effects if isinstance(row, Request)}
    effects += history.delete("/controller")  # before it wrote anything
    final = [row for row in effects if isinstance(row, Request) and row.status is Status.FINAL]
    assert [row for row in final if row.effect.rpartition("-")[0] in undone] == []


# A request is one row


def requests(effects: tuple[Row, ...], api: str, status: Status = Status.FINAL) -> list[Request]:
    return [row for row in effects if isinstance(row, Request) and row.api == api and row.status is status]


def names(row: Request) -> list[str]:
    return [f"{state.topic}-{state.partition}" for state in row.partition_states]


def many_partitions(count: int = 40) -> ZnodeHistory:
    """Return partitions that 3 leads and 1 and 2 follow."""
    return ZnodeHistory().start(1, 2, 3, topics={"t": {n: ([3, 1, 2], 3, 0, [3, 1, 2]) for n in range(count)}})


def test_a_death_is_one_request_to_a_broker_however_many_partitions_it_concerns():
    history = many_partitions()
    expected = history.broker_leaves(3)
    sent = history.the_controller_writes_its_due()
    for effects, status in ((expected, Status.PROVISIONAL), (sent, Status.FINAL)):
        rows = requests(effects, "LeaderAndIsr", status)
        assert [row.brokers for row in rows] == [(1,), (2,), (1,), (2,)]  # after the elections, and after the removals
        assert {len(row.partition_states) for row in rows} == {40}
        assert [len(row.partition_states) for row in requests(effects, "UpdateMetadata", status)] == [40, 40]
    assert {row.effect for row in expected if isinstance(row, Request)} == {
        row.effect for row in sent if isinstance(row, Request)
    }


def test_a_request_is_final_only_when_the_last_write_of_its_pass_was_seen():
    history = many_partitions(3)
    history.broker_leaves(3)
    assert requests(history.state("t", 0, 1, 1, [1, 2]), "LeaderAndIsr") == []
    assert requests(history.state("t", 1, 1, 1, [1, 2]), "LeaderAndIsr") == []
    last = requests(history.state("t", 2, 1, 1, [1, 2]), "LeaderAndIsr")
    assert [sorted(names(row)) for row in last] == [["t-0", "t-1", "t-2"]] * 4


def test_a_partition_whose_write_never_came_is_not_in_the_request():
    history = many_partitions(3)
    expected = history.broker_leaves(3)
    history.state("t", 0, 1, 1, [1, 2])
    history.state("t", 2, 1, 1, [1, 2])
    history.reassign(("t", 0, [1, 2]))  # the controller's write for it shows that it has gone on
    effects = history.state("t", 0, 1, 2, [1, 2])
    effects += history.heartbeat(4_000)
    of_the_death = [row for row in requests(effects, "LeaderAndIsr") if row.cause == "BrokerChange: broker 3 left"]
    assert {tuple(sorted(names(row))) for row in of_the_death} == {("t-0", "t-2")}
    assert {len(row.partition_states) for row in requests(expected, "LeaderAndIsr", Status.PROVISIONAL)} == {3}


def test_a_request_waits_for_what_an_older_event_writes_of_its_partitions():
    """A write from before an older event leaves open whether that event was handled."""
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([3, 1], 3, 0, [3, 1])}})
    history.broker_leaves(3)
    history.reassign(("t", 0, [1, 2]))
    assert requests(history.state("t", 0, 3, 1, [3, 1]), "LeaderAndIsr") == []  # only the reassignment's grown epoch
    effects = history.the_controller_writes_its_due()
    causes = list(dict.fromkeys(row.cause.partition(":")[0] for row in requests(effects, "LeaderAndIsr")))
    assert causes == ["BrokerChange", "ZkPartitionReassignment"]


def test_a_request_of_which_nothing_is_left_is_withdrawn_without_partition_states():
    history = many_partitions()
    expected = {row.effect for row in history.broker_leaves(3) if isinstance(row, Request)}
    effects = history.delete("/controller")
    rows = [row for row in (*effects, *history.controller(2, 2)) if isinstance(row, Request)]
    withdrawn = [row for row in rows if row.status is Status.WITHDRAWN]
    assert {row.effect for row in withdrawn} == expected
    assert {row.partition_states for row in withdrawn} == {()}


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


def test_while_a_topic_is_deleted_brokers_hear_of_a_leader_that_stands_for_that():
    history = two_partitions()
    effects = history.delete_topic("t") + history.the_controller_writes_its_due()
    (told,) = requests(effects, "UpdateMetadata")
    assert {(state.leader, state.leader_epoch, state.partition_epoch) for state in told.partition_states} == {
        (-2, 0, 0)
    }
    stops = requests(effects, "StopReplica")
    assert {state.leader_epoch for row in stops for state in row.partition_states} == {-2}
    deletes = [(row.brokers, {state.delete_partition for state in row.partition_states}) for row in stops]
    assert deletes == [((1,), {False}), ((2,), {False}), ((1,), {True}), ((2,), {True})]


# By release


def deletion_in(release: tuple[int, int]) -> list[Request]:
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=release, settings={"delete.topic.enable": True})
    history.start(1, 2, 3, topics=topics, topic_id="an-idAAAAAAAAAAAAAAAAA")
    return requests(history.delete_topic("t") + history.the_controller_writes_its_due(), "StopReplica")


@pytest.mark.parametrize(
    ("release", "partitions", "by_request", "by_partition"),
    [
        ((1, 1), 1, {False, True}, {False}),
        ((2, 2), 1, {False, True}, {False}),
        ((2, 3), 2, {False, True}, {False}),
        ((2, 5), 2, {False, True}, {False}),
        ((2, 6), 2, {False}, {False, True}),
    ],
)
def test_stopped_replicas_share_a_request_by_deletion_from_2_3_and_always_from_2_6(
    release, partitions, by_request, by_partition
):
    rows = deletion_in(release)
    assert {len(row.partition_states) for row in rows} == {partitions}
    assert {row.delete_partitions for row in rows} == by_request
    assert {state.delete_partition for row in rows for state in row.partition_states} == by_partition
    has_epoch = release >= (2, 6)
    assert {state.leader_epoch for row in rows for state in row.partition_states} == ({-2} if has_epoch else {None})


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


@pytest.mark.parametrize(
    ("release", "has_epochs", "has_ids", "new", "offline"),
    [
        ((0, 11), False, False, set(), set()),
        ((1, 0), False, False, {True}, {(2,)}),
        ((2, 1), False, False, {True}, {(2,)}),
        ((2, 2), True, False, {True}, {(2,)}),
        ((2, 7), True, False, {True}, {(2,)}),
        ((2, 8), True, True, {True}, {(2,)}),
    ],
)
def test_what_a_request_says_is_what_the_release_has_in_it(release, has_epochs, has_ids, new, offline):
    history = ZnodeHistory(release=release).start(1, 3)
    effects = history.topic("t", {0: [1, 2]}, topic_id="an-idAAAAAAAAAAAAAAAAA") + history.state("t", 0, 1, 0, [1])
    (leader,), (told,) = requests(effects, "LeaderAndIsr"), requests(effects, "UpdateMetadata")
    assert bool(leader.broker_epochs) == bool(told.broker_epochs) == has_epochs
    assert leader.topic_ids == told.topic_ids == ({"t": "an-idAAAAAAAAAAAAAAAAA"} if has_ids else {})
    assert {state.is_new for state in leader.partition_states} == (new or {False})
    assert {state.offline_replicas for state in told.partition_states} == (offline or {()})


@pytest.mark.parametrize(("release", "adding"), [((2, 3), ()), ((2, 4), (3,))])
def test_brokers_hear_which_replicas_are_being_added_from_2_4_on(release, adding):
    history = ZnodeHistory(release=release).start(1, 2, 3, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    effects = history.reassign(("t", 0, [1, 3]))
    rows = requests(effects, "LeaderAndIsr", Status.PROVISIONAL)
    assert {state.adding_replicas for row in rows for state in row.partition_states} == {adding}


@pytest.mark.parametrize(("release", "state"), [((3, 1), 0), ((3, 2), 1)])
def test_brokers_hear_of_an_unclean_election_from_3_2_on(release, state):
    settings = {"unclean.leader.election.enable": True}
    history = ZnodeHistory(release=release, settings=settings)
    history.start(1, 2, 3, topics={"t": {0: ([3, 2], 3, 0, [3])}})
    effects = history.broker_leaves(3) + history.state("t", 0, 2, 1, [2], leader_recovery_state=1)
    rows = requests(effects, "LeaderAndIsr")
    assert {each.leader_recovery_state for row in rows for each in row.partition_states} == {state}


@pytest.mark.parametrize(
    ("release", "told"),
    [((2, 1), [((1, 2, 3, 4), None)]), ((2, 2), [((1, 2, 3), ()), ((4,), None)])],
)
def test_up_to_2_1_all_brokers_hear_of_all_partitions_when_one_comes(release, told):
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2])}}
    history = ZnodeHistory(release=release).start(1, 2, 3, topics=topics)
    assert metadata(history.broker(4))[: len(told)] == told


def test_a_log_dir_event_tells_of_no_partition_that_has_no_leader_yet():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([9],)}})
    effects = history.write(LOG_DIR_EVENT, {"version": 1, "broker": 2, "event": 1})
    assert not [line for line in history.requests(effects) if "t-0" in line]


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
