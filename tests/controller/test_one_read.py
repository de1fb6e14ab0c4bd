"""Context of one complete read, with the controller's next writes, dates from znodes and immediate alerts."""

from controller.contract.alert_row import AlertRow
from controller.contract.ids import NO_BROKER, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import Problem
from controller.contract.row import NOT_KNOWN_MS
from controller.restore.one_read import context_of_read
from controller.restore.stored_context import new_context
from controller.transaction.conclusion import Outcome
from controller.view.health import whereabouts
from controller.view.types import Partition
from tests.controller.znode_history import Topics, ZnodeHistory, broker_znode, state_znode, topic_znode

STATE = "/brokers/topics/t/partitions/0/state"


def look(topics: Topics, written_ms: dict[str, int] | None = None) -> Outcome:
    """Return one read of brokers 1 and 2. Broker 1 is controller."""
    return context_of_read(new_context("c"), ZnodeHistory().start(1, 2, topics=topics).records, written_ms or {})


def found(outcome: Outcome, number: int = 0) -> Partition:
    partition = outcome.context.topics.partition(TopicPartition("t", number))
    assert partition is not None
    return partition


def alerts(outcome: Outcome) -> dict[str, int]:
    return {row.alert: row.since_ms for row in outcome.effects if isinstance(row, AlertRow)}


def test_a_dead_leader_is_replaced_as_if_it_had_just_died():
    outcome = look({"t": {0: ([3, 1], 3, 5, [3, 1])}}, {STATE: 500})
    partition = found(outcome)
    assert (partition.problem, partition.problem_since_ms) == (Problem.ELECTION_DUE, NOT_KNOWN_MS)
    (row,) = [row for row in outcome.effects if isinstance(row, PartitionRow) and row.predicted_leader is not None]
    assert (row.predicted_leader, row.predicted_leader_epoch) == (1, 6)
    assert alerts(outcome)["ElectionDue"] == NOT_KNOWN_MS
    assert outcome.context.header.departures.last == {}


def test_a_partition_without_a_leader_has_the_date_of_its_newest_znode():
    written = {STATE: 700, "/brokers/topics/t": 300, "/brokers/ids/9": 100}
    outcome = look({"t": {0: ([9, 1], -1, 5, [9]), 1: ([1, 2], 1, 5, [1, 2])}}, written)
    assert (found(outcome).problem, found(outcome).problem_since_ms) == (Problem.NO_LIVE_IN_SYNC_REPLICA, 700)
    assert found(outcome, 1).problem is None
    assert alerts(outcome)["PartitionsOffline"] == 700


def test_a_group_of_partitions_is_as_old_as_its_oldest():
    written = {STATE: 700, "/brokers/topics/t/partitions/1/state": 300}
    outcome = look({"t": {0: ([9, 1], -1, 5, [9]), 1: ([9, 2], -1, 5, [9])}}, written)
    assert alerts(outcome)["PartitionsOffline"] == 300


def test_a_partition_without_a_state_has_the_date_of_its_topic_if_a_replica_is_live():
    outcome = look({"t": {0: ([1, 2],), 1: ([8, 9],)}}, {"/brokers/topics/t": 300})
    assert (found(outcome).problem, found(outcome).problem_since_ms) == (Problem.NOT_YET_CREATED, 300)
    never = found(outcome, 1)
    assert (never.problem, never.problem_since_ms) == (Problem.NO_LIVE_REPLICA_AT_CREATION, NOT_KNOWN_MS)


def test_a_partition_that_is_only_under_min_isr_has_the_date_of_its_state():
    outcome = look({"t": {0: ([1, 2], 1, 5, [1])}}, {STATE: 400})
    assert (found(outcome).problem, found(outcome).problem_since_ms) == (Problem.UNDER_REPLICATED, 400)


def test_the_absence_of_an_in_sync_replica_that_acks_all_needs_has_no_date():
    history = ZnodeHistory()
    history.snapshot(
        *(
            ("/controller_epoch", b"4"),
            ("/brokers/ids/1", broker_znode(1)),
            ("/brokers/topics/t", topic_znode({0: [1, 2]})),
        ),
        *((STATE, state_znode(1, 0, [1, 2], 4)), ("/config/topics/t", {"config": {"min.insync.replicas": "2"}})),
    )
    outcome = context_of_read(new_context("c"), history.records, {STATE: 400})
    assert (found(outcome).problem, found(outcome).problem_since_ms) == (Problem.UNDER_MIN_ISR, NOT_KNOWN_MS)


def causes(topics: Topics, *brokers: int, has_all_topics: bool = True) -> dict[str, str]:
    """Return the causes of the alerts of one read, by kind."""
    read = ZnodeHistory().start(*brokers, topics=topics).records
    outcome = context_of_read(new_context("c"), read, {}, has_all_topics=has_all_topics)
    return {row.alert: row.cause for row in outcome.effects if isinstance(row, AlertRow)}


def test_a_read_does_not_say_that_an_absent_broker_was_never_seen():
    found = causes({"t": {0: ([1, 8], 1, 5, [1])}}, 1, 2)
    assert found["BrokerAbsent"].startswith("broker 8 hosts replicas but is not registered: ")


def test_a_broker_that_only_lacks_in_one_topic_may_be_in_the_others():
    topics: Topics = {"t": {0: ([8, 9],)}}
    assert causes(topics, 1, 2)["BrokerUnknown"].startswith("brokers 8 and 9 have never registered here as far as Zoo")
    assert "BrokerUnknown" not in causes(topics, 1, 2, has_all_topics=False)
    read = ZnodeHistory().start(1, 2, topics=topics).records
    header = context_of_read(new_context("c"), read, {}, has_all_topics=False).context.header
    assert whereabouts((8,), header) == ("broker 8 has never registered here as far as this topic shows",)


def test_one_leader_of_all_lagging_replicas_is_named_at_once():
    topics: Topics = {"t": {number: ([3, 1, 2], 3, 0, [3]) for number in range(2)}}
    topics |= {"u": {number: ([leader, 3], leader, 0, [leader, 3]) for number, leader in enumerate((1, 2))}}
    found = causes(topics, 1, 2, 3)["PartitionsUnderReplicated"]
    assert found.startswith("broker 3 leads all 2 partitions that lack brokers 1 and 2, which are in sync elsewhere: ")


def test_a_cluster_without_a_controller_has_none_since_an_unknown_moment():
    history = ZnodeHistory()
    history.snapshot(
        ("/controller_epoch", b"4"), ("/brokers/topics/t", topic_znode({0: [1]})), (STATE, state_znode(1, 0, [1], 4))
    )
    outcome = context_of_read(new_context("c"), history.records, {}, shows_partitions=False)
    assert outcome.context.header.controller == NO_BROKER
    assert outcome.context.header.term.since_ms == NOT_KNOWN_MS
    assert not any(isinstance(row, PartitionRow) for row in outcome.effects)
    assert "NoController" in alerts(outcome)
