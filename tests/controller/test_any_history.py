"""Named invariants over random histories, with any content of ZooKeeper in any order."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.outputs import decode_row, encode_row
from controller.contract.records import RecordKind
from controller.model.context import Phase
from controller.model.leadership import Write
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.rules.releases import Release, profile_of
from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS, PartitionState
from controller.step import step
from controller.view.counting import count_gauges
from controller.view.state_epochs import count_state_epochs
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_the_issues_are_as_if_made_anew,
    assert_the_replica_index_is_as_if_made_anew,
    broker_znode,
    controller_znode,
    state_znode,
    topic_znode,
)

brokers = st.integers(1, 4)
replica_lists = st.lists(brokers, min_size=0, max_size=3)
topics = st.sampled_from(["a", "b", "__consumer_offsets"])
assignments = st.dictionaries(st.integers(0, 3), replica_lists, max_size=4)
paths = st.sampled_from(
    [
        "/controller",
        "/controller_epoch",
        "/brokers/ids/1",
        "/brokers/topics/a",
        "/brokers/topics/a/partitions/0/state",
        "/admin/delete_topics/a",
        "/config/topics/a",
        "/feature",
        "/migration",
        "/brokers/topics/a/partitions/99999999999/state",
        "/nonsense",
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["leader", "isr", "config", "partitions", "x"]), inner, max_size=3)
    ),  # noqa: E501
    max_leaves=8,
)
LEGAL_WORDS = {
    subject: {(state.word, target.word) for target, states in table.items() for state in states}
    for subject, table in (("partition", PARTITION_VALID_PREVIOUS), ("replica", REPLICA_VALID_PREVIOUS))
}


class AnyHistory(RuleBasedStateMachine):
    """Random changes of znodes, sensible and not."""

    release: Release | None = None  # release that the znodes show

    def __init__(self) -> None:
        super().__init__()
        self.history = ZnodeHistory(chunk_count=4, release=self.release)
        self.history.snapshot(("/controller", controller_znode(1)), ("/controller_epoch", b"1"))
        self.epoch = self.kraft_epoch = 1
        self.seen = 0
        self.provisional: set[str] = set()
        self.ended: set[str] = set()
        self.requests: dict[str, Request] = {}

    @rule(broker=brokers)
    def broker_registers(self, broker: int) -> None:
        self.history.broker(broker)

    @rule(broker=brokers)
    def broker_bounces(self, broker: int) -> None:
        self.history.znodes.pop(f"/brokers/ids/{broker}", None)
        self.history.broker(broker)

    @rule(broker=brokers)
    def broker_leaves(self, broker: int) -> None:
        self.history.broker_leaves(broker)

    @rule(topic=topics, assignment=assignments, adding=assignments)
    def topic_is_written(self, topic: str, assignment: dict[int, list[int]], adding: dict[int, list[int]]) -> None:
        self.history.write(f"/brokers/topics/{topic}", topic_znode(assignment, adding_replicas=adding))

    @rule(
        topic=topics, partition=st.integers(0, 3), leader=st.integers(-1, 4), epoch=st.integers(0, 5), isr=replica_lists
    )
    def state_is_written(self, topic: str, partition: int, leader: int, epoch: int, isr: list[int]) -> None:
        self.history.state(topic, partition, leader, epoch, isr)

    @rule(topic=topics, partition=st.integers(0, 3), epochs_ago=st.integers(1, 2), isr=replica_lists)
    def a_deposed_controller_writes(self, topic: str, partition: int, epochs_ago: int, isr: list[int]) -> None:
        known = self.history.context.topics.partition(TopicPartition(topic, partition))
        value = known.zk_state if known else None
        epoch = value.leader_epoch + 1 if value else 0
        leader = isr[0] if isr else -1
        self.history.state(topic, partition, leader, epoch, isr, controller_epoch=max(1, self.epoch - epochs_ago))

    @rule(topic=topics, data=st.data())
    def the_controller_writes_what_it_must(self, topic: str, data: st.DataObject) -> None:
        known = self.history.context.topics.get(topic)
        for number, partition in known.partitions.items() if known else ():
            value = partition.value(1)
            if partition.write_due and value is not None:
                self.history.state(topic, number, value.leader, value.leader_epoch, list(value.isr))

    @rule(topic=topics, what=st.sampled_from(["/brokers/topics/{}", "/admin/delete_topics/{}", "/config/topics/{}"]))
    def a_topic_znode_vanishes(self, topic: str, what: str) -> None:
        self.history.delete(what.format(topic))

    @rule(topic=topics)
    def deletion_is_asked_for(self, topic: str) -> None:
        self.history.write(f"/admin/delete_topics/{topic}")

    @rule(broker=brokers)
    def the_controller_moves(self, broker: int) -> None:
        self.history.delete("/controller")
        self.epoch += 1
        self.history.controller(broker, self.epoch)

    @rule(offset=st.integers(-1, 4), controller=st.integers(3000, 3001))
    def migration_is_written(self, offset: int, controller: int) -> None:
        self.history.migration(offset, controller, self.kraft_epoch)

    @rule(controller=st.integers(3000, 3001), by=st.integers(1, 3))
    def a_kraft_controller_claims(self, controller: int, by: int) -> None:
        self.epoch, self.kraft_epoch = self.epoch + 1, self.kraft_epoch + by
        self.history.kraft_claims(controller, self.kraft_epoch, self.epoch)

    @rule(topic=topics, partition=st.integers(0, 3), leader=st.integers(-1, 4), isr=replica_lists)
    def kraft_writes_a_state(self, topic: str, partition: int, leader: int, isr: list[int]) -> None:
        self.history.state(topic, partition, leader, self.kraft_epoch, isr, controller_epoch=self.kraft_epoch)

    @rule(path=st.sampled_from(["/migration", "/controller"]))
    def a_znode_of_the_migration_vanishes(self, path: str) -> None:
        self.history.delete(path)

    @rule(path=paths, value=json_values)
    def anything_is_written(self, path: str, value: object) -> None:
        self.history.write(path, json.dumps(value).encode())

    @rule(path=paths, value=st.binary(max_size=8))
    def any_bytes_are_written(self, path: str, value: bytes) -> None:
        self.history.write(path, value)

    @rule(after_ms=st.sampled_from([0, 1_000, 20_000]))
    def time_passes(self, after_ms: int) -> None:
        self.history.heartbeat(after_ms)

    @rule(known=st.lists(st.tuples(topics, assignments), max_size=2, unique_by=lambda pair: pair[0]))
    def another_forwarder_reads_everything(self, known: list[tuple[str, dict[int, list[int]]]]) -> None:
        self.history.generation += 1
        self.history.seq = -1
        writes = [("/controller", controller_znode(2)), ("/controller_epoch", str(self.epoch).encode())]
        writes += [("/brokers/ids/2", broker_znode(2))]
        writes += [(f"/brokers/topics/{topic}", topic_znode(assignment)) for topic, assignment in known]
        writes += [(f"/brokers/topics/{topic}/partitions/0/state", state_znode(2, 1, [2])) for topic, _ in known]
        self.history.snapshot(*writes)

    @rule()
    def a_forwarder_begins_in_the_middle(self) -> None:
        self.history.generation += 1
        self.history.seq = 5
        self.history.send(RecordKind.DELETED, path="/brokers/ids/1")

    @invariant()
    def the_replica_index_follows(self) -> None:
        assert_the_replica_index_is_as_if_made_anew(self.history.context)
        assert_the_issues_are_as_if_made_anew(self.history.context)

    @invariant()
    def counts_equal_a_recount(self) -> None:
        header, topics = self.history.context.header, self.history.context.topics
        assert header.tally.gauges == count_gauges(topics, header.counting_rules)

    @invariant()
    def epochs_in_states_equal_a_recount(self) -> None:
        header = self.history.context.header
        if header.migration.seen and header.phase is Phase.FOLLOWING:
            assert header.migration.partitions_by_epoch == count_state_epochs(self.history.context.topics)

    @invariant()
    def nothing_is_expected_while_kraft_leads(self) -> None:
        header = self.history.context.header
        assert not (header.led_by_kraft and (header.acting or header.events))

    @invariant()
    def events_know_what_is_queued(self) -> None:
        queued, due = Counter[int](), Counter[int]()
        for _, topic in self.history.context.topics:
            for partition in topic.partitions.values():
                queued.update(step.event for step in partition.queue)
                due.update(step.event for step in partition.queue if isinstance(step, Write))
        events = self.history.context.header.events
        queued.update({key: len(event.batches) for key, event in events.items() if event.batches})
        assert {key: event.pending for key, event in events.items()} == dict(queued)
        assert {key: event.writes_due for key, event in events.items() if event.writes_due} == dict(due)

    @invariant()
    def redelivery_changes_nothing(self) -> None:
        if self.history.records:
            outcome = step(self.history.context, self.history.records[-1])
            assert outcome.effects == ()
            assert outcome.context is self.history.context

    @invariant()
    def every_row_that_is_published_is_true(self) -> None:
        for row in self.history.effects[self.seen :]:
            assert decode_row(encode_row(row)) == row
            if isinstance(row, Transition) and row.subject in LEGAL_WORDS:
                assert (row.from_state, row.to_state) in LEGAL_WORDS[row.subject], row
                self._is_led_if_it_is_finally_online(row)
            if isinstance(row, (Transition, Request)) and getattr(row, "part", 1) == 1:
                self._is_expected_once_and_ends_once(row)
            if isinstance(row, Request):
                self._is_a_request_as_kafka_sends_it(row)
        self.seen = len(self.history.effects)

    def _is_led_if_it_is_finally_online(self, row: Transition) -> None:
        if row.status is Status.FINAL and row.to_state == "OnlinePartition":
            known = self.history.context.topics.partition(TopicPartition(row.topic, row.partition))
            value = known.zk_state if known else None
            # A later epoch that was seen is a write that could only follow on this one.
            was_seen = value is not None and (
                (row.leader, row.leader_epoch) == (value.leader, value.leader_epoch)
                or row.leader_epoch < value.leader_epoch
            )
            assert was_seen or row.leader in self.history.context.header.brokers, row

    def _is_expected_once_and_ends_once(self, row: Transition | Request) -> None:
        """Check that the effect ends once, as final or withdrawn. Only a provisional effect can be withdrawn."""
        assert row.effect not in self.ended, row
        if row.status is Status.PROVISIONAL:
            assert row.effect not in self.provisional, row
            self.provisional.add(row.effect)
        else:
            self.ended.add(row.effect)
            assert row.status is Status.FINAL or row.effect in self.provisional, row

    def _is_a_request_as_kafka_sends_it(self, row: Request) -> None:
        expected = self.requests.setdefault(row.effect, row)
        of = ("api", "controller", "cause", "all_partitions")
        assert [getattr(row, name) for name in of] == [getattr(expected, name) for name in of]
        # A new controller spares the brokers that its load did not find alive.
        for brokers in ("brokers", "live_brokers"):
            assert set(getattr(row, brokers)) <= set(getattr(expected, brokers)), row
        epochs = dict(zip(expected.brokers, expected.broker_epochs, strict=False))
        assert row.broker_epochs == tuple(epochs[broker] for broker in row.brokers if epochs), row
        named = [(state.topic, state.partition) for state in row.partition_states]
        assert len(set(named)) == len(named), row
        assert set(named) <= {(state.topic, state.partition) for state in expected.partition_states}, row
        assert set(row.topic_ids) <= {topic for topic, _ in named}
        if row.api == "UpdateMetadata":
            assert set(row.brokers) <= set(row.live_brokers), row
        else:
            (broker,) = row.brokers
            assert row.partition_states or row.status is Status.WITHDRAWN, row
            assert set(row.live_leaders) <= {state.leader for state in row.partition_states}, row

    def teardown(self) -> None:
        self._stored_state_continues_as_if_never_stored()
        self._the_last_row_of_each_partition_is_its_state()

    def _stored_state_continues_as_if_never_stored(self) -> None:
        profile = profile_of(self.release) if self.release else None
        context, stored, effects = new_context("c", profile=profile, chunk_count=4), {}, []
        for record in self.history.records:
            outcome = step(context, record)
            stored |= changed_chunks(context, outcome.context)
            effects.extend(outcome.effects)
            context = restore_context("c", encode_header(outcome.context), stored.get)
        assert effects == self.history.effects

    def _the_last_row_of_each_partition_is_its_state(self) -> None:
        last = {(row.topic, row.partition): row for row in self.history.effects if isinstance(row, PartitionRow)}
        ready = self.history.context.header.phase.value == "following"
        for name, topic in self.history.context.topics if ready else ():
            for number, partition in topic.partitions.items():
                row = last[name, number]
                problem = partition.problem.value if partition.problem else None
                assert (row.state, row.problem) == (PartitionState(partition.state).word, problem)
                assert row.deleting is topic.queued_for_deletion
                assert (row.leader == -1) if partition.zk_state is None else (row.isr == partition.zk_state.isr)
        if ready:
            told = Counter(row.state for row in last.values())
            del told["NonExistentPartition"]  # the last row of those that are gone, too
            in_state = self.history.context.header.tally.gauges.partitions_in
            by_state = {state.word: in_state[state] for state in PartitionState if in_state[state]}
            by_state.pop("NonExistentPartition", None)
            assert by_state == told
        assert {row.status for row in self.history.effects if isinstance(row, Transition)} <= set(Status)


def _of(release: Release | None, max_examples: int) -> type:
    machine = type("AnyHistory", (AnyHistory,), {"release": release})
    machine.TestCase.settings = settings(
        max_examples=max_examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return machine.TestCase


test_any_history = _of(None, max_examples=60)
test_any_history_of_1_0 = _of((1, 0), max_examples=20)
test_any_history_of_2_0 = _of((2, 0), max_examples=20)
test_any_history_of_2_8 = _of((2, 8), max_examples=20)
