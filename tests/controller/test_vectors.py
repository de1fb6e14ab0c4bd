"""The core's choices beside Kafka's own: 20,000 random questions, then the rules that a naive copy gets wrong.

The answers under `vectors/`, and those of the refusals and repeated brokers below, are those of Kafka 3.9.2.
"""

import json
import lzma
from pathlib import Path

import pytest

from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.leadership import Elect
from controller.rules.assignment import ReplicaAssignment
from controller.rules.election import Strategy, recipients
from controller.rules.partitioner import murmur2, partition_for_key
from controller.rules.placement import PlacementError, Refusal, place_replicas

VECTORS = Path(__file__).parent / "vectors"

STRATEGIES = {
    "offline": Strategy.OFFLINE,
    "offline-unclean": Strategy.OFFLINE,
    "reassign": Strategy.REASSIGN,
    "preferred": Strategy.PREFERRED,
    "controlled-shutdown": Strategy.CONTROLLED_SHUTDOWN,
}


def assert_all_equal(name, answer):
    """Compare our answer with Kafka's for each question of a file. `answer` gives (ours, Kafka's)."""
    with lzma.open(VECTORS / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    assert len(questions) == 5_000
    for question in questions:
        ours, kafkas = answer(question)
        assert ours == kafkas, question


def elect(question):
    strategy = STRATEGIES[question["strategy"]]
    assignment = ReplicaAssignment(*(tuple(question[field]) for field in ("replicas", "adding", "removing")))
    candidates = assignment.target if strategy is Strategy.REASSIGN else assignment.replicas
    shutting_down = frozenset(question["shutting_down"])
    online = frozenset(question["registered"]) - frozenset(question["offline_dirs_on"])
    if strategy is not Strategy.CONTROLLED_SHUTDOWN:
        online -= shutting_down
    intent = Elect(
        event=1,
        at_batch=0,
        ordinal=0,
        strategy=strategy,
        candidates=candidates,
        online=tuple(online),
        shutting_down=tuple(shutting_down),
        allow_unclean=question["strategy"] == "offline-unclean",
    )
    before = LeaderAndIsr(question["leader"], question["leader_epoch"], tuple(question["isr"]), controller_epoch=1)
    after = intent.apply(before, 1)
    elected = after and {"leader": after.leader, "leader_epoch": after.leader_epoch, "isr": list(after.isr)}
    told = list(recipients(strategy, candidates, online))
    return (elected, told), (question["elected"], question["recipients"])


def place(question):
    placed = place_replicas(
        {int(broker): rack for broker, rack in question["brokers"].items()},
        question["partitions"],
        question["replication_factor"],
        start_index=question["fixed_start_index"],
        shift=question["fixed_start_index"],
        start_partition_id=question["start_partition_id"],
    )
    return placed, {int(partition): tuple(replicas) for partition, replicas in question["assignment"].items()}


def reassign(question):
    before = ReplicaAssignment(*(tuple(question[field]) for field in ("replicas", "adding", "removing")))
    kafkas = ReplicaAssignment(*(tuple(question["result"][field]) for field in ("replicas", "adding", "removing")))
    return before.reassign_to(question["target"]), kafkas


def hash_key(question):
    return partition_for_key(bytes.fromhex(question["key_hex"]), question["partitions"]), question["partition"]


@pytest.mark.parametrize(
    ("name", "answer"), [("election", elect), ("place", place), ("reassign", reassign), ("murmur", hash_key)]
)
def test_every_answer_is_kafkas_own(name, answer):
    assert_all_equal(name, answer)


# Recipients of an election


def test_a_dead_replica_gets_requests_of_preferred_elections_and_reassignments_only():
    told = {strategy: recipients(strategy, [1, 2, 3], online={1, 3}) for strategy in Strategy}
    assert told == {
        Strategy.OFFLINE: (1, 3),
        Strategy.REASSIGN: (1, 2, 3),
        Strategy.PREFERRED: (1, 2, 3),
        Strategy.CONTROLLED_SHUTDOWN: (1, 3),
    }


# Where new replicas go


def place_from(brokers, partition_count, replication_factor, start, **options):
    return place_replicas(brokers, partition_count, replication_factor, start_index=start, shift=start, **options)


def test_without_racks_the_order_of_the_brokers_is_the_callers():
    assert place_from({1: None, 0: None}, 1, 2, 0) == {0: (1, 0)}
    assert place_from({0: None, 1: None}, 1, 2, 0) == {0: (0, 1)}


def test_with_racks_the_order_of_the_brokers_does_not_count():
    sorted_by_id = {0: "a", 1: "a", 2: "b"}
    assert place_from(dict(reversed(sorted_by_id.items())), 6, 2, 1) == place_from(sorted_by_id, 6, 2, 1)


def test_every_round_over_the_brokers_shifts_the_followers_so_that_a_loss_is_spread():
    placed = place_from({0: None, 1: None, 2: None}, 6, 2, 0)
    assert placed == {0: (0, 1), 1: (1, 2), 2: (2, 0), 3: (0, 2), 4: (1, 0), 5: (2, 1)}


def test_added_partitions_continue_the_rounds_of_the_topic():
    brokers = {0: None, 1: None, 2: None}
    # Kafka forgets the shift of the first round, so a topic that grew may repeat followers.
    assert place_from(brokers, 2, 2, 0, start_partition_id=2) == {2: (2, 0), 3: (0, 2)}
    assert place_from(brokers, 1, 2, 0, start_partition_id=4) == {4: (1, 2)}


def test_a_negative_start_partition_is_the_first_partition():
    assert place_from({0: None, 1: None, 2: None}, 3, 2, 0, start_partition_id=-5) == {0: (0, 1), 1: (1, 2), 2: (2, 0)}


def test_a_start_index_beyond_the_brokers_goes_round():
    assert place_from({0: None, 1: None, 2: None}, 3, 2, 7) == {0: (1, 0), 1: (2, 1), 2: (0, 2)}


def test_start_index_and_shift_are_apart_where_kafka_draws_them():
    brokers = {0: None, 1: None, 2: None}
    assert place_replicas(brokers, 1, 3, start_index=1, shift=0) == {0: (1, 2, 0)}
    assert place_replicas(brokers, 1, 3, start_index=1, shift=1) == {0: (1, 0, 2)}


def test_no_rack_has_two_replicas_while_another_has_none():
    racks = {0: "a", 1: "a", 2: "a", 3: "b", 4: "c"}
    placed = place_from(racks, 40, 3, 2)
    assert all({racks[replica] for replica in replicas} == {"a", "b", "c"} for replicas in placed.values())


def test_a_broker_never_has_two_replicas_of_a_partition_however_uneven_the_racks():
    placed = place_from({0: "a", 1: "a", 2: "a", 3: "b"}, 40, 4, 1)
    assert all(sorted(replicas) == [0, 1, 2, 3] for replicas in placed.values())


def test_a_single_broker_has_every_partition():
    assert place_from({7: "a"}, 2, 1, 0) == place_from({7: None}, 2, 1, 0) == {0: (7,), 1: (7,)}


def test_an_empty_rack_is_a_rack():
    assert place_from({0: "", 1: "a", 2: ""}, 3, 2, 0) == {0: (0, 1), 1: (1, 2), 2: (2, 1)}


def test_racks_are_sorted_as_java_sorts_strings():
    placed = place_from({0: "\ufffd", 1: "\U0001f600", 2: "a"}, 4, 1, 0)
    assert placed == {0: (2,), 1: (1,), 2: (0,), 3: (2,)}


TOO_FEW_BROKERS = "Replication factor: 3 larger than available brokers: 2."
NO_FACTOR = "Replication factor must be larger than 0."
NO_PARTITIONS = "Number of partitions must be larger than 0."
SOME_RACKS = "Not all brokers have rack information for replica rack aware assignment."


@pytest.mark.parametrize(
    ("brokers", "partition_count", "replication_factor", "kind", "message"),
    [
        ({0: None}, 0, 1, Refusal.PARTITIONS, NO_PARTITIONS),
        ({0: None}, -1, 0, Refusal.PARTITIONS, NO_PARTITIONS),
        ({0: None}, 1, 0, Refusal.REPLICATION_FACTOR, NO_FACTOR),
        ({0: None, 1: None}, 1, 3, Refusal.REPLICATION_FACTOR, TOO_FEW_BROKERS),
        ({0: "a", 1: None}, 1, 3, Refusal.REPLICATION_FACTOR, TOO_FEW_BROKERS),
        ({0: "a", 1: None}, 1, 1, Refusal.RACKS, SOME_RACKS),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_order_and_words(
    brokers, partition_count, replication_factor, kind, message
):
    with pytest.raises(PlacementError) as refused:
        place_from(brokers, partition_count, replication_factor, 0)
    assert (refused.value.kind, str(refused.value)) == (kind, message)


# Reassignments


def test_the_replicas_of_the_target_come_first_and_the_old_ones_follow():
    began = ReplicaAssignment((1, 2, 3)).reassign_to((4, 2, 3))
    assert began == ReplicaAssignment((4, 2, 3, 1), adding=(4,), removing=(1,))
    assert (began.origin, began.target, began.is_being_reassigned) == ((2, 3, 1), (4, 2, 3), True)


def test_a_change_of_order_alone_is_no_reassignment():
    reordered = ReplicaAssignment((1, 2, 3)).reassign_to((3, 1, 2))
    assert reordered == ReplicaAssignment((3, 1, 2))
    assert not reordered.is_being_reassigned


def test_a_superseded_reassignment_leaves_nothing_of_its_target():
    superseded = ReplicaAssignment((1, 2)).reassign_to((5, 6)).reassign_to((7, 2))
    assert superseded == ReplicaAssignment((7, 2, 1), adding=(7,), removing=(1,))


def test_a_cancelled_reassignment_is_one_to_its_origin():
    moving = ReplicaAssignment((5, 6, 1, 2), adding=(5, 6), removing=(1, 2))
    assert moving.reassign_to(moving.origin) == ReplicaAssignment((1, 2))


def test_a_cancelled_reassignment_does_not_bring_the_old_order_back():
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4, 2))
    assert moving.reassign_to(moving.origin) == ReplicaAssignment((3, 2, 1))


def test_a_broker_that_a_znode_names_twice_is_taken_away_once():
    twice = ReplicaAssignment((1, 1, 1, 2), removing=(1, 1))
    assert twice.target == (1, 2)
    assert twice.reassign_to((4,)) == ReplicaAssignment((4, 1, 2), adding=(4,), removing=(1, 2))
    assert ReplicaAssignment((1, 1, 2), adding=(1,)).origin == (1, 2)
    assert ReplicaAssignment((1, 2)).reassign_to((3, 3, 1)) == ReplicaAssignment((3, 1, 2), (3,), (2,))


# Keys


def test_a_negative_hash_is_masked_not_negated():
    assert murmur2(b"21") == -973932308 % 2**32
    assert partition_for_key(b"21", 1000) == 340
    assert abs(-973932308) % 1000 != 340


@pytest.mark.parametrize(("key", "partition"), [(b"", 2), (b"\x80", 1), (b"\xff\x7f\x80", 6), (b"\xff\xff\xff\xff", 6)])
def test_bytes_above_127_and_every_length_of_tail_count_unsigned(key, partition):
    assert partition_for_key(key, 7) == partition


def test_a_topic_without_partitions_has_none_for_a_key():
    with pytest.raises(ValueError, match="at least one partition, not 0"):
        partition_for_key(b"key", 0)
